# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Each stage of a request by the switch shows in its own metric, and only there.

The clock is the tests' own. The switch is the reference switch, and the tests deliver its packets.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from hand_time import HOUR, MS, HandTime
from hot_world import Call, World, WorldWorker
from hot_world_server import gradients_of
from live_hot_server import LiveHotServer
from row_switch import RowSwitch
from switchfold.hostlib.errors import ServerLostError
from switchfold.hostlib.latency import RequestMeter, SwitchMeter
from switchfold.hostlib.latency.schema import NO_VALUE, REQUESTS
from switchfold.hostlib.parameter_server.hot_server import hot_row_server
from switchfold.hostlib.parameter_server.hot_worker import key_samples
from switchfold.hostlib.parameter_server.hot_worker.reads import MOST_TRIES, TRY_S, HotReads
from switchfold.hostlib.parameter_server.tables import TableDefinition
from switchfold.hostlib.peers.frames import RoundsFrame
from table_cluster import open_client

DELAY = 20 * MS
METRICS = ("n_tx_us", "switch_wait_us", "w_queue_us", "w_proc_us")
WAIT_S = 60.0
NUM_LOGGED_CALLS = 8
KEYS = [7, 0, 2]
Row = dict[str, int]


class MeasuredWorld:
    """Two workers, of which the first one is measured; keys 0 to 7 are hot, at server 0."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.time = HandTime()
        self.rows: list[Row] = []
        self.world = World(monkeypatch, num_workers=2)
        self.world.server.set_rows(range(8), generation=5, first_row=3)
        self.world.server.install()
        self.world.settle()
        assert self.world.server.layout is not None
        self.world.server.write(range(3, 3 + self.world.server.layout.num_rows))
        self.world.settle()
        log: Any = SimpleNamespace(
            worker_id=0,
            recording=1,
            num_requests=0,
            append=lambda row: self.rows.append(self._named(row)),
        )
        self.log = log
        loop: Any = SimpleNamespace(clock_ns=self.time.clock(HOUR))
        self.frames = RequestMeter(loop, log, 0)
        self.worker, self.other = self.world.workers
        self.worker.rows._meter = SwitchMeter(self.frames)

    @staticmethod
    def _named(row: tuple[int, ...]) -> Row:
        return dict(zip((column.name for column in REQUESTS.columns), row, strict=True))

    def pull(self, keys: list[int] = KEYS, path_ns: int = 0, queue_ns: int = 0) -> Call:
        """Pull, with so much time on the path and in the worker's event loop."""
        call = self.worker.pull_rows(keys)
        self.time.pass_by(path_ns)
        socket: Any = self.world.sockets[0]
        socket.arrived_ns = self.frames.loop.clock_ns()
        self.time.pass_by(queue_ns)
        self.world.settle()
        return call

    def push(
        self, keys: list[int] = KEYS, path_ns: int = 0, queue_ns: int = 0, ns: int = 0
    ) -> Call:
        """Push; the other worker's push comes `ns` later."""
        call = self._send(self.worker, keys)
        self.time.pass_by(path_ns)
        self._deliver()
        self.time.pass_by(ns)
        self._send(self.other, keys)
        self._deliver()
        arrived_ns = self.frames.loop.clock_ns()
        self.time.pass_by(queue_ns)
        for frame, payload in self.worker.from_server:
            self.frames.received(frame, memoryview(payload), arrived_ns)
        self.world.settle()
        return call

    def _send(self, worker: WorldWorker, keys: list[int]) -> Call:
        return worker.push(keys, gradients_of(np.ones((len(keys), self.world.width))))

    def _deliver(self) -> None:
        while self.world.packets:
            self.world.deliver()


def delay_call(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, time: HandTime) -> None:
    original = getattr(owner, name)

    def delayed(*arguments: Any) -> Any:
        time.pass_by(DELAY)
        return original(*arguments)

    monkeypatch.setattr(owner, name, delayed)


def check(row: Row, operation: int, **expected: int) -> None:
    """Compare the metrics, in milliseconds; what is not named is 0, or null of a pull."""
    assert (row["operation"], row["path"], row["outcome"]) == (operation, 1, 0)
    times = {name: expected.get(name.removesuffix("_us"), 0) * 1000 for name in METRICS}
    if operation == 1:
        times["switch_wait_us"] = NO_VALUE
    assert {name: row[name] for name in METRICS} == times
    assert row["rtt_us"] == 1000 * (expected.get("n_tx", 0) + expected.get("switch_wait", 0))
    assert {row[f"ps_{part}_us"] for part in ("queue", "proc", "wait")} == {NO_VALUE}


@pytest.mark.parametrize("stage", ["n_tx", "switch_wait", "w_queue", "w_proc", "none"])
def test_a_delay_is_in_its_own_metric(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = MeasuredWorld(monkeypatch)
    if stage == "w_proc":
        delay_call(monkeypatch, HotReads, "finish_take", measured.time)
        delay_call(monkeypatch, RoundsFrame, "rounds", measured.time)
    at: dict[str, int] = {}
    if stage in ("n_tx", "w_queue"):
        at = {"path_ns" if stage == "n_tx" else "queue_ns": DELAY}
    keys = [0]  # one packet: a second one would wait while the first is worked on
    assert measured.pull(keys, **at).is_done
    assert measured.push(keys, **at, ns=DELAY if stage == "switch_wait" else 0).is_done
    pull, push = measured.rows
    delay = {} if stage == "none" else {stage: DELAY // MS}
    check(pull, 1, **{} if stage == "switch_wait" else delay)
    check(push, 0, **delay)


def test_a_push_that_waits_on_a_slow_path_has_both(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = MeasuredWorld(monkeypatch)
    measured.pull(path_ns=3 * MS)
    measured.push(path_ns=3 * MS, ns=4 * MS)
    check(measured.rows[1], 0, n_tx=3, switch_wait=4)


def test_without_a_pull_the_path_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = MeasuredWorld(monkeypatch)
    measured.push(path_ns=3 * MS, ns=4 * MS)
    (push,) = measured.rows
    assert (push["rtt_us"], push["n_tx_us"], push["switch_wait_us"]) == (7000, NO_VALUE, NO_VALUE)
    assert push["outcome"] == 3


def test_rows_say_what_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = MeasuredWorld(monkeypatch)
    measured.time.pass_by(5 * MS)
    measured.pull([40, *KEYS])
    measured.log.recording = 2
    measured.push()
    packet_bytes = measured.world.sockets[0].datagram_bytes
    for row, number in zip(measured.rows, (1, 2), strict=True):
        assert (row["worker"], row["server"], row["iteration"]) == (0, 0, -1)
        assert (row["call"], row["number"], row["num_keys"]) == (number, number, len(KEYS))
        assert row["sent_us"] == (HOUR + 5 * MS) // 1000
        assert row["request_bytes"] == 2 * packet_bytes
    pull, push = measured.rows
    assert pull["response_bytes"] == pull["request_bytes"]
    assert 0 < push["response_bytes"] < packet_bytes


def test_what_the_server_answers_instead_has_no_times(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = MeasuredWorld(monkeypatch)
    world = measured.world
    measured.pull()
    assert measured.rows.pop()["outcome"] == 0
    pulled = measured.worker.pull_rows(KEYS)
    calls: list[int] = []

    def note(ask: Callable[..., None]) -> Callable[..., None]:
        return lambda *arguments: (calls.append(measured.log.recording), ask(*arguments))

    monkeypatch.setattr(measured.worker, "pull", note(measured.worker.pull))
    monkeypatch.setattr(measured.worker, "push_cold", note(measured.worker.push_cold))
    measured.log.recording = 2
    pushed = measured.worker.push(KEYS, gradients_of(np.ones((len(KEYS), world.width))))
    measured.log.recording = 3
    world.packets.clear()
    for _ in range(MOST_TRIES + 1):
        world.loop.pass_by(TRY_S)
        world.packets.clear()
    world.run_until([pulled, pushed])
    assert [row["outcome"] for row in measured.rows] == [3, 0]  # the push came at the second try
    world.server.set_rows(range(4, 12), generation=5, first_row=3)
    measured.log.recording = 4
    pushed = measured.worker.push([0], gradients_of(np.ones((1, world.width))))
    measured.log.recording = 5
    world.server.install()
    world.run_until([pushed])
    assert [row["outcome"] for row in measured.rows] == [3, 0, 3]
    assert {row["rtt_us"] for row in measured.rows if row["outcome"]} == {NO_VALUE}
    assert calls == [1, 4]  # of the calls that could not go by the switch
    assert measured.log.recording == 5


def test_calls_that_are_not_recorded_leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = MeasuredWorld(monkeypatch)
    measured.pull(path_ns=3 * MS)
    measured.log.recording = 0
    for _ in range(2):
        assert measured.pull(path_ns=9 * MS).is_done
        assert measured.push(path_ns=9 * MS, ns=4 * MS).is_done
    measured.log.recording = 2
    measured.push(path_ns=3 * MS, ns=4 * MS)
    pull, push = measured.rows
    check(pull, 1, n_tx=3)
    check(push, 0, n_tx=3, switch_wait=4)  # of the last recorded pull
    assert (pull["number"], push["number"], push["call"]) == (1, 2, 2)
    assert measured.log.num_requests == 2
    assert measured.frames.num_by_switch == 0


@pytest.mark.parametrize("recorded", [{"pull"}, {"push"}, set[str]()])
def test_what_the_server_answers_instead_is_recorded_with_its_call(
    recorded: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = MeasuredWorld(monkeypatch)
    world, worker, log = measured.world, measured.worker, measured.log
    asked: list[int] = []

    def note(ask: Callable[..., None]) -> Callable[..., None]:
        return lambda *arguments: (asked.append(log.recording), ask(*arguments))

    monkeypatch.setattr(worker, "pull", note(worker.pull))
    monkeypatch.setattr(worker, "push_cold", note(worker.push_cold))
    log.recording = 4 if "pull" in recorded else 0
    pulled = worker.pull_rows(KEYS)
    log.recording = 0
    world.packets.clear()
    for _ in range(MOST_TRIES + 1):
        world.loop.pass_by(TRY_S)
        world.packets.clear()
    world.run_until([pulled])
    world.server.set_rows(range(4, 12), generation=5, first_row=3)  # row 0 is cold
    log.recording = 5 if "push" in recorded else 0
    pushed = worker.push([0], gradients_of(np.ones((1, world.width))))
    log.recording = 0
    world.server.install()
    world.run_until([pushed])
    assert asked == [4 * ("pull" in recorded), 5 * ("push" in recorded)]
    assert {(row["call"], row["outcome"]) for row in measured.rows} == {
        (4 if name == "pull" else 5, 3) for name in recorded
    }
    assert measured.log.recording == 0
    assert measured.worker.rows._measured == {}


def test_lost_requests_are_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = MeasuredWorld(monkeypatch)
    measured.worker.pull_rows(KEYS)
    measured.worker.push(KEYS, gradients_of(np.ones((len(KEYS), measured.world.width))))
    measured.worker.rows.fail(ServerLostError("gone", 0))
    assert sorted((row["operation"], row["outcome"]) for row in measured.rows) == [(0, 2), (1, 2)]


def logged_calls(
    server: LiveHotServer, folder: Path, fresh: int, count: int
) -> list[dict[str, Any]]:
    """Push and pull 20 keys, and 10 new ones with each of `count` calls; return the log.

    The new ones are numbered from `fresh` on, in tens.
    """
    definition = TableDefinition(name="hot", width=8, hot_keys=20)
    with open_client([server.address], 0, hot_sample=1.0, latency_log=folder) as client:
        table = client.define(definition)
        for call in range(fresh, fresh + count):
            keys = np.concatenate([np.arange(20), 100 + 10 * call + np.arange(10)])
            table.pull(keys).result(WAIT_S)
            table.push(keys, gradients_of(np.ones((keys.size, 8)))).result(WAIT_S)
    return [row for file in folder.glob("requests-*") for row in pq.read_table(file).to_pylist()]


def test_a_run_with_hot_keys_has_both_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the machine's own clock, sockets and event loops."""
    monkeypatch.setattr(key_samples, "SAMPLE_S", 0.02)
    monkeypatch.setattr(hot_row_server, "SILENT_S", WAIT_S)
    end_s = time.monotonic() + WAIT_S
    by_switch: list[dict[str, Any]] = []
    with RowSwitch(1, num_rows=32) as switch, LiveHotServer(switch, 1) as server:
        # Keys are hot after some pushes, and a worker hears of it while it calls: a fast machine
        # needs more calls for that. A switch that answers too late is not asked.
        for run in itertools.count():
            count, fresh = NUM_LOGGED_CALLS << min(run, 6), (NUM_LOGGED_CALLS << 6) * run
            rows = logged_calls(server, tmp_path / str(run), fresh, count)
            by_switch = [r for r in rows if r["path"] == "switch" and r["outcome"] == "answered"]
            by_server = {row["call"] for row in rows if row["path"] == "server"}
            are_both = not by_server.isdisjoint(row["call"] for row in by_switch)
            if {row["operation"] for row in by_switch} == {"push", "pull"} and are_both:
                break
            assert time.monotonic() < end_s, rows
    for row in by_switch:
        assert row["w_queue_us"] >= 0
        assert row["w_proc_us"] >= 0
        assert row["rtt_us"] == row["n_tx_us"] + (row["switch_wait_us"] or 0)
