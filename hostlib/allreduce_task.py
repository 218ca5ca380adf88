# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One allreduce on its way: exponents first (float tensors), then values, then the result."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hostlib.chunks import BLOCK_CHUNKS, ExponentSource, FloatSource, IntegerSource, TensorChunks
from hostlib.errors import (
    EmptyTensorError,
    NonFiniteError,
    SaturationError,
    TensorTooLargeError,
    UnsupportedDtypeError,
)
from hostlib.future import AllreduceFuture
from hostlib.job_view import JobView
from hostlib.options import NonfinitePolicy, ReduceOperation
from hostlib.quantization import Quantizer

SUPPORTED_DTYPES = ("float16", "float32", "float64", "int32")
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


class AllreduceTask:
    """The state of one allreduce; used by the I/O thread alone once it is submitted."""

    def __init__(
        self,
        tensor_id: int,
        array: NDArray[Any],
        view: JobView,
        *,
        operation: ReduceOperation,
        nonfinite: NonfinitePolicy,
        deadline_s: float,
        timeout_s: float,
    ) -> None:
        self._flat = check_tensor(array, operation)
        self.future = AllreduceFuture(tensor_id)
        self.tensor_id = tensor_id
        self.deadline_s = deadline_s
        self.timeout_s = timeout_s
        self.exponents: ExponentSource | None = None
        """What the exponent stream carries first, for float tensors."""
        self.source: FloatSource | IntegerSource | None = None
        """What the value stream carries, once it is known."""
        self._shape = array.shape
        self._view = view
        self._is_mean = operation == "mean"
        self._nonfinite = nonfinite
        values = view.values_per_packet
        if self._flat.dtype == np.int32:
            self.source = IntegerSource(tensor_id, self._flat, values)
        else:
            self._chunks = TensorChunks(self._flat, values)
            self.exponents = ExponentSource(tensor_id, self._chunks, values)

    def quantize_with(self, quantizers: dict[np.dtype[Any], Quantizer]) -> None:
        """Create the value source from the agreed exponents; `quantizers` is a cache by dtype.

        Raises NonFiniteError if the policy says so, and RoundClosedError from a partial round.
        """
        assert self.exponents is not None
        view = self._view
        agreed = self.exponents.agreed()
        if self._nonfinite == "raise":
            ranges = FloatSource.nonfinite_ranges(agreed, view.values_per_packet, len(self._flat))
            if ranges:
                raise NonFiniteError(self.tensor_id, ranges)
        dtype = self._flat.dtype
        if dtype not in quantizers:
            quantizers[dtype] = Quantizer(BLOCK_CHUNKS, view.values_per_packet, dtype)
        self.source = FloatSource(
            self.tensor_id,
            self._flat,
            self._chunks,
            agreed,
            quantizers[dtype],
            num_workers=view.num_workers,
            is_mean=self._is_mean,
        )

    def finish(self) -> None:
        """Give the future its result, or SaturationError."""
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
        contributors = source.contributors.min()
        if self.exponents is not None:
            contributors = min(contributors, self.exponents.contributors.min())
        self.future.set_result(array, int(contributors))
