# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The congestion window: how it grows, what makes it smaller, and what does not."""

from __future__ import annotations

import numpy as np
import pytest

from congestion_window import CongestionWindow, tolerated_loss
from fake_switch import FakeSwitch
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.session import Session

INITIAL_CHUNKS = 16
MINIMUM_CHUNKS = 2
DECREASE = 0.7
INCREASE = 0.16
BLIND_CHUNKS = 16
"""Losses alone leave so many."""


def new_window(maximum: int, *, tolerated: float = 0.0, floor: int = 0) -> CongestionWindow:
    """A window as a slot stream has it."""
    return CongestionWindow(
        maximum,
        initial=INITIAL_CHUNKS,
        minimum=MINIMUM_CHUNKS,
        tolerated=tolerated,
        floor=floor,
    )


def one_rtt(window: CongestionWindow, marked: int = 0) -> int:
    """Let the results of one full window arrive in batches of 8; return the window after that."""
    under_way = left = window.limit
    while left:
        count = min(8, left)
        # What came back is replaced at once.
        window.on_results(count, min(marked, count), max(under_way, window.limit))
        left -= count
        marked = max(0, marked - count)
    return window.limit


def test_window_doubles_until_the_maximum() -> None:
    window = new_window(100)
    limits = [window.limit, *(one_rtt(window) for _ in range(4))]
    assert limits == [INITIAL_CHUNKS, 2 * INITIAL_CHUNKS, 4 * INITIAL_CHUNKS, 100, 100]


def test_window_decreases_once_per_rtt() -> None:
    window = new_window(256)
    for _ in range(4):
        one_rtt(window)
    assert window.limit == 256
    assert one_rtt(window, marked=256) == int(256 * DECREASE)
    # 256 results belonged to chunks sent before; the next mark is news.
    window.on_results(1, 1, window.limit)
    assert window.limit == int(256 * DECREASE**2)


def test_window_grows_slowly_after_congestion() -> None:
    window = new_window(256)
    one_rtt(window)
    window.on_results(1, 1, window.limit)
    before = window.limit
    one_rtt(window)  # while it ignores marks, it may grow
    for _ in range(round(4 / INCREASE)):
        one_rtt(window)
    assert before + 3 <= window.limit <= before + 6


def test_window_never_falls_below_the_floor() -> None:
    window = new_window(64)
    for _ in range(100):
        one_rtt(window, marked=1)
        window.on_loss(window.limit)
    assert window.limit == MINIMUM_CHUNKS
    assert new_window(1).limit == 1
    alone = new_window(1)
    alone.on_loss(1)
    assert alone.limit == 1


def test_window_that_was_not_full_does_not_grow() -> None:
    window = new_window(256)
    window.on_results(4, 0, INITIAL_CHUNKS - 1)
    assert window.limit == INITIAL_CHUNKS


FLOOR = 50


def test_loss_leaves_the_floor() -> None:
    window = new_window(100, tolerated=0.2, floor=FLOOR)
    window.on_loss(INITIAL_CHUNKS)
    one_rtt(window)
    assert window.limit == 2 * INITIAL_CHUNKS  # slow start goes on below the floor
    for _ in range(4):
        one_rtt(window)
    assert window.limit == 100
    for _ in range(50):
        window.on_loss(window.limit, 5)
        one_rtt(window)
        assert window.limit >= FLOOR
    assert window.limit < FLOOR + 2


def test_more_loss_than_links_lose_counts_like_a_mark() -> None:
    window = new_window(100, tolerated=0.2, floor=FLOOR)
    for _ in range(4):
        one_rtt(window)
    for _ in range(50):
        window.on_loss(window.limit, window.limit)
        one_rtt(window)
    assert window.limit == BLIND_CHUNKS
    one_rtt(window, marked=1)
    one_rtt(window, marked=1)
    assert window.limit < BLIND_CHUNKS


def test_loss_does_not_hide_a_mark() -> None:
    window = new_window(100, tolerated=0.2, floor=FLOOR)
    for _ in range(4):
        one_rtt(window)
    for _ in range(4):
        window.on_loss(window.limit)
        one_rtt(window)
    before = window.limit
    window.on_loss(before)
    window.on_results(1, 1, before)
    assert window.limit == int(before * DECREASE) < FLOOR


@pytest.mark.parametrize(("num_workers", "share"), [(1, 0.19), (2, 0.27), (4, 0.41)])
def test_tolerated_loss_counts_every_hop_of_a_chunk(num_workers: int, share: float) -> None:
    assert tolerated_loss(num_workers) == pytest.approx(share, abs=0.005)


OPTIONS = SessionOptions(
    min_rto_s=0.02, initial_rto_s=0.05, max_rto_s=0.1, coalesce_s=0, timeout_s=60.0
)


def run_sums(switch: FakeSwitch, late_s: float = 0.0) -> dict[str, int | float]:
    """Sum twice, worker 1 later than worker 0 by `late_s`; return worker 0's statistics."""
    array = np.arange(8_000, dtype=np.int32)
    with (
        Session.direct(switch.view(0), switch.transport(0), OPTIONS) as first,
        Session.direct(switch.view(1), switch.transport(1), OPTIONS) as second,
    ):
        for _ in range(2):
            future = first.allreduce(array)
            if late_s:
                with pytest.raises(TimeoutError):
                    future.result(late_s)
            other = second.allreduce(array)
            for each in (future, other):
                np.testing.assert_array_equal(each.result(60), 2 * array)
        return first.statistics


def test_window_is_whole_without_congestion() -> None:
    statistics = run_sums(FakeSwitch(2, values_per_packet=32, slot_count=128))
    assert statistics["window"] == 128 - 16
    assert statistics["value_packets_marked"] == 0


def test_late_worker_is_no_congestion() -> None:
    statistics = run_sums(FakeSwitch(2, values_per_packet=32, slot_count=128), late_s=0.3)
    assert statistics["value_packets_retransmitted"] > 0
    assert statistics["window"] == 128 - 16


def test_random_loss_makes_the_window_smaller() -> None:
    switch = FakeSwitch(2, values_per_packet=32, slot_count=128, loss=0.05)
    statistics = run_sums(switch)
    assert statistics["value_packets_retransmitted"] > 0
    assert MINIMUM_CHUNKS <= statistics["window"] < 128 - 16
