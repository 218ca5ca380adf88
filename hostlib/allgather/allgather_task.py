# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The state of one allgather: this worker sends its block to all others and receives theirs."""

from __future__ import annotations

import math
import zlib
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ..control.submitted_tensor import SubmittedTensor
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
from ..native.library import address
from ..native.structures import AllgatherStruct
from ..peers.results import ALLGATHER, RetainedResult

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


@final
class NativeAllgather:
    """The library's structure of an allgather, and the memory that it writes to."""

    def __init__(self, task: AllgatherTask, blocks: NDArray[np.uint32]) -> None:
        """`blocks`: of all members, in their order; those of the others are to be written."""
        self._times = task.future.times
        self._blocks = blocks  # stays while the library uses it, whatever becomes of the task
        self.struct = AllgatherStruct(
            tensor_id=task.wire_id,
            num_chunks=task.num_chunks,
            num_words=task.num_words,
            signature=task.signature,
            blocks=address(blocks),
        )

    @property
    def has_ended(self) -> bool:
        """Whether the library is done with it: all blocks are here, and all chunks sent."""
        return self.struct.is_sent and self.struct.is_complete

    def note_times(self) -> None:
        """Tell the future when packets were sent and blocks complete."""
        struct = self.struct
        if struct.first_sent_s:
            self._times.note_first_packet(struct.first_sent_s)
        if struct.is_complete:
            self._times.note_last_result(struct.last_result_s)


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
        self.native: NativeAllgather | None = None
        """What the library knows of it, in the present view; None before the first one."""
        self._error: HostlibError | None = None
        self._fetched: RetainedResult | None = None
        self._members: tuple[int, ...] = ()
        self._others: tuple[int, ...] = ()

    def begin(self, view: JobView, *, retains: bool) -> None:
        """Start in a view; forget what was done in an earlier one."""
        self._members = tuple(view.member_ids)
        self._fetched = self._error = None
        self._retains = retains
        self._generation = view.generation
        self.has_begun = True
        self.is_asked_for = False
        values = view.values_per_packet
        self.num_chunks = -(-self.num_words // values)
        self._others = tuple(i for i in self._members if i != view.worker_id)
        # Of whole chunks, so that the last one is no special case.
        self._blocks = np.zeros((len(self._members), self.num_chunks, values), np.uint32)
        own = self._blocks[self._members.index(view.worker_id)]
        own.reshape(-1).view(np.uint8)[: len(self._bytes)] = self._bytes
        self.native = NativeAllgather(self, self._blocks)

    def refuse(self) -> None:
        """Settle on the error of a view without a switch that copies."""
        self._error = MulticastUnavailableError(
            f"tensor {self.tensor_id}: the job moved to a view without a switch that copies to"
            " all workers; send the block by other means"
        )

    @property
    def submitted(self) -> SubmittedTensor:
        """What all workers must submit alike."""
        return SubmittedTensor(
            number=self.number,
            num_elements=math.prod(self._shape),
            dtype=self._dtype.name,
            operation="allgather",
        )

    @property
    def missing_workers(self) -> list[int]:
        """Workers whose blocks are not complete."""
        if self.native is None:
            return []
        left = self.native.struct.left  # of the most others that there can be
        return [worker_id for worker_id, count in zip(self._others, left, strict=False) if count]

    @property
    def is_settled(self) -> bool:
        """Whether the result, or the error in its place, is known."""
        if self._error is not None or self._fetched is not None:
            return True
        return self.has_begun and self.native is not None and self.native.has_ended

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
