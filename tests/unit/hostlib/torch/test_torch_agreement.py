# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportPrivateUsage=false
"""Ranks that give different tolerances or fills: all of them are told who has which."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, cast

import pytest

from lossy_session import run_bucket, state_of
from lossy_sums import NUM_WORKERS, LossySession
from torch_ranks import load_torch, require_torch

require_torch()
torch, dist = load_torch()

from switchfold.hostlib.errors import ConfigurationError  # noqa: E402
from switchfold.hostlib.loss_fill import FillPolicy  # noqa: E402
from switchfold.hostlib.loss_tolerance import LossTolerance  # noqa: E402
from switchfold.hostlib.step_tolerance import CriticalRegimes, LossGuard  # noqa: E402
from switchfold.hostlib.straggler import WAIT_FOR_ALL, StragglerPolicy  # noqa: E402
from switchfold.hostlib.summation.hadamard import RandomizedHadamard  # noqa: E402
from switchfold.hostlib.torch.agreement import differences  # noqa: E402
from switchfold.hostlib.torch.ddp import hooks as ddp_hooks  # noqa: E402
from switchfold.hostlib.torch.process_group import group_creation  # noqa: E402
from switchfold.hostlib.torch.process_group.rendezvous import RankPlace, Rendezvous  # noqa: E402

WAIT_S = 60.0
TENTH, FIFTH = LossTolerance(loss=0.1), LossTolerance(loss=0.2, worker_floor=0.5)


class Ranks:
    """Ranks as threads, which gather what each says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._here = threading.local()
        self._barrier = threading.Barrier(NUM_WORKERS, timeout=WAIT_S)
        self._said: list[Any] = [None] * NUM_WORKERS
        for name, answer in {
            "get_rank": lambda _: self._here.rank,
            "get_world_size": lambda _: NUM_WORKERS,
            "get_backend": lambda _: "gloo",
            "all_gather_object": self._gather,
        }.items():
            monkeypatch.setattr(ddp_hooks.dist, name, answer)

    @property
    def rank(self) -> int:
        """The rank of the calling thread."""
        return self._here.rank

    def _gather(self, said: list[Any], own: Any, **_: Any) -> None:
        self._said[self.rank] = own
        self._barrier.wait()
        said[:] = self._said
        self._barrier.wait()

    def errors(self, call: Callable[[int], Any]) -> list[str]:
        """Return the ranks' errors: each must raise a ConfigurationError."""

        def run(rank: int) -> str:
            self._here.rank = rank
            with pytest.raises(ConfigurationError) as caught:
                call(rank)
            return str(caught.value)

        with ThreadPoolExecutor(NUM_WORKERS) as pool:
            return list(pool.map(run, range(NUM_WORKERS)))


@pytest.fixture
def ranks(monkeypatch: pytest.MonkeyPatch) -> Ranks:
    return Ranks(monkeypatch)


def tolerant_session() -> LossySession:
    return LossySession(StragglerPolicy(tolerance=TENTH))


@pytest.mark.parametrize(
    ("own", "other", "text"),
    [
        (
            {"tolerance": TENTH},
            {"tolerance": FIFTH},
            "tolerance is loss 0.1 with worker_floor 0.8 on ranks [0, 1, 3], loss 0.2 with"
            " worker_floor 0.5 on ranks [2]",
        ),
        ({}, {"tolerance": {}}, "on ranks [0, 1, 3], by parameter on ranks [2]"),
        ({}, {"fill": "zero"}, "fill is mean on ranks [0, 1, 3], zero on ranks [2]"),
        (
            {"dispersal": RandomizedHadamard(1)},
            {"dispersal": RandomizedHadamard(2)},
            "dispersal is seed 1 with log2_spread 12 on ranks [0, 1, 3], seed 2 with",
        ),
        ({}, {"critical": CriticalRegimes(low=FIFTH)}, "critical is None on ranks [0, 1, 3], Crit"),
        ({}, {"guard": LossGuard()}, "guard is None on ranks [0, 1, 3], LossGuard(share="),
    ],
)
def test_states_of_different_options_are_refused_on_all_ranks(
    ranks: Ranks, own: dict[str, Any], other: dict[str, Any], text: str
) -> None:
    found = ranks.errors(lambda rank: state_of(tolerant_session(), **(other if rank == 2 else own)))
    for rank, error in enumerate(found):
        assert error.startswith(f"rank {rank}: the ranks have different options: ")
        assert text in error


def test_tolerance_that_the_job_of_one_rank_lacks_is_told_to_all(ranks: Ranks) -> None:
    policies = [StragglerPolicy(tolerance=TENTH)] * 3 + [WAIT_FOR_ALL]
    found = ranks.errors(lambda rank: state_of(LossySession(policies[rank])))
    assert all("on ranks [0, 1, 2], none on ranks [3]" in error for error in found)


def test_tolerances_by_parameter_are_compared_before_the_first_sum_of_a_bucket(
    ranks: Ranks,
) -> None:
    def train(rank: int) -> None:
        wide, small = (torch.nn.Parameter(torch.zeros(4)) for _ in range(2))
        given = {wide: TENTH, small: FIFTH if rank == 1 else TENTH}
        session = tolerant_session()
        with state_of(session, tolerance=given if rank else given.get) as state:
            for _ in range(2):
                run_bucket(state, 0, [wide])
            try:
                run_bucket(state, 1, [small])
            finally:
                assert len(session.tolerances) == 2

    for rank, error in enumerate(ranks.errors(train)):
        assert error.startswith(f"rank {rank}: the ranks have different options: tolerance of DDP")
        assert "bucket 1 is loss 0.1 with worker_floor 0.8 on ranks [0, 2, 3]" in error
        assert "loss 0.2 with worker_floor 0.5 on ranks [1]" in error


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (
            {"tolerance_setting": [TENTH, FIFTH]},
            "SWITCHFOLD_TOLERANCE is loss 0.1 with worker_floor 0.8 on ranks [0], loss 0.2 with"
            " worker_floor 0.5 on ranks [1]",
        ),
        (
            {
                "tolerance_setting": [TENTH, TENTH],
                "fill_setting": [FillPolicy.MEAN, FillPolicy.ZERO],
            },
            "SWITCHFOLD_FILL is mean on ranks [0], zero on ranks [1]",
        ),
        ({"precision_setting": ["auto", "block"]}, "PRECISION is auto on ranks [0], block on"),
    ],
)
def test_groups_of_different_settings_do_not_join(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, list[Any]], text: str
) -> None:
    """No rank asks for a job: the controller would refuse one, and let the others wait for it."""
    here = threading.local()
    for name, values in settings.items():
        monkeypatch.setattr(group_creation, name, lambda values=values: values[here.rank])
    store: Any = cast("Any", dist).HashStore()

    class Place:
        def open_transport(self) -> Any:
            return self

        def close(self) -> None:
            here.is_closed = True

    def join(rank: int) -> Any:
        here.rank, here.is_closed = rank, False
        rendezvous = Rendezvous(RankPlace(store, rank, 2), timedelta(seconds=WAIT_S))
        found = group_creation._join(rendezvous, cast("Any", Place))
        return found, here.is_closed

    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(join, range(2)))
    for (session, reason), is_closed in outcomes:
        assert session is None
        assert text in reason
        assert reason.endswith("set the same on all ranks")
        assert is_closed


def test_options_that_are_alike_do_not_differ() -> None:
    assert not differences([{"fill": "mean"}] * 3)
    assert not differences([{}])
