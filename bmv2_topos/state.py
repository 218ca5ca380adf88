# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The record of a testbed: everything it made, noted before it is made, so that nothing can leak.

One directory per testbed holds `testbed.json`, a pid file and a log per process, sockets and the
controller's files. Any process that finds a record whose owner is dead may clean up after it. It
removes only what the record names: a namespace only if its inode is the one noted, a process only
if its start time is.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
import re
import shutil
import tempfile
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from .config import records_directory
from .errors import (
    RecordVersionError,
    TestbedBusyError,
    TestbedError,
    TestbedNotFoundError,
)
from .network.namespaces import namespace_inode, remove_namespace
from .processes.launcher import start_time_of
from .processes.processes import is_alive, read_records
from .topology.topology import Host, Link, Switch, SwitchLink, Topology

_LOGGER = logging.getLogger(__name__)
_FILE: Final = "testbed.json"
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,23}")
_PARTIAL_PREFIX: Final = ".partial-"


@dataclass(kw_only=True)
class Record:
    """What a testbed made and who owns it."""

    directory: Path
    topology: Topology
    target: str
    mode: str
    variant: str
    owner_pid: int | None
    """Process that must clean up; None once a testbed has been left up on its own."""
    owner_start_time: int
    namespaces: dict[str, int | None] = field(default_factory=dict[str, int | None])
    """Inode by name; None while it is being made."""
    udp_ports: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """Loopback ports by link name, in mode udp: switch's and host's, or those of `a` and `b`."""
    shaper: str | None = None
    shaping: str = "links"
    impairments: str = ""
    has_offloads: bool = False
    switch_options: list[str] = field(default_factory=list[str])
    """Options on every switch's command line; a restarted switch gets the same."""
    controller_options: list[str] = field(default_factory=list[str])
    """Options on the controller's command line; a restarted controller gets the same."""
    cut_links: list[str] = field(default_factory=list[str])
    own_program: str = ""
    """Path of the BMv2 JSON that the switches run; "": that of the variant."""
    own_entries: str = ""
    """File or folder of the entries that switches start with."""

    @property
    def name(self) -> str:
        """The testbed's name."""
        return self.directory.name

    def save(self) -> None:
        """Write the record, whole or not at all."""
        content = dataclasses.asdict(self)
        del content["directory"]
        partial = self.directory / f"{_FILE}.partial"
        partial.write_text(json.dumps(content, indent=1))
        partial.rename(self.directory / _FILE)

    def is_owner_alive(self) -> bool:
        """Tell whether the process that must clean up still lives."""
        return self.owner_pid is not None and is_alive(self.owner_pid, self.owner_start_time)

    def is_running(self) -> bool:
        """Tell whether any process of the testbed still lives."""
        return any(process.living() for process in read_records(self.directory))

    def remove(self) -> None:
        """Stop every process, remove every namespace with its links, then the record itself.

        Switches come last and all at once: there may be many.
        """
        switches = {switch.name for switch in self.topology.switches}
        processes = read_records(self.directory)
        for process in processes:
            if process.name not in switches:
                process.stop()
        for process in processes:
            process.terminate()
        for process in processes:
            process.stop()
        for name, inode in self.namespaces.items():
            if inode is None or namespace_inode(name) == inode:
                remove_namespace(name)
        with contextlib.suppress(FileNotFoundError):  # another sweep was faster
            shutil.rmtree(self.directory)


def create_record(name: str, topology: Topology, *, target: str, mode: str, variant: str) -> Record:
    """Reserve a testbed's name for this process; what a dead owner left under it is removed first.

    Raises TestbedBusyError when a live process owns it or it has been left up.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"testbed name {name!r} must be 1 to 24 lower-case letters, digits and dashes"
        )
    root = _checked_root()
    sweep()
    if (root / name).exists():
        found = load_record(name)
        if found.is_owner_alive():
            raise TestbedBusyError(
                f"testbed {name} belongs to the live process {found.owner_pid}: choose another "
                "--name or end that process"
            )
        if found.owner_pid is None and found.is_running():
            raise TestbedBusyError(
                f"testbed {name} is up: `switchfold testbed down --name {name}` ends it"
            )
        found.remove()
    partial = Path(tempfile.mkdtemp(prefix=f"{_PARTIAL_PREFIX}{os.getpid()}-", dir=root))
    record = Record(
        directory=partial,
        topology=topology,
        target=target,
        mode=mode,
        variant=variant,
        owner_pid=os.getpid(),
        owner_start_time=start_time_of(os.getpid()),
    )
    record.save()
    try:
        partial.rename(root / name)  # fails if another process was faster: its folder has files
    except OSError as exc:
        shutil.rmtree(partial)
        raise TestbedBusyError(f"testbed {name} has just been taken by another process") from exc
    record.directory = root / name
    return record


def load_record(name: str) -> Record:
    """Read the record of a testbed; raises TestbedNotFoundError or RecordVersionError."""
    directory = records_directory() / name
    try:
        content: dict[str, Any] = json.loads((directory / _FILE).read_text())
    except FileNotFoundError as exc:
        known = ", ".join(record_names()) or "none"
        raise TestbedNotFoundError(
            f"no testbed {name} in {records_directory()} (known: {known})"
        ) from exc
    known = {each.name for each in fields(Record)} - {"directory"}
    required = {
        each.name
        for each in fields(Record)
        if each.default is MISSING and each.default_factory is MISSING
    } - {"directory"}
    if not required <= content.keys() <= known:
        raise RecordVersionError(
            f"testbed {name} was made by another version of Switchfold, whose record in "
            f"{directory} differs in {sorted(content.keys() ^ known)}: end it with that version"
        )
    nodes = content["topology"]
    content["topology"] = Topology(
        hosts=tuple(Host(**host) for host in nodes["hosts"]),
        switches=tuple(Switch(**switch) for switch in nodes["switches"]),
        links=tuple(Link(**link) for link in nodes["links"]),
        switch_links=tuple(SwitchLink(**link) for link in nodes["switch_links"]),
    )
    content["udp_ports"] = {link: tuple(ports) for link, ports in content["udp_ports"].items()}
    return Record(directory=directory, **content)


def record_names() -> list[str]:
    """Return the names of all recorded testbeds of this user."""
    root = records_directory()
    if not root.is_dir():
        return []
    return sorted(
        path.name for path in root.iterdir() if (path / _FILE).exists() and not _partial(path)
    )


def sweep() -> list[str]:
    """Clean up after every testbed whose owner has died; return their names."""
    swept: list[str] = []
    for name in record_names():
        try:
            record = load_record(name)
        except TestbedNotFoundError:  # its owner has just removed it
            continue
        except RecordVersionError as exc:
            _LOGGER.warning("cannot clean up: %s", exc)
            continue
        if record.owner_pid is not None and not record.is_owner_alive():
            record.remove()
            swept.append(name)
    for path in records_directory().glob(f"{_PARTIAL_PREFIX}*"):
        if not Path(f"/proc/{path.name.split('-')[1]}").exists():
            with contextlib.suppress(FileNotFoundError):  # another sweep was faster
                shutil.rmtree(path)
    return swept


def _partial(path: Path) -> bool:
    return path.name.startswith(_PARTIAL_PREFIX)


def _checked_root() -> Path:
    root = records_directory()
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = root.lstat()
    if status.st_uid != os.geteuid() or root.is_symlink():
        raise TestbedError(f"{root} belongs to another user; remove it or set XDG_RUNTIME_DIR")
    return root
