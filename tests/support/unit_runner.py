# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a test has in systemd's place: starts units, waits until they are ready, stops them.

As `systemctl enable --now FILE...` it starts each unit as the file says, with its credentials in a
folder of its own (%d), its state and cache (%S, %C), its capabilities and no others, and a socket
for sd_notify. It takes the options that units of a deployment have, and no others. It starts
nothing again; `booted_systemd` has the real one, where that can be booted.
"""

from __future__ import annotations

import configparser
import contextlib
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

START_S = 240.0
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
IGNORED = {  # what a test's processes cannot be given, or need not
    "DynamicUser", "Restart", "RestartSec", "RestartPreventExitStatus", "TimeoutStartSec",
    "LimitNOFILE", "NotifyAccess",
    "StateDirectoryMode", "NoNewPrivileges", "LockPersonality", "UMask", "AmbientCapabilities",
    "SystemCallFilter", "SystemCallArchitectures", "RestrictAddressFamilies",
}  # fmt: skip
PROTECTIONS = ("Protect", "Private", "Restrict")


class UnitFile(dict[str, list[str]]):
    """The options of a unit's [Service], each with all of its values."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.name = path.name
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        parser.read_string(path.read_text())
        assert parser.sections() == ["Unit", "Service", "Install"]
        self.after = parser["Unit"]["After"].split()
        section = path.read_text().partition("[Service]\n")[2].partition("\n[")[0]
        for line in section.strip().splitlines():
            option, _, value = line.partition("=")
            self.setdefault(option, []).append(value)

    def one(self, option: str, default: str = "") -> str:
        (value,) = self.get(option, [default])
        return value


class RunningUnit:
    """A unit's process, ready."""

    def __init__(self, unit: UnitFile, root: Path) -> None:
        self.root = root / unit.name
        folders = {"%d": self.root / "credentials", "%S": root / "state", "%C": root / "cache"}
        folders["%d"].mkdir(parents=True)
        for entry in unit.get("LoadCredential", ()):
            name, _, source = entry.partition(":")
            shutil.copy(source, folders["%d"] / name)
            (folders["%d"] / name).chmod(0o400)
        if "StateDirectory" in unit:
            (folders["%S"] / unit.one("StateDirectory")).mkdir(parents=True, exist_ok=True)
        if "CacheDirectory" in unit:  # what this user has compiled need not be compiled again
            folders["%C"].mkdir(exist_ok=True)
            (folders["%C"] / unit.one("CacheDirectory")).symlink_to(CACHE)

        def meant(text: str) -> str:
            for specifier, folder in folders.items():
                text = text.replace(specifier, str(folder))
            return text

        variables = dict(meant(text).split("=", 1) for text in unit.get("Environment", ()))
        notify = self.root / "notify"
        limit_us = int(unit.one("WatchdogSec")) * 1_000_000
        variables |= {"NOTIFY_SOCKET": str(notify), "WATCHDOG_USEC": str(limit_us)}
        known = {
            "Type", "ExecStart", "LoadCredential", "StateDirectory", "CacheDirectory",
            "Environment", "WatchdogSec", "CapabilityBoundingSet",
        }  # fmt: skip
        unknown = unit.keys() - known - IGNORED
        unknown = {option for option in unknown if not option.startswith(PROTECTIONS)}
        assert not unknown, f"{unit.name}: this stand-in does not know {unknown}"
        assert unit.one("Type") == "notify"
        capabilities = unit.one("CapabilityBoundingSet").lower().replace("cap_", "").split()
        bounds = ",".join(("-all", *(f"+{name}" for name in capabilities)))
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.settimeout(1.0)
            manager.bind(str(notify))
            with (self.root / "log").open("wb") as log:
                self.process = subprocess.Popen(
                    ["setpriv", f"--bounding-set={bounds}", f"--inh-caps={bounds}",
                     *shlex.split(meant(unit.one("ExecStart")))],
                    env=os.environ | variables,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )  # fmt: skip
            (self.root / "pid").write_text(str(self.process.pid))
            self._await_ready(manager)

    def _await_ready(self, manager: socket.socket) -> None:
        end_s = time.monotonic() + START_S
        while self.process.poll() is None and time.monotonic() < end_s:
            with contextlib.suppress(TimeoutError):
                if manager.recv(4096).startswith(b"READY=1"):
                    return
        sys.exit(f"{self.root.name} is not ready:\n{(self.root / 'log').read_text()}")


def start(paths: list[Path], root: Path) -> list[RunningUnit]:
    """Start units, each after those that it names in After."""
    units = {path.name: UnitFile(path) for path in paths}
    order = sorted(units.values(), key=lambda unit: sum(name in units for name in unit.after))
    return [RunningUnit(unit, root) for unit in order]


def stop_all(root: Path) -> dict[str, str]:
    """End all processes that were started below `root`; return their logs by unit."""
    for record in root.glob("*/pid"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(record.read_text()), signal.SIGKILL)
    return {path.parent.name: path.read_text() for path in root.glob("*/log")}


def main() -> None:
    """Be `systemctl enable --now FILE...`; UNIT_RUNNER names the folder for what runs."""
    verb, option, *files = sys.argv[1:]
    if sys.argv[1:] == ["--version"]:
        return
    assert (verb, option) == ("enable", "--now"), sys.argv
    root = Path(os.environ["UNIT_RUNNER"])
    root.mkdir(exist_ok=True)
    start([Path(file) for file in files], root)


if __name__ == "__main__":
    main()
