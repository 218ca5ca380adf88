# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Builds datagram_fuzzer.c with the host library's C code, and reads what it says."""

from __future__ import annotations

import re
from pathlib import Path

from sanitized_program import build as build_sanitized
from sanitized_program import run as run_sanitized

HERE = Path(__file__).parent
NATIVE = HERE.parents[1] / "hostlib" / "native"
FLAGS = ("-O1", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", f"-I{NATIVE}", f"-I{HERE}")


def build(folder: Path) -> Path:
    """Return the executable, made in this folder."""
    sources = sorted([*HERE.glob("*.c"), *NATIVE.rglob("*.c")])
    return build_sanitized(folder / "datagram_fuzzer", sources, FLAGS)


def run(fuzzer: Path, kind: str, schedules: int, seed: int) -> dict[str, int]:
    """Run schedules of a kind, "faithful" or "hostile"; return its counts by name."""
    said = run_sanitized(fuzzer, kind, schedules, seed)
    return {name: int(count) for count, name in re.findall(r"(\d+) ([a-z ]+)", said)}
