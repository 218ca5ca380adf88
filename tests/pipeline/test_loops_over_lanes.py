# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Equal statements over lanes: they become loops and compute what the statements say."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

from pipeline_driver import PROGRAMS
from switchfold.softswitch import Switch, compile_program
from switchfold.softswitch.generator import generate
from switchfold.softswitch.program.bmv2_json import read_program

ADD, STORE_REVERSED, CLEAR_ODD, PREFIX_SUMS, ADD_FIRST = range(1, 6)
LANES = 10


@pytest.fixture
def switch() -> Iterator[Switch]:
    program = compile_program(PROGRAMS / "lanes.json", cflags=("-Werror",))
    with Switch(program) as held:
        held.ports.add(1, "mem")
        held.ports.add(2, "mem")
        yield held


def run(switch: Switch, command: int, lanes: np.ndarray, index: int = 0) -> np.ndarray:
    """Send one frame with these lanes (uint32); return the lanes of the frame that leaves."""
    frame = bytes([command, index, 0, 0]) + lanes.astype(">u4").tobytes()
    [(_, sent)] = switch.process(1, frame)
    return np.frombuffer(sent[4:], ">u4").astype(np.uint32)


def random_lanes(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1 << 32, LANES, dtype=np.uint32)


def test_each_action_has_one_loop() -> None:
    text = generate(read_program(PROGRAMS / "lanes.json"))
    for name in ("add", "add_first", "store_reversed", "clear_odd", "prefix_sums"):
        start = re.search(rf"static void p4_action_\d+_TheIngress_{name}\(", text)
        assert start is not None
        function = text[start.end() : text.index("\n}", start.end())]
        assert function.count("for (size_t i = 0;") == 1, function


def test_registers_within_a_branch(switch: Switch) -> None:
    first, second = random_lanes(1), random_lanes(2)
    np.testing.assert_array_equal(run(switch, ADD, first, 3), first)
    np.testing.assert_array_equal(run(switch, ADD, second, 3), first + second)
    np.testing.assert_array_equal(run(switch, ADD, second, 2), second)
    np.testing.assert_array_equal(run(switch, ADD, first, 4), first)


def test_variable_of_a_loop_within_a_branch(switch: Switch) -> None:
    first, second = random_lanes(6), random_lanes(7)
    run(switch, ADD, first)
    np.testing.assert_array_equal(run(switch, ADD_FIRST, second), first + second)
    np.testing.assert_array_equal(run(switch, ADD_FIRST, second, 4), second)


def test_falling_lanes(switch: Switch) -> None:
    lanes = random_lanes(3)
    run(switch, STORE_REVERSED, lanes, 1)
    zeros = np.zeros(LANES, np.uint32)
    np.testing.assert_array_equal(run(switch, ADD, zeros, 1), lanes[::-1])


def test_conditions(switch: Switch) -> None:
    lanes = random_lanes(4)
    np.testing.assert_array_equal(run(switch, CLEAR_ODD, lanes), np.where(lanes & 1, 0, lanes))


def test_lanes_that_need_the_one_before(switch: Switch) -> None:
    lanes = random_lanes(5)
    sums = np.cumsum(lanes, dtype=np.uint32)
    np.testing.assert_array_equal(run(switch, PREFIX_SUMS, lanes), sums)
