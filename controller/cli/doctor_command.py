# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold doctor`: what is wrong, and what to do."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import click
from rich.text import Text

from ..api.operator_client import OperatorClient
from ..config import SwitchConfig, parse_switch
from .doctor import Check, Status
from .doctor.known_switch import check_known_switch
from .doctor.machine import check_machine
from .doctor.slow_job import check_slow_job
from .doctor.system import (
    check_callers,
    check_controller,
    check_controllers,
    check_database,
    check_jobs,
    check_switch,
    check_switch_state,
)
from .doctor.testbeds import check_testbeds
from .output import (
    controller_option,
    json_option,
    print_grid,
    print_json,
    switch_credentials_option,
)

_COLOURS = {Status.OK: "green", Status.WARN: "yellow", Status.FAIL: "red"}


@click.command(epilog="Exit codes: 0 nothing failed (remarks allowed), 1 a check failed.")
@click.option("--local", "is_local", is_flag=True, help="Check this machine only.")
@click.option(
    "--switch",
    "switches",
    multiple=True,
    metavar="NAME=HOST:PORT[/ID]",
    help="Check this switch too, even without a controller; repeat for several.",
)
@click.option(
    "--why-slow",
    "slow_job",
    metavar="JOB",
    help="Only measure what limits this running job.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=1),
    default=5.0,
    show_default=True,
    help="How long --why-slow looks at the job.",
)
@click.option("--interface", "interfaces", multiple=True, help="Check this interface too.")
@switch_credentials_option
@controller_option
@json_option
def doctor(  # noqa: PLR0913 - click passes options by name
    *,
    is_local: bool,
    switches: tuple[str, ...],
    interfaces: tuple[str, ...],
    slow_job: str | None,
    seconds: float,
    switch_credentials: Path | None,
    client: OperatorClient,
    is_json: bool,
) -> int:
    """Check this machine, testbeds, the controller, its switches and its jobs, in this order.

    Every line says ok, warn or fail; whatever is not ok comes with a remedy.

    With --why-slow, name the link, the worker or the processor that limits a job, by what its
    switches count meanwhile; or say "cannot tell", and why.

    \b
    Examples:
      switchfold doctor
      switchfold doctor --local
      switchfold doctor --why-slow train --seconds 10
      switchfold doctor --switch s1=127.0.0.1:9559 --interface s1-eth1 --json
      switchfold doctor --switch-credentials /etc/switchfold/alice-of-switches
    """  # fmt: skip
    checks = [] if slow_job is not None else check_machine(interfaces)
    if slow_job is not None:
        checks.append(check_slow_job(client, slow_job, seconds))
    elif not is_local:
        checks += _check_system(
            client, [parse_switch(text) for text in switches], switch_credentials
        )
    has_failed = any(check.status is Status.FAIL for check in checks)
    if is_json:
        status = max((check.status for check in checks), key=list(Status).index)
        print_json({"status": status, "checks": [asdict(c) for c in checks]})
    else:
        print_checks(checks)
    return int(has_failed)


def _check_system(
    client: OperatorClient, switches: list[SwitchConfig], credentials: Path | None
) -> list[Check]:
    verdict, known, jobs = check_controller(client)
    checks = [*check_testbeds(client.address), verdict]
    if verdict.status is Status.OK:
        checks.append(check_database(client))
        checks += check_callers(client)
        checks += check_controllers(client)
    for config in switches:
        if config.name not in {switch.name for switch in known}:
            checks += check_switch(client, replace(config, credentials=credentials))
    for switch in known:
        config = SwitchConfig(
            name=switch.name,
            address=switch.address,
            device_id=switch.device_id,
            credentials=credentials,
        )
        checks += check_known_switch(client, config, switch.program)
        checks += check_switch_state(client, switch)
    if known:
        checks += check_jobs(client, jobs, known)
    return checks


def print_checks(checks: list[Check]) -> None:
    """Print verdicts, each with what to do; in a narrow terminal, texts wrap, and none is cut."""
    rows: list[tuple[str | Text, ...]] = []
    for check in checks:
        rows.append((Text(check.status, _COLOURS[check.status]), check.name, check.text))
        if check.remedy:
            rows.append(("", "", Text.assemble(("do:", "bold"), " ", check.remedy)))
    print_grid(rows)
