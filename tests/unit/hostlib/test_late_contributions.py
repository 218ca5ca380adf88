# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Contributions that are late, and not lost, in sums that tolerate loss: when they are let go.

In simulated time, over the reference of the slot protocol; a ledger checks each packet.
"""

from __future__ import annotations

import ctypes
import random

import numpy as np
import pytest

from loss_ledger import LossLedger
from slot_simulation import Simulation
from switchfold.hostlib.loss_tolerance import LossTolerance
from switchfold.hostlib.native.library import library
from switchfold.hostlib.native.structures import RttStruct
from switchfold.hostlib.options import LateWait, SessionOptions
from switchfold.hostlib.slots.switch_reducer import split_slots

TENTH = LossTolerance(loss=0.1)
TRIP_S = 0.001


class Tail(ctypes.Structure):
    """`tail_t` of tail.h."""

    _fields_ = (
        ("is_adaptive", ctypes.c_bool),
        ("percentile_s", ctypes.c_double),
        ("num_samples", ctypes.c_uint32),
    )


class MovingTail:
    """The C library's percentile of the times that chunks take."""

    def __init__(self) -> None:
        self._tail = Tail()
        self._rtt = RttStruct(prompt_s=TRIP_S)

    def add(self, taken_s: float, *, is_let_go: bool = False) -> None:
        function = library["tail_add"]
        function.argtypes, function.restype = (
            (ctypes.c_void_p, ctypes.c_double, ctypes.c_bool),
            None,
        )
        function(ctypes.byref(self._tail), taken_s, is_let_go)

    def wait_s(self, *, is_last: bool) -> float:
        function = library["tail_wait_s"]
        function.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_bool)
        function.restype = ctypes.c_double
        return float(function(ctypes.byref(self._tail), ctypes.byref(self._rtt), is_last))


def test_nothing_is_late_before_there_are_samples() -> None:
    tail = MovingTail()
    for _ in range(199):
        tail.add(0.01)
    assert tail.wait_s(is_last=True) == np.inf
    tail.add(0.01)
    assert tail.wait_s(is_last=True) < np.inf


def test_wait_follows_the_95th_percentile() -> None:
    chance, tail = random.Random(1), MovingTail()
    waits_s: list[float] = []
    for number in range(20_000):
        tail.add(chance.uniform(0.01, 0.03))
        if number >= 1000:
            waits_s.append(tail.wait_s(is_last=True))
    assert np.mean(waits_s) == pytest.approx(0.029, rel=0.05)
    assert tail.wait_s(is_last=False) > tail.wait_s(is_last=True)


def test_wait_rises_fast_and_falls_slowly() -> None:
    tail = MovingTail()
    for _ in range(400):
        tail.add(0.01)
    before_s = tail.wait_s(is_last=True)
    for _ in range(40):
        tail.add(0.1)
    raised_s = tail.wait_s(is_last=True)
    assert raised_s > 2 * before_s
    for _ in range(40):
        tail.add(0.01)
    assert tail.wait_s(is_last=True) > 0.9 * raised_s


def test_chunks_that_were_let_go_early_do_not_shorten_the_wait() -> None:
    tail = MovingTail()
    for _ in range(400):
        tail.add(0.01)
    before_s = tail.wait_s(is_last=True)
    for _ in range(1000):
        tail.add(0.001, is_let_go=True)
    assert tail.wait_s(is_last=True) == before_s


def test_wait_is_some_round_trips_at_least() -> None:
    tail = MovingTail()
    for _ in range(400):
        tail.add(TRIP_S / 10)
    assert tail.wait_s(is_last=True) == tail.wait_s(is_last=False) == pytest.approx(2 * TRIP_S)


def late_start(late_wait: LateWait, seed: int = 1, loss: float = 0.0) -> Simulation:
    """Let worker 0 begin half a second late with 60 chunks, after 250 as usual."""
    ledger = LossLedger(3, split_slots(64)[1], loss=0.1, worker_floor=0.8)
    simulation = Simulation(
        3,
        seed=seed,
        loss=loss,
        slot_count=64,
        tolerance=LossTolerance(loss=0.1, worker_floor=0.8),
        options=SessionOptions(late_wait=late_wait),
        ledger=ledger,
    )
    simulation.sum(250)
    before = ledger.num_lacking
    assert loss or not before
    simulation.sum(60, late_s=0.5)
    ledger.check_whole()
    return simulation


def test_worker_that_is_late_beyond_the_usual_is_let_go_within_its_floor() -> None:
    bitmaps = late_start("adaptive").bitmaps
    share = (bitmaps & 1).mean()
    assert 0.8 <= share < 1
    assert ((bitmaps | 1) == 7).all(), "nobody else is late"


def test_worker_that_begins_late_is_waited_for_otherwise() -> None:
    assert (late_start("silence").bitmaps == 7).all()


@pytest.mark.parametrize("seed", range(6))
def test_bound_holds_where_a_late_worker_loses_packets_as_well(seed: int) -> None:
    late_start("adaptive", seed, loss=[0.02, 0.1, 0.3][seed % 3])


def test_usual_sums_lack_nothing() -> None:
    simulation = Simulation(3, tolerance=TENTH, options=SessionOptions(late_wait="adaptive"))
    for _ in range(3):
        simulation.sum(200)
        assert (simulation.bitmaps == 7).all()
    assert [worker.values.counters.flushed for worker in simulation.workers] == [0] * 3
