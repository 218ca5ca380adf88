# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The slot protocol of docs/protocol.md in plain Python: the oracle for every switch target."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reference_job import ReferenceChild, ReferenceJob, ReferenceRow
from switchfold.hostlib.slots.wire import (
    NUM_SLOTS,
    WIRE_VERSION,
    Flag,
    Operation,
    Outcome,
)

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
CONTRIBUTIONS = (Operation.AGGREGATE_ADD, Operation.AGGREGATE_MAX)
CHUNK_FIELDS = ("tensor_id", "chunk_index", "range_start", "range_end")
"""Fields that are equal in all packets of a round."""
FROM_PARENT = (Operation.RESULT, Operation.NOTICE)
OPERATIONS = frozenset(int(operation) for operation in Operation)
FLAGS_FROM_BELOW = int(Flag.OVERFLOW | Flag.ECN_ECHO)
"""Of contributions: OR-ed into the round."""
FLAGS_FROM_ABOVE = int(FLAGS_FROM_BELOW | Flag.PARTIAL | Flag.FLUSHED)
"""Of the parent's result: stored with it."""
FLAGS_OF_MULTICASTS = int(Flag.LAST | Flag.REPORT)
"""Flags that a multicast keeps."""
FLAGS_ECHOED = int(Flag.LAST | Flag.TO_SERVER)
"""Of a request: what its answer repeats."""


class State(enum.Enum):
    """The state of a copy's round."""

    OPEN = 0
    SENT_UP = 1
    CLOSED = 2


@dataclass
class _Copy:
    values: NDArray[np.int32]
    generation: int = 0
    round: int = 0
    arrived: int = 0
    bitmap: int = 0
    count: int = 0
    state: State = State.OPEN
    flags: int = 0
    operation: int = 0
    tensor_id: int = 0
    chunk_index: int = 0
    range_start: int = 0
    range_end: int = 0

    def start(self, header: NDArray[np.void]) -> None:
        """Belong to a packet's round from now on."""
        self.generation, self.round = int(header["generation"]), int(header["round"])
        self.operation = int(header["operation"])
        for name in CHUNK_FIELDS:
            setattr(self, name, int(header[name]))

    def overwrite(self, datagram: NDArray[np.void], flags: int) -> None:
        """Hold what a packet holds."""
        header = datagram["header"]
        self.values[:] = datagram["values"]
        self.bitmap = int(header["worker_bitmap"])
        self.count = int(header["num_contributors"])
        self.flags = flags

    def add(self, datagram: NDArray[np.void], flags: int) -> None:
        """Aggregate a contribution; a sum outside of int32 saturates and says so."""
        header = datagram["header"]
        self.bitmap |= int(header["worker_bitmap"])
        self.count += int(header["num_contributors"])
        self.flags |= flags
        if header["operation"] == Operation.AGGREGATE_MAX:
            np.maximum(self.values, datagram["values"], out=self.values)
            return
        exact = self.values + datagram["values"].astype(np.int64)
        self.values[:] = np.clip(exact, INT32_MIN, INT32_MAX)
        if (self.values != exact).any():
            self.flags |= int(Flag.OVERFLOW)


class Destination(enum.Enum):
    """The destination of a packet that the switch sends."""

    SENDER = "back to where the packet came from"
    CHILDREN = "to every child of the job"
    PARENT = "to the job's parent"
    OTHERS = "to every child of the job but the sender"
    SERVER = "to the server of the hot row"
    COPIES = "to the server and the switches below that keep the values of the hot row"


@dataclass(frozen=True)
class Reply:
    """A packet that the switch sends."""

    datagram: NDArray[np.void]
    """One datagram (scalar structured array of wire.datagram_dtype)."""
    to: Destination


def is_newer(left: int, right: int) -> bool:
    """Compare 32-bit serial numbers (RFC 1982): whether left comes after right."""
    return 0 < ((left - right) & 0xFFFFFFFF) < 0x80000000


def is_hot(header: NDArray[np.void]) -> bool:
    """Return whether a packet is about a hot row."""
    if header["operation"] in (Operation.READ, Operation.WRITE):
        return True
    return bool(header["flags"] & Flag.TO_SERVER) and header["operation"] != Operation.MULTICAST


def is_from_parent(job: ReferenceJob, operation: int) -> bool:
    """Return whether a switch takes an operation only from its parent."""
    return operation in FROM_PARENT or (operation == Operation.WRITE and job.parent is not None)


class ReferenceSwitch:
    """One switch's Switchfold function, without wire checks below the header (length, checksum)."""

    def __init__(self, values_per_packet: int) -> None:
        self.values_per_packet = values_per_packet
        self.jobs: dict[int, ReferenceJob] = {}
        self.outcomes = dict.fromkeys(Outcome, 0)
        self._copies: dict[int, _Copy] = {}

    def receive(
        self,
        port: int,
        source_address: int,
        datagram: NDArray[np.void],
        *,
        met_congestion: bool = False,
    ) -> tuple[Outcome, Reply | None]:
        """Handle one datagram that entered at a port; count and return its outcome."""
        header = datagram["header"]
        outcome = self._refuse(header, port, source_address)
        reply = None
        if outcome is Outcome.MULTICAST:
            reply = Reply(self._copy_of(datagram, met_congestion), Destination.OTHERS)
        if outcome is None:
            job = self.jobs[int(header["job_id"])]
            if is_hot(header):
                outcome, reply = self._handle_hot(job, datagram, met_congestion)
            else:
                index = (job.slot_base + int(header["slot_index"])) * 2
                copy = self._copy_at(index + (int(header["round"]) & 1))
                outcome, reply = self._handle(job, copy, datagram, met_congestion)
        self.outcomes[outcome] += 1
        return outcome, reply

    def _copy_at(self, index: int) -> _Copy:
        if index not in self._copies:
            self._copies[index] = _Copy(np.zeros(self.values_per_packet, np.int32))
        return self._copies[index]

    def _handle(
        self, job: ReferenceJob, copy: _Copy, datagram: NDArray[np.void], met_congestion: bool
    ) -> tuple[Outcome, Reply | None]:
        outcome, to = self._decide(job, copy, datagram, met_congestion)
        if to is None:
            return outcome, None
        return outcome, Reply(self._fill(job, copy, datagram, outcome), to)

    def _handle_hot(
        self, job: ReferenceJob, datagram: NDArray[np.void], met_congestion: bool
    ) -> tuple[Outcome, Reply | None]:
        header = datagram["header"]
        row = job.hot_rows.get(int(header["slot_index"]))
        if row is None:
            return self._answer_cold(job, datagram)
        datagram = datagram.copy()
        header = datagram["header"]
        header["exponent"] = row.exponent
        if int(header["tensor_id"]) != row.epoch:
            return self._answer_cold(job, datagram)
        if header["operation"] in (Operation.READ, Operation.WRITE):
            return self._handle_values(job, row, datagram)
        copy = self._copy_at(row.slot * 2 + (int(header["round"]) & 1))
        job = replace(job, allow_partial=True)
        outcome, reply = self._handle(job, copy, datagram, met_congestion)
        if reply is not None and outcome in (Outcome.COMPLETED, Outcome.FLUSHED):
            to = Destination.SERVER if job.parent is None else reply.to
            reply = Reply(reply.datagram, to)
        return outcome, reply

    def _handle_values(
        self, job: ReferenceJob, row: ReferenceRow, datagram: NDArray[np.void]
    ) -> tuple[Outcome, Reply | None]:
        """Read or write the values of a hot row; the round is their version."""
        header, copy = datagram["header"], self._copy_at(row.value_copy)
        generation, version = int(header["generation"]), int(header["round"])
        is_current = generation == copy.generation
        newer = is_newer(generation, copy.generation) or (
            is_current and is_newer(version, copy.round)
        )
        if int(header["operation"]) == Operation.READ:
            if newer or not is_current or copy.tensor_id != row.epoch:
                return self._answer_cold(job, datagram)
            header["flags"], header["round"] = Flag.TO_SERVER, copy.round
            datagram["values"] = copy.values
            return Outcome.VALUES_READ, Reply(datagram, Destination.SENDER)
        if newer:
            copy.start(header)
            copy.values[:] = datagram["values"]
            copy.bitmap = copy.count = copy.arrived = copy.flags = 0
            copy.state = State.CLOSED
        elif not is_current or version != copy.round:
            return self._refuse_older(job, copy, datagram, is_current)
        elif self._differs(copy, header, Operation.WRITE):
            return Outcome.MISMATCH, None
        header["flags"] = Flag.TO_SERVER
        datagram["values"] = copy.values
        reply = Reply(datagram, Destination.COPIES) if row.has_copies else None
        return Outcome.VALUES_WRITTEN if newer else Outcome.VALUES_KEPT, reply

    def _refuse_older(
        self,
        job: ReferenceJob,
        copy: _Copy,
        datagram: NDArray[np.void],
        is_current: bool,
    ) -> tuple[Outcome, Reply | None]:
        """Answer a WRITE of an older version of this generation at a root, drop all others."""
        if job.parent is not None or not is_current:
            return Outcome.STALE, None
        packet = self._fill(job, copy, datagram, Outcome.NOTIFIED)
        return Outcome.NOTIFIED, Reply(packet, Destination.SENDER)

    @staticmethod
    def _answer_cold(job: ReferenceJob, datagram: NDArray[np.void]) -> tuple[Outcome, Reply | None]:
        if is_from_parent(job, int(datagram["header"]["operation"])):
            return Outcome.COLD, None
        notice = datagram.copy()
        header = notice["header"]
        header["operation"], header["flags"] = Operation.NOTICE, Flag.TO_SERVER | Flag.COLD
        header["round"] = header["worker_bitmap"] = header["num_contributors"] = 0
        return Outcome.COLD, Reply(notice, Destination.SENDER)

    def _refuse(self, header: NDArray[np.void], port: int, source_address: int) -> Outcome | None:  # noqa: PLR0911, PLR0912 - the ladder of the protocol
        job = self.jobs.get(int(header["job_id"]))
        start, end = int(header["range_start"]), int(header["range_end"])
        operation = int(header["operation"])
        if header["version"] != WIRE_VERSION:
            return Outcome.BAD_VERSION
        if operation not in OPERATIONS:
            return Outcome.BAD_OPERATION
        if start >= end or end - start > self.values_per_packet:
            return Outcome.BAD_RANGE
        if start != int(header["chunk_index"]) * self.values_per_packet:
            return Outcome.OFF_GRID
        if job is None:
            return Outcome.FOREIGN_JOB
        child = job.children.get(int(header["worker_id"]))
        origin = (port, source_address)
        if is_from_parent(job, operation):
            if job.parent is None or (job.parent.port, job.parent.address) != origin:
                return Outcome.FOREIGN_RESULT
        elif child is None or (child.port, child.address) != origin:
            return Outcome.FOREIGN_WORKER
        if int(header["generation"]) != job.generation:
            return Outcome.BAD_GENERATION
        if operation == Operation.MULTICAST and child is not None:
            if job.parent is not None or job.level:
                return Outcome.MULTICAST_REFUSED
            is_own = self._names_own(header, child)
            return Outcome.MULTICAST if is_own else Outcome.BAD_CONTRIBUTION
        slot = int(header["slot_index"])
        may_be_partial = job.allow_partial or is_hot(header)
        if not is_hot(header) and (slot >= job.slot_count or job.slot_base + slot >= NUM_SLOTS):
            return Outcome.BAD_SLOT
        if (
            operation in CONTRIBUTIONS
            and child is not None
            and (not self._names_own(header, child) or (header["expected"] and not may_be_partial))
        ):
            return Outcome.BAD_CONTRIBUTION
        if operation == Operation.FLUSH and not may_be_partial:
            return Outcome.BAD_OPERATION
        if operation == Operation.WRITE and job.parent is None and child is not None and child.bit:
            return Outcome.WRITE_REFUSED
        return None

    @staticmethod
    def _names_own(header: NDArray[np.void], child: ReferenceChild) -> bool:
        """Whether a packet names workers behind its child, and not more than there are."""
        named, count = int(header["worker_bitmap"]), int(header["num_contributors"])
        is_known = named != 0 and named & ~child.contributor_mask == 0
        return is_known and 1 <= count <= child.max_contributors

    @staticmethod
    def _copy_of(datagram: NDArray[np.void], met_congestion: bool) -> NDArray[np.void]:
        """Return the packet that the other children get; it uses no slot."""
        copy = datagram.copy()
        flags = int(copy["header"]["flags"]) & FLAGS_OF_MULTICASTS
        if met_congestion:
            flags |= int(Flag.ECN_ECHO)
        copy["header"]["flags"] = flags
        return copy

    def _decide(  # noqa: PLR0911, PLR0912 - the ladder of the protocol
        self, job: ReferenceJob, copy: _Copy, datagram: NDArray[np.void], met_congestion: bool
    ) -> tuple[Outcome, Destination | None]:
        """Change the copy; return the outcome and the destination of its packet."""
        header = datagram["header"]
        operation = Operation(int(header["operation"]))
        generation, round_ = int(header["generation"]), int(header["round"])
        newer = is_newer(generation, copy.generation) or (
            generation == copy.generation and is_newer(round_, copy.round)
        )
        same = generation == copy.generation and round_ == copy.round
        if operation is Operation.NOTICE:
            return Outcome.RELAYED, Destination.CHILDREN
        if operation is Operation.PROBE:
            if same and copy.state is State.SENT_UP:
                return Outcome.RELAYED, Destination.PARENT
            return Outcome.NOTIFIED, Destination.SENDER
        if not newer and not same:
            if (
                job.allow_partial
                and generation == copy.generation
                and operation is not Operation.RESULT
            ):
                return Outcome.NOTIFIED, Destination.SENDER
            return Outcome.STALE, None
        if same and self._differs(copy, header, operation):
            return Outcome.MISMATCH, None
        flags = int(header["flags"])
        if met_congestion:
            flags |= int(Flag.ECN_ECHO)
        if operation is Operation.RESULT:
            return self._store(job, copy, datagram, newer, flags & FLAGS_FROM_ABOVE)
        if newer and operation is Operation.FLUSH:
            return Outcome.FLUSH_IGNORED, None
        if same and copy.state is State.CLOSED:
            return Outcome.REPLAYED, Destination.SENDER
        if same and copy.state is State.SENT_UP:
            if operation is not Operation.FLUSH:
                return Outcome.RESENT, Destination.PARENT
            if int(header["num_contributors"]) <= job.level:
                return Outcome.FLUSH_IGNORED, None
            return Outcome.RELAYED, Destination.PARENT
        if operation is Operation.FLUSH:
            if int(header["num_contributors"]) < job.level or copy.count < int(header["expected"]):
                return Outcome.FLUSH_IGNORED, None
            copy.flags |= int(Flag.FLUSHED)
            return self._end(job, copy, Outcome.FLUSHED)
        return self._contribute(job, copy, datagram, newer, flags & FLAGS_FROM_BELOW)

    @staticmethod
    def _differs(copy: _Copy, header: NDArray[np.void], operation: Operation) -> bool:
        """Whether a packet of the copy's round is about another chunk or operation."""
        if any(int(header[name]) != getattr(copy, name) for name in CHUNK_FIELDS):
            return True
        held = (operation, Operation.RESULT)
        return operation in CONTRIBUTIONS and copy.operation not in held

    def _contribute(
        self,
        job: ReferenceJob,
        copy: _Copy,
        datagram: NDArray[np.void],
        newer: bool,
        flags: int,
    ) -> tuple[Outcome, Destination | None]:
        child = job.children[int(datagram["header"]["worker_id"])]
        if newer:
            copy.start(datagram["header"])
            copy.overwrite(datagram, flags)
            copy.arrived, copy.state = child.bit, State.OPEN
        elif copy.arrived & child.bit:
            if is_hot(datagram["header"]):
                return Outcome.NOTIFIED, Destination.SENDER
            return Outcome.DUPLICATE, None
        else:
            copy.arrived |= child.bit
            copy.add(datagram, flags)
        quorum = int(datagram["header"]["expected"]) or job.quorum
        has_quorum = job.parent is None and copy.count >= quorum
        if copy.arrived == job.children_bitmap or has_quorum:
            is_root = job.parent is None
            return self._end(job, copy, Outcome.COMPLETED if is_root else Outcome.SENT_UP)
        return Outcome.ABSORBED, None

    @staticmethod
    def _end(job: ReferenceJob, copy: _Copy, outcome: Outcome) -> tuple[Outcome, Destination]:
        if job.parent is None:
            copy.state = State.CLOSED
            return outcome, Destination.CHILDREN
        copy.state = State.SENT_UP
        return outcome, Destination.PARENT

    @staticmethod
    def _store(
        job: ReferenceJob, copy: _Copy, datagram: NDArray[np.void], newer: bool, flags: int
    ) -> tuple[Outcome, Destination | None]:
        """Handle the parent's result of the copy's round or a newer one."""
        is_awaited = not newer and copy.state is State.SENT_UP
        if not is_awaited and not (job.allow_partial and (newer or copy.state is State.OPEN)):
            return Outcome.RESULT_IGNORED, None
        if newer:
            copy.start(datagram["header"])
        copy.overwrite(datagram, flags)
        copy.state = State.CLOSED
        return Outcome.RESULT_STORED, Destination.CHILDREN

    def _fill(
        self, job: ReferenceJob, copy: _Copy, datagram: NDArray[np.void], outcome: Outcome
    ) -> NDArray[np.void]:
        """Turn the packet into what the switch sends."""
        packet = datagram.copy()
        header = packet["header"]
        if outcome is Outcome.RELAYED:
            if header["operation"] != Operation.NOTICE and job.parent is not None:
                header["worker_id"] = job.parent.child_id
            return packet
        if outcome is Outcome.NOTIFIED:
            is_current = copy.generation == job.generation
            header["operation"] = Operation.NOTICE
            header["flags"] = int(header["flags"]) & int(Flag.TO_SERVER)
            header["round"] = copy.round if is_current else 0
            header["worker_bitmap"] = copy.bitmap if is_current else 0
            header["num_contributors"] = copy.count if is_current else 0
            return packet
        flags = int(header["flags"]) & FLAGS_ECHOED
        header["worker_bitmap"], header["num_contributors"] = copy.bitmap, copy.count
        packet["values"] = copy.values
        if job.parent is not None and copy.state is State.SENT_UP:
            header["operation"] = copy.operation
            header["worker_id"] = job.parent.child_id
            header["worker_bitmap"] = job.parent.child_bitmap or copy.bitmap
            header["flags"] = flags | (copy.flags & FLAGS_FROM_BELOW)
            return packet
        flags |= copy.flags
        if job.parent is None and copy.count < job.num_workers:
            flags |= int(Flag.PARTIAL)
        if outcome is Outcome.REPLAYED:
            flags |= int(Flag.REPLAY)
        header["operation"], header["flags"] = Operation.RESULT, flags
        return packet
