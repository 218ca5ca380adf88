# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker takes hot rows where they make it faster, and hardly pays for finding out."""

from __future__ import annotations

import random

import pytest

from switchfold.hostlib.errors import ConfigurationError
from switchfold.hostlib.parameter_server import ClientOptions, HotRowUse
from switchfold.hostlib.parameter_server.hot_worker.scheme_choice import (
    FIRST_S,
    LONGEST_GAP_S,
    NUM_WINDOWS,
    REST_S,
    WINDOW_S,
    HotRowChoice,
)

KEYS = 1000


class Worker:
    """Makes one call after the other; `hot_s` and `cold_s` are how long one takes."""

    def __init__(
        self, hot_s: float, cold_s: float, *, noise: float = 0.0, wall_s: float = 0.0
    ) -> None:
        self.choice = HotRowChoice(HotRowUse.AUTO, wall_s)
        self.hot_s, self.cold_s, self.noise = hot_s, cold_s, noise
        self.now_s = 50.3
        self.num_calls = 0
        self.random = random.Random(1)
        self.changes: list[tuple[float, bool]] = []

    def run(self, duration_s: float) -> float:
        """Make calls for a time; return the share of the calls that used the switch."""
        end_s, num_hot = self.now_s + duration_s, 0
        self.num_calls = 0
        while self.now_s < end_s:
            uses_hot = self.choice.note(KEYS, self.now_s)
            if not self.changes or self.changes[-1][1] != uses_hot:
                self.changes.append((self.now_s, uses_hot))
            call_s = self.hot_s if uses_hot else self.cold_s
            self.now_s += call_s * (1 + self.noise * self.random.uniform(-1, 1))
            self.num_calls += 1
            num_hot += uses_hot
        return num_hot / self.num_calls


@pytest.mark.parametrize("noise", [0.0, 0.8])
def test_the_faster_scheme_is_taken(noise: float) -> None:
    slower = Worker(0.010, 0.005, noise=noise)
    faster = Worker(0.005, 0.010, noise=noise)
    slower.run(2 * FIRST_S)
    faster.run(2 * FIRST_S)
    assert slower.run(600) < 0.02
    assert faster.run(600) > 0.98


@pytest.mark.parametrize("hot_s", [0.001, 0.004, 0.0045, 0.0055, 0.008, 0.05])
def test_trials_cost_little(hot_s: float) -> None:
    worker = Worker(hot_s, 0.005)
    worker.run(40)
    begun_s = worker.now_s
    worker.run(3000)
    best = (worker.now_s - begun_s) / min(hot_s, 0.005)
    assert worker.num_calls >= 0.98 * best


def test_a_trial_begins_and_ends_by_the_wall_clock_alone() -> None:
    worker = Worker(0.010, 0.005, wall_s=1000.0)
    worker.run(4 * REST_S)
    begins = [at_s + 1000 for at_s, uses_hot in worker.changes if uses_hot]
    # It comes in the middle of a trial of the others, and makes its first one whole.
    first = [1050.3, 1048 + NUM_WINDOWS * WINDOW_S, 1056 + 2 * WINDOW_S]
    assert begins[:3] == pytest.approx(first, abs=0.02)
    others = begins[3:]
    assert len(others) > 4
    for at_s in others:
        _, since_s = divmod(at_s, REST_S)
        assert min(since_s, abs(since_s - 2 * WINDOW_S)) < 0.02
    assert worker.choice.num_trials == 5


def test_nearly_equal_schemes_are_not_changed() -> None:
    worker = Worker(0.0051, 0.005)
    worker.run(500)
    assert worker.choice.num_trials > 1
    assert worker.run(200) > 0.9


def test_workers_have_the_same_scheme_at_the_same_time() -> None:
    """Each is slow when any uses the switch: alone, none would find that out."""
    workers = [Worker(0.0, 0.0, wall_s=7.0 * at) for at in range(4)]
    now_s = 20.3
    for at in range(60_000):
        uses_hot = [worker.choice.uses_hot for worker in workers]
        worker = workers[at % 4]
        worker.choice.note(KEYS, now_s - 7.0 * (at % 4))
        now_s += 0.001 + 0.001 * sum(uses_hot)
    assert not any(worker.choice.uses_hot for worker in workers)


def test_another_bottleneck_is_found_out() -> None:
    worker = Worker(0.010, 0.005)
    worker.run(200)
    assert not worker.choice.uses_hot
    worker.hot_s = 0.003
    worker.run(1500)
    assert worker.choice.uses_hot
    worker.hot_s = 0.010
    worker.run(1500)
    assert not worker.choice.uses_hot


def test_a_worker_that_comes_late_has_the_scheme_of_the_others() -> None:
    early, late = Worker(0.010, 0.005), Worker(0.010, 0.005)
    early.run(FIRST_S)
    while not 1 < (early.now_s % FIRST_S) < 2:  # in a window without the switch
        early.run(0.1)
    late.now_s = early.now_s
    assert late.choice.note(KEYS, late.now_s) is early.choice.note(KEYS, late.now_s) is False


def test_a_pause_of_the_worker_is_in_no_window() -> None:
    worker = Worker(0.010, 0.005)
    worker.run(FIRST_S - worker.now_s % FIRST_S)
    while worker.choice.uses_hot:
        worker.run(0.05)
    worker.now_s += 1.5 * LONGEST_GAP_S  # in the middle of a window without the switch
    worker.run(NUM_WINDOWS * WINDOW_S)
    assert worker.choice.num_trials == 1
    assert not worker.choice.uses_hot


def test_a_pause_over_the_end_of_a_trial_ends_it() -> None:
    worker = Worker(0.010, 0.005)
    worker.run(FIRST_S - worker.now_s % FIRST_S)
    while worker.choice.uses_hot:
        worker.run(0.05)
    worker.now_s += 3 * REST_S
    worker.run(2 * REST_S)
    assert worker.choice.num_trials >= 1
    assert not worker.choice.uses_hot


@pytest.mark.parametrize("use", [HotRowUse.ALWAYS, HotRowUse.NEVER])
def test_a_fixed_choice_stays(use: HotRowUse) -> None:
    choice = HotRowChoice(use)
    found = {choice.note(KEYS, 0.001 * at) for at in range(5000)}
    assert found == {use is HotRowUse.ALWAYS}
    assert choice.num_trials == 0


def test_other_uses_are_refused() -> None:
    use: HotRowUse = "often"  # pyright: ignore[reportAssignmentType]
    with pytest.raises(ConfigurationError, match="auto, always, never"):
        ClientOptions(worker_id=0, use_hot_rows=use)
