# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What workers are told of hot rows, also those that do not read; writes and questions in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hot_schedule import one, u32
from switchfold.hostlib.parameter_server.hot_server.round_server import AskedRounds
from switchfold.hostlib.parameter_server.hot_server.rounds import RowRounds, RowsOfRounds
from switchfold.hostlib.parameter_server.hot_server.teller import WorkerTeller
from switchfold.hostlib.parameter_server.hot_server.value_writer import REPEAT_S, ValueWriter
from switchfold.hostlib.peers.frames import (
    DECISION_DTYPE,
    HotRowsFrame,
    HotRowsState,
    Packable,
    RoundsFrame,
)

FLUSH_S = 0.1


class StoppedLoop:
    """Keeps timers until `run`."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []

    def call_later(self, delay_s: float, call: Callable[[], None]) -> None:
        self.calls.append(call)

    def run(self) -> None:
        calls, self.calls = self.calls, []
        for call in calls:
            call()


class Reader:
    """A worker's connection."""

    def __init__(self) -> None:
        self.is_behind = False
        self.frames: list[Packable] = []

    def send_hot(self, frame: Packable, payload: bytes) -> None:
        self.frames.append(frame)

    @property
    def kinds(self) -> list[type]:
        kinds: list[type] = [type(frame) for frame in self.frames]
        self.frames.clear()
        return kinds


def decisions(count: int) -> NDArray[np.void]:
    return np.zeros(count, DECISION_DTYPE)


def test_decisions_of_a_generation_go_together_to_those_who_read() -> None:
    loop: Any = StoppedLoop()
    states: list[HotRowsState | None] = [HotRowsState(5)]
    teller = WorkerTeller(loop, lambda worker_id: states[0], FLUSH_S)
    first, second = Reader(), Reader()
    teller.enter(0, first)
    teller.enter(1, second)
    assert first.kinds == second.kinds == [HotRowsFrame]
    second.is_behind = True
    for _ in range(3):
        teller.note(5, decisions(2))
    assert first.kinds == []
    teller.note(5, decisions(0))
    teller.note(6, decisions(1))
    loop.run()
    (before, after) = first.frames
    assert isinstance(before, RoundsFrame)
    assert isinstance(after, RoundsFrame)
    assert (before.generation, before.payload_bytes) == (5, 6 * DECISION_DTYPE.itemsize)
    assert (after.generation, after.payload_bytes) == (6, DECISION_DTYPE.itemsize)
    assert second.frames == []
    second.is_behind = False
    teller.note(6, decisions(1))
    loop.run()
    assert second.frames == [], "it has missed some"
    teller.on_drained(1, second)
    assert second.kinds == [HotRowsFrame]
    teller.on_drained(1, second)
    assert second.kinds == []
    teller.leave(1, first)  # an older connection
    teller.note(6, decisions(1 << 17))
    first.frames.clear()
    teller.tell_state(0)
    assert first.kinds == [RoundsFrame, RoundsFrame, HotRowsFrame]
    states[0] = None
    teller.tell_states()
    assert first.kinds == []


def test_a_row_is_written_until_its_last_version_is_received() -> None:
    writer = ValueWriter(3)
    assert writer.take_due(0.0).tolist() == [0, 1, 2]
    writer.note_sent(np.arange(3), 7, 0.0)
    writer.mark(np.array([1]))
    assert writer.take_due(REPEAT_S / 2).tolist() == []
    writer.note_receipts(np.array([0, 1, 2]), u32(7, 7, 6), 0.0)
    assert writer.take_due(REPEAT_S / 2).tolist() == [1]
    assert writer.take_due(REPEAT_S).tolist() == [1, 2]
    writer.note_sent(np.array([1, 2]), 8, REPEAT_S)
    writer.note_receipts(np.array([1, 2]), u32(8, 8), REPEAT_S)
    assert not writer.has_work
    writer.mark_some(2)
    assert writer.take_due(1.0).tolist() == [0, 1]
    writer.note_sent(np.arange(2), 9, 1.0)
    writer.mark_some(2)
    assert writer.take_due(1.0).tolist() == [2]
    assert writer.is_older(np.array([0, 1]), u32(10, 9)).tolist() == [True, False]


def test_writes_are_repeated_less_often_where_receipts_take_long() -> None:
    writer = ValueWriter(1)
    rows = np.array([0])
    writer.note_sent(rows, 1, 0.0)
    assert writer.take_due(REPEAT_S).tolist() == [0]
    writer.note_sent(rows, 1, REPEAT_S)  # the second pause is twice as long
    assert writer.take_due(2.5 * REPEAT_S).tolist() == []
    assert writer.take_due(3.1 * REPEAT_S).tolist() == [0]
    writer.note_receipts(rows, u32(1), 8.0)  # of which of the two is unknown
    now_s = 10.0
    for version in range(2, 60):
        writer.mark(rows)
        assert writer.take_due(now_s).tolist() == [0]
        writer.note_sent(rows, version, now_s)
        now_s += 10 * REPEAT_S
        writer.note_receipts(rows, u32(version), now_s)
    writer.mark(rows)
    writer.note_sent(rows, 60, now_s)
    assert writer.take_due(now_s + 19 * REPEAT_S).tolist() == []
    assert writer.take_due(now_s + 21 * REPEAT_S).tolist() == [0]


def test_questions_end_with_a_fence() -> None:
    rounds = RowRounds(2)
    rounds.make_rows(2)
    asked = AskedRounds(1.0)
    assert asked.add(RowsOfRounds(u32(0, 1), u32(1, 2)), 10.0).rows.size == 2
    assert not asked.add(one(0, 1), 11.0).rows.size
    due = asked.take_due(rounds, 12.0)
    assert (due.flushed.rows.tolist(), due.fenced.rows.tolist()) == ([0, 1], [])
    rounds.decide(one(1, 2), u32(1))
    due = asked.take_due(rounds, 13.0)
    assert (due.flushed.rows.tolist(), due.fenced.rows.tolist()) == ([], [0])
    assert len(asked) == 1
