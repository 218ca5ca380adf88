# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What happened when in a run, simulated or live: a list of events, and its file of JSON lines."""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class TimelineError(Exception):
    """A file that is no timeline: the message says which line and why."""


class TimelineKind(enum.Enum):
    """What happened to one update, or to one model on its way to a worker."""

    GET = "get"
    """A server begins to send its model to a worker; this fixes the model's version."""
    GOT = "got"
    """The model is at the worker, which begins to compute once it has those of all servers."""
    PUSH = "push"
    """The worker has computed an update, and asks to send it."""
    SENT = "sent"
    """The update's last byte is at its server, alone or within a sum."""
    COMMIT = "commit"
    """The server has applied the update."""
    DROP = "drop"
    """The update is not sent."""


@dataclass(frozen=True, kw_only=True)
class TimelineEvent:
    """One line of a timeline."""

    time_s: float
    event: TimelineKind
    worker: str
    server: str
    bytes: int
    """Of the update or model; of an update within a sum, as if it had travelled alone."""

    def as_line(self) -> str:
        """Return the event as a JSON object in one line."""
        return json.dumps(dataclasses.asdict(self) | {"event": self.event.value})


def write_timeline(events: Iterable[TimelineEvent], path: Path) -> None:
    """Write events as JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{event.as_line()}\n" for event in events), "utf-8")


def read_timeline(path: Path) -> list[TimelineEvent]:
    """Return the events of a file by time; TimelineError names the first wrong line."""
    events = [
        _parse(line, f"{path}, line {number}")
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if line.strip()
    ]
    if not events:
        raise TimelineError(f"{path} has no events: record a run first")
    return sorted(events, key=lambda event: event.time_s)


def _parse(line: str, place: str) -> TimelineEvent:
    try:
        fields: Any = json.loads(line)
        return TimelineEvent(
            time_s=float(fields["time_s"]),
            event=TimelineKind(fields["event"]),
            worker=str(fields["worker"]),
            server=str(fields["server"]),
            bytes=int(fields["bytes"]),
        )
    except (ValueError, TypeError, KeyError) as exc:
        kinds = ", ".join(kind.value for kind in TimelineKind)
        raise TimelineError(
            f"{place} is no event ({exc!r}): write time_s, event ({kinds}), worker, server, bytes"
        ) from exc
