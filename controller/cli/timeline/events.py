# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""From the events of a timeline to the transfers of a job."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from .records import (
    RecordedAllreduce,
    RecordedTransfer,
    ReplicaBacklog,
    ReplicaPromotion,
    TransferEnd,
    TransferTimeline,
)

Fields = Mapping[str, Any]
"""One event of the log, by the names of its line."""
_MODEL: Final = "model_"
_ENDS: Final = {
    "dropped": TransferEnd.DROPPED,
    "withdrawn": TransferEnd.WITHDRAWN,
    "refused": TransferEnd.REFUSED,
    "ungranted": TransferEnd.UNGRANTED,
}
_OF_UPDATES: Final = frozenset(
    ("requested", "granted", "delivered", "committed", "observed", "gathered", "left", *_ENDS)
)
_OF_MODELS: Final = frozenset(
    _MODEL + name
    for name in ("requested", "granted", "delivered", "withdrawn", "ungranted", "observed")
)
_TRANSFER: Final = ("worker", "server", "transfer")
_INTEGERS: Final = {
    **dict.fromkeys(_OF_UPDATES | _OF_MODELS, _TRANSFER),
    "observed": ("worker", "transfer"),  # an update that nobody asked for has no server here
    "allreduce_granted": ("number", "members", "bytes"),
    "allreduce_ended": ("number",),
    "allreduce_failed": (),
    "replicated": ("server", "version", "replica_version"),
    "promoted": ("server", "lost"),
}
"""Fields that events must have, and that are integers."""
_OPTIONAL: Final = ("bytes", "delay", "group", "aggregator", "relayed_by", "sequence", "clock")
_NUMBERS: Final = ("time", "begins", "ends", "seconds", "distance")
_TEXTS: Final = ("event", "job", "reason", "limit")
_MOST: Final = 1e19
"""No number of a line is above; neither are NaN and Infinity below, which Python reads."""
_LAST_S: Final = 1e11
"""No time is later: that is the year 5138."""


def problem_of(fields: object) -> str:
    """Return why a value read from a line is no event of transfers, "" if it is one."""
    if not isinstance(fields, dict):
        return "it is no object"
    found = cast("Fields", fields)
    needed = "time", "event", "job", *_INTEGERS.get(str(found.get("event")), ())
    if missing := [name for name in needed if name not in found]:
        return f"it has no {', '.join(missing)}"
    for name in _TEXTS:
        if not isinstance(found.get(name, ""), str):
            return f"its {name} is no text"
    for name in (*_NUMBERS, *needed[3:], *_OPTIONAL):
        kinds = (int, float) if name in _NUMBERS else (int,)
        value = found.get(name, 0)
        if type(value) not in kinds or not -_MOST < value < _MOST:
            return f"its {name} is no {'number' if name in _NUMBERS else 'integer'}"
    if not 0 <= found["time"] < _LAST_S:
        return "its time is none of seconds since 1970"
    return ""


class TimelineBuilder:
    """Takes the events of one job in their order."""

    def __init__(self, job: str) -> None:
        self.job: Final = job
        self._first_s: float | None = None
        self._last_s = 0.0
        self._before_s = -math.inf
        self._num_events = 0
        self._num_turned_back = 0
        self._updates: list[RecordedTransfer] = []
        self._models: list[RecordedTransfer] = []
        self._known: dict[tuple[bool, int, int], RecordedTransfer] = {}
        """The last transfer of an id, by whose id it is: a model's server, an update's worker."""
        self._allreduces: list[RecordedAllreduce] = []
        self._open_allreduces: dict[int, RecordedAllreduce] = {}
        self._failed: list[tuple[float, str]] = []
        self._replicas: list[ReplicaBacklog] = []
        self._promotions: list[ReplicaPromotion] = []
        self._unknown: Counter[str] = Counter()

    def add(self, fields: Fields) -> None:
        """Take an event without a `problem_of`."""
        time_s = float(fields["time"])
        if self._first_s is None:
            self._first_s = time_s
        self._num_turned_back += time_s < self._before_s
        self._before_s = time_s
        self._num_events += 1
        now_s = max(0.0, time_s - self._first_s)
        self._last_s = max(self._last_s, now_s)
        event: str = fields["event"]
        if event in _OF_MODELS:
            self._note(event.removeprefix(_MODEL), fields, now_s, is_model=True)
        elif event in _OF_UPDATES:
            self._note(event, fields, now_s, is_model=False)
        elif event in _INTEGERS:
            self._note_other(event, fields, now_s)
        else:
            self._unknown[event] += 1

    def timeline(self) -> TransferTimeline:
        """Return what was recorded so far."""
        return TransferTimeline(
            job=self.job,
            began_s=self._first_s or 0.0,
            length_s=self._last_s,
            num_events=self._num_events,
            updates=self._updates,
            models=self._models,
            allreduces=self._allreduces,
            failed=self._failed,
            replicas=self._replicas,
            promotions=self._promotions,
            unknown=dict(self._unknown),
            num_turned_back=self._num_turned_back,
        )

    def _note(self, event: str, fields: Fields, now_s: float, *, is_model: bool) -> None:
        key = is_model, fields.get("server" if is_model else "worker", 0), fields["transfer"]
        found = self._known.get(key)
        if event == "observed":
            if found is not None:
                found.limit = fields.get("limit", "")
            return
        if found is not None and event == "requested" and found.end is TransferEnd.OPEN:
            found.end, found.over_s = TransferEnd.ASKED_AGAIN, now_s
        if found is None or event == "requested":
            found = RecordedTransfer(
                is_model=is_model,
                worker=fields["worker"],
                server=fields["server"],
                number=fields["transfer"],
                size_bytes=fields.get("bytes"),
            )
            self._known[key] = found
            (self._models if is_model else self._updates).append(found)
        _note_event(found, event, fields, now_s)

    def _note_other(self, event: str, fields: Fields, now_s: float) -> None:
        match event:
            case "allreduce_granted":
                made = RecordedAllreduce(
                    number=fields["number"],
                    members=fields["members"],
                    size_bytes=fields["bytes"],
                    granted_s=now_s,
                    planned_s=fields.get("seconds"),
                )
                self._allreduces.append(made)
                self._open_allreduces[made.number] = made
            case "allreduce_ended":
                ended = self._open_allreduces.pop(fields["number"], None)
                if ended is not None:
                    ended.ended_s = now_s
            case "allreduce_failed":
                self._failed.append((now_s, fields.get("reason", "")))
            case "replicated":
                state = ReplicaBacklog(
                    time_s=now_s,
                    server=fields["server"],
                    missing=max(0, fields["version"] - fields["replica_version"]),
                    distance=fields.get("distance", 0.0),
                )
                self._replicas.append(state)
            case _:
                server, lost = fields["server"], fields["lost"]
                self._promotions.append(ReplicaPromotion(time_s=now_s, server=server, lost=lost))


def _note_event(found: RecordedTransfer, event: str, fields: Fields, now_s: float) -> None:
    match event:
        case "requested":
            found.requested_s = now_s
        case "granted":
            found.granted_s = now_s
            if "begins" in fields and "ends" in fields:
                found.begins_s = now_s + fields["begins"]
                found.ends_s = max(found.begins_s, now_s + fields["ends"])
            found.delay = fields.get("delay")
            found.group, found.aggregator = fields.get("group"), fields.get("aggregator")
            found.relayed_by = fields.get("relayed_by")
        case "gathered":
            found.gathered_s = now_s
        case "left":
            found.has_left = True
        case "delivered":
            found.delivered_s = now_s
            if found.is_model:
                found.end = TransferEnd.DONE
        case "committed":
            found.committed_s = now_s
            found.end = TransferEnd.DONE
        case _:
            found.end, found.over_s = _ENDS[event], now_s
            found.is_withdrawn |= event == "withdrawn"
            if event == "dropped":
                found.delay, found.reason = fields.get("delay"), fields.get("reason", "")


def timeline_of(job: str, events: Iterable[Fields]) -> TransferTimeline:
    """Return the transfers of a job from its events, none of which has a `problem_of`."""
    builder = TimelineBuilder(job)
    for fields in events:
        builder.add(fields)
    return builder.timeline()
