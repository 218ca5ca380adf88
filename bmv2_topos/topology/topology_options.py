# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Options that describe a topology on the command line, and the topology that they describe."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from .fabrics import MAX_FAT_TREE, fat_tree, leaf_spine
from .rates import parse_rate
from .topology import MAX_HOSTS, MAX_PORT, Topology, single_switch
from .topology_file import read_topology

F = TypeVar("F", bound=Callable[..., Any])

_SHAPE_OPTIONS: Final = {
    "single": ("workers",),
    "leaf-spine": ("leaves", "spines", "hosts_per_leaf", "uplink_rate"),
    "fat-tree": ("k", "uplink_rate", "core_rate"),
}


class _Rate(click.ParamType[int]):
    """Bits per second with an optional suffix k, M or G; 0 means unshaped."""

    name = "rate"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        if isinstance(value, int):
            return value
        try:
            return parse_rate(str(value))
        except ValueError as exc:
            self.fail(str(exc), param, ctx)


RATE: Final = _Rate()
"""Type of a rate on the command line."""

_OPTIONS: Final = (
    click.option(
        "--topology",
        type=click.Choice(["single", "leaf-spine", "fat-tree"]),
        default="single",
        show_default=True,
        help="How switches are joined.",
    ),
    click.option(
        "--topology-file",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="Hosts, switches and links of a TOML file, instead of --topology.",
    ),
    click.option(
        "--workers",
        type=click.IntRange(1, MAX_HOSTS),
        help="Hosts of a single switch.  [default: 4]",
    ),
    click.option("--leaves", type=click.IntRange(1, MAX_PORT), help="Leaf switches.  [default: 4]"),
    click.option(
        "--spines", type=click.IntRange(1, MAX_PORT), help="Spine switches.  [default: 2]"
    ),
    click.option(
        "--hosts-per-leaf", type=click.IntRange(1, MAX_HOSTS), help="Hosts of a leaf.  [default: 2]"
    ),
    click.option(
        "--k",
        type=click.IntRange(2, MAX_FAT_TREE),
        help="Ports of a fat-tree's switch.  [default: 4]",
    ),
    click.option(
        "--rate",
        type=RATE,
        default="100M",
        show_default=True,
        help="Rate of hosts' links; 0: unshaped.",
    ),
    click.option(
        "--uplink-rate", type=RATE, help="Rate of links between switches.  [default: --rate]"
    ),
    click.option(
        "--core-rate",
        type=RATE,
        help="Rate of links to a fat-tree's core.  [default: --uplink-rate]",
    ),
)


def with_topology(command: F) -> F:
    """Give a command the options that `described_topology` reads."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def described_topology(shape: dict[str, Any], *, is_shaped: bool) -> Topology:
    """Return the topology that the options of `up` describe; ValueError if they do not fit."""
    file = shape.pop("topology_file")
    if file is not None:
        given = [name for name, value in shape.items() if value is not None]
        others = sorted(set(given) - {"topology", "rate"})
        if others:
            raise ValueError(f"--{others[0].replace('_', '-')} does not go with --topology-file")
        return read_topology(file, is_shaped=is_shaped)
    kind = str(shape["topology"])
    for option, value in shape.items():
        if value is not None and option not in {"topology", "rate", *_SHAPE_OPTIONS[kind]}:
            raise ValueError(f"--{option.replace('_', '-')} does not go with --topology {kind}")

    def number(option: str, default: int) -> int:
        return default if shape[option] is None else shape[option]

    def rate(bits_per_s: int) -> int | None:
        return bits_per_s if bits_per_s and is_shaped else None

    host = number("rate", 0)
    uplink = number("uplink_rate", host)
    if kind == "leaf-spine":
        return leaf_spine(
            number("leaves", 4),
            number("spines", 2),
            number("hosts_per_leaf", 2),
            host_rate_bits_per_s=rate(host),
            uplink_rate_bits_per_s=rate(uplink),
        )
    if kind == "fat-tree":
        return fat_tree(
            number("k", 4),
            host_rate_bits_per_s=rate(host),
            edge_rate_bits_per_s=rate(uplink),
            core_rate_bits_per_s=rate(number("core_rate", uplink)),
        )
    return single_switch(number("workers", 4), rate_bits_per_s=rate(host))
