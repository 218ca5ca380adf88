# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Hot rows and the log of their server: what is durable is told, and what is refused is fenced."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from hot_schedule import NARROW, one, u32
from switchfold.hostlib.hot_rows import LaneLayout, RowShape
from switchfold.hostlib.parameter_server.hot_server.changes import HotLayout
from switchfold.hostlib.parameter_server.hot_server.served_rows import SERVED_DTYPE, ServedRows
from switchfold.hostlib.parameter_server.hot_server.state import ArrivedSums, DecidedRounds
from table_cases import ServiceBench
from table_cluster import Floats, Keys

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
ROW, EPOCH, NUM_LANES = 3, 64, 8


class DecisionWatch:
    """Collects what the service tells."""

    def __init__(self, bench: ServiceBench) -> None:
        self._bench = bench
        self.decided: list[tuple[int, int, int]] = []
        self.num_layouts = self.num_failed_layouts = self.num_batches = 0
        bench.service.hot = self

    def wants_batch(self, table: int) -> bool:
        return True

    def on_batch(self, table: int, keys: Keys, values: Floats) -> None:
        self.num_batches += 1

    def on_decided(self, decided: DecidedRounds) -> None:
        with self._bench.changed:
            rounds = decided.rounds
            self.decided += zip(
                rounds["row"].tolist(),
                rounds["round"].tolist(),
                rounds["bitmap"].tolist(),
                strict=True,
            )
            self._bench.changed.notify_all()

    def on_layout(self) -> None:
        with self._bench.changed:
            self.num_layouts += 1
            self._bench.changed.notify_all()

    def on_layout_failed(self) -> None:
        with self._bench.changed:
            self.num_failed_layouts += 1
            self._bench.changed.notify_all()


def layout_of(epoch: int, generation: int = 1) -> HotLayout:
    rows = np.zeros(1, SERVED_DTYPE)
    rows[0] = (ROW, NARROW.number, epoch, 0)
    shape = RowShape(num_lanes=NUM_LANES, width=NARROW.width)
    layout = LaneLayout(shape, np.array([5, 6]), np.ones(1, np.uint32))
    return HotLayout(ServedRows(generation, rows, ((NARROW.number, layout),), number=1))


def send_sum(bench: ServiceBench, number: int, value: int, epoch: int = EPOCH) -> None:
    lanes = np.full((1, NUM_LANES), value, np.int32)
    arrived = ArrivedSums(one(ROW, number), u32(epoch), u32(3), lanes)
    hot = bench.service.state.hot
    bench.run(lambda: bench.service.submit_hot(hot.claim_sums(arrived)))


def values(bench: ServiceBench) -> list[float]:
    return bench.service.state.pull(NARROW.number, np.array([5, 6])).values.ravel().tolist()


def start(bench: ServiceBench) -> DecisionWatch:
    watch = DecisionWatch(bench)
    client = bench.entered(0, 11)
    client.define(1, NARROW)
    bench.wait(lambda: client.applied == [1])
    bench.run(lambda: bench.service.submit_hot(layout_of(EPOCH)))
    bench.wait(lambda: watch.num_layouts == 1)
    return watch


def test_a_sum_is_told_when_it_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ServiceBench(monkeypatch, tmp_path) as bench:
        watch = start(bench)
        bench.disk.stop()
        send_sum(bench, 1, 4)
        bench.disk.wait_stopped()
        send_sum(bench, 1, 9)  # too late
        send_sum(bench, 2, 100)
        assert watch.decided == []
        assert values(bench) == [0] * 6
        bench.disk.go_on()
        bench.wait(lambda: len(watch.decided) == 2)
        assert watch.decided == [(ROW, 1, 3), (ROW, 2, 3)]
        assert values(bench) == [104] * 6
        before = dict(bench.service.state.hot.pack())
    with ServiceBench(monkeypatch, tmp_path) as bench:
        assert dict(bench.service.state.hot.pack()) == before
        assert values(bench) == [104] * 6


def test_a_sum_that_the_log_refuses_is_fenced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ServiceBench(monkeypatch, tmp_path) as bench:
        watch = start(bench)
        bench.disk.stop()
        bench.disk.write_error = FULL
        send_sum(bench, 1, 4)
        send_sum(bench, 2, 5)
        bench.run(lambda: bench.service.submit_hot(layout_of(EPOCH + 32)))
        bench.disk.go_on()
        bench.wait(lambda: watch.num_failed_layouts == 1)
        send_sum(bench, 1, 9)  # once more: the round stays closed
        assert watch.decided == []
        bench.disk.write_error = None
        bench.wait(lambda: len(watch.decided) == 2)
        assert sorted(watch.decided) == [(ROW, 1, 0), (ROW, 2, 0)]
        send_sum(bench, 3, 1)
        bench.wait(lambda: len(watch.decided) == 3)
        assert watch.decided[-1] == (ROW, 3, 3)
        assert values(bench) == [1] * 6


def test_a_new_process_ends_the_open_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that what the old one has in them does not count as the new one's."""
    with ServiceBench(monkeypatch, tmp_path) as bench:
        watch = start(bench)
        send_sum(bench, 2, 4)
        bench.wait(lambda: len(watch.decided) == 1)
        bench.disk.stop()
        newer = bench.client(0, 22).enter()
        send_sum(bench, 1, 100)
        bench.disk.go_on()
        bench.wait(lambda: newer.num_entered == 1)
        send_sum(bench, 2, 100)
        assert watch.decided == [(ROW, 2, 3), (ROW, 1, 0)]
        counted = bench.service.state.hot.rounds.counted[ROW]
        assert counted.tolist() == [[0, 0], [0, 1 << 32 | 2]]
        send_sum(bench, 3, 1)
        bench.wait(lambda: len(watch.decided) == 3)
        assert values(bench) == [5] * 6


def test_without_a_log_sums_count_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with ServiceBench(monkeypatch) as bench:
        watch = start(bench)
        send_sum(bench, 1, 4)
        assert watch.decided == [(ROW, 1, 3)]
        bench.run(lambda: bench.service.submit_hot(layout_of(EPOCH + 32)))
        assert watch.decided[1:] == [(ROW, 2, 0), (ROW, 3, 0)]
        send_sum(bench, 4, 4)  # of the epoch before
        send_sum(bench, 4, 8, EPOCH + 32)
        assert values(bench) == [12] * 6
        assert bench.service.state.counters["hot_pushes"] == 4
        client = bench.entered(1, 44)
        client.push(1, NARROW, [5])
        assert watch.num_batches == 1
