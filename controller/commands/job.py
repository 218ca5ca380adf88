# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold job`: look at jobs and end them."""

from __future__ import annotations

import time

import click

from controller.commands.output import (
    controller_option,
    json_option,
    message_dict,
    print_json,
    print_table,
)
from controller.operator_api import operator_pb2 as pb
from controller.operator_client import OperatorClient

_EXIT_CODES = "Exit codes: 0 done, 1 no such job or refused, 3 no controller."


@click.group(epilog=_EXIT_CODES)
def job() -> None:
    """Look at jobs and end them."""


@job.command("list", epilog=_EXIT_CODES)
@click.option("--all", "include_ended", is_flag=True, help="Ended jobs too.")
@controller_option
@json_option
def list_jobs(include_ended: bool, address: str, is_json: bool) -> None:
    """List live jobs.

    \b
    Examples:
      switchfold job list
      switchfold job list --all --json
    """
    jobs = OperatorClient(address).list_jobs(include_ended=include_ended)
    if is_json:
        print_json([_job_dict(message) for message in jobs])
        return
    print_table(
        f"Jobs of the controller at {address}",
        ("job", "state", "switch", "workers", "slots", "generation", "age", "note"),
        [
            (
                message.name,
                message.state,
                message.switch,
                message.num_workers,
                _slots(message),
                message.generation,
                _age(message),
                _note(message),
            )
            for message in jobs
        ],
    )


@job.command("show", epilog=_EXIT_CODES)
@click.argument("name")
@controller_option
@json_option
def show_job(name: str, address: str, is_json: bool) -> None:
    """Show workers, slots, generation and counters per outcome of the newest job NAME.

    \b
    Examples:
      switchfold job show train
      switchfold job show train --json
    """
    message = OperatorClient(address).show_job(name)
    if is_json:
        print_json(_job_dict(message))
        return
    click.echo(f"job {message.name}: {message.state}  {_note(message)}".rstrip())
    click.echo(f"  switch {message.switch}, job id {message.job_id}")
    click.echo(f"  slots {_slots(message)}, generation {message.generation}, age {_age(message)}")
    print_table(
        "Workers",
        ("worker", "state", "address", "mac", "udp port", "switch port"),
        [(w.worker_id, w.state, w.address, w.mac, w.udp_port, w.port) for w in message.workers],
    )
    if message.counts_error:
        click.echo(f"no counters: {message.counts_error}")
    if message.counts:
        print_table(
            "Packets by outcome",
            ("outcome", "packets", "bytes"),
            [(count.outcome, count.packets, count.bytes) for count in message.counts],
        )


@job.command("stop", epilog=_EXIT_CODES)
@click.argument("name")
@controller_option
@json_option
def stop_job(name: str, address: str, is_json: bool) -> None:
    """End the live job NAME; its workers are told, its slots are free at once.

    \b
    Example:
      switchfold job stop train
    """
    message = OperatorClient(address).stop_job(name)
    if is_json:
        print_json(_job_dict(message))
    else:
        click.echo(f"job {message.name} is {message.state}: {message.reason}")


def _job_dict(message: pb.Job) -> dict[str, object]:
    """Return a job for JSON; counters become a mapping by outcome."""
    result = message_dict(message)
    result["counts"] = {
        count.outcome: {"packets": count.packets, "bytes": count.bytes} for count in message.counts
    }
    return result


def _slots(message: pb.Job) -> str:
    return f"{message.slot_base}..{message.slot_base + message.slot_count - 1}"


def _age(message: pb.Job) -> str:
    seconds = int((message.ended_s or time.time()) - message.created_s)
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _note(message: pb.Job) -> str:
    if message.reason:
        return message.reason
    missing = ", ".join(str(worker_id) for worker_id in message.missing_workers)
    if not missing:
        return ""
    return (
        f"waits for worker {missing}" if message.state == "waiting" else f"lost sight of {missing}"
    )
