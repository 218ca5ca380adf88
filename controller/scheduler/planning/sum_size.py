# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How large the sum of updates is: MLfabric's rule for dense ones, an estimate for sparse ones."""

from __future__ import annotations

from typing import final

from ..transfers import TransferRequest


@final
class SumSize:
    """Size of the sum of updates that are added one after another.

    Dense updates have the same values, and so has their sum. The sum of sparse updates has their
    union. MLfabric says that it is to be estimated; how is ours: as if each update had drawn its
    values independently of the others. Where all like to have the same values, the sum is smaller.
    """

    def __init__(self) -> None:
        self._largest_bits = 0
        self._whole_bits = 0
        self._absent_share = 1.0
        """Expected share of values that no sparse update has."""

    def add(self, request: TransferRequest) -> int:
        """Return the expected size in bits of the sum with one more update."""
        self._largest_bits = max(self._largest_bits, request.bits)
        if request.is_sparse:
            self._whole_bits = max(self._whole_bits, 8 * request.whole_bytes)
            self._absent_share *= 1 - request.size_bytes / request.whole_bytes
        union_bits = round(self._whole_bits * (1 - self._absent_share))
        return max(self._largest_bits, union_bits)
