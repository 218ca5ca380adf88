# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Views that change under running sessions, over the compiled program and a bad network."""

from __future__ import annotations

import random
from contextlib import closing

import pytest

from softswitch_views import SoftswitchViews
from switchfold.hostlib.options import SessionOptions
from switchfold.softswitch.switch.impairments import Impairments
from view_driver import ViewDriver
from view_trainers import NUM_TENSORS, Pace, finish, start, wait_for

OPTIONS = SessionOptions(timeout_s=120.0, min_rto_s=0.01, initial_rto_s=0.05, max_rto_s=0.2)


def _bad_network(seed: int) -> Impairments:
    return Impairments(
        loss=0.03, duplication=0.03, reordering=0.03, reordering_delay_s=0.01, seed=seed + 1
    )


@pytest.mark.parametrize("seed", range(3))
def test_killed_worker_and_moves_on_a_running_switch(seed: int) -> None:
    chooser = random.Random(seed)
    with (
        closing(SoftswitchViews("narrow", 4, impairments=_bad_network)) as switch,
        closing(ViewDriver(switch, range(4), OPTIONS)) as driver,
    ):
        pace = Pace(12)  # so that tensors are left for the survivors
        trainers = start(driver, pace)
        wait_for(trainers, chooser.randrange(1, 4))
        driver.change({100: 8, 101: 12})
        if seed:
            driver.wait_entered()
        wait_for(trainers, chooser.randrange(5, 8))
        victim = chooser.randrange(4)
        driver.kill(victim)
        lost = trainers.pop(victim)
        boundary = driver.change({102: 8, 103: 8}, is_abort=True)
        pace.allow(NUM_TENSORS)
        driver.wait_entered()
        wait_for(trainers, chooser.randrange(10, 12))
        driver.change({})  # to the hosts
        driver.wait_entered()
        driver.change({104: 16})  # and back
        finish(trainers)
        lost.thread.join(60)
        survivors = tuple(i for i in range(4) if i != victim)
        for trainer in trainers.values():
            assert trainer.members[boundary] == survivors
            assert trainer.members[boundary - 1] == (0, 1, 2, 3)
