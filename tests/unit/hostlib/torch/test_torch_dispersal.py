# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""Gradients that are spread over their packets, without a network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lossy_session import be_rank_0, run_bucket, state_of
from lossy_sums import NUM_WORKERS, LossySession
from switchfold.hostlib.errors import ConfigurationError
from switchfold.hostlib.loss_tolerance import LossTolerance
from switchfold.hostlib.straggler import WAIT_FOR_ALL, StragglerPolicy
from switchfold.hostlib.summation.hadamard import RandomizedHadamard
from torch_ranks import load_torch, require_torch

require_torch()
torch, _ = load_torch()

LENGTH = 2048
PASSES = 3
ALL, LACKS_0 = 0b1111, 0b1110
LACKING = [ALL] * (LENGTH // 8) + [LACKS_0] * (LENGTH // 8)  # chunks of four values
TENTH = LossTolerance(loss=0.1)
SPREAD = RandomizedHadamard(3)


@pytest.fixture(autouse=True)
def group(monkeypatch: pytest.MonkeyPatch) -> None:
    be_rank_0(monkeypatch)


def spread_of(values: Any, round_number: int) -> Any:
    found = np.array(values, np.float32)
    SPREAD.forward(found, round_number)
    return found


def gradients() -> list[Any]:
    rng = np.random.default_rng(4)
    return [rng.standard_normal(LENGTH, dtype=np.float32) for _ in range(PASSES)]


def passes(session: LossySession, **options: Any) -> list[Any]:
    """Return what the hook makes of some gradients of one parameter, one after the other."""
    parameter = torch.nn.Parameter(torch.zeros(LENGTH))
    with state_of(session, dispersal=SPREAD, **options) as state:
        return [
            np.array(run_bucket(state, 0, [parameter], torch.from_numpy(each)))
            for each in gradients()
        ]


def test_what_lacks_nothing_comes_back_as_it_was() -> None:
    session = LossySession(StragglerPolicy(tolerance=TENTH))
    for number, (found, sent) in enumerate(zip(passes(session), gradients(), strict=True)):
        np.testing.assert_allclose(found, sent, rtol=0, atol=1e-5)
        assert session.given[number] == spread_of(sent, number).tolist()


def test_zeros_for_the_missing_are_put_before_the_transform_back() -> None:
    session = LossySession(StragglerPolicy(tolerance=TENTH))
    session.bitmaps = LACKING
    share = np.repeat([1.0, (NUM_WORKERS - 1) / NUM_WORKERS], LENGTH // 2).astype(np.float32)
    for number, (found, sent) in enumerate(
        zip(passes(session, fill="zero"), gradients(), strict=True)
    ):
        expected = spread_of(sent, number) * share
        SPREAD.inverse(expected, number)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_what_is_fed_back_has_the_signs_of_the_next_sum() -> None:
    session = LossySession(StragglerPolicy(tolerance=TENTH))
    session.bitmaps = LACKING
    passes(session, fill="feedback")
    kept = np.zeros(LENGTH, np.float32)
    for given, sent in zip(session.given, gradients(), strict=True):
        expected = spread_of(sent, 0) + kept
        np.testing.assert_allclose(given, expected, rtol=0, atol=1e-5)
        kept = np.where(np.arange(LENGTH) < LENGTH // 2, np.float32(0), expected)


def test_half_precision_is_spread_as_float32() -> None:
    session = LossySession(StragglerPolicy(tolerance=TENTH))
    parameter = torch.nn.Parameter(torch.zeros(LENGTH, dtype=torch.float16))
    sent = torch.from_numpy(gradients()[0]).half()
    with state_of(session, dispersal=SPREAD) as state:
        found = run_bucket(state, 0, [parameter], sent)
    np.testing.assert_allclose(found, sent.numpy(), rtol=1e-3, atol=1e-3)
    assert session.given[0] == spread_of(sent.numpy(), 0).tolist()


def test_float64_is_refused() -> None:
    session = LossySession(StragglerPolicy(tolerance=TENTH))
    parameter = torch.nn.Parameter(torch.zeros(LENGTH, dtype=torch.float64))
    with (
        state_of(session, dispersal=SPREAD) as state,
        pytest.raises(Exception, match="the transform is of float32"),
    ):
        run_bucket(state, 0, [parameter], torch.zeros(LENGTH, dtype=torch.float64))
    assert not session.given


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (lambda: LossySession(WAIT_FOR_ALL), {}),
        (lambda: LossySession(StragglerPolicy(tolerance=TENTH)), {"precision": "exact"}),
    ],
)
def test_sums_that_lack_nothing_are_not_spread(
    make: Callable[[], LossySession], options: dict[str, Any]
) -> None:
    with pytest.raises(ConfigurationError, match="a dispersal of sums that lack nothing"):
        state_of(make(), dispersal=SPREAD, **options)
