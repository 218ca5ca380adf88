# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportPrivateUsage=false
"""DDP's hook over a session that says what its sums lack, without a network."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lossy_sums import NUM_WORKERS, LossySession
from torch_ranks import load_torch, require_torch

require_torch()
torch, _ = load_torch()

from switchfold.hostlib.torch.ddp import hooks as ddp_hooks  # noqa: E402


def be_rank_0(monkeypatch: pytest.MonkeyPatch, num_ranks: int = NUM_WORKERS) -> None:
    """Be rank 0 of a group over Gloo, whose other ranks say what this one does."""
    for name, answer in {
        "get_rank": 0,
        "get_world_size": num_ranks,
        "get_backend": "gloo",
    }.items():

        def ask(_group: object, answer: object = answer) -> object:
            return answer

        monkeypatch.setattr(ddp_hooks.dist, name, ask)

    def gather(said: list[Any], own: Any, **_: Any) -> None:
        said[:] = [own] * len(said)

    monkeypatch.setattr(ddp_hooks.dist, "all_gather_object", gather)


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
