# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold report`: pages of what runs have logged."""

from __future__ import annotations

import math
from pathlib import Path

import click

from .latency.page import ReportOptions, page, percent
from .latency.run_files import load_run
from .output import json_option, print_json
from .report_page import write_page
from .timeline.document import transfers_document
from .timeline.log_file import load_recording
from .timeline.page import notes, transfers_page
from .timeline.window import window_of

_EXIT_CODES = "Exit codes: 0 done, 1 a run cannot be read, or the page cannot be written."


@click.group(epilog=_EXIT_CODES)
def report() -> None:
    """Make pages of what runs have logged."""


@report.command(epilog=_EXIT_CODES)
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("latency.html"),
    show_default=True,
    help="Page to write.",
)
@click.option(
    "--window-us",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    metavar="US",
    help="Length of the windows in which senders are counted.",
)
@click.option(
    "--by",
    "sender",
    type=click.Choice(["worker", "connection"]),
    default="worker",
    show_default=True,
    help="What counts as one sender.",
)
def latency(runs: tuple[Path, ...], out: Path, window_us: int, sender: str) -> None:
    """Show where the time of requests to parameter servers goes, as one HTML page.

    RUN is a directory with the files that workers (ClientOptions.latency_log) and servers
    (`switchfold ps run --latency-log`) have written. With several runs, the page compares the load
    of their servers, too.

    \b
    Examples:
      switchfold report latency run1
      switchfold report latency workers-4 workers-8 --out scale.html
    """  # fmt: skip
    loaded = [load_run(path) for path in runs]
    options = ReportOptions(window_us=window_us, by_connection=sender == "connection")
    text = page(loaded, options)
    write_page(out, text)
    requests = sum(run.requests["worker"].size for run in loaded)
    click.echo(f"{out}: {requests:,} requests of {len(loaded)} runs")
    for run in loaded:
        if run.is_sample:
            click.echo(f"{run.name}: {percent(run.calls.share)} of the calls were recorded")


@report.command(epilog=_EXIT_CODES)
@click.argument("log", type=click.Path(path_type=Path), metavar="LOG")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    show_default="transfers.html",
    help="Page to write.",
)
@click.option("--job", metavar="NAME", help="Job to show; needed if the timeline has several.")
@click.option(
    "--from",
    "from_s",
    type=click.FloatRange(min=0),
    metavar="S",
    help="Where the chart begins, in seconds since the job's first event.",
)
@click.option(
    "--until",
    "until_s",
    type=click.FloatRange(min=0, min_open=True),
    metavar="S",
    help="Where the chart ends.",
)
@json_option
def transfers(
    log: Path,
    *,
    out: Path | None,
    job: str | None,
    from_s: float | None,
    until_s: float | None,
    is_json: bool,
) -> None:
    """Show a recorded timeline of scheduled transfers, as one HTML page.

    LOG is the file of `switchfold controller run --transfer-log`. The page has a chart of updates
    and models over time with their granted spans, the queues, drops with their reasons, and how
    late transfers were. A chart has 2,000 transfers at most; --from and --until choose a part.
    Tables are of the whole recording. With --json, a page is only written to --out.

    \b
    Examples:
      switchfold report transfers transfers.jsonl
      switchfold report transfers transfers.jsonl --job train --from 60 --until 120 --out part.html
      switchfold report transfers transfers.jsonl --json
    """  # fmt: skip
    if math.isnan(from_s or 0.0) or math.isnan(until_s or 0.0):
        raise click.BadParameter("--from and --until are seconds, not nan")
    if from_s is not None and until_s is not None and until_s <= from_s:
        raise click.BadParameter(
            f"{until_s:g} is not after --from {from_s:g}", param_hint="--until"
        )
    recording = load_recording(log, job)
    window = window_of(recording.timeline, from_s, until_s)
    if out is not None or not is_json:
        out = out or Path("transfers.html")
        write_page(out, transfers_page(recording, window))
    if is_json:
        print_json(transfers_document(recording, window))
        return
    timeline = recording.timeline
    click.echo(
        f"{out}: {len(timeline.updates):,} updates and {len(timeline.models):,} models of job"
        f" {timeline.job}, {timeline.length_s:.1f} s"
    )
    for note in notes(recording, window):
        click.echo(note)
