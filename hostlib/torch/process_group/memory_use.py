# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The memory that pending collectives read and write, and that copies to devices write."""

from __future__ import annotations

import itertools
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, final

import torch

from .work import SwitchfoldWork

NUM_COPIES: Final = 64
"""Copies back to devices of which a group remembers the memory."""
_Span = tuple[int, int, int]
"""First address, end address (exclusive), and a unique number."""


@final
class MemoryUse:
    """The memory spans of pending works; for one thread at a time."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._spans: list[_Span] = []
        self._longest = 0
        self._works: dict[int, SwitchfoldWork] = {}
        self._spans_of: dict[SwitchfoldWork, list[_Span]] = {}

    def users(self, tensors: Sequence[torch.Tensor]) -> list[SwitchfoldWork]:
        """Return the works, in no order, whose memory may overlap that of the tensors.

        A strided tensor counts as the whole span from its first to its last byte.
        """
        if not self._spans:
            return []
        found: dict[int, SwitchfoldWork] = {}
        for tensor in tensors:
            start, end = memory_span(tensor)
            begin = bisect_left(self._spans, (start - self._longest,))
            for span in self._spans[begin : bisect_left(self._spans, (end,))]:
                if span[1] > start:
                    found[id(self._works[span[2]])] = self._works[span[2]]
        return list(found.values())

    def add(self, work: SwitchfoldWork, tensors: Sequence[torch.Tensor]) -> None:
        """Note the memory that a work uses from now on."""
        spans = [(*memory_span(tensor), next(self._numbers)) for tensor in tensors]
        for span in spans:
            insort(self._spans, span)
            self._longest = max(self._longest, span[1] - span[0])
            self._works[span[2]] = work
        self._spans_of[work] = spans

    def remove(self, work: SwitchfoldWork) -> None:
        """Forget a work; an unknown work is ignored."""
        for span in self._spans_of.pop(work, ()):
            del self._spans[bisect_left(self._spans, span)]
            del self._works[span[2]]
        if not self._spans:
            self._longest = 0


class _Copy:
    """A copy back to one device: its memory, and what lets the caller's stream wait for it."""

    def __init__(self, tensors: Sequence[torch.Tensor], caller_waits: Callable[[], None]) -> None:
        spans = sorted(memory_span(tensor) for tensor in tensors)
        self.device = tensors[0].device
        self.caller_waits = caller_waits
        self._starts = [start for start, _ in spans]
        self._ends = list(itertools.accumulate((end for _, end in spans), max))

    def meets(self, spans: Sequence[tuple[int, int]]) -> bool:
        """Return whether it may write to any of the spans."""
        start, end = min(spans)[0], max(end for _, end in spans)
        if start >= self._ends[-1] or end <= self._starts[0]:
            return False
        return any(
            (before := bisect_left(self._starts, end)) and self._ends[before - 1] > start
            for start, end in spans
        )


@final
class CopiesBack:
    """The last copies back to devices, which may be under way when their works have ended.

    Those of one device are made in order. Of all that are no longer remembered, the last one of
    each device stands for the others, and for any memory there. For one thread at a time.
    """

    def __init__(self) -> None:
        self._last: deque[_Copy] = deque()
        self._older: dict[torch.device, Callable[[], None]] = {}

    def add(self, tensors: Sequence[torch.Tensor], caller_waits: Callable[[], None]) -> None:
        """Note that a copy into tensors of one device was started."""
        if len(self._last) == NUM_COPIES:
            oldest = self._last.popleft()
            self._older[oldest.device] = oldest.caller_waits
        self._last.append(_Copy(tensors, caller_waits))

    def into(self, tensors: Sequence[torch.Tensor]) -> list[Callable[[], None]]:
        """Return what lets the caller's stream wait for all copies into the tensors' memory."""
        if not self._last:
            return []
        found: list[Callable[[], None]] = []
        for device in {tensor.device for tensor in tensors}:
            spans = [memory_span(tensor) for tensor in tensors if tensor.device == device]
            for copy in reversed(self._last):
                if copy.device == device and copy.meets(spans):
                    found.append(copy.caller_waits)
                    break
            else:
                if device in self._older:
                    found.append(self._older[device])
        return found


def memory_span(tensor: torch.Tensor) -> tuple[int, int]:
    """Return first and end address (exclusive) of a tensor; 0, 0 for a sparse tensor."""
    if tensor.layout != torch.strided:
        return 0, 0
    start = tensor.data_ptr()
    if not tensor.numel():
        return start, start
    if tensor.is_contiguous():
        return start, start + tensor.numel() * tensor.element_size()
    last = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
    return start, start + (last + 1) * tensor.element_size()
