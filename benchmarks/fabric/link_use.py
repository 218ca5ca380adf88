# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How much of the server's link a run has used, and what workers did meanwhile."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.fabric.settings import RateOverTime
from switchfold.bmv2_topos import Testbed

SAMPLE_S: Final = 0.25
"""Between two looks at the kernel's counters."""
IDLE_SHARE: Final = 0.1
"""A direction that carries less than this share of what it could is idle."""
BUSY_SHARE: Final = 0.9
"""One that carries at least this share is busy."""
PHASES: Final = (
    "waits for a model",
    "gets a model",
    "computes",
    "waits for its grant",
    "sends",
    "waits for the commit",
)
"""Of a worker's iteration, in their order."""


@dataclass(frozen=True, kw_only=True)
class LinkSample:
    """What the kernel had counted of the server's link at a moment."""

    time_s: float
    """On the machine's monotonic clock."""
    in_bytes: int
    """Towards the server, in Ethernet frames without preamble and FCS, as links are shaped."""
    out_bytes: int


@dataclass(kw_only=True)
class LinkRecord:
    """Samples of one run."""

    samples: list[LinkSample] = field(default_factory=list[LinkSample])


@contextmanager
def sampled_link(testbed: Testbed, host: str) -> Generator[LinkRecord]:
    """Look at a host's link again and again while the body runs."""
    record, stop = LinkRecord(), threading.Event()

    def look() -> None:
        (found,) = [each for each in testbed.link_bytes() if each.host == host]
        record.samples.append(
            LinkSample(
                time_s=time.monotonic(),
                in_bytes=found.to_host_bytes,
                out_bytes=found.from_host_bytes,
            )
        )

    def watch() -> None:
        while not stop.wait(SAMPLE_S):
            look()

    look()
    thread = threading.Thread(target=watch, name="link-use")
    thread.start()
    try:
        yield record
    finally:
        stop.set()
        thread.join()
        look()


def link_use(
    samples: Sequence[LinkSample],
    rates: RateOverTime,
    began_s: float,
    spent: Sequence[Mapping[str, Sequence[tuple[float, float]]]],
) -> dict[str, Any]:
    """Return by direction the share used, and the shares of time it was busy and idle.

    `spent`: by worker and phase, the times that it spent there. Beside each direction's shares is
    how many workers were in each phase on average, and how many while it was idle.
    """
    server = rates.size.hosts[-1]
    steps = [
        (
            earlier.time_s,
            later.time_s,
            later.in_bytes - earlier.in_bytes,
            later.out_bytes - earlier.out_bytes,
        )
        for earlier, later in itertools.pairwise(samples)
        if later.time_s > earlier.time_s >= began_s
    ]
    phases = [_workers_in(spent, start_s, end_s) for start_s, end_s, _, _ in steps]
    found: dict[str, Any] = {"workers": _means(phases)}
    for name, place in (("in", 2), ("out", 3)):
        used: list[float] = []
        weights: list[float] = []
        for step in steps:
            length_s = step[1] - step[0]
            share = rates.share(server, max(0.0, (step[0] + step[1]) / 2 - began_s))
            weights.append(length_s * share)
            used.append(8 * step[place] / (rates.size.rate_bits_per_s * length_s * share))
        total = sum(weights) or 1.0
        idle = [phase for phase, each in zip(phases, used, strict=True) if each < IDLE_SHARE]
        found[name] = {
            "used": sum(u * w for u, w in zip(used, weights, strict=True)) / total,
            "busy": sum(each >= BUSY_SHARE for each in used) / max(1, len(used)),
            "idle": len(idle) / max(1, len(used)),
            "workers_while_idle": _means(idle),
        }
    return found


def phase_times(
    rows: Sequence[Mapping[str, Any]],
    reads_s: Sequence[float],
    sent_s: Sequence[tuple[float, float]],
) -> dict[str, list[tuple[float, float]]]:
    """Return by phase when a worker was in it.

    `rows` are its iterations, `reads_s` when the server has read models for it, and `sent_s` when
    its updates began to leave and were at the server. Without one of these, an iteration has
    no wait there.
    """
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        asked_s, got_s, pushed_s = row["asked_s"], row["got_s"], row["pushed_s"]
        read_s = _last_within(reads_s, asked_s, got_s, asked_s)
        first_s, last_s = pushed_s, row["done_s"]
        for began_s, ended_s in sent_s:
            if pushed_s <= ended_s <= row["done_s"] + SAMPLE_S:
                first_s, last_s = max(pushed_s, began_s), min(ended_s, row["done_s"])
        bounds = (asked_s, read_s, got_s, pushed_s, first_s, last_s, row["done_s"])
        for phase, start_s, end_s in zip(PHASES, bounds, bounds[1:], strict=False):
            if end_s > start_s:
                found[phase].append((start_s, end_s))
    return dict(found)


def sent_times(log: Path, job: str, to_monotonic_s: float) -> dict[int, list[tuple[float, float]]]:
    """Return by worker when its granted updates began to leave, and were at the server.

    By the controller's timeline; `to_monotonic_s` is added to its times.
    """
    ended: dict[tuple[int, int], float] = {}
    observed: dict[tuple[int, int], tuple[float, float]] = {}
    with log.open(encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            if event["job"] != job:
                continue
            key, time_s = (event.get("worker"), event.get("transfer")), event["time"]
            if event["event"] == "delivered":
                ended[key] = time_s + to_monotonic_s
            elif event["event"] == "observed":
                last_s = time_s + to_monotonic_s
                observed[key] = last_s - event["seconds"], last_s
    found: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for (worker, transfer), (first_s, last_s) in observed.items():
        found[worker].append((first_s, ended.get((worker, transfer), last_s)))
    return dict(found)


def _last_within(times_s: Iterable[float], start_s: float, end_s: float, default: float) -> float:
    return max((each for each in times_s if start_s <= each <= end_s), default=default)


def _workers_in(
    spent: Sequence[Mapping[str, Sequence[tuple[float, float]]]], start_s: float, end_s: float
) -> dict[str, float]:
    """Return by phase how many workers were in it, on average over a time."""
    return {
        phase: sum(
            max(0.0, min(until_s, end_s) - max(from_s, start_s))
            for worker in spent
            for from_s, until_s in worker.get(phase, ())
        )
        / (end_s - start_s)
        for phase in PHASES
    }


def _means(several: Sequence[Mapping[str, float]]) -> dict[str, float]:
    if not several:
        return {}
    return {phase: sum(each[phase] for each in several) / len(several) for phase in PHASES}
