# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which values a server of hot rows writes to the switch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from switchfold.hostlib.hot_rows import LaneLayout, RowShape
from switchfold.hostlib.parameter_server.hot_server import value_server as module
from switchfold.hostlib.parameter_server.hot_server.served_rows import SERVED_DTYPE, ServedRows
from switchfold.hostlib.parameter_server.hot_server.value_server import (
    IDLE_REWRITE_S,
    IDLE_S,
    IDLE_WRITE_S,
    ValueServer,
)
from switchfold.hostlib.parameter_server.hot_server.value_writer import REPEAT_S
from switchfold.hostlib.peers.event_loop import EventLoop

WRITE_S = 0.01
WATCH_S = 0.1
RECEIPT_S = 0.001


def test_rows_of_a_log_may_change_before_there_is_a_view() -> None:
    rows = np.zeros(2, SERVED_DTYPE)
    rows["row"], rows["table"], rows["epoch"] = [0, 1], 5, [32, 64]
    layout = LaneLayout(RowShape(num_lanes=2, width=1), np.arange(4), np.ones(2, np.uint32))
    served = ServedRows(3, rows, ((5, layout),))
    tables = SimpleNamespace(hot_state=SimpleNamespace(served=served), counters=Counter[str]())
    loop = EventLoop("test-values")
    try:
        values = ValueServer(loop, cast(Any, tables), None, 0.01)
        loop.run(lambda: values.mark(np.array([0, 1, -1])))
    finally:
        loop.stop(lambda: None)


class SentRow(NamedTuple):
    """What a WRITE has, and when it was sent."""

    now_s: float
    row: int
    version: int
    value: float


class ValueScene:
    """A server of 4 rows with a key each, a clock that the test drives, and a switch.

    `push` changes a key's value. Its row's WRITEs get receipts while `has_receipts`.
    """

    TABLE = 5
    ROWS = np.arange(10, 14, dtype=np.uint32)

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        rows = np.zeros(4, SERVED_DTYPE)
        rows["row"], rows["table"], rows["epoch"] = self.ROWS, self.TABLE, 32
        layout = LaneLayout(RowShape(num_lanes=1, width=1), np.arange(4), np.ones(4, np.uint32))
        self._tables = SimpleNamespace(
            hot_state=SimpleNamespace(served=ServedRows(3, rows, ((self.TABLE, layout),))),
            hot_tables={self.TABLE: SimpleNamespace(values=self._values_of)},
            counters=Counter[str](),
            num_applied=0,
        )
        self._now_s = 100.0
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self._now_s))
        self._timers: list[tuple[float, Callable[[], None]]] = []
        self.values = np.zeros((4, 1), np.float32)
        self.has_receipts = True
        self.writes: list[SentRow] = []
        packets = SimpleNamespace(values_per_packet=1, write=self._write)
        end = SimpleNamespace(speaks=self._speaks, packets=packets, send=self._send)
        self.server = ValueServer(cast(Any, self), cast(Any, self._tables), cast(Any, end), WRITE_S)
        self.server.start()
        self.call_later(WATCH_S, self._watch)

    @staticmethod
    def _speaks(_generation: int) -> bool:
        return True

    def _send(self, _datagrams: object) -> None:
        """`_write` has kept what they hold."""

    def _values_of(self, keys: NDArray[np.int64]) -> NDArray[np.float32]:
        return self.values[keys]

    def call_later(self, delay_s: float, call: Callable[[], None]) -> None:
        """As an EventLoop does."""
        self._timers.append((self._now_s + delay_s, call))

    def _watch(self) -> None:
        self.server.write_some_again()
        self.call_later(WATCH_S, self._watch)

    def _write(self, rows: Any, epochs: Any, versions: Any, lanes: NDArray[np.int32]) -> None:
        values = lanes[:, 0].copy().view(np.float32).tolist()
        for row, version, value in zip(rows.tolist(), versions.tolist(), values, strict=True):
            self.writes.append(SentRow(self._now_s, row, version, value))
        headers = np.zeros(rows.size, [("slot_index", "<u4"), ("round", "<u4")])
        headers["slot_index"], headers["round"] = rows, versions
        if self.has_receipts:
            self.call_later(RECEIPT_S, lambda: self.server.take_receipts(headers))

    def pass_by(self, duration_s: float) -> list[SentRow]:
        """Let time pass; return the WRITEs meanwhile."""
        end_s, before = self._now_s + duration_s, len(self.writes)
        while True:
            at = min(range(len(self._timers)), key=lambda at: self._timers[at][0])
            if self._timers[at][0] > end_s:
                break
            self._now_s, call = self._timers.pop(at)
            call()
        self._now_s = end_s
        return self.writes[before:]

    def rest(self) -> None:
        """Let time pass until the server is idle, and has written everything."""
        self.pass_by(IDLE_S + 2 * WATCH_S + IDLE_WRITE_S)
        assert self.server.is_idle

    def push(self, key: int) -> None:
        """Have a PUSH by TCP change a key, as HotRowServer tells it."""
        self._change(key)
        if self.server.is_idle:
            self.server.mark_unknown()
        else:
            self.server.mark(np.array([key]))

    def add_sum(self, key: int) -> None:
        """Have a sum from the switch change a key."""
        self.server.note_use()
        self._change(key)
        self.server.mark(np.array([key]))

    def _change(self, key: int) -> None:
        self._tables.num_applied += 1
        self.values[key] += 1


def test_rows_are_written_soon_while_sums_come(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = ValueScene(monkeypatch)
    assert {write.row for write in scene.pass_by(2 * WRITE_S)} == set(ValueScene.ROWS.tolist())
    for _ in range(10):
        scene.add_sum(0)
        scene.push(1)
        assert {10, 11} <= {write.row for write in scene.pass_by(2 * WRITE_S)}
        scene.pass_by(IDLE_S / 2)
        assert not scene.server.is_idle


def test_an_idle_server_writes_all_rows_now_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = ValueScene(monkeypatch)
    scene.rest()
    for _ in range(3):
        begun = len(scene.writes)
        for _ in range(30):
            scene.push(2)
            scene.pass_by(IDLE_REWRITE_S / 10)
        counts = Counter(write.row for write in scene.writes[begun:])
        assert set(counts) == set(ValueScene.ROWS.tolist())
        assert max(counts.values()) <= 4
        # The switch is never further behind than this.
        written = scene.pass_by(IDLE_REWRITE_S + WATCH_S + IDLE_WRITE_S)
        assert [write.value for write in written if write.row == 12][-1] == scene.values[2, 0]


def test_the_first_sum_has_all_rows_written_that_changed_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = ValueScene(monkeypatch)
    scene.rest()
    scene.push(3)
    assert not [write for write in scene.pass_by(WATCH_S) if write.value]
    scene.add_sum(0)
    assert not scene.server.is_idle
    written = {write.row: write for write in scene.pass_by(IDLE_WRITE_S)}
    assert set(written) == set(ValueScene.ROWS.tolist())
    assert (written[10].value, written[13].value) == (1, 1)
    assert {write.version for write in written.values()} == {2}
    scene.push(1)
    assert {write.row for write in scene.pass_by(2 * WRITE_S)} == {11}


def test_an_idle_server_repeats_writes_without_receipts(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = ValueScene(monkeypatch)
    scene.rest()
    scene.has_receipts = False
    scene.push(3)
    lost = scene.pass_by(IDLE_REWRITE_S + WATCH_S + IDLE_WRITE_S)
    assert SentRow(lost[-1].now_s, 13, 1, 1.0) in lost
    scene.has_receipts = True
    assert any(write.row == 13 for write in scene.pass_by(2 * IDLE_WRITE_S + 4 * REPEAT_S))


def test_a_version_never_has_two_contents_nor_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = ValueScene(monkeypatch)
    rng = np.random.default_rng(1)
    for _ in range(400):
        key = int(rng.integers(4))
        if rng.random() < 0.02:
            scene.add_sum(key)
        else:
            scene.push(key)
        scene.has_receipts = rng.random() < 0.9
        scene.pass_by(float(rng.exponential(0.1)))
    for row in ValueScene.ROWS.tolist():
        own = [write for write in scene.writes if write.row == row]
        assert [write.version for write in own] == sorted(write.version for write in own)
        assert [write.value for write in own] == sorted(write.value for write in own)
        assert len({write[2:] for write in own}) == len({write.version for write in own})


def test_other_rows_are_written_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an idle server has not written when its rows change, it writes with the new rows."""
    scene = ValueScene(monkeypatch)
    scene.rest()
    scene.push(3)
    scene.server.stop()
    assert not scene.server.is_idle
    assert not scene.pass_by(2 * IDLE_REWRITE_S)
    scene.server.start()
    assert {write.row for write in scene.pass_by(2 * WRITE_S)} == set(ValueScene.ROWS.tolist())
