# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold schedule`: live transfers of asynchronous trainings."""

from __future__ import annotations

import time
from typing import Final

import click

from ...api.operator_api import schedule_pb2 as pb
from ...api.operator_client import OperatorClient
from ..output import controller_option, json_option, message_dict, print_json, print_table
from .text import (
    chart_lines,
    group_rows,
    head_lines,
    queue_rows,
    rate_rows,
    server_rows,
    worker_rows,
)

_EXIT_CODES: Final = "Exit codes: 0 done, 1 no such job or refused, 3 no controller."
_INTERVAL_S: Final = 1.0


@click.group(epilog=_EXIT_CODES)
def schedule() -> None:
    """Look at live transfers of updates and models."""


@schedule.command("show", epilog=_EXIT_CODES)
@click.argument("name", metavar="JOB")
@click.option(
    "--watch", "is_watched", is_flag=True, help="Show it again each second, until Ctrl-C."
)
@controller_option
@json_option
def show_schedule(name: str, is_watched: bool, client: OperatorClient, is_json: bool) -> None:
    """Show which updates of JOB wait, travel and were dropped, and what became of the others.

    The chart has the plans of grants: when each update travels. Its place is that in its server's
    commit sequence. A model travels from server to worker, and has no place; a line for the replica
    is an update's copy on its path there. Ungranted updates came directly, since their worker had
    no answer in time.
    Groups are updates that an idle worker adds up, so that the server gets one message.
    Hosts are listed whose links carry less than the file says, by what workers report. Workers are
    named whose updates came long before their granted times.

    \b
    Examples:
      switchfold schedule show train
      switchfold schedule show train --watch
      switchfold schedule show train --json
    """
    while True:
        report = client.show_schedule(name)
        if is_watched and not is_json:
            click.clear()
        if is_json:
            print_json(_report_dict(report))
        else:
            _print(report)
        if not is_watched:
            return
        time.sleep(_INTERVAL_S)


def _report_dict(report: pb.ScheduleReport) -> dict[str, object]:
    """Return a report for JSON; null: a bound that the job lacks, a model from its server."""
    result = message_dict(report)
    for name in ("tau_max", "div_max", "staleness"):
        if not report.HasField(name):
            result[name] = None
    for transfer, message in zip(result["transfers"], report.transfers, strict=True):
        if not message.HasField("relayed_by"):
            transfer["relayed_by"] = None
    return result


def _print(report: pb.ScheduleReport) -> None:
    for line in (*head_lines(report), "", *chart_lines(report)):
        click.echo(line)
    rows = list(queue_rows(report))
    if rows:
        print_table(
            "Waiting, and dropped last",
            ("worker", "server", "size", "version", "state", "asked", "note"),
            rows,
        )
    groups = list(group_rows(report))
    if groups:
        print_table(
            "Groups",
            ("group", "aggregator", "server", "workers", "gathered", "sum", "state"),
            groups,
        )
    print_table(
        "Updates by worker",
        ("worker", "host", "pushes", "grants", "commits", "drops", "withdrawn", "ungranted"),
        worker_rows(report.workers),
    )
    if report.rates:
        print_table(
            "Hosts whose links carry less than the file says",
            ("host", "up", "of", "down", "of"),
            rate_rows(report.rates),
        )
    print_table(
        "Servers",
        ("server", "host", "version", "first open place", "next place"),
        server_rows(report.servers),
    )
