# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A job's live transfers as text of at most 80 columns: plans over time, queue, tallies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final

from ...api.operator_api import schedule_pb2 as pb
from ...fabric.trees.tree_text import amount, seconds

_BAR: Final = 46
"""Columns of the time axis."""
_ROWS: Final = 20
"""Transfers in a chart."""
_GROUPS: Final = 8
"""Groups in a table."""
_DROPS: Final = 8
"""Dropped transfers in a table."""
_PAST_S: Final = 10.0
"""A chart begins at most so long ago."""
_PLANNED: Final = ("granted", "arrived", "committed", "withdrawn")
_MARKS: Final = {"granted": "#", "arrived": "+", "committed": "=", "withdrawn": "x"}


def head_lines(report: pb.ScheduleReport) -> list[str]:
    """Return what a job's scheduler does, in few lines."""
    bounds = (
        _mode(report),
        f"div_max {report.div_max:g}" if report.HasField("div_max") else "",
    )
    states = [transfer.state for transfer in report.transfers if _is_update(transfer)]
    waiting = states.count("waiting") + states.count("parked")
    lines = [
        f"job {report.job}: {', '.join(filter(None, bounds))}; for {report.age_s:.0f} s",
        f"  {waiting} wait, {report.open - waiting} under way; {report.decisions} decisions in"
        f" {report.batches} batches",
    ]
    if report.decisions:
        lines.append(
            f"  {seconds(report.decide_s / report.decisions)} of the processor for a decision,"
            f" {seconds(report.longest_s)} for the longest batch"
        )
    if report.models.requested:
        counts = report.models
        relayed = f", {counts.relayed} from workers" if counts.relayed else ""
        lines.append(
            f"  {counts.requested} models asked for, {counts.granted} granted{relayed};"
            f" {counts.ungranted} went without a grant, {counts.withdrawn} were given up"
        )
    if report.num_groups:
        lines.append(
            f"  {report.num_groups} groups of {report.grouped} updates; {report.missing} came too"
            f" late, {report.left} left for the server"
        )
    early = [f"{each.early} of worker {each.worker_id}" for each in report.workers if each.early]
    if early:
        lines.append(f"  came long before their granted times: {', '.join(early)}")
    if report.drops:
        drops = ", ".join(f"{each.count} {each.reason}" for each in report.drops)
        lines.append(f"  dropped: {drops}")
    return lines


def _is_update(transfer: pb.ScheduledTransfer) -> bool:
    return transfer.kind in ("", "update")  # earlier controllers have nothing else to show


def _mode(report: pb.ScheduleReport) -> str:
    if report.HasField("staleness"):
        return f"staleness {report.staleness}" if report.staleness else "synchronous"
    return f"tau_max {report.tau_max}" if report.HasField("tau_max") else "no bound on delays"


def chart_lines(report: pb.ScheduleReport) -> list[str]:
    """Return the plans of grants over time, the present marked; none if nothing was granted.

    Models, and copies of updates for replicas, say so instead of a place.
    """
    shown = [
        each
        for each in report.transfers
        if each.state in _PLANNED
        and (each.state == "granted" or each.end_s > -_PAST_S)
        and (each.start_s or each.end_s)
    ][-_ROWS:]
    if not shown:
        return []
    shown.sort(key=lambda each: each.start_s)
    first_s = max(min(each.start_s for each in shown), -_PAST_S)
    first_s, last_s = min(first_s, -0.1), max(*(each.end_s for each in shown), 0.1)
    scale = _BAR / (last_s - first_s)
    now = min(int(-first_s * scale), _BAR - 1)
    lines = [f"{'worker':>7}{'server':>7}{'place':>8}{'size':>10} {_axis(first_s, last_s, now)}"]
    for each in shown:
        begin = max(0, math.floor((each.start_s - first_s) * scale))
        end = max(begin + 1, min(_BAR, math.ceil((each.end_s - first_s) * scale)))
        bar = list(" " * begin + _MARKS[each.state] * (end - begin))
        bar += [" "] * (_BAR - len(bar))
        if bar[now] == " ":
            bar[now] = "|"
        size = amount(each.size_bytes, "B")
        place = each.sequence if _is_update(each) else each.kind
        lines.append(
            f"{each.worker_id:>7}{each.server_id:>7}{place:>8}{size:>10} {''.join(bar).rstrip()}"
        )
    lines.append("  # granted  + arrived early  = applied  x given up  | now")
    return lines


def _axis(first_s: float, last_s: float, now: int) -> str:
    left, right = f"{first_s:.1f} s", f"{last_s:+.1f} s"
    axis = list(" " * _BAR)
    axis[: len(left)] = left
    axis[_BAR - len(right) :] = right
    if len(left) < now - 1 and now + 2 < _BAR - len(right):
        axis[now - 1 : now + 2] = "now"
    return "".join(axis)


def queue_rows(report: pb.ScheduleReport) -> Iterator[tuple[object, ...]]:
    """Yield what waits, and what was dropped last, for a table."""
    waiting = [each for each in report.transfers if each.state in ("waiting", "parked")]
    dropped = [each for each in report.transfers if each.state == "dropped"]
    for each in (*waiting[:_ROWS], *dropped[-_DROPS:]):
        yield (
            each.worker_id,
            each.server_id,
            amount(each.size_bytes, "B"),
            each.version if _is_update(each) else each.kind,
            each.state,
            f"{-each.requested_s:.1f} s ago",
            each.reason,
        )


def worker_rows(workers: Iterable[pb.ScheduledWorker]) -> Iterator[tuple[object, ...]]:
    """Yield the tally of each worker for a table."""
    for each in workers:
        yield (
            each.worker_id,
            _place(each.host, each.state),
            each.pushes,
            each.grants,
            each.commits,
            each.drops,
            each.withdrawn,
            each.ungranted,
        )


def group_rows(report: pb.ScheduleReport) -> Iterator[tuple[object, ...]]:
    """Yield the last groups for a table."""
    for each in report.groups[-_GROUPS:]:
        state = "open" if each.is_open else "ended"
        parts = (f"{each.missing} missing", each.missing), (f"{each.left} left", each.left)
        notes = [text for text, count in parts if count]
        yield (
            each.group_id,
            f"switch of {each.host}" if each.is_switch else f"{each.aggregator} ({each.host})",
            each.server_id,
            " ".join(str(worker_id) for worker_id in each.worker_ids),
            "" if each.is_switch else f"{each.gathered} of {len(each.worker_ids)}",
            f"{each.start_s:+.1f} .. {each.end_s:+.1f} s",
            ", ".join([state, *notes]),
        )


def server_rows(servers: Iterable[pb.ScheduledServer]) -> Iterator[tuple[object, ...]]:
    """Yield the state of each server for a table."""
    for each in servers:
        place = _place(each.host, each.state)
        yield each.server_id, place, each.version, each.open_sequence, each.next_sequence


def rate_rows(rates: Iterable[pb.HostRates]) -> Iterator[tuple[object, ...]]:
    """Yield estimates of hosts' links, and what they should carry, for a table."""
    for each in rates:
        pairs = (
            each.up_bits_per_s,
            each.link_up_bits_per_s,
            each.down_bits_per_s,
            each.link_down_bits_per_s,
        )
        yield each.host, *(amount(rate, "bit/s") for rate in pairs)


def _place(host: str, state: str) -> str:
    return host if state == "attached" else f"{host} ({state})".strip()
