# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What has become of each worker's updates."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(kw_only=True)
class WorkerTally:
    """Counts of one worker's updates: pushes = waiting + granted + commits + drops + withdrawn."""

    pushes: int = 0
    """Requests that were accepted."""
    waiting: int = 0
    granted: int = 0
    """Granted, and not applied yet."""
    commits: int = 0
    drops: int = 0
    withdrawn: int = 0

    @property
    def drop_ratio(self) -> float:
        """Share of the decided updates that were dropped; 0 before the first decision."""
        decided = self.granted + self.commits + self.drops
        return self.drops / decided if decided else 0.0
