# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a job does about workers that are late, and about contributions that are lost."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import ConfigurationError
from .loss_tolerance import LossTolerance


@dataclass(frozen=True, kw_only=True)
class StragglerPolicy:
    """Wait for all (the default), for the first `quorum` workers, or for `deadline_s` seconds.

    With both, a round closes at whichever comes first. All workers of a job hold the same
    policy, and all get the same bytes, whoever contributed.

    Or wait for all but a bounded share: with a `tolerance`, there is no quorum and no deadline.
    With a tolerance for stale results alone, workers do not get the same bytes.
    """

    quorum: int | None = None
    """Number of contributions that close a round; None: those of all workers.

    On a tree of switches the controller adds a deadline if there is none.
    """
    deadline_s: float | None = None
    """Time after which a worker that has contributed closes the round for all; None: never."""

    tolerance: LossTolerance | None = None
    """What each sum may lack, unless the call says otherwise; None: no sum may lack anything."""

    def __post_init__(self) -> None:
        """Check ranges."""
        if self.tolerance is not None and (self.quorum, self.deadline_s) != (None, None):
            raise ConfigurationError(
                f"a tolerance of loss with quorum {self.quorum} and deadline_s {self.deadline_s}: a"
                " round that these close may lack more than is tolerated; give one or the other"
            )
        if self.quorum is not None and self.quorum < 1:
            raise ConfigurationError(
                f"quorum is {self.quorum}; at least one worker must contribute, None waits for all"
            )
        if self.deadline_s is not None and not self.deadline_s > 0:
            raise ConfigurationError(
                f"deadline_s is {self.deadline_s}; it must be positive, None waits for all"
            )

    @property
    def allow_partial(self) -> bool:
        """Whether a result may hold the values of some workers only."""
        tolerates = self.tolerance is not None and not self.tolerance.stale
        return (self.quorum, self.deadline_s) != (None, None) or tolerates

    @property
    def leaves_out_late(self) -> bool:
        """Whether a result may lack workers because they are late."""
        return (self.quorum, self.deadline_s) != (None, None)


WAIT_FOR_ALL = StragglerPolicy()
