# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Converts tensors to numpy arrays for the session, and writes results back into the tensors.

The session reads an array until its allreduce ends, and returns a new array. So it reads a
contiguous CPU tensor without a copy; every other tensor is copied.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray

from ...options import Rounding

HostArray = NDArray[Any]

ARRAY_DTYPES: dict[torch.dtype, torch.dtype] = {
    torch.float16: torch.float16,
    torch.bfloat16: torch.float32,
    torch.float32: torch.float32,
    torch.float64: torch.float64,
    torch.int32: torch.int32,
}
"""Dtypes that are summed on the switch, and the dtype in which the session gets them."""
COMPARED_DTYPES: dict[torch.dtype, torch.dtype] = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.float32: torch.float32,
    torch.int32: torch.int32,
}
"""The same of maxima and minima: a number that is widened and narrowed again keeps its bits."""
INT32_BYTES = 4
ROUNDINGS: dict[torch.dtype, Rounding] = {torch.bfloat16: "bfloat16"}
"""Final formats of dtypes that the session gets as another dtype."""

from_numpy: Callable[[HostArray], torch.Tensor] = cast("Any", torch).from_numpy


class Staging(Protocol):
    """Moves the values of one collective between its tensors and an array."""

    @property
    def is_immediate(self) -> bool:
        """Whether `gather` returns at once, without a copy or a wait."""
        ...

    @property
    def round_to(self) -> Rounding | None:
        """The format to which exact sums are rounded, if it is not the array's dtype."""
        ...

    def gather(self) -> HostArray:
        """Return the values as a flat array, which nobody may write to until `scatter`."""
        ...

    def scatter(self, result: HostArray) -> None:
        """Write the flat result into the tensors, or start the copies to a device."""
        ...

    def after_scatter(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context in which events recorded on a device come after `scatter`."""
        ...

    def make_visible(self) -> None:
        """Let the caller's next work on a device see what `scatter` wrote."""
        ...

    def visibility(self) -> Callable[[], None] | None:
        """Return what does the same without keeping the tensors alive; None: nothing is to do."""
        ...


class HostMemory:
    """Base of stagings without a device, whose results are visible once written."""

    def after_scatter(self) -> contextlib.AbstractContextManager[Any]:
        """Do nothing."""
        return contextlib.nullcontext()

    def make_visible(self) -> None:
        """Do nothing."""

    def visibility(self) -> Callable[[], None] | None:
        """Return None."""
        return None


def mode_of(tensor: torch.Tensor) -> contextlib.AbstractContextManager[Any]:
    """Return a context in which any thread may write to a tensor, even an inference tensor."""
    if tensor.is_inference():
        return torch.inference_mode()
    return contextlib.nullcontext()


def writable(tensor: torch.Tensor) -> HostArray:
    """Return the memory of a CPU tensor as an array with its strides; bfloat16 as int16.

    Autograd does not notice writes through the array, as with writes by Gloo.
    """
    plain = tensor.detach()
    if plain.dtype == torch.bfloat16:
        plain = plain.view(torch.int16)
    return plain.numpy()


def write_parts(tensors: Sequence[torch.Tensor], result: HostArray) -> None:
    """Write consecutive parts of a flat result into CPU tensors, rounded to their dtype."""
    start = 0
    for tensor in tensors:
        part = result[start : start + tensor.numel()].reshape(tuple(tensor.shape))
        start += tensor.numel()
        if tensor.dtype == torch.bfloat16:
            part = writable(from_numpy(part).to(torch.bfloat16))
        np.copyto(writable(tensor), part)


class SumStaging(HostMemory):
    """CPU tensors of one dtype, concatenated for a reduction on the switch.

    `is_kept`: this rank keeps the result; in a reduce only the root does. `dtypes`: in which the
    session gets them.
    """

    def __init__(
        self,
        tensors: Sequence[torch.Tensor],
        *,
        is_kept: bool = True,
        dtypes: Mapping[torch.dtype, torch.dtype] = ARRAY_DTYPES,
    ) -> None:
        self._tensors = tensors
        self._is_kept = is_kept
        self._dtype = dtypes[tensors[0].dtype]
        first = tensors[0]
        self.round_to: Rounding | None = ROUNDINGS.get(first.dtype)
        self.is_immediate = (
            len(tensors) == 1 and first.is_contiguous() and self._dtype == first.dtype
        )

    def gather(self) -> HostArray:
        """Return one flat array, the tensor's own memory if possible."""
        flat = [tensor.detach().reshape(-1).to(self._dtype) for tensor in self._tensors]
        return (flat[0] if len(flat) == 1 else torch.cat(flat)).numpy()

    def scatter(self, result: HostArray) -> None:
        """Write the results into the tensors, rounded to their dtype."""
        if self._is_kept:
            write_parts(self._tensors, result)


class BitStaging(HostMemory):
    """A CPU tensor of any dtype; all ranks get the bits of the root.

    The root sends its bits as int32 and the others send zeros, so the sum is exact.
    """

    is_immediate = False
    round_to: Rounding | None = None

    def __init__(self, tensor: torch.Tensor, *, is_root: bool) -> None:
        self._tensor = tensor
        self._is_root = is_root
        self._num_bytes = tensor.numel() * tensor.element_size()

    def gather(self) -> HostArray:
        """Return the root's bits as int32, padded with zero bytes, or as many zeros."""
        num_values = -(-self._num_bytes // INT32_BYTES)
        if not self._is_root:
            return np.zeros(num_values, np.int32)
        octets = self._octets(self._tensor)
        if len(octets) % INT32_BYTES:
            octets = np.concatenate([octets, np.zeros(-len(octets) % INT32_BYTES, np.uint8)])
        return octets.view(np.int32)

    def scatter(self, result: HostArray) -> None:
        """Write the root's bits into the tensor of another rank."""
        if self._is_root:
            return
        octets = result.view(np.uint8)[: self._num_bytes]
        if self._tensor.is_contiguous():
            np.copyto(self._octets(self._tensor), octets)
            return
        values = from_numpy(octets.copy()).view(self._tensor.dtype)
        with mode_of(self._tensor):
            self._tensor.detach().copy_(values.reshape(self._tensor.shape))

    @staticmethod
    def _octets(tensor: torch.Tensor) -> NDArray[np.uint8]:
        return tensor.detach().reshape(-1).contiguous().view(torch.uint8).numpy()
