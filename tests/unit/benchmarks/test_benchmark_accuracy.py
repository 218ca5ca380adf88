# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmark of time to accuracy: its formula, its figures, its options and its failures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pytest

from benchmarks.transport import accuracy, job_time
from benchmarks.transport.conditions import parse_condition
from benchmarks.transport.job_time import Expected, TrainingParts, expected_of, figures_of
from switchfold.controller.cli.tolerance.errors import ToleranceRunError
from switchfold.controller.cli.tolerance.outcome import TrainingOutcome, judge
from switchfold.hostlib import ToleranceFileError
from switchfold.hostlib.tolerance_file import store_model

PARTS = TrainingParts(
    compute_s=0.5,
    steps=10,
    sums=(0.1, 0.2, 0.3),
    training=TrainingOutcome(
        rate=0.0,
        seed=1,
        metrics=(0.1, 0.5, 0.8, 0.9),
        missing=0.0,
        most_missing=0.0,
        dropped=0.05,
        epoch_seconds=(2.0, 3.0, 4.0),
    ),
)
EXPECTED = Expected(target=0.7, epochs=2.5)


def outcome(rate: float, seed: int) -> TrainingOutcome:
    return replace(PARTS.training, rate=rate, seed=seed, missing=rate / 2)


@pytest.fixture
def tolerances(tmp_path: Path) -> Path:
    """A file with one model, without loss and with a fifth tolerated."""
    found = judge("mlp-digits", [outcome(rate, seed) for rate in (0.0, 0.2) for seed in (1, 2)])
    store_model(tmp_path / "tolerance.json", "mlp-digits", found.entry(workers=4))
    return tmp_path / "tolerance.json"


def test_job_takes_its_epochs_of_computation_and_twice_the_network() -> None:
    assert job_time.job_time_s(3, 0.5, 2.0) == 3 * (0.5 + 4.0)
    assert job_time.job_time_s(0, 9.0, 9.0) == 0


def test_figures_are_those_of_trainings_and_of_the_sums_by_themselves() -> None:
    later = replace(PARTS.training, metrics=(0.1, 0.7, 0.8, 0.8), epoch_seconds=(1.0, 1.0, 1.0))
    found = figures_of([PARTS, replace(PARTS, compute_s=0.7, training=later)], EXPECTED)
    assert (found.accuracy_s, found.epochs) == ((2 + 3 + 1) / 2, 1.5)
    assert (found.metric, found.lost_share) == (pytest.approx(0.85), 0.05)
    assert (found.compute_s, found.epoch_s) == (pytest.approx(0.6), 2.0)
    # A sum has both directions: ten of 0.2 s are twice a network time of 1 s.
    assert found.formula_mean_s == pytest.approx(2.5 * (0.6 + 10 * 0.2))
    assert found.formula_p99_s == pytest.approx(2.5 * (0.6 + 10 * 0.3))


def test_target_that_a_seed_misses_has_no_time() -> None:
    missed = replace(PARTS.training, metrics=(0.1, 0.2, 0.3, 0.4))
    found = figures_of([PARTS, replace(PARTS, training=missed)], replace(EXPECTED, epochs=None))
    assert (found.accuracy_s, found.epochs, found.formula_mean_s) == (None, None, None)
    row = job_time.rows_of({"repair": found})["repair"]
    assert job_time.line_of("ours", row, EXPECTED).startswith("| ours | -, -, - | - | -, - |")


def test_line_begins_with_the_gain_over_selective_repair() -> None:
    slow = figures_of([PARTS], EXPECTED)
    fast = replace(slow, accuracy_s=2.5, formula_mean_s=1.0, formula_p99_s=2.0)
    rows = job_time.rows_of({"repair": slow, "tolerant": fast})
    assert rows["tolerant"]["gains"] == {
        "accuracy_s": 5.0 / 2.5,
        "formula_mean_s": slow.formula_mean_s,
        "formula_p99_s": pytest.approx((slow.formula_p99_s or 0) / 2),
    }
    line = job_time.line_of("ours", rows["tolerant"], EXPECTED)
    assert line.startswith("| ours | 2.00, 6.25, ")
    assert line.count(" | ") == job_time.HEADING.splitlines()[0].count(" | ")
    alone = job_time.rows_of({"ring": slow})
    assert set(alone["ring"]["gains"].values()) == {None}, "without repair there is no gain"


def test_expectations_are_those_of_the_contenders_tolerance(tolerances: Path) -> None:
    options = accuracy.parse_options(
        ["--models", "mlp-digits", "--tolerance", "0.2", "--tolerances", str(tolerances)]
    )
    by_name = options.expected["mlp-digits"]
    assert set(by_name) == {"repair", "tolerant", "ring", "gloo"}
    assert {each.epochs for each in by_name.values()} == {3.0}
    assert by_name["tolerant"].target == pytest.approx(0.1 + 0.95 * 0.8)


@pytest.mark.parametrize("entry", [{}, {"target": 0.5}, {"target": 0.5, "rates": [{"rate": 0}]}])
def test_entry_without_figures_is_refused(entry: dict[str, Any]) -> None:
    with pytest.raises(ToleranceFileError, match="the entry has no figures of trainings"):
        expected_of(entry, 0.1, "the entry")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tolerance", "0"], "a share above 0 and below 1"),
        (["--tolerance", "0.15"], "no trainings that tolerate 0.15, only 0, 0.2"),
        (["--models", "cnn-digits"], "no model 'cnn-digits'"),
        (["--models", "transformer"], "no model transformer; choose from mf-digits"),
        (["--contenders", "pigeon"], "no contender pigeon; choose from repair"),
        (["--conditions", "0.01:traffic"], "no other traffic"),
        (["--conditions", "much"], "neither a share of packets"),
        (["--seeds", "0"], "less than 1"),
        (["--timeout", "0"], "a time above 0"),
    ],
)
def test_wrong_options_are_explained(
    arguments: list[str], message: str, tolerances: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--models", "mlp-digits", "--tolerances", str(tolerances), *arguments]
    with pytest.raises(SystemExit) as stopped:
        accuracy.parse_options(words)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


class Rig:
    """A rig in which the training of one contender fails."""

    opened = 0
    closed = 0

    def __init__(self, rate_bits_per_s: int) -> None:
        assert rate_bits_per_s == 25_000_000

    def __enter__(self) -> Self:
        Rig.opened += 1
        return self

    def __exit__(self, *_: object) -> None:
        Rig.closed += 1

    def train(self, case: Any) -> TrainingParts:
        if case.contender.name == "ring":
            raise ToleranceRunError(f"{case}: rank 1: PeerLostError: gone")
        return replace(PARTS, training=outcome(case.contender.tolerance or 0.0, case.seed))


def test_rig_is_made_again_after_a_training_that_failed(
    tolerances: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(accuracy, "TrainingRig", Rig)
    monkeypatch.setattr(Rig, "opened", 0)
    monkeypatch.setattr(Rig, "closed", 0)
    where = ["--tolerances", str(tolerances), "--tolerance", "0.2", "--out", str(tolerances.parent)]
    options = accuracy.parse_options(
        ["--models", "mlp-digits", "--conditions", "0.05", "--seeds", "2", *where]
    )
    accuracy.measure_all(options, {"cpu": "none"})
    assert (Rig.opened, Rig.closed) == (2, 2)
    shown = capsys.readouterr().out
    where = "condition 0.05, mlp-digits, ring, seed 1"
    assert shown.count(f"failed: {where}: rank 1: PeerLostError: gone") == 1
    assert "| switches, 20 % tolerated | 1.00, 1.00, 1.00 | 9.0 |" in shown
    assert (tolerances.parent / "accuracy.json").stat().st_size > 1000


def test_seeds_of_a_contender_are_trained_in_turn(
    tolerances: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accuracy, "TrainingRig", Rig)
    chosen = ["--contenders", "repair,ring", "--tolerances", str(tolerances)]
    options = accuracy.parse_options(["--models", "mlp-digits", "--seeds", "3", *chosen])
    run = accuracy.AccuracyRun(options)
    found = run.train(parse_condition("0.01"), "mlp-digits")
    run.close()
    assert {name: len(each) for name, each in found.items()} == {"repair": 3, "ring": 0}
    assert list(run.failures) == ["condition 0.01, mlp-digits, ring, seed 1"]


def test_help_has_an_example_and_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        accuracy.parse_options(["--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    assert "switchfold bench accuracy --models" in shown
    assert "exit status: 0 when" in shown


def test_defaults_have_expectations() -> None:
    options = accuracy.parse_options([])
    assert list(options.expected) == accuracy.MODELS.split(",")
