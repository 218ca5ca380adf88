# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Random schedules of a tree: lawful workers, attackers, and a network that does anything."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from packet_frames import Datagram, change
from switchfold.hostlib.slots.wire import WIRE_VERSION, Flag, Operation, Outcome, datagram_dtype
from tree_fabric import TreeJob, switch_address
from tree_network import Arrival, TreeNetwork, sent_by_worker

SETTLE_ROUNDS = 40
LATE_FRAMES = 48
LOSS, DUPLICATION, CONGESTION = 0.2, 0.15, 0.05
REFUSALS = {
    Outcome.BAD_OPERATION,
    Outcome.FOREIGN_JOB,
    Outcome.FOREIGN_WORKER,
    Outcome.FOREIGN_RESULT,
    Outcome.BAD_GENERATION,
    Outcome.BAD_SLOT,
    Outcome.BAD_CONTRIBUTION,
    Outcome.MULTICAST_REFUSED,
    Outcome.WRITE_REFUSED,
}
MAX_LEVEL = 2
"""Of the trees in these schedules."""
HOP_FLAGS = int(Flag.REPLAY | Flag.LAST | Flag.ECN_ECHO)
"""Flags that may differ between two results of one round: they depend on the packets' paths."""


@dataclass
class TreeSchedule:
    """A few rounds of one slot of a job, from the workers' first packets to the last result.

    The network loses, duplicates and delays on every hop, up and down; what it still holds of
    earlier schedules of the job (`late`) arrives among the new.
    """

    network: TreeNetwork
    job: TreeJob
    generator: np.random.Generator
    first_round: int
    num_rounds: int
    slot: int
    operation: Operation
    is_wild: bool
    """Values span all of int32, so that sums saturate."""
    late: list[Arrival]
    under_way: list[Arrival] = field(default_factory=list[Arrival])
    at: dict[int, int] = field(default_factory=dict[int, int])
    """The step that each worker has sent and waits for."""
    results: dict[int, Datagram] = field(default_factory=dict[int, Datagram])
    """The result of each step, as the first worker received it."""
    num_results: int = 0
    num_partial: int = 0
    _sent: dict[tuple[int, int], Datagram] = field(default_factory=dict[tuple[int, int], Datagram])

    def run(self, num_steps: int) -> None:
        """Let anything happen for a while; then the network behaves, and all rounds must end."""
        self.at = dict.fromkeys(self.job.tree.workers, 0)
        for _ in range(num_steps):
            self._step()
        self._settle()

    def _step(self) -> None:
        draw = self.generator.random()
        worker = self._pick_worker()
        if draw < 0.5 and self.under_way:
            self._carry(self.under_way.pop(self.generator.integers(len(self.under_way))))
        elif draw < 0.6 and self.late:
            self._arrive(self.late[self.generator.integers(len(self.late))])
        elif draw < 0.88:
            self._send(worker, self._contribution(worker))
        elif draw < 0.91:
            self._send(worker, change(self._contribution(worker), operation=Operation.PROBE))
        elif draw < 0.95 and self.job.allow_partial:
            self._flush(worker, int(self.generator.integers(MAX_LEVEL + 1)))
        elif draw >= 0.95:
            self._attack(worker)

    def _flush(self, worker: int, level: int) -> None:
        """Ask for the end of a worker's round on the switches up to a level."""
        fields = {"operation": Operation.FLUSH, "num_contributors": level}
        self._send(worker, change(self._contribution(worker), **fields))

    def _pick_worker(self) -> int:
        return int(self.generator.choice(self.job.tree.workers))

    def _carry(self, arrival: Arrival) -> None:
        """Lose, mark, duplicate or deliver a frame."""
        draw = self.generator.random()
        if draw < LOSS:
            return
        if draw < LOSS + CONGESTION:
            arrival = arrival.congested()
        elif draw < LOSS + CONGESTION + DUPLICATION:
            self.under_way.append(arrival)
        self._arrive(arrival)

    def _arrive(self, arrival: Arrival) -> None:
        self.late.append(arrival)
        if len(self.late) > LATE_FRAMES:
            self.late.pop(self.generator.integers(len(self.late)))
        if arrival.worker is not None:
            self._take(arrival.worker, arrival.datagram(self.network.values_per_packet))
        else:
            self.under_way += self.network.deliver(self.job, arrival)[1]

    def _send(self, worker: int, datagram: Datagram) -> None:
        self.under_way.append(sent_by_worker(self.job, worker, datagram))

    def _contribution(self, worker: int) -> Datagram:
        return self.contribution_of(worker, min(self.at[worker], self.num_rounds - 1))

    def contribution_of(self, worker: int, step: int) -> Datagram:
        """Return what a worker sends in a step; the same at every retransmission."""
        if (worker, step) not in self._sent:
            self._sent[worker, step] = self._make(worker, step)
        return self._sent[worker, step]

    def _make(self, worker: int, step: int) -> Datagram:
        values_per_packet = self.network.values_per_packet
        datagram = np.zeros((), datagram_dtype(values_per_packet))
        child = self.job.tree.attachment(worker)[1]
        fields = {
            "version": WIRE_VERSION,
            "operation": self.operation,
            "flags": Flag.LAST if step == 0 else 0,
            "job_id": self.job.job_id,
            "worker_id": child.child_id,
            "generation": self.job.generation,
            "slot_index": self.slot,
            "round": (self.first_round + step) & 0xFFFFFFFF,
            "tensor_id": self.first_round & 0xFFFF,
            "chunk_index": step,
            "range_start": step * values_per_packet,
            "range_end": (step + 1) * values_per_packet,
            "worker_bitmap": self.job.worker_bitmap(worker),
            "num_contributors": 1,
            "exponent": int(self.generator.integers(256)),
        }
        for name, value in fields.items():
            datagram["header"][name] = value
        high = 2**31 if self.is_wild else 1000
        datagram["values"] = self.generator.integers(-high, high, values_per_packet)
        return datagram

    def _take(self, worker: int, datagram: Datagram) -> None:
        """Receive a frame as a worker does."""
        header = datagram["header"]
        step = (int(header["round"]) - self.first_round) & 0xFFFFFFFF
        is_own = header["slot_index"] == self.slot and header["job_id"] == self.job.job_id
        if not is_own or step >= self.num_rounds:
            return
        if header["operation"] == Operation.NOTICE:
            # The round is past: the worker gets the result from another one.
            if step > self.at[worker] and self.at[worker] in self.results:
                self.at[worker] += 1
            return
        self._check_result(step, datagram)
        if step == self.at[worker]:
            self.at[worker] += 1

    def _check_result(self, step: int, datagram: Datagram) -> None:
        """All workers see the same bytes, and they are the sum of what the named workers sent."""
        result = datagram.copy()
        header = result["header"]
        header["flags"] &= ~np.uint16(HOP_FLAGS)
        header["worker_id"] = header["exponent"] = 0  # echoes of the packet that it answers
        self.num_results += 1
        known = self.results.setdefault(step, result)
        if known is not result:
            assert result.tobytes() == known.tobytes(), f"{known}\n{result}"
            return
        workers = self._named(header)
        num_workers = len(self.job.tree.workers)
        assert bool(int(header["flags"]) & Flag.PARTIAL) == (len(workers) < num_workers)
        assert self.job.allow_partial or len(workers) == num_workers
        self.num_partial += len(workers) < num_workers
        sent = [self.contribution_of(worker, step) for worker in workers]
        values = np.array([one["values"] for one in sent], np.int64)
        is_max = self.operation is Operation.AGGREGATE_MAX
        exact = values.max(axis=0) if is_max else values.sum(axis=0)
        if not int(header["flags"]) & Flag.OVERFLOW:
            np.testing.assert_array_equal(result["values"], exact)
        else:
            assert self.is_wild

    def _named(self, header: Datagram) -> list[int]:
        bitmap, count = int(header["worker_bitmap"]), int(header["num_contributors"])
        if self.job.names_children:
            root = self.job.tree.nodes[0]
            assert bitmap == sum(1 << child.child_id for child in root.children)
            assert count == len(self.job.tree.workers)
            return list(self.job.tree.workers)
        workers = [worker for worker in self.job.tree.workers if bitmap >> worker & 1]
        assert len(workers) == count == bitmap.bit_count()
        return workers

    def _attack(self, worker: int) -> None:
        """Send what a rogue host could send; it must be refused, and change nothing."""
        own = self._contribution(worker)
        job = self.job
        node, child = job.tree.attachment(worker)
        lies = [
            {"job_id": job.job_id + 1000},
            {"worker_id": (child.child_id + 2) & 31},
            {"generation": job.generation - 1},
            {"slot_index": job.slot_count},
            {"num_contributors": 2},
            {"worker_bitmap": int(own["header"]["worker_bitmap"]) | 1 << 30},
            {"worker_bitmap": 0},
            {"operation": Operation.RESULT, "num_contributors": len(job.tree.workers)},
            {"operation": Operation.NOTICE, "round": int(own["header"]["round"]) ^ 2},
            {"operation": Operation.WRITE},
        ]
        if not job.allow_partial:
            lies += [{"operation": Operation.FLUSH}, {"expected": 1}]
        if len(job.tree.nodes) > 1:
            lies.append({"operation": Operation.MULTICAST})
        lie = change(own, values=77, **lies[self.generator.integers(len(lies))])
        source = None
        if node.parent is not None and self.generator.integers(2):
            source = switch_address(node.parent)
        arrival = sent_by_worker(job, worker, lie, source=source)
        outcome, sent = self.network.deliver(job, arrival)
        assert outcome in REFUSALS
        assert not sent

    def _settle(self) -> None:
        """Stop losing packets: retransmissions and flushes must end every round.

        If rounds can end without all children, they also must when a worker stops here.
        """
        stopped = self._pick_worker() if self.job.allow_partial else None
        for _ in range(SETTLE_ROUNDS):
            while self.under_way:
                self._arrive(self.under_way.pop(0))
            waiting = [
                worker
                for worker, step in self.at.items()
                if step < self.num_rounds and worker != stopped
            ]
            if not waiting:
                return
            for worker in waiting:
                self._send(worker, self._contribution(worker))
            if self.job.allow_partial:
                for worker in waiting:
                    self._flush(worker, MAX_LEVEL)
        raise AssertionError(f"rounds do not end: workers at {self.at} of {self.num_rounds}")
