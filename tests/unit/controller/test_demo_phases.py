# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a demo says while nothing else is seen, and of packets that are still under way."""

from __future__ import annotations

import io
import re
from types import SimpleNamespace

import pytest
from rich.console import Console

from switchfold.controller.cli.demo import proofs
from switchfold.controller.cli.demo.progress import phase
from switchfold.hostlib.slots.wire import Outcome


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


@pytest.mark.parametrize(
    ("received", "under_way", "is_proved"),
    [(30, 0, True), (29, 0, False), (29, 1, True), (28, 1, False), (31, 1, False)],
)
def test_answers_to_what_is_sent_again_may_come_after_the_count(
    received: int, under_way: int, is_proved: bool
) -> None:
    outcomes = dict.fromkeys(Outcome, 0) | {Outcome.COMPLETED: 14, Outcome.REPLAYED: 2}
    counts = [(received - 15, 15, 0), (1, received - 15, under_way)]
    names = ("packets_sent", "packets_received", "packets_under_way")
    workers = [SimpleNamespace(**dict(zip(names, each, strict=True))) for each in counts]
    run = SimpleNamespace(switch=SimpleNamespace(outcomes=outcomes), workers=workers)
    proof = proofs._packets_out(run)
    assert proof.is_proved == is_proved
    assert ("1 of the last sum, sent again, may" in proof.measured) == bool(under_way)
    run.switch.outcomes = {Outcome.COMPLETED: received - 14}
    assert proofs._packets_in(run).is_proved, "as many as were sent"
    run.switch.outcomes = {Outcome.COMPLETED: 16}
    assert proofs._packets_in(run).is_proved == (0 <= received - 30 <= under_way)
