# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Replays of recorded runs, clusters of any size, and published figures beside the models'."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.simulator import grid, replay, scale, shapes
from benchmarks.simulator.clusters import OVERSUBSCRIPTION, cluster_of
from benchmarks.simulator.contenders import CONTENDERS, simulate
from benchmarks.simulator.replay import Comparison, compare, computing_of, scenario_of, verdict
from benchmarks.simulator.scenario import Scenario
from benchmarks.simulator.spread import Spread
from benchmarks.simulator.tcp_check import means_of
from benchmarks.simulator.timeline import (
    TimelineError,
    TimelineEvent,
    TimelineKind,
    write_timeline,
)
from benchmarks.simulator.traces import ComputeSetting

SCENARIO = Scenario(
    num_workers=3,
    seed=0,
    num_servers=2,
    update_bytes=1_000_000,
    compute_s=0.3,
    computing=ComputeSetting.STRAGGLERS,
)


def scene(events: list[TimelineEvent], factor: float = 1.0) -> Scenario:
    """Return the scenario of a record, or one with links that are slower by a factor."""
    rates = SCENARIO.link_bits_per_s * factor, SCENARIO.server_link_bits_per_s * factor
    return scenario_of(events, *rates)


def recorded(name: str, duration_s: float = 6.0) -> list[TimelineEvent]:
    """Return a record of whole iterations: what is under way at the end is left out."""
    run = simulate(CONTENDERS[name], SCENARIO, duration_s=duration_s)
    last = {event.worker: 0 for event in run.events}
    for number, event in enumerate(run.events):
        if event.event is TimelineKind.COMMIT:
            last[event.worker] = number
    return [event for number, event in enumerate(run.events) if number <= last[event.worker]]


@pytest.mark.parametrize("name", ["async-ps", "chain", "direct"])
def test_a_simulated_record_replays_as_it_was(name: str) -> None:
    events = recorded(name)
    scenario = scene(events)
    assert scenario == replace(SCENARIO, computing=scenario.computing, compute_s=scenario.compute_s)
    rows, _ = compare(events, CONTENDERS[name], scenario, draws=1)
    assert rows[0].recorded > 10
    # Only the end differs: no worker begins an iteration there that it does not end.
    assert all(abs(row.difference) < 0.02 for row in rows)


def test_another_contender_or_rate_is_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    events = recorded("async-ps")
    rows, _ = compare(events, CONTENDERS["async-ps"], scene(events, 0.5), draws=2)
    assert not verdict(rows, 0.1)
    assert "NOT within 10 %" in capsys.readouterr().out
    rows, _ = compare(events, CONTENDERS["chain"], scene(events), draws=1)
    assert not verdict(rows, 0.05)


def test_computing_times_of_a_record() -> None:
    def event(time_s: float, kind: TimelineKind, server: str) -> TimelineEvent:
        return TimelineEvent(time_s=time_s, event=kind, worker="w0", server=server, bytes=1)

    got, push = TimelineKind.GOT, TimelineKind.PUSH
    events = [event(1, got, "a"), event(2, got, "b"), event(5, push, "a"), event(5, push, "b")]
    events += [event(6, got, "a"), event(7, got, "b"), event(7.5, push, "a"), event(8, push, "b")]
    times = computing_of(events, ["w0"], num_servers=2)
    assert [times.time_s(0, number) for number in range(3)] == [3, 0.5, None]
    with pytest.raises(TimelineError, match="no `got` comes before"):
        computing_of(events[2:], ["w0"], num_servers=2)
    with pytest.raises(TimelineError, match="no push"):
        scenario_of(events[:2], 1e8, 1e8)
    uneven = [*events, replace(events[2], bytes=2)]
    with pytest.raises(TimelineError, match="from 1 to 2 bytes"):
        scenario_of(uneven, 1e8, 1e8)


def test_the_command_compares_and_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record, written = tmp_path / "live.jsonl", tmp_path / "simulated.jsonl"
    write_timeline(recorded("direct"), record)
    command = ["replay.py", str(record), "--contender", "direct", "--rate", "100M"]
    monkeypatch.setattr(sys, "argv", [*command, "--draws", "1", "--write", str(written)])
    assert replay.main() == 0
    assert "within 10 %" in capsys.readouterr().out
    assert len(written.read_text().splitlines()) > 50
    record.write_text("nonsense\n")
    with pytest.raises(SystemExit, match="2"):
        replay.main()
    assert "line 1 is no event" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "rate"), [("100M", 1e8), ("1.5G", 1.5e9), ("20000", 2e4)])
def test_rates_are_parsed(text: str, rate: float) -> None:
    assert replay.parse_bits_per_s(text) == rate


@pytest.mark.parametrize("text", ["fast", "0", "-1M", "nan", ""])
def test_wrong_rates_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        replay.parse_bits_per_s(text)


def test_means_over_runs() -> None:
    runs = [
        [Comparison(name="x", recorded=1.0, simulated=3.0)],
        [Comparison(name="x", recorded=3.0, simulated=4.0)],
    ]
    assert means_of(runs) == [Comparison(name="x", recorded=2.0, simulated=3.5)]
    assert means_of(runs)[0].difference == 0.75
    assert Comparison(name="x", recorded=0.0, simulated=0.0).difference == 0.0
    assert Comparison(name="x", recorded=0.0, simulated=1.0).difference == float("inf")


@pytest.mark.parametrize("num_workers", [8, 32, 64, 256, 1000])
def test_clusters_are_equally_short_of_bandwidth(num_workers: int) -> None:
    cluster = cluster_of(num_workers)
    servers = cluster.num_servers * cluster.server_link_bits_per_s
    assert servers * OVERSUBSCRIPTION == num_workers * cluster.link_bits_per_s
    assert len(cluster.leaves) == -(-num_workers // 32)


def test_spreads() -> None:
    assert Spread.of([3.0, 1.0, 2.0]).text(1) == "2.0 (1.0 .. 3.0)"
    assert Spread.of([2.0, 2.01]).text(1) == "2.0"
    assert Spread.of_known([None, 4.0, None]).text(0) == "4, 2 never"
    assert Spread.of_known([None, None]).text(0) == "never"


def test_the_commands_write_tables_and_charts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(grid, "RESULTS", tmp_path)
    monkeypatch.setattr(scale, "RESULTS", tmp_path)
    monkeypatch.setattr(shapes, "RESULTS", tmp_path)
    cell = ["--links", "even", "--computing", "even"]
    few = ["--seeds", "2", "--duration", "8"]
    chosen = ["--contenders", "async-ps", "ring", "direct"]
    monkeypatch.setattr(sys, "argv", ["grid.py", "--workers", "3", *cell, *few, *chosen])
    assert grid.main() == 0
    assert "| asynchronous PS |" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["scale.py", "--workers", "4", *few, *chosen])
    assert scale.main() == 0
    assert "| 4 | scheduled |" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["shapes.py"])
    assert shapes.main() == 0
    assert "Poseidon" in capsys.readouterr().out
    names = ("simulator_grid", "simulator_scale", "simulator_shapes")
    for name in names:
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000
        assert (tmp_path / f"{name}.json").stat().st_size > 500


def test_headlines_that_the_models_reproduce() -> None:
    """15.5 and 31.5 within 10 %; plain PS is far from both at the same rate of links."""
    first, second, *_ = shapes.poseidon_rows()
    assert (first.published, second.published) == (15.5, 31.5)
    assert first.is_close
    assert second.is_close
    plain = shapes.poseidon_curves(10e9)["PS, no overlap"]
    assert plain[3] < 0.5 * first.published


def test_switchml_by_hand() -> None:
    assert shapes.switch_elements_per_s() == pytest.approx(2893.75e6)
    assert shapes.ring_elements_per_s(8) == pytest.approx(2893.75e6 * 8 / 14)
    assert shapes.writes_saved(0.5, 80) == pytest.approx(1 / 0.50625)
    found = {row.what: row for row in shapes.switchml_rows()}
    assert found["SwitchML: 16 workers, million values/s"].is_close
    assert not found["SwitchML: 16 workers, times NCCL's ring"].is_close


def test_libra_and_mlfabric_are_beside_what_is_ours() -> None:
    rows = {row.what: (row.published, row.ours) for row in shapes.mlfabric_rows()}
    assert rows["MLfabric: least of its 9 cells; scheduled, simulated"] == (1.23, 1.48)
    assert rows["MLfabric: most of its 9 cells; scheduled, simulated"] == (2.96, 3.4)
    assert shapes.writes_saved(0.0, 80) == 1.0
    assert shapes.writes_saved(1.0, 80) == 80.0
