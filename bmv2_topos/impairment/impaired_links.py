# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Impairments of a testbed's links: which directions are meant, and the process that has them."""

from __future__ import annotations

import dataclasses
import fcntl
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...softswitch.switch.impairments import Impairments
from ..errors import ImpairmentError
from ..network.namespaces import namespace_inode
from ..network.network import cable_ends
from ..processes.processes import READY_FD, ProcessRecord, read_records
from ..state import Record
from ..topology.topology import Link, SwitchLink
from .relay import LinkDirection, remove_left
from .relay_process import ask

PROCESS: Final = "impair"
_MODULE: Final = "switchfold.bmv2_topos.impairment.relay_process"
_TIMEOUT_S: Final = 60.0
DROPS: Final = ("lost", "burst_lost", "script_lost", "overrun", "missed", "link_full", "refused")
"""Counters of packets that did not arrive, by cause."""


@dataclass(frozen=True, kw_only=True)
class ImpairedDirection:
    """One direction of an impaired link: what is set, and what became of its packets."""

    sender: str
    receiver: str
    settings: str
    counters: dict[str, int]
    """By name, as docs/operations.md lists them; from the time when it was first impaired."""

    @property
    def dropped(self) -> int:
        """Packets that did not arrive, whatever the cause."""
        return sum(self.counters[cause] for cause in DROPS)


@dataclass(frozen=True, kw_only=True)
class ImpairedLinks:
    """The links of a testbed in mode veth."""

    record: Record
    start: Callable[[str, Sequence[str]], object]
    """Starts a process of the testbed and waits until it is ready."""

    def impair(
        self, link: Link | SwitchLink, impairments: Impairments, *, sender: str | None
    ) -> None:
        """Set what both directions of a link do, or what one does to the frames of `sender`.

        Replaces what was set there. If it raises, nothing has changed. Raises ValueError for
        settings that make no sense here, ImpairmentError for all else.
        """
        self._check(link)
        own_rate = link.rate_bits_per_s
        if own_rate is not None and impairments.rate_bits_per_s > own_rate:
            raise ValueError(
                f"rate_bits_per_s={impairments.rate_bits_per_s:g} is more than the"
                f" {own_rate} bit/s of the link {'-'.join(link.ends)}, which stay: set less"
            )
        directions = self._directions(link, sender)
        with self._locked():
            if self._living() is None:
                self._clean()
                socket = str(self._socket)
                self.start(PROCESS, [sys.executable, "-m", _MODULE, socket, READY_FD])
            self._ask("impair", directions, settings=impairments.describe())

    def clear(
        self, link: Link | SwitchLink | None = None, *, sender: str | None = None
    ) -> list[ImpairedDirection]:
        """Take the impairments off a link or off all; return their last counters."""
        if link is not None:
            self._check(link)
        with self._locked():
            if self._living() is None:
                self._clean()
                return []
            return self._ask("clear", None if link is None else self._directions(link, sender))

    def show(self) -> list[ImpairedDirection]:
        """Return all impaired directions; ImpairmentError if what impaired them has been killed."""
        process = self._process()
        if process is None:
            return []
        if not process.is_leader_alive():
            raise ImpairmentError(
                f"the process {process.pid}, which impaired links of testbed {self.record.name},"
                " has been killed: they carry nothing until `switchfold testbed impair --clear`"
            )
        return self._ask("show")

    def _check(self, link: Link | SwitchLink) -> None:
        name = self.record.name
        if self.record.mode == "udp":
            raise ImpairmentError(
                f"testbed {name} is in mode udp: the link {'-'.join(link.ends)} is a pair of"
                " loopback ports, which nothing can impair while it runs. Use mode veth, or impair"
                " all links from the start with `testbed up --impair` (softswitch)"
            )
        for namespace, _, _ in cable_ends(self.record, link):
            if namespace_inode(namespace) != self.record.namespaces.get(namespace):
                raise ImpairmentError(
                    f"testbed {name} is not running: its namespace {namespace} is gone. Remove the"
                    f" rest with `switchfold testbed down --name {name}`, and make it again"
                )

    def _directions(self, link: Link | SwitchLink, sender: str | None) -> list[LinkDirection]:
        if sender not in {None, *link.ends}:
            raise ValueError(
                f"{sender} does not send on the link {'-'.join(link.ends)}; one of its ends does"
            )
        topology = self.record.topology
        number = [*topology.links, *topology.switch_links].index(link)
        return [
            LinkDirection(
                sender=ours,
                receiver=theirs,
                namespace=namespace,
                interface=interface,
                stream=2 * number + side,
            )
            for side, ((namespace, interface, _), ours, theirs) in enumerate(
                zip(cable_ends(self.record, link), link.ends, link.ends[::-1], strict=True)
            )
            if sender in {None, ours}
        ]

    def _clean(self) -> None:
        """Remove what a killed process has left."""
        if self._process() is None:
            return
        topology = self.record.topology
        for link in (*topology.links, *topology.switch_links):
            for direction in self._directions(link, None):
                remove_left(direction)
        (self.record.directory / f"{PROCESS}.pid").unlink()

    def _ask(
        self, verb: str, directions: list[LinkDirection] | None = None, **more: str
    ) -> list[ImpairedDirection]:
        named = None if directions is None else [dataclasses.asdict(each) for each in directions]
        request: dict[str, Any] = {"verb": verb, "directions": named, **more}
        shown = ask(self._socket, request, timeout_s=_TIMEOUT_S)
        return [ImpairedDirection(**each) for each in shown]

    def _process(self) -> ProcessRecord | None:
        found = [each for each in read_records(self.record.directory) if each.name == PROCESS]
        return found[0] if found else None

    def _living(self) -> ProcessRecord | None:
        process = self._process()
        return process if process is not None and process.is_leader_alive() else None

    @property
    def _socket(self) -> Path:
        return self.record.directory / f"{PROCESS}.sock"

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Let one process at a time change impairments."""
        with (self.record.directory / f"{PROCESS}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
