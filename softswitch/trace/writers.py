# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Steps as indented text, coloured on a terminal, and as JSON lines."""

import json
from collections.abc import Iterable
from typing import Any, TextIO

from .step import Step

_COLOURS = {
    "arrival": "1;36",
    "copy": "1;36",
    "sent": "1;32",
    "drop": "1;31",
    "parser_error": "1;31",
    "table": "1;33",
    "action": "33",
    "condition": "35",
    "state": "34",
    "transition": "34",
    "clone": "36",
    "multicast": "36",
}
_PLACE_COLUMN = 72


def write_text(steps: Iterable[Step], out: TextIO, *, is_coloured: bool) -> None:
    """Write a line per step and detail, with the step's P4 line at the right."""
    for step in steps:
        indent = "  " * step.depth
        if step.kind == "arrival" and step.packet > 1:
            out.write("\n")
        line = indent + step.text
        shown = indent + _colour(step.text, _COLOURS.get(step.kind, ""), is_coloured)
        if step.source is not None:
            place = f"{step.source}"
            if step.source.text:
                place += f"  {step.source.text}"
            shown += " " * max(_PLACE_COLUMN - len(line), 2) + _colour(place, "2", is_coloured)
        out.write(shown + "\n")
        for detail in step.details:
            out.write(f"{indent}    {detail}\n")
    out.flush()


def _colour(text: str, code: str, is_coloured: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if is_coloured and code else text


def write_json(steps: Iterable[Step], out: TextIO) -> None:
    """Write one JSON object per line."""
    for step in steps:
        item: dict[str, Any] = {
            "packet": step.packet,
            "stage": step.stage,
            "kind": step.kind,
            "text": step.text,
            **step.data,
        }
        if step.source is not None:
            source = step.source
            item["source"] = {"file": source.file, "line": source.line, "text": source.text}
        out.write(json.dumps(item) + "\n")
    out.flush()
