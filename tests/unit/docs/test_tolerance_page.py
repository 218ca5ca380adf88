# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""docs/tolerance.md: commands are accepted, code runs, and the table is what was measured."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest

from docs.build_tolerance import MEASURED, PAGE, PICTURE, table_of, write_table
from switchfold.controller.cli.tolerance.command import BUILT_IN, tolerance
from switchfold.hostlib import LossTolerance, load_tolerance
from switchfold.hostlib import torch as torch_edge
from switchfold.hostlib.tolerance_file import read_models, store_model
from torch_ranks import require_torch

TEXT = PAGE.read_text("utf-8")


def code(mark: str) -> str:
    """Return the block of Python behind its mark."""
    return TEXT.partition(f"<!-- {mark}:")[2].partition("```python\n")[2].partition("```")[0]


def test_commands_are_accepted() -> None:
    lines = re.findall(r"^switchfold tolerance (.*)$", TEXT, re.MULTILINE)
    lines += re.findall(r"^ +switchfold tolerance (.*)$", str(tolerance.help), re.MULTILINE)
    assert len(lines) == 5
    for line in lines:
        with click.Context(tolerance) as context:
            left = tolerance.parse_args(context, shlex.split(line, comments=True))
        assert not left
        assert context.params["models"] or context.params["scripts"]


def test_all_built_in_models_are_told() -> None:
    section = TEXT.partition("## Built-in models")[2].partition("\n## ")[0]
    assert tuple(re.findall(r"^\| `([\w-]+)` \|", section, re.MULTILINE)) == BUILT_IN


def test_recipe_loads_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_torch()
    monkeypatch.chdir(tmp_path)
    store_model(Path("tolerance.json"), "train:task", {"loss": 0.1})
    made: list[Any] = []

    class State:
        def __init__(self, *, tolerance: LossTolerance) -> None:
            made.append(tolerance)

        def __enter__(self) -> State:
            return self

        def __exit__(self, *_: object) -> None:
            made.append("closed")

    monkeypatch.setattr(torch_edge, "SwitchfoldState", State, raising=False)
    exec(compile(code("recipe"), "docs/tolerance.md", "exec"), {"train": made.append})
    assert made[0] == LossTolerance(loss=0.1)
    assert isinstance(made[1], State)


def test_script_makes_a_task_that_learns() -> None:
    require_torch()
    names: dict[str, Any] = {}
    exec(compile(code("script"), "docs/tolerance.md", "exec"), names)
    names["torch"].manual_seed(1)
    made = names["task"](1, 0, 4)
    before = made.metric(made.model)
    for _ in range(made.epochs):
        for inputs, targets in made.batches:
            made.optimizer.zero_grad()
            made.loss(made.model(inputs), targets).backward()
            made.optimizer.step()
    assert made.metric(made.model) > before + 0.1
    lengths = {len(list(names["task"](1, rank, 4).batches)) for rank in range(4)}
    assert len(lengths) == 1, "ranks with other numbers of steps"


def test_table_is_what_was_measured() -> None:
    models = read_models(MEASURED)
    assert set(models) <= set(BUILT_IN)
    assert write_table(TEXT, table_of(models)) == TEXT
    assert PICTURE.exists()
    for name, entry in models.items():
        assert load_tolerance(MEASURED, name).loss == entry["loss"]
