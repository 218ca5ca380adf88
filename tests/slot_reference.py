# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The slot protocol of docs/protocol.md in plain Python: the oracle for every switch target."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hostlib.wire import (
    WIRE_VERSION,
    Flag,
    Operation,
    Outcome,
)

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
CONTRIBUTIONS = (Operation.AGGREGATE_ADD, Operation.AGGREGATE_MAX)
CHUNK_FIELDS = ("tensor_id", "chunk_index", "range_start", "range_end")
"""What every packet of a round agrees on."""
FROM_PARENT = (Operation.RESULT, Operation.NOTICE)
NO_FLAGS = Flag(0)
FLAGS_FROM_BELOW = Flag.OVERFLOW | Flag.ECN_ECHO
"""Of contributions: OR-ed into the round."""


@dataclass(frozen=True, kw_only=True)
class ReferenceJob:
    """What the controller's table entries say of a job."""

    job_id: int
    generation: int
    slot_base: int
    slot_count: int
    num_workers: int
    allow_partial: bool = False
    worker_ports: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    """worker id -> (ingress port, IPv4 source address)."""


@dataclass
class _Copy:
    values: NDArray[np.int32]
    generation: int = 0
    round: int = 0
    bitmap: int = 0
    count: int = 0
    is_closed: bool = False
    flags: Flag = NO_FLAGS
    exponent: int = 0
    operation: int = 0
    tensor_id: int = 0
    chunk_index: int = 0
    range_start: int = 0
    range_end: int = 0


@dataclass(frozen=True)
class Reply:
    """What the switch sends: to one worker's port, or to every worker of the job."""

    datagram: NDArray[np.void]
    """One datagram (scalar structured array of wire.datagram_dtype)."""
    to_worker: int | None
    """Worker id, or None for a multicast to the job."""


def is_newer(left: int, right: int) -> bool:
    """Compare 32-bit serial numbers (RFC 1982): whether left comes after right."""
    return 0 < ((left - right) & 0xFFFFFFFF) < 0x80000000


class ReferenceSwitch:
    """One switch's Switchfold function, without wire checks below the header (length, checksum)."""

    def __init__(self, values_per_packet: int) -> None:
        self.values_per_packet = values_per_packet
        self.jobs: dict[int, ReferenceJob] = {}
        self.outcomes = dict.fromkeys(Outcome, 0)
        self._copies: dict[int, _Copy] = {}

    def receive(
        self, port: int, source_address: int, datagram: NDArray[np.void]
    ) -> tuple[Outcome, Reply | None]:
        """Handle one datagram that entered at a port; count and return its outcome."""
        outcome, reply = self._receive(port, source_address, datagram)
        self.outcomes[outcome] += 1
        return outcome, reply

    def _receive(
        self, port: int, source_address: int, datagram: NDArray[np.void]
    ) -> tuple[Outcome, Reply | None]:
        header = datagram["header"]
        refused = self._refuse(header, port, source_address)
        if refused is not None:
            return refused, None
        job = self.jobs[int(header["job_id"])]
        index = (job.slot_base + int(header["slot_index"])) * 2 + (int(header["round"]) & 1)
        copy = self._copies.get(index)
        if copy is None:
            copy = _Copy(np.zeros(self.values_per_packet, np.int32))
            self._copies[index] = copy
        operation = Operation(int(header["operation"]))
        if operation is Operation.PROBE:
            return Outcome.NOTIFIED, self._notice(job, copy, datagram)
        generation, round_ = int(header["generation"]), int(header["round"])
        newer = is_newer(generation, copy.generation) or (
            generation == copy.generation and is_newer(round_, copy.round)
        )
        same = generation == copy.generation and round_ == copy.round
        if not newer and not same:
            if job.allow_partial and generation == copy.generation:
                return Outcome.NOTIFIED, self._notice(job, copy, datagram)
            return Outcome.STALE, None
        if newer and operation is Operation.FLUSH:
            return Outcome.FLUSH_IGNORED, None
        if same and any(int(header[name]) != getattr(copy, name) for name in CHUNK_FIELDS):
            return Outcome.MISMATCH, None
        if same and operation in CONTRIBUTIONS and operation != copy.operation:
            return Outcome.MISMATCH, None
        if operation is Operation.FLUSH:
            return self._flush(job, copy, datagram)
        return self._contribute(job, copy, datagram, newer)

    def _refuse(self, header: NDArray[np.void], port: int, source_address: int) -> Outcome | None:
        job = self.jobs.get(int(header["job_id"]))
        start, end = int(header["range_start"]), int(header["range_end"])
        operation, worker_id = int(header["operation"]), int(header["worker_id"])
        if header["version"] != WIRE_VERSION:
            return Outcome.BAD_VERSION
        if operation not in list(Operation):
            return Outcome.BAD_OPERATION
        if start >= end or end - start > self.values_per_packet:
            return Outcome.BAD_RANGE
        if start != int(header["chunk_index"]) * self.values_per_packet:
            return Outcome.OFF_GRID
        if job is None:
            return Outcome.FOREIGN_JOB
        if operation in FROM_PARENT:
            return Outcome.FOREIGN_RESULT
        if job.worker_ports.get(worker_id) != (port, source_address):
            return Outcome.FOREIGN_WORKER
        if int(header["generation"]) != job.generation:
            return Outcome.BAD_GENERATION
        if int(header["slot_index"]) >= job.slot_count:
            return Outcome.BAD_SLOT
        if operation in CONTRIBUTIONS and (
            int(header["worker_bitmap"]) != 1 << worker_id or header["num_contributors"] != 1
        ):
            return Outcome.BAD_CONTRIBUTION
        if operation == Operation.FLUSH and not job.allow_partial:
            return Outcome.BAD_OPERATION
        return None

    def _contribute(
        self, job: ReferenceJob, copy: _Copy, datagram: NDArray[np.void], newer: bool
    ) -> tuple[Outcome, Reply | None]:
        header = datagram["header"]
        bit = int(header["worker_bitmap"])
        if newer:
            copy.generation, copy.round = int(header["generation"]), int(header["round"])
            for name in (
                "tensor_id",
                "chunk_index",
                "range_start",
                "range_end",
                "exponent",
                "operation",
            ):
                setattr(copy, name, int(header[name]))
            copy.values[:] = datagram["values"]
            copy.bitmap, copy.count = bit, 1
            copy.is_closed = False
            copy.flags = Flag(int(header["flags"])) & FLAGS_FROM_BELOW
        elif copy.is_closed or copy.count == job.num_workers:
            return Outcome.REPLAYED, self._result(job, copy, datagram, is_replay=True)
        elif copy.bitmap & bit:
            return Outcome.DUPLICATE, None
        else:
            copy.bitmap |= bit
            copy.count += 1
            copy.exponent = max(copy.exponent, int(header["exponent"]))
            copy.flags |= Flag(int(header["flags"])) & FLAGS_FROM_BELOW
            self._aggregate(copy, datagram)
        if copy.count == job.num_workers:
            return Outcome.COMPLETED, self._result(job, copy, datagram, is_replay=False)
        return Outcome.ABSORBED, None

    def _aggregate(self, copy: _Copy, datagram: NDArray[np.void]) -> None:
        values = datagram["values"].astype(np.int64)
        if datagram["header"]["operation"] == Operation.AGGREGATE_MAX:
            copy.values[:] = np.maximum(copy.values, values)
            return
        exact = copy.values + values
        copy.values[:] = np.clip(exact, INT32_MIN, INT32_MAX)
        if (copy.values != exact).any():
            copy.flags |= Flag.OVERFLOW

    def _flush(
        self, job: ReferenceJob, copy: _Copy, datagram: NDArray[np.void]
    ) -> tuple[Outcome, Reply | None]:
        if copy.is_closed or copy.count == job.num_workers:
            return Outcome.REPLAYED, self._result(job, copy, datagram, is_replay=True)
        copy.is_closed = True
        return Outcome.FLUSHED, self._result(job, copy, datagram, is_replay=False)

    def _result(
        self, job: ReferenceJob, copy: _Copy, datagram: NDArray[np.void], *, is_replay: bool
    ) -> Reply:
        answer = datagram.copy()
        header = answer["header"]
        flags = copy.flags
        if copy.is_closed:
            flags |= Flag.FLUSHED
        if copy.count < job.num_workers:
            flags |= Flag.PARTIAL
        if is_replay:
            flags |= Flag.REPLAY
        header["operation"] = Operation.RESULT
        header["flags"] = flags | (int(header["flags"]) & Flag.LAST)
        header["worker_bitmap"], header["num_contributors"] = copy.bitmap, copy.count
        header["exponent"] = copy.exponent
        answer["values"] = copy.values
        return Reply(answer, int(header["worker_id"]) if is_replay else None)

    def _notice(self, job: ReferenceJob, copy: _Copy, datagram: NDArray[np.void]) -> Reply:
        answer = datagram.copy()
        header = answer["header"]
        is_current = copy.generation == job.generation
        header["operation"] = Operation.NOTICE
        header["flags"] = 0
        header["round"] = copy.round if is_current else 0
        header["worker_bitmap"] = copy.bitmap if is_current else 0
        header["num_contributors"] = copy.count if is_current else 0
        return Reply(answer, int(header["worker_id"]))
