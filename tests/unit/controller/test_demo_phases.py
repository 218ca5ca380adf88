# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a demo says while nothing else is seen."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from switchfold.controller.cli.demo.progress import phase


def test_phase_is_a_line_before_and_a_line_after() -> None:
    out = io.StringIO()
    console = Console(file=out, width=40)
    with phase(console, "starting a switch and a controller in network namespaces"):
        console.print("in between")
    before, between, after = out.getvalue().splitlines()
    assert before == "starting a switch and a controller in network namespaces ..."
    assert between == "in between"
    text = "starting a switch and a controller in network namespaces"
    assert re.fullmatch(rf"{text}: \d+\.\d s", after)


def test_terminal_shows_the_time_so_far_and_keeps_the_last_line() -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, color_system=None)
    with phase(console, "compiling"):
        pass
    text = out.getvalue()
    assert re.search(r"compiling \.\.\. +0:00:0\d", text)
    assert re.fullmatch(r"compiling: \d+\.\d s", text.splitlines()[-1].rpartition("\x1b[2K")[2])


def test_failed_phase_does_not_say_that_it_is_over() -> None:
    out = io.StringIO()
    with pytest.raises(KeyError), phase(Console(file=out, width=80), "compiling"):
        raise KeyError("s1")
    assert out.getvalue() == "compiling ...\n"
