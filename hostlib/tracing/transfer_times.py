# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Times at which a tensor was submitted, sent its first packet, got its last result and ended."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(kw_only=True)
class TransferTimes:
    """Times of one transfer, in seconds of `time.monotonic()`; 0 until it happens.

    A transfer that starts again after an abort of its view keeps the time of its first packet.
    """

    num_bytes: int = 0
    """Bytes of the tensor in its owner's dtype."""
    submitted_s: float = 0.0
    first_packet_s: float = 0.0
    """When the transport got the first packet, which holds exponents if there are any."""
    last_result_s: float = 0.0
    """When the last result was taken; only conversion comes after it."""
    done_s: float = 0.0
    """When the future got its result or error."""

    def note_first_packet(self, now_s: float | None = None) -> None:
        """Note the time of the first packet; later calls do nothing."""
        if not self.first_packet_s:
            self.first_packet_s = time.monotonic() if now_s is None else now_s

    def note_last_result(self, now_s: float | None = None) -> None:
        """Note the time of the last result; the latest call counts."""
        self.last_result_s = time.monotonic() if now_s is None else now_s
