# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of the command line: nothing is cut off, zeros take one line."""

from __future__ import annotations

import pytest

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
