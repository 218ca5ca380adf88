# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The commands that a page tells its readers to type, and what it shows of their output."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

ANYTHING = "..."
PROMPT = "$ "
_BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class CommandBlock:
    """Commands that follow each other, and lines that they print."""

    commands: list[str]
    """Lines for a shell."""
    expected: list[str] = field(default_factory=list[str])
    """Dots stand for anything."""
    is_prompted: bool = False
    """A block of text in which commands begin with a dollar."""


def section(text: str, heading: str) -> str:
    """Return what is below a heading of the second level."""
    begin = text.index(f"\n## {heading}\n")
    end = text.find("\n## ", begin + 1)
    return text[begin : end if end >= 0 else None]


def blocks(text: str) -> Iterator[CommandBlock]:
    """Yield the blocks of commands of a page, or of a part of it."""
    waiting: CommandBlock | None = None
    for kind, body in _BLOCK.findall(text):
        if kind == "text" and not body.startswith(PROMPT):
            if waiting:
                waiting.expected.extend(body.splitlines())
                yield waiting
            waiting = None
            continue
        if waiting:
            yield waiting
        lines = body.replace("\\\n", "").splitlines()
        if kind == "sh":
            waiting = CommandBlock(commands=lines)
            continue
        waiting = None
        yield CommandBlock(
            commands=[line.removeprefix(PROMPT) for line in lines if line.startswith(PROMPT)],
            expected=[line for line in lines if not line.startswith(PROMPT)],
            is_prompted=True,
        )
    if waiting:
        yield waiting


def marked_commands(text: str, marker: str) -> list[str]:
    """Return the commands of the block behind a comment that begins so."""
    found = next(blocks(text[text.index(f"<!-- {marker}: run by") :]))
    return found.commands


def is_shown(line: str, text: str) -> bool:
    """Return whether a text has a line like this."""
    pattern = re.escape(line).replace(re.escape(ANYTHING), ".+")
    return re.search(f"^{pattern}$", text, re.MULTILINE) is not None
