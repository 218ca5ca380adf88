# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Shares of the server's link that the fabric benchmark's runs use, and workers' phases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.fabric import report
from benchmarks.fabric.link_use import PHASES, LinkSample, link_use, phase_times, sent_times
from benchmarks.fabric.settings import Cell, ClusterSize, RateOverTime
from benchmarks.simulator.traces import ComputeSetting, LinkSetting

SIZE = ClusterSize(num_workers=3, num_values=1000, rate_bits_per_s=8_000_000)
ROW = {"asked_s": 10.0, "got_s": 12.0, "pushed_s": 12.5, "done_s": 16.0}


def rates(links: LinkSetting = LinkSetting.EVEN) -> RateOverTime:
    cell = Cell(links=links, computing=ComputeSetting.EVEN, seed=1)
    return RateOverTime(size=SIZE, trace=SIZE.link_trace(cell))


def samples(*counted: tuple[float, int, int]) -> list[LinkSample]:
    return [
        LinkSample(time_s=time_s, in_bytes=in_bytes, out_bytes=out_bytes)
        for time_s, in_bytes, out_bytes in counted
    ]


def test_shares_are_of_what_the_link_carries() -> None:
    # 1 MB/s: full, half, and nothing towards the server; full all the time from it.
    counted = samples(
        (9.0, 0, 0),  # before the run
        (10.0, 5, 5),
        (11.0, 1_000_005, 1_000_005),
        (12.0, 1_500_005, 2_000_005),
        (13.0, 1_500_005, 3_000_005),
    )
    found = link_use(counted, rates(), 10.0, [{"computes": [(12.0, 12.5)]}, {"sends": [(10, 11)]}])
    assert found["in"]["used"] == pytest.approx(0.5)
    assert (found["in"]["busy"], found["in"]["idle"]) == pytest.approx((1 / 3, 1 / 3))
    assert (found["out"]["used"], found["out"]["busy"], found["out"]["idle"]) == (1.0, 1.0, 0.0)
    assert found["workers"]["computes"] == pytest.approx(0.5 / 3)
    assert found["workers"]["sends"] == pytest.approx(1 / 3)
    assert found["in"]["workers_while_idle"]["computes"] == pytest.approx(0.5)
    assert found["out"]["workers_while_idle"] == {}


def test_slower_link_is_full_with_fewer_bytes() -> None:
    slow = rates(LinkSetting.REDRAWN)
    share = slow.share("h4", 0.0)
    counted = samples((10.0, 0, 0), (11.0, round(1_000_000 * share), 0))
    found = link_use(counted, slow, 10.0, [])
    assert found["in"]["used"] == pytest.approx(1.0)
    assert found["out"]["idle"] == 1.0


def test_phases_follow_each_other() -> None:
    found = phase_times([ROW], [11.0, 20.0], [(13.0, 15.0), (18.0, 19.0)])
    assert found == {
        "waits for a model": [(10.0, 11.0)],
        "gets a model": [(11.0, 12.0)],
        "computes": [(12.0, 12.5)],
        "waits for its grant": [(12.5, 13.0)],
        "sends": [(13.0, 15.0)],
        "waits for the commit": [(15.0, 16.0)],
    }
    assert tuple(found) == PHASES


def test_nothing_is_known_of_waits_without_a_scheduler() -> None:
    found = phase_times([ROW], [], [])
    assert found == {
        "gets a model": [(10.0, 12.0)],
        "computes": [(12.0, 12.5)],
        "sends": [(12.5, 16.0)],
    }


def test_timeline_tells_when_updates_were_sent(tmp_path: Path) -> None:
    log = tmp_path / "transfers.jsonl"
    events = [
        {"time": 100.0, "event": "granted", "job": "run-1", "worker": 2, "transfer": 7},
        {"time": 103.0, "event": "observed", "job": "run-1", "worker": 2, "transfer": 7}
        | {"seconds": 2.0},
        {"time": 103.5, "event": "delivered", "job": "run-1", "worker": 2, "transfer": 7},
        {"time": 104.0, "event": "delivered", "job": "run-2", "worker": 2, "transfer": 7},
        {"time": 105.0, "event": "observed", "job": "run-1", "worker": 1, "transfer": 3}
        | {"seconds": 1.0},
        {"time": 106.0, "event": "allreduce_ended", "job": "run-1", "number": 1},
    ]
    log.write_text("".join(json.dumps(event) + "\n" for event in events))
    assert sent_times(log, "run-1", -90.0) == {2: [(11.0, 13.5)], 1: [(14.0, 15.0)]}


def test_table_has_medians_over_seeds() -> None:
    use = {
        "in": {"used": 0.5, "busy": 0.25, "idle": 0.1},
        "out": {"used": 1.0, "busy": 1.0, "idle": 0.0},
        "workers": dict.fromkeys(PHASES, 1.5),
    }
    line = report.link_line({"contender": "plain", "runs": [{"link_use": use}, {}]})
    cells = "asynchronous PS | 50, 25, 10 | 100, 100, 0 | 1.5, 1.5, 1.5, 1.5, 1.5, 1.5"
    assert line == f"| {cells} |"
    assert line.count("|") == report.LINK_HEAD.splitlines()[0].count("|")
    earlier = report.link_line({"contender": "plain", "runs": [{}]})
    assert earlier == "| asynchronous PS | - | - | - |"
