# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which tests are known to pass, by number of ranks: floor.txt, a line for each test.

`test_barrier 2 3 4` passes with 2, 3 and 4 ranks. The first line names the PyTorch it is true of.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

FLOOR = Path(__file__).with_name("floor.txt")


def read_floor(path: Path = FLOOR) -> dict[str, set[int]]:
    """Return the numbers of ranks with which each test passes."""
    floor: dict[str, set[int]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        name, *ranks = line.split()
        if not line.startswith("#"):
            floor[name] = {int(number) for number in ranks}
    return floor


def floor_of(num_ranks: int, path: Path = FLOOR) -> set[str]:
    """Return the tests that pass with so many ranks."""
    return {name for name, ranks in read_floor(path).items() if num_ranks in ranks}


def floor_version(path: Path = FLOOR) -> str:
    """Return the PyTorch that the floor is true of."""
    return path.read_text(encoding="utf-8").split(";")[0].removeprefix("# PyTorch ")


def write_floor(num_ranks: int, passed: Iterable[str], version: str, path: Path = FLOOR) -> None:
    """Let exactly these tests be the floor for so many ranks; others keep theirs."""
    floor = read_floor(path) if path.exists() else {}
    for ranks in floor.values():
        ranks.discard(num_ranks)
    for name in passed:
        floor.setdefault(name, set()).add(num_ranks)
    lines = [f"# PyTorch {version}; written by `python -m torch_suite --renew`"]
    lines += [f"{name} {' '.join(map(str, sorted(n)))}" for name, n in sorted(floor.items()) if n]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
