# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs with sparse tables: plans, steps of workers, checks of sums, figures."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from switchfold.controller.cli.hot.errors import TableRunError
from switchfold.controller.cli.hot.figures import LoadShares, figures_of, share_of_hottest
from switchfold.controller.cli.hot.plan import BlockDifference, Offload, TablePlan, TableWorkload
from switchfold.controller.cli.hot.rig import TableRun, accuracy_of, check_sums
from switchfold.controller.cli.hot.server import ServerReading
from switchfold.controller.cli.hot.steps import (
    expected_sums,
    plain_table,
    steps_of,
    sums_table,
    weights_table,
    write_samples,
)
from switchfold.controller.cli.hot.worker import WorkerTimes
from switchfold.controller.cli.workloads.glosses import Glosses
from switchfold.controller.cli.workloads.key_stream import RECOMMENDATION, KeyStream
from switchfold.controller.cli.workloads.sparse_text import read_samples

ZIPF = TablePlan(workload=TableWorkload.ZIPF_845, num_workers=2, batch=64, steps=3)


@pytest.fixture
def training(tmp_path: Path) -> TablePlan:
    """A plan with 40 samples to train on."""
    texts = [b"a cat %d" % i if i % 2 else b"an oak oak %d" % i for i in range(40)]
    samples = read_samples(texts, np.arange(40) % 2)
    path = tmp_path / "samples.npz"
    write_samples(Glosses(train=samples, held_out=samples), path)
    plan: dict[str, Any] = {"num_workers": 2, "batch": 8, "samples": str(path)}
    return TablePlan(workload=TableWorkload.GLOSSES, is_training=True, **plan)


def test_processes_read_the_plan_that_was_written(tmp_path: Path) -> None:
    plan = TablePlan(workload=TableWorkload.ZIPF_1070, servers=(("10.0.0.1", 7), ("10.0.0.2", 8)))
    plan.write(tmp_path / "plan")
    assert TablePlan.read(tmp_path / "plan") == plan
    (tmp_path / "plan").write_text('{"workload": "wordnet", "colour": 1}')
    with pytest.raises(ValueError, match="colour"):
        TablePlan.read(tmp_path / "plan")


@pytest.mark.parametrize(
    "bad",
    [
        {"num_workers": 0},
        {"steps": 0},
        {"warm_up_s": -1.0},
        {"pause_s": -1.0},
        {"is_training": True},
    ],
)
def test_impossible_plans_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"positive numbers|trained"):
        TablePlan(workload=TableWorkload.ZIPF_845, **bad)


def test_steps_are_the_same_at_each_call_and_differ_between_workers() -> None:
    first, again = (list(islice(steps_of(ZIPF, 1), 4)) for _ in range(2))
    for one, other in zip(first, again, strict=True):
        assert np.array_equal(one.keys, other.keys)
        assert np.array_equal(one.numbers, other.numbers)
        assert one.numbers.shape == (one.keys.size, ZIPF.width)
        assert np.unique(one.keys).size == one.keys.size
    assert not np.array_equal(first[0].keys, next(steps_of(ZIPF, 0)).keys)


def test_workers_have_the_same_popular_keys() -> None:
    hottest = KeyStream(RECOMMENDATION, ZIPF.seed).hottest(20_000)
    for worker_id in range(2):
        keys = np.concatenate([step.keys for step in islice(steps_of(ZIPF, worker_id), 50)])
        assert np.isin(keys, hottest).mean() > 0.4


def test_expected_sums_are_those_of_all_steps() -> None:
    keys, sums = expected_sums(ZIPF, [3, 1])
    slow: dict[int, list[int]] = {}
    for worker_id, number in ((0, 3), (1, 1)):
        for step in islice(steps_of(ZIPF, worker_id), number):
            for key, row in zip(step.keys.tolist(), step.numbers.tolist(), strict=True):
                slow[key] = [
                    a + b for a, b in zip(slow.get(key, [0] * ZIPF.width), row, strict=True)
                ]
    assert keys.tolist() == sorted(slow)
    assert sums.tolist() == [slow[key] for key in sorted(slow)]


def test_an_epoch_of_a_training_has_each_sample_once(training: TablePlan) -> None:
    # 20 samples of each worker are 2 batches of 8; each has the bias key once for each sample.
    keys, uses = expected_sums(training, [2, 2])
    assert uses.shape == (keys.size, 1)
    assert uses[keys == 0].item() == 32
    step = next(steps_of(training, 0))
    assert step.bag is not None
    assert np.array_equal(step.bag.keys, step.keys)
    assert step.num_samples == 8
    assert (sums_table(training).width, weights_table(training).width) == (1, 16)


def test_a_worker_without_a_whole_batch_is_refused(training: TablePlan) -> None:
    plan = TablePlan(
        workload=TableWorkload.GLOSSES, num_workers=3, batch=16, samples=training.samples
    )
    with pytest.raises(ValueError, match="13 samples, less than one batch of 16"):
        next(steps_of(plan, 2))


def test_wrong_sums_are_named() -> None:
    keys = np.array([3, 5])
    sums = np.array([[1, 2], [-3, 4]])
    check_sums(keys, sums.astype(np.float32), (keys, sums))
    wrong = sums.astype(np.float32)
    wrong[1, 0] += 1
    with pytest.raises(TableRunError, match=r"1 of 2 sums are wrong; of key 5: \[-2\.\s+4\.\]"):
        check_sums(keys, wrong, (keys, sums))
    with pytest.raises(TableRunError, match="1 keys on the servers, 2 were pushed"):
        check_sums(keys[:1], wrong[:1], (keys, sums))
    with pytest.raises(TableRunError, match="float32"):
        check_sums(keys, wrong, (keys, sums << 23))


def test_accuracy_takes_zeros_for_keys_that_were_never_trained() -> None:
    samples = read_samples([b"cat", b"oak", b"new"], np.array([1, 0, 0]))
    cat, oak = samples.keys[1], samples.keys[3]
    keys = np.sort(np.array([cat, oak]))
    weights = np.where((keys == cat)[:, np.newaxis], [[0, 1]], [[1, 0]]).astype(np.float32)
    assert accuracy_of(samples, keys, weights) == 1.0
    assert accuracy_of(samples, keys, weights[:, ::-1].copy()) == pytest.approx(1 / 3)


def run_of(*, cold_keys: int, writes: int) -> TableRun:
    """Two workers that push 500 keys each, in 1 and 2 seconds."""
    workers = [
        WorkerTimes(
            num_steps=10,
            pull_s=np.full(10, 0.002 * seconds),
            hottest_pull_s=np.empty(0),
            push_s=np.full(10, 0.004),
            seconds=seconds,
            processor_s=0.25,
            block_s=np.empty(0),
            samples=200,
            pushed_keys=500,
            pulled_keys=500,
        )
        for seconds in (1.0, 2.0)
    ]
    servers = ServerReading(
        processor_s=0.5,
        pushes=20,
        pushed_keys=cold_keys,
        pulls=20,
        pulled_keys=800,
        hot_sums=50 if cold_keys < 1000 else 0,
        hot_pushes=200 if cold_keys < 1000 else 0,
        writes=writes,
    )
    return TableRun(plan=ZIPF, workers=workers, servers=servers, num_keys=9, accuracy=None)


def test_shares_of_a_run_that_the_switch_helps() -> None:
    # 600 of 1,000 updates went through the switch: 4 pushes in a sum, and 200 writes of keys.
    shares = LoadShares.of(run_of(cold_keys=400, writes=600))
    assert (shares.hot, shares.contributors, shares.writes) == (0.6, 4.0, 0.6)
    assert shares.predicted == pytest.approx(0.55)


def test_shares_of_a_run_without_the_switch() -> None:
    shares = LoadShares.of(run_of(cold_keys=1000, writes=1000))
    assert (shares.hot, shares.contributors, shares.writes) == (0.0, None, 1.0)
    assert shares.predicted == 1.0


def test_share_of_the_hottest_keys() -> None:
    batches = [np.array([1, 2, 3]), np.array([1, 2]), np.array([1, 9, 5])]
    assert share_of_hottest(batches, 1) == pytest.approx(3 / 8)
    assert share_of_hottest(batches, 2) == pytest.approx(5 / 8)
    assert share_of_hottest(batches, 99) == 1


def test_figures_have_their_units() -> None:
    figures = figures_of(run_of(cold_keys=1000, writes=1000))
    assert figures["server us/update"] == pytest.approx(500)
    assert figures["worker us/update"] == pytest.approx(500)
    assert figures["pull p50 ms"] == pytest.approx(3)
    assert figures["push p99 ms"] == pytest.approx(4)
    assert figures["samples/s"] == pytest.approx(200)
    assert figures["pulled keys at servers"] == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        ({"latency_log": ""}, "give a latency log"),
        ({"num_blocks": 6}, "give a multiple of 4 blocks"),
        ({"steps": 12}, "a multiple of that as steps"),
        ({"blocks_differ_in": BlockDifference.HOT_KEYS}, "give an offload"),
    ],
)
def test_blocks_need_steps_and_a_difference(wrong: dict[str, Any], advice: str) -> None:
    blocks: dict[str, Any] = {"latency_log": "log", "num_blocks": 8, "steps": 16}
    plan = replace(ZIPF, offload=Offload.NONE)
    replace(plan, **blocks)
    with pytest.raises(ValueError, match=advice):
        replace(plan, **blocks | wrong)


def test_a_second_table_has_no_hot_keys() -> None:
    blocks: dict[str, Any] = {"num_blocks": 8, "steps": 16}
    plan = replace(ZIPF, offload=Offload.HOT, blocks_differ_in=BlockDifference.HOT_KEYS, **blocks)
    assert sums_table(plan).hot_keys > 0 == plain_table(plan).hot_keys
    assert plan.has_plain_table
    assert not replace(plan, num_blocks=0).has_plain_table


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    run = run_of(cold_keys=1, writes=1)
    run.servers.write(tmp_path / "servers")
    assert ServerReading.read(tmp_path / "servers") == run.servers
    assert run.servers - run.servers == ServerReading(
        processor_s=0.0,
        pushes=0,
        pushed_keys=0,
        pulls=0,
        pulled_keys=0,
        hot_sums=0,
        hot_pushes=0,
        writes=0,
    )
    run.workers[0].write(tmp_path / "worker")
    times = WorkerTimes.read(tmp_path / "worker")
    assert np.array_equal(times.pull_s, run.workers[0].pull_s)
    assert (times.seconds, times.samples, times.num_steps) == (1.0, 200, 10)
