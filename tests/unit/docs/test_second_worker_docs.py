# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""docs/second_worker.md says what the code does, as far as it gives numbers."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from switchfold.hostlib.engine.allreduce_task import POSITION_BITS, wire_id
from switchfold.hostlib.options import Summation
from switchfold.hostlib.peers import frames
from switchfold.hostlib.peers.frames import FrameKind, Greeting, Purpose, ValuesFrame
from switchfold.hostlib.summation.quantization import NONFINITE_EXPONENT, ZERO_EXPONENT

PAGE = (Path(__file__).parents[3] / "docs" / "second_worker.md").read_text(encoding="utf-8")


def rows(marker: str) -> list[list[str]]:
    """Return the cells of the table behind a comment in the page."""
    table = PAGE.partition(f"<!-- {marker}: checked against")[2].partition("\n\n")[2]
    lines = table.partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


def test_header_of_peers_is_as_told() -> None:
    offset, names = 0, list[str]()
    for byte, bits, name, _ in rows("peer header"):
        assert int(byte) == offset, name
        offset += int(bits) // 8
        names.append(name)
    assert offset == frames.HEADER_BYTES
    prefix = (frames.MAGIC, frames.FRAME_VERSION, FrameKind.LANES)
    values = ValuesFrame(
        payload_bytes=4,
        reduction=5,
        step=6,
        flags=7,
        first=8,
        num_values=9,
        total=10,
        tag=11,
    )
    sizes = {8: "B", 16: "H", 32: "I", 64: "Q"}
    layout = "!" + "".join(sizes[int(bits)] for _, bits, _, _ in rows("peer header"))
    assert values.pack() == struct.pack(layout, *prefix, *range(4, 12))
    by_kind = ["sequence", "step", "flags", "first_lane", "num_lanes", "total", "tag"]
    assert names == ["magic", "version", "kind", "payload_bytes", *by_kind]


def test_kinds_of_frames_are_as_told() -> None:
    told = {int(number): name for number, name, *_ in rows("peer kinds")}
    later = {kind.value for kind in FrameKind} - told.keys()
    assert told == {kind.value: kind.name for kind in FrameKind if kind.value in told}
    pattern = (
        r"Kinds (\d+) to (\d+) and (\d+) to (\d+) belong to parameter servers .*; (\d+) is unused"
    )
    between = re.search(pattern, PAGE)
    assert between is not None
    first, last, others, end, unused = map(int, between.groups())
    assert later == {*range(first, last + 1), *range(others, end + 1)} - {unused}


def test_greeting_is_as_told() -> None:
    greeting = Greeting(job=7, generation=99, sender=2, receiver=1, purpose=Purpose.FETCH)
    payload = greeting.pack("secret", bytes(16))
    assert struct.unpack("!IIHHB", payload[:13]) == (7, 99, 2, 1, 3)
    told = re.search(r"GREETING \| client, first \| (\d+) bytes", PAGE)
    assert told is not None
    assert len(payload) == int(told[1]) == 4 + 4 + 2 + 2 + 1 + 1 + 32
    assert "(8: 1 values, 2 exponents, 3 fetch)" in PAGE
    assert [Purpose.REDUCE_VALUES, Purpose.REDUCE_EXPONENTS, Purpose.FETCH] == [1, 2, 3]


@pytest.mark.parametrize("number", [0, 5, (1 << POSITION_BITS) - 1])
def test_tensors_are_numbered_as_told(number: int) -> None:
    assert f"modulo 2^{POSITION_BITS}" in PAGE
    assert wire_id(number, Summation()) == (number + 1) % (1 << POSITION_BITS)


def test_marks_of_exponents_are_as_told() -> None:
    assert f"its exponent lane is **{ZERO_EXPONENT}** (`ZERO_EXPONENT`)" in PAGE
    assert "its exponent lane is **2^30** (`NONFINITE_EXPONENT`)" in PAGE
    assert NONFINITE_EXPONENT == 1 << 30
