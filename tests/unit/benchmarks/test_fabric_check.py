# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs of `switchfold bench fabric` beside the simulator; their files are made by simulations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.fabric.settings import Cell, ClusterSize
from benchmarks.fabric.tasks import WORKLOADS
from benchmarks.simulator import fabric_check
from benchmarks.simulator.contenders import simulate
from benchmarks.simulator.estimated import EstimatedRun
from benchmarks.simulator.fabric_check import (
    LINK_SHARE,
    FabricPart,
    matching_contender,
    scenario_of_part,
    simulated_figures,
)
from benchmarks.simulator.traces import ComputeSetting, LinkSetting
from switchfold.controller.transfers.transfer_config import TransferConfig

SIZE = ClusterSize(
    num_workers=4, num_values=WORKLOADS["perceptron"].num_values, rate_bits_per_s=20_000_000
)
CELL = Cell(links=LinkSetting.REDRAWN, computing=ComputeSetting.STRAGGLERS, seed=3)
TRANSFERS = {"payload_share": "0.92", "batch_wait_s": "0.034", "gather_wait_s": "0.17"}
SECONDS = 8.0
WAIT_S = 0.02


def part(contender: str, updates_per_s: float = 5.0) -> FabricPart:
    """Return a run without figures; its workers waited `WAIT_S` for each model."""
    waits = {"workers": {"waits for a model": WAIT_S * updates_per_s}}
    figures = {"seconds": SECONDS, "updates_per_s": updates_per_s, "link_use": waits}
    return FabricPart(
        workload="perceptron",
        contender=contender,
        cell=CELL,
        size=SIZE,
        transfers=TRANSFERS,
        figures=figures,
    )


def simulated(contender: str) -> dict[str, float]:
    known = part(contender)
    made = matching_contender(contender, TRANSFERS)
    assert made is not None
    run = simulate(made, scenario_of_part(known, 0), duration_s=SECONDS)
    return simulated_figures(known, run)


def run_of(figures: dict[str, float]) -> dict[str, Any]:
    """Return a run as the benchmark writes it."""
    use = {name: {"used": figures[f"link {name}"]} for name in ("in", "out")}
    workers = {"waits for a model": WAIT_S * figures["updates/s"]}
    return {
        "seed": CELL.seed,
        "seconds": SECONDS,
        "updates_per_s": figures["updates/s"],
        "mean_delay": figures["mean delay"],
        "push_s": {"p50": figures["push, s"]},
        "get_s": {"p50": figures["get, s"]} if figures["get, s"] else {},
        "link_use": {"workers": workers, **use},
    }


def write_part(path: Path, runs: dict[str, dict[str, Any]]) -> Path:
    names = {"links": CELL.links.value, "computing": CELL.computing.value}
    rows = [names | {"contender": name, "runs": [run]} for name, run in runs.items()]
    parameters = {"workers": "4", "rate": "20000000", "transfers": str(TRANSFERS)}
    path.write_text(json.dumps({"parameters": parameters, "rows": {"perceptron": rows}}))
    return path


@pytest.fixture(autouse=True)
def _results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fabric_check, "RESULTS", tmp_path)


def test_a_run_that_went_as_simulated_is_close(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = {name: run_of(simulated(name)) for name in ("plain", "switches-relays", "ring")}
    runs["groups"] = runs["plain"]
    path = write_part(tmp_path / "fabric.json", runs)
    assert fabric_check.main([str(path), "--draws", "1", "--tolerance", "1e-6"]) == 0
    text = capsys.readouterr().out
    assert "| switches-relays | link in | 1 of 1 | +0 .. +0 % |" in text
    assert "| ring | link in |" not in text
    assert "groups: the simulator does not have it" in text
    rows = json.loads((tmp_path / "simulator_fabric.json").read_text())["rows"]
    assert [row["contender"] for row in rows] == ["plain", "switches-relays", "ring"]
    assert all(each["difference"] == 0 for row in rows for each in row["figures"])


def test_a_faster_run_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = simulated("plain")
    figures["updates/s"] *= 2
    path = write_part(tmp_path / "fabric.json", {"plain": run_of(figures)})
    assert fabric_check.main([str(path), "--draws", "1"]) == 1
    assert "| plain | updates/s | 0 of 1 | -50 .. -50 % |" in capsys.readouterr().out


def test_other_files_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"parameters": {}}')
    with pytest.raises(SystemExit, match="2"):
        fabric_check.main([str(path)])
    assert "other.json is no part of an evaluation" in capsys.readouterr().err


def test_scheduler_gets_the_waits_and_rates_of_the_run() -> None:
    made = matching_contender("switches-relays", TRANSFERS | {"relay_max": "8"})
    assert made is not None
    run = made.make(scenario_of_part(part("switches-relays"), 0), None)
    assert isinstance(run, EstimatedRun)
    planned = run.tracker.slowed()
    assert planned == {}
    options = run._scheduler._options
    assert options.relay_max == 8
    assert options.join_ratio == TransferConfig().join_ratio > 1
    scenario = run.scenario
    assert scenario.link_bits_per_s == round(LINK_SHARE * 20e6)
    assert scenario.compute_s == pytest.approx(SIZE.transfer_s / 2)
    assert scenario.message_wait_s == pytest.approx(WAIT_S)
    assert matching_contender("synchronous", TRANSFERS) is None


def test_links_of_a_cell_are_those_of_the_testbed() -> None:
    hosts = SIZE.link_trace(CELL)
    trace = scenario_of_part(part("plain"), 0).link_trace
    for period in range(4):
        simulated_shares = [*trace.shares(period).values()][: len(SIZE.hosts)]
        assert simulated_shares == [*hosts.shares(period).values()]
