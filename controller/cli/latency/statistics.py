# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the report computes from a run's columns."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....hostlib.latency.schema import OPERATIONS, PATHS
from .run_files import Columns

Numbers = NDArray[Any]
PARTS: Final = {
    "w_proc_us": "W_proc",
    "w_queue_us": "W_queue",
    "ps_proc_us": "PS_proc",
    "ps_queue_us": "PS_queue",
    "n_tx_us": "N_tx",
    "switch_wait_us": "switch wait",
    "ps_wait_us": "PS_wait",
}
"""The parts of a request's time, by column: the five of the study, then two of Switchfold."""
PERCENTILES: Final = (50, 95, 99)
KINDS: Final = {
    "push": ("push", "server"),
    "pull": ("pull", "server"),
    "hot push": ("push", "switch"),
    "hot pull": ("pull", "switch"),
}
"""Operation and path of requests, by what the page calls them."""


class PartSummary(NamedTuple):
    """A part of the time of one operation; microseconds."""

    name: str
    is_measured: bool
    """Whether any request has it; the other numbers are 0 if not."""
    mean: float
    percentiles: tuple[float, ...]
    """PERCENTILES."""
    share: float
    """Of the whole time; all parts add up to 1."""


class Windows(NamedTuple):
    """How many different senders there were in each window with a request."""

    numbers: Numbers
    """Of the windows, rising: the time divided by a window's length."""
    counts: Numbers

    @property
    def num_empty(self) -> int:
        """Windows between the first and the last request that had none."""
        if not self.numbers.size:
            return 0
        return int(self.numbers[-1] - self.numbers[0]) + 1 - self.numbers.size


def of_operation(columns: Columns, operation: str) -> Columns:
    """Return the rows of one operation."""
    chosen = columns["operation"] == OPERATIONS.index(operation)
    return {name: values[chosen] for name, values in columns.items()}


def of_kind(columns: Columns, kind: str) -> Columns:
    """Return the rows of one of KINDS."""
    operation, path = KINDS[kind]
    found = of_operation(columns, operation)
    chosen = found["path"] == PATHS.index(path)
    return {name: values[chosen] for name, values in found.items()}


def whole_us(requests: Columns) -> Numbers:
    """Return how long requests took: from their sending until their answers are parsed."""
    return requests["rtt_us"] + requests["w_queue_us"] + requests["w_proc_us"]


def breakdown(requests: Columns) -> list[PartSummary]:
    """Return the parts of answered requests' time; nothing without requests."""
    total = float(whole_us(requests).sum())
    if not total:
        return []
    found: list[PartSummary] = []
    for column, name in PARTS.items():
        measured = requests[column].astype(np.float64)
        values = np.nan_to_num(measured)
        percentiles = tuple(float(one) for one in np.percentile(values, PERCENTILES))
        mean, share = float(values.mean()), float(values.sum() / total)
        is_measured = bool(np.isfinite(measured).any())
        found.append(PartSummary(name, is_measured, mean, percentiles, share))
    return found


def arithmetic(requests: Columns) -> tuple[float, float] | None:
    """Return mean PS_proc of pushes less that of pulls (us), and its share of the pushes' PS_proc.

    The study's estimate: reading a row costs what writing it costs. None if an operation is
    missing.
    """
    push, pull = (of_kind(requests, name)["ps_proc_us"] for name in ("push", "pull"))
    if not push.size or not pull.size:
        return None
    difference = float(push.mean() - pull.mean())
    return difference, difference / float(push.mean()) if push.any() else 0.0


def call_times_us(requests: Columns) -> Numbers:
    """Return how long whole pushes or pulls took: until the last of their requests was done."""
    worker, call = requests["worker"], requests["call"]
    order = np.lexsort((call, worker))
    begun = requests["sent_us"][order]
    ended = begun + whole_us(requests)[order]
    names = np.stack([worker[order], call[order]])
    first = np.flatnonzero(np.r_[True, (names[:, 1:] != names[:, :-1]).any(axis=0)])
    if not order.size:
        return begun
    return np.maximum.reduceat(ended, first) - np.minimum.reduceat(begun, first)


def intervals_us(requests: Columns, recorded: Columns | None = None) -> Numbers:
    """Return the times between consecutive requests of a worker to a server.

    `recorded`: all requests of a sample of calls. Times in which a worker has begun calls that are
    not in the sample are left out.
    """
    order = np.lexsort((requests["sent_us"], requests["server"], requests["worker"]))
    sent, server, worker = (requests[name][order] for name in ("sent_us", "server", "worker"))
    is_pair = (server[1:] == server[:-1]) & (worker[1:] == worker[:-1])
    if recorded is not None and recorded["call"].size:
        workers, most = np.unique(recorded["worker"]), int(recorded["call"].max())
        codes, own = (
            np.searchsorted(workers, each["worker"]) * (most + 1) + each["call"]
            for each in (recorded, requests)
        )
        passed = np.diff(requests["call"][order])
        is_pair &= passed >= 0
        is_pair &= np.diff(np.searchsorted(np.unique(codes), own[order])) == passed
    return np.diff(sent)[is_pair]


def distinct_per_window(
    arrivals: Columns, window_us: int, *, by_connection: bool = False
) -> dict[int, Windows]:
    """Return, by server, how many workers (or their connections) sent in windows of this length."""
    found: dict[int, Windows] = {}
    for server in np.unique(arrivals["server"]).tolist():
        own = arrivals["server"] == server
        names = [arrivals["arrived_us"][own] // window_us, arrivals["worker"][own]]
        if by_connection:
            names.append(arrivals["connection"][own])
        senders = np.unique(np.stack([name.astype(np.int64) for name in names]), axis=1)
        found[server] = Windows(*np.unique(senders[0], return_counts=True))
    return found


def sorted_updates(updates: Columns) -> Numbers:
    """Return the totals of all parameters, the largest first.

    A server that was started again with its log counts on, so the highest of its counts is the
    total.
    """
    names = np.stack([updates[name].astype(np.int64) for name in ("table", "key")])
    distinct, which = np.unique(names, axis=1, return_inverse=True)
    totals = np.zeros(distinct.shape[1], np.int64)
    np.maximum.at(totals, which.reshape(-1), updates["updates"].astype(np.int64))
    return np.sort(totals)[::-1]


def top_shares(totals: Numbers, counts: tuple[int, ...]) -> list[tuple[int, float]]:
    """Return which share of all updates the first parameters have, for numbers of them."""
    running = np.cumsum(totals)
    if not running.size or not running[-1]:
        return []
    return [(k, float(running[k - 1] / running[-1])) for k in counts if k <= running.size]


def load(samples: Columns) -> dict[int, tuple[Numbers, Numbers, Numbers]]:
    """Return, by server, seconds since its first sample, processors in use, and resident bytes."""
    found: dict[int, tuple[Numbers, Numbers, Numbers]] = {}
    for server in np.unique(samples["server"]).tolist():
        own = samples["server"] == server
        order = np.argsort(samples["at_us"][own], kind="stable")
        at, spent, resident = (
            samples[name][own][order] for name in ("at_us", "processor_us", "resident_bytes")
        )
        passed, used = np.diff(at), np.diff(spent)
        is_one_process = (passed > 0) & (used >= 0)  # another one begins with 0
        in_use = used[is_one_process] / passed[is_one_process]
        at_s = (at[1:][is_one_process] - at[0]) / 1e6
        found[server] = at_s, in_use, resident[1:][is_one_process]
    return found
