# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Network namespaces: make, remove, identify them, and run a function inside one."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import pyroute2

from ..errors import KernelError, NameTakenError, PrivilegeError

_CLONE_NEWNET: Final = 0x40000000
_MS_BIND: Final = 0x1000
_MS_REC: Final = 0x4000
_MS_SHARED: Final = 1 << 20
_MNT_DETACH: Final = 2
_NAMESPACE_DIRECTORY: Final = Path("/run/netns")
_LIBC: Final = ctypes.CDLL(None, use_errno=True)

# pyroute2 is only partly annotated.
_PYROUTE2: Final = cast(Any, pyroute2)

T = TypeVar("T")


def require_root() -> None:
    """Raise PrivilegeError unless this process may make network namespaces."""
    if os.geteuid() != 0:
        raise PrivilegeError(
            "network namespaces need root: run as root, or choose --mode udp, which joins plain "
            "processes over loopback ports and needs no privileges"
        )


def namespace_path(name: str) -> Path:
    """Return the path of a named namespace; an absolute path is returned unchanged."""
    return _NAMESPACE_DIRECTORY / name


def namespace_inode(name: str) -> int | None:
    """Return the inode that identifies a namespace beyond its name, None when there is none."""
    try:
        return namespace_path(name).stat().st_ino
    except FileNotFoundError:
        return None


def check_free(name: str) -> None:
    """Raise NameTakenError when a namespace of this name exists."""
    if namespace_path(name).exists():
        raise NameTakenError(
            f"network namespace {name} exists and no testbed of ours recorded it: remove it "
            f"(ip netns delete {name}) or give the testbed another --name"
        )


def create_namespace(name: str) -> int:
    """Make a namespace with loopback only, IPv6 and forwarding off; return its inode.

    Raises NameTakenError when the name exists, PrivilegeError without root, KernelError otherwise.
    """
    require_root()
    check_free(name)
    try:
        _create(namespace_path(name))
    except FileExistsError:
        check_free(name)
        raise
    except OSError as exc:
        raise KernelError(f"cannot create network namespace {name}: {exc}") from exc
    quieten(name)
    inode = namespace_inode(name)
    assert inode is not None
    return inode


def remove_namespace(name: str) -> None:
    """Remove a namespace and every interface in it; nothing happens when it is gone already."""
    if namespace_inode(name) is None:
        return
    path = namespace_path(name)
    try:
        _check(_LIBC.umount2(os.fsencode(path), _MNT_DETACH))
        path.unlink()
    except OSError as exc:
        raise KernelError(f"cannot remove network namespace {name}: {exc}") from exc


def call_in_namespace(name: str, function: Callable[[], T]) -> T:
    """Run a function in a thread that has entered the namespace; the caller stays in its own."""

    def enter_and_call() -> T:
        _enter(name)
        return function()

    return _call_in_thread(enter_and_call)


def call_with_route(name: str, function: Callable[[Any], T]) -> T:
    """Run a function with a pyroute2.IPRoute that acts inside the namespace.

    A thread that has entered the namespace opens the socket: pyroute2 itself would fork.
    """

    def open_and_call() -> T:
        with _PYROUTE2.IPRoute() as route:
            return function(route)

    return call_in_namespace(name, open_and_call)


def _call_in_thread(function: Callable[[], T]) -> T:
    """Call a function in a thread of its own, the only one whose namespace it may change."""
    results: list[T] = []
    failures: list[BaseException] = []

    def call() -> None:
        try:
            results.append(function())
        except BaseException as exc:  # handed to the caller below
            failures.append(exc)

    thread = threading.Thread(target=call, name="namespace")
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return results[0]


def _create(path: Path) -> None:
    """Make a namespace and give it a name, as `ip netns add` does.

    A thread makes it, not a forked process: if the caller has other threads, locks that they hold
    stay locked for ever in the forked process.
    """

    def make_and_name() -> None:
        _check(_LIBC.unshare(_CLONE_NEWNET))
        _mount(Path("/proc/thread-self/ns/net"), path, _MS_BIND)

    with _named_namespaces():
        path.touch(mode=0o444, exist_ok=False)
        try:
            _call_in_thread(make_and_name)
        except BaseException:
            path.unlink()
            raise


@contextlib.contextmanager
def _named_namespaces() -> Generator[None]:
    """Lock the directory of names, and make it a mount point that all mount namespaces share."""
    _NAMESPACE_DIRECTORY.mkdir(mode=0o755, parents=True, exist_ok=True)
    descriptor = os.open(_NAMESPACE_DIRECTORY, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # two testbeds may start at once
        try:
            _mount(Path("none"), _NAMESPACE_DIRECTORY, _MS_SHARED | _MS_REC)
        except OSError as exc:
            if exc.errno != errno.EINVAL:
                raise
            # It is no mount point yet.
            _mount(_NAMESPACE_DIRECTORY, _NAMESPACE_DIRECTORY, _MS_BIND | _MS_REC)
            _mount(Path("none"), _NAMESPACE_DIRECTORY, _MS_SHARED | _MS_REC)
        yield
    finally:
        os.close(descriptor)


def _mount(source: Path, target: Path, flags: int) -> None:
    _check(_LIBC.mount(os.fsencode(source), os.fsencode(target), b"none", flags, None))


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _enter(name: str) -> None:
    try:
        descriptor = os.open(namespace_path(name), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError as exc:
        raise KernelError(f"network namespace {name} does not exist: has it been removed?") from exc
    try:
        if _LIBC.setns(descriptor, _CLONE_NEWNET) != 0:
            raise KernelError(
                f"cannot enter network namespace {name}: {os.strerror(ctypes.get_errno())}"
            )
    finally:
        os.close(descriptor)


def quieten(name: str) -> None:
    """Turn IPv6 and forwarding off in a namespace: its links then carry only hosts' own packets."""
    call_in_namespace(name, _turn_kernel_traffic_off)


def _turn_kernel_traffic_off() -> None:
    # /proc/sys/net belongs to the namespace of the thread that writes
    settings = {
        "ipv6/conf/all/disable_ipv6": "1",
        "ipv6/conf/default/disable_ipv6": "1",
        "ipv4/ip_forward": "0",
    }
    for key, value in settings.items():
        path = Path("/proc/sys/net") / key
        if path.exists():  # a kernel without IPv6 has nothing to turn off
            path.write_text(value)
