# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The file of measured tolerances: what is stored is loaded, and what is wrong is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from switchfold.hostlib import ConfigurationError, LossTolerance, ToleranceFileError, load_tolerance
from switchfold.hostlib.config import tolerance_setting
from switchfold.hostlib.tolerance_file import FORMAT, VERSION, read_models, store_model

ENTRY = {"loss": 0.1, "worker_floor": None, "x1": 0.1, "rates": [{"rate": 0.0}]}


def test_stored_models_are_loaded_by_name(tmp_path: Path) -> None:
    path = tmp_path / "tolerance.json"
    store_model(path, "mlp", ENTRY)
    store_model(path, "train:task", {"loss": 0, "worker_floor": 0.9})
    assert load_tolerance(path, "mlp") == LossTolerance(loss=0.1)
    assert load_tolerance(str(path), "train:task") == LossTolerance(loss=0, worker_floor=0.9)
    assert read_models(path)["mlp"] == ENTRY
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_model_takes_the_place_of_its_earlier_entry(tmp_path: Path) -> None:
    path = tmp_path / "tolerance.json"
    for loss in (0.1, 0.2):
        store_model(path, "mlp", {**ENTRY, "loss": loss})
    assert load_tolerance(path, "mlp") == LossTolerance(loss=0.2)


def test_an_unknown_model_is_told_the_known_ones(tmp_path: Path) -> None:
    path = tmp_path / "tolerance.json"
    store_model(path, "mlp", ENTRY)
    with pytest.raises(ToleranceFileError, match=r"no model 'cnn' \(known: mlp\); measure it"):
        load_tolerance(path, "cnn")


def whole(**models: Any) -> str:
    return json.dumps({"format": FORMAT, "version": VERSION, "models": models})


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (None, r"tolerance.json is missing; `switchfold tolerance --out FILE` writes"),
        ("{", r"cannot read the tolerances in .*tolerance.json"),
        ("[]", "is not a file of tolerances"),
        (json.dumps({"models": {}}), "is not a file of tolerances"),
        (json.dumps({"format": FORMAT, "version": 99}), "has version 99 .* reads version 1"),
        (json.dumps({"format": FORMAT, "version": VERSION}), "models is no object"),
        (whole(mlp=0.1), "model 'mlp' in .* is no object"),
        (whole(mlp={}), r"model 'mlp' in .*: loss is None and worker_floor is None"),
        (whole(mlp={"loss": "0.1"}), "loss is '0.1'"),
        (whole(mlp={"loss": True}), "loss is True"),
        (whole(mlp={"loss": 1.5}), "model 'mlp' in .*: loss is 1.5; it is a share"),
        (whole(mlp={"loss": 0.1, "worker_floor": -1}), "worker_floor is -1"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str | None, wrong: str) -> None:
    path = tmp_path / "tolerance.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ToleranceFileError, match=wrong):
        load_tolerance(path, "mlp")


def test_what_is_no_such_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "package.json"
    path.write_text("{}")
    with pytest.raises(ToleranceFileError, match="is not a file of tolerances"):
        store_model(path, "mlp", ENTRY)
    assert path.read_text() == "{}"


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "tolerance.json"
    with pytest.raises(ToleranceFileError, match=r"cannot write .*; give another --out"):
        store_model(path, "mlp", ENTRY)


def test_a_wrong_tolerance_is_not_stored(tmp_path: Path) -> None:
    path = tmp_path / "tolerance.json"
    with pytest.raises(ToleranceFileError, match="model 'mlp': loss is None"):
        store_model(path, "mlp", {})
    assert not path.exists()


def test_process_groups_load_it_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tolerance.json"
    store_model(path, "train:task", ENTRY)
    monkeypatch.setenv("SWITCHFOLD_TOLERANCE", f"{path}:train:task")
    assert tolerance_setting() == LossTolerance(loss=0.1)
    monkeypatch.setenv("SWITCHFOLD_TOLERANCE", f"{path}:cnn")
    with pytest.raises(ConfigurationError, match=r"SWITCHFOLD_TOLERANCE is .*no model 'cnn'"):
        tolerance_setting()
