# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The numbers of the P4 programs are those of hostlib.slots.wire."""

from __future__ import annotations

import enum
import re
from pathlib import Path

import pytest

from switchfold.controller.tables.outcome import OrdinaryOutcome
from switchfold.hostlib.slots import wire
from switchfold.p4src.artefacts import P4SRC
from switchfold.p4src.generate_lanes import VALUES_PER_PACKET, generated_files

_CONST = re.compile(r"^const [\w<>()]+ +(\w+) = (0x[0-9a-fA-F]+|\d+);", re.MULTILINE)
_HEADER = re.compile(r"^header (\w+) \{(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^ +(bit<\d+>|\w+_t) +(\w+);", re.MULTILINE)
_TYPEDEF = re.compile(r"^typedef bit<\(?(\w+)\)?> +(\w+);", re.MULTILINE)


def _text(name: str) -> str:
    return (P4SRC / "include" / name).read_text(encoding="utf-8")


CONSTANTS = {name: int(value, 0) for name, value in _CONST.findall(_text("constants.p4"))}


@pytest.mark.parametrize(
    "name",
    [
        "WIRE_VERSION",
        "UDP_PORT",
        "IPV4_BYTES",
        "UDP_BYTES",
        "HEADER_BYTES",
        "VALUE_BYTES",
        "MAX_WORKERS",
        "NUM_SLOTS",
    ],
)
def test_constant_is_the_wire_formats(name: str) -> None:
    assert CONSTANTS[name] == getattr(wire, name)


@pytest.mark.parametrize(
    ("prefix", "numbers"),
    [
        ("OPERATION", wire.Operation),
        ("FLAG", wire.Flag),
        ("OUTCOME", wire.Outcome),
        ("ORDINARY", OrdinaryOutcome),
    ],
)
def test_numbering_is_the_wire_formats(prefix: str, numbers: type[enum.IntEnum]) -> None:
    ours = {
        name.removeprefix(f"{prefix}_"): value
        for name, value in CONSTANTS.items()
        if name.startswith(f"{prefix}_")
    }
    assert ours == {member.name: member.value for member in numbers}


def test_highest_priority_is_the_wire_formats() -> None:
    (width,) = re.findall(r"typedef bit<(\d+)> +priority_t;", _text("constants.p4"))
    assert (1 << int(width)) - 1 == wire.MAX_PRIORITY


def test_values_per_packet_are_the_wire_formats() -> None:
    assert VALUES_PER_PACKET == {
        "narrow": wire.VALUES_PER_PACKET_NARROW,
        "wide": wire.VALUES_PER_PACKET_WIDE,
    }


def test_header_fields_are_the_wire_formats() -> None:
    widths = {
        name: CONSTANTS[width] if width in CONSTANTS else int(width)
        for width, name in _TYPEDEF.findall(_text("constants.p4"))
    }
    fields = dict(_HEADER.findall(_text("headers.p4")))["switchfold_h"]
    ours = [
        (name, widths[kind] if kind in widths else int(kind[4:-1]))
        for kind, name in _FIELD.findall(fields)
    ]
    names = wire.HEADER_DTYPE.names
    assert names is not None
    assert ours == [(name, 8 * wire.HEADER_DTYPE[name].itemsize) for name in names]


@pytest.mark.parametrize("path", generated_files(), ids=lambda path: path.name)
def test_generated_lanes_are_up_to_date(path: Path) -> None:
    text = generated_files()[path]
    assert path.read_text(encoding="utf-8") == text, (
        "run: python -m switchfold.p4src.generate_lanes"
    )


def test_slot_registers_hold_every_copy() -> None:
    text = _text("sizes.p4")
    assert "SLOT_REGISTER_SIZE = NUM_SLOTS * SLOT_COPIES;" in text
