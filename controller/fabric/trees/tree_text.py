# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Trees and their cost as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ...api.operator_api import fabric_pb2 as pb
from .tree_report import is_between_switches

_MOST_WORKERS: Final = 8
"""A switch's workers are listed up to this number, then counted."""


def summary_lines(report: pb.TreeReport) -> list[str]:
    """Return the plan and its cost in a few lines."""
    subject = f"job {report.job}: " if report.job else ""
    size = amount(report.tensor_bytes, "B")
    lines = [f"{subject}{report.label}; {report.num_workers} workers"]
    if report.reason:
        lines.append(f"  because: {report.reason}")
    if not report.trees:
        if report.seconds:
            time = seconds(report.seconds)
            lines.append(f"  allreduce of {amount(report.tensor_bytes, 'B')}: {time} by a ring")
        for alternative in report.alternatives:
            lines.append(f"  instead: {alternative.label}, {seconds(alternative.seconds)}")
        return lines
    slowest = max(report.loads, key=lambda load: load.seconds)
    bound = f"at best {seconds(report.lower_bound_s)} with any trees over the free links"
    if report.seconds < report.lower_bound_s:
        bound = "but these trees use links or switches that are down"
    lines += [
        f"  allreduce of {size}: {seconds(report.seconds)} predicted, {bound}",
        f"  slowest link: {slowest.sender} -> {slowest.receiver}, "
        f"{amount(slowest.predicted_bytes, 'B')} at "
        f"{amount(slowest.residual_bits_per_s, 'bit/s')}",
    ]
    for alternative in report.alternatives:
        ratio = alternative.seconds / report.seconds
        lines.append(
            f"  next best: {alternative.label}, {seconds(alternative.seconds)} ({ratio:.2f} times)"
        )
    return lines


def tree_lines(report: pb.TreeReport) -> Iterator[str]:
    """Yield every tree, root first, children indented."""
    for number, tree in enumerate(report.trees, 1):
        identity = f", id {tree.tree_id}" if tree.tree_id else ""
        slots = f", {tree.slot_count} slots" if tree.slot_count else ""
        title = f"tree {number} of {len(report.trees)}: {tree.share:.1%} of the bytes"
        yield f"{title}{slots}{identity}"
        yield from _branch(tree, tree.nodes[0], "", "")


def load_rows(report: pb.TreeReport, *, has_hosts: bool) -> list[list[str]]:
    """Return rows under `load_columns`: links between switches, with `has_hosts` all."""
    return [
        [
            f"{load.sender} -> {load.receiver}",
            f"{load.switch} port {load.port}",
            amount(load.rate_bits_per_s, "bit/s"),
            amount(load.residual_bits_per_s, "bit/s"),
            amount(load.predicted_bytes, "B"),
            seconds(load.seconds),
            *(_measured(load) if report.is_measured else ()),
        ]
        for load in report.loads
        if has_hosts or is_between_switches(report, load)
    ]


def load_columns(report: pb.TreeReport) -> list[str]:
    """Return the heads of a table of links: three more where they were measured."""
    columns = ["link", "counted at", "rate", "free", "predicted", "time"]
    return columns + (["expected", "measured", "off by"] if report.is_measured else [])


def _measured(load: pb.ReportedLoad) -> list[str]:
    off = "-"
    if load.expected_bytes:
        off = f"{load.measured_bytes / load.expected_bytes - 1:+.2%}"
    return [amount(load.expected_bytes, "B"), amount(load.measured_bytes, "B"), off]


def _branch(tree: pb.ReportedTree, node: pb.ReportedNode, first: str, others: str) -> Iterator[str]:
    slots = ""
    if tree.slot_count:
        slots = f"  slots {node.slot_base}..{node.slot_base + tree.slot_count - 1}"
    where = f"  port {node.port} up to port {node.parent_port}" if node.parent else "  (root)"
    yield f"{first}{node.switch}{where}{slots}"
    below = [child for child in tree.nodes if child.parent == node.switch]
    workers = _worker_lines(node.workers)
    for position, line in enumerate(workers):
        is_last = not below and position == len(workers) - 1
        yield f"{others}{'└─ ' if is_last else '├─ '}{line}"
    for position, child in enumerate(below):
        is_last = position == len(below) - 1
        yield from _branch(
            tree,
            child,
            f"{others}{'└─ ' if is_last else '├─ '}",
            f"{others}{'   ' if is_last else '│  '}",
        )


def _worker_lines(workers: Sequence[pb.ReportedWorker]) -> list[str]:
    lines = [f"{w.host}  port {w.port}  worker {w.worker_id}" for w in workers]
    if len(lines) <= _MOST_WORKERS:
        return lines
    more = len(lines) - _MOST_WORKERS + 1
    return [*lines[: _MOST_WORKERS - 1], f"{more} more workers"]


def amount(value: float, unit: str) -> str:
    """Return a number of bytes or bits/s with four digits and a decimal prefix."""
    prefixes = iter(("", "k", "M", "G"))
    prefix = next(prefixes)
    while abs(value) >= 1000 and prefix != "T":
        value /= 1000
        prefix = next(prefixes, "T")
    return f"{value:.4g} {prefix}{unit}"


def seconds(value: float) -> str:
    """Return a time with four digits."""
    if value < 1e-3:
        return f"{value * 1e6:.4g} us"
    return f"{value * 1e3:.4g} ms" if value < 1 else f"{value:.4g} s"
