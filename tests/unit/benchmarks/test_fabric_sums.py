# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Members of the benchmark of the live scheduler train in step, in this process."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.fabric import tasks
from benchmarks.fabric.run_plan import RunPlan
from benchmarks.fabric.trainers import FabricTrainer, MemberTrainer, RingTrainer, make_trainer
from fabric_plan import run_plan
from fake_transfers import FakeTransfers, Policy, say_nothing
from granted_sums import SumPolicy
from member_scene import WAIT_S, free_addresses
from switchfold.controller.cli.demo.digits import Digits

WORKERS = 3
ITERATIONS = 4
NO_GRANT_S = 0.02
"""How long members wait for grants that do not come."""


@pytest.fixture(autouse=True)
def few_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tasks read a few random digits; there are no certificates."""
    rng = np.random.default_rng(1)
    images = rng.random((40, 784), np.float32)
    labels = np.arange(40) % 10
    digits = Digits(
        train_images=images, train_labels=labels, test_images=images, test_labels=labels
    )
    monkeypatch.setattr(tasks, "read_digits_once", lambda _: digits)
    monkeypatch.setenv("SWITCHFOLD_TOKEN", "token")
    monkeypatch.delenv("SWITCHFOLD_CREDENTIALS", raising=False)


def plan_at(folder: Path, *, controller: str, is_scheduled: bool) -> RunPlan:
    """Return the plan of a run in step without a server, whose target nobody reaches."""
    ((_, port),) = free_addresses(1)
    return run_plan(
        is_served=False,
        is_scheduled=is_scheduled,
        is_stepwise=True,
        is_chained=False,
        rate_bits_per_s=10_000_000_000,
        target=1.1,
        limit_s=WAIT_S,
        most_iterations=ITERATIONS,
        folder=str(folder),
        controller=controller,
        addresses=tuple(f"127.0.0.{number}" for number in range(1, 6)),
        peer_port=port,
    )


@contextmanager
def scheduler(policy: Policy, grant_wait_s: float) -> Iterator[FakeTransfers]:
    fake = FakeTransfers(policy, grant_wait_s=grant_wait_s)
    try:
        yield fake
    finally:
        fake.stop()


def train(plan: RunPlan) -> tuple[list[FabricTrainer], list[dict[str, Any]]]:
    """Train and leave; return the trainers, and what the rig gets to know."""
    trainers = [make_trainer(plan, number, 0) for number in range(WORKERS)]
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(lambda each: each.start(), trainers))
        answers = list(pool.map(lambda each: each.train(), trainers))
    left = [each.leave() for each in trainers]
    assert len({each["checksum"] for each in left}) == 1
    return trainers, answers


def check_model(plan: RunPlan) -> None:
    """Check that the final model is the first one and all updates of all workers."""
    model = plan.task.make(0).start().astype(np.float64)
    for worker in range(WORKERS):
        with np.load(plan.updates_file(worker)) as found:
            assert found["versions"].tolist() == [*range(1, ITERATIONS + 1)]
            assert found["updates"].any(axis=1).all()
            model += found["updates"].astype(np.float64).sum(axis=0)
    np.testing.assert_allclose(np.load(plan.model_file), model, atol=1e-5)


@pytest.mark.parametrize("is_granted", [True, False])
def test_members_train_in_step_and_count_what_has_no_grant(
    tmp_path: Path, is_granted: bool
) -> None:
    policy = SumPolicy(WORKERS) if is_granted else say_nothing
    with scheduler(policy, WAIT_S if is_granted else NO_GRANT_S) as fake:
        plan = plan_at(tmp_path, controller=fake.address, is_scheduled=True)
        trainers, answers = train(plan)
    check_model(plan)
    name = "granted_allreduces" if is_granted else "ungranted_allreduces"
    for trainer, answer in zip(trainers, answers, strict=True):
        assert isinstance(trainer, MemberTrainer)
        assert [row["is_granted"] for row in answer["rows"]] == [is_granted] * ITERATIONS
        assert answer["counters"] == {"allreduces": ITERATIONS + 1, name: ITERATIONS + 1}


def test_a_ring_trains_the_same(tmp_path: Path) -> None:
    plan = plan_at(tmp_path, controller="unix:/nowhere/controller.sock", is_scheduled=False)
    trainers, answers = train(plan)
    check_model(plan)
    assert all(isinstance(trainer, RingTrainer) for trainer in trainers)
    assert [answer["counters"] for answer in answers] == [{}] * WORKERS
    assert not any(row["is_granted"] for answer in answers for row in answer["rows"])
