# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Each stage of a request shows in its own metric, and only there.

Time is the tests' own: it passes on all machines at once, and only in the stage that a test delays.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hand_time import HOUR, MS, HandTime
from measured_tables import WAIT_S, MeasuredTables, Row, batch
from switchfold.hostlib.errors import PeerClosedError, RowMemoryError
from switchfold.hostlib.latency import RequestMeter, WorkerLog
from switchfold.hostlib.parameter_server.tables.port import TablePort
from switchfold.hostlib.parameter_server.tables.service import TableService
from switchfold.hostlib.parameter_server.tables.session import ShardSession
from switchfold.hostlib.parameter_server.tables.state import TableState
from switchfold.hostlib.peers.dialled import DialledLink
from switchfold.hostlib.peers.frames import FrameKind

DELAY = 20 * MS
METRICS = ("n_tx_us", "ps_queue_us", "ps_proc_us", "ps_wait_us", "w_queue_us", "w_proc_us")
MEASURED = {FrameKind.PUSH, FrameKind.PULL}


def delay_before(
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    name: str,
    delay: Callable[..., None],
) -> None:
    original = getattr(owner, name)

    def delayed(self: Any, *arguments: Any, **options: Any) -> Any:
        delay(*arguments)
        return original(self, *arguments, **options)

    monkeypatch.setattr(owner, name, delayed)


def of_request(time: HandTime) -> Callable[..., None]:
    """Delay pushes and pulls, whichever argument is their frame; or any other call."""

    def delay(*arguments: Any) -> None:
        frames = [one for one in arguments if hasattr(one, "kind") and hasattr(one, "pack")]
        if not frames or frames[0].kind in MEASURED:
            time.pass_by(DELAY)

    return delay


def of_answer(time: HandTime) -> Callable[..., None]:
    def delay(frame: Any, *_: Any) -> None:
        if frame.kind in (FrameKind.ROWS, FrameKind.RECEIPT):
            time.pass_by(DELAY)

    return delay


STAGES = {
    "n_tx_us": (DialledLink, "send", of_request),
    "ps_queue_us": (TablePort, "on_frame", of_request),
    "w_queue_us": (ShardSession, "on_frame", of_answer),
    "w_proc_us": (ShardSession, "note_parsed", of_request),
}


def run_one_of_each(
    path: Path, time: HandTime, shift: int = 0, prepare: Callable[[], None] = lambda: None
) -> list[Row]:
    with MeasuredTables(path) as tables:
        tables.push([1])
        tables.set_clocks(time.clock(HOUR + shift), time.clock(HOUR))
        prepare()
        tables.push([1, 2, 3])
        tables.pull([1, 2])
    return tables.rows("requests")[1:]


def check_only(rows: list[Row], metric: str, delay: int = DELAY) -> None:
    assert [row["operation"] for row in rows] == ["push", "pull"]
    for row in rows:
        expected = {name: delay // 1000 if name == metric else 0 for name in METRICS}
        assert {name: row[name] for name in METRICS} == expected, row["operation"]
        at_worker = metric in ("w_queue_us", "w_proc_us")
        assert row["rtt_us"] == (0 if at_worker else delay // 1000)
        assert row["switch_wait_us"] is None


@pytest.mark.parametrize("metric", sorted(STAGES))
def test_a_delay_is_in_its_own_metric(
    metric: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = HandTime()
    owner, name, delay = STAGES[metric]
    rows = run_one_of_each(
        tmp_path, time, prepare=lambda: delay_before(monkeypatch, owner, name, delay(time))
    )
    check_only(rows, metric)


def test_a_slow_handler_is_ps_proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    time = HandTime()

    def slow() -> None:
        for name in ("apply", "pull"):
            delay_before(monkeypatch, TableState, name, lambda *_: time.pass_by(DELAY))

    check_only(run_one_of_each(tmp_path, time, prepare=slow), "ps_proc_us")


def test_the_disk_of_the_log_is_ps_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    time = HandTime()
    with MeasuredTables(tmp_path / "run", log=tmp_path) as tables:
        tables.push([1])
        tables.set_clocks(time.clock(), time.clock())
        delay_before(monkeypatch, TableService, "_on_durable", lambda *_: time.pass_by(DELAY))
        tables.push([1, 2])
    row = tables.rows("requests")[1]
    assert (row["ps_wait_us"], row["ps_proc_us"], row["n_tx_us"]) == (DELAY // 1000, 0, 0)


def test_applying_after_the_disk_is_ps_proc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = HandTime()
    with MeasuredTables(tmp_path / "run", log=tmp_path) as tables:
        tables.push([1])
        tables.set_clocks(time.clock(), time.clock())
        delay_before(monkeypatch, TableService, "_on_durable", lambda *_: time.pass_by(7 * MS))
        delay_before(monkeypatch, TableState, "apply", lambda *_: time.pass_by(DELAY))
        delay_before(monkeypatch, TableState, "check", lambda *_: time.pass_by(3 * MS))
        tables.push([1, 2])
    row = tables.rows("requests")[1]
    assert (row["ps_wait_us"], row["ps_proc_us"]) == (7000, DELAY // 1000 + 3000)


def test_waiting_for_a_slower_worker_is_ps_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    time, is_waiting = HandTime(), threading.Event()
    original = TableService.pull

    def pull(self: TableService, *arguments: Any) -> None:
        original(self, *arguments)
        is_waiting.set()

    with MeasuredTables(tmp_path, num_workers=2, staleness=0) as tables:
        tables.set_clocks(time.clock(), time.clock())
        monkeypatch.setattr(TableService, "pull", pull)
        tables.clients[0].advance().result(WAIT_S)
        pulled = tables.tables[0].pull(np.array([1], np.int64))
        assert is_waiting.wait(WAIT_S)
        tables.servers[0].loop.run(lambda: None)  # the pull's handler has returned before it
        time.pass_by(DELAY)
        tables.clients[1].advance().result(WAIT_S)
        pulled.result(WAIT_S)
    (row,) = tables.rows("requests")
    assert (row["ps_wait_us"], row["ps_proc_us"]) == (DELAY // 1000, 0)
    assert row["iteration"] == 1


@pytest.mark.parametrize("num_workers", [1, 10])
def test_a_burst_waits_for_its_turn(
    num_workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten requests of one connection, or of ten: the k-th waits for k handlers."""
    time, burst = HandTime(), 10
    with MeasuredTables(tmp_path, num_workers=num_workers) as tables:
        tables.set_clocks(time.clock(), time.clock())
        delay_before(monkeypatch, TableState, "pull", lambda *_: time.pass_by(DELAY))
        is_busy, may_go = threading.Event(), threading.Event()
        tables.servers[0].loop.post(lambda: (is_busy.set(), may_go.wait(WAIT_S)))
        assert is_busy.wait(WAIT_S)
        pulls = [tables.tables[i % num_workers].pull(np.array([i], np.int64)) for i in range(burst)]
        for client in tables.clients:
            client._loop.run(lambda: None)  # all requests have been sent before it
        may_go.set()
        for pull in pulls:
            pull.result(WAIT_S)
    rows = tables.rows("requests")
    assert [row["ps_proc_us"] for row in rows] == [DELAY // 1000] * burst
    assert sorted(row["ps_queue_us"] for row in rows) == [k * DELAY // 1000 for k in range(burst)]


@pytest.mark.parametrize("shift", [-HOUR, 0, HOUR])
def test_clocks_need_not_agree(shift: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    time = HandTime()

    def slow() -> None:
        for name in ("apply", "pull"):
            delay_before(monkeypatch, TableState, name, lambda *_: time.pass_by(DELAY))

    rows = run_one_of_each(tmp_path, time, shift, prepare=slow)
    check_only(rows, "ps_proc_us")
    assert rows[0]["sent_us"] == (HOUR + shift) // 1000


def test_a_push_ends_with_its_last_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    time, others_done = HandTime(), threading.Event()
    num_servers, slow = 5, 3
    keys = list(range(200))
    with MeasuredTables(tmp_path, num_servers=num_servers) as tables:
        tables.push(keys)
        tables.set_clocks(time.clock(), time.clock())
        logged: list[tuple[int, ...]] = []
        append, apply = WorkerLog.append, TableState.apply

        def count(self: WorkerLog, row: tuple[int, ...]) -> None:
            logged.append(row)
            append(self, row)
            if len(logged) == num_servers - 1:
                others_done.set()

        def wait(self: TableState, *arguments: Any, **options: Any) -> None:
            if self is tables.servers[slow].tables.state:
                assert others_done.wait(WAIT_S)
                time.pass_by(DELAY)
            apply(self, *arguments, **options)

        monkeypatch.setattr(WorkerLog, "append", count)
        monkeypatch.setattr(TableState, "apply", wait)
        tables.push(keys)
    rows = [row for row in tables.rows("requests") if row["call"] == 2]
    assert {row["server"]: row["rtt_us"] for row in rows} == {
        shard: DELAY // 1000 if shard == slow else 0 for shard in range(num_servers)
    }
    assert sum(row["num_keys"] for row in rows) == len(keys)
    assert rows[-1]["server"] == slow


def test_a_thousand_requests_make_a_thousand_lines(tmp_path: Path) -> None:
    """With the machines' own clocks."""
    count = 250
    with MeasuredTables(tmp_path, num_servers=2) as tables:
        keys = list(range(64))
        for _ in range(count):
            pushed = tables.tables[0].push(*batch(keys))
            tables.pull(keys)
            pushed.result(WAIT_S)
        tables.clients[0].advance().result(WAIT_S)
    rows = tables.rows("requests")
    assert len(rows) == 4 * count
    assert len(tables.rows("arrivals")) == 4 * count
    assert {(row["operation"], row["server"], row["number"]) for row in rows} == {
        (operation, server, number + (operation == "push"))  # the definition was the first change
        for operation in ("push", "pull")
        for server in range(2)
        for number in range(1, count + 1)
    }
    for row in rows:
        assert row["outcome"] == "answered"
        parts = ("n_tx_us", "ps_queue_us", "ps_proc_us", "ps_wait_us")
        assert row["rtt_us"] == sum(row[part] for part in parts)
        assert all(row[metric] >= 0 for metric in METRICS)
        assert row["num_keys"] in (len(keys) - other for other in {r["num_keys"] for r in rows})
        is_push = row["operation"] == "push"
        assert row["request_bytes"] == 36 + row["num_keys"] * (16 if is_push else 8)
        if not is_push:
            assert row["response_bytes"] == 36 + row["num_keys"] * 12 + 16
        assert (row["worker"], row["iteration"]) == (0, 0)


def test_sizes_iterations_and_calls(tmp_path: Path) -> None:
    with MeasuredTables(tmp_path) as tables:
        for _ in range(3):
            tables.pull([1, 2])
            tables.push([1])
            tables.clients[0].advance().result(WAIT_S)
    rows = tables.rows("requests")
    assert [row["iteration"] for row in rows] == [0, 0, 1, 1, 2, 2]
    assert [row["call"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert {row["response_bytes"] for row in rows if row["operation"] == "push"} == {36}


def test_refused_and_lost_requests_are_logged_too(tmp_path: Path) -> None:
    with MeasuredTables(tmp_path, num_workers=2, staleness=0) as tables:
        tables.clients[0].advance().result(WAIT_S)
        lost = tables.tables[0].pull(np.array([1], np.int64))  # waits for the other worker
        tables.clients[0]._loop.run(lambda: None)
        tables.clients[0].close()
        assert lost.exception(WAIT_S) is not None
    (row,) = tables.rows("requests")
    assert (row["outcome"], row["rtt_us"], row["n_tx_us"]) == ("lost", None, None)


def test_without_a_log_nothing_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RequestMeter, "sent", lambda *_: pytest.fail("measured"))
    from switchfold.hostlib.parameter_server import (  # noqa: PLC0415
        ClientOptions,
        ParameterServer,
        ServerOptions,
    )
    from switchfold.hostlib.parameter_server.tables import (  # noqa: PLC0415
        TableClient,
        TableDefinition,
    )

    with (
        ParameterServer(ServerOptions(num_workers=1)) as server,
        TableClient([(server.address, server.port)], ClientOptions(worker_id=0)) as client,
    ):
        table = client.define(TableDefinition(name="rows", width=2))
        table.push(*batch([1])).result(WAIT_S)
        assert (table.pull(np.array([1], np.int64)).result(WAIT_S).values == 1).all()
    assert not list(tmp_path.iterdir())


def test_a_push_over_two_connections_is_logged_without_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first connection breaks while the log's disk is busy; the second brings the receipt."""
    held: list[int] = []
    is_held, has_entered = threading.Event(), threading.Event()
    on_durable, enter = TableService._on_durable, TableService.enter

    def hold(self: TableService, lsn: int) -> None:
        held.append(lsn)
        is_held.set()

    def note(self: TableService, *arguments: Any) -> None:
        enter(self, *arguments)
        has_entered.set()

    with MeasuredTables(tmp_path / "run", log=tmp_path) as tables:
        monkeypatch.setattr(TableService, "_on_durable", hold)
        monkeypatch.setattr(TableService, "enter", note)
        pushed = tables.tables[0].push(*batch([1, 2]))
        assert is_held.wait(WAIT_S)
        server = tables.servers[0]
        service: Any = server.tables
        server.loop.run(
            lambda: service._clients[0].connection.close(PeerClosedError("cut by the test"))
        )
        assert has_entered.wait(WAIT_S)
        monkeypatch.setattr(TableService, "_on_durable", on_durable)
        server.loop.run(lambda: on_durable(service, held[-1]))
        pushed.result(WAIT_S)
        tables.pull([1])
    push, pull = tables.rows("requests")
    assert (push["operation"], push["outcome"]) == ("push", "unmeasured")
    assert push["rtt_us"] is None
    assert (pull["operation"], pull["outcome"]) == ("pull", "answered")
    assert {row["connection"] for row in tables.rows("arrivals")} == {1, 2}


def test_a_denied_request_is_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RowMemoryError("no memory")

    with MeasuredTables(tmp_path) as tables:
        monkeypatch.setattr(TableState, "pull", fail)
        monkeypatch.setattr(TableState, "check", fail)
        pulled = tables.tables[0].pull(np.array([1], np.int64))
        pushed = tables.tables[0].push(*batch([1]))
        for future in (pulled, pushed):
            assert isinstance(future.exception(WAIT_S), RowMemoryError)
    rows = tables.rows("requests")
    assert [(row["operation"], row["outcome"]) for row in rows] == [
        ("pull", "denied"),
        ("push", "denied"),
    ]


def test_requests_without_a_connection_keep_their_calls(tmp_path: Path) -> None:
    with MeasuredTables(tmp_path) as tables:
        client, server, may_go = tables.clients[0], tables.servers[0], threading.Event()
        service: Any = server.tables
        session = client._sessions[0]
        tables.pull([1])
        server.loop.run(
            lambda: service._clients[0].connection.close(PeerClosedError("cut by the test"))
        )
        is_down = threading.Event()

        def look() -> None:
            if session._has_entered:
                client._loop.call_later(0.001, look)
            else:
                is_down.set()

        client._loop.run(look)
        assert is_down.wait(WAIT_S)
        client._loop.post(lambda: bool(may_go.wait(WAIT_S)))
        futures = [
            tables.tables[0].push(*batch([1])),
            client.advance(),
            tables.tables[0].pull(np.array([1], np.int64)),
            tables.tables[0].push(*batch([2])),
        ]
        may_go.set()
        for future in futures:
            future.result(WAIT_S)
    rows = sorted(tables.rows("requests"), key=lambda row: row["call"])
    assert [row["operation"] for row in rows] == ["pull", "push", "pull", "push"]
    assert [row["call"] for row in rows] == [1, 2, 3, 4]
    assert [row["iteration"] for row in rows] == [0, 0, 1, 1]
