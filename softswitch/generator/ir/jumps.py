# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Jumps within an action, and the blocks that they stand for."""

from dataclasses import dataclass
from typing import Any

from ...program.model import Json, parse_hex

EXITING = ("exit", "assert", "assume")
"""Primitives that may end the control."""


@dataclass(frozen=True)
class Branch:
    """An if inside an action: jumps put back into blocks."""

    condition: Any
    taken: "list[Json | Branch]"
    other: "list[Json | Branch]"


def is_jump(primitive: Json) -> bool:
    """Whether a primitive is a jump within its action."""
    return primitive["op"] in ("_jump", "_jump_if_zero")


def target(primitive: Json) -> int:
    """Index of the primitive that a jump leads to."""
    return parse_hex(primitive["parameters"][-1]["value"])


def can_exit(primitives: tuple[Json, ...]) -> bool:
    """Whether an action may end the control: by a statement, or for a loop without end."""
    return any(
        item["op"] in EXITING or (is_jump(item) and target(item) <= index)
        for index, item in enumerate(primitives)
    )


def structure(primitives: tuple[Json, ...], start: int, end: int) -> "list[Json | Branch] | None":
    """Turn the jumps of primitives [start, end) into branches; None if they form no blocks."""
    result: list[Json | Branch] = []
    at = start
    while at < end:
        primitive = primitives[at]
        if not is_jump(primitive):
            result.append(primitive)
            at += 1
            continue
        middle = target(primitive)
        if primitive["op"] == "_jump" or not at < middle <= end:
            return None
        after = middle
        then_end = middle
        last = primitives[middle - 1]
        if middle - 1 > at and last["op"] == "_jump":
            after = target(last)
            then_end = middle - 1
            if not middle <= after <= end:
                return None
        taken = structure(primitives, at + 1, then_end)
        other = structure(primitives, middle, after)
        if taken is None or other is None:
            return None
        result.append(Branch(primitive["parameters"][0], taken, other))
        at = after
    return result
