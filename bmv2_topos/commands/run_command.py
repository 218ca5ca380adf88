# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold testbed run`: start a worker on each host, show its output and how it ended."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from .. import state
from ..config import child_environment
from ..processes.processes import ManagedProcess, start_process
from ..processes.rendezvous import rank_variables
from ..processes.worker_runs import WorkerEndpoint
from ..testbed import Testbed
from ..topology.topology import Topology
from .command_errors import errors_shown

_POLL_S: Final = 0.1


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option("--name", help="Name of the testbed.  [default: the only one]")
@click.option("--job", default="job", show_default=True, help="Name of the workers' job.")
@click.option(
    "--hosts", metavar="H1,H2,...", help="Hosts of workers 0, 1, and so on.  [default: all hosts]"
)
@click.option(
    "--worker-id", type=click.IntRange(0), help="Id of the first worker, for those that join late."
)
@click.option(
    "--env", multiple=True, metavar="NAME=VALUE", help="Variable for every worker; may be repeated."
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    default=600,
    show_default=True,
    help="Seconds until workers that still run are stopped.",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(  # noqa: PLR0913 - click passes options by name
    *,
    name: str | None,
    job: str,
    hosts: str | None,
    worker_id: int | None,
    env: Sequence[str],
    timeout_s: float,
    command: Sequence[str],
) -> None:
    """Run COMMAND on hosts of a testbed, one worker each, and wait until all have ended.

    The environment tells each worker its place: SWITCHFOLD_* for hostlib, RANK, WORLD_SIZE,
    MASTER_ADDR and MASTER_PORT for torch.distributed. The host's name precedes each line of a
    worker's output; `switchfold testbed status` shows the workers' pids.

    \b
    Examples:
      switchfold testbed run python examples/join_job.py
      switchfold testbed run --job heavy --env SWITCHFOLD_WEIGHT=3 python train.py
      switchfold testbed run --job small --hosts h1,h3 --env SWITCHFOLD_SLOTS=64 python train.py
      switchfold testbed run --hosts h4 --worker-id 3 --env SWITCHFOLD_JOINING=1 python train.py

    \b
    Exit codes: 0 all workers ended with status 0, 1 error or another status, 2 wrong use.
    """  # fmt: skip
    with errors_shown():
        testbed = Testbed.attach(name or _only_name())
        endpoints = _endpoints(testbed, hosts, worker_id or 0)
        # COMMAND's "python" is the interpreter that Switchfold is installed for.
        paths = [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
        extra = {"PATH": os.pathsep.join(paths), **dict(_assignment(text) for text in env)}
        workers: list[tuple[WorkerEndpoint, ManagedProcess]] = []
        try:
            namespaces = [testbed.namespace_of(endpoint.host) for endpoint in endpoints]
            ranks = rank_variables(endpoints, namespaces)
            for endpoint, namespace, rank in zip(endpoints, namespaces, ranks, strict=True):
                variables = {
                    **child_environment(testbed.run_directory),
                    **endpoint.environment(job),
                    **rank,
                    **extra,
                }
                process = start_process(
                    f"{job}-{endpoint.host.name}",
                    command,
                    run_directory=testbed.run_directory,
                    environment=variables,
                    namespace=namespace,
                )
                workers.append((endpoint, process))
            if not _follow(workers, time.monotonic() + timeout_s):
                raise click.exceptions.Exit(1)
        finally:
            for _, process in workers:
                process.stop()


def _follow(workers: Sequence[tuple[WorkerEndpoint, ManagedProcess]], deadline: float) -> bool:
    """Show the workers' output until all have ended; return whether all ended with status 0."""
    shown = [0] * len(workers)
    while True:
        running = [process for _, process in workers if process.popen.poll() is None]
        for index, (endpoint, process) in enumerate(workers):
            shown[index] = _show_lines(
                endpoint.host.name, process, shown[index], is_last=process not in running
            )
        if not running:
            break
        if time.monotonic() > deadline:
            click.echo("time is up: workers that still run are stopped", err=True)
            return False
        try:
            running[0].popen.wait(_POLL_S)
        except subprocess.TimeoutExpired:
            continue  # the wait only limits how often the logs are read
    failed = [(each, p.popen.returncode) for each, p in workers if p.popen.returncode]
    for endpoint, status in failed:
        how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        click.echo(f"worker {endpoint.worker_id} on {endpoint.host.name} {how}", err=True)
    return not failed


def _show_lines(host: str, process: ManagedProcess, start: int, *, is_last: bool) -> int:
    """Print the log's complete lines from byte `start` on; return where the next call starts.

    With `is_last`, an incomplete last line is printed, too.
    """
    with process.log.open("rb") as log:
        log.seek(start)
        text = log.read()
    whole = text if is_last else text[: text.rfind(b"\n") + 1]
    for line in whole.decode(errors="replace").splitlines():
        click.echo(f"{host} | {line}")
    return start + len(whole)


def _endpoints(testbed: Testbed, hosts: str | None, first_id: int) -> list[WorkerEndpoint]:
    """Return the workers' endpoints; ids count from `first_id` in the order of the hosts."""
    names = hosts.split(",") if hosts else [host.name for host in testbed.topology.hosts]
    if len(set(names)) != len(names):
        raise ValueError(f"--hosts {hosts} names a host twice")
    return [
        dataclasses.replace(
            testbed.endpoint(_host_number(testbed.topology, host)),
            worker_id=first_id + index,
            num_workers=first_id + len(names),
        )
        for index, host in enumerate(names)
    ]


def _host_number(topology: Topology, name: str) -> int:
    for host in topology.hosts:
        if host.name == name:
            return host.worker_id
    known = ", ".join(host.name for host in topology.hosts)
    raise ValueError(f"there is no host {name} (known: {known})")


def _assignment(text: str) -> tuple[str, str]:
    variable, equals, value = text.partition("=")
    if not variable or not equals:
        raise ValueError(f"--env {text!r} is not NAME=VALUE")
    return variable, value


def _only_name() -> str:
    names = state.record_names()
    if len(names) == 1:
        return names[0]
    known = ", ".join(names) or "none"
    raise ValueError(f"choose a testbed with --name (known: {known})")
