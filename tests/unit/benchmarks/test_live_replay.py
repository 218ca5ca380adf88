# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The timeline of live transfers beside the simulator, with timelines of known times."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.simulator import replay
from benchmarks.simulator.live_log import is_live_log, read_live_log
from benchmarks.simulator.request_replay import (
    RequestTimes,
    close_share,
    request_times,
    scenario_of_requests,
)
from benchmarks.simulator.timeline import TimelineError

BEGAN_S = 1.79e9
UPDATE_BYTES = 12_500_000
"""1 s at 100 Mbit/s."""


def line(time_s: float, event: str, transfer: int, **fields: Any) -> str:
    values = {"job": "train", "worker": transfer % 10, "server": 0, "transfer": transfer}
    return json.dumps({"time": BEGAN_S + time_s, "event": event} | values | fields)


def update(transfer: int, asked_s: float, ended_s: float, **fields: Any) -> list[str]:
    """Return the lines of an update that is granted and applied."""
    fields = {"bytes": UPDATE_BYTES} | fields
    return [
        line(asked_s, "requested", transfer, **fields),
        line(asked_s, "granted", transfer, sequence=0, delay=0, **fields),
        line(ended_s, "delivered", transfer, **fields),
        line(ended_s, "observed", transfer, seconds=1.0, **fields),
        line(ended_s, "committed", transfer, **fields),
    ]


def took(times: Sequence[RequestTimes]) -> list[float]:
    return [each.took_s for each in times]


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{each}\n" for each in lines))
    return path


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """Three updates at once, as they go over links of 100 Mbit/s, one after the other."""
    lines = [each for n in range(3) for each in update(n, 0.01 * n, n + 1.0)]
    return write(tmp_path / "transfers.jsonl", lines)


def test_a_timeline_becomes_requests(record: Path) -> None:
    assert is_live_log(record)
    requests = read_live_log(record)
    assert [request.worker for request in requests] == [0, 1, 2]
    assert [request.requested_s for request in requests] == pytest.approx([0, 0.01, 0.02])
    assert [request.committed_s for request in requests] == pytest.approx([1, 2, 3])
    assert all(request.is_scheduled for request in requests)
    assert {request.bytes for request in requests} == {UPDATE_BYTES}


def test_known_times_are_simulated(record: Path) -> None:
    requests = read_live_log(record)
    scenario = scenario_of_requests(requests, 1e8, 1e8)
    recorded, simulated = request_times(requests, scenario)
    assert took(recorded) == pytest.approx([1.0, 1.99, 2.98])
    # A batch waits for up to 0.05 s, and a decision and its messages take a few ms.
    assert took(simulated) == pytest.approx(took(recorded), abs=0.06)
    assert close_share(recorded, simulated, 0.1) == 1
    _, halved = request_times(requests, scenario, share=0.5)
    # The second one begins as planned, while the first one is under way: they share the link.
    assert halved[0].took_s > 1.9
    assert halved[2].took_s == pytest.approx(2 * simulated[2].took_s, rel=0.05)
    assert close_share(recorded, halved, 0.1) == 0


def test_sizes_and_servers_are_those_of_the_requests(tmp_path: Path) -> None:
    lines = update(0, 0.0, 2.0, bytes=2 * UPDATE_BYTES) + update(1, 0.0, 1.0, server=1)
    requests = read_live_log(write(tmp_path / "log", lines))
    scenario = scenario_of_requests(requests, 1e8, 1e8)
    assert (scenario.num_workers, scenario.num_servers) == (2, 2)
    _, simulated = request_times(requests, scenario)
    assert took(simulated) == pytest.approx([2.0, 1.0], abs=0.06)


def test_workers_compute_as_long_as_they_did(tmp_path: Path) -> None:
    """Live, each update took 1 s, and its worker asked again 0.5 s later; links are slower."""
    lines = [each for n in range(3) for each in update(7 + 10 * n, 1.5 * n, 1.5 * n + 1.0)]
    lines += update(8, 1.2, 2.2)
    requests = read_live_log(write(tmp_path / "log", lines))
    scenario = scenario_of_requests(requests, 5e7, 1e9)
    recorded, simulated = request_times(requests, scenario)
    own = [number for number, request in enumerate(requests) if request.worker == 7]
    pauses = [
        simulated[after].asked_s - simulated[before].committed_s
        for before, after in itertools.pairwise(own)
    ]
    assert pauses == pytest.approx([0.5, 0.5])
    assert [simulated[number].took_s for number in own] == pytest.approx([2.0] * 3, abs=0.06)
    other = [simulated[n].asked_s for n, request in enumerate(requests) if request.worker == 8]
    assert other == pytest.approx([1.2]), "its first request is at its time"
    assert len(recorded) == 4


def test_what_was_not_planned_takes_no_part(tmp_path: Path) -> None:
    lines = [each for n in range(25) for each in update(n, float(2 * n), 2 * n + 1.0)]
    lines += [
        line(60.0, "requested", 101, bytes=1),
        line(60.1, "dropped", 101, bytes=1, reason="too old"),
        line(61.0, "ungranted", 102),
        json.dumps(
            {
                "time": BEGAN_S + 62,
                "event": "observed",
                "job": "train",
                "worker": 1,
                "transfer": 103,
            }
        ),
    ]
    requests = read_live_log(write(tmp_path / "log", lines))
    assert len(requests) == 26
    recorded, _ = request_times(requests, scenario_of_requests(requests, 1e8, 1e8))
    assert len(recorded) == 25
    lines += [line(70.0, "requested", 201, bytes=1), line(70.1, "withdrawn", 201, bytes=1)]
    requests = read_live_log(write(tmp_path / "log", lines))
    with pytest.raises(TimelineError, match="2 of 27 updates were dropped"):
        request_times(requests, scenario_of_requests(requests, 1e8, 1e8))


def test_jobs_are_told_apart(record: Path) -> None:
    other = [each.replace("train", "other") for each in update(7, 5.0, 6.0)]
    record.write_text(record.read_text() + "".join(f"{each}\n" for each in other))
    with pytest.raises(TimelineError, match=r"has the jobs other, train: name one with --job"):
        read_live_log(record)
    (request,) = read_live_log(record, "other")
    assert (request.requested_s, request.committed_s) == (0, 1)
    with pytest.raises(TimelineError, match="of job 'third'"):
        read_live_log(record, "third")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("nonsense", "line 1 is no event"),
        ('{"time": 1}', "no event, job, worker, server, transfer"),
        ("[1]", "line 1 is no event"),
        (line(0.0, "requested", 1, bytes=5), "no update that was granted and applied"),
    ],
)
def test_what_is_no_timeline_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(TimelineError, match=problem):
        read_live_log(write(tmp_path / "log", [text]))


def test_the_command_compares_a_live_timeline(
    record: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["replay.py", str(record), "--rate", "100M"])
    assert replay.main() == 0
    assert "100 % of 3 requests are within 10 % each" in capsys.readouterr().out
    monkeypatch.setattr(
        sys, "argv", ["replay.py", str(record), "--rate", "50M", "--granted-rate", "100M"]
    )
    assert replay.main() == 1
    assert "NOT within 10 %" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["replay.py", str(record), "--job", "none"])
    with pytest.raises(SystemExit, match="2"):
        replay.main()
    assert "of job 'none'" in capsys.readouterr().err
