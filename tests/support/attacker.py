# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames of an attacker on a host that is a lawful worker of another job."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from packet_frames import Datagram, change, ethernet, ipv4, udp
from switchfold.bmv2_topos.topology.topology import Host, Switch
from switchfold.controller.tables.outcome import OrdinaryOutcome
from switchfold.hostlib.config import TUNNEL_WORKER_UDP_PORT
from switchfold.hostlib.control.view import JobView
from switchfold.hostlib.slots.wire import (
    HEADER_BYTES,
    UDP_PORT,
    WIRE_VERSION,
    Operation,
    Outcome,
    datagram_dtype,
)

LAYERS_BYTES = 14 + 20 + 8
ETHERTYPE_IPV4 = 0x0800
FORGED = 666
NO_JOB = 0xFFF0
NOBODYS_PORT = 40000


@dataclass(frozen=True)
class Station:
    """What a frame says about one of its ends."""

    mac: int
    address: int
    udp_port: int = UDP_PORT

    @classmethod
    def of(cls, node: Host | Switch) -> Station:
        port = UDP_PORT if isinstance(node, Switch) else TUNNEL_WORKER_UDP_PORT
        mac = int(node.mac.replace(":", ""), 16)
        return cls(mac, int(ipaddress.IPv4Address(node.address)), port)


@dataclass(frozen=True)
class Attack:
    """A frame, and the outcome and job for which the attacker's own switch must count it."""

    name: str
    frame: bytes
    cause: Outcome | OrdinaryOutcome
    job: str = ""
    """Empty if the frame belongs to no job: then only the switch as a whole counts it."""


def make_frame(
    sender: Station, receiver: Station, datagram: Datagram | bytes, **fields: Any
) -> bytes:
    payload = datagram if isinstance(datagram, bytes) else datagram.tobytes()
    ip_fields = {key: fields.pop(key) for key in ("options", "fragment") if key in fields}
    addresses = sender.address, receiver.address
    segment = udp(*addresses, sender.udp_port, receiver.udp_port, payload, **fields)
    packet = ipv4(*addresses, segment, **ip_fields)
    return ethernet(receiver.mac, sender.mac, ETHERTYPE_IPV4) + packet


def datagram_of(frame: bytes) -> Datagram:
    """Return the Switchfold packet in a captured frame."""
    payload = frame[LAYERS_BYTES:]
    values = (len(payload) - HEADER_BYTES) // 4
    return np.frombuffer(payload, datagram_dtype(values))[0].copy()


@dataclass(frozen=True)
class JobKnowledge:
    """What a worker knows of its own job."""

    job: str
    view: JobView
    slot_base: int

    def packet(self, **fields: int) -> Datagram:
        """Return a contribution that is lawful except for these fields."""
        datagram = np.zeros((), datagram_dtype(self.view.values_per_packet))
        lawful = {
            "version": WIRE_VERSION,
            "operation": Operation.AGGREGATE_ADD,
            "job_id": self.view.trees[0].tree_id,
            "worker_id": self.view.child_id,
            "generation": self.view.generation,
            "round": 1,
            "range_end": self.view.values_per_packet,
            "worker_bitmap": self.view.worker_bitmap,
            "num_contributors": 1,
        }
        for name, value in (lawful | fields).items():
            datagram["header"][name] = value
        return datagram


@dataclass(frozen=True)
class Attacker:
    """An attacker that knows everything: the victim's packets, addresses, tables."""

    host: Station
    leaf: Station
    spine: Station
    other_leaf: Station
    own: JobKnowledge
    victim: JobKnowledge

    def attacks(
        self, captured: Sequence[bytes], results: Sequence[bytes], victims: Sequence[Station]
    ) -> Iterator[Attack]:
        """Yield all attacks; a victim has sent `captured` and received `results` at its port."""
        for destination in (self.leaf, self.spine):
            yield from self._impostures(destination, datagram_of(captured[-1]), victims)
            yield from self._answers(destination, datagram_of(captured[-1]))
            yield from self._excesses(destination)
            yield from self._damages(destination, datagram_of(captured[-1]), victims[0])
        for frame in captured:
            yield Attack("replay", frame, Outcome.FOREIGN_WORKER, self.victim.job)
        for frame in results:
            yield Attack("replayed result", frame, OrdinaryOutcome.SPOOFED)
        for victim in victims:
            yield from self._forged_results(victim, datagram_of(captured[-1]))

    def _impostures(
        self, to: Station, packet: Datagram, victims: Sequence[Station]
    ) -> Iterator[Attack]:
        """Contributions, flushes and probes in another worker's name."""
        job, foreign = self.victim.job, Outcome.FOREIGN_WORKER
        unknown = change(packet, FORGED, job_id=NO_JOB)
        yield Attack("foreign job", make_frame(self.host, to, unknown), Outcome.FOREIGN_JOB)
        forged = change(packet, FORGED)
        senders = (self.host, *victims, self.leaf, self.spine, self.other_leaf)
        for sender in senders:
            yield Attack("foreign worker", make_frame(sender, to, forged), foreign, job)
        for operation in (Operation.FLUSH, Operation.PROBE, Operation.MULTICAST):
            asked = change(forged, operation=operation)
            for sender in (self.host, victims[0]):
                yield Attack(operation.name, make_frame(sender, to, asked), foreign, job)
        for worker_id in range(4):
            claimed = change(forged, worker_id=worker_id, worker_bitmap=1 << worker_id)
            yield Attack("other worker", make_frame(self.host, to, claimed), foreign, job)
        mine = self.own.packet(worker_id=self.own.view.child_id + 1, worker_bitmap=0b11)
        yield Attack("mate", make_frame(self.host, to, mine), foreign, self.own.job)
        for sender in (self.leaf, self.spine, self.other_leaf):
            as_switch = make_frame(sender, to, self.own.packet())
            yield Attack("as a switch", as_switch, foreign, self.own.job)

    def _answers(self, to: Station, packet: Datagram) -> Iterator[Attack]:
        """Results and notices for switches."""
        for operation in (Operation.RESULT, Operation.NOTICE):
            everybody = {"worker_bitmap": 0xF, "num_contributors": 4, "operation": operation}
            for known, base in ((self.victim, packet), (self.own, self.own.packet())):
                spoofed = change(base, FORGED, **everybody)
                for sender in (self.host, self.leaf, self.spine, replace(self.spine, udp_port=9)):
                    frame = make_frame(sender, to, spoofed)
                    yield Attack(operation.name, frame, Outcome.FOREIGN_RESULT, known.job)

    def _excesses(self, to: Station) -> Iterator[Attack]:
        """What a member of one job may try in order to reach other jobs."""
        view = self.own.view
        victims_slot = (self.victim.slot_base - self.own.slot_base) % (1 << 32)
        tried: list[tuple[str, Outcome, dict[str, int]]] = [
            *(
                ("slot", Outcome.BAD_SLOT, {"slot_index": slot})
                for slot in (view.slot_count, victims_slot, 0xFFFF_FFFF)
            ),
            *(
                ("generation", Outcome.BAD_GENERATION, {"generation": generation})
                for generation in (view.generation - 1, self.victim.view.generation, 0)
            ),
            *(
                ("count", Outcome.BAD_CONTRIBUTION, {"num_contributors": count})
                for count in (0, 2, 0xFFFF)
            ),
            *(
                ("bitmap", Outcome.BAD_CONTRIBUTION, {"worker_bitmap": bitmap})
                for bitmap in (0, 0b11, 0b11 ^ view.worker_bitmap, 0xFFFF_FFFF)
            ),
            ("flush", Outcome.BAD_OPERATION, {"operation": Operation.FLUSH}),
        ]
        for name, cause, fields in tried:
            frame = make_frame(self.host, to, self.own.packet(**fields))
            yield Attack(name, frame, cause, self.own.job)

    def _damages(self, to: Station, packet: Datagram, victim: Station) -> Iterator[Attack]:
        """Packets in the victim's name that no healthy host sends."""
        job, data = self.victim.job, packet.tobytes()
        for payload in (data[:-4], data + bytes(4), data[: HEADER_BYTES + 4]):
            frame = make_frame(victim, to, payload)
            yield Attack("length", frame, Outcome.BAD_LENGTH, job)
        torn = make_frame(victim, to, packet)[:-8]
        yield Attack("torn frame", torn, Outcome.BAD_LENGTH, job)
        fragment = make_frame(victim, to, packet, fragment=0x2000)
        yield Attack("first fragment", fragment, Outcome.BAD_LENGTH, job)
        damaged = make_frame(victim, to, packet, checksum_error=1)
        yield Attack("checksum", damaged, Outcome.BAD_CHECKSUM, job)

    def _forged_results(self, victim: Station, packet: Datagram) -> Iterator[Attack]:
        """Results for workers, past the switches."""
        result = change(
            packet, FORGED, operation=Operation.RESULT, worker_bitmap=0xF, num_contributors=4
        )
        for sender in (self.leaf, self.spine, self.other_leaf, self.host):
            frame = make_frame(replace(sender, udp_port=UDP_PORT), victim, result)
            yield Attack("result to a worker", frame, OrdinaryOutcome.SPOOFED)
        behind = make_frame(self.leaf, victim, result, options=bytes(4))
        yield Attack("result behind options", behind, OrdinaryOutcome.SPOOFED)
        for sender in (self.leaf, self.other_leaf):
            frame = make_frame(replace(sender, udp_port=NOBODYS_PORT), victim, result)
            yield Attack("result from another port", frame, OrdinaryOutcome.FORWARDED)
