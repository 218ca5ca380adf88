# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Structures and numbers that Python and the C library both declare are the same."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import pytest

from switchfold.hostlib.allgather import block_exchange
from switchfold.hostlib.hot_rows import EMPTY
from switchfold.hostlib.native import (
    hot_row_library,
    library,
    row_library,
    structures,
    switch_group_library,
)
from switchfold.hostlib.native.transports import Joining
from switchfold.hostlib.parameter_server.hot_worker import pushes, reads
from switchfold.hostlib.slots import switch_reducer, wire
from switchfold.hostlib.summation import exact
from switchfold.hostlib.summation.chunks import ValueKind
from switchfold.softswitch.compilation.compiler import find_compiler

NATIVE = Path(library.__file__).parent
STRUCTURES = [
    item
    for module in (structures, row_library, hot_row_library, switch_group_library)
    for item in vars(module).values()
    if isinstance(item, type) and issubclass(item, ctypes.Structure)
    if item.__module__ == module.__name__
]
NUMBERS = {
    **{operation.name: int(operation) for operation in wire.Operation},
    **{flag.name: int(flag) for flag in wire.Flag if flag.name},
    "WIRE_VERSION": wire.WIRE_VERSION,
    "HEADER_BYTES": wire.HEADER_BYTES,
    "VALUE_BYTES": wire.VALUE_BYTES,
    "BATCH": structures.BATCH,
    "MAX_MEMBERS": structures.MAX_MEMBERS,
    "REPORT_DELAY_SHARE": block_exchange.DELAY_SHARE,
    "LEAST_REPORT_DELAY_S * 1e6": round(block_exchange.MIN_DELAY_S * 1e6),
    "REFUSALS": len(switch_reducer.REFUSALS),
    "LAYERS_BYTES": structures.LAYERS_BYTES,
    "RANGE_LANES": exact.RANGE_LANES,
    "SPECIAL_LANES": exact.SPECIAL_LANES,
    "MOST_WIDTH": row_library.MOST_WIDTH,
    "MOST_ROWS": row_library.MOST_ROWS,
    "MOST_POSITIONS": row_library.MOST_POSITIONS,
    "OPTIMISER_NUMBERS": row_library.OPTIMISER_NUMBERS,
    "PLACES": pushes.PLACES,
    "WAITING": pushes.WAITING,
    "MOST_LANE": pushes.MOST_LANE,
    "DECIDE_TICKS": pushes.DECIDE_TICKS,
    "MOST_RENAMES": pushes.MOST_RENAMES,
    "MOST_TRIES": reads.MOST_TRIES,
    "EMPTY_CELL + 1": EMPTY + 1,
    **{f"PLACE_{use.name}": int(use) for use in hot_row_library.PlaceUse},
    **{f"CHUNK_{state.name}": int(state) for state in switch_group_library.GroupChunkState},
    **{f"ROWS_{status.name}": int(status) for status in row_library.RowStatus},
    **{f"INITIAL_{kind.name}": int(kind) for kind in row_library.InitialKind},
    **{f"JOIN_{joining.name}": int(joining) for joining in Joining},
    **{f"VALUES_{kind.name}": int(kind) for kind in ValueKind},
}
OFFSETS = {
    "VERSION_AT": "version",
    "OPERATION_AT": "operation",
    "FLAGS_AT": "flags",
    "TREE_AT": "job_id",
    "CHILD_AT": "worker_id",
    "GENERATION_AT": "generation",
    "SLOT_AT": "slot_index",
    "ROUND_AT": "round",
    "TENSOR_AT": "tensor_id",
    "CHUNK_AT": "chunk_index",
    "START_AT": "range_start",
    "END_AT": "range_end",
    "BITMAP_AT": "worker_bitmap",
    "CONTRIBUTORS_AT": "num_contributors",
    "EXPONENT_AT": "exponent",
    "EXPECTED_AT": "expected",
}


def declaration(structure: type[ctypes.Structure]) -> tuple[str, str]:
    """Return the C type and the header that a structure's docstring names."""
    named = re.match(r"`(\w+)` of (\w+\.h)", structure.__doc__ or "")
    assert named, f"{structure.__name__} says not which type it is"
    return named[1], named[2]


@pytest.fixture(scope="module")
def in_c(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """What the C compiler makes of sizes, offsets and numbers."""
    folder = tmp_path_factory.mktemp("layout")
    expressions = [*NUMBERS, *OFFSETS]
    for structure in STRUCTURES:
        name, _ = declaration(structure)
        expressions.append(f"sizeof({name})")
        expressions += [f"offsetof({name}, {field[0]})" for field in structure._fields_]
    headers = {"header.h", "stream.h", "refusal.h", *(declaration(each)[1] for each in STRUCTURES)}
    lines = [f"#include <{name}>" for name in ("stddef.h", "stdio.h")]
    lines += [f'#include "{name}"' for name in sorted(headers)]
    lines += ["int main(void) {"]
    lines += [f'  printf("%s=%zu\\n", "{each}", (size_t)({each}));' for each in expressions]
    lines += ["}", ""]
    source, program = folder / "layout.c", folder / "layout"
    source.write_text("\n".join(lines), encoding="utf-8")
    folders = [f"-I{folder}" for folder in NATIVE.iterdir() if folder.is_dir()]
    command = [*find_compiler(), "-std=c11", "-D_GNU_SOURCE", *folders, "-o", str(program)]
    subprocess.run([*command, str(source)], check=True)
    said = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    pairs = (line.rsplit("=", 1) for line in said.splitlines())
    return {name: int(number) for name, number in pairs}


@pytest.mark.parametrize("structure", STRUCTURES, ids=lambda each: each.__name__)
def test_structure_is_laid_out_as_in_c(
    structure: type[ctypes.Structure], in_c: dict[str, int]
) -> None:
    name, header = declaration(structure)
    fields = [field[0] for field in structure._fields_]
    ours = {field: getattr(structure, field).offset for field in fields}
    assert ours == {field: in_c[f"offsetof({name}, {field})"] for field in fields}, header
    assert ctypes.sizeof(structure) == in_c[f"sizeof({name})"], header


def test_numbers_are_those_of_the_wire_format(in_c: dict[str, int]) -> None:
    assert {name: in_c[name] for name in NUMBERS} == NUMBERS


def test_header_is_that_of_the_wire_format(in_c: dict[str, int]) -> None:
    fields = wire.HEADER_DTYPE.fields
    assert fields is not None
    assert set(OFFSETS.values()) <= set(fields)
    assert {name: in_c[name] for name in OFFSETS} == {
        name: fields[field][1] for name, field in OFFSETS.items()
    }


def test_library_that_cannot_be_loaded_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "__file__", "/nowhere/library.py")
    with pytest.raises(library.TransportError, match="apt-get install gcc libc6-dev"):
        library._load()
