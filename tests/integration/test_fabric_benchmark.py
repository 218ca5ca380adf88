# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the live scheduler in its quick form: every model is verified, none is timed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from benchmarks.fabric import evaluation
from benchmarks.fabric.contenders import BASELINE, CHAIN, CONTENDERS
from benchmarks.fabric.tasks import WORKLOADS
from switchfold.bmv2_topos import state
from switchfold.controller.cli.timeline.log_file import load_recording

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]


def test_all_contenders_train_what_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    evaluation.main(["--quick", "--timelines", "--out", str(tmp_path / "out")])
    content = json.loads((tmp_path / "out" / "fabric.json").read_text())
    rows = {row["contender"]: row for row in content["rows"]["perceptron"]}
    able = {name: each for name, each in CONTENDERS.items() if not each.missing}
    assert set(rows) == set(able)
    workers, iterations = evaluation.QUICK["workers"], evaluation.QUICK["iterations"]
    for name, row in rows.items():
        (run,) = row["runs"]
        assert run["updates"] + run["drops"] == workers * iterations, name
        assert sum(run["delays"].values()) == run["updates"]
        assert set(run["by_link_share"]) == {"1", "0.5"}
        assert run["target_s"] is None, "nobody recognises all digits"
    plain = rows[BASELINE]["runs"][0]
    assert "granted_models" not in plain["server_counters"]
    assert (plain["granted"], plain["drops"], plain["grant_wait_s"]) == (0, 0, {})
    assert plain["server_counters"]["ungranted_updates"] == plain["updates"]
    chain = rows[CHAIN]["runs"][0]["server_counters"]
    updates = workers * iterations
    num_bytes = 4 * WORKLOADS["perceptron"].num_values
    assert chain["passed_updates"] == rows[CHAIN]["runs"][0]["updates"] == updates
    assert updates * num_bytes < chain["passed_bytes"] < 1.1 * updates * num_bytes
    assert "passed_updates" not in plain["server_counters"]
    for name in (name for name, each in able.items() if each.is_scheduled):
        (run,) = rows[name]["runs"]
        assert run["granted"] == run["updates"] > 0, name
        counters = run["server_counters"]
        if not able[name].is_served:
            assert run["worker_counters"]["granted_allreduces"] == updates + workers, name
            assert not run["worker_counters"].get("ungranted_allreduces"), name
            continue
        assert run["grant_wait_s"]["p50"] > 0
        assert counters["granted_models"] > 0, name
        assert not counters.get("ungranted_models"), name
    assert len(content["control_trips_s"]) == evaluation.CONTROL_TRIPS
    text = (tmp_path / "out" / "fabric.md").read_text()
    assert "| scheduled | never |" in text
    scheduled = {name for name, each in able.items() if each.is_scheduled}
    folder = tmp_path / "out" / "timelines"
    pages = {name: f"perceptron_tenth-halved_few-slow_{name}_seed-1" for name in scheduled}
    assert {path.stem for path in folder.glob("*.html")} == set(pages.values())
    for name, page in pages.items():
        assert f"(timelines/{page}.html)" in text
        recorded = load_recording(folder / f"{page}.jsonl").timeline
        if able[name].is_served:
            assert len(recorded.updates) == workers * iterations
        else:
            assert len(recorded.allreduces) == iterations + 1, "one before the training, too"
    assert (tmp_path / "out" / "fabric.png").stat().st_size > 10_000
