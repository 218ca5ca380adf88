# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The one place that reads entities through finsy, whose overloads a type checker cannot follow."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, TypeVar, cast

from finsy import Switch
from finsy.p4entity import P4Entity

_E = TypeVar("_E", bound=P4Entity)


async def read_entities(switch: Switch, requests: Sequence[_E]) -> list[_E]:
    """Return the entities that match the requests; P4ClientError when the switch refuses."""
    stream = cast("AsyncIterator[_E]", cast("Any", switch).read(requests))
    return [entity async for entity in stream]
