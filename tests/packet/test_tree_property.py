# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Trees of switches do what their references do, over random schedules; sums are exact."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

import bmv2_target
from packet_target import Target
from switchfold import p4src
from switchfold.hostlib.slots.wire import Operation, Outcome
from tree_fabric import Shape, Tree, TreeJob
from tree_network import Arrival, TreeNetwork
from tree_schedule import TreeSchedule

SHAPES: Sequence[Shape] = (
    (0, 3, 9),
    ((0, 1), (2, 3)),
    ((4, 0), 7),
    (((0, 1), 5), (2, 3)),
    (((6,), 2), 1),
)
"""Depth 1, 2, 2, 3, 3."""
SHAPES_OF_TWO_SWITCHES: Sequence[Shape] = (((4, 0), 7), ((2, 5), 3, 1))
NUM_SWITCHES = 4
NUM_SCHEDULES = {"softswitch-narrow": 250, "softswitch-wide": 40}
NUM_SCHEDULES_BMV2 = 16
STEPS, ROUNDS = 40, 3
SLOT_COUNT = 2
FIRST_ROUND = 0xFFFF_FFFA
"""The round numbers wrap around after two schedules of a job."""
SEED = 20261121
NEVER = {
    Outcome.NONE,
    Outcome.BAD_LENGTH,
    Outcome.BAD_CHECKSUM,
    Outcome.BAD_VERSION,
    Outcome.BAD_RANGE,
    Outcome.OFF_GRID,
    Outcome.MISMATCH,
    Outcome.MULTICAST,
    Outcome.COLD,
    Outcome.VALUES_READ,
    Outcome.VALUES_WRITTEN,
    Outcome.VALUES_KEPT,
}
"""Outcomes that neither lawful workers nor the attacks cause; other tests cause them."""


def tree_jobs(shapes: Sequence[Shape]) -> list[TreeJob]:
    """Return four jobs for each shape: all, partial, a quorum, and bits that name children."""
    jobs: list[TreeJob] = []
    for tree in map(Tree, shapes):
        num_workers = len(tree.workers)
        for quorum, allow_partial, names_children in (
            (num_workers, False, False),
            (num_workers, True, False),
            (num_workers - 1, True, False),
            (num_workers, False, True),
        ):
            jobs.append(
                TreeJob(
                    tree=tree,
                    job_id=100 + len(jobs),
                    generation=2000 + len(jobs),
                    slot_base=SLOT_COUNT * len(jobs),
                    slot_count=SLOT_COUNT,
                    quorum=quorum,
                    allow_partial=allow_partial,
                    names_children=names_children,
                )
            )
    return jobs


@pytest.fixture(scope="module")
def open_switches() -> Iterator[Callable[[str, int], list[Target]]]:
    """Open switches of a kind; closed with the module."""
    with contextlib.ExitStack() as stack:

        def open_some(kind: str, count: int) -> list[Target]:
            variant: p4src.Variant = "wide" if kind.endswith("wide") else "narrow"
            made: list[Target] = []
            for _ in range(count):
                if kind.startswith("bmv2"):
                    made.append(bmv2_target.Bmv2Target(variant))
                else:
                    from softswitch_target import SoftswitchTarget  # noqa: PLC0415

                    made.append(SoftswitchTarget(variant))
                stack.callback(made[-1].close)
            return made

        yield open_some


def _run_schedules(network: TreeNetwork, jobs: list[TreeJob], num_schedules: int) -> None:
    generator = np.random.default_rng(SEED)
    first_rounds = dict.fromkeys((job.job_id for job in jobs), FIRST_ROUND)
    late: dict[int, list[Arrival]] = {job.job_id: [] for job in jobs}
    num_results = num_partial = 0
    for number in range(num_schedules):
        job = jobs[number % len(jobs)]
        first_round = first_rounds[job.job_id]
        first_rounds[job.job_id] = (first_round + ROUNDS) & 0xFFFFFFFF
        schedule = TreeSchedule(
            network=network,
            job=job,
            generator=generator,
            first_round=first_round,
            num_rounds=ROUNDS,
            slot=int(generator.integers(SLOT_COUNT)),
            operation=(Operation.AGGREGATE_ADD, Operation.AGGREGATE_MAX)[number % 3 // 2],
            is_wild=not generator.integers(4),
            late=late[job.job_id],
        )
        schedule.run(STEPS)
        num_results += schedule.num_results
        num_partial += schedule.num_partial
    counted = network.check_counters()
    assert num_results >= num_schedules * ROUNDS
    assert num_partial > 0
    idle = {outcome for outcome in Outcome if not counted[outcome]}
    if num_schedules >= min(NUM_SCHEDULES.values()):
        assert idle <= NEVER, idle


@pytest.mark.parametrize("kind", NUM_SCHEDULES)
def test_tree_schedules_match_reference(
    open_switches: Callable[[str, int], list[Target]], kind: str
) -> None:
    jobs = tree_jobs(SHAPES)
    network = TreeNetwork(open_switches(kind, NUM_SWITCHES), jobs)
    _run_schedules(network, jobs, NUM_SCHEDULES[kind])


@pytest.mark.bmv2
@pytest.mark.root
@pytest.mark.skipif(
    bmv2_target.missing_reason() is not None, reason=str(bmv2_target.missing_reason())
)
def test_tree_schedules_on_bmv2_match_reference(
    open_switches: Callable[[str, int], list[Target]],
) -> None:
    jobs = tree_jobs(SHAPES_OF_TWO_SWITCHES)
    network = TreeNetwork(open_switches("bmv2-narrow", 2), jobs)
    _run_schedules(network, jobs, NUM_SCHEDULES_BMV2)
