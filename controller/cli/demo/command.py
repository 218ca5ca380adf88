# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold demo`: testbed, training, proofs, report."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click
from rich.console import Console

from ....bmv2_topos import Testbed, WorkerResult, single_switch
from ....bmv2_topos.errors import TestbedError
from ....hostlib.slots.wire import VALUES_PER_PACKET_NARROW, VALUES_PER_PACKET_WIDE, Outcome
from ...api.operator_api import operator_pb2 as pb
from ...api.operator_client import OperatorClient
from .comparison import compare
from .digits import load_digits
from .errors import DemoError
from .hot import hot
from .progress import Progress, compile_once, phase
from .proofs import check_proofs, print_proofs
from .record import HostComparison, RunRecord, SwitchRecord, WorkerRecord, link_bytes
from .reference import train_reference
from .report import NEXT_STEPS, write_report
from .schedule import Schedule

JOB = "demo"
TIMEOUT_S = 300.0
_VALUES = {"wide": VALUES_PER_PACKET_WIDE, "narrow": VALUES_PER_PACKET_NARROW}

Mode = Literal["veth", "udp"]
Variant = Literal["wide", "narrow"]
Target = Literal["softswitch", "bmv2"]


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """What to run."""

    schedule: Schedule
    mode: Mode
    variant: Variant
    target: Target
    rate_bits_per_s: int | None
    report: Path


@click.group(
    invoke_without_command=True,
    epilog="Exit codes: 0 everything is proved, 1 an error or a failed proof, 2 wrong use.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 32),
    default=4,
    show_default=True,
    help="Number of workers.",
)
@click.option(
    "--epochs",
    type=click.IntRange(1, 1000),
    default=10,
    show_default=True,
    help="Passes over the training data.",
)
@click.option(
    "--mode",
    type=click.Choice(["veth", "udp"]),
    help="veth: namespaces, needs root; udp: loopback ports. Default: veth for root, else udp.",
)
@click.option(
    "--variant",
    type=click.Choice(["wide", "narrow"]),
    default="wide",
    show_default=True,
    help="Values per packet: 352 (wide) or 32 (narrow).",
)
@click.option(
    "--target",
    type=click.Choice(["softswitch", "bmv2"]),
    default="softswitch",
    show_default=True,
    help="What runs the P4 program; bmv2 needs simple_switch_grpc and root, and is slow.",
)
@click.option(
    "--rate-mbit",
    type=click.IntRange(1, 100_000),
    default=100,
    show_default=True,
    help="Rate of every link in mode veth.",
)
@click.option(
    "--report",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("report"),
    show_default=True,
    help="Folder of the report.",
)
@click.pass_context
def demo(  # noqa: PLR0913 - click passes options by name
    context: click.Context,
    *,
    workers: int,
    epochs: int,
    mode: Mode | None,
    variant: Variant,
    target: Target,
    rate_mbit: int,
    report: Path,
) -> int:
    """Train a classifier of handwritten digits; a P4 switch sums every gradient.

    With the command hot, train a text model on parameter servers instead.

    \b
    Examples:
      switchfold demo
      switchfold demo --mode udp --epochs 2
    """  # fmt: skip
    if context.invoked_subcommand is not None:
        return 0
    chosen: Mode = mode or ("veth" if os.geteuid() == 0 else "udp")
    if chosen == "udp" and target == "bmv2":
        raise click.UsageError("--target bmv2 has no UDP ports: use --mode veth")
    try:
        schedule = Schedule(num_workers=workers, epochs=epochs, batch_size=128 // workers * workers)
    except ValueError as exc:
        raise click.UsageError(str(exc)) from exc
    options = DemoOptions(
        schedule=schedule,
        mode=chosen,
        variant=variant,
        target=target,
        rate_bits_per_s=rate_mbit * 1_000_000 if chosen == "veth" else None,
        report=report,
    )
    console = Console()
    run = run_demo(options, console)
    proofs = check_proofs(run)
    page = write_report(run, proofs, report)
    print_proofs(proofs, console)
    console.print(f"report: {page.resolve()}", soft_wrap=True, highlight=False)
    console.print("what next:")
    for step in NEXT_STEPS:
        console.print(f"  {step}", soft_wrap=True, highlight=False)
    return 0 if all(proof.is_proved for proof in proofs) else 1


def run_demo(options: DemoOptions, console: Console) -> RunRecord:
    """Train on a testbed and in this process; return the records of both.

    Raises:
        DemoError: a worker failed or did not end; its output is part of the text.
    """
    schedule = options.schedule
    with phase(console, "training the single-process reference"):
        digits = load_digits()
        reference = train_reference(schedule, digits)
    topology = single_switch(schedule.num_workers, rate_bits_per_s=options.rate_bits_per_s)
    where = "network namespaces" if options.mode == "veth" else "UDP ports on loopback"
    if options.target == "softswitch":
        compile_once(console, options.variant)
    made = Testbed(topology, mode=options.mode, target=options.target, variant=options.variant)
    with ExitStack() as stack:
        with phase(console, f"starting {options.target}, a controller, and hosts as {where}"):
            testbed = stack.enter_context(made)
        operator = OperatorClient(testbed.controller_address)
        name = testbed.switch.name
        before = operator.show_switch(name)
        records = _train(testbed, schedule, operator, before, console)
        after = operator.show_switch(name)
        compared: HostComparison | None = None
        if schedule.num_workers > 1:
            with phase(console, "summing gradients alone, in the switch and among the hosts"):
                compared = compare(testbed, operator)
    return RunRecord(
        schedule=schedule,
        workers=records,
        reference=reference,
        switch=switch_record(before, after),
        mode=options.mode,
        values_per_packet=_VALUES[options.variant],
        rate_bits_per_s=options.rate_bits_per_s,
        target=options.target,
        comparison=compared,
    )


def _train(
    testbed: Testbed,
    schedule: Schedule,
    operator: OperatorClient,
    before: pb.Switch,
    console: Console,
) -> list[WorkerRecord]:
    schedule_file = testbed.run_directory / "schedule.json"
    schedule.write(schedule_file)
    files = [testbed.run_directory / f"record-{i}.npz" for i in range(schedule.num_workers)]
    results: list[WorkerResult] = []
    errors: list[TestbedError] = []

    def run() -> None:
        try:
            results.extend(
                testbed.run_workers(
                    lambda endpoint: [
                        sys.executable,
                        *("-m", "switchfold.controller.cli.demo.worker"),
                        *(str(schedule_file), str(files[endpoint.worker_id])),
                    ],
                    job=JOB,
                    timeout_s=TIMEOUT_S,
                    environment={"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
                )
            )
        except TestbedError as exc:
            errors.append(exc)

    thread = threading.Thread(target=run, name="demo-workers")
    thread.start()
    logs = [testbed.run_directory / f"{JOB}-{host.name}.log" for host in testbed.topology.hosts]
    Progress(schedule, logs, operator, before, console).show_until(thread)
    thread.join()
    if errors:
        raise DemoError(str(errors[0])) from errors[0]
    failed = [result for result in results if result.exit_status != 0]
    if failed or not results:
        texts = [
            f"worker {r.worker_id} (status {r.exit_status}): {r.output[-800:]}" for r in failed
        ]
        raise DemoError("training failed:\n" + "\n".join(texts))
    return [WorkerRecord.read(file) for file in files]


def switch_record(before: pb.Switch, after: pb.Switch) -> SwitchRecord:
    """Return what the switch counted between two readings."""
    old_counts = {count.outcome: count.packets for count in before.counts}
    old_ports = {port.port: port for port in before.ports}
    return SwitchRecord(
        outcomes={
            Outcome[count.outcome.upper()]: count.packets - old_counts.get(count.outcome, 0)
            for count in after.counts
        },
        links=link_bytes(before, after),
        packets_in=sum(port.packets_in - old_ports[port.port].packets_in for port in after.ports),
        packets_out=sum(
            port.packets_out - old_ports[port.port].packets_out for port in after.ports
        ),
    )


demo.add_command(hot)
