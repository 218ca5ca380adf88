# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker has submitted, as it tells the controller when no result comes."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ..loss_tolerance import LossTolerance

MAX_REPORTED: Final = 8
"""Tensors in a report that have no result, and as many that have. Workers that differ in a tensor
are at most one tensor apart: beyond it, their chunks have different slots."""
_MAX_LABEL: Final = 160


@dataclass(frozen=True, slots=True)
class SubmittedTensor:
    """One tensor of a worker. Where workers differ in these, they wait for each other."""

    number: int
    """Position in the job's sequence, from 0."""
    num_elements: int
    dtype: str
    operation: str
    """With the precision: "exact sum"."""
    label: str = ""
    tolerance: LossTolerance | None = None
    """That of this tensor alone; None: the job's."""

    @property
    def printable_label(self) -> str:
        """The label as one short line; different labels have different ones."""
        label = self.label
        if label.isprintable() and len(label) <= _MAX_LABEL:
            return label
        checksum = zlib.crc32(label.encode(errors="surrogatepass"))
        return f"{ascii(label)[:_MAX_LABEL]}... ({checksum:08x})"


@dataclass(frozen=True, slots=True)
class SubmittedTensors:
    """The last tensors of a worker."""

    complete: tuple[SubmittedTensor, ...] = ()
    awaited: tuple[SubmittedTensor, ...] = ()
    """Of those without a result, the first ones."""

    @classmethod
    def of(
        cls, complete: Iterable[SubmittedTensor], awaited: Iterable[SubmittedTensor]
    ) -> SubmittedTensors:
        """Take the tensors that a report may have."""
        return cls(tuple(complete)[-MAX_REPORTED:], tuple(awaited)[:MAX_REPORTED])
