# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A testbed's switch adds up the updates of workers for a server's process; parts are killed."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from fabric_job import job_report
from fabric_process import settle_update, update_of
from group_training import LIMIT_S, GroupTraining
from switchfold.bmv2_topos import Testbed, single_switch, state
from time_bound import wait_until

NUM_WORKERS = 3
NUM_VALUES = 1 << 18
UPDATE_BYTES = 4 * NUM_VALUES
RATE = 100_000_000
SLOW_RATE = 20_000_000
"""An update is on its path for 0.4 s, so that its worker can be killed meanwhile."""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
pytestmark = [pytest.mark.root, needs_root, pytest.mark.timeout(900)]


@pytest.fixture
def rate() -> int:
    return RATE


@pytest.fixture
def testbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rate: int) -> Generator[Testbed]:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    topology = single_switch(NUM_WORKERS + 1, rate_bits_per_s=rate)
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


@pytest.mark.parametrize("rate", [SLOW_RATE])
def test_a_group_goes_on_when_a_member_is_killed(testbed: Testbed, tmp_path: Path) -> None:
    """Its update counts never, and those of the others once: they come by themselves."""
    with GroupTraining(testbed, tmp_path, NUM_VALUES, has_process=True) as training:
        seeds = iter(range(1000))
        member, number = training.process, NUM_WORKERS - 1
        assert member is not None

        def declined() -> list[int]:
            return [worker.counters["declined_updates"] for worker in training.workers]

        def is_in_a_group() -> bool:
            groups = [group for group in job_report(testbed)["groups"] if group["is_open"]]
            return any(group["is_switch"] and number in group["worker_ids"] for group in groups)

        def kill_in_a_group() -> bool:
            seed, before, told = next(seeds), training.sent(number), declined()
            futures = training.push(seed)
            member.push(seed)
            wait_until(
                lambda: training.sent(number) - before > UPDATE_BYTES // 8,
                *("bytes of the member", LIMIT_S),
                interval_s=0.005,
            )
            member.freeze()
            is_halfway = training.sent(number) - before < UPDATE_BYTES // 2
            if is_halfway and is_in_a_group():
                member.kill()
            else:
                member.thaw()
            assert all(future.result(LIMIT_S).is_committed for future in futures)
            wait_until(lambda: not job_report(testbed)["open"], "ends of all transfers", LIMIT_S)
            is_killed = member.process.returncode is not None
            update, total = update_of(seed, number, NUM_VALUES), training.total
            num_updates = training.num_updates
            settle_update(training.workers[0], total, num_updates, update, is_killed=is_killed)
            if is_killed:
                assert declined() != told, "the group was given up"
                return True
            training.total += update
            training.num_updates += 1
            return False

        wait_until(kill_in_a_group, "a group that loses a member", LIMIT_S)
        wait_until(lambda: all(training.push_all(next(seeds))), "sums without it", LIMIT_S)
        training.check()
