# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Builds frame_fuzzer.c for one program: runtime, generated code and driver in an executable.

The program's JSON gives seed frames (see differential.packets) and table entries; both become a
C header. The runtime is the same for all programs and compiled once.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from differential.packets import PacketGenerator
from differential.program_layout import ProgramLayout
from sanitized_program import build as build_sanitized
from sanitized_program import compile_objects
from switchfold.softswitch.compilation.compiler import INCLUDES, SOURCES
from switchfold.softswitch.compilation.runtime_library import SOURCES as RUNTIME_SOURCES
from switchfold.softswitch.generator import generate
from switchfold.softswitch.program.bmv2_json import read_program
from switchfold.softswitch.program.model import Program, ProgramTable, pack_number

DRIVER = Path(__file__).parent / "frame_fuzzer.c"
NUM_SEEDS = 200
ENTRIES_PER_TABLE = 12
PORTS = (1, 2, 3, 4, 5, 255, 511)


class FuzzerBuilder:
    """Compiles the runtime once, and links it to the driver and the code of each program."""

    def __init__(self, folder: Path, level: str) -> None:
        """Compile the runtime into this folder; `level` is the compiler's, "-O1" for instance."""
        self._flags = (level, *INCLUDES)
        sources = [*SOURCES, *RUNTIME_SOURCES]
        self._objects = compile_objects(folder, sources, self._flags)

    def build(self, json: Path, folder: Path, seed: int = 1) -> Path:
        """Return the executable for a program, made in this folder."""
        program = read_program(json)
        rng = random.Random(seed)
        (folder / "pipeline.c").write_text(generate(program), encoding="utf-8")
        (folder / "state.h").write_text(_state(json, program, rng), encoding="utf-8")
        inputs = [DRIVER, folder / "pipeline.c", *self._objects]
        return build_sanitized(folder / "frame_fuzzer", inputs, [*self._flags, f"-I{folder}"])


def _state(json: Path, program: Program, rng: random.Random) -> str:
    packets = PacketGenerator(ProgramLayout(json), rng)
    frames = [packets.frame() for _ in range(NUM_SEEDS)]
    entries = [line for table in program.tables for line in _entries(table, rng, packets.seen)]
    lines = [
        f"enum {{ NUM_SEEDS = {len(frames)}, NUM_ENTRIES = {len(entries)} }};",
        "static const seed_t seeds[] = {",
        *(f"    {{{len(frame)}, {_bytes(frame)}}}," for frame in frames),
        "};",
        "static const held_entry_t entries[NUM_ENTRIES + 1] = {",
        *(f"    {line}," for line in entries),
        "    {0},",
        "};",
    ]
    return "\n".join(lines) + "\n"


def _bytes(value: bytes) -> str:
    text = "".join(f"\\x{byte:02x}" for byte in value)
    return f'(const uint8_t *)"{text}"'


def _entries(
    table: ProgramTable, rng: random.Random, seen: dict[tuple[str, str], list[int]]
) -> Iterator[str]:
    if table.has_const_entries or not table.key:
        return
    for priority in range(1, ENTRIES_PER_TABLE):
        key = mask = b""
        prefix_len = 0
        for part in table.key:
            ones = (1 << part.width) - 1
            value = rng.choice([*seen.get(part.target, [0]), rng.getrandbits(part.width)]) & ones
            second = rng.choice((0, ones, rng.getrandbits(part.width)))
            if part.kind == "lpm":
                prefix_len = rng.randint(0, part.width)
                value &= ones ^ (ones >> prefix_len)
            elif part.kind in ("ternary", "optional"):
                second = second if part.kind == "ternary" else rng.choice((0, ones))
                value &= second
            elif part.kind == "range":
                value, second = min(value, second), max(value, second)
            key += pack_number(value, part.width)
            mask += pack_number(second, part.width)
        action = rng.choice(table.actions)
        params = b"".join(
            pack_number(
                rng.choice(PORTS) if parameter.width == 9 else rng.getrandbits(parameter.width),
                parameter.width,
            )
            for parameter in action.parameters
        )
        number = priority if table.has_priorities else 0
        yield (
            f"{{{table.position}, {{.key = {_bytes(key)}, .mask = {_bytes(mask)}, "
            f".prefix_len = {prefix_len}, .priority = {number}, .action_id = {action.position}, "
            f".params = {_bytes(params)}, .params_bytes = {len(params)}, "
            f".key_bytes = {len(key)}}}}}"
        )
