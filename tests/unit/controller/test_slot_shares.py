# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which jobs give slots back to which others."""

from __future__ import annotations

import pytest

from switchfold.controller.jobs.job import Job, JobState, Tree, TreeNode, View, ViewState
from switchfold.controller.slots.slot_allocator import SlotAllocator
from switchfold.controller.slots.slot_shares import SlotShares

NUM_SLOTS = 1024


def changes(*held: int) -> list[str]:
    """Return the jobs that should change, given the slots of a switch that each job holds."""
    jobs: list[Job] = []
    base = 0
    for number, slots in enumerate(held, 1):
        node = TreeNode(switch="s1", slot_base=base, children=())
        view = View(
            generation=number,
            job_number=number,
            members=(),
            trees=(Tree(slot_count=slots, nodes=(node,)),),
            state=ViewState.INSTALLED,
        )
        jobs.append(
            Job(
                job_number=number,
                name=f"job {number}",
                num_workers=1,
                state=JobState.RUNNING,
                created_s=0.0,
                views=(view,),
            )
        )
        base += slots
    memory = SlotAllocator([job.views[0] for job in jobs], NUM_SLOTS)
    return [job.name for job in SlotShares(jobs, {}, memory, 128).changes()]


@pytest.mark.parametrize(
    ("held", "changing"),
    [
        # Fair are 99 each; a job is left alone up to an eighth above that.
        ([99] * 9, []),
        ([105] * 3 + [96] * 6, []),
        ([127, *[99] * 8], ["job 1"]),
        # All hold little too much, and the last next to nothing.
        ([110] * 8 + [45], ["job 1"]),
    ],
)
def test_job_is_disturbed_for_much_or_for_one_that_has_little(
    held: list[int], changing: list[str]
) -> None:
    assert changes(*held) == changing
