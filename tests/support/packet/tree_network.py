# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Switches of a tree and their references, given the same packets; the test carries the frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from packet_frames import (
    CONGESTION_EXPERIENCED,
    DONT_FRAGMENT,
    ETHERTYPE_IPV4,
    Datagram,
    describe,
    ethernet,
    ipv4,
    udp,
)
from packet_target import Entry, Target
from slot_reference import (
    Destination,
    ReferenceSwitch,
)
from switchfold.hostlib.slots.wire import UDP_PORT, Outcome, datagram_dtype
from tree_fabric import (
    PARENT_PORT,
    Address,
    Child,
    Node,
    TreeEntry,
    TreeJob,
    switch_address,
    worker_address,
)

HEADERS_BYTES = 42
"""Ethernet, IPv4 and UDP."""
ECN_MASK, ECN_CAPABLE = 3, 2


@dataclass(frozen=True)
class Arrival:
    """A frame about to arrive: at a port of a switch, or at a worker."""

    frame: bytes
    node: int | None
    port: int = 0
    worker: int | None = None

    def datagram(self, values_per_packet: int) -> Datagram:
        """Return the datagram that the frame carries."""
        payload = self.frame[HEADERS_BYTES:]
        return np.frombuffer(payload, datagram_dtype(values_per_packet))[0].copy()

    def congested(self) -> Arrival:
        """Return the frame as a congested queue on its path leaves it."""
        frame = bytearray(self.frame)
        frame[15] |= CONGESTION_EXPERIENCED
        frame[24:26] = b"\0\0"
        total = sum(int.from_bytes(frame[at : at + 2], "big") for at in range(14, 34, 2))
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        frame[24:26] = (~total & 0xFFFF).to_bytes(2, "big")
        return Arrival(bytes(frame), self.node, self.port, self.worker)


def frame_between(source: Address, to: Address, datagram: Datagram, *, tos: int = 0) -> bytes:
    """Return the frame in which a worker or switch sends a datagram."""
    segment = udp(source.ipv4, to.ipv4, source.udp_port, to.udp_port, datagram.tobytes())
    packet = ipv4(
        source.ipv4,
        to.ipv4,
        segment,
        ttl=64,
        tos=tos,
        identification=0,
        fragment=DONT_FRAGMENT,
    )
    return ethernet(to.mac, source.mac, ETHERTYPE_IPV4) + packet


def sent_by_worker(
    job: TreeJob, worker: int, datagram: Datagram, *, source: Address | None = None
) -> Arrival:
    """Return a worker's packet as it reaches its switch."""
    node, child = job.tree.attachment(worker)
    source = source or worker_address(worker)
    frame = frame_between(source, switch_address(node.number), datagram, tos=ECN_CAPABLE)
    return Arrival(frame, node.number, child.port)


def _neighbour(node: Node, port: int) -> Child | int | None:
    """Return what is at a port: a child, or the parent's number."""
    if port == PARENT_PORT:
        return node.parent
    return next((child for child in node.children if child.port == port), None)


def _entry(entry: TreeEntry) -> Entry:
    return Entry(
        table=entry.table, match=dict(entry.match), action=entry.action, params=entry.params
    )


class TreeNetwork:
    """One target per switch number, each with its reference."""

    def __init__(self, targets: Sequence[Target], jobs: Sequence[TreeJob]) -> None:
        self.targets = targets
        self.values_per_packet = targets[0].values_per_packet
        self.references = [ReferenceSwitch(self.values_per_packet) for _ in targets]
        self._before = [target.counters("outcomes") for target in targets]
        self._jobs = jobs
        for job in jobs:
            for node in job.tree.nodes:
                targets[node.number].insert(*map(_entry, job.entries(node)))
                targets[node.number].set_multicast_group(job.job_id, job.replicas(node))
                self.references[node.number].jobs[job.job_id] = job.reference(node)

    def deliver(self, job: TreeJob, arrival: Arrival) -> tuple[Outcome, list[Arrival]]:
        """Send a frame into a switch and its reference; fail when what leaves differs."""
        assert arrival.node is not None
        node = job.tree.node(arrival.node)
        frame = arrival.frame
        datagram = arrival.datagram(self.values_per_packet)
        ecn = frame[15] & ECN_MASK
        outcome, reply = self.references[arrival.node].receive(
            arrival.port,
            int.from_bytes(frame[26:30], "big"),
            datagram,
            met_congestion=ecn == CONGESTION_EXPERIENCED,
        )
        expected: list[tuple[int, bytes]] = []
        if reply is not None:
            if ecn == CONGESTION_EXPERIENCED or reply.to is Destination.PARENT:
                ecn = ECN_CAPABLE
            tos = frame[15] & ~ECN_MASK | ecn
            source = Address(
                mac=int.from_bytes(frame[:6], "big"), ipv4=int.from_bytes(frame[30:34], "big")
            )
            expected = [
                (port, frame_between(source, to, reply.datagram, tos=tos))
                for port, to in self._receivers(node, arrival, reply.to)
            ]
        received = self.targets[arrival.node].exchange(arrival.port, frame)
        assert sorted(received) == sorted(expected), "\n".join(
            [f"switch {arrival.node} of {job}: reference says {outcome!r}"]
            + [f"  sent to port {arrival.port}: {describe(frame)}"]
            + [f"  expected {where}: {describe(what)}" for where, what in expected]
            + [f"  received {where}: {describe(what)}" for where, what in received]
        )
        return outcome, [self._arrival(node, port, what) for port, what in received]

    @staticmethod
    def _receivers(node: Node, arrival: Arrival, to: Destination) -> list[tuple[int, Address]]:
        if to in (Destination.CHILDREN, Destination.OTHERS):
            return [
                (child.port, child.address)
                for child in node.children
                if to is Destination.CHILDREN or child.port != arrival.port
            ]
        if to is Destination.PARENT:
            assert node.parent is not None
            return [(PARENT_PORT, switch_address(node.parent))]
        frame = arrival.frame
        sender = Address(
            mac=int.from_bytes(frame[6:12], "big"),
            ipv4=int.from_bytes(frame[26:30], "big"),
            udp_port=int.from_bytes(frame[34:36], "big"),
        )
        return [(arrival.port, sender)]

    @staticmethod
    def _arrival(node: Node, port: int, frame: bytes) -> Arrival:
        assert int.from_bytes(frame[34:36], "big") == UDP_PORT
        there = _neighbour(node, port)
        assert there is not None, f"a frame left switch {node.number} by port {port}"
        if isinstance(there, int):
            assert node.own is not None
            return Arrival(frame, there, node.own.port)
        if there.node is not None:
            return Arrival(frame, there.node, PARENT_PORT)
        return Arrival(frame, None, worker=there.workers[0])

    def check_counters(self) -> dict[Outcome, int]:
        """Compare every switch's outcome counters with its reference's; return their sums."""
        total = dict.fromkeys(Outcome, 0)
        for target, reference, before in zip(
            self.targets, self.references, self._before, strict=True
        ):
            after = target.counters("outcomes")
            counted = {outcome: after[outcome] - before[outcome] for outcome in Outcome}
            assert counted == reference.outcomes
            for outcome, count in counted.items():
                total[outcome] += count
        return total

    def close(self) -> None:
        """Take the jobs out of the switches."""
        for job in self._jobs:
            for node in job.tree.nodes:
                self.targets[node.number].delete(*map(_entry, job.entries(node)))
                self.targets[node.number].set_multicast_group(job.job_id, [])
