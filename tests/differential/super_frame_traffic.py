# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Random traffic for the aggregation programs, cut at random into super-frames.

Rounds of three jobs, with what losses, retransmissions, late workers and attackers add to them,
multicasts and view changes, among ordinary flows of UDP and TCP.
"""

from __future__ import annotations

import itertools
import random
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from finsy import P4MulticastGroupEntry, P4Schema
from finsy.proto import p4r

from differential.campaign import Found
from differential.ordinary_flows import (
    HOSTS,
    SUPER_FRAME_MAX,
    OrdinaryFlows,
    ipv4_header,
    sent_as,
    with_sum_of_ones,
)
from differential.super_frames import CHECKSUM_AT, UDP, Arrival, Headers
from p4runtime_control import table_entry
from packet_frames import (
    ETHERTYPE_IPV4,
    SWITCH_ADDRESS,
    SWITCH_MAC,
    Datagram,
    Job,
    change,
    contribution,
    ethernet,
    to_worker,
)
from packet_target import PORTS, Entry, job_entries
from switchfold.hostlib.slots.wire import (
    ETHERNET_BYTES,
    HEADER_BYTES,
    IPV4_BYTES,
    UDP_PORT,
    VALUES_PER_PACKET_NARROW,
    VALUES_PER_PACKET_WIDE,
    Flag,
    Operation,
)

BURST_MAX = 100
"""Datagrams that a host sends before the switch has taken them: its ring has room for all."""
SLOTS = 48
NONFINITE_EXPONENT = 1 << 30
"""What an exponent lane holds for a chunk with NaN or infinity."""
UDP_CHECKSUM_AT = ETHERNET_BYTES + IPV4_BYTES + CHECKSUM_AT[UDP]
"""In a frame without VLAN tag."""
OTHER_VALUES = {
    "version": 255,
    "operation": 8,
    "job_id": 4,
    "worker_id": 4,
    "slot_index": 2 * SLOTS,
    "tensor_id": 3,
    "chunk_index": 2,
    "range_start": 64,
    "worker_bitmap": 15,
    "num_contributors": 4,
}
"""Header fields that a damaged or forged datagram has wrong, and the highest value there."""


@dataclass(frozen=True)
class Burst:
    """What one host sends at once."""

    port: int
    arrivals: tuple[Arrival, ...]

    @property
    def frames(self) -> list[bytes]:
        """The datagrams as frames, in order."""
        return [frame for arrival in self.arrivals for frame in arrival.frames]


@dataclass
class Traffic:
    """Deterministic for a program and a seed."""

    program: Found
    seed: int
    _rounds: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    _sent: dict[int, list[Datagram]] = field(default_factory=dict[int, list[Datagram]])

    def __post_init__(self) -> None:
        self._rng = random.Random(f"{self.program.name} {self.seed}")
        self._values = np.random.default_rng(self.seed)
        self._schema = P4Schema(self.program.p4info)
        is_wide = self.program.name.endswith("wide")
        lanes = VALUES_PER_PACKET_WIDE if is_wide else VALUES_PER_PACKET_NARROW
        self._jobs = {
            job_id: Job(
                job_id=job_id,
                generation=10,
                values_per_packet=lanes,
                num_workers=workers,
                slot_base=job_id * SLOTS,
                slot_count=SLOTS,
                allow_partial=job_id == 3,
            )
            for job_id, workers in ((1, 2), (2, 3), (3, 4))
        }
        self._turns = itertools.cycle(self._jobs)
        self._flows = OrdinaryFlows(self._rng)

    def tables(self) -> Iterator[p4r.Update]:
        """Yield the entries of all jobs and routes."""
        entries = [entry for job in self._jobs.values() for entry in job_entries(job)]
        for port in PORTS:
            match: dict[str, int | tuple[int, int]] = {"dst_address": (HOSTS + port, 32)}
            params = {"port": port, "mac": 0x0200_0000_0010 + port}
            entries.append(
                Entry(table="ipv4_forward", match=match, action="forward", params=params)
            )
        for entry in entries:
            yield (+table_entry(entry)).encode_update(self._schema)
        for job in self._jobs.values():
            replicas = [(job.port(worker), worker + 1) for worker in range(job.num_workers)]
            group = P4MulticastGroupEntry(job.multicast_group_id, replicas=replicas)
            yield (+group).encode_update(self._schema)

    def steps(self, count: int) -> Iterator[p4r.Update | Burst]:
        """Yield bursts, and view changes between them, until this many datagrams are sent."""
        phase = self._flows.barely_unlike()
        while count > 0:
            for burst in self._bursts(phase):
                count -= len(burst.frames)
                yield burst
            if self._rng.random() < 0.2:
                yield from self._change_view()
            phase = self._phase()

    def _change_view(self) -> Iterator[p4r.Update]:
        job = self._rng.choice(list(self._jobs.values()))
        renewed = replace(job, generation=job.generation + 1)
        self._jobs[job.job_id] = renewed
        for slot in range(SLOTS):
            self._rounds.pop((job.job_id, slot), None)
        old, new = (table_entry(job_entries(item)[0]) for item in (job, renewed))
        yield (-old).encode_update(self._schema)
        yield (+new).encode_update(self._schema)

    def _bursts(self, arrivals: Sequence[tuple[int, Arrival]]) -> Iterator[Burst]:
        """Group what comes to a port one behind the other."""
        held: list[Arrival] = []
        at, size = 0, 0
        for port, arrival in arrivals:
            more = len(arrival.frames)
            if held and (port != at or size + more > BURST_MAX):
                yield Burst(at, tuple(held))
                held, size = [], 0
            held.append(arrival)
            at, size = port, size + more
        if held:
            yield Burst(at, tuple(held))

    def _phase(self) -> list[tuple[int, Arrival]]:
        """Return a round of some slots of the next job, among ordinary traffic."""
        job = self._jobs[next(self._turns)]
        slots = self._rng.sample(range(SLOTS), self._rng.randint(1, SLOTS))
        if self._rng.random() < 0.2:
            worker = self._rng.randrange(job.num_workers)
            streams = {worker: [self._multicast(job, worker, slot) for slot in slots]}
        else:
            workers = range(job.num_workers)
            streams = {worker: self._stream(job, worker, slots) for worker in workers}
            for slot in slots:
                self._rounds[job.job_id, slot] = self._round(job, slot) + 1
        for stream in streams.values():
            self._sent.setdefault(job.job_id, []).extend(stream)
        queues = [
            [(job.port(worker), arrival) for arrival in self._pack(job, worker, stream)]
            for worker, stream in streams.items()
        ]
        queues += [self._flows.next_arrivals() for _ in range(self._rng.randint(1, 4))]
        mixed: list[tuple[int, Arrival]] = []
        while any(queues):
            queue = self._rng.choice([queue for queue in queues if queue])
            count = self._rng.randint(1, 5)
            mixed += queue[:count]
            del queue[:count]
        return mixed

    def _round(self, job: Job, slot: int) -> int:
        return self._rounds.get((job.job_id, slot), 1)

    def _stream(self, job: Job, worker: int, slots: Sequence[int]) -> list[Datagram]:
        """Return what a worker sends for a round, and what the network makes of it."""
        rng = self._rng
        stream: list[Datagram] = []
        lost: list[Datagram] = []
        for slot in slots:
            datagram = self._contribution(job, worker, slot)
            draw = rng.random()
            if draw < 0.04:
                lost.append(datagram)
                continue
            stream.append(datagram)
            if draw < 0.10:
                stream.append(datagram)
            elif draw < 0.25:
                stream.append(self._unusual(job, worker, datagram))
        if rng.random() < 0.8:
            stream += lost
        return stream

    def _unusual(self, job: Job, worker: int, datagram: Datagram) -> Datagram:
        rng = self._rng
        draw = rng.random()
        if draw < 0.3:
            old = [item for item in self._sent.get(job.job_id, ()) if self._is_of(item, worker)]
            return rng.choice(old) if old else datagram
        if draw < 0.4:
            return change(datagram, generation=job.generation + rng.choice((-1, 1)))
        if draw < 0.55:
            before = int(datagram["header"]["round"]) - 2  # the same copy
            return change(datagram, round=before & 0xFFFFFFFF)
        if draw < 0.8:
            other = rng.choice((Operation.PROBE, Operation.FLUSH, Operation.MULTICAST))
            return change(datagram, operation=other)
        name, highest = rng.choice(list(OTHER_VALUES.items()))
        return change(datagram, **{name: rng.randint(0, highest)})

    @staticmethod
    def _is_of(datagram: Datagram, worker: int) -> bool:
        return bool(datagram["header"]["worker_id"] == worker)

    def _multicast(self, job: Job, worker: int, slot: int) -> Datagram:
        """Return a multicast; now and then, the computed checksum of a replica is 0."""
        datagram = self._contribution(job, worker, slot)
        datagram = change(datagram, operation=Operation.MULTICAST, flags=0)
        if self._rng.random() < 0.2:
            other = (worker + 1) % job.num_workers
            sent = to_worker(job, other, datagram)
            zero = with_sum_of_ones(datagram.tobytes(), sent[UDP_CHECKSUM_AT : UDP_CHECKSUM_AT + 2])
            datagram = np.frombuffer(zero, datagram.dtype)[0]
        return datagram

    def _contribution(self, job: Job, worker: int, slot: int) -> Datagram:
        lanes = job.values_per_packet
        is_max = slot % 4 == 3
        if is_max:
            values = self._values.integers(-150, 129, lanes)
            values[self._values.random(lanes) < 0.05] = NONFINITE_EXPONENT
        else:
            high = 2**31 if slot % 4 == 2 else 1 << 28
            values = self._values.integers(-high, high, lanes)
        return contribution(
            job,
            worker,
            values,
            operation=Operation.AGGREGATE_MAX if is_max else Operation.AGGREGATE_ADD,
            flags=Flag.LAST if slot % 8 == 0 else 0,
            slot_index=slot,
            round=self._round(job, slot),
            tensor_id=self._round(job, slot) % 3,
            chunk_index=slot,
            range_start=slot * lanes,
            range_end=(slot + 1) * lanes,
            exponent=int(self._values.integers(256)),
        )

    def _pack(self, job: Job, worker: int, stream: Sequence[Datagram]) -> Iterator[Arrival]:
        """Cut a worker's datagrams at random; what ends a super-frame may be cut short."""
        rng = self._rng
        payloads = [datagram.tobytes() for datagram in stream]
        while payloads:
            number = rng.choice((1, 2, rng.randint(1, SUPER_FRAME_MAX), SUPER_FRAME_MAX))
            part, payloads = payloads[:number], payloads[number:]
            if rng.random() < 0.15:
                part[-1] = part[-1][: rng.randint(1, HEADER_BYTES + 4 * job.values_per_packet - 1)]
            source = struct.pack(">HHHH", job.udp_port(worker), UDP_PORT, 0, 0)
            network = ipv4_header(rng, UDP, job.address(worker), SWITCH_ADDRESS)
            link = ethernet(SWITCH_MAC, job.mac(worker), ETHERTYPE_IPV4)
            yield sent_as(rng, Headers(link, network, source), part)
