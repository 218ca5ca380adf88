# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Parts of the benchmarks of connections and of small messages."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.hot_rows import connections, small_messages
from benchmarks.hot_rows.client_rig import RunFiles, plan_of
from benchmarks.hot_rows.connections_worker import KINDS, OPERATIONS, PATHS, PullLoop
from benchmarks.hot_rows.messages_worker import split, sums_of
from benchmarks.hot_rows.peers import TCP, UDP, peer_of
from switchfold.hostlib.parameter_server.rows import PulledRows
from switchfold.hostlib.peers.frames import FrameKind
from switchfold.hostlib.peers.frames.header import pack_header


def frame(protocol: int, payload: int, *, port: int = 7000) -> bytes:
    """The first bytes of an Ethernet frame from 10.0.0.9, without its payload."""
    own = 20 if protocol == TCP else 8
    packet = bytearray(20 + own)
    packet[0], packet[9] = 0x45, protocol
    struct.pack_into("!H", packet, 2, 20 + own + payload)
    packet[12:16] = bytes([10, 0, 0, 9])
    struct.pack_into("!H", packet, 20, port)
    if protocol == TCP:
        packet[32] = 5 << 4
    return bytes(14) + bytes(packet)


def test_peers_are_those_that_send_a_payload() -> None:
    assert peer_of(frame(TCP, 1)) == ("tcp", "10.0.0.9", 7000)
    assert peer_of(frame(UDP, 5, port=9)) == ("udp", "10.0.0.9", 9)
    assert peer_of(frame(TCP, 0)) is None  # a receipt of the kernel
    assert peer_of(frame(UDP, 0)) is None
    heartbeat = pack_header(FrameKind.HEARTBEAT)
    assert peer_of(frame(TCP, len(heartbeat)) + heartbeat) is None
    assert peer_of(frame(TCP, len(heartbeat)) + pack_header(FrameKind.PUSH)) is not None
    assert peer_of(frame(1, 30)) is None
    assert peer_of(frame(TCP, 1)[:30]) is None
    assert peer_of(b"") is None


def phase(
    kind: str, rate: int, clients: int, times_us: list[float], begun_s: float
) -> dict[str, Any]:
    return {
        "clients": clients,
        "kind": kind,
        "rate": rate,
        "times_us": times_us,
        "begun_s": begun_s,
        "ended_s": begun_s + 2,
        "processor_s": [0.5, 0.25],
    }


def worker(first: int) -> dict[str, Any]:
    """What a worker records of one turn with 1 and 2 clients."""
    phases: list[dict[str, Any]] = []
    for clients in (1, 2):
        is_in = first < clients
        phases += [
            phase(kind, rate, clients, [100.0 * clients] * 50 * is_in, first)
            for kind in KINDS
            for rate in (0, 600)
        ]
        peers = [["tcp", "10.0.0.1", 1, 3], ["tcp", "10.0.0.1", 2, 4], ["udp", "10.0.0.2", 1, 5]]
        phases += [
            {"clients": clients, "path": path, "operation": operation, "peers": peers}
            for path in PATHS
            for operation in OPERATIONS
        ]
    return {"phases": phases, "tables": {"worker": 4, "worker_address": 4}}


def test_figures_are_of_active_clients(capsys: pytest.CaptureFixture[str]) -> None:
    workers = [worker(0), worker(1)]
    one, two = (connections.KindFigures.of(n, KINDS[0], 600, workers) for n in (1, 2))
    assert (one.p50_us, one.requests_per_s, one.server_us, one.switch_us) == (100, 25, 1e4, 5e3)
    assert (two.mean_us, two.requests_per_s) == (200, 100 / 3)
    assert connections.slope_us([one, two]) == pytest.approx(100)
    assert connections.slope_us([one]) == 0
    assert connections.model_us([one, two], 2, 0) == pytest.approx(60_000)
    assert connections.model_us([one, two], 2, 600) == 100
    found = connections.report(workers, [1, 2], 600, num_servers=2)
    counted = {"TCP peers": 2, "TCP segments": 7, "UDP peers": 1, "datagrams": 5}
    assert all(counted.items() <= each.items() for each in found["peers"])
    printed = capsys.readouterr().out
    assert "entries of table worker: 4; workers + servers: 4, workers x servers: 4" in printed
    assert "1.00 times as much" in printed
    assert "2 clients, push by switch:  2 by TCP (7 segments), 1 by UDP (5 datagrams)" in printed


def test_requests_follow_each_other_and_are_compared() -> None:
    values = np.full((2, 1), 3, np.float32)
    rows = PulledRows(values, np.zeros(2, np.uint32))
    waiting: list[Any] = []
    loop: Any = None
    requests = PullLoop(waiting.append, values, 3, loop, 0.0)
    requests.send()
    while waiting:
        assert len(waiting) == 1
        waiting.pop()(rows)
    assert requests.done.is_set()
    assert len(requests.times_s) == 3
    assert requests.error is None
    for wrong in (rows._replace(values=values + 1), ValueError("lost")):
        requests = PullLoop(waiting.append, values, 3, loop, 0.0)
        requests.send()
        waiting.pop()(wrong)
        assert requests.done.is_set()
        assert isinstance(requests.error, ValueError)


def test_a_mini_batch_is_split_without_a_loss() -> None:
    keys, gradients = np.arange(10), np.arange(10, dtype=np.float32)[:, None]
    parts = split(keys, gradients, 4)
    assert [each.size for each, _ in parts] == [3, 3, 2, 2]
    assert np.concatenate([each for each, _ in parts]).tolist() == keys.tolist()
    assert len(split(keys[:2], gradients[:2], 16)) == 2
    found, sums = sums_of([*parts, (keys[3:5], gradients[3:5])])
    assert found.tolist() == keys.tolist()
    assert sums.tolist() == [0, 1, 2, 6, 8, 5, 6, 7, 8, 9]


def test_figures_of_messages_count_updates() -> None:
    did = {"processor_s": 0.002, "pushes": 6, "hot_sums": 2}
    measured = {"path": "TCP", "parts": 2, "begun_s": 0, "ended_s": 2, "servers": did}
    workers = [[measured | {"pushes": [(0.001, 90), (0.003, 10)]}]] * 2
    one = small_messages.MessageFigures.of("TCP", 2, workers)
    assert (one.p50_ms, one.p99_ms) == (1, 3)
    assert (one.server_us, one.pushes_per_s, one.updates_per_s) == (10, 2, 100)
    assert one.messages == 40
    line = small_messages.line_of(one, one)
    assert line.split()[:4] == ["TCP", "2", "1.00", "3.00"]
    assert len(line) == len(small_messages.HEADER)


def test_workers_read_what_the_rig_wrote(tmp_path: Path) -> None:
    files = RunFiles(
        plan=tmp_path / "plan",
        switch="unix:/there",
        credentials=tmp_path / "operator",
        switch_pid=7,
        peers=tmp_path / "peers",
        servers=[tmp_path / "0.sock"],
        options={"clients": [1, 2]},
    )
    files.write(tmp_path / "files")
    assert RunFiles.read(tmp_path / "files") == files
    assert plan_of(3, hot_keys=5).num_servers == 2


def test_clients_fit_on_a_switch(capsys: pytest.CaptureFixture[str]) -> None:
    assert max(connections.parse([]).clients) == connections.MOST_CLIENTS
    with pytest.raises(SystemExit):
        connections.parse(["--clients", "31"])
    assert "from 1 to 30" in capsys.readouterr().err
