# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How many bytes of samples a worker may send."""

from __future__ import annotations

from typing import Final, final

SHARE: Final = 0.01
"""Of the bytes of pushes. More would use up what hot rows save a server's link."""
MOST_BYTES: Final = 1 << 18
"""That are saved up, and that a worker may send at once, before its first push."""


@final
class SampleBudget:
    """Grows with the pushes, and shrinks with the samples that are sent; it may become negative.

    Two kinds of samples share it. Counts of keys go on as long as anything is left, and whole
    mini-batches, from which a server learns less, as long as half of `MOST_BYTES` is left.
    """

    def __init__(self) -> None:
        self._bytes: float = MOST_BYTES

    def earn(self, pushed_bytes: int) -> None:
        """Learn of a push."""
        self._bytes = min(self._bytes + SHARE * pushed_bytes, MOST_BYTES)

    def spend(self, sample_bytes: int) -> None:
        """Learn of a sample that was sent."""
        self._bytes -= sample_bytes

    @property
    def allows_counts(self) -> bool:
        """Whether the keys of a push may be counted."""
        return self._bytes > 0

    @property
    def allows_batches(self) -> bool:
        """Whether the keys of a whole mini-batch may be sent."""
        return self._bytes > MOST_BYTES / 2
