# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Options of `switchfold scheme`: machines, network, and the capacity of hosts and switch."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from ....hostlib.schemes.cluster import MIN_SLOTS, Cluster
from ....hostlib.schemes.known_models import MODELS
from ....hostlib.slots.wire import NUM_SLOTS, VALUES_PER_PACKET_NARROW, VALUES_PER_PACKET_WIDE

_QUANTITY = re.compile(r"(\d+(?:\.\d+)?(?:e\d+)?)([kMGT]?)")
_UNITS: Final = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_F = TypeVar("_F", bound=Callable[..., Any])


def quantity(text: str) -> float:
    """Return the number that a text such as 100M means; BadParameter for others."""
    match = _QUANTITY.fullmatch(text)
    if match is None or not float(match[1]) > 0:
        raise click.BadParameter(f"{text!r} is not a number such as 40M, 10G or 1e9")
    return float(match[1]) * _UNITS[match[2]]


def read_quantity(context: click.Context, option: click.Parameter, text: str | None) -> float:
    """Return the number of an option, 0 without it."""
    return 0.0 if text is None else quantity(text)


def read_quantities(context: click.Context, option: click.Parameter, text: str) -> list[float]:
    """Return the numbers of an option."""
    return [quantity(part.strip()) for part in text.split(",")]


def read_counts(context: click.Context, option: click.Parameter, text: str) -> list[int]:
    """Return the numbers of workers of an option."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) for part in parts):
        raise click.BadParameter(f"{text!r} is not a list of worker counts such as 4 or 1,2,4,8")
    return [int(part) for part in parts]


def cluster_options(function: _F) -> _F:
    """Add the options that describe machines and network, and --model."""
    for option in reversed((
        click.option(
            "--model",
            "model_name",
            required=True,
            metavar="NAME|FILE",
            help=f"{', '.join(sorted(MODELS))}, or a .toml or .json file with [[layers]].",
        ),
        click.option(
            "--batch",
            default=32,
            show_default=True,
            type=click.IntRange(1),
            help="Samples per worker and iteration.",
        ),
        click.option(
            "--servers",
            default=0,
            type=click.IntRange(0),
            help="Shards of the parameter server on hosts of their own; 0: one per worker's host.",
        ),
        click.option(
            "--round-trip-us",
            default=200.0,
            show_default=True,
            type=click.FloatRange(0),
            help="Round-trip time of one packet between two hosts.",
        ),
        click.option(
            "--slots",
            default=NUM_SLOTS // 2,
            show_default=True,
            type=click.IntRange(0),
            help="Free slots of the switch; 0: no aggregation.",
        ),
        click.option("--narrow", is_flag=True, help="Packets of 32 lanes instead of 352."),
        click.option(
            "--multicast", is_flag=True, help="The switch multicasts factors to all workers."
        ),
        click.option(
            "--rebuild-flops",
            default=None,
            callback=read_quantity,
            metavar="RATE",
            help="Operations per second of a worker that rebuilds gradients from factors; without"
            " it, rebuilding takes no time.",
        ),
    )):  # fmt: skip
        function = option(function)
    return function


def described_cluster(options: dict[str, Any], num_workers: int, rate_bits_per_s: float) -> Cluster:
    """Return the cluster that the options of `cluster_options` describe."""
    is_narrow = options["narrow"]
    return Cluster(
        num_workers=num_workers,
        num_servers=options["servers"],
        is_colocated=options["servers"] == 0,
        batch=options["batch"],
        link_bits_per_s=rate_bits_per_s,
        round_trip_s=options["round_trip_us"] / 1e6,
        slots=options["slots"],
        values_per_packet=VALUES_PER_PACKET_NARROW if is_narrow else VALUES_PER_PACKET_WIDE,
        has_switch=options["slots"] >= MIN_SLOTS,
        has_multicast=options["multicast"],
        flops_per_s=options["rebuild_flops"] or math.inf,
    )
