# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Workers try how many chunks to have under way towards each root."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fake_switch import FakeSwitch
from incast_limit import IncastLimit
from switchfold.hostlib import Session, SessionOptions

ROOTS = 8
SLOTS = 112
CUT = 24
"""Window of the first trial: a quarter of the slots of each root, rounded down."""
SAMPLE = 256
TRIAL = SAMPLE + SLOTS
"""Results of a trial, and of what was sent before it."""
USUAL_S = 0.001
QUICKER_S = 0.9 * USUAL_S


OPTIONS = SessionOptions(
    min_rto_s=0.02, initial_rto_s=0.05, max_rto_s=0.1, coalesce_s=0, timeout_s=60.0
)


def limit_of(again: float) -> IncastLimit:
    """Return a limit that has seen a share sent again, and tries a lower number."""
    limit = IncastLimit(slots=SLOTS, roots=ROOTS)
    limit.take(SAMPLE, again, USUAL_S)
    return limit


def kept_limit() -> IncastLimit:
    """Return a limit whose first trial has ended all loss."""
    limit = limit_of(0.5)
    limit.take(TRIAL, 0, QUICKER_S)
    return limit


def test_lower_number_is_tried_where_much_is_sent_again() -> None:
    assert limit_of(0.5).window == CUT
    assert limit_of(1 / 16).window == SLOTS


def test_lower_number_that_ends_losses_is_kept() -> None:
    limit = kept_limit()
    limit.take(SAMPLE, 0, USUAL_S)
    assert limit.window == CUT


def test_lower_number_is_given_up_where_as_much_is_sent_again() -> None:
    """Links lose packets at random, whatever is under way."""
    limit = limit_of(0.5)
    limit.take(TRIAL, 0.5, USUAL_S)
    assert limit.window == SLOTS


def test_lower_number_is_given_up_where_chunks_take_longer() -> None:
    """Less is lost, but links are idle."""
    limit = limit_of(0.5)
    limit.take(TRIAL, 0, 1.5 * USUAL_S)
    assert limit.window == SLOTS


def test_next_trial_waits_longer_after_each_that_failed() -> None:
    limit = limit_of(0.5)
    trials: list[int] = []
    was_limited = True
    for taken in range(SAMPLE, 20_000):
        is_limited = limit.window < SLOTS
        if is_limited and not was_limited:
            trials.append(taken)
        was_limited = is_limited
        limit.take(1, taken % 2, USUAL_S)
    assert trials == [4096, 16384]


def test_lower_number_is_tried_again_until_losses_end() -> None:
    limit = limit_of(0.5)
    limit.take(TRIAL, 0.25, QUICKER_S)
    limit.take(1, 0, QUICKER_S)
    assert limit.window == 2 * ROOTS


@pytest.mark.parametrize(("count", "again", "window"), [(TRIAL, 0, CUT + ROOTS), (100, 0.25, CUT)])
def test_higher_number_is_kept_unless_losses_come_back(
    count: int, again: float, window: int
) -> None:
    limit = kept_limit()
    for _ in range(4096):
        if limit.window != CUT:
            break
        limit.take(1, 0, USUAL_S)
    assert limit.window == CUT + ROOTS
    limit.take(count, again, USUAL_S)
    assert limit.window == window


def test_chunks_that_are_not_sent_at_all_are_no_losses() -> None:
    limit = IncastLimit(slots=SLOTS, roots=ROOTS)
    limit.take(SAMPLE, 1, USUAL_S, is_withheld=True)
    assert limit.window == SLOTS


def test_option_of_a_session_reaches_its_streams_alone() -> None:
    """Of two workers of a job, one tries other numbers; both have the same sums."""
    switch = FakeSwitch(2, slot_count=128, loss=0.2)
    array = np.arange(switch.values_per_packet * 2 * SAMPLE, dtype=np.int32)
    dynamic = replace(OPTIONS, dynamic_incast=True)
    with (
        Session.direct(switch.view(0), switch.transport(0), dynamic) as trying,
        Session.direct(switch.view(1), switch.transport(1), OPTIONS) as other,
    ):
        for _ in range(3):
            futures = [session.allreduce(array) for session in (trying, other)]
            for future in futures:
                np.testing.assert_array_equal(future.result(60), 2 * array)
        assert trying.statistics["incast_trials"] > 0
        assert other.statistics["incast_trials"] == 0
