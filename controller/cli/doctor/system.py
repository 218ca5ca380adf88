# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of a live system: controller, switches, programs, versions, jobs."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from finsy import P4Client, P4ClientError
from finsy.proto import p4r

from ....hostlib.credentials import CredentialsError
from ....hostlib.slots.wire import WIRE_VERSION
from ...api.endpoint import connect
from ...api.operator_api import operator_pb2 as pb
from ...api.operator_client import OperatorClient
from ...config import SwitchConfig
from ...errors import ConfigError, ControllerError, ControllerUnreachableError, SwitchError
from ...switches.program import PROGRAM_NAME, describe, variant_of, variant_text
from ...switches.switch_call import fetch_pipeline, switch_credentials, switch_problem
from .check import Check, fail, ok, warn
from .symptoms import check_counts, check_spoofed

_CONNECT_TIMEOUT_S: Final = 3.0
_SWITCH_CREDENTIALS: Final = (
    "give the operator's folder of the switch's authority with --switch-credentials"
)


def check_controller(client: OperatorClient) -> tuple[Check, list[pb.Switch], list[pb.Job]]:
    """Check that the controller answers; return its switches and live jobs."""
    try:
        switches, jobs = client.list_switches(), client.list_jobs()
    except ControllerUnreachableError:
        text = f"no controller answers at {client.address}"
        remedy = (
            "start one with 'switchfold controller run', or give --controller HOST:PORT, or "
            "--controller unix:/PATH for one of several testbeds; running jobs continue without it"
        )
        return fail("controller", text, remedy), [], []
    except ControllerError as exc:
        remedy = "give --token if the text asks for one; then look at the controller's log"
        return fail("controller", str(exc), remedy), [], []
    text = f"answers at {client.address}; switches: {len(switches)}, live jobs: {len(jobs)}"
    return ok("controller", text), switches, jobs


def check_database(client: OperatorClient) -> Check:
    """Check that the controller can write its database."""
    try:
        shown = client.show_controller()
    except ControllerError as exc:
        return fail("database", str(exc), "look at the controller's log; run doctor again")
    if not shown.database_error:
        return ok("database", f"{shown.database} can be written")
    lag = "; what has happened since is in memory only" if shown.is_behind else ""
    return fail(
        "database",
        f"{shown.database_error}{lag}",
        "make room on its disk, or give the controller the right to write; until then no job "
        "starts or changes, and the controller tries again every second",
    )


def check_callers(client: OperatorClient) -> list[Check]:
    """Check that the controller refuses nobody because of its address; an earlier one does not."""
    try:
        shown = client.show_controller()
    except ControllerError as exc:
        return [fail("callers", str(exc), "look at the controller's log; run doctor again")]
    if not shown.calls_per_source:
        return []
    refused = [each for each in shown.sources if each.refused]
    if not refused:
        most = max((each.calls for each in shown.sources), default=0)
        text = (
            f"none was refused; the address with the most calls has {most} open, of the"
            f" {shown.calls_per_source} that one address may have"
        )
        return [ok("callers", text)]
    told = ", ".join(
        f"{each.refused} of {each.source}, which has {each.calls} now" for each in refused
    )
    remedy = (
        "see what runs there; if these are workers, raise max_calls_per_source in the controller's "
        "file, or max_waiting_jobs_per_source for jobs that wait"
    )
    most = f"one address may have {shown.calls_per_source} open"
    return [warn("callers", f"calls refused since its start: {told}; {most}", remedy)]


def check_controllers(client: OperatorClient) -> list[Check]:
    """Check the roles of all controllers of a database that several may have."""
    try:
        shown = client.show_controller()
    except ControllerError as exc:
        return [fail("leader", str(exc), "look at the controller's log; run doctor again")]
    if not shown.controllers:
        return []
    checks = [ok("leader", f"{client.address} leads in term {shown.term}")]
    others = [address for address in shown.controllers if address != client.address]
    if not others:
        remedy = "start another controller with the same --database; without one, none takes over"
        checks.append(warn("standby", "there is none", remedy))
    return checks + [_check_standby(client.at(address)) for address in others]


def _check_standby(client: OperatorClient) -> Check:
    name = f"standby {client.address}"
    try:
        shown = client.show_controller()
    except ControllerError as exc:
        return warn(name, str(exc), "start it again; while it is away, it cannot take over")
    if shown.database_error:
        remedy = "mend its connection to the database; until then it cannot take over"
        return warn(name, shown.database_error, remedy)
    return ok(name, f"is {shown.role}, and knows the leader at {shown.leader or client.address}")


def check_switch(
    client: OperatorClient, config: SwitchConfig, wanted_program: str = ""
) -> list[Check]:
    """Check one switch without the controller: address, P4Runtime, program, versions.

    `client` has the operator's own credentials, for a switch without any in `config`.
    """
    name = f"switch {config.name}"
    try:
        connect(config.address, _CONNECT_TIMEOUT_S)
    except OSError as exc:
        text = f"nothing listens at {config.address} ({exc.strerror or exc})"
        remedy = "start the switch; compare its gRPC address with the configured one"
        return [fail(name, text, remedy)]
    try:
        ours = client.folder_for_switch(config.address, config.credentials)
        config = replace(config, credentials=ours)
        version = asyncio.run(_capabilities(config))
        pipeline = asyncio.run(fetch_pipeline(config))
    except P4ClientError as exc:
        if problem := switch_problem(config):
            return [fail(name, f"{config.address}: {problem}", _SWITCH_CREDENTIALS)]
        text = f"{config.address} does not speak P4Runtime: {exc.code.name} {exc.message}"
        return [fail(name, text, "another program listens there; check the address")]
    except TimeoutError:
        text = f"{config.address} accepts connections but answers no P4Runtime call"
        return [fail(name, text, "another program listens there, or the switch hangs")]
    except (SwitchError, ConfigError, CredentialsError) as exc:
        is_answer = isinstance(exc, SwitchError)
        remedy = "check the device id; look at the switch's log"
        return [fail(name, str(exc), remedy if is_answer else _SWITCH_CREDENTIALS)]
    answers = ok(name, f"P4Runtime {version} at {config.address}, device {config.device_id}")
    return [answers, check_program(name, pipeline, wanted_program)]


def check_program(
    name: str, pipeline: p4r.ForwardingPipelineConfig | None, wanted: str = ""
) -> Check:
    """Check that the switch runs the wanted program, or any of ours with this host's version."""
    what = f"{name} program"
    if pipeline is None:
        return fail(what, "no program is loaded", "start a controller: it loads the program")
    running = describe(pipeline.p4info)
    info = pipeline.p4info.pkg_info
    if info.name != PROGRAM_NAME or (wanted and running != wanted):
        return fail(
            what,
            f"runs {variant_text(running)} instead of {variant_text(wanted or PROGRAM_NAME)}",
            _replace_remedy(variant_of(running)),
        )
    wire_version = info.version.partition(".")[0]
    if wire_version != str(WIRE_VERSION):
        return fail(
            what,
            f"runs {running}: wire version {wire_version}, this host speaks {WIRE_VERSION}",
            "install the same release here and on the controller's machine",
        )
    return ok(what, f"runs {running}, wire version {WIRE_VERSION} like this host")


def _replace_remedy(running: str) -> str:
    other = f"with --variant {running}, or " if running else ""
    return f"start the controller {other}with --replace-program, which loads its own program"


def check_switch_state(client: OperatorClient, switch: pb.Switch) -> list[Check]:
    """Check how the controller sees its switch, and what the switch counted."""
    name = f"switch {switch.name}"
    if switch.state != "ready":
        text = f"the controller says: {switch.state}; {switch.error}"
        return [fail(f"{name} control", text, "follow the text; then look at the controller's log")]
    checks = [
        ok(f"{name} control", f"ready, {switch.used_slots} of {switch.num_slots} slots in use")
    ]
    try:
        shown = client.show_switch(switch.name)
    except ControllerError as exc:
        return [*checks, fail(f"{name} counters", str(exc), "run doctor again")]
    if not shown.counts:
        return [*checks, warn(f"{name} counters", shown.error, "look at the switch's log")]
    spoofed = check_spoofed(name, shown.ordinary_counts)
    return [*checks, *check_counts(name, shown.counts), *spoofed]


def check_jobs(
    client: OperatorClient, jobs: list[pb.Job], switches: list[pb.Switch]
) -> list[Check]:
    """Check every live job: its switch, missing workers, then counters."""
    if not jobs:
        return [ok("jobs", "none is live")]
    states = {switch.name: switch.state for switch in switches}
    checks: list[Check] = []
    for job in jobs:
        name = f"job {job.name}"
        away = {s: states.get(s, "unknown") for s in job.switches if states.get(s) != "ready"}
        if away:
            text = ", ".join(f"switch {switch} is {state}" for switch, state in away.items())
            remedy = f"see the checks of switch {', '.join(away)}"
            checks.append(fail(name, f"{job.state}, but not every switch is ready: {text}", remedy))
            continue
        missing = ", ".join(str(worker_id) for worker_id in job.missing_workers)
        if missing and job.state == "waiting":
            text = f"waits for worker {missing} of {job.num_workers}"
            checks.append(fail(name, text, "start it; check its controller address and job name"))
        elif missing:
            text = f"worker {missing} has no session; it is evicted when its lease runs out"
            checks.append(fail(name, text, "look at that worker's process and its network"))
        else:
            checks.append(ok(name, f"{job.state} with {len(job.workers)} workers"))
        if job.state == "running":
            checks.extend(_job_counts(client, job.name))
    return checks


def _job_counts(client: OperatorClient, name: str) -> list[Check]:
    try:
        job = client.show_job(name)
    except ControllerError as exc:
        return [warn(f"job {name} counters", str(exc), "run doctor again")]
    if job.counts_error:
        text = f"cannot be read: {job.counts_error}"
        return [
            warn(
                f"job {name} counters",
                text,
                f"see the checks of switch {', '.join(job.switches)}",
            )
        ]
    return check_counts(f"job {name}", job.counts)


async def _capabilities(config: SwitchConfig) -> str:
    async with asyncio.timeout(_CONNECT_TIMEOUT_S):
        async with P4Client(
            config.address, switch_credentials(config), wait_for_ready=False
        ) as client:
            reply = await client.request(p4r.CapabilitiesRequest())
    return reply.p4runtime_api_version
