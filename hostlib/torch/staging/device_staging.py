# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Copies CUDA tensors through pinned host memory, on a stream beside the caller's.

No host thread waits for the caller's stream: the side stream waits for it, and a thread of the
process group waits for the copy only.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, cast, final

import torch

from ...options import Rounding
from .staging import ARRAY_DTYPES, ROUNDINGS, HostArray, from_numpy, mode_of
from .streams import host_tensor


class Event(Protocol):
    """A point in a stream."""

    def synchronize(self) -> None:
        """Block the calling thread until the stream has reached this point."""
        ...


class SideStream(Protocol):
    """A separate stream for copies, and its host memory; the only part that knows the device."""

    def after_caller(self) -> None:
        """Let later work on this stream wait for all present work on the caller's stream."""
        ...

    def entered(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context whose device work goes onto this stream."""
        ...

    def record(self) -> Event:
        """Return the present end of this stream as an event."""
        ...

    def hold(self, tensor: torch.Tensor) -> None:
        """Keep the allocator from reusing the tensor's memory while this stream uses it."""
        ...

    def caller_waits(self, event: Event) -> None:
        """Let the caller's stream wait for an event of this one."""
        ...

    def host_buffer(self, num_values: int, dtype: torch.dtype) -> torch.Tensor:
        """Return host memory for asynchronous copies to and from the device."""
        ...


class CudaSideStream:
    """A side stream of one CUDA device."""

    def __init__(self, device: torch.device) -> None:
        self._cuda: Any = torch.cuda
        self._device = device
        self._stream = self._cuda.Stream(device)

    def after_caller(self) -> None:
        """Wait, on this stream, for the caller's current one."""
        self._stream.wait_stream(self._cuda.current_stream(self._device))

    def entered(self) -> contextlib.AbstractContextManager[Any]:
        """Make this the current stream of the calling thread."""
        return self._cuda.stream(self._stream)

    def record(self) -> Event:
        """Record an event here."""
        return self._stream.record_event()

    def hold(self, tensor: torch.Tensor) -> None:
        """Tell the caching allocator that this stream uses the tensor."""
        cast("Any", tensor).record_stream(self._stream)

    def caller_waits(self, event: Event) -> None:
        """Make the caller's current stream wait for the event."""
        self._cuda.current_stream(self._device).wait_event(event)

    def host_buffer(self, num_values: int, dtype: torch.dtype) -> torch.Tensor:
        """Return pinned memory; PyTorch caches it."""
        return host_tensor(num_values, dtype, self._device)


@final
class SideStreams:
    """A side stream for each device whose tensors are summed, made when it is first asked for."""

    def __init__(self, make: Callable[[torch.device], SideStream] = CudaSideStream) -> None:
        self._make = make
        self._streams: dict[torch.device, SideStream] = {}

    def of(self, device: torch.device) -> SideStream:
        """Return the side stream of a device."""
        if device not in self._streams:
            self._streams[device] = self._make(device)
        return self._streams[device]


class DeviceStaging:
    """Tensors of one device and dtype, concatenated for a reduction on the switch.

    Make it in the caller's thread, which knows the stream that fills the tensors. bfloat16 crosses
    the bus as bfloat16, and the host widens it. Arguments are those of `SumStaging`.
    """

    is_immediate = False

    def __init__(
        self,
        tensors: Sequence[torch.Tensor],
        stream: SideStream,
        *,
        is_kept: bool = True,
        dtypes: Mapping[torch.dtype, torch.dtype] = ARRAY_DTYPES,
    ) -> None:
        # Autograd does not notice writes through `data`, as it does not notice those of CPU sums.
        self._tensors = [tensor.data for tensor in tensors]
        self._stream = stream
        self._is_kept = is_kept
        own_dtype = tensors[0].dtype
        self._dtype = dtypes[own_dtype]
        self.round_to: Rounding | None = ROUNDINGS.get(own_dtype)
        num_values = sum(tensor.numel() for tensor in tensors)
        self._host = stream.host_buffer(num_values, own_dtype)
        stream.after_caller()
        with stream.entered():
            for part, tensor in zip(self._parts(), self._tensors, strict=True):
                stream.hold(tensor)
                part.copy_(tensor, non_blocking=True)
            self._copied = stream.record()
        self._written: Event | None = None

    def _parts(self) -> list[torch.Tensor]:
        sizes = [tensor.numel() for tensor in self._tensors]
        flat: Sequence[torch.Tensor] = cast("Any", self._host).split(sizes)
        return [part.view(tensor.shape) for part, tensor in zip(flat, self._tensors, strict=True)]

    def gather(self) -> HostArray:
        """Wait for the copy to the host and return it as a flat array, widened if needed."""
        self._copied.synchronize()
        return self._host.to(self._dtype).numpy()

    def scatter(self, result: HostArray) -> None:
        """Start the copies back to the device on the side stream."""
        if not self._is_kept:
            return
        with mode_of(self._host), self._stream.entered():
            # The session no longer reads the first copy, so its memory can be used again.
            self._host.copy_(from_numpy(result))
            for part, tensor in zip(self._parts(), self._tensors, strict=True):
                with mode_of(tensor):
                    tensor.copy_(part, non_blocking=True)
            self._written = self._stream.record()

    def after_scatter(self) -> contextlib.AbstractContextManager[Any]:
        """Return the side stream's context, for the events of a future."""
        return self._stream.entered()

    def make_visible(self) -> None:
        """Let the caller's current stream wait for the copies back."""
        if self._written is not None:
            self._stream.caller_waits(self._written)

    def visibility(self) -> Callable[[], None] | None:
        """Return what lets the caller's current stream wait for the copies back."""
        return None if self._written is None else partial(self._stream.caller_waits, self._written)
