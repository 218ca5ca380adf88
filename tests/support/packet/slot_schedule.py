# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Random schedules of the slot protocol: lawful workers behind a network that does anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from packet_frames import Datagram, Job, change, contribution
from switchfold.hostlib.slots.wire import Flag, Operation

SLOTS = 2
LAST_ROUND = 4
_MUTABLE_FIELDS = (
    ("version", 255),
    ("operation", 10),
    ("flags", 0x200),
    ("job_id", 65535),
    ("worker_id", 4),
    ("generation", 2**32 - 1),
    ("slot_index", 5),
    ("tensor_id", 3),
    ("chunk_index", 2),
    ("range_start", 64),
    ("range_end", 64),
    ("worker_bitmap", 15),
    ("num_contributors", 4),
    ("expected", 5),
)


@dataclass
class Schedule:
    """One job with a few rounds; `steps` yields what reaches the switch, packet by packet.

    The network delivers any packet that was ever sent, at any time and any number of times, or
    never; it also makes up some. A worker goes on only after `learn` reported its round's result.
    """

    job: Job
    generator: np.random.Generator
    first_round: int
    is_lawful: bool
    """No invented packets: sums can be told from what the workers sent."""
    sent: list[tuple[int, Datagram]] = field(default_factory=list[tuple[int, Datagram]])
    known_results: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    _progress: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])

    def learn(self, slot: int, round_: int) -> None:
        """Take note that the switch has sent the result of a slot's round."""
        self.known_results.add((slot, round_))

    def round_at(self, step: int) -> int:
        """Return the 32-bit round number of a slot's step."""
        return (self.first_round + step) & 0xFFFFFFFF

    def contribution_of(self, worker_id: int, slot: int, step: int) -> Datagram:
        """Return what a worker sends in a step; the same at every retransmission."""
        seed = (self.job.generation, worker_id, slot, step)
        values = np.random.default_rng(seed)
        is_max = slot == 1 and self.job.num_workers > 2
        high = 2**31 if self.generator_is_wild else 1000
        return contribution(
            self.job,
            worker_id,
            values.integers(-high, high, self.job.values_per_packet),
            operation=Operation.AGGREGATE_MAX if is_max else Operation.AGGREGATE_ADD,
            flags=Flag.LAST if slot == 1 else 0,
            slot_index=slot,
            round=self.round_at(step),
            tensor_id=step,
            chunk_index=slot,
            range_start=slot * self.job.values_per_packet,
            range_end=(slot + 1) * self.job.values_per_packet,
            exponent=int(values.integers(0, 256)),
        )

    @property
    def generator_is_wild(self) -> bool:
        """Whether values span all of int32, so that sums saturate."""
        return self.job.generation % 3 == 0

    def steps(self, count: int) -> Iterator[tuple[int, Datagram]]:
        """Yield (worker id whose port it enters by, datagram), count times."""
        while count:
            packet = self._next()
            if packet is not None:
                count -= 1
                yield packet

    def _next(self) -> tuple[int, Datagram] | None:  # noqa: PLR0911 - one case per kind of packet
        draw = self.generator.random()
        if draw < 0.25:
            self._advance()
            return None
        if draw < 0.65 or not self.sent:
            return self._send()
        worker_id, datagram = self.sent[self.generator.integers(len(self.sent))]
        if draw < 0.85:
            return worker_id, datagram
        if draw < 0.90:
            return worker_id, change(datagram, operation=Operation.PROBE)
        if draw < 0.94 and self.job.allow_partial:
            return self._flush(worker_id, datagram)
        if self.is_lawful:
            return None
        return self._invent(worker_id, datagram)

    def _pick(self) -> tuple[int, int]:
        worker_id = int(self.generator.integers(self.job.num_workers))
        return worker_id, int(self.generator.integers(SLOTS))

    def _advance(self) -> None:
        """Let a worker take a result that it waits for, if there is one."""
        worker_id, slot = self._pick()
        step = self._progress.get((worker_id, slot), 0)
        if (slot, self.round_at(step)) in self.known_results and step + 1 < LAST_ROUND:
            self._progress[worker_id, slot] = step + 1

    def _send(self) -> tuple[int, Datagram]:
        worker_id, slot = self._pick()
        step = self._progress.get((worker_id, slot), 0)
        packet = (worker_id, self.contribution_of(worker_id, slot, step))
        self.sent.append(packet)
        return packet

    def _flush(self, worker_id: int, datagram: Datagram) -> tuple[int, Datagram]:
        """Flush a packet's round, or the one that a worker is in, contributed to or not."""
        if self.generator.integers(2):
            worker_id, slot = self._pick()
            step = self._progress.get((worker_id, slot), 0)
            datagram = self.contribution_of(worker_id, slot, step)
        return worker_id, change(datagram, operation=Operation.FLUSH)

    def _invent(self, worker_id: int, datagram: Datagram) -> tuple[int, Datagram]:
        name, highest = _MUTABLE_FIELDS[self.generator.integers(len(_MUTABLE_FIELDS))]
        value = int(self.generator.integers(highest, endpoint=True))
        if self.generator.random() < 0.2:
            worker_id = int(self.generator.integers(4))
        return worker_id, change(datagram, **{name: value})
