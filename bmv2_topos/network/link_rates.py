# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Rates of a running testbed's links that differ from those of its topology.

Nobody in the testbed is told: the controller's file keeps the rates of the topology.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from ..errors import LinkRateError, TestbedError
from ..state import Record
from ..topology.topology import Link, SwitchLink
from .links import reshape
from .namespaces import namespace_inode
from .network import cable_ends

LEAST_RATE_BITS_PER_S: Final = 1_000_000
"""Slower shapers send single frames late."""
_FILE: Final = "rates.json"


@dataclass(frozen=True, kw_only=True)
class ShapedEnd:
    """What one node of a link sends, and how fast."""

    sender: str
    receiver: str
    namespace: str
    interface: str
    rate_bits_per_s: int | None
    """Over Ethernet frames without preamble and FCS, as in a topology; None: unshaped."""


@dataclass(frozen=True, kw_only=True)
class LinkRates:
    """The links of a testbed in mode veth whose rates the kernel limits."""

    record: Record

    def set(
        self, link: Link | SwitchLink, rate_bits_per_s: int | None, *, sender: str | None = None
    ) -> None:
        """Give both directions of a link a rate, or the one of `sender`; None: unshaped.

        It holds at once, and until it is changed again. What waits in a queue stays there. If it
        raises, nothing has changed. Raises ValueError for a rate below 1 Mbit/s and for wrong
        names, LinkRateError and KernelError for all else.
        """
        if rate_bits_per_s is not None and rate_bits_per_s < LEAST_RATE_BITS_PER_S:
            raise ValueError(
                f"a rate of {rate_bits_per_s} bit/s for the link {'-'.join(link.ends)}; the"
                f" shapers need at least {LEAST_RATE_BITS_PER_S}, or 0 for no shaping"
            )
        if sender not in {None, *link.ends}:
            raise ValueError(
                f"{sender} does not send on the link {'-'.join(link.ends)}; one of its ends does"
            )
        self._check(link)
        with self._locked():
            chosen = [end for end in self.ends(link) if sender in {None, end.sender}]
            self._reshape(chosen, dict.fromkeys((end.interface for end in chosen), rate_bits_per_s))

    def restore(self, link: Link | SwitchLink | None = None) -> list[ShapedEnd]:
        """Give a link, or all, the rates of the topology again; return which ends had others."""
        topology = self.record.topology
        links = (*topology.links, *topology.switch_links) if link is None else (link,)
        restored: list[ShapedEnd] = []
        with self._locked():
            changed = self.changed()
            for each in links:
                own = {interface: rate for _, interface, rate in cable_ends(self.record, each)}
                ends = [end for end in self.ends(each) if end.interface in changed]
                if ends:
                    self._check(each)
                    self._reshape(ends, own)
                    restored += ends
        return restored

    def ends(self, link: Link | SwitchLink) -> list[ShapedEnd]:
        """Return both directions of a link with their present rates."""
        changed = self.changed()
        return [
            ShapedEnd(
                sender=ours,
                receiver=theirs,
                namespace=namespace,
                interface=interface,
                rate_bits_per_s=changed.get(interface, rate),
            )
            for (namespace, interface, rate), ours, theirs in zip(
                cable_ends(self.record, link), link.ends, link.ends[::-1], strict=True
            )
        ]

    def changed(self) -> dict[str, int | None]:
        """Return the rates that differ from the topology's, by the sender's interface."""
        try:
            return json.loads((self.record.directory / _FILE).read_text())
        except FileNotFoundError:
            return {}

    def _reshape(self, ends: list[ShapedEnd], rates: Mapping[str, int | None]) -> None:
        """Note rates, then give them to the kernel; take back both if that fails."""
        before = self.changed()
        own = {
            interface: rate
            for link in (*self.record.topology.links, *self.record.topology.switch_links)
            for _, interface, rate in cable_ends(self.record, link)
        }
        wanted = before | {end.interface: rates[end.interface] for end in ends}
        self._note({name: rate for name, rate in wanted.items() if rate != own[name]})
        done: list[ShapedEnd] = []
        try:
            for end in ends:
                done.append(end)
                reshape(end.interface, rates[end.interface], namespace=end.namespace)
        except TestbedError:
            self._note(before)
            for end in done:
                reshape(end.interface, end.rate_bits_per_s, namespace=end.namespace)
            raise

    def _note(self, changed: Mapping[str, int | None]) -> None:
        partial = self.record.directory / f"{_FILE}.partial"
        partial.write_text(json.dumps(changed))
        partial.rename(self.record.directory / _FILE)

    def _check(self, link: Link | SwitchLink) -> None:
        name, ends = self.record.name, "-".join(link.ends)
        if self.record.mode == "udp":
            raise LinkRateError(
                f"testbed {name} is in mode udp: its link {ends} has no shaper. Use mode veth"
            )
        if self.record.shaping != "links":
            raise LinkRateError(
                f"testbed {name} is shaped by its switches, whose rates are those of their command"
                f" lines: the rate of {ends} cannot change while it runs. Use --shaping links"
            )
        for namespace, _, _ in cable_ends(self.record, link):
            if namespace_inode(namespace) != self.record.namespaces.get(namespace):
                raise LinkRateError(
                    f"testbed {name} is not running: its namespace {namespace} is gone. Remove the"
                    f" rest with `switchfold testbed down --name {name}`, and make it again"
                )

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Let one process at a time change rates."""
        with (self.record.directory / "rates.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
