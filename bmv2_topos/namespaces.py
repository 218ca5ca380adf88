# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Network namespaces: make, remove, identify them, and run a function inside one."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import pyroute2

from bmv2_topos.errors import KernelError, NameTakenError, PrivilegeError

_CLONE_NEWNET: Final = 0x40000000
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
    """Return the path of a named namespace; what is an absolute path already stays as it is."""
    return _NAMESPACE_DIRECTORY / name


def namespace_inode(name: str) -> int | None:
    """Return what identifies a namespace beyond its name, None when it does not exist."""
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
        _PYROUTE2.netns.create(name)
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
    try:
        _PYROUTE2.netns.remove(name)
    except OSError as exc:
        raise KernelError(f"cannot remove network namespace {name}: {exc}") from exc


def call_in_namespace(name: str, function: Callable[[], T]) -> T:
    """Run a function in a thread that has entered the namespace; the caller stays where it is."""
    results: list[T] = []
    failures: list[BaseException] = []

    def enter_and_call() -> None:
        try:
            _enter(name)
            results.append(function())
        except BaseException as exc:  # handed to the caller below
            failures.append(exc)

    thread = threading.Thread(target=enter_and_call, name=f"namespace-{name}")
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return results[0]


def call_with_route(name: str, function: Callable[[Any], T]) -> T:
    """Run a function with a pyroute2.IPRoute that acts inside the namespace.

    The socket is opened by a thread that has entered the namespace: pyroute2's own way forks.
    """

    def open_and_call() -> T:
        with _PYROUTE2.IPRoute() as route:
            return function(route)

    return call_in_namespace(name, open_and_call)


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
    """Leave nothing but hosts' own packets on the links of a namespace: IPv6 and forwarding off."""
    call_in_namespace(name, _turn_kernel_traffic_off)


def _turn_kernel_traffic_off() -> None:
    # /proc/sys/net is per namespace, that of the thread which writes
    settings = {
        "ipv6/conf/all/disable_ipv6": "1",
        "ipv6/conf/default/disable_ipv6": "1",
        "ipv4/ip_forward": "0",
    }
    for key, value in settings.items():
        path = Path("/proc/sys/net") / key
        if path.exists():  # a kernel without IPv6 has nothing to turn off
            path.write_text(value)
