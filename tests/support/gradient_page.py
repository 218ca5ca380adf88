# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""docs/life_of_a_gradient.md, read: its steps, the names that it has for them, and its tables."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "life_of_a_gradient.md").read_text(encoding="utf-8")
WORDS = " ".join(PAGE.split())
"""The page without its line breaks."""

Name = tuple[str, str]
"""A path below the root, and a function's or a P4 object's name there."""
PAIRS = re.compile(r"`([\w/]+\.(?:py|p4|c))`:\s+(`[\w.]+`(?:,\s+`[\w.]+`(?!:))*)")


def named(text: str) -> list[Name]:
    """Return the pairs of path and name in a text, in its order."""
    return [
        (path, name)
        for path, names in PAIRS.findall(text)
        for name in re.findall(r"`([\w.]+)`", names)
    ]


@dataclass(frozen=True, kw_only=True)
class Step:
    number: int
    title: str
    """Up to the end of its line: with the thread."""
    names: list[Name]
    """Of the first item, which is what runs."""


def read_steps() -> list[Step]:
    found = re.findall(r"^(\d+)\. (\*\*.+)\n +- (`(?:.|\n)+?)\n +- ", PAGE, re.MULTILINE)
    return [Step(number=int(n), title=title, names=named(names)) for n, title, names in found]


STEPS = read_steps()


def table(marker: str) -> list[list[str]]:
    """Return the cells of the table behind a comment in the page."""
    text = PAGE.partition(f"<!-- {marker}: checked against a run -->")[2].lstrip().split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[2:]]


def integer(text: str) -> int:
    return int(text.replace(",", ""))
