# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The memory that pending collectives read and write."""

from __future__ import annotations

import itertools
from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import final

import torch

from .work import SwitchfoldWork

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
