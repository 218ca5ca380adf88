# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Damages a program's JSON: wrong types, missing keys, exchanged parts, numbers out of bounds."""

from __future__ import annotations

import copy
import random
from typing import Any

ODD_VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1,
    7,
    1 << 40,
    1.5,
    "",
    "0x",
    "-0x1",
    'x"; y',
    "a b\n",
    [],
    [[]],
    {},
    {"type": "expression", "value": None},
)
Place = tuple[Any, Any]
"""A list or an object of the JSON, and the index or key of one of its parts."""


def mutate(program: Any, rng: random.Random) -> Any:
    """Return a copy with one to three parts damaged."""
    changed = copy.deepcopy(program)
    for _ in range(rng.randint(1, 3)):
        places = _places(changed)
        holder, key = rng.choice(places)
        match rng.randrange(4):
            case 0:
                del holder[key]
            case 1:
                other, other_key = rng.choice(places)
                holder[key] = copy.deepcopy(other[other_key])
            case 2 if isinstance(holder[key], int):
                holder[key] = rng.choice((holder[key] + 1, holder[key] - 1, 1 << 33, 3000))
            case _:
                holder[key] = copy.deepcopy(rng.choice(ODD_VALUES))
    return changed


def _places(node: Any) -> list[Place]:
    found: list[Place] = []
    waiting = [node]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            parts = [(item, key) for key in item if key != "source_info"]
        elif isinstance(item, list):
            parts = [(item, index) for index in range(len(item))]
        else:
            continue
        found += parts
        waiting += [holder[key] for holder, key in parts]
    return found
