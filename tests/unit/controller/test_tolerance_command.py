# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold tolerance`: wrong use is refused before anything is started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from switchfold.bmv2_topos.network import namespaces
from switchfold.controller.__main__ import run
from switchfold.controller.cli.tolerance import command
from switchfold.controller.cli.tolerance.command import BUILT_IN


@pytest.fixture(autouse=True)
def no_rig(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> None:
        pytest.fail("a testbed was started")

    monkeypatch.setattr(command, "ToleranceRig", refuse)
    monkeypatch.setattr(command, "has_torch", lambda: True)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ([], 2, "give --model (mf-digits, "),
        (["--model", "vgg"], 2, "'vgg' is not one of 'mf-digits'"),
        (["--script", "train"], 2, "--script 'train' is not MODULE:FUNCTION"),
        (["--script", "train.py:task:x"], 2, "is not MODULE:FUNCTION"),
        (["--model", "mf-digits", "--rates", "0.1,x"], 2, "'0.1,x' is no list of shares"),
        (["--model", "mf-digits", "--rates", "0.1,1"], 2, "1 is no share of contributions"),
        (["--model", "mf-digits", "--rates", "nan"], 2, "nan is no share of contributions"),
        (["--model", "mf-digits", "--rates", "0"], 2, "has no rate above 0"),
        (["--model", "mf-digits", "--seeds", "0"], 2, "--seeds"),
        (["--model", "mf-digits", "--workers", "1"], 2, "--workers"),
        (["--model", "mf-digits", "--plot", "x.txt"], 2, "--plot x.txt does not end in .svg"),
        (["--model", "mf-digits", "--out", "no/x.json"], 1, "no is no folder"),
        (["--model", "mf-digits", "--out", "other.json"], 1, "is not a file of tolerances"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_wrong_use_is_refused(
    words: list[str],
    status: int,
    said: str,
    *,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("other.json").write_text("{}")
    assert run(["tolerance", *words]) == status
    assert said in " ".join(capsys.readouterr().err.split())


def test_missing_torch_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "has_torch", lambda: False)
    assert run(["tolerance", "--model", "mf-digits"]) == 1
    assert "needs PyTorch, which is missing" in capsys.readouterr().err


def test_users_without_root_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "has_torch", lambda: True)
    monkeypatch.setattr(namespaces.os, "geteuid", lambda: 1000)
    assert run(["tolerance", "--model", "mf-digits"]) == 1
    assert "root" in capsys.readouterr().err


def test_rates_rise_from_zero() -> None:
    parameters: Any = None
    assert command.read_rates(parameters, parameters, "0.2,0.1,0.1") == [0.0, 0.1, 0.2]


def test_help_lists_all_models(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tolerance", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert all(name in text for name in BUILT_IN)
