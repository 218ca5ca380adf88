# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Checks the kinds and bounds of the numbers in a BMv2 JSON before they are used."""

from typing import Any

from ..errors import Problem
from .model import Json, source_of

WIDTH_MAX = 1 << 16
"""Most bits of a field or parameter, far beyond what P4 programs use."""
CELLS_MAX = 1 << 28
"""Most elements of an array."""
ENTRIES_MAX = 1 << 31
"""Most entries of a table. A table allocates memory only as entries are inserted."""
_MAXIMA = {
    "bitwidth": WIDTH_MAX,
    "max_length": WIDTH_MAX,
    "id": ENTRIES_MAX,
}
_SIZES = {"size": (CELLS_MAX, "elements"), "max_size": (ENTRIES_MAX, "entries")}


def check_numbers(data: Json) -> list[Problem]:
    """Return a problem for each array or table that is too large for this switch.

    Raises TypeError for the first value that is not an integer, ValueError for one out of bounds.
    """
    problems: list[Problem] = []
    for kind in data["header_types"]:
        for entry in kind["fields"]:
            if entry[1] != "*":
                _check(f"width of field {entry[0]}", entry[1], WIDTH_MAX)
    for name, code in data.get("errors", []):
        _check(f"error {name}", code, WIDTH_MAX)
    waiting: list[tuple[str, Any]] = list(data.items())
    while waiting:
        path, part = waiting.pop()
        if isinstance(part, list):
            items: list[Any] = part  # pyright: ignore[reportUnknownVariableType]
            waiting += [(path, item) for item in items]
        elif isinstance(part, dict):
            held: Json = part  # pyright: ignore[reportUnknownVariableType]
            for key, value in held.items():
                if key in _SIZES:
                    problems += _size(f"{key} in {path}", held, value, *_SIZES[key])
                elif key in _MAXIMA:
                    _check(f"{key} in {path}", value, _MAXIMA[key])
                elif key != "source_info":
                    waiting.append((key, value))
    return problems


def _size(what: str, item: Json, value: object, most: int, of: str) -> list[Problem]:
    """Return a problem if an array or table is too large."""
    if not isinstance(value, int) or value <= most:
        _check(what, value, most)
        return []
    name = item.get("name", "")
    return [
        Problem(
            what=f"size of {name or what}",
            where=source_of(item, what),
            why=f"{value} {of} exceed this switch's limit of {most}",
            remedy="Make it smaller in the P4 program",
        )
    ]


def _check(what: str, value: object, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{what} is not an integer: {value!r}")
    if not 0 <= value <= most:
        raise ValueError(f"{what} is {value}, not between 0 and {most}")
