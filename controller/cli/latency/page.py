# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The report as one HTML page that needs no network."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

import numpy as np

from ....hostlib.latency.schema import OPERATIONS, OUTCOMES
from ..report_page import html_page, html_table
from . import figures
from .run_files import Columns, LatencyRun
from .statistics import (
    KINDS,
    PERCENTILES,
    Numbers,
    PartSummary,
    Windows,
    arithmetic,
    breakdown,
    call_times_us,
    distinct_per_window,
    intervals_us,
    load,
    of_kind,
    of_operation,
    sorted_updates,
    top_shares,
    whole_us,
)

TOP: Final = (1, 10, 100, 1000, 10_000, 20_000, 100_000)
"""Numbers of parameters whose share of the updates is shown."""
_STYLE: Final = """
figure { margin: 1rem 0; } figure img { max-width: 100%; height: auto; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(26rem, 1fr)); gap: 1rem; }
"""
_PARTS_TEXT: Final = """
<p class="note">W_proc: the worker parses the answer. W_queue: the answer waits in the worker's
event loop. PS_proc: the server's handler. PS_queue: the request waits in the server's event loop.
N_tx: the rest between sending and the answer's arrival, which is both directions of the network and
both network stacks. Switch wait, of hot pushes: from the switch's receipt to the server's decision;
the sum waits for other workers in it. N_tx of a hot push is that of the worker's last hot pull.
PS_wait: the server waits for its log's disk, for slower workers, or for the
receipt that several pushes share. Each is a difference of two readings of one clock, or of such
differences.</p>
"""


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """What the reader of the page may choose."""

    window_us: int = 1000
    by_connection: bool = False
    """Count connections as different senders, not workers."""


def page(runs: Sequence[LatencyRun], options: ReportOptions) -> str:
    """Return the page of one or several runs."""
    body = [f"<h1>Latency of {escape(', '.join(run.name for run in runs))}</h1>"]
    if len(runs) > 1:
        body += _scale(runs)
    for run in runs:
        body += _run(run, options)
    return html_page(f"Latency: {', '.join(run.name for run in runs)}", body, _STYLE)


def _run(run: LatencyRun, options: ReportOptions) -> list[str]:
    return [
        f"<h2>{escape(run.name)}</h2>",
        *_summary(run),
        *_latency(run),
        *_parts(run),
        *_sizes(run),
        *_intervals(run),
        *_concurrency(run, options),
        *_skew(run),
        *_load(run),
    ]


def _summary(run: LatencyRun) -> list[str]:
    outcomes = run.requests["outcome"]
    counted = [(name, int((outcomes == number).sum())) for number, name in enumerate(OUTCOMES)]
    told = ", ".join(f"{count:,} {name}" for name, count in counted if count)
    found = [
        f"<p>Workers: {run.num_workers}. Servers: {run.num_servers}. Requests: {outcomes.size:,}"
        f" ({told}). The figures are of answered requests.</p>"
    ]
    if run.is_sample:
        found.append(f"<p>{_sample(run)}</p>")
    if run.dropped:
        found.append(
            f"<p><strong>{run.dropped:,} rows are missing: a disk was too slow, or full.</strong>"
            "</p>"
        )
    return found


def _sample(run: LatencyRun) -> str:
    """Say which calls are recorded, and what that means for the figures."""
    shares = [counts.share for counts in run.calls_by_worker.values()]
    return (
        f"Recorded: {percent(run.calls.share)} of the workers' calls, {run.calls.recorded:,} of"
        f" {run.calls.made:,} pushes and pulls (by worker: {percent(min(shares))} to"
        f" {percent(max(shares))}). Figures of requests and calls are of this sample, in which the"
        " first calls of a run have more weight; intervals are those in its unbroken stretches."
        " Concurrency, updates and load are of all."
    )


def percent(share: float) -> str:
    """Return a share, rounded down so that 100 % means all."""
    return f"{int(1000 * share) / 10:g} %"


def _latency(run: LatencyRun) -> list[str]:
    whole = {name: whole_us(columns) for name, columns in _by_kind(run.answered).items()}
    calls = {name: call_times_us(of_operation(run.answered, name)) for name in OPERATIONS}
    rows = [
        (f"{what}, {name}", f"{values.size:,}", *_percentiles(values), f"{values.max():,.0f}")
        for what, found in (("request", whole), ("call", calls))
        for name, values in found.items()
        if values.size
    ]
    return [
        "<h3>Latency</h3>",
        '<div class="pair">',
        _picture(
            figures.distributions(whole, "time of a request (µs)"),
            "Cumulative distribution of the time of a request, to one server or its switch.",
        ),
        _picture(
            figures.distributions(calls, "time of a push or pull (µs)"),
            "The same of whole pushes and pulls, which end with the last of their requests.",
        ),
        "</div>",
        html_table(("µs", "number", "mean", *(f"{p} %" for p in PERCENTILES), "most"), rows),
    ]


def _parts(run: LatencyRun) -> list[str]:
    parts = {name: breakdown(one) for name, one in _by_kind(run.answered).items()}
    found = [
        "<h3>Where the time goes</h3>",
        _picture(figures.stacked_parts(parts), "Shares of the whole time of all requests."),
        _PARTS_TEXT,
    ]
    for name, summaries in parts.items():
        if summaries:
            heads = (f"{name}, µs", "mean", *(f"{p} %" for p in PERCENTILES), "share")
            found.append(html_table(heads, [_part_row(part) for part in summaries]))
    estimate = arithmetic(run.answered)
    if estimate is not None:
        difference, share = estimate
        found.append(
            f"<p>Arithmetic: a push's mean PS_proc less a pull's is {difference:,.1f} µs,"
            f" {100 * share:.1f} % of the push's PS_proc. This takes a read to cost what a write"
            " costs; it is an estimate of the optimiser's part, and may be negative.</p>"
        )
    return found


def _part_row(part: PartSummary) -> tuple[str, ...]:
    if not part.is_measured:
        return part.name, *["\N{EN DASH}"] * (len(PERCENTILES) + 2)
    numbers = (f"{value:,.1f}" for value in (part.mean, *part.percentiles))
    return part.name, *numbers, f"{100 * part.share:.1f} %"


def _sizes(run: LatencyRun) -> list[str]:
    requests = _by_kind(run.answered)
    return [
        "<h3>Sizes of messages</h3>",
        '<div class="pair">',
        *(
            _picture(
                figures.distributions(
                    {name: columns[column] for name, columns in requests.items()},
                    f"{what} (bytes)",
                ),
                caption,
            )
            for column, what, caption in (
                ("request_bytes", "request", "Requests, with their headers."),
                (
                    "response_bytes",
                    "answer",
                    "Answers: rows of a pull, the receipt of a push, decisions of a hot push.",
                ),
            )
        ),
        "</div>",
    ]


def _intervals(run: LatencyRun) -> list[str]:
    requests = {"all": run.requests, **_by_kind(run.requests)}
    recorded = run.requests if run.is_sample else None
    intervals = {name: intervals_us(columns, recorded) for name, columns in requests.items()}
    caption = "Times between consecutive requests of one worker to one server."
    if run.is_sample:
        caption = f"{caption} Of a sample: only where all calls between them were recorded."
    return [
        "<h3>Intervals between requests</h3>",
        _picture(figures.interval_histogram(intervals), caption),
    ]


def _concurrency(run: LatencyRun, options: ReportOptions) -> list[str]:
    if not run.arrivals["worker"].size:
        return ["<h3>Concurrency</h3>", "<p>No server has logged arrivals.</p>"]
    senders = "connections" if options.by_connection else "workers"
    windows = distinct_per_window(
        run.arrivals, options.window_us, by_connection=options.by_connection
    )
    heads = ("server", "windows with requests", "without", "mean", "50 %", "99 %", "most")
    return [
        "<h3>Concurrency</h3>",
        _picture(
            figures.concurrency(windows, senders, options.window_us),
            f"How many different {senders} send to a server in {options.window_us} µs.",
        ),
        html_table(heads, [_window_row(server, found) for server, found in windows.items()]),
    ]


def _window_row(server: int, windows: Windows) -> tuple[str, ...]:
    counts = windows.counts
    middle, high = np.percentile(counts, (50, 99))
    return (
        str(server),
        f"{counts.size:,}",
        f"{windows.num_empty:,}",
        f"{counts.mean():.1f}",
        f"{middle:.0f}",
        f"{high:.0f}",
        str(counts.max()),
    )


def _skew(run: LatencyRun) -> list[str]:
    totals = sorted_updates(run.updates)
    if not totals.any():
        return ["<h3>Updates</h3>", "<p>No server has written the updates of its rows.</p>"]
    rows = [
        (f"{count:,}", f"{100 * count / totals.size:.3g} %", f"{100 * share:.1f} %")
        for count, share in top_shares(totals, TOP)
    ]
    return [
        "<h3>Updates</h3>",
        _picture(
            figures.skew(totals),
            f"{totals.size:,} parameters with {int(totals.sum()):,} updates in all.",
        ),
        html_table(("parameters", "of all parameters", "of all updates"), rows),
    ]


def _load(run: LatencyRun) -> list[str]:
    found = {server: one for server, one in load(run.samples).items() if one[0].size}
    if not found:
        return ["<h3>Load of the servers</h3>", "<p>No server ran for two samples.</p>"]
    in_mb = {server: (at, used, bytes_ / 1e6) for server, (at, used, bytes_) in found.items()}
    return [
        "<h3>Load of the servers</h3>",
        '<div class="pair">',
        _picture(
            figures.load_over_time(in_mb, 1, "processors in use"),
            "Processor time per time, of the server's process.",
        ),
        _picture(figures.load_over_time(in_mb, 2, "memory (MB)"), "Resident memory."),
        "</div>",
    ]


def _scale(runs: Sequence[LatencyRun]) -> list[str]:
    rows: list[tuple[str, ...]] = []
    names: list[str] = []
    processors: list[float] = []
    for run in runs:
        used = [one[1].mean() for one in load(run.samples).values() if one[1].size]
        scale = f"{run.num_workers}, {run.num_servers}"
        shown = [""]
        if used:
            names.append(f"{scale}\n{run.name}")
            processors.append(float(np.mean(used)))
            shown[0] = f"{np.mean(used):.2f}"
        for columns in (of_kind(run.answered, name) for name in KINDS):
            shown.append("")
            if columns["rtt_us"].size:
                shown[-1] = f"{np.median(whole_us(columns)):,.0f}"
        rows.append((run.name, str(run.num_workers), str(run.num_servers), *shown))
    heads = ("run", "workers", "servers", "processors in use by a server")
    found = [
        "<h2>Over scale</h2>",
        html_table((*heads, *(f"{name}: median µs" for name in KINDS)), rows),
    ]
    if names:
        found.append(
            _picture(
                figures.load_over_scale(names, processors),
                "Mean processor use of a server, by run.",
            )
        )
    return found


def _by_kind(requests: Columns) -> dict[str, Columns]:
    """Return the requests of each kind; hot ones only if there are any."""
    found = {name: of_kind(requests, name) for name in KINDS}
    return {name: own for name, own in found.items() if name in OPERATIONS or own["worker"].size}


def _percentiles(values: Numbers) -> list[str]:
    return [f"{one:,.0f}" for one in (values.mean(), *np.percentile(values, PERCENTILES))]


def _picture(svg: str, caption: str) -> str:
    data = base64.b64encode(svg.encode()).decode()
    text = escape(caption, quote=True)
    return (
        f'<figure><img alt="{text}" src="data:image/svg+xml;base64,{data}">'
        f"<figcaption>{text}</figcaption></figure>"
    )
