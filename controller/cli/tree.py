# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold tree`: aggregation trees, what they cost, and the next best ones."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import click

from ...hostlib.slots import wire
from ..api.operator_api import fabric_pb2 as pb
from ..api.operator_client import OperatorClient
from ..config import ControllerConfig, load_config
from ..errors import ConfigError
from ..fabric.fabric import Fabric
from ..fabric.host_attachment import HostAttachment, attach_hosts
from ..fabric.trees.frame_cost import VALUES_PER_PACKET, Traffic
from ..fabric.trees.planner import DEFAULT_MAX_TREES, plan_trees
from ..fabric.trees.tree_report import report_plan
from ..fabric.trees.tree_text import load_columns, load_rows, summary_lines, tree_lines
from .output import (
    controller_option,
    json_option,
    message_dict,
    print_json,
    print_table,
)

_EXIT_CODES = "Exit codes: 0 done, 1 no such job or no tree, 3 no controller."
_SIZE = re.compile(r"(?P<number>\d+(\.\d+)?)\s*(?P<unit>[kMG]?)(?P<binary>i?)B?")
_UNITS: Final = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}


def parse_size(context: click.Context, option: click.Parameter, text: str) -> int:
    """Return the number of bytes of a text such as 64M (10**6 each) or 64Mi (2**20)."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise click.BadParameter(f"{text!r} is not a size such as 64M, 64Mi or 1000000")
    unit = _UNITS[match["unit"]]
    if match["binary"]:
        unit = 1 << (10 * list(_UNITS).index(match["unit"]))
    size = int(float(match["number"]) * unit)
    if size < wire.VALUE_BYTES:
        raise click.BadParameter(f"{text!r} is less than one value of {wire.VALUE_BYTES} bytes")
    return size


bytes_option = click.option(
    "--bytes",
    "tensor_bytes",
    default="64Mi",
    show_default=True,
    metavar="SIZE",
    callback=parse_size,
    help="Size of the tensor: 64M is 64 000 000 bytes, 64Mi is 64 * 2**20.",
)
picture_option = click.option(
    "--picture",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Draw the trees too: a file ending in .svg, .png or .pdf.",
)
hosts_option = click.option(
    "--hosts", "has_hosts", is_flag=True, help="List the links to hosts too."
)


@click.group(epilog=_EXIT_CODES)
def tree() -> None:
    """Look at aggregation trees, or plan them without a controller."""


@tree.command("show", epilog=_EXIT_CODES)
@click.argument("name")
@bytes_option
@picture_option
@hosts_option
@controller_option
@json_option
def show_tree(  # noqa: PLR0917 - click passes options by name
    name: str,
    tensor_bytes: int,
    picture: Path | None,
    has_hosts: bool,
    client: OperatorClient,
    is_json: bool,
) -> None:
    """Show the trees of the live job NAME, what an allreduce costs, and the next best plans.

    "expected" counts the frames of all rounds that the trees have completed since the view began,
    "measured" everything that has crossed the link since then.

    \b
    Examples:
      switchfold tree show train
      switchfold tree show train --bytes 1G --picture trees.png
      switchfold tree show train --hosts --json
    """  # fmt: skip
    report = client.show_tree(name, tensor_bytes)
    show(report, picture, has_hosts=has_hosts, is_json=is_json)


@tree.command("plan", epilog=_EXIT_CODES)
@click.option(
    "--config",
    "path",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The controller's TOML file with [[switch]], [[switch.host]] and [[link]].",
)
@click.option(
    "--workers",
    default="",
    metavar="HOSTS",
    help="Hosts of the workers, by id from 0: h1,h2,... Without it: every host.",
)
@bytes_option
@click.option("--int", "is_int", is_flag=True, help="An int32 tensor, without exponents.")
@click.option(
    "--max-trees",
    default=DEFAULT_MAX_TREES,
    show_default=True,
    type=click.IntRange(1),
    help="Most trees of the plan.",
)
@click.option("--slots", default=0, type=click.IntRange(0), help="Slots to split among the trees.")
@click.option(
    "--avoid", multiple=True, metavar="NAME", help="A switch or link to leave out; repeatable."
)
@picture_option
@hosts_option
@json_option
def plan(  # noqa: PLR0913, PLR0917 - click passes options by name
    path: Path,
    workers: str,
    tensor_bytes: int,
    is_int: bool,
    max_trees: int,
    slots: int,
    avoid: tuple[str, ...],
    picture: Path | None,
    has_hosts: bool,
    is_json: bool,
) -> None:
    """Plan trees over idle links; no controller is asked and nothing is changed.

    \b
    Examples:
      switchfold tree plan --config controller.toml
      switchfold tree plan --config controller.toml --workers h1,h2,h5 --bytes 64M
      switchfold tree plan --config controller.toml --avoid s5 --picture trees.svg
    """
    config = load_config(path)
    fabric = Fabric.of(config)
    attachments = _attachments(config, workers)
    switches = {name for name in avoid if name in fabric.switches}
    links = {fabric.find_link(name).key for name in avoid if name not in switches}
    planned = plan_trees(
        fabric.without(switches=switches, links=links),
        attachments,
        Traffic(
            tensor_bytes=tensor_bytes,
            values_per_packet=VALUES_PER_PACKET[config.variant],
            is_float=not is_int,
            frame_overhead_bytes=config.frame_overhead_bytes,
        ),
        max_trees=max_trees,
    )
    if 0 < slots < len(planned.trees):
        raise ConfigError(f"{slots} slots are too few for {len(planned.trees)} trees")
    show(report_plan(fabric, planned, slots), picture, has_hosts=has_hosts, is_json=is_json)


def show(report: pb.TreeReport, picture: Path | None, *, has_hosts: bool, is_json: bool) -> None:
    """Print a report, and draw it."""
    if picture is not None:
        # matplotlib takes half a second to import.
        from ..fabric.trees.tree_picture import draw_trees  # noqa: PLC0415

        draw_trees(report, picture)
    if is_json:
        print_json(message_dict(report))
        return
    for line in (*summary_lines(report), *tree_lines(report)):
        click.echo(line)
    if report.measured_error:
        click.echo(f"not measured: {report.measured_error}")
    loads = load_rows(report, has_hosts=has_hosts)
    if loads:
        print_table("Links", load_columns(report), loads)
    if picture is not None:
        click.echo(f"picture: {picture}")


def _attachments(config: ControllerConfig, workers: str) -> list[HostAttachment]:
    """Return the named hosts, or all, as workers by id."""
    names = [name for name in workers.split(",") if name]
    return attach_hosts(config, names)
