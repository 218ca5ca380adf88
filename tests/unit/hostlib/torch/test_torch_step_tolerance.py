# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""Tolerances that follow training, by DDP's hook and by hybrid training: ranks switch at once."""

from __future__ import annotations

from typing import Any

import pytest

from lossy_session import be_rank_0, run_bucket, state_of
from lossy_sums import LossySession
from switchfold.hostlib.errors import ConfigurationError
from switchfold.hostlib.loss_tolerance import NO_LOSS, LossTolerance
from switchfold.hostlib.step_tolerance import CriticalRegimes, LossGuard
from switchfold.hostlib.straggler import WAIT_FOR_ALL, StragglerPolicy
from torch_ranks import load_torch, require_torch

require_torch()
torch, _ = load_torch()

from hybrid_ranks import HybridRanks, parameters_of, seeded, three_layers  # noqa: E402
from switchfold.hostlib.summation.hadamard import RandomizedHadamard  # noqa: E402

TENTH = LossTolerance(loss=0.1, worker_floor=0.8)
LOW = LossTolerance(loss=0.01, worker_floor=0.98)
TOLERANT = StragglerPolicy(tolerance=TENTH)
CRITICAL = CriticalRegimes(low=LOW, interval=1)
LACKING = [0b1110, 0b1110, 0b1111, 0b1111, 0b1111]
JUMP, JUMPS = [1.0, 1.0, 1.0, 3.0, 3.0, 3.0], [LOW, LOW, TENTH, TENTH, LOW, TENTH]
"""Norms of steps, and what each step may then lack."""


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> None:
    be_rank_0(monkeypatch)


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("dispersal", [None, RandomizedHadamard(3)], ids=["plain", "spread"])
def test_hook_switches_in_the_step_after_a_jump(dispersal: RandomizedHadamard | None) -> None:
    """The norm is that of both buckets; a bucket that lacks nothing does so in any regime."""
    session = LossySession(TOLERANT)
    wide, whole = (torch.nn.Parameter(torch.zeros(1024)) for _ in range(2))
    options = {"tolerance": {wide: TENTH}, "critical": CRITICAL, "dispersal": dispersal}
    with state_of(session, **options) as state:
        for norm in JUMP:
            for index, parameter in enumerate((wide, whole)):
                run_bucket(state, index, [parameter], norm)
            assert state.deliveries[0].tolerance == session.tolerances[-2]
    assert session.tolerances[::2] == JUMPS
    of_whole = {(each.loss, each.least_of_worker) for each in session.tolerances[1::2] if each}
    assert of_whole == {(NO_LOSS.loss, 1)}


@pytest.mark.usefixtures("group")
def test_hook_lets_buckets_lack_nothing_while_the_guard_acts() -> None:
    """Each bucket could lack 2 of 20 contributions, and does so in the second and third pass."""
    session = LossySession(TOLERANT)
    parameters = [torch.nn.Parameter(torch.zeros(20)) for _ in range(2)]
    guard = LossGuard(window=2, reliable_steps=2, least_coverage=0.95)
    skipped: list[bool] = []
    with state_of(session, guard=guard) as state:
        for bitmaps in ([], LACKING, LACKING, [], [], []):
            session.bitmaps = bitmaps
            for index, parameter in enumerate(parameters):
                run_bucket(state, index, [parameter])
            skipped.append(state.step_tolerance.should_skip)
        assert state.step_tolerance.num_guarded == 1
        assert state.step_tolerance.num_skipped == 2
    assert session.tolerances == [TENTH] * 6 + [NO_LOSS] * 4 + [TENTH] * 2
    assert skipped == [False, True, True, False, False, False]


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize(
    ("policy", "text"), [(WAIT_FOR_ALL, "lack nothing in any case"), (TOLERANT, "must be less")]
)
def test_hook_refuses_regimes_that_change_nothing(policy: StragglerPolicy, text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        state_of(LossySession(policy), critical=CriticalRegimes(low=TENTH))


def test_hybrid_ranks_switch_in_the_same_iteration() -> None:
    """Over a switch, where ranks of different tolerances would wait for each other."""
    ranks = HybridRanks(2, straggler=TOLERANT)

    def rank_main(rank: int) -> Any:
        module = seeded(three_layers, 1)
        said: list[dict[str, LossTolerance | None]] = []
        options: dict[str, Any] = {"critical": CRITICAL, "guard": LossGuard(window=1)}
        with ranks.wrap(rank, module, scheme="ina", **options) as model:
            for norm in JUMP:
                model.zero_grad()
                (norm * model(torch.ones(4, 12)).sum()).backward()
                said.append({name: each.tolerance for name, each in model.deliveries.items()})
            assert model.step_tolerance.num_steps == len(JUMP)
            assert model.step_tolerance.num_guarded == 0, "nothing is lost"
        return parameters_of(module).tolist(), said

    found = ranks.run(rank_main)
    ranks.close()
    assert found[0] == found[1]
    _, said = found[0]
    assert said == [dict.fromkeys(("0", "2", "4"), each) for each in JUMPS]


def test_hybrid_ranks_that_ask_for_other_regimes_are_refused() -> None:
    ranks = HybridRanks(2, straggler=TOLERANT)

    def rank_main(rank: int) -> str:
        critical = CriticalRegimes(low=LOW, interval=rank + 1)
        with pytest.raises(ConfigurationError) as caught:
            ranks.wrap(rank, seeded(three_layers, 1), scheme="ina", critical=critical)
        return str(caught.value)

    found = ranks.run(rank_main)
    ranks.close()
    assert len(set(found)) == 1
    assert "rank 1 and rank 0 differ in option critical=CriticalRegimes(" in found[0]
