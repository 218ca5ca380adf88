# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How far a replica that lacks some updates can be from its server, by the updates' norms.

That norms travel with updates and that Div_max bounds the divergence is MLfabric's. The formula is
ours: the server keeps h = momentum * h + u and adds h to the model, so each u moves the model by at
most the H of H = momentum * H + norm(u). The learning rate is part of u. The values that a sparse
update leaves out keep their h. It moves the model by no more, but then later ones may be moved by
H = H + norm(u).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .checks import check_finite
from .errors import InvalidTransferError


@dataclass(frozen=True, kw_only=True)
class DivergenceBound:
    """The greatest distance that a replica may have from its server."""

    div_max: float
    """MLfabric's word. 0: a commit waits until the replica has it. Infinity: it never waits."""
    momentum: float = 0.0

    def __post_init__(self) -> None:
        if math.isnan(self.div_max) or self.div_max < 0:
            raise InvalidTransferError(f"div_max is {self.div_max}; it must be at least 0")
        check_finite("momentum", self.momentum, 0)
        if self.momentum >= 1:
            raise InvalidTransferError(f"momentum is {self.momentum}; it must be below 1")

    def step(self, earlier: float, norm: float) -> float:
        """Return the most by which an update moves the model.

        `earlier`: what the updates before it have `carried`; of dense ones, the step of the last.
        The distance is at most the sum of these over the updates that the replica lacks.
        """
        return self.momentum * earlier + norm

    def carried(self, earlier: float, norm: float, *, is_sparse: bool) -> float:
        """Return what counts as `earlier` for the update after this one."""
        step = self.step(earlier, norm)
        return earlier + norm if is_sparse and self.momentum else step
