# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportPrivateUsage=false
"""A session that says what its sums lack, and DDP's hook over it, without a network."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final, cast

import numpy as np
import pytest

from lossy_sums import delivery_of
from switchfold.hostlib.future import AllreduceFuture
from switchfold.hostlib.loss_tolerance import LossTolerance
from switchfold.hostlib.straggler import StragglerPolicy
from torch_ranks import load_torch, require_torch

require_torch()
torch, _ = load_torch()

from switchfold.hostlib.torch.ddp import hooks as ddp_hooks  # noqa: E402

NUM_RANKS: Final = 4
TENTH: Final = LossTolerance(loss=0.1)
_ALL: Final = 0b1111


class LossySession:
    """Of four workers that all give the same; tests say what is in each chunk of four values."""

    def __init__(self, straggler: StragglerPolicy) -> None:
        self.view = SimpleNamespace(num_workers=NUM_RANKS, worker_id=0, straggler=straggler)
        self.bitmaps: list[int] = []
        """Of the next sums; empty: all are in them."""
        self.members = range(NUM_RANKS)
        self.tolerances: list[LossTolerance | None] = []
        self.given: list[list[float]] = []

    def allreduce(self, array: Any, op: str = "sum", **named: Any) -> AllreduceFuture:
        future = AllreduceFuture(len(self.given) + 1)
        self.tolerances.append(named["tolerance"])
        self.given.append(array.tolist())
        num_chunks = -(-len(array) // 4)
        bitmaps = (self.bitmaps or [_ALL] * num_chunks)[:num_chunks]
        delivery = delivery_of(bitmaps, len(array), num_workers=len(self.members))
        counts = np.array([b.bit_count() for b in bitmaps]).repeat(4)[: len(array)]
        result = array.copy() if op == "mean" else (array * counts).astype(array.dtype)
        is_exact = named["precision"] == "exact" and array.dtype.kind == "f"
        told = None if is_exact else delivery
        future.set_result(result, int(counts.min()), tuple(self.members), told)
        return future


def be_rank_0(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be rank 0 of a group over Gloo."""
    for name, answer in {
        "get_rank": 0,
        "get_world_size": NUM_RANKS,
        "get_backend": "gloo",
    }.items():

        def ask(_group: object, answer: object = answer) -> object:
            return answer

        monkeypatch.setattr(ddp_hooks.dist, name, ask)


def state_of(session: LossySession, **options: Any) -> ddp_hooks.SwitchfoldState:
    return ddp_hooks.SwitchfoldState(session=cast("Any", session), job="lossy", **options)


def run_bucket(
    state: ddp_hooks.SwitchfoldState, index: int, parameters: list[Any], value: Any = 8.0
) -> list[float]:
    """Let the hook average a bucket of these parameters; `value`: of all gradients, or a tensor."""
    if isinstance(value, torch.Tensor):
        buffer = value.clone()
    else:
        buffer = torch.full((sum(p.numel() for p in parameters),), value)
    bucket = SimpleNamespace(
        index=lambda: index, parameters=lambda: list(parameters), buffer=lambda: buffer
    )
    hook: Callable[..., Any] = ddp_hooks.allreduce_hook
    return hook(state, cast("Any", bucket)).wait().tolist()
