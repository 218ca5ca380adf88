# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a job does about workers that are late."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import ConfigurationError


@dataclass(frozen=True, kw_only=True)
class StragglerPolicy:
    """Wait for all (the default), for the first `quorum` workers, or for `deadline_s` seconds.

    With both, a round closes at whichever comes first. All workers of a job hold the same
    policy, and all get the same bytes, whoever contributed.
    """

    quorum: int | None = None
    """Number of contributions that close a round; None: those of all workers.

    On a tree of switches the controller adds a deadline if there is none.
    """
    deadline_s: float | None = None
    """Time after which a worker that has contributed closes the round for all; None: never."""

    def __post_init__(self) -> None:
        """Check ranges."""
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
        return self.quorum is not None or self.deadline_s is not None


WAIT_FOR_ALL = StragglerPolicy()
