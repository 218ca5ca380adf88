# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The timeline that a controller writes of live transfers, as the requests of a job."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.simulator.timeline import TimelineError

_KEYS: Final = ("time", "event", "job", "worker", "server", "transfer")


@dataclass(kw_only=True)
class LiveRequest:
    """One update from its request on; times are seconds since the job's first line."""

    worker: int
    server: int
    bytes: int
    requested_s: float
    granted_s: float | None = None
    delivered_s: float | None = None
    """When its last byte was at its server."""
    committed_s: float | None = None
    is_given_up: bool = False
    """It was dropped, withdrawn or refused, or came without a grant: its path is not planned."""

    @property
    def is_scheduled(self) -> bool:
        """Whether it was granted, and is applied."""
        return self.committed_s is not None and not self.is_given_up


def is_live_log(path: Path) -> bool:
    """Return whether a file is a controller's timeline; the simulator's has `time_s`."""
    with path.open(encoding="utf-8") as file:
        first = next((line for line in file if line.strip()), "{}")
    try:
        fields: Any = json.loads(first)
    except ValueError:
        return False
    return isinstance(fields, dict) and "time" in fields and "time_s" not in fields


def read_live_log(path: Path, job: str | None = None) -> list[LiveRequest]:
    """Return the requests of a job in their order; TimelineError names the first wrong line.

    `job` may be left out if the file has one job alone.
    """
    requests: dict[tuple[int, int], LiveRequest] = {}
    jobs: set[str] = set()
    first_s: float | None = None
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if not line.strip():
            continue
        fields = _parse(line, f"{path}, line {number}")
        if job is not None and fields["job"] != job:
            continue
        if _is_of_allreduce(fields):
            continue  # it is of no update
        jobs.add(fields["job"])
        first_s = fields["time"] if first_s is None else first_s
        _note(requests, fields, float(fields["time"]) - float(first_s))
    if len(jobs) > 1:
        raise TimelineError(f"{path} has the jobs {', '.join(sorted(jobs))}: name one with --job")
    if not any(request.is_scheduled for request in requests.values()):
        raise TimelineError(
            f"{path} has no update that was granted and applied"
            f"{f' of job {job!r}' if job else ''}: record a run with `--transfer-log` first"
        )
    return sorted(requests.values(), key=lambda request: request.requested_s)


def _note(
    requests: dict[tuple[int, int], LiveRequest], fields: dict[str, Any], time_s: float
) -> None:
    key, event = (fields["worker"], fields["transfer"]), fields["event"]
    if event == "requested":
        requests[key] = LiveRequest(
            worker=fields["worker"],
            server=fields["server"],
            bytes=fields["bytes"],
            requested_s=time_s,
        )
    request = requests.get(key)
    if request is None:
        return  # asked for before the file begins, or never
    match event:
        case "granted":
            request.granted_s = time_s
        case "delivered":
            request.delivered_s = time_s
        case "committed":
            request.committed_s = time_s
        case "dropped" | "withdrawn" | "refused" | "ungranted":
            request.is_given_up = True
        case _:
            pass


def _parse(line: str, place: str) -> dict[str, Any]:
    try:
        fields: dict[str, Any] = dict(json.loads(line))
    except (ValueError, TypeError) as exc:
        raise TimelineError(f"{place} is no event of live transfers ({exc!r})") from exc
    missing = [name for name in _KEYS if name not in fields]
    # An update that nobody asked for has no server in `observed`, nor an id.
    is_unasked = fields.get("event") == "observed" and missing == ["server"]
    if missing and not is_unasked and not _is_of_allreduce(fields):
        raise TimelineError(f"{place} is no event of live transfers: no {', '.join(missing)}")
    return fields


def _is_of_allreduce(fields: dict[str, Any]) -> bool:
    return str(fields.get("event")).startswith("allreduce_") and "job" in fields
