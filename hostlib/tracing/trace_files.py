# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes timelines as files that chrome://tracing and Perfetto open, and reads them.

The files are JSON in the Trace Event Format. Each rank is a process, whose first row shows the
computation and whose other rows show the transfers. An arrow leads from the computation that made a
tensor ready to the tensor's transfer.
"""

from __future__ import annotations

import contextlib
import json
import os
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, cast

from ..errors import TraceError
from .timeline import Clock, Span, Timeline, Transfer

FORMAT_VERSION: Final = 1
COMPUTE_ROW: Final = 0
NETWORK_ROW: Final = 1
"""First row of transfers; transfers that overlap get further rows."""
TRANSFER: Final = "transfer"
"""Category of a transfer's event; its parts have another category."""
MICROSECONDS: Final = 1e6
_PARTS: Final = ("waits to be sent", "on the network", "is converted")

Interval = tuple[float, float]


def write_trace(timeline: Timeline, path: Path) -> None:
    """Write a timeline in one atomic step; missing folders are made.

    Raises TraceError.
    """
    details = {
        "switchfold_trace": FORMAT_VERSION,
        "rank": timeline.rank,
        "job": timeline.job,
        "host": timeline.host,
        "dropped_events": timeline.num_dropped,
        **asdict(timeline.clock),
    }
    content = {"traceEvents": _Events(timeline).all, "displayTimeUnit": "ms", "otherData": details}
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(content) + "\n", "utf-8")
        part.replace(path)
    except OSError as exc:
        with contextlib.suppress(OSError):  # the file may not exist
            part.unlink()
        raise TraceError(
            f"trace {path} cannot be written ({exc.strerror or exc}); name another folder"
        ) from exc


def read_trace(path: Path) -> Timeline:
    """Read a file of `write_trace`; raises TraceError."""
    try:
        content: Any = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as exc:
        raise TraceError(f"trace {path} cannot be read as JSON: {exc}") from exc
    members = cast(dict[str, Any], content) if isinstance(content, dict) else {}
    details: Any = members.get("otherData")
    version = cast(Any, details).get("switchfold_trace") if isinstance(details, dict) else None
    if version != FORMAT_VERSION:
        raise TraceError(
            f"{path} is not a trace of version {FORMAT_VERSION} (its version is {version});"
            " record one with SWITCHFOLD_TRACE"
        )
    try:
        return _timeline(members)
    except (KeyError, TypeError, ValueError) as exc:
        raise TraceError(f"trace {path} is damaged: {exc!r}; record it again") from exc


def trace_path(setting: str, rank: int) -> Path:
    """Return the file of a rank for a value of SWITCHFOLD_TRACE.

    For a folder it is `trace-<rank>.json` in that folder. In a name that ends in .json the rank
    replaces `%r`, or comes before the ending.
    """
    if not setting.endswith(".json"):
        return Path(setting) / f"trace-{rank}.json"
    if "%r" in setting:
        return Path(setting.replace("%r", str(rank)))
    return Path(f"{setting.removesuffix('.json')}-{rank}.json")


def assign_rows(intervals: Sequence[Interval]) -> list[int]:
    """Return the first free row for each interval; intervals are in the order of their begins."""
    free_s: list[float] = []
    rows: list[int] = []
    for begin_s, end_s in intervals:
        row = next((row for row, at_s in enumerate(free_s) if at_s <= begin_s), len(free_s))
        free_s[row : row + 1] = [end_s]
        rows.append(row)
    return rows


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the union of intervals as disjoint intervals in ascending order."""
    merged: list[Interval] = []
    for begin_s, end_s in sorted(intervals):
        if merged and begin_s <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end_s))
        else:
            merged.append((begin_s, end_s))
    return merged


def _timeline(content: Mapping[str, Any]) -> Timeline:
    details = content["otherData"]
    events = content["traceEvents"]
    timeline = Timeline(
        details["rank"], job=details["job"], host=details["host"], max_events=len(events) + 1
    )
    timeline.clock = Clock(boot_id=details["boot_id"], barrier_s=float(details["barrier_s"]))
    timeline.num_dropped = details["dropped_events"]
    for event in events:
        if event["ph"] != "X":
            continue
        if event["tid"] == COMPUTE_ROW:
            begin_s = event["ts"] / MICROSECONDS
            timeline.add_span(
                Span(
                    name=event["name"],
                    category=event["cat"],
                    begin_s=begin_s,
                    end_s=begin_s + event["dur"] / MICROSECONDS,
                )
            )
        elif event["cat"] == TRANSFER:
            timeline.add_transfer(Transfer(**event["args"]))
    return timeline


class _Events:
    """The events of one rank's file."""

    def __init__(self, timeline: Timeline) -> None:
        self.all: list[dict[str, Any]] = []
        self._rank = timeline.rank
        spans, transfers = timeline.spans, timeline.transfers
        spans.sort(key=lambda span: (span.begin_s, -span.end_s))
        transfers.sort(key=lambda transfer: transfer.ready_s)
        rows = assign_rows([(transfer.ready_s, transfer.done_s) for transfer in transfers])
        self._head(timeline.host, num_network_rows=max(rows, default=0) + 1)
        for span in spans:
            interval = (span.begin_s, span.end_s)
            self._slice(COMPUTE_ROW, interval, name=span.name, category=span.category)
        covered = union((span.begin_s, span.end_s) for span in spans)
        for number, (transfer, row) in enumerate(zip(transfers, rows, strict=True)):
            self._transfer(NETWORK_ROW + row, transfer)
            if _is_covered(covered, transfer.ready_s):
                self._arrow(NETWORK_ROW + row, transfer.ready_s, f"{self._rank}.{number}")

    def _head(self, host: str, *, num_network_rows: int) -> None:
        names = ["compute", *(f"network {row + 1}" for row in range(num_network_rows))]
        self._meta("process_name", {"name": f"rank {self._rank} on {host}"})
        self._meta("process_sort_index", {"sort_index": self._rank})
        for row, name in enumerate(names):
            self._meta("thread_name", {"name": name}, row)
            self._meta("thread_sort_index", {"sort_index": row}, row)

    def _transfer(self, row: int, transfer: Transfer) -> None:
        """Add the transfer and, within it, its three parts."""
        moments = (
            transfer.ready_s,
            transfer.first_packet_s,
            transfer.last_result_s,
            transfer.done_s,
        )
        whole = (transfer.ready_s, transfer.done_s)
        self._slice(row, whole, name=transfer.name, category=TRANSFER, details=asdict(transfer))
        for name, begin_s, end_s in zip(_PARTS, moments[:3], moments[1:], strict=True):
            if 0 < begin_s <= end_s:
                self._slice(row, (begin_s, end_s), name=name, category="part")

    def _arrow(self, row: int, at_s: float, name: str) -> None:
        """Add both ends of an arrow from the computation to the transfer."""
        both = {"name": "is ready", "cat": "arrow", "id": name, "bp": "e", "pid": self._rank}
        for phase, place in (("s", COMPUTE_ROW), ("f", row)):
            self.all.append({**both, "ph": phase, "tid": place, "ts": at_s * MICROSECONDS})

    def _slice(
        self,
        row: int,
        interval: Interval,
        *,
        name: str,
        category: str,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        begin_s, end_s = interval
        self.all.append(
            {
                "name": name,
                "cat": category,
                "ph": "X",
                "pid": self._rank,
                "tid": row,
                "ts": begin_s * MICROSECONDS,
                "dur": (end_s - begin_s) * MICROSECONDS,
                "args": dict(details or {}),
            }
        )

    def _meta(self, name: str, details: Mapping[str, Any], row: int = COMPUTE_ROW) -> None:
        place = {"pid": self._rank, "tid": row}
        self.all.append({"name": name, "ph": "M", **place, "args": dict(details)})


def _is_covered(covered: Sequence[Interval], at_s: float) -> bool:
    """Return whether a time lies in one of the intervals of a union."""
    place = bisect_right(covered, (at_s, float("inf"))) - 1
    return place >= 0 and at_s <= covered[place][1]
