# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A log takes a bounded share of the processor: whole calls are recorded, or not, and fairly.

Processor time is the tests' own.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from hot_world_server import gradients_of
from live_hot_server import LiveHotServer
from loopback import LOOPBACK
from measured_tables import WAIT_S, MeasuredTables, Row
from row_switch import RowSwitch
from switchfold.hostlib.errors import ConfigurationError
from switchfold.hostlib.latency import (
    RequestMeter,
    ServedRequests,
    SwitchMeter,
    call_sampler,
    parquet_log,
)
from switchfold.hostlib.latency.call_sampler import (
    MOST_NS,
    RECORD_NS,
    SHARE,
    STRETCH,
    WHOLE_NS,
    CallSampler,
)
from switchfold.hostlib.latency.schema import METADATA_KEY
from switchfold.hostlib.parameter_server import ParameterServer, ServerOptions
from switchfold.hostlib.parameter_server.hot_server import hot_row_server
from switchfold.hostlib.parameter_server.hot_worker import key_samples
from switchfold.hostlib.parameter_server.tables import TableClient, TableDefinition
from switchfold.hostlib.peers.frames import Frame, FrameKind, ReceiptFrame, TableFrame
from table_cluster import open_client

US = 1000
MS = 1000 * US


class Worker:
    """Makes calls of some kinds in turn: (processor time in ns, requests) each."""

    def __init__(self, *kinds: tuple[int, int], seed: int = 1) -> None:
        self.kinds = kinds
        self.now_ns = 7 * 10**9
        self.num_records = 0
        self.recorded: list[bool] = []
        self.sampler = CallSampler(seed, lambda: self.now_ns)

    def run(self, num_calls: int) -> int:
        """Return the records of so many calls more."""
        before = self.num_records
        for number in range(len(self.recorded), len(self.recorded) + num_calls):
            spent_ns, requests = self.kinds[number % len(self.kinds)]
            self.recorded.append(self.sampler.begin_call(self.num_records))
            self.num_records += requests * self.recorded[-1]
            self.now_ns += spent_ns
        return self.num_records - before

    def shares(self) -> list[float]:
        """How much of each kind was recorded."""
        return [float(np.mean(self.recorded[i :: len(self.kinds)])) for i in range(len(self.kinds))]


@pytest.mark.parametrize("spent_us", [5, 50, 500])
@pytest.mark.parametrize("requests", [1, 4, 200])
def test_records_take_their_share_of_the_processor(spent_us: int, requests: int) -> None:
    worker = Worker((spent_us * US, requests))
    worker.run(10_000)  # until what it began with is used up
    records, begun_ns = worker.run(100_000), worker.now_ns - 100_000 * spent_us * US
    earned_ns = SHARE * (worker.now_ns - begun_ns)
    cost_ns, most_ns = records * RECORD_NS, 100_000 * requests * RECORD_NS
    stretch_ns = STRETCH * requests * RECORD_NS
    assert cost_ns <= earned_ns + MOST_NS + stretch_ns
    assert cost_ns >= min(most_ns, earned_ns - MOST_NS - stretch_ns)


def test_what_was_saved_up_is_bounded() -> None:
    worker = Worker((0, 4))
    for _ in range(3):
        worker.now_ns += 3600 * 10**9  # of training
        assert worker.run(10_000) * RECORD_NS <= MOST_NS + STRETCH * 4 * RECORD_NS


def test_short_runs_are_recorded_whole() -> None:
    worker = Worker((0, 1))
    worker.run((MOST_NS - WHOLE_NS) // RECORD_NS)
    assert all(worker.recorded)
    worker = Worker((50 * MS, 8))  # 8 records cost less than 1.5 % of 50 ms
    worker.run(50_000)
    assert all(worker.recorded)


@pytest.mark.parametrize("costs_us", [(20, 20), (400, 0), (0, 400), (50, 1500)])
def test_alternating_kinds_are_recorded_alike(costs_us: tuple[int, int]) -> None:
    """Whichever of them uses the processor, or has more requests."""
    worker = Worker((costs_us[0] * US, 2), (costs_us[1] * US, 6))
    worker.run(60_000)
    first, second = worker.shares()
    assert first == second
    assert 0 < first < 1


@pytest.mark.parametrize(("num_kinds", "within"), [(3, 0.05), (7, 0.05), (32, 0.2)])
def test_any_kinds_in_turn_are_recorded_alike(num_kinds: int, within: float) -> None:
    """One kind uses all of the processor. If it is rare, what it earns is spent soon after it."""
    worker = Worker((num_kinds * 300 * US, 4), *[(0, 4)] * (num_kinds - 1))
    worker.run(num_kinds * 30_000)
    shares = worker.shares()
    assert 0 < np.mean(shares) < 1
    assert shares == pytest.approx([float(np.mean(shares))] * num_kinds, rel=within)


def test_a_pause_earns_nothing() -> None:
    worker = Worker((50 * US, 4))
    worker.run(10_000)
    worker.now_ns += 3600 * 10**9  # paused
    worker.sampler.restart(worker.num_records)
    earned_ns = SHARE * 10_000 * 50 * US
    assert worker.run(10_000) * RECORD_NS <= earned_ns + WHOLE_NS + STRETCH * 4 * RECORD_NS


def test_calls_are_recorded_in_stretches() -> None:
    worker = Worker((50 * US, 4))
    worker.run(STRETCH * 2_000)
    stretches = np.array(worker.recorded).reshape(-1, STRETCH)
    assert (stretches == stretches[:, :1]).all()
    assert 0 < stretches.mean() < 1


def test_workers_draw_lots_of_their_own() -> None:
    workers = [Worker((50 * US, 4), seed=seed) for seed in (0, 1, 1)]
    for worker in workers:
        worker.run(10_000)
    assert workers[0].recorded != workers[1].recorded
    assert workers[1].recorded == workers[2].recorded


def starve(client: TableClient) -> None:
    """Let a client earn a record for each call, and begin with nothing."""
    passed_ns = iter(range(0, 10**12, int(STRETCH * RECORD_NS / SHARE)))
    log: Any = client._latency
    assert log is not None
    log._sampler = CallSampler(0, lambda: next(passed_ns))


def totals(run: Path) -> Counter[str]:
    """What the files of the workers count together."""
    found: Counter[str] = Counter()
    for file in run.glob("requests-*"):
        about = json.loads(pq.read_schema(file).metadata[METADATA_KEY])
        found.update({name: about[name] for name in ("calls", "recorded_calls", "dropped")})
    return found


@pytest.mark.parametrize("flush_s", [0.01, parquet_log.FLUSH_S])
def test_a_starved_log_has_whole_calls(
    flush_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one file, or in several."""
    monkeypatch.setattr(parquet_log, "FLUSH_S", flush_s)
    monkeypatch.setattr(call_sampler, "MOST_NS", 100 * RECORD_NS)
    monkeypatch.setattr(call_sampler, "WHOLE_NS", 100 * RECORD_NS)
    num_servers, count, keys = 3, 150, list(range(60))
    with MeasuredTables(tmp_path, num_servers=num_servers) as tables:
        client = tables.clients[0]
        starve(client)
        for _ in range(count):
            tables.pull(keys)
            tables.push(keys)
            client.advance().result(WAIT_S)
    rows = tables.rows("requests")
    by_call: dict[int, list[Row]] = {}
    for row in rows:
        by_call.setdefault(row["call"], []).append(row)
    assert totals(tmp_path) == {
        "calls": 2 * count,
        "recorded_calls": len(by_call),
        "dropped": 0,
    }
    for call, requests in by_call.items():
        assert sorted(row["server"] for row in requests) == [*range(num_servers)]
        assert {row["operation"] for row in requests} == {"pull" if call % 2 else "push"}
        assert sum(row["num_keys"] for row in requests) == len(keys)
    assert 0 < len(by_call) < 2 * count
    for row in rows:
        assert row["outcome"] == "answered"
        assert row["iteration"] == (row["call"] - 1) // 2
    assert len(tables.rows("arrivals")) == 2 * count * num_servers  # of all requests


def test_a_paused_log_records_nothing(tmp_path: Path) -> None:
    with MeasuredTables(tmp_path) as tables:
        client, (server,) = tables.clients[0], tables.servers
        for is_paused in (False, True, False):
            client.pause_latency_log(is_paused)
            server.pause_latency_log(is_paused)
            for _ in range(5):
                tables.push([1])
                tables.pull([1])
    assert [row["call"] for row in tables.rows("requests")] == [*range(1, 11), *range(21, 31)]
    assert {row["outcome"] for row in tables.rows("requests")} == {"answered"}
    assert len(tables.rows("arrivals")) == 20
    assert totals(tmp_path) == {"calls": 30, "recorded_calls": 20, "dropped": 0}


def test_a_paused_server_measures_for_workers_all_the_same(tmp_path: Path) -> None:
    with MeasuredTables(tmp_path) as tables:
        tables.servers[0].pause_latency_log(True)
        tables.push([1])
        tables.pull([1])
    outcomes = {row["operation"]: row["outcome"] for row in tables.rows("requests")}
    assert outcomes == {"push": "answered", "pull": "answered"}
    assert tables.rows("arrivals") == []


def test_a_server_measures_only_requests_that_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[tuple[FrameKind, int]] = []
    begin = ServedRequests.begin

    def note(self: ServedRequests, kind: FrameKind, number: int, arrived_ns: int) -> None:
        begun.append((kind, number))
        begin(self, kind, number, arrived_ns)

    monkeypatch.setattr(ServedRequests, "begin", note)
    with MeasuredTables(tmp_path) as tables:
        for is_paused in (True, False, True):
            tables.clients[0].pause_latency_log(is_paused)
            tables.push([1])
            tables.pull([1])
            tables.clients[0].advance().result(WAIT_S)
    (push, pull) = sorted(tables.rows("requests"), key=lambda row: row["call"])
    assert (push["operation"], pull["operation"]) == ("push", "pull")
    assert begun == [(FrameKind.PUSH, push["number"]), (FrameKind.PULL, pull["number"])]
    assert len(tables.rows("arrivals")) == 6


def test_only_a_log_can_be_paused() -> None:
    with (
        ParameterServer(ServerOptions(num_workers=1), address=LOOPBACK) as server,
        open_client([(LOOPBACK, server.port)], 0) as client,
    ):
        for one in (server, client):
            with pytest.raises(ConfigurationError, match="no latency log; give"):
                one.pause_latency_log(True)


def test_calls_without_rows_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CallSampler, "begin_call", lambda *_: False)
    with MeasuredTables(tmp_path) as tables:
        for _ in range(5):
            tables.push([1])
    assert tables.rows("requests") == []
    assert totals(tmp_path) == {"calls": 5, "recorded_calls": 0, "dropped": 0}


def test_a_starved_log_of_hot_keys_has_whole_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the machine's own clock, sockets and event loops."""
    monkeypatch.setattr(key_samples, "SAMPLE_S", 0.02)
    monkeypatch.setattr(hot_row_server, "SILENT_S", WAIT_S)
    monkeypatch.setattr(call_sampler, "MOST_NS", 100 * RECORD_NS)
    monkeypatch.setattr(call_sampler, "WHOLE_NS", 100 * RECORD_NS)
    definition = TableDefinition(name="hot", width=8, hot_keys=40)
    hot = np.arange(20)
    keys = np.concatenate([hot, np.arange(100, 110)])
    with (
        RowSwitch(1, num_rows=32) as switch,
        LiveHotServer(switch, 1) as server,
        open_client([server.address], 0, hot_sample=1.0, latency_log=tmp_path) as client,
    ):
        table = client.define(definition)
        num_calls = 0
        while not switch.passed["aggregate_add"]:
            table.push(hot, gradients_of(np.ones((hot.size, 8)))).result(WAIT_S)
            num_calls += 1
        client._loop.run(lambda: starve(client))
        for _ in range(80):
            table.pull(keys).result(WAIT_S)
            table.push(keys, gradients_of(np.ones((keys.size, 8)))).result(WAIT_S)
    rows = [row for file in tmp_path.glob("requests-*") for row in pq.read_table(file).to_pylist()]
    sent: Counter[int] = Counter()
    for row in rows:
        sent[row["call"]] += row["num_keys"] * (row["call"] > num_calls)
    later = {call: count for call, count in sent.items() if call > num_calls}
    assert 0 < len(later) < 160
    assert all(count >= keys.size for count in later.values())
    assert {row["path"] for row in rows} == {"server", "switch"}
    found = totals(tmp_path)
    assert found["calls"] == num_calls + 160
    assert found["recorded_calls"] == len(sent)


class Meter:
    """A meter of frames whose clock may not be read while `is_quiet`."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, ...]] = []
        self.is_quiet = True
        self.log: Any = SimpleNamespace(
            worker_id=0, recording=0, num_requests=0, append=self.rows.append
        )
        loop: Any = SimpleNamespace(clock_ns=self._clock_ns)
        self.frames = RequestMeter(loop, self.log, 0)
        self.frames.iteration = 0
        self.switch = SwitchMeter(self.frames)

    def _clock_ns(self) -> int:
        assert not self.is_quiet
        return 0

    def answer(self, frame: Frame) -> None:
        self.frames.received(frame, memoryview(b""), 0)
        self.frames.parsed()


def rows_of(number: int) -> Frame:
    return Frame(FrameKind.ROWS, 0, (number, 0, 0, 0, 0, 0, 0))


def receipt_of(number: int) -> Frame:
    return Frame.unpack(ReceiptFrame(number, 0, (1, 2, 3)).pack())


def test_what_is_not_recorded_reads_no_clock() -> None:
    meter = Meter()
    for kind in (FrameKind.PULL, FrameKind.PUSH, FrameKind.ADVANCE):
        meter.frames.sent(TableFrame(kind, 8, 1, 0, 1))
    assert meter.switch.begin(0, 5) is None
    meter.switch.send(100)
    meter.switch.end_sending()
    meter.switch.receive(0)
    meter.answer(rows_of(1))
    meter.answer(receipt_of(1))
    assert meter.frames.iteration == 1
    assert (meter.rows, meter.log.num_requests) == ([], 0)


def test_what_is_sent_again_is_of_its_own_call() -> None:
    """A request that is not recorded stays so, whatever is recorded when it is sent again."""
    meter = Meter()
    frames = [TableFrame(kind, 8, 1, 0, 1) for kind in (FrameKind.PULL, FrameKind.PUSH)]
    others = [frame._replace(number=2, is_measured=True) for frame in frames]
    for frame in frames:
        meter.frames.sent(frame)
    meter.is_quiet, meter.log.recording = False, 7
    for frame in others:
        meter.frames.sent(frame)
    meter.log.recording = 9
    for frame in (*frames, *others):
        meter.frames.resent(frame)
    for answer in (rows_of(1), receipt_of(1), rows_of(2), receipt_of(2)):
        meter.answer(answer)
    assert [(row[3], row[4]) for row in meter.rows] == [(7, 2), (7, 2)]
    assert meter.log.num_requests == 2


def test_what_goes_by_tcp_is_of_the_calls_that_meant_the_switch() -> None:
    meter = Meter()
    meter.is_quiet, meter.log.recording = False, 3
    request = meter.switch.begin(0, 5)
    assert request is not None
    meter.log.recording = 8
    for requests, recording in (([None], 0), ([None, request, None], 3)):
        with meter.switch.by_tcp(requests):
            assert meter.log.recording == recording
        assert meter.log.recording == 8
    assert request.is_cold
