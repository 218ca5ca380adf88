# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""docs/pytorch.md on lost packets: its recipe runs, with Adam, and its table has all policies."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from torch_ranks import load_torch, require_torch

require_torch()
torch, _ = load_torch()

from lossy_sums import delivery_of  # noqa: E402
from switchfold.hostlib import torch as torch_edge  # noqa: E402
from switchfold.hostlib.loss_fill import FillPolicy  # noqa: E402
from switchfold.hostlib.loss_tolerance import NO_LOSS, LossTolerance, strictest  # noqa: E402

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "pytorch.md").read_text("utf-8")
LACKING = (0b1011, 0b1111)


def recipe() -> str:
    """Return the block of Python behind its mark."""
    return PAGE.partition("<!-- recipe:")[2].partition("```python\n")[2].partition("```")[0]


class Model(torch.nn.Module):
    """A model that takes a hook as a DDP model does, with all parameters in one bucket."""

    def __init__(self) -> None:
        super().__init__()
        self.module = torch.nn.Module()
        self.module.body, self.module.head = torch.nn.Linear(2, 3), torch.nn.Linear(3, 1)

    def forward(self, inputs: Any) -> Any:
        return self.module.head(self.module.body(inputs))

    def register_comm_hook(self, state: Any, hook: Any) -> None:
        assert hook is torch_edge.allreduce_hook
        for parameter in self.parameters():
            parameter.register_post_accumulate_grad_hook(state.note)


class State:
    """Says that a sum lacked something; a test may look at what it was made with."""

    made: list[State]

    def __init__(self, *, tolerance: Any) -> None:
        self.tolerance = tolerance
        self.deliveries: dict[int, Any] = {}
        State.made.append(self)

    def note(self, _: Any) -> None:
        self.deliveries = {0: delivery_of(LACKING, 8)}

    def __enter__(self) -> State:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def test_recipe_trains_and_tells_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    State.made = []
    monkeypatch.setattr(torch_edge, "SwitchfoldState", State, raising=False)
    model = Model()
    before = [parameter.clone() for parameter in model.parameters()]
    logged: list[tuple[Any, ...]] = []
    names = {
        "model": model,
        "optimizer": torch.optim.Adam(model.parameters()),
        "criterion": torch.nn.MSELoss(),
        "batches": [(torch.ones(4, 2), torch.ones(4, 1))] * 2,
        "log": lambda *what: logged.append(what),
    }
    exec(compile(recipe(), "docs/pytorch.md", "exec"), names)
    after = model.parameters()
    assert not any(torch.equal(old, new) for old, new in zip(before, after, strict=True))
    assert logged == [(0, 7 / 8, {0: 1, 1: 1, 2: 1 / 2, 3: 1}, {2: ((0, 4),)})] * 2
    (state,) = State.made
    tolerances = [state.tolerance.get(parameter) for parameter in model.parameters()]
    assert tolerances == [*[LossTolerance(loss=0.05, worker_floor=0.8)] * 2, None, None]
    assert strictest(tolerances) == NO_LOSS, "as the page says of a bucket of them all"


def test_table_of_fills_has_all_policies() -> None:
    table = PAGE.partition("#### What fills the gaps")[2].partition("\n- ")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [each.value for each in FillPolicy]
