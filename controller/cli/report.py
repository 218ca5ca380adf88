# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold report`: pages of what runs have logged."""

from __future__ import annotations

from pathlib import Path

import click

from ..errors import ConfigError
from .latency.page import ReportOptions, page, percent
from .latency.run_files import load_run

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
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {out}: {error}; give another --out") from error
    requests = sum(run.requests["worker"].size for run in loaded)
    click.echo(f"{out}: {requests:,} requests of {len(loaded)} runs")
    for run in loaded:
        if run.is_sample:
            click.echo(f"{run.name}: {percent(run.calls.share)} of the calls were recorded")
