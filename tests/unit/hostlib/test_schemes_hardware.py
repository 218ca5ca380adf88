# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Named hardware has sources, and files of calibrations are checked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from switchfold.hostlib.errors import CalibrationError, SchemeError
from switchfold.hostlib.schemes.calibration_file import (
    FIGURES,
    Calibration,
    MeasuredFigure,
    load_calibration,
    store_calibration,
)
from switchfold.hostlib.schemes.hardware import (
    HOSTS,
    SWITCHES,
    capacity_of,
    find_hosts,
    find_switch,
)

OF_A_SWITCH = ("switch_packet_s", "switch_round_s", "shared_chunk_s")


def calibration(*, has_switch: bool = True) -> Calibration:
    names = [name for name in FIGURES if has_switch or name not in OF_A_SWITCH]
    figures = {
        name: MeasuredFigure.of([1e-6 * place, 3e-6 * place, 2e-6 * place])
        for place, name in enumerate(names, 1)
    }
    return Calibration(
        machine={"cpu": "a processor", "cores": 2, "time": "today"}, links="veth", figures=figures
    )


@pytest.mark.parametrize("profile", [*HOSTS.values(), *SWITCHES.values()], ids=lambda p: p.name)
def test_each_profile_names_its_source_and_says_what_it_assumes(profile: Any) -> None:
    assert len(profile.source) > 10
    assert profile.name in profile.describe()
    assert profile.source in profile.describe()


def test_unknown_names_are_refused() -> None:
    with pytest.raises(SchemeError, match="no hosts 'fast'; write frame-by-frame, "):
        find_hosts("fast")
    with pytest.raises(SchemeError, match="no switch 'fast'; write softswitch, "):
        find_switch("fast")


def test_a_capacity_has_all_figures_of_hosts_and_switch() -> None:
    found = calibration()
    assert found.switch is not None
    capacity = capacity_of(found.hosts, found.switch, 3)
    medians = {name: figure.median for name, figure in found.figures.items()}
    least = {name: figure.least for name, figure in found.figures.items()}
    assert capacity.worker_chunk_s == medians["worker_chunk_s"]
    assert capacity.tcp_byte_s == medians["tcp_byte_s"]
    assert capacity.ring_step_s == least["ring_step_s"], "other work only adds to waits"
    assert capacity.switch_packet_s == medians["switch_packet_s"]
    assert capacity.switch_round_s == least["switch_round_s"]
    assert capacity.shared_chunk_s == medians["shared_chunk_s"]
    assert capacity.shared_tcp_byte_s == medians["shared_tcp_byte_s"]
    assert capacity.shared_cores == 3
    assert "measured today over veth: a processor, 2 cores" in found.hosts.describe()


def test_more_cores_than_workers_leave_no_figure_of_shared_ones() -> None:
    found = calibration()
    figures = {name: each for name, each in found.figures.items() if name[:7] != "shared_"}
    fewer = replace(found, figures=figures)
    assert fewer.switch is not None
    assert fewer.switch.shared_chunk_s == fewer.hosts.shared_tcp_byte_s == 0


def test_a_figure_has_its_spread() -> None:
    figure = MeasuredFigure.of([3.0, 1.0, 2.0])
    assert (figure.median, figure.least, figure.most, figure.count) == (2.0, 1.0, 3.0, 3)
    for wrong in ({"least": 2.5}, {"most": 1.0}, {"count": 0}, {"most": float("inf")}):
        with pytest.raises(CalibrationError, match="is no figure"):
            replace(figure, **wrong)


def test_a_file_keeps_a_calibration(tmp_path: Path) -> None:
    for has_switch in (True, False):
        path = tmp_path / "new" / "calibration.json"
        store_calibration(path, calibration(has_switch=has_switch))
        assert load_calibration(path) == calibration(has_switch=has_switch)
        assert (load_calibration(path).switch is not None) == has_switch
    assert [each.name for each in path.parent.iterdir()] == ["calibration.json"]


def broken(**changes: Any) -> str:
    return json.dumps({**calibration().as_dict(), **changes})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "is missing; `switchfold calibrate` writes such files"),
        ("{", "cannot read the calibration"),
        ("[" * 100_000, "cannot read the calibration"),
        ("[]", "is no calibration"),
        (broken(format="other"), "is no calibration"),
        (broken(version=2), "has version 2 of the file of a calibration"),
        (broken(machine=None), "has no machine, links or figures"),
        (broken(figures=[]), "has no machine, links or figures"),
        (broken(figures={}), "has no figure ring_step_s"),
        (
            broken(figures={**calibration().as_dict()["figures"], "tcp_byte_s": {"median": 1}}),
            "tcp_byte_s is .* and not median, least, most, count",
        ),
        (
            broken(
                figures={
                    **calibration().as_dict()["figures"],
                    "tcp_byte_s": {"median": 1, "least": 2, "most": 3, "count": 1},
                }
            ),
            "tcp_byte_s: MeasuredFigure.* is no figure",
        ),
    ],
)
def test_damaged_files_are_named(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "calibration.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(CalibrationError, match=message) as caught:
        load_calibration(path)
    assert str(path) in str(caught.value)


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CalibrationError, match=r"cannot write .*; give another"):
        store_calibration(tmp_path / "file" / "calibration.json", calibration())
