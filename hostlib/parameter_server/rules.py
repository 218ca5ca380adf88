# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Rules by which a server turns the summed updates of a pair into an answer."""

from __future__ import annotations

import enum

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float32]

as_workers_sent = np.errstate(over="ignore", invalid="ignore")
"""For sums of gradients: infinity and not-a-number are results and cause no warning."""


class RuleKind(enum.Enum):
    """Rules, by their names on the command line."""

    SUM = "sum"
    """Answer the sum of the updates."""
    MEAN = "mean"
    """Answer the sum divided by the number of contributors."""

    @as_workers_sent
    def apply(self, total: Values, num_contributors: int) -> None:
        """Turn the sum of the updates into the answer, in place."""
        if self is RuleKind.MEAN and num_contributors > 1:
            np.divide(total, np.float32(num_contributors), out=total)
