# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold calibrate`: measures this machine for `switchfold scheme predict`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import click

from ....hostlib.schemes.calibration_file import (
    FIGURES,
    Calibration,
    MeasuredFigure,
    store_calibration,
)
from ....hostlib.slots.wire import VALUES_PER_PACKET_WIDE
from ..demo.machine_facts import machine_facts
from ..output import json_option, print_json, print_table
from ..schemes.hardware_options import calibration_option, default_calibration
from .components import measure_components
from .errors import CalibrationRunError
from .processor_time import busy_share
from .rig import LINKS, CalibrationPlan, Links, measure_ring, measure_switch, ring_kind

BUSY: Final = 0.25
"""Share of the cores that other work may use before the command warns."""
_VALUE_BYTES: Final = 4


@click.command(
    epilog="Exit codes: 0 measured, 1 a part cannot be measured, or the file cannot be written,"
    " 2 wrong use."
)
@click.option(
    "--workers",
    type=click.IntRange(2, 32),
    default=4,
    show_default=True,
    help="Number of workers; they share this machine's cores.",
)
@click.option(
    "--megabytes",
    type=click.IntRange(1, 1024),
    default=8,
    show_default=True,
    help="Size of the summed tensor.",
)
@click.option(
    "--repeats",
    type=click.IntRange(2, 100),
    default=5,
    show_default=True,
    help="Repeats of each measurement, after a warm-up.",
)
@click.option(
    "--links",
    type=click.Choice(LINKS),
    help="Namespaces whose links carry single frames or super-frames (both need root), or loopback."
    "  [default: veth for root, else loopback]",
)
@click.option(
    "--no-switch", is_flag=True, help="Measure the hosts alone; no softswitch and no compiler."
)
@calibration_option
@json_option
def calibrate(  # noqa: PLR0913 - click passes options by name
    *,
    workers: int,
    megabytes: int,
    repeats: int,
    links: Links | None,
    no_switch: bool,
    calibration_path: Path | None,
    is_json: bool,
) -> None:
    """Measure what this machine's cores can carry, and keep it for 'switchfold scheme predict'.

    Measured are processor times: of a datagram and of quantising, of a chunk at a worker and in
    softswitch, of a byte sent by TCP (by torch's Gloo if there is torch, else by Switchfold's own
    host allreduce), and the time of small sums by both. Links have no rate; every sum is verified.
    It takes some ten seconds on an idle machine. Other work on it makes the figures worse.

    Frames of a network card may cost more or less than those of this machine's own links.

    \b
    Examples:
      switchfold calibrate
      switchfold calibrate --links loopback --no-switch
      sudo switchfold calibrate --links super-frames --calibration cluster.json
    """  # fmt: skip
    path = calibration_path or default_calibration()
    chosen = links or ("veth" if os.geteuid() == 0 else "loopback")
    if chosen != "loopback" and os.geteuid() != 0:
        raise CalibrationRunError(
            f"--links {chosen} needs root, for network namespaces; run with sudo, or choose --links"
            " loopback"
        )
    plan = CalibrationPlan(
        workers=workers,
        num_bytes=1_000_000 * megabytes,
        repeats=repeats,
        links=chosen,
    )
    calibration = calibrated(plan, has_switch=not no_switch)
    store_calibration(path, calibration)
    if is_json:
        print_json(calibration.as_dict())
        return
    _print(calibration, path)
    busy = calibration.machine["busy_before"]
    if busy > BUSY:
        click.echo(
            f"warning: other work kept {100 * busy:.0f} % of the cores busy at the start; measure"
            " again when the machine is idle",
            err=True,
        )


def calibrated(plan: CalibrationPlan, *, has_switch: bool = True) -> Calibration:
    """Return what was measured just now; raises CalibrationRunError."""
    machine = {**machine_facts(), "busy_before": round(busy_share(0.5), 2)}
    figures = _measure(plan, has_switch=has_switch)
    return Calibration(machine=machine, links=_links(plan), figures=figures)


def _measure(plan: CalibrationPlan, *, has_switch: bool) -> dict[str, MeasuredFigure]:
    """Measure everything; without a switch a chunk is its datagram and its quantisation."""
    figures = measure_components(plan.repeats)
    if has_switch:
        figures |= measure_switch(plan)
    else:
        datagram, value = figures["datagram_s"], figures["quantized_value_s"]
        figures["worker_chunk_s"] = MeasuredFigure(
            median=datagram.median + VALUES_PER_PACKET_WIDE * value.median,
            least=datagram.least + VALUES_PER_PACKET_WIDE * value.least,
            most=datagram.most + VALUES_PER_PACKET_WIDE * value.most,
            count=plan.repeats,
        )
    return figures | measure_ring(plan)


def _links(plan: CalibrationPlan) -> str:
    ring = "Gloo" if ring_kind() == "gloo" else "host allreduce"
    return f"{plan.links}, {plan.workers} workers, ring by {ring}"


def _print(calibration: Calibration, path: Path) -> None:
    """Print each figure with its spread, and what it means for a core."""
    print_table(
        f"{calibration.machine['cpu']}, {calibration.machine['cores']} cores; {calibration.links}",
        ("measured", "median us", "least", "most", "repeats", "one core"),
        [
            (
                FIGURES[name],
                *(f"{1e6 * each:.4g}" for each in (figure.median, figure.least, figure.most)),
                figure.count,
                _per_core(name, figure.median),
            )
            for name, figure in calibration.figures.items()
        ],
    )
    if calibration.switch is None:
        click.echo("no switch: a chunk is counted as its datagram and its values, a lower bound")
    click.echo(f"kept in {path}; 'switchfold scheme predict' uses it")


def _per_core(name: str, seconds: float) -> str:
    """Return the rate of one core that a figure means."""
    if name in ("switch_round_s", "ring_step_s") or not seconds:
        return ""
    if name in ("tcp_byte_s", "shared_tcp_byte_s"):
        return f"{1e-9 / seconds:.3g} GB/s"
    if name == "quantized_value_s":
        return f"{1e-9 * _VALUE_BYTES / seconds:.3g} GB/s"
    return f"{1 / seconds:,.0f} packets/s"
