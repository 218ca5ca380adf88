# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Machines in one Ethernet network, as a user has them: namespaces with nothing set by us.

ARP, IPv6, offloads and sysctls are the kernel's defaults. All have the same file system; programs
of which a real machine has its own (sudo, scp, systemctl) are stand-ins.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import unit_runner
from clean_machine import SYSTEM_PATH, write_python
from unit_runner import CACHE

INTERFACE = "eth0"
STAND_INS = {
    "sudo": 'exec "$@"',
    "systemctl": f'exec {sys.executable} {unit_runner.__file__} "$@"',
    # scp [-r] SOURCE... ADDRESS:TARGET, into the home of whoever trains there
    "scp": """\
for target; do :; done
case "$target" in *:*) ;; *) exit 2;; esac
left=$#
for each; do shift; left=$((left - 1)); test $left = 0 || set -- "$@" "$each"; done
exec cp "$@" "$HOMES/${target%%:*}/${target#*:}"
""",
}
PROGRAMS = ("switchfold.controller", "switchfold.softswitch", "torch.distributed.run")
ALONE = """\
test ! -d /run/switchfold || mount -t tmpfs tmpfs /run/switchfold
test -z "$INSTALLED" || mount --rbind "$INSTALLED" /opt
exec sh -c "$1"
"""
"""Testbeds of this machine are not those of others: `ip netns exec` has its own mounts."""
NAMES = ("switchfold", "softswitch", "torchrun")
INSTALLED_PROGRAMS = "/opt/switchfold/bin"

_NUMBERS: Final = itertools.count()
"""Of the networks of this process."""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


class PlainLan:
    """A bridge, and a machine for each address, all with interface eth0."""

    def __init__(
        self,
        folder: Path,
        addresses: Sequence[str],
        *,
        is_bridged: bool = True,
        installed: Path | None = None,
        has_own_disks: bool = False,
    ) -> None:
        """`is_bridged`: one network; else all others are cabled to the first machine alone.

        `installed`: the folder that all machines have as /opt. There is nothing of ours then but
        what is installed in /opt/switchfold, and no variables but PATH, HOME and LANG.
        `has_own_disks`: each machine has a folder of its own in `installed` as /opt, and caches
        that are empty; else all have what this machine has compiled before.
        """
        self.folder = folder
        self.addresses = tuple(addresses)
        self._prefix = f"sfd{os.getpid()}x{next(_NUMBERS)}"
        self._is_bridged = is_bridged
        self._installed = installed
        self._has_own_disks = has_own_disks
        self._running: list[subprocess.Popen[str]] = []
        programs = folder / "bin"
        programs.mkdir()
        commands = dict(STAND_INS)
        if installed:
            write_python(programs)
        else:
            commands |= {
                name: f'exec {sys.executable} -m {module} "$@"'
                for name, module in zip(NAMES, PROGRAMS, strict=True)
            }
        for name, text in commands.items():
            (programs / name).write_text(f"#!/bin/sh\n{text}\n")
            (programs / name).chmod(0o755)

    def namespace(self, address: str) -> str:
        return f"{self._prefix}-{self.addresses.index(address)}"

    def home(self, address: str) -> Path:
        return self.folder / "homes" / address

    def opt(self, address: str) -> Path:
        """Return the folder that a machine has as /opt."""
        assert self._installed is not None
        return self._installed / address if self._has_own_disks else self._installed

    def __enter__(self) -> Self:
        for address in self.addresses:
            self.home(address).mkdir(parents=True)
            if self._has_own_disks:
                (self.home(address) / ".cache").mkdir()
                self.opt(address).mkdir()
            ip("netns", "add", self.namespace(address))
            ip("-n", self.namespace(address), "link", "set", "lo", "up")
        if self._is_bridged:
            lan = f"{self._prefix}-lan"
            ip("netns", "add", lan)
            ip("-n", lan, "link", "add", "br0", "type", "bridge")
            ip("-n", lan, "link", "set", "br0", "up")
            for number, address in enumerate(self.addresses):
                self._cable(address, lan, f"p{number}")
                ip("-n", lan, "link", "set", f"p{number}", "master", "br0")
        else:
            for number, address in enumerate(self.addresses[1:], 1):
                self._cable(address, self.namespace(self.addresses[0]), f"eno{number}")
        return self

    def _cable(self, address: str, far: str, far_name: str) -> None:
        near = self.namespace(address)
        ends = ("name", INTERFACE, "netns", near, "type", "veth", "peer", "name", far_name)
        ip("link", "add", *ends, "netns", far)
        ip("-n", far, "link", "set", far_name, "up")
        ip("-n", near, "link", "set", INTERFACE, "up")
        ip("-n", near, "addr", "add", f"{address}/24", "dev", INTERFACE)

    def start(self, address: str, command: str) -> subprocess.Popen[str]:
        """Start a command of a shell on a machine, in the home of its user."""
        process = subprocess.Popen(
            ["ip", "netns", "exec", self.namespace(address), "sh", "-c", ALONE, "sh", command],
            cwd=self.home(address),
            env=self.variables(address),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._running.append(process)
        return process

    def variables(self, address: str) -> dict[str, str]:
        """Return the environment of a machine's commands."""
        cache = self.home(address) / ".cache" if self._has_own_disks else CACHE
        return self._variables(address) | {
            "HOME": str(self.home(address)),
            "HOMES": str(self.folder / "homes"),
            "UNIT_RUNNER": str(self.folder / "units"),
            "XDG_CACHE_HOME": str(cache),  # what softswitch has compiled before
        }

    def _variables(self, address: str) -> dict[str, str]:
        if self._installed:
            path = f"{self.folder / 'bin'}:{INSTALLED_PROGRAMS}:{SYSTEM_PATH}"
            return {"PATH": path, "LANG": "C.UTF-8", "INSTALLED": str(self.opt(address))}
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SWITCHFOLD_", "PET_", "GLOO_", "SUDO_", "MASTER_"))
        }
        return kept | {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "INSTALLED": ""}

    def run(self, address: str, command: str, timeout_s: float = 240.0) -> str:
        """Run a command of a shell on a machine; return what it printed."""
        process = self.start(address, command)
        said, _ = process.communicate(timeout=timeout_s)
        assert process.returncode == 0, f"{command}: exit {process.returncode}\n{said}"
        return said

    def unit_process(self, unit: str) -> int:
        """Return the process of a unit that systemctl has started."""
        return int((self.folder / "units" / unit / "pid").read_text())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for process in self._running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        logs = unit_runner.stop_all(self.folder / "units")
        if error is not None:
            for name, log in logs.items():
                print(f"--- {name}\n{log}")
        lan = (f"{self._prefix}-lan",) if self._is_bridged else ()
        for name in (*map(self.namespace, self.addresses), *lan):
            if Path("/run/netns", name).exists():
                ip("netns", "delete", name)
        shutil.rmtree(self.folder, ignore_errors=True)
