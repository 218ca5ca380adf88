# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportPrivateUsage=false
"""Gradients that may lack contributions, without a network: a session that says what is missing."""

from __future__ import annotations

from typing import Any, cast

import pytest

from lossy_session import be_rank_0, run_bucket, state_of
from lossy_sums import NUM_WORKERS, LossySession, delivery_of
from torch_ranks import load_torch, require_torch

require_torch()
torch, _ = load_torch()

from switchfold.hostlib.errors import ConfigurationError  # noqa: E402
from switchfold.hostlib.loss_fill import FillPolicy, TensorFill  # noqa: E402
from switchfold.hostlib.loss_tolerance import NO_LOSS, LossTolerance  # noqa: E402
from switchfold.hostlib.straggler import WAIT_FOR_ALL, StragglerPolicy  # noqa: E402
from switchfold.hostlib.torch.bounded_loss import BoundedSum, GroupLosses  # noqa: E402
from switchfold.hostlib.torch.errors import RankExitedError  # noqa: E402
from switchfold.hostlib.torch.process_group import group_creation  # noqa: E402
from switchfold.hostlib.torch.process_group.switch_queue import QueuedTransfer, SwitchQueue  # noqa: E402
from switchfold.hostlib.torch.process_group.work import SwitchfoldWork  # noqa: E402
from switchfold.hostlib.torch.staging.staging import SumStaging  # noqa: E402

ALL, LACKS_0, LACKS_3 = 0b1111, 0b1110, 0b0111
TWENTIETH, TENTH = LossTolerance(loss=0.05), LossTolerance(loss=0.1)


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> None:
    be_rank_0(monkeypatch)


def tolerant_session() -> LossySession:
    return LossySession(StragglerPolicy(tolerance=TENTH))


@pytest.mark.usefixtures("group")
def test_a_bucket_takes_the_strictest_tolerance_of_its_parameters() -> None:
    wide, small, whole = (torch.nn.Parameter(torch.zeros(4)) for _ in range(3))
    given = {wide: TENTH, small: TWENTIETH}
    for tolerance in (given, given.get):
        session = tolerant_session()
        with state_of(session, tolerance=tolerance) as state:
            for index, parameters in enumerate([[wide], [wide, small], [wide, small, whole]]):
                run_bucket(state, index, parameters)
        assert session.tolerances == [
            LossTolerance(loss=0.1, worker_floor=0.8),
            LossTolerance(loss=0.05, worker_floor=0.9),
            NO_LOSS,
        ]


@pytest.mark.usefixtures("group")
def test_one_tolerance_is_that_of_all_and_by_default_it_is_the_jobs() -> None:
    parameter = torch.nn.Parameter(torch.zeros(4))
    for options, expected in (({"tolerance": TWENTIETH}, TWENTIETH), ({}, TENTH)):
        session = tolerant_session()
        with state_of(session, **options) as state:
            run_bucket(state, 0, [parameter])
        assert session.tolerances == [expected]
    session = LossySession(WAIT_FOR_ALL)
    with state_of(session) as state:
        run_bucket(state, 0, [parameter])
    assert session.tolerances == [None]


@pytest.mark.usefixtures("group")
def test_trainer_reads_what_the_last_pass_lacks() -> None:
    session = tolerant_session()
    parameters = [torch.nn.Parameter(torch.zeros(6)) for _ in range(2)]
    with state_of(session) as state:
        session.bitmaps = [ALL, LACKS_3]
        for index, parameter in enumerate(parameters):
            run_bucket(state, index, [parameter])
        assert {i: each.missing for i, each in state.deliveries.items()} == {
            0: {3: ((4, 6),)},
            1: {3: ((4, 6),)},
        }
        session.bitmaps = []
        run_bucket(state, 0, parameters)  # DDP has arranged its buckets again
        assert {i: each.missing for i, each in state.deliveries.items()} == {0: {}}


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize(
    ("fill", "results"),
    [
        ("mean", [8.0, 16.0, 4.0]),
        ("zero", [6.0, 12.0, 3.0]),
        ("previous", [8.0, 14.0, 6.5]),
        ("feedback", [6.0, 18.0, 21.0]),
    ],
)
def test_gaps_are_filled_by_the_states_policy(fill: str, results: list[float]) -> None:
    """Three passes over a chunk that lacks this rank; the mean of the others is what it gave.

    With feedback this rank gives 8, 16 + 8 and 4 + 24.
    """
    session = tolerant_session()
    session.bitmaps = [LACKS_0]
    parameter = torch.nn.Parameter(torch.zeros(3))
    with state_of(session, fill=fill) as state:
        found = [run_bucket(state, 0, [parameter], value)[0] for value in (8.0, 16.0, 4.0)]
    given = [8.0, 24.0, 28.0] if fill == "feedback" else [8.0, 16.0, 4.0]
    assert [each[0] for each in session.given] == given
    assert found == results


@pytest.mark.usefixtures("group")
def test_what_is_kept_does_not_pass_to_other_parameters() -> None:
    session = tolerant_session()
    session.bitmaps = [LACKS_0]
    first, second = (torch.nn.Parameter(torch.zeros(3)) for _ in range(2))
    with state_of(session, fill="feedback") as state:
        run_bucket(state, 0, [first])
        run_bucket(state, 0, [second])
        run_bucket(state, 0, [first])
        session.bitmaps = [ALL, ALL]
        run_bucket(state, 0, [first, second])
        run_bucket(state, 0, [first])
    assert [given[0] for given in session.given] == [8.0, 8.0, 16.0, 8.0, 8.0]


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"tolerance": 0.05}, r"tolerance is 0\.05; give a LossTolerance"),
        ({"tolerance": {"weight": TENTH}}, "the key 'weight'; its keys are parameters"),
        ({"fill": "mode"}, "fill is 'mode'; choose mean, zero, previous, feedback"),
        ({"tolerance": TENTH, "straggler": StragglerPolicy(quorum=2)}, "give one or the other"),
        ({"tolerance": TENTH, "precision": "exact"}, "exact sums of floats lack nothing"),
        ({"fill": "zero", "precision": "exact"}, "exact sums of floats lack nothing"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        state_of(tolerant_session(), **options)


@pytest.mark.usefixtures("group")
def test_tolerance_needs_a_session_whose_job_has_one() -> None:
    with pytest.raises(ConfigurationError, match="rank 0: a tolerance, but the job of the session"):
        state_of(LossySession(WAIT_FOR_ALL), tolerance=TENTH)


@pytest.mark.usefixtures("group")
def test_a_function_must_return_tolerances() -> None:
    with (
        state_of(tolerant_session(), tolerance=lambda _: 0.1) as state,
        pytest.raises(ConfigurationError, match=r"the tolerance of a parameter is 0\.1"),
    ):
        run_bucket(state, 0, [torch.nn.Parameter(torch.zeros(3))])


def put(switch_queue: SwitchQueue, tensor: Any, **options: Any) -> SwitchfoldWork:
    staging = SumStaging([tensor])
    work = SwitchfoldWork("rank 0, all_reduce", [tensor], staging)
    switch_queue.put(QueuedTransfer(work, staging, "sum", 60.0, **options))
    return work


def test_sums_that_are_not_bounded_lack_nothing() -> None:
    """Counts, losses and broadcasts of a job that tolerates loss."""
    session = tolerant_session()
    switch_queue = SwitchQueue(cast("Any", session), "test")
    for tensor, precision in (
        (torch.ones(3, dtype=torch.int32), "exact"),
        (torch.ones(3), "block"),
        (torch.ones(3), "exact"),  # which the session refuses with a tolerance
    ):
        assert put(switch_queue, tensor, precision=precision).wait()
    assert session.tolerances == [NO_LOSS, NO_LOSS, None]
    switch_queue.close()


def test_a_rank_that_is_gone_is_an_error_whatever_is_tolerated() -> None:
    session = tolerant_session()
    session.members = range(NUM_WORKERS - 1)
    session.bitmaps = [LACKS_3]
    switch_queue = SwitchQueue(cast("Any", session), "test")
    noted: list[Any] = []
    bounded = BoundedSum(tolerance=TENTH, fill=TensorFill(FillPolicy.MEAN, 0), note=noted.append)
    work = put(switch_queue, torch.ones(3), precision="block", bounded=bounded)
    with pytest.raises(RankExitedError, match=r"over 3 of 4 ranks \(without ranks \[3\]\)"):
        work.wait()
    assert session.tolerances == [TENTH]
    assert not noted
    switch_queue.close()


def test_group_tells_of_the_buckets_of_the_last_backward_pass() -> None:
    losses = GroupLosses(TENTH, FillPolicy.MEAN, 0)
    parameter = torch.ones(3, requires_grad=True)

    def reduce(_: Any) -> None:
        bounded = losses.bounded()
        assert bounded.tolerance == TENTH
        bounded.note(delivery_of([LACKS_3], 3))

    parameter.register_hook(reduce)
    for _ in range(2):
        (parameter * 2).sum().backward()
        assert [each.missing for each in losses.deliveries] == [{3: ((0, 3),)}]
    reduce(None)  # a rank that has run out of inputs, outside of a backward pass
    assert losses.deliveries == []


@pytest.mark.parametrize(
    ("fill", "expected"), [(FillPolicy.MEAN, 4.0), (FillPolicy.ZERO, 3.0)], ids=str
)
def test_sums_of_what_was_divided_before_are_means(fill: FillPolicy, expected: float) -> None:
    """As DDP does over the backend: each rank gives a fourth of 4, and one of them is missing."""
    session = tolerant_session()
    session.bitmaps = [LACKS_3]
    noted: list[Any] = []
    bounded = BoundedSum(tolerance=TENTH, fill=TensorFill(fill, 0), note=noted.append)
    switch_queue = SwitchQueue(cast("Any", session), "test")
    tensor = torch.ones(3)
    assert put(switch_queue, tensor, precision="block", bounded=bounded).wait()
    assert tensor.tolist() == [expected] * 3
    assert [each.coverage for each in noted] == [3 / 4]
    switch_queue.close()


def test_exact_buckets_tolerate_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWITCHFOLD_TOLERANCE", "0.05")
    assert group_creation._straggler() == StragglerPolicy(tolerance=TWENTIETH)
    monkeypatch.setenv("SWITCHFOLD_PRECISION", "exact")
    with pytest.raises(ConfigurationError, match="SWITCHFOLD_TOLERANCE with SWITCHFOLD_PRECISION"):
        group_creation._straggler()
