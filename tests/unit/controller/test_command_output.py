# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of the command line: nothing is cut off, zeros take one line."""

from __future__ import annotations

import contextlib
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from switchfold.controller.cli.demo.proofs import Proof, print_proofs
from switchfold.controller.cli.doctor.check import Check, Status
from switchfold.controller.cli.doctor_command import print_checks
from switchfold.controller.cli.output import print_counts, print_table


def test_no_word_is_cut_at_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "80")
    row = ("train", "waiting", "switch", "s1, s2, s3, s4, s5", "7 of 8", 128, "30 min", "waits")
    heads = ("job", "state", "path", "switches", "workers", "slots", "age", "note")
    print_table("Jobs", heads, [row])
    print_table("Switches", ("switch", "address"), [("s1", "unix:/" + "a" * 90)])
    out = capsys.readouterr().out
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 80
    assert all(word in out for cell in row for word in str(cell).split())
    assert all(head in out for head in heads)
    assert out.count("a") >= 90


def test_counters_that_are_zero_take_one_line(capsys: pytest.CaptureFixture[str]):
    print_counts("Frames", ("packets",), [("absorbed", (7,)), ("stale", (0,)), ("none", (0,))])
    out = capsys.readouterr().out
    assert "absorbed" in out
    assert "stale" not in out
    assert "the other 2 outcomes are zero" in out
    print_counts("Frames", ("packets",), [("stale", (0,))])
    assert capsys.readouterr().out == "Frames: all zero\n"


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[list[str]]]:
    """Return heads and rows: few columns or many, words short or longer than the terminal."""
    number = draw(st.integers(1, 14))
    word = st.text("abcdefgh-", min_size=1, max_size=100).filter(lambda text: text.strip("-"))
    texts = st.lists(word, max_size=4).map(" ".join)
    heads = draw(
        st.lists(st.text("xyz", min_size=1, max_size=12), min_size=number, max_size=number)
    )
    return heads, draw(st.lists(st.lists(texts, min_size=number, max_size=number), max_size=3))


@settings(max_examples=60)
@given(tables())
def test_any_table_fits_and_keeps_every_letter(table: tuple[list[str], list[list[str]]]) -> None:
    heads, rows = table
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setenv("COLUMNS", "80")
        print_table("Jobs", heads, rows)
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    for letter in "abcdefgh":
        wanted = sum(cell.count(letter) for row in rows for cell in row)
        assert text.count(letter) - "Jobs".count(letter) == wanted


def test_columns_that_would_be_too_narrow_become_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    heads = ("job", "state", "path", "switches", "workers", "slots", "age", "note")
    long = ["a" * 63, "waiting", "switch", "b" * 63 + ", " + "c" * 63, "7 of 8", 128, "30 min", ""]
    print_table("Jobs of the controller", heads, [long, ["short", *long[1:]]])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Jobs of the controller"
    assert lines[2] == "  job       " + "a" * 63
    assert lines[5:7] == ["  switches  " + "b" * 63 + ",", "            " + "c" * 63]
    assert lines[12] == "  job       short"


@st.composite
def verdicts(draw: st.DrawFn) -> list[Check]:
    """Return checks whose words are short or longer than the terminal; not of letters of heads."""
    word = st.text("bceghj-", min_size=1, max_size=120).filter(lambda text: text.strip("-"))
    texts = st.lists(word, max_size=12).map(" ".join)
    made = st.builds(Check, name=word, status=st.sampled_from(Status), text=texts, remedy=texts)
    return draw(st.lists(made, min_size=1, max_size=4))


@settings(max_examples=60)
@given(verdicts(), st.sampled_from((20, 40, 80, 132)))
def test_any_verdicts_fit_and_keep_every_letter(checks: list[Check], columns: int) -> None:
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setenv("COLUMNS", str(columns))
        print_checks(checks)
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= columns
    assert "…" not in text
    for letter in "bceghj":
        cells = (cell for check in checks for cell in (check.name, check.text, check.remedy))
        assert text.count(letter) == sum(cell.count(letter) for cell in cells)


def test_words_of_verdicts_stay_whole_where_they_fit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    address = "unix:/run/switchfold/p14045-3f41f830/controller.sock"
    remedy = "run 'softswitch build /home/someone/workspaces/switchfold/wide.json' once"
    checks = [
        Check("controller", Status.OK, f"{address} answers"),
        Check("switch s1 program", Status.WARN, "must be compiled first", remedy),
    ]
    print_checks(checks)
    out = capsys.readouterr().out
    words = " ".join((*(check.text for check in checks), remedy)).split()
    assert [word for word in words if word not in out] == []
    assert out.splitlines()[0].rstrip() == f"ok    controller         {address}"
    assert "warn  switch s1 program  must be" in out
    print_checks([Check("switch s1 program", Status.FAIL, "b" * 80)])
    assert f"fail  switch s1 program  {'b' * 55}\n" in capsys.readouterr().out


@pytest.mark.parametrize("columns", [24, 80])
def test_proofs_of_demos_fit_and_keep_every_letter(columns: int) -> None:
    out = io.StringIO()
    claim, measured = "b" * 100 + " c" * 20, "h" * 40
    proof = Proof(claim=claim, is_proved=True, measured=measured)
    print_proofs([proof], Console(file=out, width=columns))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= columns
    assert [out.getvalue().count(letter) for letter in "bh"] == [100, 40]
