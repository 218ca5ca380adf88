# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold job`: look at jobs and end them."""

from __future__ import annotations

import time
from collections.abc import Iterable

import click

from ..api.operator_api import operator_pb2 as pb
from ..api.operator_client import OperatorClient
from .output import (
    controller_option,
    json_option,
    message_dict,
    print_counts,
    print_json,
    print_table,
)

_EXIT_CODES = "Exit codes: 0 done, 1 no such job or refused, 3 no controller."


@click.group(epilog=_EXIT_CODES)
def job() -> None:
    """Look at jobs and end them."""


@job.command("list", epilog=_EXIT_CODES)
@click.option("--all", "include_ended", is_flag=True, help="Ended jobs too.")
@controller_option
@json_option
def list_jobs(include_ended: bool, client: OperatorClient, is_json: bool) -> None:
    """List live jobs.

    \b
    Examples:
      switchfold job list
      switchfold job list --all --json
    """
    jobs = client.list_jobs(include_ended=include_ended)
    if is_json:
        print_json([_job_dict(message) for message in jobs])
        return
    if not jobs:
        click.echo("no job yet" if include_ended else "no live job; --all shows ended ones")
        return
    print_table(
        f"Jobs of the controller at {client.address}",
        ("job", "state", "path", "switches", "workers", "slots", "age", "note"),
        [
            (
                message.name,
                message.state,
                message.path,
                ", ".join(message.switches),
                f"{len(message.workers)} of {message.num_workers}",
                message.slot_count,
                _short_age(message),
                _note(message),
            )
            for message in jobs
        ],
    )


@job.command("show", epilog=_EXIT_CODES)
@click.argument("name")
@controller_option
@json_option
def show_job(name: str, client: OperatorClient, is_json: bool) -> None:
    """Show views, workers, slots, row servers and counters of the newest job NAME.

    A view consists of the job's members, its trees and their slots, under one generation. Counters
    cover all views together. Refused packets have outcomes of their own, such as foreign_worker,
    foreign_result or bad_contribution.

    \b
    Examples:
      switchfold job show train
      switchfold job show train --json
    """
    message = client.show_job(name)
    if is_json:
        print_json(_job_dict(message))
        return
    click.echo(f"job {message.name}: {message.state}  {_note(message)}".rstrip())
    click.echo(f"  number {message.job_number}, generation {message.generation}")
    click.echo(f"  path {message.path or 'none yet'} (wanted: {message.path_wanted})")
    click.echo(f"  slots {message.slot_count} ({_wanted(message)}), weight {message.weight:g}")
    if message.max_priority_wanted:
        click.echo(
            f"  priority up to {message.max_priority} (wanted: {message.max_priority_wanted})"
        )
    click.echo(f"  stragglers: {_straggler(message)}; age {_age(message)}")
    print_table(
        "Views",
        ("generation", "state", "path", "members", "tree", "slots", "note"),
        [row for view in message.views for row in _view_rows(view)],
    )
    print_table(
        "Workers",
        ("worker", "state", "address", "mac", "udp port", "switch", "port"),
        [
            (w.worker_id, w.state, w.address, w.mac, w.udp_port, w.switch, w.port)
            for w in message.workers
        ],
    )
    current = [view for view in message.views if view.generation == message.generation]
    row_servers = [server for view in current for server in view.row_servers]
    if row_servers:
        print_table(
            "Row servers",
            ("server", "state", "address", "udp port", "switch", "port", "rows", "note"),
            [_row_server(server) for server in row_servers],
        )
    if message.counts_error:
        click.echo(f"counters are missing: {message.counts_error}")
    if message.counts:
        _print_counts(message)


@job.command("stop", epilog=_EXIT_CODES)
@click.argument("name")
@controller_option
@json_option
def stop_job(name: str, client: OperatorClient, is_json: bool) -> None:
    """End the live job NAME; its workers get an error, and its slots are free at once.

    \b
    Example:
      switchfold job stop train
    """
    message = client.stop_job(name)
    if is_json:
        print_json(_job_dict(message))
    else:
        click.echo(f"job {message.name} is {message.state}: {message.reason}")


def _job_dict(message: pb.Job) -> dict[str, object]:
    """Return a job for JSON; counters become mappings by outcome, and by switch."""
    result = message_dict(message)
    result["layouts"] = result["views"]  # the name of earlier releases, until the next one
    result["counts"] = _counts_dict(message.counts)
    result["switch_counts"] = {
        of_switch.switch: _counts_dict(of_switch.counts) for of_switch in message.switch_counts
    }
    return result


def _counts_dict(counts: Iterable[pb.OutcomeCount]) -> dict[str, dict[str, int]]:
    return {count.outcome: {"packets": count.packets, "bytes": count.bytes} for count in counts}


def _print_counts(message: pb.Job) -> None:
    """Print packets by outcome, a column per switch, then their sums."""
    by_switch = {
        of_switch.switch: {count.outcome: count.packets for count in of_switch.counts}
        for of_switch in message.switch_counts
    }
    print_counts(
        "Packets by outcome",
        (*(f"at {switch}" for switch in by_switch), "packets", "bytes"),
        [
            (
                count.outcome,
                (
                    *(packets.get(count.outcome, 0) for packets in by_switch.values()),
                    count.packets,
                    count.bytes,
                ),
            )
            for count in message.counts
        ],
    )


def _view_rows(view: pb.JobView) -> list[tuple[object, ...]]:
    """Return a row per tree, with the slots on every switch, root first."""
    members = _ranges(view.members)
    about = (view.generation, view.state, view.path, members)
    rows: list[tuple[object, ...]] = []
    for tree in view.trees:
        slots = "  ".join(
            f"{node.switch}:{node.slot_base}..{node.slot_base + tree.slot_count - 1}"
            for node in tree.nodes
        )
        rows.append((*about, tree.tree_id, slots, view.reason))
    return rows or [(*about, "", "", view.reason)]


def _row_server(server: pb.JobRowServer) -> tuple[object, ...]:
    rows = f"{server.first_row}..{server.first_row + server.num_rows - 1}"
    return (
        server.server_id,
        server.state,
        server.address,
        server.udp_port,
        server.switch,
        server.port,
        rows if server.num_rows else "none",
        server.reason,
    )


def _ranges(worker_ids: Iterable[int]) -> str:
    """Return sorted ids in short, such as "0..7, 9"."""
    ranges: list[list[int]] = []
    for worker_id in worker_ids:
        if ranges and ranges[-1][1] == worker_id - 1:
            ranges[-1][1] = worker_id
        else:
            ranges.append([worker_id, worker_id])
    return ", ".join(str(first) if first == last else f"{first}..{last}" for first, last in ranges)


def _wanted(message: pb.Job) -> str:
    return f"wanted: {message.slots_wanted}" if message.slots_wanted else "its share"


def _straggler(message: pb.Job) -> str:
    parts: list[str] = []
    if message.quorum:
        parts.append(f"a round closes with {message.quorum} workers")
    if message.deadline_s:
        parts.append(f"a round closes after {message.deadline_s:g} s")
    if message.tolerance.stale:
        parts.append(
            f"a worker may do without {100 * message.tolerance.stale:g} % of a tensor's results"
        )
    elif message.HasField("tolerance"):
        parts.append(
            f"a tensor may lack {100 * message.tolerance.loss:g} % of all contributions, and has at"
            f" least {100 * message.tolerance.worker_floor:g} % of each worker's"
        )
    return ", or ".join(parts) or "rounds wait for all workers"


def _seconds(message: pb.Job) -> int:
    return int((message.ended_s or time.time()) - message.created_s)


def _short_age(message: pb.Job) -> str:
    seconds = _seconds(message)
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def _age(message: pb.Job) -> str:
    seconds = _seconds(message)
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _note(message: pb.Job) -> str:
    if message.reason:
        return message.reason
    missing = ", ".join(str(worker_id) for worker_id in message.missing_workers)
    if not missing:
        return ""
    if message.state == "waiting":
        return f"waits for worker {missing}"
    return f"worker {missing} has no session"
