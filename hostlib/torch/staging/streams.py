# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Copies between a device and host memory, beside the device's other work."""

from __future__ import annotations

import contextlib
from typing import Any, Protocol

import torch
from torch import Tensor


class CopyStream(Protocol):
    """Where the copies of one syncer job run, one after the other."""

    def follow(self, mark: Any) -> None:
        """Start nothing before what `mark_now` marked is done."""
        ...

    def context(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context in which tensor operations run on this stream."""
        ...

    def synchronize(self) -> None:
        """Wait until all copies are made."""
        ...


class HostStream:
    """For tensors in host memory: copies are made at once."""

    def follow(self, mark: Any) -> None:
        """Start nothing before what was marked is done; on the host it is."""

    def context(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context that changes nothing."""
        return contextlib.nullcontext()

    def synchronize(self) -> None:
        """Return at once."""


class CudaStream:
    """A stream of its own on a GPU: copies to pinned memory run beside the backward pass."""

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device)

    def follow(self, mark: Any) -> None:
        """Start nothing before what was marked is done."""
        if mark is not None:
            self._stream.wait_event(mark)

    def context(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context in which operations of this thread run on this stream."""
        return torch.cuda.stream(self._stream)

    def synchronize(self) -> None:
        """Wait until all copies are made."""
        self._stream.synchronize()


def open_stream(device: torch.device) -> CopyStream:
    """Return a stream for a device."""
    return CudaStream(device) if device.type == "cuda" else HostStream()


def mark_now(device: torch.device) -> Any:
    """Mark what the calling thread has asked of the device so far."""
    if device.type != "cuda":
        return None
    return torch.cuda.current_stream(device).record_event()


def host_tensor(num_values: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return host memory for copies from and to a device: pinned for a GPU."""
    return torch.empty(num_values, dtype=dtype, pin_memory=device.type == "cuda")


def to_host(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """Start a copy of a tensor of any strides; ready when the stream is synchronised.

    A contiguous host tensor of this dtype is returned as it is.
    """
    if tensor.device.type == "cpu":
        return tensor.to(dtype).contiguous()
    host = host_tensor(tensor.numel(), dtype, tensor.device).view(tensor.shape)
    return host.copy_(tensor, non_blocking=True)
