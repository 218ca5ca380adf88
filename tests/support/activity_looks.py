# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Looks at a job with one tree, a link per worker, and figures that a test chooses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from switchfold.controller.api.operator_api import activity_pb2 as pb
from switchfold.controller.cli.activity.window import ActivityWindow

RATE_BITS_PER_S = 8_000_000.0
SLOTS = 128
NUM_WORKERS = 3


@dataclass(frozen=True, kw_only=True)
class LookFigures:
    """One look; times and counts are from the beginning."""

    time_s: float
    rounds: int = 0
    waiting: Sequence[Sequence[int]] = ()
    """By round that waits, the workers that are missing."""
    is_stuck: bool = True
    sent_bytes: Sequence[int] = (0, 0, 0)
    """By worker."""
    recent_bytes: Sequence[int] = (0, 0, 0)
    rate_bits_per_s: float = RATE_BITS_PER_S
    slot_error: str = ""
    generation: int = 7
    path: str = "switch"
    read_slots: int = SLOTS
    more_links: list[pb.LinkActivity] = field(default_factory=list[pb.LinkActivity])

    def message(self) -> pb.JobActivity:
        node = pb.NodeActivity(
            switch="s1",
            read_slots=0 if self.slot_error else self.read_slots,
            num_open=len(self.waiting),
            open_rounds=[
                pb.OpenRound(slot_index=i, missing_workers=missing, is_stuck=self.is_stuck)
                for i, missing in enumerate(self.waiting)
            ],
            error=self.slot_error,
        )
        tree = pb.TreeActivity(tree_id=3, slot_count=SLOTS, rounds=self.rounds, nodes=[node])
        links = [
            pb.LinkActivity(
                sender=f"h{worker + 1}",
                receiver="s1",
                rate_bits_per_s=self.rate_bits_per_s,
                bytes=self.sent_bytes[worker],
                recent_bytes=self.recent_bytes[worker],
                workers=[worker],
            )
            for worker in range(NUM_WORKERS)
        ]
        return pb.JobActivity(
            job="train",
            generation=self.generation,
            path=self.path,
            time_s=self.time_s,
            gap_s=0.05,
            trees=[tree] if self.path == "switch" else [],
            links=[*links, *self.more_links] if self.path == "switch" else [],
        )


def window_of(looks: Iterable[LookFigures], most: int = 1000) -> ActivityWindow:
    window = ActivityWindow(most)
    for look in looks:
        window.add(look.message())
    return window
