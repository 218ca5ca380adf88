# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sessions that pass through views while they sum: moved, aborted, killed, joined."""

from __future__ import annotations

import random
import threading
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fake_switch import FakeSwitch
from switchfold.hostlib import errors
from time_bound import wait_until
from view_driver import ViewDriver
from view_trainers import NUM_TENSORS, Pace, Trainer, finish, start, wait_for

IMPAIRED: dict[str, Any] = {"loss": 0.02, "duplication": 0.03, "reordering": 0.03}


@pytest.mark.parametrize("seed", range(2))
def test_graceful_changes_move_running_tensors(seed: int) -> None:
    chooser = random.Random(seed)
    switch = FakeSwitch(4, slot_count=16, seed=seed, **IMPAIRED)
    with closing(ViewDriver(switch, range(4))) as driver:
        trainers = start(driver)
        for position in (2, 6, 10):
            wait_for(trainers, position)
            trees = {chooser.randrange(100, 200): 8, chooser.randrange(200, 300): 12}
            driver.change(trees)
            driver.wait_entered()
        finish(trainers)
        assert {t.members[5] for t in trainers.values()} == {(0, 1, 2, 3)}
        # A session is in a view a moment before it says so.
        wait_until(lambda: driver.links[0].entered == [1001, 1002, 1003], "the report of the last")


@pytest.mark.parametrize("seed", range(3))
def test_abort_after_a_kill_redoes_the_tensors_under_way(seed: int) -> None:
    chooser = random.Random(seed)
    switch = FakeSwitch(4, slot_count=8, seed=seed, **IMPAIRED)
    with closing(ViewDriver(switch, range(4))) as driver:
        position, victim = chooser.randrange(1, 9), chooser.randrange(4)
        pace = Pace(NUM_TENSORS - 1)  # so that the victim does not end by itself
        trainers = start(driver, pace)
        wait_for(trainers, position)
        driver.kill(victim)
        lost = trainers.pop(victim)
        boundary = driver.change({chooser.randrange(100, 200): 16}, is_abort=True)
        pace.allow(NUM_TENSORS)
        driver.wait_entered()
        finish(trainers)
        survivors = tuple(i for i in range(4) if i != victim)
        for trainer in trainers.values():
            for number, members in trainer.members.items():
                assert members == ((0, 1, 2, 3) if number < boundary else survivors)
        lost.thread.join(60)
        assert isinstance(lost.failures[0], errors.SessionError)


def test_worker_that_lags_at_an_abort_gets_missing_results_before_it_goes_on() -> None:
    switch = FakeSwitch(2, slot_count=16)
    deliver, may_fetch = switch.deliver, threading.Event()

    def lose(worker_id: int, to: int | None, row: NDArray[np.uint8]) -> None:
        if to != 1:
            deliver(worker_id, to, row)

    switch.deliver = lose
    with closing(ViewDriver(switch, range(2))) as driver:
        fetch = driver.peers[1].fetch_result

        def fetch_late(*arguments: Any, **named: Any) -> Any:
            assert may_fetch.wait(60)
            return fetch(*arguments, **named)

        driver.peers[1].fetch_result = fetch_late
        array = np.arange(4 * 32, dtype=np.int32)
        futures = [[s.allreduce(array) for _ in range(8)] for s in driver.sessions.values()]
        futures[0][0].result(60)
        assert not futures[1][0].done()
        # The view is given up first: what is sent again there would bring the results after all.
        positions = driver.propose(is_abort=True)
        switch.deliver = deliver
        assert driver.commit(positions, {100: 2}) > 0
        # No worker may be ahead by more results than are retained for one that lags.
        with pytest.raises(TimeoutError):
            futures[0][-1].result(0.5)
        may_fetch.set()
        for future in (*futures[0], *futures[1]):
            np.testing.assert_array_equal(future.result(60), 2 * array)


def test_source_of_a_missed_result_that_answers_nobody_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without it, the workers behind would wait for each other, and nobody would know why."""
    monkeypatch.setattr("switchfold.hostlib.engine.result_fetcher.UNREACHABLE_S", 0.2)
    switch = FakeSwitch(3, slot_count=16)
    deliver = switch.deliver

    def lose(worker_id: int, to: int | None, row: NDArray[np.uint8]) -> None:
        if to in (None, 2):
            deliver(worker_id, to, row)

    switch.deliver = lose
    with closing(ViewDriver(switch, range(3))) as driver:
        array = np.arange(4 * 32, dtype=np.int32)
        futures = [session.allreduce(array) for session in driver.sessions.values()]
        futures[2].result(60)
        positions = driver.propose(is_abort=True)
        driver.peers[2].close()
        switch.deliver = deliver
        assert driver.commit(positions, {100: 2}) == 1
        expected = driver.generation, [2]
        for worker_id in (0, 1):
            link = driver.links[worker_id]
            with link.changed:
                assert link.changed.wait_for(lambda link=link: expected in link.reports, 60)
            assert not futures[worker_id].done()
        # So the controller evicts it, and the others do the tensor again.
        driver.kill(2)
        driver.change({101: 2}, is_abort=True)
        for worker_id in (0, 1):
            np.testing.assert_array_equal(futures[worker_id].result(60), 2 * array)


@pytest.mark.parametrize("seed", range(2))
def test_changes_of_all_kinds_one_after_the_other(seed: int) -> None:
    chooser = random.Random(seed)
    switch = FakeSwitch(3, slot_count=16, seed=seed, **IMPAIRED)
    with closing(ViewDriver(switch, range(3))) as driver:
        trainers = start(driver)
        position = 0
        while position < NUM_TENSORS - 6:
            wait_for(trainers, position)
            trees = {} if chooser.random() < 0.4 else {chooser.randrange(100, 60000): 16}
            if chooser.random() < 0.3:
                driver.propose(is_abort=False)  # and an abort comes in between
                driver.change(trees, is_abort=True)
            else:
                driver.change(trees, is_abort=chooser.random() < 0.5)
            if chooser.random() < 0.7:
                driver.wait_entered()
            position += chooser.randrange(1, 6)
        finish(trainers)


def test_worker_joins_at_a_boundary_and_another_leaves() -> None:
    switch = FakeSwitch(4, slot_count=16, seed=11, **IMPAIRED)
    switch.install(1000, (0, 1, 2), {7: 16})
    with closing(ViewDriver(switch, range(3))) as driver:
        pace = Pace(NUM_TENSORS - 1)  # so that there is something left to join
        trainers = start(driver, pace)
        wait_for(trainers, 4)
        boundary = driver.change({50: 16}, joining=[3])
        pace.allow(NUM_TENSORS)
        trainers[3] = Trainer(driver.sessions[3], 3, boundary)
        driver.wait_entered()
        finish(trainers)
        assert trainers[3].members[boundary] == (0, 1, 2, 3)
        assert trainers[0].members[boundary - 1] == (0, 1, 2)
        assert driver.sessions[3].view.num_workers == 4
        driver.sessions[1].close()
        assert driver.links[1].position == NUM_TENSORS


@pytest.mark.parametrize("op", ["sum", "mean"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
def test_host_allreduce_gives_the_bytes_of_the_switch(dtype: str, op: str) -> None:
    if dtype == "int32" and op == "mean":
        op = "sum"
    rng = np.random.default_rng(8)
    arrays = [(rng.standard_normal((37, 41)) * 100).astype(dtype) for _ in range(3)]
    with closing(ViewDriver(FakeSwitch(3, **IMPAIRED), range(3))) as driver:
        seen: list[bytes] = []
        for trees in ({60: 16}, {}, {61: 4, 62: 9}):
            driver.change(trees)
            futures = [s.allreduce(arrays[i], op) for i, s in driver.sessions.items()]  # type: ignore[arg-type]
            seen += [future.result(60).tobytes() for future in futures]
            driver.wait_entered()
        assert len(set(seen)) == 1


def test_host_allreduces_follow_each_other_at_once() -> None:
    array = np.ones(1000, np.float32)
    with closing(ViewDriver(FakeSwitch(2), range(2))) as driver:
        driver.change({})
        for _ in range(10):  # of two steps each: exponents, values
            for future in [s.allreduce(array) for s in driver.sessions.values()]:
                np.testing.assert_array_equal(future.result(60), 2 * array)


def test_errors_are_the_same_with_host_allreduce() -> None:
    with closing(ViewDriver(FakeSwitch(2), range(2))) as driver:
        for trees in ({60: 16}, {}):
            driver.change(trees)
            driver.wait_entered()
            wrong = np.ones(100, np.float32)
            wrong[40] = np.nan
            futures = [s.allreduce(wrong) for s in driver.sessions.values()]
            assert all(isinstance(f.exception(60), errors.NonFiniteError) for f in futures)
            large = np.full(50, 2**30, np.int32)
            futures = [s.allreduce(large) for s in driver.sessions.values()]
            assert all(isinstance(f.exception(60), errors.SaturationError) for f in futures)


def test_deadline_runs_on_while_the_view_changes() -> None:
    with closing(ViewDriver(FakeSwitch(2), range(2))) as driver:
        driver.propose(is_abort=True)
        future = driver.sessions[0].allreduce(np.ones(5, np.int32), timeout_s=0.3)
        error = future.exception(60)
        assert type(error) is errors.AllreduceTimeoutError
        assert "1001" in str(error)


def test_session_that_breaks_leaves_the_job_at_once() -> None:
    with closing(ViewDriver(FakeSwitch(2), range(2))) as driver:
        future = driver.sessions[0].allreduce(np.ones(8, np.int32), timeout_s=0.2)
        assert isinstance(future.exception(60), errors.AllreduceTimeoutError)
        wait_until(lambda: driver.links[0].is_closed, "the others need not wait for it")
        assert not driver.links[1].is_closed
        with pytest.raises(errors.SessionBrokenError):
            driver.sessions[0].allreduce(np.ones(8, np.int32))


def test_old_commits_and_proposals_change_nothing() -> None:
    with closing(ViewDriver(FakeSwitch(2), range(2))) as driver:
        driver.change({70: 16}, is_abort=True)
        driver.wait_entered()
        session = driver.sessions[0]
        link = driver.links[0]
        link.engine.commit(session.view, 0, 1)
        link.engine.propose(1001, is_abort=True)
        futures = [s.allreduce(np.ones(5, np.int32)) for s in driver.sessions.values()]
        assert all(f.result(60)[0] == 2 for f in futures)
        # What comes late from the view before is counted and nothing else.
        assert session.view.generation == 1001
        assert [generation for generation, _ in link.ready] == [1001], "the first is answered"


def test_stalled_worker_reports_the_missing_workers() -> None:
    switch = FakeSwitch(3)
    with closing(ViewDriver(switch, range(3))) as driver:
        futures = [driver.sessions[i].allreduce(np.ones(5, np.int32)) for i in (0, 2)]
        link = driver.links[0]
        with link.changed:
            # The first may name worker 2 as well, which is only slow.
            assert link.changed.wait_for(lambda: (1000, [1]) in link.reports, 60), link.reports
        driver.sessions[1].allreduce(np.ones(5, np.int32)).result(60)
        assert futures[0].result(60)[0] == 3
        switch.is_deaf = True
        driver.sessions[1].allreduce(np.ones(5, np.int32))
        link = driver.links[1]
        with link.changed:
            assert link.changed.wait_for(lambda: (1000, []) in link.reports, 60), link.reports


def test_results_are_kept_until_all_run_in_a_view_with_fewer_slots() -> None:
    with closing(ViewDriver(FakeSwitch(2, slot_count=32), range(2))) as driver:

        def reduce(number: int) -> None:
            array = np.full(4 * 32, number, np.int32)
            for future in [s.allreduce(array) for s in driver.sessions.values()]:
                np.testing.assert_array_equal(future.result(60), 2 * array)

        for number in range(6):
            reduce(number)
        driver.change({100: 2})
        driver.wait_entered()
        # A worker in the previous view could still need any of them.
        assert all(driver.peers[0].results.get(number) for number in range(6))
        reduce(6)
        with pytest.raises(errors.ResultForgottenError):
            driver.peers[0].results.get(5)
