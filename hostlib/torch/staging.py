# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Tensors to numpy arrays for the session, and results back into the tensors.

The session reads an array until its allreduce ends and returns a new one; so a contiguous CPU
tensor is lent to it without a copy, and everything else goes through a copy of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray

Array = NDArray[Any]

ARRAY_DTYPES: dict[torch.dtype, torch.dtype] = {
    torch.float16: torch.float16,
    torch.bfloat16: torch.float32,
    torch.float32: torch.float32,
    torch.float64: torch.float64,
    torch.int32: torch.int32,
}
"""Dtypes that are summed on the switch, and the dtype in which the session gets them."""


_from_numpy: Callable[[Array], torch.Tensor] = cast("Any", torch).from_numpy


class Staging(Protocol):
    """The way of one collective's values between tensors and an array."""

    @property
    def is_immediate(self) -> bool:
        """Whether `gather` returns at once, without a copy or a wait."""
        ...

    def gather(self) -> Array:
        """Return the values; the array does not change until `scatter`, and is not written to."""
        ...

    def scatter(self, result: Array) -> None:
        """Write the result into the tensors."""
        ...


def writable(tensor: torch.Tensor) -> Array:
    """Return the memory of a CPU tensor as an array, strides and all; bfloat16 as int16.

    Writing through it does not count as a change for autograd, as writing by Gloo does not.
    """
    plain = tensor.detach()
    if plain.dtype == torch.bfloat16:
        plain = plain.view(torch.int16)
    return plain.numpy()


class HostStaging:
    """CPU tensors of one dtype that is summed on the switch, one after the other."""

    def __init__(self, tensors: list[torch.Tensor], *, is_written: bool = True) -> None:
        self._tensors = tensors
        self._is_written = is_written
        self._dtype = ARRAY_DTYPES[tensors[0].dtype]
        self.is_immediate = (
            len(tensors) == 1 and tensors[0].is_contiguous() and self._dtype == tensors[0].dtype
        )

    def gather(self) -> Array:
        """Return one flat array; the tensor's own memory where that is possible."""
        flat = [tensor.detach().reshape(-1).to(self._dtype) for tensor in self._tensors]
        return (flat[0] if len(flat) == 1 else torch.cat(flat)).numpy()

    def scatter(self, result: Array) -> None:
        """Write the sums into the tensors, rounded to their dtype."""
        if not self._is_written:
            return
        start = 0
        for tensor in self._tensors:
            part = _from_numpy(result[start : start + tensor.numel()])
            values = writable(part.to(tensor.dtype).reshape(tensor.shape))
            np.copyto(writable(tensor), values)
            start += tensor.numel()
