# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""When one tensor was submitted, began to leave, had its last result and was done."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(kw_only=True)
class TransferTimes:
    """Moments of one transfer, in seconds of `time.monotonic()`; 0 is what has not happened.

    A transfer that begins anew, because its view was given up, keeps its first packet.
    """

    num_bytes: int = 0
    """Of the tensor as its owner holds it."""
    submitted_s: float = 0.0
    first_packet_s: float = 0.0
    """The first packet, of exponents if there are any, was handed to the transport."""
    last_result_s: float = 0.0
    """The last result was taken; what comes after is conversion."""
    done_s: float = 0.0
    """The future has its result or its error."""

    def note_first_packet(self) -> None:
        """Stamp the first packet, unless it was stamped before."""
        if not self.first_packet_s:
            self.first_packet_s = time.monotonic()

    def note_last_result(self) -> None:
        """Stamp the last result; the latest call counts."""
        self.last_result_s = time.monotonic()
