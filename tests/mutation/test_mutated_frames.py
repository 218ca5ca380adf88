# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Mutated frames through several programs under the address, leak and undefined sanitizers."""

from __future__ import annotations

from pathlib import Path

import pytest

from differential.campaign import Found, prepared, programs
from mutation.frame_fuzzer import FuzzerBuilder
from sanitized_program import missing_reason, run

FRAMES = 200_000
"""For these programs together; `make fuzz` sends ten million, shared by all programs."""
CHOSEN = (
    "switchfold_narrow",
    "switchfold_wide",
    "tables",
    "replication",
    "header_stacks",
    "varbit",
)
"""Each build takes seconds, so not all programs are here."""
PROGRAMS = [item for item in programs() if item.name in CHOSEN]


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> FuzzerBuilder:
    folder = tmp_path_factory.mktemp("runtime")
    reason = missing_reason(folder)
    if reason is not None:
        pytest.skip(reason)
    # So few frames take less time than an optimising compiler.
    return FuzzerBuilder(folder, "-O0")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda item: item.name)
def test_mutated_frames_neither_crash_nor_leak(
    program: Found, builder: FuzzerBuilder, tmp_path: Path
) -> None:
    fuzzer = builder.build(prepared(program).json, tmp_path)
    said = run(fuzzer, FRAMES // len(PROGRAMS), 1)
    frames, rest = said.splitlines()[-1].split(" frames, ")
    assert int(frames) == FRAMES // len(PROGRAMS)
    assert int(rest.split()[0]) > 0, f"nothing came out: {said}"
