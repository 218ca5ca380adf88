# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Events of a controller's timeline of transfers, written by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

START_S: Final = 1_790_000_000.0
UPDATE_BYTES: Final = 1_000_000


def event_of(at_s: float, event: str, **fields: Any) -> dict[str, Any]:
    """Return an event of job `train`, so long after the recording's start."""
    return {"time": START_S + at_s, "event": event, "job": "train"} | fields


def line_of(at_s: float, event: str, **fields: Any) -> str:
    """Return an event's line, without its end."""
    return json.dumps(event_of(at_s, event, **fields))


def lines_of(events: Iterable[dict[str, Any]]) -> str:
    """Return the text of a timeline."""
    return "".join(f"{json.dumps(event)}\n" for event in events)


def begun_s(event: dict[str, Any]) -> float:
    """Return an event's time, by which events are sorted."""
    return event["time"]


def granted_update(
    worker: int, transfer: int, at_s: float, *, late_s: float = 0.0, **grant: Any
) -> list[dict[str, Any]]:
    """Return an update that is granted 0.1 s after its request, for 0.2 to 1.2 s after that.

    It is delivered `late_s` after its plan's end, and applied 0.1 s later. `grant` are more fields
    of the grant.
    """
    own = {"worker": worker, "server": 0, "transfer": transfer, "bytes": UPDATE_BYTES}
    placed = own | {"sequence": transfer, "delay": 2} | grant
    end_s = at_s + 1.2 + late_s
    return [
        event_of(at_s, "requested", **own),
        event_of(at_s + 0.1, "granted", begins=0.1, ends=1.1, **placed),
        event_of(end_s, "delivered", **placed),
        event_of(end_s + 0.1, "committed", **placed),
    ]


def dropped(worker: int, transfer: int, at_s: float, reason: str) -> list[dict[str, Any]]:
    """Return an update that is dropped 0.1 s after its request."""
    own = {"worker": worker, "server": 0, "transfer": transfer, "bytes": UPDATE_BYTES}
    return [
        event_of(at_s, "requested", **own),
        event_of(at_s + 0.1, "dropped", delay=7, reason=reason, **own),
    ]
