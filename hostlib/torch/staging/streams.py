# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Streams for copies between a device and host memory, in parallel with the device's other work."""

from __future__ import annotations

import contextlib
from typing import Any, Protocol

import torch
from torch import Tensor


class CopyStream(Protocol):
    """Runs the copies of one syncer job, one after the other."""

    def follow(self, mark: Any) -> None:
        """Let later copies wait for the work that `mark_now` has marked."""
        ...

    def context(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context in which tensor operations run on this stream."""
        ...

    def synchronize(self) -> None:
        """Wait until all copies are made."""
        ...


class HostCopyStream:
    """Copies tensors in host memory at once."""

    def follow(self, mark: Any) -> None:
        """Do nothing: on the host the marked work is done."""

    def context(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context that changes nothing."""
        return contextlib.nullcontext()

    def synchronize(self) -> None:
        """Return at once."""


class CudaCopyStream:
    """A separate stream on a GPU: copies to pinned memory run during the backward pass."""

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device)

    def follow(self, mark: Any) -> None:
        """Let later copies wait for the marked work."""
        if mark is not None:
            self._stream.wait_event(mark)

    def context(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context in which operations of this thread run on this stream."""
        return torch.cuda.stream(self._stream)

    def synchronize(self) -> None:
        """Wait until all copies are made."""
        self._stream.synchronize()


def open_stream(device: torch.device) -> CopyStream:
    """Return a stream for copies from and to a device."""
    return CudaCopyStream(device) if device.type == "cuda" else HostCopyStream()


def mark_now(device: torch.device) -> Any:
    """Mark the work that the calling thread has given the device so far; None on the host."""
    if device.type != "cuda":
        return None
    return torch.cuda.current_stream(device).record_event()


def host_tensor(num_values: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return a flat host tensor for copies from and to a device, pinned for a GPU."""
    is_pinned = device.type == "cuda"
    # The device is named, because a program may have set another default.
    return torch.empty(num_values, dtype=dtype, device="cpu", pin_memory=is_pinned)


def to_host(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """Start a copy of a tensor with any strides; it is complete once the stream is synchronised.

    A contiguous host tensor of this dtype is returned itself.
    """
    if tensor.device.type == "cpu":
        return tensor.to(dtype).contiguous()
    host = host_tensor(tensor.numel(), dtype, tensor.device).view(tensor.shape)
    return host.copy_(tensor, non_blocking=True)
