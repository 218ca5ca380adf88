# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold trace`: when training computed and sent, from files of SWITCHFOLD_TRACE."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from ...errors import ConfigError
from ..output import json_option, print_json, print_table
from .alignment import load_traces
from .summary import RankSummary, summarize

_EXIT_CODES = "Exit codes: 0 done, 1 a file is no trace, or cannot be read or written."
files_argument = click.argument(
    "files",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path),
)


@click.group(epilog=_EXIT_CODES)
def trace() -> None:
    """Look at traces of training: how much computing and communication overlap.

    \b
    Set SWITCHFOLD_TRACE=FOLDER when training starts; each rank writes FOLDER/trace-RANK.json
    when its process group is destroyed. chrome://tracing and ui.perfetto.dev open the files too.
    """  # fmt: skip


@trace.command(epilog=_EXIT_CODES)
@files_argument
@json_option
def summary(files: tuple[Path, ...], is_json: bool) -> None:
    """Sum up FILES, one per rank, or a folder of them: computing, the network, and their overlap.

    "hidden" is the part of the communication, first packet to last result, in which the rank
    computed too; "exposed" is the rest.

    \b
    Examples:
      switchfold trace summary traces
      switchfold trace summary traces/trace-0.json --json
    """  # fmt: skip
    loaded = load_traces(_files(files))
    summaries = [summarize(events) for events in loaded.ranks]
    if is_json:
        print_json({"alignment": loaded.alignment, "ranks": [_as_dict(each) for each in summaries]})
        return
    columns = "rank", "s", "compute s", "network s", "exposed s", "hidden", "transfers", "MB"
    rows = [
        (
            each.rank,
            f"{each.duration_s:.3f}",
            f"{each.compute_s:.3f}",
            f"{each.transfer_s:.3f}",
            f"{each.exposed_s:.3f}",
            f"{100 * each.overlap_share:.1f} %",
            each.num_transfers,
            f"{each.num_bytes / 1e6:.3f}",
        )
        for each in summaries
    ]
    print_table(f"trace of {len(summaries)} ranks", columns, rows)
    for each in summaries:
        for line in _remarks(each):
            click.echo(line)
    click.echo(f"aligned by {loaded.alignment}")


@trace.command(epilog=_EXIT_CODES)
@files_argument
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Picture to write, a file ending in .svg, .png or .pdf.",
)
@click.option("--from", "begin_s", default=0.0, metavar="S", help="Leave out earlier events.")
@click.option("--to", "end_s", type=float, metavar="S", help="Leave out later events.")
def plot(files: tuple[Path, ...], out: Path, begin_s: float, end_s: float | None) -> None:
    """Draw FILES, one per rank, or a folder of them; times count in seconds from the first event.

    \b
    Examples:
      switchfold trace plot traces --out trace.png
      switchfold trace plot traces/trace-*.json --out trace.svg --from 2.5 --to 2.8
    """
    # matplotlib takes half a second to import.
    from .plot import draw_trace  # noqa: PLC0415

    draw_trace(load_traces(_files(files)), out, begin_s=begin_s, end_s=end_s)
    click.echo(f"picture: {out}")


def _files(paths: tuple[Path, ...]) -> list[Path]:
    """Return the files, and for a folder those that SWITCHFOLD_TRACE=FOLDER writes there."""
    files: list[Path] = []
    for path in paths:
        found = sorted(path.glob("trace-*.json")) if path.is_dir() else [path]
        if not found:
            raise ConfigError(
                f"{path} holds no trace-RANK.json; was SWITCHFOLD_TRACE={path} set when training"
                " started, and has it ended?"
            )
        files += found
    return files


def _as_dict(each: RankSummary) -> dict[str, object]:
    return {**asdict(each), "exposed_s": each.exposed_s, "overlap_share": each.overlap_share}


def _remarks(each: RankSummary) -> list[str]:
    """Return the remarks below the table."""
    lines: list[str] = []
    if each.num_failed:
        lines.append(f"rank {each.rank}: {each.num_failed} transfers failed")
    if each.num_dropped:
        lines.append(
            f"rank {each.rank}: {each.num_dropped} older events were dropped; times leave them out"
        )
    return lines
