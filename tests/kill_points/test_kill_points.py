# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A controller that is killed, loses its database or has a full disk leaves nothing behind.

`make kill-points` does this at every point, and a thousand times at random.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice

import pytest

from kill_points.campaign import Campaign
from kill_points.scene import Scene, play
from kill_points.world import World

SEED = 1
TEN_YEARS_S = 3.2e8
NUM_STAGES = 7
"""With a full disk; then all links are in use again."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with World(tmp_path_factory.mktemp("k")) as world:
        yield world


@pytest.fixture
def campaign(world: World) -> Iterator[Campaign]:
    """Return a campaign in a world without jobs."""
    yield Campaign(world, SEED)
    world.end_jobs()


def test_state_and_switches_agree_after_every_death(world: World, campaign: Campaign) -> None:
    deaths, checks = world.deaths.total(), world.checks
    stages = [*campaign.sample()]
    assert world.deaths.total() - deaths >= len(stages)
    assert world.checks - checks == len(stages)


def test_state_and_switches_agree_after_a_full_disk(world: World, campaign: Campaign) -> None:
    before = world.refused_writes
    *_, refused = islice(campaign.on_full_disk(), NUM_STAGES)
    assert refused - before > NUM_STAGES


def test_generations_grow_without_a_database_and_with_a_clock_set_back(world: World) -> None:
    start, *_ = Scene(world, 1).stages
    play(world, start)
    before = world.history.newest
    world.lose_database(clock_shift_s=-TEN_YEARS_S)
    world.members.begin()
    # The controller does not know them: they are started again, in a job of the same name.
    world.settle(
        lambda: start.is_over() and world.state().live_views, "sums after the database was lost"
    )
    assert world.history.newest > before
    world.end_jobs()
    # Without any job, only the slots and the marks are left of the generations.
    before = world.history.newest
    world.lose_database(clock_shift_s=-TEN_YEARS_S)
    play(world, Scene(world, 2).stages[0])
    assert world.history.newest > before
    created_s = [job["created_s"] for job in world.state().jobs.values()]
    assert max(created_s) < time.time() - TEN_YEARS_S / 2, "its clock was set back"
