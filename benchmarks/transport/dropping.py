# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sums by TCP of which workers leave out a share before they send: "send (1 - P) over TCP".

All workers leave out the same chunks, which they draw from the number of the sum; so nobody tells
anybody, and everybody knows the masks. A ring then carries 1 - P of the bytes on each of its
2 (n - 1) transfers. If each worker drew chunks of its own, partial sums of two workers or more
would have nearly all chunks, and the results all: of 4 workers that leave out a tenth, the links
would carry 98 % instead of 90. So this is the most that dropping at the sender can gain.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from switchfold.hostlib import LossTolerance
from switchfold.hostlib.loss_tolerance import Delivery
from switchfold.hostlib.slots.wire import VALUES_PER_PACKET_WIDE

_SEED: Final = 0x44524F50


class DroppedChunks:
    """What no worker sends for one sum: as many random chunks as may be missing."""

    def __init__(self, share: float, num_workers: int, elements: int, number: int) -> None:
        """`number`: of the sum, the same on all workers."""
        num_chunks = -(-elements // VALUES_PER_PACKET_WIDE)
        is_kept = np.ones(num_chunks, np.bool_)
        draw = np.random.default_rng((_SEED, number))
        is_kept[draw.choice(num_chunks, math.floor(share * num_chunks), replace=False)] = False
        self.is_kept: NDArray[np.bool_] = np.repeat(is_kept, VALUES_PER_PACKET_WIDE)[:elements]
        """By element."""
        self.delivery = Delivery(
            range(num_workers),
            elements,
            VALUES_PER_PACKET_WIDE,
            np.where(is_kept, num_workers, 0).astype(np.uint16),
            np.where(is_kept, (1 << num_workers) - 1, 0).astype(np.uint32),
            tolerance=LossTolerance(loss=share),
        )
        """Of the sum: what it lacks. A mean is over nobody there."""

    def pack(self, array: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the elements that are sent."""
        return array[self.is_kept]

    def unpack(self, total: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return a sum of what was sent as one of all elements; 0 where nobody sent anything."""
        whole = np.zeros(self.is_kept.size, np.float32)
        whole[self.is_kept] = total
        return whole
