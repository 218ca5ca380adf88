# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the live scheduler: its settings, its verification, its figures and options."""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.fabric import evaluation, report, tasks
from benchmarks.fabric.contenders import CONTENDERS
from benchmarks.fabric.figures import (
    figures_of,
    grid_of,
    joined_rows,
    least_time,
    quantiles,
    speed_ups,
)
from benchmarks.fabric.retraining import best_rate, time_to_target
from benchmarks.fabric.rig import total_counters, waits_for_grants
from benchmarks.fabric.run_plan import RunPlan
from benchmarks.fabric.run_record import FabricRun, FabricRunError, SentUpdates
from benchmarks.fabric.settings import SIMULATED, Cell, ClusterSize, RateOverTime, cell_name
from benchmarks.fabric.tasks import WORKLOADS, TaskPlan
from benchmarks.simulator.traces import ComputeSetting, LinkSetting
from benchmarks.support.limits import ring_limit_s
from fabric_plan import run_plan
from switchfold.controller.cli.demo.digits import Digits, load_digits

WORKERS = 3
PERCEPTRON = WORKLOADS["perceptron"]
SIZE = ClusterSize(
    num_workers=WORKERS, num_values=PERCEPTRON.num_values, rate_bits_per_s=10_000_000
)
CELL = Cell(links=LinkSetting.EVEN, computing=ComputeSetting.EVEN, seed=1)
PLAN = TaskPlan(workload="perceptron", num_workers=WORKERS, seed=1, learning_rate=0.05, data="")
TARGET = 0.6


@pytest.fixture(autouse=True)
def digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tasks read the digits of the package, loaded once."""
    monkeypatch.setattr(tasks, "read_digits_once", lambda _: load_digits_once())


@functools.cache
def load_digits_once() -> Digits:
    return load_digits()


def row_of(version: int, iteration: int, computed_on: int, **changed: Any) -> dict[str, Any]:
    """Return an iteration that began a tenth of a second before the next one."""
    began_s = 100 + 0.1 * version
    return {
        "iteration": iteration,
        "asked_s": began_s,
        "got_s": began_s + 0.01,
        "pushed_s": began_s + 0.02,
        "done_s": began_s + 0.09,
        "overrun_s": 0.0,
        "computed_on": computed_on,
        "version": version,
        "delay": version - 1 - computed_on,
        "is_granted": False,
        "drop_reason": "",
        "score": None,
        **changed,
    }


def trained(steps: int = 30, plan: TaskPlan = PLAN) -> tuple[FabricRun, SentUpdates]:
    """Train in this process: workers take turns, each on the model of two updates ago."""
    tasks = [plan.make(worker) for worker in range(WORKERS)]
    models = [tasks[0].start()]
    rows: list[list[dict[str, Any]]] = [[] for _ in tasks]
    sent: dict[int, list[Any]] = {}
    for version in range(1, steps + 1):
        worker, computed_on = version % WORKERS, max(0, version - WORKERS)
        iteration = len(rows[worker])
        update = tasks[worker].update(models[computed_on], iteration)
        rows[worker].append(row_of(version, iteration, computed_on))
        sent[version] = [update]
        models.append(models[-1] + update)
    commits = [{"version": each, "time_s": 100.05 + 0.1 * each} for each in sent]
    record = FabricRun(
        contender="plain",
        cell=CELL,
        learning_rate=plan.learning_rate,
        began_s=100.0,
        rows=rows,
        commits=commits,
        server_counters={},
        processor_s={
            **dict.fromkeys(("controller", "server", "switch", "workers"), 0.3),
            "busy": 1.0,
            "total": 4.0,
        },
        job="run-1",
    )
    return record, SentUpdates(by_version=sent, model=models[-1])


def test_computing_and_transfers_have_the_simulators_ratio() -> None:
    simulated_s = 8 * SIMULATED.update_bytes / SIMULATED.link_bits_per_s
    assert SIZE.compute_s / SIZE.transfer_s == pytest.approx(SIMULATED.compute_s / simulated_s)
    assert replace(SIZE, rate_bits_per_s=20_000_000).compute_s == pytest.approx(SIZE.compute_s / 2)
    times = [SIZE.compute_trace(CELL).time_s(0, each) for each in range(20)]
    assert SIZE.compute_s * 0.95 <= min(times) < max(times) <= SIZE.compute_s * 1.05


def test_limit_is_that_of_the_servers_link_over_time() -> None:
    even = RateOverTime(size=SIZE, trace=SIZE.link_trace(CELL))
    assert even.server_limit(10.0) == pytest.approx(10.0 / SIZE.transfer_s)
    trace = SIZE.link_trace(replace(CELL, links=LinkSetting.REDRAWN))
    redrawn = RateOverTime(size=SIZE, trace=trace)
    shares = [redrawn.share("h4", time_s) for time_s in (0.0, 5.0, 10.0)]
    expected = (5 * shares[0] + 5 * shares[1] + 2 * shares[2]) / SIZE.transfer_s
    assert redrawn.server_limit(12.0) == pytest.approx(expected)
    assert redrawn.ring_limit(12.0) < even.ring_limit(12.0)
    assert even.allreduce_limit(12.0) == pytest.approx(even.ring_limit(12.0))
    assert redrawn.ring_limit(12.0) < redrawn.allreduce_limit(12.0) < even.allreduce_limit(12.0)
    changes = redrawn.changes(12.0)
    assert {change.time_s for change in changes} <= {0.0, 5.0, 10.0}
    assert {change.link for change in changes if change.time_s == 0.0} == set(SIZE.hosts)
    assert least_time(redrawn.server_limit, expected) == pytest.approx(12.0)


def test_plan_of_a_run_survives_its_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWITCHFOLD_TOKEN", "secret")
    plan = run_plan()
    read = RunPlan.of(json.loads(json.dumps(plan.request("open", port=7))))
    assert (read, read.cell, read.size, read.task) == (plan, CELL, SIZE, PLAN)
    ours, plain = (each.transfers("", 1) for each in (plan, replace(plan, is_scheduled=False)))
    assert read.server_address == "10.0.0.4"
    assert (ours.controller, ours.host, ours.tau_max) == (plan.controller, "h2", 2 * WORKERS)
    assert plain.tau_max is None, "a plain server bounds nothing"
    stepwise = replace(plan, is_stepwise=True).transfers("", 1)
    assert (stepwise.staleness, stepwise.tau_max, ours.staleness) == (0, None, None)
    members = replace(plan, is_served=False, is_stepwise=True).transfers("", 1)
    assert (members.staleness, members.tau_max) == (None, None), "nothing bounds sums"
    assert members.controller == plan.controller
    assert plain.controller != ours.controller
    assert plain.grant_wait_s < 1e-3, "without a scheduler, nothing waits for one"


def test_sum_of_all_updates_is_verified() -> None:
    record, sent = trained()
    record.verify(sent, PLAN.make(0).start())
    assert record.sent is sent


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda sent: sent.model.__iadd__(np.float32(0.01)), "differs from the sum"),
        (lambda sent: sent.by_version.pop(7), "gaps"),
        (
            lambda sent: sent.by_version[7].append(sent.by_version[7][0]),
            "a version has not 1 updates",
        ),
        (lambda sent: sent.by_version[7].__setitem__(0, -sent.by_version[7][0]), "differs from"),
        (lambda sent: sent.by_version.pop(30), "server has applied 30 updates"),
    ],
)
def test_wrong_models_are_refused(damage: Any, message: str) -> None:
    record, sent = trained()
    damage(sent)
    with pytest.raises(FabricRunError, match=message):
        record.verify(sent, PLAN.make(0).start())
    assert record.sent is None


def test_replica_must_have_applied_the_same() -> None:
    record, sent = trained()
    start = PLAN.make(0).start
    record.num_copied = len(record.commits)
    record.verify(replace(sent, replica=sent.model.copy()), start())
    with pytest.raises(FabricRunError, match="the replica's model differs by"):
        record.verify(replace(sent, replica=sent.model + np.float32(0.01)), start())
    record.num_copied -= 1
    with pytest.raises(FabricRunError, match="replica has applied 29 updates, and the server 30"):
        record.verify(replace(sent, replica=sent.model.copy()), start())


def test_target_is_reached_with_the_first_commit_that_is_good_enough() -> None:
    record, sent = trained()
    record.verify(sent, PLAN.make(0).start())
    record.find_target(PERCEPTRON, PLAN.make(0), TARGET)
    scores = {
        version: PLAN.make(0).score(model) for version, model in sent.models(PLAN.make(0).start())
    }
    first = min(version for version, score in scores.items() if score >= TARGET)
    assert (record.reached_version, first > 1) == (first, True)
    assert record.target_s == pytest.approx(0.05 + 0.1 * first)


def test_training_again_at_the_same_rate_takes_the_same_time() -> None:
    record, sent = trained()
    record.verify(sent, PLAN.make(0).start())
    record.find_target(PERCEPTRON, PLAN.make(0), TARGET)
    assert record.target_s is not None
    assert time_to_target(record, PERCEPTRON, PLAN, TARGET) == pytest.approx(record.target_s)
    slow = replace(PLAN, learning_rate=0.001)
    assert time_to_target(record, PERCEPTRON, slow, TARGET) is None
    best_s, rate = best_rate(record, PERCEPTRON, PLAN, TARGET)
    assert best_s is not None
    assert best_s <= record.target_s
    assert time_to_target(record, PERCEPTRON, replace(PLAN, learning_rate=rate), TARGET) == best_s


def test_steps_of_a_ring_are_means() -> None:
    """Three equal steps on the first model are one step of their mean."""
    record, _ = trained(steps=1)
    record = replace(record, contender="ring", commits=[])
    record.rows = [[row_of(1, 0, 0)] for _ in range(WORKERS)]
    tasks = [PLAN.make(worker) for worker in range(WORKERS)]
    start = tasks[0].start()
    model = start + sum(task.update(start, 0) for task in tasks) / np.float32(WORKERS)
    assert record.commit_times == pytest.approx({1: 0.19})
    score = PLAN.make(0).score(model)
    assert record.per_version == WORKERS
    assert time_to_target(record, PERCEPTRON, PLAN, score) == pytest.approx(0.19)
    assert time_to_target(record, PERCEPTRON, PLAN, score + 0.01) is None


def test_figures_are_those_of_the_record() -> None:
    record, _ = trained()
    record.rows[0].append(row_of(0, 99, 29, done_s=103.0, drop_reason="TOO_OLD"))
    record.reached_version, record.target_s = 20, 2.0
    found = figures_of(record, SIZE, [0.01, 0.03])
    assert (found["updates"], found["drops"], found["seconds"]) == (30, 1, pytest.approx(3.09))
    assert found["drop_reasons"] == {"TOO_OLD": 1}
    assert found["delays"] == {"0": 1, "1": 1, "2": 28}
    assert found["mean_delay"] == pytest.approx(57 / 30)
    assert found["grant_wait_s"]["p50"] == pytest.approx(0.02)
    assert found["push_s"]["p99"] == pytest.approx(0.07)
    assert found["added_s"] == {"p50": 0.0, "p99": 0.0}, "a transfer alone takes longer"
    assert found["get_s"]["p50"] == pytest.approx(0.01)
    assert found["target_limit_s"] == pytest.approx(20 * SIZE.transfer_s)
    assert found["share_of_limit"] == pytest.approx(30 * SIZE.transfer_s / 3.09)
    assert found["by_link_share"]["1"]["updates"] == 30
    assert found["by_link_share"]["1"]["per_s"] == pytest.approx(30 / 3.09 / WORKERS)
    assert found["processor_ms_per_update"]["controller"] == pytest.approx(10.0)
    assert found["busy_share"] == 0.25
    assert found["iteration_s"] is None, "nobody is in step"
    assert quantiles([]) == {}


def test_iterations_in_step_are_timed_and_limited_by_the_kind_of_sum() -> None:
    """Two versions of three workers, with 0.29 s from the start of the run to the last end."""
    record, _ = trained(steps=1)
    rows = [[row_of(version, version - 1, version - 1) for version in (1, 2)]] * WORKERS
    counters = {"granted_allreduces": 6}
    record = replace(record, rows=rows, commits=[], worker_counters=counters)
    step_s = ring_limit_s(SIZE.model_bytes, SIZE.rate_bits_per_s, WORKERS)
    for contender in ("ring", "allreduce"):
        found = figures_of(replace(record, contender=contender), SIZE, [])
        assert found["iteration_s"] == pytest.approx(0.29 / 2)
        assert found["share_of_limit"] == pytest.approx(2 * step_s / 0.29)
        assert found["worker_counters"] == counters


def test_counters_of_workers_are_added() -> None:
    answers = [{"counters": {"granted_allreduces": 2}}, {"counters": {}}]
    answers.append({"counters": {"granted_allreduces": 1, "ungranted_allreduces": 1}})
    assert total_counters(answers) == {"granted_allreduces": 3, "ungranted_allreduces": 1}


def test_updates_are_counted_by_the_rate_of_their_workers_link() -> None:
    record, _ = trained()
    record = replace(record, cell=replace(CELL, links=LinkSetting.REDRAWN))
    shares = SIZE.link_trace(record.cell).shares(0)
    found = figures_of(record, SIZE, [])["by_link_share"]
    assert set(found) == {f"{shares[host]:g}" for host in SIZE.hosts[:-1]}
    assert sum(each["updates"] for each in found.values()) == 30
    seconds = sum(each["worker_seconds"] for each in found.values())
    assert seconds == pytest.approx(3.09 * WORKERS), "the first period has not ended"


def row(
    contender: str,
    *targets: float | None,
    links: LinkSetting = LinkSetting.EVEN,
    computing: ComputeSetting = ComputeSetting.EVEN,
) -> Any:
    """Return a row of the evaluation with one run for each target."""
    record, _ = trained(steps=6)
    figures = figures_of(replace(record, contender=contender), SIZE, [])
    runs = [
        {**figures, "seed": seed, "target_s": target, "best_target_s": target}
        for seed, target in enumerate(targets, 1)
    ]
    return {
        "cell": cell_name(links, computing),
        "links": links.value,
        "computing": computing.value,
        "contender": contender,
        "runs": runs,
    }


def test_speed_ups_compare_runs_of_a_seed() -> None:
    rows = [row("plain", 10.0, 30.0, 5.0), row("scheduled", 5.0, 20.0, None)]
    gain = speed_ups(rows[1]["runs"], rows[0]["runs"], "target_s")
    assert (gain.least, gain.most, gain.num_missing) == (1.5, 2.0, 1)
    assert grid_of(rows, "scheduled", "target_s") == {rows[0]["cell"]: gain}
    assert grid_of(rows, "scheduled", "target_s", "ring") == {}, "no ring was run"


def test_a_contender_is_compared_with_the_baseline_of_its_seed() -> None:
    """Parts that are joined have a baseline each, and not always the same seeds."""
    baseline = row("plain", 10.0, 30.0, 50.0)["runs"]
    baseline[1]["seed"] = 1
    gain = speed_ups(row("chain", 5.0, 10.0)["runs"], baseline, "target_s")
    assert (gain.median, gain.num_seeds, gain.num_missing) == (4.0, 2, 1), "seed 2 has no baseline"


def test_results_are_joined_by_cell_and_seed() -> None:
    first, second = ([row(name, 4.0) for name in ("plain", "scheduled")] for _ in range(2))
    for each in first:
        each["runs"][0]["seed"] = 2
    other = row("plain", 9.0, links=LinkSetting.HALVED)
    (joined,) = joined_rows([{"topics": first}, {"topics": [*second, other]}]).values()
    assert [(each["contender"], len(each["runs"])) for each in joined] == [
        ("plain", 2),
        ("scheduled", 2),
        ("plain", 1),
    ]
    assert [run["seed"] for run in joined[0]["runs"]] == [1, 2]


def test_tables_have_a_cell_for_each_heading() -> None:
    rows = [row("plain", 10.0), row("scheduled", 8.0), row("ring", 2.0)]
    lines = report.cell_text(rows, PERCEPTRON).splitlines()
    for head in (report.TIMES_HEAD, report.NETWORK_HEAD):
        at = lines.index(head.splitlines()[0])
        assert {line.count("|") for line in lines[at : at + 5]} == {lines[at].count("|")}
        assert lines[at + 1].count("|") == lines[at].count("|")
    assert "| scheduled | 8.0 | 1.25 |" in "\n".join(lines)


def test_updates_without_a_grant_are_shown() -> None:
    rows = [row("plain", 10.0), row("scheduled", 8.0), row("allreduce", 2.0)]
    for run, granted in zip((each["runs"][0] for each in rows[1:]), (6, 4), strict=True):
        run["granted"] = granted
    assert (
        "updates without a grant, of all: scheduled: 0 of 6;"
        " scheduled allreduce, synchronous: 2 of 6" in report.cell_text(rows, PERCEPTRON)
    )
    plain = report.cell_text(rows[:1], PERCEPTRON)
    assert "without a grant" not in plain, "nobody grants any"


def test_iterations_are_compared_where_results_have_them() -> None:
    rows = [row("plain", 10.0), row("ring", 2.0), row("allreduce", 1.0)]
    for each, time_s in zip(rows[1:], (0.5, 0.25), strict=True):
        each["runs"][0]["iteration_s"] = time_s
    assert grid_of(rows, "allreduce", "iteration_s", "ring")[rows[0]["cell"]].median == 2.0
    assert [report.iteration_text(each["runs"]) for each in rows] == ["-", "0.500", "0.250"]
    del rows[1]["runs"][0]["iteration_s"]
    assert report.iteration_text(rows[1]["runs"]) == "-", "an earlier result"
    assert grid_of(rows, "allreduce", "iteration_s", "ring")[rows[0]["cell"]].num_missing == 1


def test_aims_are_judged_by_the_cells_that_were_run() -> None:
    clean = [row("plain", 10.0), row("scheduled", 10.4)]
    assert report.aims(clean, "target_s") == [
        "aim: at most 5 % slower without contention: 0.96, met"
    ]
    contended = [
        row(name, time_s, links=links)
        for links, ours_s in ((LinkSetting.REDRAWN, 4.0), (LinkSetting.HALVED, 9.0))
        for name, time_s in (("plain", 10.0), ("scheduled", ours_s))
    ]
    found = [
        "aim: at least 1.2 times as fast in each contended cell: 1 of 2, missed (least 1.11)",
        "aim: 3 times somewhere: 2.50, missed",
    ]
    assert report.aims(contended, "target_s") == found
    worst = [
        row(name, time_s, links=LinkSetting.REDRAWN, computing=ComputeSetting.STRAGGLERS)
        for name, time_s in (("plain", 10.0), ("scheduled", 8.0))
    ]
    assert report.aims([*contended, *worst], "target_s") == [
        found[0].replace("1 of 2", "2 of 3"),
        found[1],
        f"aim: at least 2 times in the worst cell, {worst[0]['cell']}: 1.25, missed",
    ]
    grid = report.grid_text(contended, "scheduled", "target_s")
    assert grid.splitlines()[0] == "| computing | links redrawn | links tenth-halved |"
    assert grid.splitlines()[2] == "| even | 2.50 | 1.11 |"


def test_drawing_has_a_bar_for_each_contender(tmp_path: Path) -> None:
    rows = [row("plain", 10.0, 9.0), row("scheduled", 8.0, None), row("ring", None, None)]
    rows += [row("plain", 5.0, links=LinkSetting.HALVED)]
    report.draw({"perceptron": rows}, {"perceptron": PERCEPTRON.title}, tmp_path / "grid.png")
    assert (tmp_path / "grid.png").stat().st_size > 10_000
    assert set(report.COLOURS) == set(CONTENDERS)


def test_grants_are_awaited_from_the_request_on(tmp_path: Path) -> None:
    events = [
        {"time": 1.0, "event": "requested", "job": "run-1", "worker": 0, "transfer": 1},
        {"time": 1.5, "event": "requested", "job": "run-2", "worker": 0, "transfer": 1},
        {"time": 1.25, "event": "granted", "job": "run-1", "worker": 0, "transfer": 1},
        {"time": 1.3, "event": "requested", "job": "run-1", "worker": 1, "transfer": 1},
        {"time": 1.4, "event": "allreduce_granted", "job": "run-1", "number": 1, "members": 3},
    ]
    path = tmp_path / "transfers.jsonl"
    path.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    assert waits_for_grants(str(path), "run-1") == [0.25]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--contenders", "tree"], "no contender tree; choose from plain, chain, scheduled"),
        (["--workloads", "cnn"], "cnn"),
        (["--links", "slow"], "slow"),
        (["--transfers", "kappa"], "write NAME=VALUE"),
        (["--limit", "0"], "a time above 0"),
        (["--seeds", "0"], "less than 1"),
    ],
)
def test_wrong_options_are_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        evaluation.parse_options(words)
    assert refused.value.code == 2
    assert message in capsys.readouterr().err


def test_default_is_the_whole_grid_with_five_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    options = evaluation.parse_options(["--transfers", 'learning_rate="inverse"'])
    assert (options.seeds, options.workers, options.rate) == (5, 8, 20_000_000)
    assert (len(options.workloads), len(options.links), len(options.computing)) == (2, 3, 3)
    assert options.transfers == {**evaluation.TRANSFERS, "learning_rate": '"inverse"'}
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    assert evaluation.parse_options([]).rate == SIMULATED.link_bits_per_s


def test_contenders_always_have_the_baseline() -> None:
    names = [each.name for each in evaluation.parse_options(["--contenders", "ring"]).contenders]
    assert names == ["plain", "ring"]
