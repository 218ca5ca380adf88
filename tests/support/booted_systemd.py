# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A real systemd, as the first process of a machine of `PlainLan`; needs root.

It has namespaces of its own (processes, mounts, cgroups, the machine's network) and what
boot_systemd.sh makes: the same files, of which it can change none. With its first process all
others end, and so do its mounts; its cgroups are removed. `systemctl` on that machine is its own.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from plain_lan import PlainLan
from time_bound import wait_until

CHECKOUT: Final = Path(__file__).resolve().parents[2]
BOOT: Final = Path(__file__).with_name("boot_systemd.sh")
MANAGERS: Final = (Path("/usr/lib/systemd/systemd"), Path("/lib/systemd/systemd"))
PROGRAMS: Final = ("systemctl", "journalctl", "unshare", "nsenter", "setpriv", "ip")
NAMESPACES: Final = ("--fork", "--pid", "--mount", "--uts", "--ipc", "--mount-proc")
LEAST_VERSION: Final = 250
"""The first that shows credentials to units by `%d`."""
BOOT_S: Final = 120.0
TEMPORARY: Final = ("/tmp", "/var/tmp")
"""Folders of which each unit has its own."""


def own_cgroup() -> Path | None:
    """Return the folder of this process's group of cgroup2; None: that is not mounted."""
    for line in Path("/proc/self/mountinfo").read_text("ascii").splitlines():
        mounted, _, system = line.partition(" - ")
        if system.split()[0] == "cgroup2":
            root, point = mounted.split()[3:5]
            groups = Path("/proc/self/cgroup").read_text("ascii").splitlines()
            own = next(group[len("0::") :] for group in groups if group.startswith("0::"))
            return Path(point) / os.path.relpath(own, root)
    return None


def obstacle() -> str:
    """Return why no systemd can be booted here; "": it can."""
    if os.geteuid() != 0:
        return "needs root: namespaces of processes, mounts and cgroups"
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing or not any(manager.exists() for manager in MANAGERS):
        return f"there is no {', '.join(missing or ['systemd'])}: apt-get install systemd"
    version = subprocess.check_output(["systemctl", "--version"], text=True).split()[1]
    if int(version) < LEAST_VERSION:
        return f"systemd {version} is older than {LEAST_VERSION}"
    group = own_cgroup()
    if group is None:
        return "no hierarchy of cgroup2 is mounted"
    return _obstacle_to_namespaces(group)


def _obstacle_to_namespaces(group: Path) -> str:
    if not os.access(group, os.W_OK):
        return f"{group} cannot be written: systemd could make no cgroups"
    tried = subprocess.run(
        ["unshare", *NAMESPACES, "--cgroup", "sh", "-c", "mount -t cgroup2 cgroup2 /sys/fs/cgroup"],
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if tried.returncode == 0 else f"no namespaces: {tried.stderr.strip()}"


class BootedSystemd:
    """systemd on one machine of a network, from its boot until it is killed."""

    def __init__(self, lan: PlainLan, address: str) -> None:
        self.lan = lan
        self._address = address
        self._console = lan.folder / "console.log"
        self._said = lan.folder / "boot.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._first = 0
        """The first process of the machine, as this one knows it; 0: there is none yet."""

    def __enter__(self) -> Self:
        parent = own_cgroup()
        assert parent is not None
        self.group = parent / f"switchfold-{self.lan.namespace(self._address)}"
        self.group.mkdir()
        try:
            self._boot()
            wait_until(self._has_begun, self._why_not, BOOT_S)
            wait_until(self._is_running, self._why_not, BOOT_S, interval_s=0.1)
        except BaseException:
            self._end()
            raise
        self._namespace = os.readlink(f"/proc/{self._first}/ns/pid")
        self._show_program()
        theirs = " ".join(self._inside(str(shutil.which("systemctl"))))
        text = f'#!/bin/sh\nexec {theirs} "$@"\n'
        (self.lan.folder / "bin" / "systemctl").write_text(text, "utf-8")
        return self

    def _boot(self) -> None:
        manager = next(each for each in MANAGERS if each.exists())
        reading, self._writing = os.openpty()
        console = os.ttyname(self._writing)
        # systemd and its machine end with this process, however that ends.
        command = (
            f"exec 9>{self.group}/cgroup.procs && exec setpriv --pdeathsig KILL ip netns exec"
            f" {self.lan.namespace(self._address)} unshare --kill-child {' '.join(NAMESPACES)}"
            ' sh "$@"'
        )
        seen = sorted({str(self.lan.folder), *_of_the_program()})
        with self._said.open("wb") as said, self._console.open("wb") as log:
            self._reader = subprocess.Popen(
                ["cat"], stdin=reading, stdout=log, stderr=subprocess.DEVNULL
            )
            os.close(reading)
            self._process = subprocess.Popen(
                ["sh", "-c", command, "sh", str(BOOT), "boot", str(manager), console, *seen],
                env=os.environ | {"SERVICE_ENVIRONMENT": _service_environment()},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _lives(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _has_begun(self) -> bool:
        """Look whether the first process has become systemd."""
        assert self._process is not None
        assert self._lives(), self._why_not()
        if self._first == 0:
            self._first = _only_child(self._process.pid)
        return self._first != 0 and Path(f"/proc/{self._first}/comm").read_text() == "systemd\n"

    def _is_running(self) -> bool:
        assert self._lives(), self._why_not()
        return self._call("systemctl", "is-system-running").stdout == "running\n"

    def _why_not(self) -> str:
        logs = "\n".join(path.read_text() for path in (self._said, self._console))
        if self._first and self._lives():
            for words in (("is-system-running",), ("list-units", "--failed"), ("list-jobs",)):
                done = self._call("systemctl", *words)
                logs += f"\n{done.stdout}{done.stderr}"
        return f"systemd does not run:\n{logs}"

    def _inside(self, *words: str) -> list[str]:
        places = ("--mount", "--pid", "--uts", "--ipc", "--net")
        return ["nsenter", "--target", str(self._first), *places, "--", *words]

    def _call(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self._inside(*words), capture_output=True, text=True, check=False)

    def run(self, *words: str, fails: bool = False) -> str:
        """Return what a command inside prints; `fails`: whether its exit code is not 0."""
        done = self._call(*words)
        assert (done.returncode != 0) == fails, f"{words}: {done.returncode}\n{done}"
        return done.stdout + done.stderr

    def systemctl(self, *words: str, fails: bool = False) -> str:
        return self.run("systemctl", *words, fails=fails)

    def show(self, unit: str, name: str) -> str:
        """Return a property of a unit."""
        return self.systemctl("show", unit, f"--property={name}", "--value").rstrip("\n")

    def journal(self, unit: str) -> str:
        """Return what a unit, and systemd about it, have said so far."""
        return self.run("journalctl", "--unit", unit, "--output", "cat", "--no-pager", "--quiet")

    def await_state(self, unit: str, limit_s: float = 240.0, /, **properties: str) -> None:
        """Wait until a unit has these properties."""

        def is_so() -> bool:
            return all(self.show(unit, name) == value for name, value in properties.items())

        def what() -> str:
            return f"{unit} {properties}\n{self.systemctl('show', unit)}\n{self.journal(unit)}"

        wait_until(is_so, what, limit_s, interval_s=0.1)

    def drop_in(self, unit: str, text: str) -> None:
        """Change a unit for as long as this systemd runs; "": take the changes back."""
        folder = Path(f"/run/systemd/system/{unit}.d")
        write = f"mkdir -p {folder} && cat >{folder}/test.conf"
        subprocess.run(self._inside("sh", "-c", write), input=text, text=True, check=True)
        self.systemctl("daemon-reload")

    def _show_program(self) -> None:
        """Show our units the package and its Python, if these are in /tmp: theirs is empty."""
        hidden = [place for place in sorted(_of_the_program()) if _is_below(place, TEMPORARY)]
        if hidden:
            folder = "/run/systemd/system/switchfold-.service.d"
            text = f"[Service]\nBindReadOnlyPaths={' '.join(hidden)}\n"
            write = f"mkdir -p {folder} && cat >{folder}/program.conf"
            subprocess.run(self._inside("sh", "-c", write), input=text, text=True, check=True)

    def processes(self) -> list[int]:
        """Return the processes of the machine, as this one knows them."""
        found: list[int] = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                with contextlib.suppress(FileNotFoundError, PermissionError):  # it ended; not ours
                    if os.readlink(entry / "ns" / "pid") == self._namespace:
                        found.append(int(entry.name))
        return found

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            print(self._call("journalctl", "--output", "short-monotonic", "--no-pager").stdout)
        self._end()

    def _end(self) -> None:
        if self._process is not None:
            if self._first and self._lives():
                os.kill(self._first, signal.SIGKILL)  # the kernel ends all others with it
            elif self._lives():
                self._process.kill()
            self._process.wait()
            os.close(self._writing)
            self._reader.wait()
        for folder, _, _ in os.walk(self.group, topdown=False):
            os.rmdir(folder)


def _only_child(process: int) -> int:
    """Return the child of a process; 0: it has none yet."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
        if int(fields[1]) == process:
            return int(entry.name)
    return 0


def _of_the_program() -> set[str]:
    """Return the folders of this package and its Python, which may be in somebody's home."""
    places = {CHECKOUT, Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve()}
    return {str(place) for place in places if not place.is_relative_to("/usr")}


def _is_below(place: str, folders: Sequence[str]) -> bool:
    return any(Path(place).is_relative_to(folder) for folder in folders)


def _service_environment(variables: Mapping[str, str] = os.environ) -> str:
    """Return variables that units inherit: where this process has found the package."""
    path = variables.get("PYTHONPATH", "")
    return f'"PYTHONPATH={path}"' if path else ""
