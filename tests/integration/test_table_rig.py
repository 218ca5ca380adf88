# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs of workers and parameter servers on a testbed without privileges; all sums are verified."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from switchfold.controller.cli.hot.figures import LoadShares
from switchfold.controller.cli.hot.plan import Offload, TablePlan, TableWorkload
from switchfold.controller.cli.hot.rig import TableRig
from switchfold.controller.cli.workloads.errors import WorkloadDataError

WORDS = ("animal of the sea", "plant with leaves", "tool of a smith", "feeling of joy")


@pytest.fixture(scope="module")
def glosses(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small dictionary: the category follows from the words."""
    folder = tmp_path_factory.mktemp("wordnet")
    rng = np.random.default_rng(1)
    for number, name in enumerate(("data.noun", "data.verb", "data.adj", "data.adv")):
        lines = (
            f"{i:08} {number:02} n 01 x 0 000 | {WORDS[number]} {rng.integers(0, 1000)}\n"
            for i in range(400)
        )
        (folder / name).write_text("".join(lines))
    return folder


@pytest.fixture(scope="module")
def rig(glosses: Path) -> Iterator[TableRig]:
    with TableRig(num_workers=2, num_servers=2, mode="udp", glosses=glosses) as made:
        yield made


@pytest.mark.parametrize("workload", TableWorkload)
def test_servers_get_all_pushes_and_pulls_of_cold_keys(
    rig: TableRig, workload: TableWorkload
) -> None:
    plan = TablePlan(
        workload=workload, num_workers=2, num_servers=2, batch=64, warm_up_s=0.05, steps=20
    )
    run = rig.run(plan)
    updates = sum(worker.pushed_keys for worker in run.workers)
    assert run.servers.pushed_keys == updates > 0
    assert run.servers.pulled_keys == sum(worker.pulled_keys for worker in run.workers) >= updates
    # Each of 40 batches has keys of both servers, and so have the hottest keys.
    num_hottest = sum(worker.hottest_pull_s.size for worker in run.workers)
    assert (num_hottest > 0) == (workload is not TableWorkload.GLOSSES)
    assert run.servers.pushes == 80
    assert run.servers.pulls == 80 + 2 * num_hottest
    assert LoadShares.of(run).writes == LoadShares.of(run).predicted == 1
    assert all(worker.num_steps > 20 for worker in run.workers)
    assert all(worker.push_s.size == worker.pull_s.size == 20 for worker in run.workers)


def test_asynchronous_workers_learn_the_categories(rig: TableRig) -> None:
    plan = TablePlan(
        workload=TableWorkload.GLOSSES,
        is_training=True,
        num_workers=2,
        num_servers=2,
        batch=32,
        steps=44,
    )
    run = rig.run(plan)
    assert run.accuracy == 1
    assert [worker.num_steps for worker in run.workers] == [44, 44]
    assert all(worker.push_s.size == 88 for worker in run.workers)


def test_a_plan_that_does_not_fit_is_refused_before_it_starts(rig: TableRig) -> None:
    with pytest.raises(ValueError, match="3 workers and 2 servers on a testbed for 2 and 2"):
        rig.run(TablePlan(workload=TableWorkload.ZIPF_845, num_workers=3, num_servers=2))
    with pytest.raises(ValueError, match="less than one batch of 4096"):
        rig.run(TablePlan(workload=TableWorkload.GLOSSES, num_workers=2, num_servers=2, batch=4096))


def test_hot_keys_need_hosts_with_addresses(rig: TableRig) -> None:
    plan = TablePlan(workload=TableWorkload.ZIPF_845, num_workers=2, num_servers=2)
    with pytest.raises(ValueError, match="mode veth"):
        rig.run(plan.with_offload(Offload.HOT))


@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_the_switch_takes_hot_keys_off_the_servers(glosses: Path) -> None:
    with TableRig(num_workers=2, num_servers=2, mode="veth", glosses=glosses) as rig:
        plan = TablePlan(
            workload=TableWorkload.ZIPF_1070,
            num_workers=2,
            num_servers=2,
            hot_keys=256,
            refresh_s=0.5,
            warm_up_s=2.0,
            steps=40,
        )
        shares = {
            offload: LoadShares.of(rig.run(plan.with_offload(offload))) for offload in Offload
        }
    assert shares[Offload.NONE].hot == 0
    for offload in (Offload.HOT, Offload.LRU, Offload.RANDOM):
        contributors = shares[offload].contributors
        assert shares[offload].hot > 0
        assert contributors is not None
        assert 1 <= contributors <= 2
    assert shares[Offload.HOT].hot > shares[Offload.RANDOM].hot


def test_a_missing_dictionary_is_named(tmp_path: Path) -> None:
    with (
        TableRig(num_workers=1, num_servers=1, mode="udp", glosses=tmp_path) as rig,
        pytest.raises(WorkloadDataError, match="apt-get install"),
    ):
        rig.run(TablePlan(workload=TableWorkload.GLOSSES, num_workers=1))
