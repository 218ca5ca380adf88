# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""Priorities of gradients, by DDP's hook and by hybrid training: front layers, large values."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lossy_session import be_rank_0, state_of
from lossy_sums import LossySession
from switchfold.hostlib.errors import ConfigurationError
from switchfold.hostlib.future import AllreduceFuture
from switchfold.hostlib.loss_tolerance import LossTolerance
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.session import Session
from switchfold.hostlib.straggler import WAIT_FOR_ALL, StragglerPolicy
from switchfold.hostlib.summation.hadamard import RandomizedHadamard
from torch_ranks import load_torch, require_torch

require_torch()
torch, _ = load_torch()

from hybrid_ranks import HybridRanks, seeded, three_layers  # noqa: E402
from switchfold.hostlib.torch.ddp.hooks import SwitchfoldState, allreduce_hook  # noqa: E402
from switchfold.hostlib.torch.layer_priority import priority_at  # noqa: E402


class PrioritySession(LossySession):
    """Notes the priorities of sums."""

    def __init__(self, max_priority: int) -> None:
        super().__init__(WAIT_FOR_ALL)
        self.options = SessionOptions(max_priority=max_priority)
        self.priorities: list[int] = []

    def allreduce(self, array: Any, op: str = "sum", **named: Any) -> AllreduceFuture:
        self.priorities.append(named["priority"])
        return super().allreduce(array, op, **named)


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> None:
    be_rank_0(monkeypatch)


def run_pass(state: SwitchfoldState, num_buckets: int) -> None:
    for index in range(num_buckets):
        bucket = SimpleNamespace(
            index=lambda index=index: index,
            is_last=lambda index=index: index == num_buckets - 1,
            parameters=list,
            buffer=lambda: torch.ones(4),
        )
        allreduce_hook(state, cast("Any", bucket)).wait()


@pytest.mark.parametrize(
    ("count", "classes", "expected"),
    [
        (4, 2, [0, 0, 1, 1]),
        (3, 2, [0, 0, 1]),
        (3, 7, [0, 2, 4]),
        (1, 3, [0]),
        (5, 3, [0, 0, 1, 1, 2]),
        (0, 3, []),
    ],
)
def test_later_gradients_have_the_same_or_a_higher_priority(
    count: int, classes: int, expected: list[int]
) -> None:
    assert [priority_at(place, count, classes) for place in range(count)] == expected


@pytest.mark.usefixtures("group")
def test_hook_raises_the_buckets_of_front_layers_once_it_knows_their_number() -> None:
    """DDP makes other buckets after the first pass."""
    session = PrioritySession(max_priority=3)
    with state_of(session, front_first=True) as state:
        for num_buckets in (2, 4, 4):
            run_pass(state, num_buckets)
    assert session.priorities == [0, 0, *(0, 1, 2, 2), *(0, 0, 1, 2)]


@pytest.mark.usefixtures("group")
def test_hook_leaves_priorities_alone_unless_asked() -> None:
    session = PrioritySession(max_priority=7)
    with state_of(session) as state:
        for _ in range(2):
            run_pass(state, 3)
    assert session.priorities == [0] * 6


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("max_priority", [0, 1])
def test_hook_refuses_front_first_in_a_session_with_one_priority(max_priority: int) -> None:
    with pytest.raises(ConfigurationError, match=r"rank 0: front_first .*SWITCHFOLD_MAX_PRIORITY"):
        state_of(PrioritySession(max_priority), front_first=True)


def test_hybrid_training_raises_front_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three layers, the last one is sent first."""
    ranks = HybridRanks(2, options=SessionOptions(timeout_s=120.0, max_priority=3))
    said: dict[int, list[int]] = {}
    allreduce = Session.allreduce

    def note(session: Session, array: Any, *arguments: Any, **named: Any) -> AllreduceFuture:
        if array.dtype.kind == "f":
            said.setdefault(session.view.worker_id, []).append(named["priority"])
        return allreduce(session, array, *arguments, **named)

    monkeypatch.setattr(Session, "allreduce", note)

    def rank_main(rank: int) -> None:
        module = seeded(three_layers, 1)
        with ranks.wrap(rank, module, scheme="ina", front_first=True) as model:
            for _ in range(2):
                model.zero_grad()
                model(torch.ones(4, 12)).sum().backward()

    ranks.run(rank_main)
    ranks.close()
    assert said == {0: [0, 1, 2] * 2, 1: [0, 1, 2] * 2}


def test_hybrid_training_refuses_front_first_without_priorities() -> None:
    ranks = HybridRanks(2)

    def rank_main(rank: int) -> None:
        with pytest.raises(ConfigurationError, match=f"rank {rank}: front_first needs"):
            ranks.wrap(rank, seeded(three_layers, 1), scheme="ina", front_first=True)
        with pytest.raises(ConfigurationError, match=f"rank {rank}: front_first without a session"):
            ranks.wrap(rank, seeded(three_layers, 1), scheme="ps", front_first=True, session=None)

    ranks.run(rank_main)
    ranks.close()


class LargeFirstSession(LossySession):
    """Notes which sums have large values first."""

    def __init__(self, policy: StragglerPolicy, *, max_priority: int = 0) -> None:
        super().__init__(policy)
        self.options = SessionOptions(max_priority=max_priority)
        self.large_first: list[bool] = []

    def allreduce(self, array: Any, op: str = "sum", **named: Any) -> AllreduceFuture:
        self.large_first.append(named["large_first"])
        return super().allreduce(array, op, **named)


TOLERANT = StragglerPolicy(tolerance=LossTolerance(loss=0.1))


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("large_first", [False, True])
def test_hook_has_large_values_of_buckets_first_if_asked(large_first: bool) -> None:
    session = LargeFirstSession(TOLERANT)
    with state_of(session, large_first=large_first) as state:
        run_pass(state, 3)
    assert session.large_first == [large_first] * 3


@pytest.mark.usefixtures("group")
def test_hook_takes_priorities_alone_for_large_values() -> None:
    session = LargeFirstSession(WAIT_FOR_ALL, max_priority=2)
    with state_of(session, large_first=True) as state:
        run_pass(state, 2)
    assert session.large_first == [True] * 2


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize(
    ("options", "policy", "what"),
    [
        ({"precision": "exact"}, WAIT_FOR_ALL, "large_first with precision 'exact'"),
        ({"dispersal": RandomizedHadamard(seed=1)}, TOLERANT, "large_first .* or with a dispersal"),
        ({}, WAIT_FOR_ALL, "large_first would change nothing"),
    ],
)
def test_hook_refuses_large_values_first_where_they_cannot_be(
    options: dict[str, Any], policy: StragglerPolicy, what: str
) -> None:
    with pytest.raises(ConfigurationError, match=what):
        state_of(LargeFirstSession(policy), large_first=True, **options)


def test_hybrid_training_has_large_values_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of gradients; its flags are integers."""
    ranks = HybridRanks(2, options=SessionOptions(timeout_s=120.0, max_priority=2))
    said: Counter[tuple[str, bool]] = Counter()
    allreduce = Session.allreduce

    def note(session: Session, array: Any, *arguments: Any, **named: Any) -> AllreduceFuture:
        said[array.dtype.kind, named.get("large_first", False)] += 1
        return allreduce(session, array, *arguments, **named)

    monkeypatch.setattr(Session, "allreduce", note)

    def rank_main(rank: int) -> None:
        module = seeded(three_layers, 1)
        with ranks.wrap(rank, module, scheme="ina", large_first=True) as model:
            model(torch.ones(4, 12)).sum().backward()

    ranks.run(rank_main)
    ranks.close()
    assert said["f", True] == 6
    assert set(said) <= {("f", True), ("i", False)}


def test_hybrid_training_refuses_large_values_first_without_effect() -> None:
    ranks = HybridRanks(2)

    def rank_main(rank: int) -> None:
        with pytest.raises(ConfigurationError, match="large_first would change nothing"):
            ranks.wrap(rank, seeded(three_layers, 1), scheme="ina", large_first=True)
        with pytest.raises(ConfigurationError, match="large_first without a session"):
            ranks.wrap(rank, seeded(three_layers, 1), scheme="ps", large_first=True, session=None)

    ranks.run(rank_main)
    ranks.close()
