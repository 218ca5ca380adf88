# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The state of one allgather: this worker sends its block to all others and receives theirs."""

from __future__ import annotations

import math
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..control.view import JobView
from ..errors import (
    EmptyTensorError,
    HostlibError,
    MulticastUnavailableError,
    PeerMismatchError,
    TensorTooLargeError,
    UnsupportedDtypeError,
)
from ..future import AllgatherFuture
from ..peers.results import ALLGATHER, RetainedResult
from ..slots.wire import Words

WORD_BYTES = 4
MAX_WORDS = (1 << 32) - 1024
"""Ranges are 32-bit word numbers; a padded last chunk must not wrap."""


def check_block(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the array's bytes in C order (a view where possible).

    Raises EmptyTensorError, TensorTooLargeError or UnsupportedDtypeError.
    """
    if array.dtype.hasobject:
        raise UnsupportedDtypeError(f"dtype {array.dtype} holds Python objects, not plain bytes")
    if array.nbytes == 0:
        raise EmptyTensorError(f"array of shape {array.shape} has no bytes; skip the call")
    if array.nbytes > MAX_WORDS * WORD_BYTES:
        raise TensorTooLargeError(
            f"{array.nbytes} bytes; one allgather takes {MAX_WORDS * WORD_BYTES}, split the array"
        )
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


class AllgatherTask:
    """The state of one allgather; used by the I/O thread alone once it is submitted.

    It is in the same sequence as the allreduces. Like them it begins again when its view is left
    before it completes.
    """

    def __init__(
        self, number: int, array: NDArray[Any], *, deadline_s: float, timeout_s: float
    ) -> None:
        self._bytes = check_block(array)
        self._dtype, self._shape = array.dtype, array.shape
        self.number = number
        """Position in the job's sequence, from 0."""
        self.tensor_id = number + 1
        """Its number in messages, from 1."""
        self.wire_id = self.tensor_id & 0xFFFFFFFF
        """Its id in headers."""
        self.future = AllgatherFuture(self.tensor_id, array.nbytes)
        self.deadline_s = deadline_s
        self.timeout_s = timeout_s
        self.has_begun = False
        """Whether a view runs the allgather."""
        self.is_asked_for = False
        """Whether other workers were asked for its result, in the present view."""
        self.num_words = math.ceil(array.nbytes / WORD_BYTES)
        """Of a block."""
        self.num_chunks = 0
        """Of a block, in the present view."""
        self.signature = zlib.crc32(repr((array.dtype.str, array.shape)).encode()) & 0xFF
        """Checksum of dtype and shape, which the header carries."""
        self._error: HostlibError | None = None
        self._fetched: RetainedResult | None = None
        self._members: tuple[int, ...] = ()
        self._left: dict[int, int] = {}
        self._is_sent = False

    def begin(self, view: JobView, *, retains: bool) -> None:
        """Start in a view; forget what was done in an earlier one."""
        self._members = tuple(view.member_ids)
        self._fetched = self._error = None
        self._retains = retains
        self._generation = view.generation
        self.has_begun = True
        self.is_asked_for = False
        self._is_sent = False
        values = view.values_per_packet
        self.num_chunks = -(-self.num_words // values)
        self._left = {i: self.num_chunks for i in self._members if i != view.worker_id}
        # Of whole chunks, so that the last one is no special case.
        self._blocks = np.zeros((len(self._members), self.num_chunks, values), np.uint32)
        own = self._blocks[self._members.index(view.worker_id)]
        own.reshape(-1).view(np.uint8)[: len(self._bytes)] = self._bytes
        self.chunks: Words = own
        """This worker's block as words in wire order, shape (num_chunks, values_per_packet)."""

    def refuse(self) -> None:
        """Settle on the error of a view without a switch that copies."""
        self._error = MulticastUnavailableError(
            f"tensor {self.tensor_id}: the job moved to a view without a switch that copies to"
            " all workers; send the block by other means"
        )

    def store(self, worker_id: int, first: int, words: Words) -> None:
        """Take chunks of another worker's block, from chunk `first` on; each comes once."""
        if self._fetched is not None:
            return
        self._blocks[self._members.index(worker_id), first : first + len(words)] = words
        self._left[worker_id] -= len(words)

    def note_sent(self) -> None:
        """Learn that all of this worker's chunks were sent, and are kept by the sender."""
        self._is_sent = True

    @property
    def missing_workers(self) -> list[int]:
        """Workers whose blocks are not complete."""
        return [worker_id for worker_id, left in self._left.items() if left]

    @property
    def is_settled(self) -> bool:
        """Whether the result, or the error in its place, is known."""
        if self._error is not None or self._fetched is not None:
            return True
        return self.has_begun and self._is_sent and not any(self._left.values())

    def load(self, result: RetainedResult) -> None:
        """Settle on a result that another worker has retained.

        Raises PeerMismatchError if it is of another tensor than the one submitted here.
        """
        own = (ALLGATHER, self._dtype.name, self._shape)
        other = (result.operation, result.dtype, result.shape)
        if own != other:
            raise PeerMismatchError(
                f"tensor {self.tensor_id}: another worker submitted {other[0]} of {other[1]}"
                f" {other[2]}, this one {own[0]} of {own[1]} {own[2]}; all workers must submit the"
                " same sequence"
            )
        if len(result.values) != len(result.members) * self.num_words:
            self._error = MulticastUnavailableError(
                f"tensor {self.tensor_id}: the job completed it without copies by a switch; send"
                " the block by other means"
            )
            return
        self._members = result.members
        self._blocks = np.zeros((len(result.members), 1, self.num_words), np.uint32)
        self._blocks.reshape(-1)[:] = result.values.view(np.uint32)
        self._fetched = result
        self.future.times.note_last_result()

    def retained_result(self) -> RetainedResult:
        """Return what other workers need to end with the same bytes."""
        if self._fetched is not None:
            return self._fetched
        words = np.empty(0, np.int32)
        if self._retains and self._error is None:
            flat = self._blocks.reshape(len(self._members), -1)[:, : self.num_words]
            words = flat.flatten().view(np.int32)  # a copy: the arrays are the caller's
        return RetainedResult(
            tensor=self.number,
            generation=self._generation,
            members=self._members,
            dtype=self._dtype.name,
            shape=self._shape,
            operation=ALLGATHER,
            values=words,
            exponents=np.empty(0, np.int32),
            contributors=np.empty(0, np.uint16),
            num_contributors=len(self._members),
        )

    def finish(self) -> None:
        """Give the future its result, or the error of this allgather."""
        if self._error is not None:
            self.future.set_exception(self._error)
            return
        size = self._dtype.itemsize * math.prod(self._shape)
        arrays = [
            block.reshape(-1).view(np.uint8)[:size].view(self._dtype).reshape(self._shape)
            for block in self._blocks
        ]
        self.future.set_result(arrays, self._members)
