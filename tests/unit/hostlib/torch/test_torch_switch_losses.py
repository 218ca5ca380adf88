# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""Layers of hybrid training whose gradients may lack contributions."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from lossy_sums import LossySession
from torch_ranks import load_torch, require_torch

require_torch()
torch, _ = load_torch()

from hybrid_ranks import WAIT_S, HybridRanks, batches, parameters_of, seeded, three_layers, train  # noqa: E402
from switchfold.hostlib.errors import ConfigurationError  # noqa: E402
from switchfold.hostlib.loss_fill import FillPolicy  # noqa: E402
from switchfold.hostlib.loss_tolerance import NO_LOSS, LossTolerance  # noqa: E402
from switchfold.hostlib.straggler import WAIT_FOR_ALL, StragglerPolicy  # noqa: E402
from switchfold.hostlib.torch.hybrid.switch_losses import SwitchLosses  # noqa: E402
from switchfold.hostlib.torch.hybrid.trained_layers import trained_layers  # noqa: E402
from switchfold.hostlib.torch.syncers.scheme_channels import SwitchChannel  # noqa: E402

TWENTIETH, TENTH = LossTolerance(loss=0.05), LossTolerance(loss=0.1)
TOLERANT = StragglerPolicy(tolerance=TENTH)
LACKS_0 = 0b1110
PARTS = {"0": ["0.weight", "0.bias"], "2": ["2.weight", "2.bias"], "4": ["4.weight", "4.bias"]}
"""Parameters of the layers."""


def losses_of(
    session: LossySession, choice: Any = None, fill: FillPolicy = FillPolicy.MEAN
) -> SwitchLosses:
    losses = SwitchLosses(trained_layers(three_layers()), choice, fill, cast("Any", session))
    for layer, names in PARTS.items():
        losses.add(names[0], layer, names)
    return losses


def tolerances_of(losses: SwitchLosses) -> list[LossTolerance | None]:
    return [losses.bounded(names[0]).tolerance for names in PARTS.values()]


def test_a_layer_takes_the_strictest_tolerance_of_its_parameters() -> None:
    choice = {"0": TENTH, "2": TENTH, "2.bias": TWENTIETH, "4.weight": TENTH}
    assert tolerances_of(losses_of(LossySession(TOLERANT), choice)) == [
        LossTolerance(loss=0.1, worker_floor=0.8),
        LossTolerance(loss=0.05, worker_floor=0.9),
        NO_LOSS,
    ]


@pytest.mark.parametrize(
    ("policy", "choice", "expected"),
    [(TOLERANT, None, TENTH), (TOLERANT, TWENTIETH, TWENTIETH), (WAIT_FOR_ALL, None, None)],
)
def test_one_tolerance_is_that_of_all_and_by_default_it_is_the_jobs(
    policy: StragglerPolicy, choice: Any, expected: LossTolerance | None
) -> None:
    assert tolerances_of(losses_of(LossySession(policy), choice)) == [expected] * 3


@pytest.mark.parametrize(
    ("policy", "choice", "text"),
    [
        (WAIT_FOR_ALL, TENTH, "no session whose job has one"),
        (TOLERANT, 0.1, r"tolerance is 0\.1; give a LossTolerance, or a mapping"),
        (TOLERANT, {"5": TENTH}, "given for '5', but the model has no such layer"),
        (TOLERANT, {"2": 0.1}, r"the tolerance of '2' is 0\.1; give a LossTolerance"),
    ],
)
def test_what_cannot_work_is_refused(policy: StragglerPolicy, choice: Any, text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        losses_of(LossySession(policy), choice)


def test_channel_fills_gaps_and_tells_of_them() -> None:
    session = LossySession(TOLERANT)
    session.bitmaps = [LACKS_0]
    losses = losses_of(session, {"2": TENTH}, FillPolicy.FEEDBACK)
    channel = SwitchChannel(cast("Any", session), WAIT_S, losses)
    found: list[list[float]] = []
    for number in range(2):
        reception = channel.send("2.weight", np.full(3, 8, np.float32), number)
        reception.wait(WAIT_S)
        mean = reception.mean()
        found.append(mean.values.tolist())
        assert mean.num_contributors == 3
    assert session.given == [[8.0] * 3, [16.0] * 3]
    assert found == [[6.0] * 3, [12.0] * 3]
    assert {layer: each.missing for layer, each in losses.deliveries.items()} == {
        "2": {0: ((0, 3),)}
    }
    losses.forget()
    assert not losses.deliveries


def test_flags_of_used_parameters_lack_nothing() -> None:
    for policy, expected in ((TOLERANT, NO_LOSS), (WAIT_FOR_ALL, None)):
        session = LossySession(policy)
        losses = losses_of(session)
        channel = SwitchChannel(cast("Any", session), WAIT_S, losses)
        channel.poll(np.ones(3, np.int32), 0).wait(WAIT_S)
        assert session.tolerances == [expected]


def test_ranks_train_by_all_schemes_in_a_job_that_tolerates_loss() -> None:
    """Such a job leaves nobody out, so servers wait for all, and factors are allowed."""
    ranks = HybridRanks(2, straggler=TOLERANT)
    inputs = batches(3, 4, 12)

    def rank_main(rank: int) -> tuple[Any, Any]:
        module = seeded(three_layers, 1)
        scheme = {"0": "ina", "2": "ps", "4": "sfb"}
        options: dict[str, Any] = {"tolerance": {"0": TENTH}, "fill": "previous"}
        with ranks.wrap(rank, module, scheme=scheme, **options) as model:
            train(model, inputs, model.parameters())
            return parameters_of(module), {n: d.coverage for n, d in model.deliveries.items()}

    found = ranks.run(rank_main)
    assert torch.equal(found[0][0], found[1][0])
    assert [deliveries for _, deliveries in found] == [{"0": 1.0}] * 2
    ranks.close()
