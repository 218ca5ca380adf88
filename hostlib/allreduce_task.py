# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One allreduce on its way: exponents first (float tensors), then values, then the result."""

from __future__ import annotations

import zlib
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hostlib.chunks import (
    BLOCK_CHUNKS,
    Empty,
    ExponentSource,
    FloatSource,
    IntegerSource,
    TensorChunks,
)
from hostlib.errors import (
    EmptyTensorError,
    NonFiniteError,
    PeerMismatchError,
    SaturationError,
    TensorError,
    TensorTooLargeError,
    UnsupportedDtypeError,
)
from hostlib.future import AllreduceFuture
from hostlib.job_view import JobView
from hostlib.options import NonfinitePolicy, ReduceOperation
from hostlib.peers.results import RetainedResult
from hostlib.quantization import Quantizer

Quantizers = dict[np.dtype[Any], Quantizer]
"""Cache by dtype."""
SUPPORTED_DTYPES = ("float16", "float32", "float64", "int32")
POSITION_BITS: Final = 20
"""Of a header's tensor id; the bits above are a signature. Far more tensors than are under way."""
MAX_ELEMENTS = (1 << 32) - 1024
"""Ranges are 32-bit element numbers; a padded last chunk must not wrap."""


def check_tensor(array: NDArray[Any], operation: ReduceOperation) -> NDArray[Any]:
    """Return the array flat, contiguous and in native byte order (a view where possible).

    Raises EmptyTensorError, TensorTooLargeError or UnsupportedDtypeError.
    """
    if array.dtype.name not in SUPPORTED_DTYPES:
        raise UnsupportedDtypeError(
            f"dtype {array.dtype} cannot be summed in the switch; convert the array to one of"
            f" {', '.join(SUPPORTED_DTYPES)}"
        )
    if operation not in ("sum", "mean"):
        raise UnsupportedDtypeError(f"operation {operation!r}; choose 'sum' or 'mean'")
    if operation == "mean" and array.dtype.kind == "i":
        raise UnsupportedDtypeError(
            "the mean of int32 tensors is not an int32 tensor; sum them, or convert to float"
        )
    if array.size == 0:
        raise EmptyTensorError(f"array of shape {array.shape} has no elements; skip the call")
    if array.size > MAX_ELEMENTS:
        raise TensorTooLargeError(
            f"{array.size} elements; one allreduce takes {MAX_ELEMENTS}, split the array"
        )
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    return np.ascontiguousarray(native).reshape(-1)


def wire_id(number: int, operation: ReduceOperation, label: str) -> int:
    """Return what headers call the tensor of this number, from 0: docs/wire_format.md.

    Switches add up only what has the same: so it tells a mean from a sum, and labels apart.
    """
    signature = 0
    if label or operation != "sum":
        signature = zlib.crc32(f"{operation} {label}".encode()) >> POSITION_BITS
    return signature << POSITION_BITS | (number + 1) & ((1 << POSITION_BITS) - 1)


class AllreduceTask:
    """The state of one allreduce; used by the I/O thread alone once it is submitted.

    It may begin more than once: when the layout that it runs in is given up, it begins anew in the
    next one, from the array as it was submitted.
    """

    def __init__(
        self,
        number: int,
        array: NDArray[Any],
        *,
        operation: ReduceOperation,
        nonfinite: NonfinitePolicy,
        deadline_s: float,
        timeout_s: float,
        label: str = "",
    ) -> None:
        self._flat = check_tensor(array, operation)
        self.number = number
        """Position in the sequence of the job's allreduces, from 0."""
        self.tensor_id = number + 1
        """What people call it."""
        self.wire_id = wire_id(number, operation, label)
        """What headers call it."""
        self.future = AllreduceFuture(self.tensor_id, array.nbytes)
        self.deadline_s = deadline_s
        self.timeout_s = timeout_s
        self.exponents: ExponentSource | None = None
        """What the exponent stream carries first, for float tensors."""
        self.source: FloatSource | IntegerSource | None = None
        """What the value stream carries, once it is known."""
        self.is_in_values = False
        """Whether the value stream has it."""
        self.has_begun = False
        """Whether a layout runs it."""
        self._error: TensorError | None = None
        self._agreed = np.empty(0, np.int32)
        self._fetched: RetainedResult | None = None
        self._shape = array.shape
        self._operation: ReduceOperation = operation
        self._nonfinite = nonfinite

    def begin(self, view: JobView, *, retains: bool, empty: Empty = np.empty) -> None:
        """Start from the submitted array in a layout; forget what an earlier one has done."""
        values = view.values_per_packet
        self._view = view
        self._retains = retains
        self._empty = empty
        self.exponents = self.source = self._error = self._fetched = None
        self.is_in_values = False
        self.has_begun = True
        self._agreed = np.empty(0, np.int32)
        if self._flat.dtype == np.int32:
            self.source = IntegerSource(
                self.wire_id, self._flat, values, retains=retains, empty=empty
            )
            self.source.times = self.future.times
        else:
            self._chunks = TensorChunks(self._flat, values)
            self.exponents = ExponentSource(self.wire_id, self._chunks, values)
            self.exponents.times = self.future.times

    @property
    def is_settled(self) -> bool:
        """Whether the result, or the error in its place, is known without the streams."""
        return self._error is not None or self._fetched is not None

    def quantize_with(self, quantizers: Quantizers) -> None:
        """Create the value source from the agreed exponents, or settle on NonFiniteError."""
        assert self.exponents is not None
        agreed = self.exponents.agreed()
        self._agree(agreed, self.exponents.outliers(agreed), self._view.num_workers, quantizers)

    def _agree(
        self,
        agreed: NDArray[np.int32],
        outliers: NDArray[np.bool_] | None,
        num_workers: int,
        quantizers: Quantizers,
    ) -> None:
        self._agreed = agreed
        values, dtype = self._view.values_per_packet, self._flat.dtype
        if self._nonfinite == "raise":
            ranges = FloatSource.nonfinite_ranges(agreed, values, len(self._flat))
            if ranges:
                # All workers see the same exponents, so all leave this tensor out.
                self._error = NonFiniteError(self.tensor_id, ranges)
                return
        if dtype not in quantizers or not self._view.is_on_switch:
            # On the host path another thread quantises: it must not share the scratch rows.
            quantizers[dtype] = Quantizer(BLOCK_CHUNKS, values, dtype)
        self.source = FloatSource(
            self.wire_id,
            self._flat,
            self._chunks,
            agreed,
            quantizers[dtype],
            num_workers=num_workers,
            is_mean=self._operation == "mean",
            withheld=outliers,
            retains=self._retains,
            empty=self._empty,
        )
        self.source.times = self.future.times

    def load(self, result: RetainedResult, quantizers: Quantizers) -> None:
        """Settle on a result that another worker has retained.

        Raises PeerMismatchError if it is of another tensor than the one submitted here.
        """
        own = (self._flat.dtype.name, self._shape, self._operation)
        if own != (result.dtype, result.shape, result.operation):
            raise PeerMismatchError(
                f"tensor {self.tensor_id}: another worker submitted {result.operation} of"
                f" {result.dtype} {result.shape}, this one {own[2]} of {own[0]} {own[1]}; all"
                " workers must submit the same sequence"
            )
        if self.exponents is not None:
            if len(result.exponents) != self._chunks.num_chunks:
                raise self._malformed(result)
            self._agree(result.exponents, None, len(result.members), quantizers)
        if self._error is None:
            source = self.source
            assert source is not None
            if result.lanes.size != source.results.size or (
                len(result.contributors) != source.num_chunks
            ):
                raise self._malformed(result)
            lanes = result.lanes.reshape(source.results.shape)
            source.keep(lanes, result.contributors)
            source.take(0, lanes)
            source.has_saturated = result.has_saturated
        self._fetched = result
        self.future.times.note_last_result()

    def _malformed(self, result: RetainedResult) -> PeerMismatchError:
        return PeerMismatchError(
            f"tensor {self.tensor_id}: the retained result has {len(result.lanes)} lanes and"
            f" {len(result.exponents)} exponents, which is not the shape submitted here"
        )

    def _num_contributors(self) -> int:
        if self._fetched is not None:
            return self._fetched.num_contributors
        counts = [source.contributors.min() for source in (self.source, self.exponents) if source]
        return int(min(counts))

    def retained_result(self) -> RetainedResult:
        """Return what other workers need to end with the same bytes, if the task retains it."""
        if self._fetched is not None:
            return self._fetched
        lanes, contributors = np.empty(0, np.int32), np.empty(0, np.uint16)
        if self.source is not None:
            lanes, contributors = self.source.results.reshape(-1), self.source.contributors
        return RetainedResult(
            tensor=self.number,
            generation=self._view.generation,
            members=tuple(self._view.member_ids),
            dtype=self._flat.dtype.name,
            shape=self._shape,
            operation=self._operation,
            lanes=lanes,
            exponents=self._agreed,
            contributors=contributors,
            num_contributors=self._num_contributors(),
            has_saturated=self.source is not None and self.source.has_saturated,
        )

    def finish(self) -> None:
        """Give the future its result, or the error of this tensor."""
        if self._error is not None:
            self.future.set_exception(self._error)
            return
        source = self.source
        assert source is not None
        if source.has_saturated:
            self.future.set_exception(
                SaturationError(
                    f"tensor {self.tensor_id}: a sum over {self._view.num_workers} workers left"
                    " the int32 range; scale the values down or use a float dtype"
                )
            )
            return
        array = source.output.reshape(-1)[: source.num_elements].reshape(self._shape)
        members = tuple(self._view.member_ids)
        if self._fetched is not None:
            members = self._fetched.members
        self.future.set_result(array, self._num_contributors(), members)
