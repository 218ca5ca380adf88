# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A testbed's switch adds up the updates of workers for a server's process; parts are killed."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from group_training import LIMIT_S, GroupTraining
from switchfold.bmv2_topos import Testbed, single_switch, state
from time_bound import wait_until

NUM_WORKERS = 3
NUM_VALUES = 1 << 18
UPDATE_BYTES = 4 * NUM_VALUES
RATE = 100_000_000

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
pytestmark = [pytest.mark.root, needs_root, pytest.mark.timeout(900)]


@pytest.fixture
def testbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Testbed]:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    topology = single_switch(NUM_WORKERS + 1, rate_bits_per_s=RATE)
    options = ("--no-route", "600", "--lease", "60")
    with Testbed(
        topology, name=f"test-swgroups-{os.getpid()}", controller_options=options
    ) as testbed:
        yield testbed


def test_the_switch_adds_updates_up_and_nothing_is_lost_or_doubled(
    testbed: Testbed, tmp_path: Path
) -> None:
    with GroupTraining(testbed, tmp_path, NUM_VALUES) as training:
        seeds = iter(range(1000))

        def all_in_sums() -> bool:
            return all(training.push_all(next(seeds)))

        wait_until(all_in_sums, "sums of the switch", LIMIT_S)
        training.check()

        def come_as_one() -> bool:
            before = training.received()
            is_so = all_in_sums()
            return is_so and UPDATE_BYTES < training.received() - before < 1.5 * UPDATE_BYTES

        # On a busy machine, an update may be late for its sum, and packets are sent again.
        wait_until(come_as_one, "sums of about the bytes of one update", LIMIT_S)
        events: list[Callable[[], None]] = [
            lambda: testbed.restart_switch("s1"),
            training.kill_server,
            testbed.restart_controller,
        ]
        for event in events:
            futures = training.push(next(seeds))
            event()
            assert all(future.result(LIMIT_S).is_committed for future in futures)
            training.check()
            wait_until(all_in_sums, "sums of the switch again", LIMIT_S)
            training.check()
