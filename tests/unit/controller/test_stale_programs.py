# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Whoever runs a compiled program says that it is not that of its P4 sources."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from switchfold import p4src
from switchfold.bmv2_topos import Testbed, single_switch
from switchfold.bmv2_topos.errors import TestbedError
from switchfold.bmv2_topos.processes import switch_program
from switchfold.bmv2_topos.processes.own_program import OwnProgram
from switchfold.controller.cli.doctor import Status, machine
from switchfold.controller.errors import ProgramMissingError
from switchfold.controller.switches import program
from switchfold.p4src.own_program import program_files_in

OLD = "build/x holds an old program: it was not compiled from what is now in a.p4; run 'make p4'"


class NoRecordError(TestbedError):
    """Ends a testbed's start before anything is made."""


def refuse(_: Testbed) -> None:
    raise NoRecordError


def test_testbed_says_it_before_it_makes_anything(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(
        switch_program, "stale_variant", lambda variant: asked.append(variant) or OLD
    )
    monkeypatch.setattr(Testbed, "_make_record", refuse)
    with pytest.raises(NoRecordError):
        Testbed(single_switch(1), mode="udp", variant="narrow").up()
    assert asked == ["narrow"]
    assert OLD in caplog.text


def test_testbed_compares_a_program_of_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(p4src.artefact_dir("narrow"), tmp_path / "mine")
    own = OwnProgram(files=program_files_in(tmp_path / "mine"))
    assert own.is_aggregation()
    monkeypatch.setattr(Testbed, "_make_record", refuse)
    own.files.json.write_bytes(own.files.json.read_bytes() + b"\n")
    with pytest.raises(NoRecordError):
        Testbed(single_switch(1), mode="udp", program=own).up()
    assert "holds an old program" in caplog.text
    assert own.files.json.name in caplog.text


def test_controller_says_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    program.load_program("narrow")
    assert not caplog.text
    monkeypatch.setattr(program, "stale_variant", lambda _: OLD)
    program.load_program("narrow")
    assert OLD in caplog.text


def test_controller_takes_a_program_of_any_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ours = p4src.artefacts("narrow")
    shutil.copy(ours.json, tmp_path / "mine.json")
    shutil.copy(ours.p4info, tmp_path / "mine.p4info.txtpb")
    assert program.load_program("narrow", tmp_path).values_per_packet == 32
    assert not caplog.text, "without manifest there is nothing to compare"
    (tmp_path / "mine.json").unlink()
    with pytest.raises(ProgramMissingError, match="switchfold p4 compile"):
        program.load_program("narrow", tmp_path)


def test_doctor_fails_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.check_artefacts().status is Status.OK
    monkeypatch.setattr(machine, "stale_variant", lambda variant: OLD if variant == "wide" else "")
    check = machine.check_artefacts()
    assert check.status is Status.FAIL
    assert check.text == OLD
    assert "docker compose run --rm p4c" in check.remedy
