# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The state of one allreduce: exponents first (float tensors), then values, then the result."""

from __future__ import annotations

import zlib
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..control.submitted_tensor import SubmittedTensor
from ..control.view import JobView
from ..errors import (
    EmptyTensorError,
    NonFiniteError,
    PeerMismatchError,
    SaturationError,
    TensorError,
    TensorTooLargeError,
    UnsupportedDtypeError,
)
from ..future import AllreduceFuture
from ..loss_tolerance import Delivery, LossTolerance
from ..native.structures import ToleranceStruct
from ..options import ReduceOperation, Summation
from ..peers.results import RetainedResult
from ..summation.chunks import (
    Empty,
    ExponentSource,
    FloatSource,
    IntegerSource,
    Summand,
    TensorChunks,
)
from ..summation.exact_chunks import (
    ExactLayout,
    ExactSource,
    is_small,
    num_range_lanes,
    range_source,
)
from ..summation.maxima import MAXIMA, MAXIMUM_DTYPES, MaximumSource, nan_ranges
from ..summation.native_source import NativeSource
from ..summation.quantization import large_chunks

SUPPORTED_DTYPES = ("float16", "float32", "float64", "int32")
POSITION_BITS: Final = 20
"""Bits of a header's tensor id that count tensors; the bits above are a signature. Far fewer
tensors than they can count are under way at a time."""
MAX_ELEMENTS = (1 << 32) - 1024
"""Ranges are 32-bit element numbers; a padded last chunk must not wrap."""


def check_tensor(array: NDArray[Any], summation: Summation) -> NDArray[Any]:
    """Return the array flat, contiguous, aligned, in native byte order (a view where possible).

    Raises EmptyTensorError, TensorTooLargeError or UnsupportedDtypeError.
    """
    if array.dtype.name not in SUPPORTED_DTYPES:
        raise UnsupportedDtypeError(
            f"dtype {array.dtype} cannot be summed in the switch; convert the array to one of"
            f" {', '.join(SUPPORTED_DTYPES)}"
        )
    operation, round_to = summation.operation, summation.round_to
    if operation not in ("sum", "mean", *MAXIMA):
        raise UnsupportedDtypeError(
            f"operation {operation!r}; choose 'sum', 'mean', 'max' or 'min'"
        )
    if operation in MAXIMA and array.dtype.name not in MAXIMUM_DTYPES:
        raise UnsupportedDtypeError(
            f"{operation!r} of {array.dtype}: a lane of the switch compares 32 bits; convert the"
            " array to float32 or int32"
        )
    is_exact_float32 = array.dtype.name == "float32" and summation.precision == "exact"
    if round_to and (operation in MAXIMA or not is_exact_float32):
        raise UnsupportedDtypeError(
            f"round_to={round_to!r} of the {operation} of {array.dtype} with {summation.precision}"
            " precision; it is for exact sums of float32 arrays"
        )
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
    flat = np.ascontiguousarray(native).reshape(-1)
    return flat if flat.flags.aligned else flat.copy()


def wire_id(number: int, summation: Summation, *, is_exact: bool = False, dtype: str = "") -> int:
    """Return the id in headers of the tensor of this number, from 0: docs/wire_format.md.

    A switch adds up only packets with the same id. So sums, means, limbs, maxima of each dtype and
    labels have different ids.
    """
    operation, label, tolerance = summation.operation, summation.label, summation.tolerance
    signature = 0
    if label or operation != "sum" or is_exact or tolerance:
        compared = f" {dtype}" * (operation in MAXIMA)
        text = f"{'exact ' * is_exact}{operation}{compared} {label}"
        if tolerance:
            text += f"\0{tolerance.loss!r} {tolerance.least_of_worker!r}"
            text += f" {tolerance.stale!r}" * (tolerance.stale > 0)
        signature = zlib.crc32(text.encode()) >> POSITION_BITS
    return signature << POSITION_BITS | (number + 1) & ((1 << POSITION_BITS) - 1)


class AllreduceTask:
    """The state of one allreduce; used by the I/O thread alone once it is submitted.

    It may begin more than once: when the view that it runs in is given up, it begins again in the
    next one, from the array as it was submitted.
    """

    def __init__(
        self,
        number: int,
        array: NDArray[Any],
        summation: Summation,
        *,
        deadline_s: float,
        timeout_s: float,
    ) -> None:
        self._flat = check_tensor(array, summation)
        self._is_maximum = summation.operation in MAXIMA
        is_sum_of_floats = self._flat.dtype != np.int32 and not self._is_maximum
        self._is_exact = is_sum_of_floats and summation.precision == "exact"
        self.number = number
        """Position in the sequence of the job's allreduces, from 0."""
        self.tensor_id = number + 1
        """Its number in messages, from 1."""
        self.wire_id = wire_id(
            number, summation, is_exact=self._is_exact, dtype=self._flat.dtype.name
        )
        """Its id in headers."""
        self.future = AllreduceFuture(self.tensor_id, array.nbytes)
        self.deadline_s = deadline_s
        self.timeout_s = timeout_s
        self.exponents: ExponentSource | None = None
        """What the exponent stream carries first, for float tensors."""
        self.source: FloatSource | ExactSource | IntegerSource | None = None
        """What the value stream carries, once it is known."""
        self.is_in_values = False
        """Whether the value stream has the tensor."""
        self.has_begun = False
        """Whether a view runs the tensor."""
        self._error: TensorError | None = None
        self._agreed = np.empty(0, np.int32)
        self._fetched: RetainedResult | None = None
        self._shape = array.shape
        self._operation: ReduceOperation = summation.operation
        self._summation = summation

    def begin(self, view: JobView, *, retains: bool, empty: Empty = np.empty) -> None:
        """Start from the submitted array in a view; forget what was done in an earlier one."""
        values = view.values_per_packet
        self._view = view
        self._summand = Summand(
            tensor_id=self.wire_id,
            flat=self._flat,
            is_mean=self._operation == "mean",
            retains=retains,
            empty=empty,
        )
        self.exponents = self.source = self._error = self._fetched = None
        self.is_in_values = False
        self.has_begun = True
        self._agreed = np.empty(0, np.int32)
        flat = self._flat
        if self._is_maximum:
            self.source = MaximumSource(self._summand, self._operation, values)
        elif flat.dtype == np.int32:
            self.source = IntegerSource(self._summand, values)
        elif not self._is_exact:
            self._chunks = TensorChunks(flat, values)
            self.exponents = ExponentSource(self.wire_id, self._chunks, values)
        elif self._is_small(view.num_workers):
            self.source = self._exact_source(self._exact_layout(None, view.num_workers), None)
        else:
            self.exponents = range_source(self.wire_id, flat, values)
        if self.exponents is not None:
            self.exponents.times = self.future.times
            self.exponents.priority = view.control_priority  # all values wait for it
        if self.source is not None:
            self._complete_source(self.source)

    def _complete_source(self, values: FloatSource | ExactSource | IntegerSource) -> None:
        """Give the values what does not depend on their dtype."""
        values.times = self.future.times
        values.priority = self._view.tensor_priority(self._summation.priority)
        if self._summation.large_first and isinstance(values, FloatSource):
            values.large = large_chunks(self._agreed)
            values.large_priority = self._view.tensor_priority(self._summation.priority + 1)
        self._tolerate(values)

    def _tolerate(self, values: FloatSource | ExactSource | IntegerSource) -> None:
        """Let the sums lack what is tolerated, and note who is in them."""
        view = self._view
        # All lanes of an exact number must have the same contributors, so nothing is let go there.
        if self._is_exact:
            return
        if view.may_be_stale and self._tolerance is not None:
            values.may_lose = self._tolerance.num_stale(values.num_chunks)
        if not (view.is_on_switch and view.straggler.allow_partial):
            return
        values.bitmaps = np.zeros(values.num_chunks, np.uint32)
        tolerance = self._tolerance
        if tolerance is not None and tolerance.lost(view.num_workers, values.num_chunks):
            place = view.member_ids.index(view.worker_id)
            left, limit = tolerance.budget(view.num_workers, values.num_chunks, place)
            values.tolerance = ToleranceStruct(left=left, limit=limit)

    @property
    def submitted(self) -> SubmittedTensor:
        """What all workers must submit alike."""
        precision = "exact " if self._is_exact else "block "
        if self._flat.dtype == np.int32:
            precision = "int32 "
        if self._is_maximum:
            precision = ""  # values are compared, whatever the dtype
        return SubmittedTensor(
            number=self.number,
            num_elements=len(self._flat),
            dtype=self._flat.dtype.name,
            operation=f"{precision}{self._operation}",
            label=self._summation.label,
            tolerance=self._summation.tolerance,
        )

    @property
    def _tolerance(self) -> LossTolerance | None:
        """What the sums may lack; None in a job that tolerates no loss, and for maxima."""
        of_job = self._view.straggler.tolerance
        if of_job is None or self._is_maximum:
            return None
        return self._summation.tolerance or of_job

    @property
    def is_settled(self) -> bool:
        """Whether the result, or the error in its place, is known without the streams."""
        return self._error is not None or self._fetched is not None

    def quantize(self) -> None:
        """Create the value source from the agreed exponents, or settle on NonFiniteError."""
        assert self.exponents is not None
        agreed, outliers = self.exponents.agreed(), None
        if self._view.straggler.allow_partial:
            outliers = self.exponents.outliers(agreed)
        self._agree(agreed, outliers, self._view.num_workers)

    def _agree(
        self,
        agreed: NDArray[np.int32],
        outliers: NDArray[np.bool_] | None,
        num_workers: int,
    ) -> None:
        self._agreed = agreed
        values = self._view.values_per_packet
        layout = self._exact_layout(agreed, num_workers) if self._is_exact else None
        if self._summation.nonfinite == "raise":
            if layout is not None:
                ranges = layout.nonfinite_ranges
            else:
                ranges = FloatSource.nonfinite_ranges(agreed, values, len(self._flat))
            if ranges:
                # All workers see the same exponents, so all leave this tensor out.
                self._error = NonFiniteError(self.tensor_id, ranges)
                return
        if layout is not None:
            self._error = self._obstacle(layout)
            if self._error is None:
                self.source = self._exact_source(layout, outliers)
        else:
            self.source = FloatSource(
                self._summand, agreed, values, num_workers=num_workers, withheld=outliers
            )
        if self.source is not None:
            self._complete_source(self.source)

    def _is_small(self, num_workers: int) -> bool:
        """Whether the exact sum needs no agreement before."""
        most_lanes = None
        if self._view.straggler.allow_partial:
            most_lanes = self._view.values_per_packet
        return is_small(len(self._flat), self._flat.dtype.name, num_workers, most_lanes)

    def _exact_layout(self, agreed: NDArray[np.int32] | None, num_workers: int) -> ExactLayout:
        return ExactLayout(
            len(self._flat),
            self._view.values_per_packet,
            dtype=self._flat.dtype.name,
            num_workers=num_workers,
            ranges=agreed,
        )

    def _exact_source(self, layout: ExactLayout, outliers: NDArray[np.bool_] | None) -> ExactSource:
        return ExactSource(
            self._summand,
            layout,
            self._view.values_per_packet,
            round_to=self._summation.round_to or self._flat.dtype.name,
            is_plain=self.exponents is None,
            withheld=outliers,
        )

    def _obstacle(self, layout: ExactLayout) -> TensorError | None:
        """Return why the agreed ranges rule an exact sum out; the same on all workers."""
        view = self._view
        num_lanes = layout.num_chunks * view.values_per_packet
        what = f"tensor {self.tensor_id}: the exact sum of {len(self._flat)} values"
        remedy = "split the array, or ask for precision='block'"
        if num_lanes > MAX_ELEMENTS:
            return TensorTooLargeError(
                f"{what} takes {num_lanes} lanes, and one allreduce takes {MAX_ELEMENTS}; {remedy}"
            )
        if layout.is_spread and view.is_on_switch and view.straggler.allow_partial:
            return TensorTooLargeError(
                f"{what}: the range of bits is so wide that one value takes more than the"
                f" {view.values_per_packet} lanes of a packet. In a job that may leave late workers"
                " out, all lanes of a value must have the same contributors; ask for"
                " precision='block'"
            )
        return None

    def load(self, result: RetainedResult) -> None:
        """Settle on a result that another worker has retained.

        Raises PeerMismatchError if it is of another tensor than the one submitted here.
        """
        own = self._kind
        if own != (result.dtype, result.shape, result.operation, result.precision):
            raise PeerMismatchError(
                f"tensor {self.tensor_id}: another worker submitted {result.operation} of"
                f" {result.dtype} {result.shape} with {result.precision} precision, this one"
                f" {own[2]} of {own[0]} {own[1]} with {own[3]} precision; all workers must submit"
                " the same sequence"
            )
        num_workers = len(result.members)
        if self._is_exact and self._is_small(num_workers):
            # The result may be of an earlier view, with other limbs.
            self.source = self._exact_source(self._exact_layout(None, num_workers), None)
        elif self._flat.dtype != np.int32 and not self._is_maximum:
            if len(result.exponents) != self._num_agreed:
                raise self._malformed(result)
            self._agree(result.exponents, None, num_workers)
        if self._error is None:
            source = self.source
            assert source is not None
            counts = result.contributors
            is_whole = len(counts) == source.num_chunks
            # The worker that retains the result may have done without as many as this one.
            tolerance = None if self._is_exact else self._tolerance
            most = 0 if tolerance is None else tolerance.num_stale(len(counts))
            is_whole = is_whole and np.count_nonzero(counts == 0) <= most
            is_whole = is_whole and len(result.bitmaps) in (0, source.num_chunks)
            if result.values.size != source.results.size or not is_whole:
                raise self._malformed(result)
            values = result.values.reshape(source.results.shape)
            source.keep(values, result.contributors)
            NativeSource(source).take(0, values)
            source.has_saturated = result.has_saturated
        self._fetched = result
        self.future.times.note_last_result()

    @property
    def _kind(self) -> tuple[str, tuple[int, ...], str, str]:
        is_exact = self._is_exact or self._is_maximum or self._flat.dtype == np.int32
        precision = "exact" if is_exact else "block"
        return self._flat.dtype.name, self._shape, self._operation, precision

    @property
    def _num_agreed(self) -> int:
        """Lanes that the workers agree on first."""
        if self._is_exact:
            return num_range_lanes(len(self._flat))
        return self._chunks.num_chunks

    def _malformed(self, result: RetainedResult) -> PeerMismatchError:
        return PeerMismatchError(
            f"tensor {self.tensor_id}: the retained result has {len(result.values)} sums and"
            f" {len(result.exponents)} exponents, which is not the shape submitted here"
        )

    def _delivery(self) -> Delivery | None:
        """Return which contributions are in the sums; None where chunks are no ranges of values."""
        source = self.source
        if self._is_exact or source is None:
            return None
        if self._fetched is not None:
            members, contributors, bitmaps = (
                self._fetched.members,
                self._fetched.contributors,
                self._fetched.bitmaps if len(self._fetched.bitmaps) else None,
            )
        else:
            view = self._view
            members, contributors, bitmaps = view.member_ids, source.contributors, source.bitmaps
            if not view.has_worker_bitmaps:
                bitmaps = None
        kept = source.contributors == 0  # results that this worker has done without
        return Delivery(
            members,
            len(self._flat),
            self._view.values_per_packet,
            np.where(kept, np.uint16(len(members)), contributors),
            bitmaps,
            tolerance=self._tolerance,
            kept=kept,
        )

    def _keep_previous(self, result: NDArray[Any], delivery: Delivery | None) -> None:
        """Put old values where results were done without, and nothing into what is retained."""
        if delivery is None or not delivery.num_stale:
            return
        previous = self._summation.previous
        delivery.keep_previous(result, None if previous is None else previous.reshape(-1))
        source = self.source
        assert source is not None
        # Else they are the result itself.
        if self._fetched is None and not np.may_share_memory(source.results, source.output):
            source.results[source.contributors == 0] = 0

    def _num_contributors(self) -> int:
        if self._fetched is not None:
            return self._fetched.num_contributors
        if not self._view.straggler.allow_partial:
            return self._view.num_workers
        counts = [source.contributors.min() for source in (self.source, self.exponents) if source]
        return int(min(counts))

    def retained_result(self) -> RetainedResult:
        """Return what other workers need to end with the same bytes, if the task retains it."""
        if self._fetched is not None:
            return self._fetched
        values, contributors = np.empty(0, np.int32), np.empty(0, np.uint16)
        bitmaps = np.empty(0, np.uint32)
        if self.source is not None:
            values, contributors = self.source.results.reshape(-1), self.source.contributors
            if self.source.bitmaps is not None and self._view.has_worker_bitmaps:
                bitmaps = self.source.bitmaps
        return RetainedResult(
            tensor=self.number,
            generation=self._view.generation,
            members=tuple(self._view.member_ids),
            dtype=self._flat.dtype.name,
            shape=self._shape,
            operation=self._operation,
            precision=self._kind[3],
            values=values,
            exponents=self._agreed,
            contributors=contributors,
            bitmaps=bitmaps,
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
        if isinstance(source, ExactSource) and self._summation.nonfinite == "raise":
            ranges = sorted(source.nonfinite_ranges)
            if ranges:
                self.future.set_exception(NonFiniteError(self.tensor_id, ranges))
                return
        if source.has_saturated:
            self.future.set_exception(
                SaturationError(
                    f"tensor {self.tensor_id}: a sum over {self._view.num_workers} workers left"
                    " the int32 range; scale the values down or use a float dtype"
                )
            )
            return
        flat, delivery = source.output.reshape(-1)[: len(self._flat)], self._delivery()
        if self._is_maximum and self._summation.nonfinite == "raise":
            ranges = nan_ranges(flat)
            if ranges:
                self.future.set_exception(NonFiniteError(self.tensor_id, ranges, "NaN"))
                return
        self._keep_previous(flat, delivery)
        array = flat.reshape(self._shape)
        members = tuple(self._view.member_ids)
        if self._fetched is not None:
            members = self._fetched.members
        self.future.set_result(array, self._num_contributors(), members, delivery)
