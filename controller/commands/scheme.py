# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold scheme`: which scheme a layer takes, and what an iteration will take."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from controller.commands.output import json_option, print_json, print_table
from hostlib.schemes.best_scheme import candidates, two_way
from hostlib.schemes.cluster import MIN_SLOTS, Cluster
from hostlib.schemes.coordinator import Coordinator
from hostlib.schemes.cost import busiest_floats
from hostlib.schemes.model_file import find_model
from hostlib.schemes.models import MODELS
from hostlib.schemes.prediction import Computing, Prediction, Strategy, predict
from hostlib.schemes.wire_cost import seconds
from hostlib.wire import NUM_SLOTS, VALUES_PER_PACKET_NARROW, VALUES_PER_PACKET_WIDE

_EXIT_CODES = "Exit codes: 0 done, 1 a model or cluster that makes no sense."
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?(?:e\d+)?)([kMGT]?)")
_UNITS: Final = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_F = TypeVar("_F", bound=Callable[..., Any])


def quantity(text: str) -> float:
    """Return the number that a text such as 100M means; BadParameter for others."""
    match = _QUANTITY.fullmatch(text)
    if match is None or not float(match[1]) > 0:
        raise click.BadParameter(f"{text!r} is not a number such as 40M, 10G or 1e9")
    return float(match[1]) * _UNITS[match[2]]


def _quantity(context: click.Context, option: click.Parameter, text: str | None) -> float:
    return 0.0 if text is None else quantity(text)


def _quantities(context: click.Context, option: click.Parameter, text: str) -> list[float]:
    return [quantity(part.strip()) for part in text.split(",")]


def _counts(context: click.Context, option: click.Parameter, text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) for part in parts):
        raise click.BadParameter(f"{text!r} are not numbers of workers such as 4 or 1,2,4,8")
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
            "--batch", default=32, show_default=True, type=click.IntRange(1), help="Per worker."
        ),
        click.option(
            "--servers",
            default=0,
            type=click.IntRange(0),
            help="Shards of the parameter server on hosts of their own; 0: one on each worker's.",
        ),
        click.option(
            "--round-trip-us",
            default=200.0,
            show_default=True,
            type=click.FloatRange(0),
            help="Of one packet between two hosts.",
        ),
        click.option(
            "--slots",
            default=NUM_SLOTS // 2,
            show_default=True,
            type=click.IntRange(0),
            help="Free slots of the switch; 0: no aggregation.",
        ),
        click.option("--narrow", is_flag=True, help="Packets of 32 values instead of 352."),
        click.option("--multicast", is_flag=True, help="The switch copies factors to all workers."),
        click.option(
            "--rebuild-flops",
            default=None,
            callback=_quantity,
            metavar="RATE",
            help="How fast a worker rebuilds gradients from factors; without it: at no cost.",
        ),
    )):  # fmt: skip
        function = option(function)
    return function


def _cluster(options: dict[str, Any], num_workers: int, rate_bits_per_s: float) -> Cluster:
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


@click.group(epilog=_EXIT_CODES)
def scheme() -> None:
    """Choose a scheme per layer, and predict what it brings.

    PS: a parameter server. INA: the switch adds. SFB: workers send each other the factors of
    a fully connected layer's gradient.
    """


@scheme.command("best", epilog=_EXIT_CODES)
@cluster_options
@click.option("--workers", default=4, show_default=True, type=click.IntRange(1))
@click.option(
    "--rate", default="1G", show_default=True, callback=_quantity, help="Bits/s of each link."
)
@json_option
def best(model_name: str, workers: int, rate: float, is_json: bool, **options: Any) -> None:
    """Show for each layer what the schemes cost, and which one it takes.

    Times are those of a layer on idle links; "floats" are sent and received by the busiest node.

    \b
    Examples:
      switchfold scheme best --model vgg19 --workers 8 --rate 10G
      switchfold scheme best --model model.toml --workers 4 --rate 100M --slots 64 --json
    """
    model, cluster = find_model(model_name), _cluster(options, workers, rate)
    book = Coordinator(model.layers, cluster).book
    rows: list[dict[str, Any]] = []
    for layer in model.layers:
        costs = {each: seconds(each, layer, cluster) for each in candidates(layer, cluster)}
        rows.append(
            {
                "layer": layer.name,
                "kind": layer.kind,
                "values": layer.num_values,
                "seconds": {each.value: cost for each, cost in costs.items()},
                "floats": {each.value: busiest_floats(each, layer, cluster) for each in costs},
                "two_way": two_way(layer, cluster).value,
                "best": book.best_scheme(layer.name).value,
            }
        )
    if is_json:
        print_json(
            {
                "model": model.name,
                "cluster": cluster.as_dict(),
                "book": {"epoch": book.epoch, "hash": book.hash},
                "layers": rows,
            }
        )
        return

    def cell(row: dict[str, Any], name: str) -> str:
        return f"{1e3 * row['seconds'][name]:.3g}" if name in row["seconds"] else "-"

    print_table(
        f"{model.name} ({model.source}), {workers} workers at {rate / 1e6:g} Mbit/s",
        ("layer", "kind", "values", "PS ms", "INA ms", "SFB ms", "two-way", "best"),
        [
            (
                *(row["layer"], row["kind"], row["values"]),
                *(cell(row, name) for name in ("ps", "ina", "sfb")),
                *(row["two_way"], row["best"]),
            )
            for row in rows
        ],
    )
    click.echo(f"information book: epoch {book.epoch}, hash {book.hash}")


@scheme.command("predict", epilog=_EXIT_CODES)
@cluster_options
@click.option(
    "--workers", default="1,2,4,8", show_default=True, callback=_counts, metavar="NUMBERS"
)
@click.option(
    "--rate",
    "rates",
    default="1G",
    show_default=True,
    callback=_quantities,
    metavar="RATES",
    help="Bits/s of each link; several with commas.",
)
@click.option(
    "--iteration-ms",
    default=0.0,
    type=click.FloatRange(0),
    help="Forward and backward of one worker alone, as measured.",
)
@click.option(
    "--flops",
    default=None,
    callback=_quantity,
    metavar="RATE",
    help="Instead: operations per second that a worker really does, such as 5T.",
)
@click.option(
    "--bucket",
    default=None,
    callback=_quantity,
    metavar="BYTES",
    help="Exchange layers together as DistributedDataParallel does, such as 25M.",
)
@json_option
def predict_command(
    model_name: str,
    *,
    workers: list[int],
    rates: list[float],
    iteration_ms: float,
    flops: float,
    bucket: float,
    is_json: bool,
    **options: Any,
) -> None:
    """Predict iteration time, throughput and scaling efficiency of each strategy.

    Compare "ina" and "best" with "ring" (Gloo) to see whether aggregation will help.

    \b
    Examples:
      switchfold scheme predict --model vgg19 --iteration-ms 900 --rate 10G,1G
      switchfold scheme predict --model resnet-152 --flops 5T --workers 4,8 --bucket 25M
      switchfold scheme predict --model model.toml --rate 100M --json
    """
    model = find_model(model_name)
    computing = Computing(flops_per_s=flops, iteration_s=iteration_ms / 1e3)
    strategies = [each for each in Strategy if each is not Strategy.INA or options["slots"] > 1]
    found = [
        predict(
            model, _cluster(options, count, rate), strategy, computing, bucket_bytes=int(bucket)
        )
        for rate in rates
        for count in workers
        for strategy in strategies
    ]
    if is_json:
        print_json({"model": model.name, "predictions": [_as_dict(each) for each in found]})
        return
    click.echo(f"{model.name}: {model.num_values:,} parameters ({model.source})")
    for rate in rates:
        rows = [each for each in found if each.link_bits_per_s == rate]
        print_table(
            f"links of {rate / 1e6:g} Mbit/s, {options['batch']} samples per worker",
            (
                *("workers", "strategy", "no overlap ms", "overlap ms"),
                *("samples/s", "of ideal %", "bound by"),
            ),
            [
                (
                    each.num_workers,
                    each.strategy.value,
                    f"{1e3 * each.sequential_s:.4g}",
                    f"{1e3 * each.overlapped_s:.4g}",
                    f"{each.throughput():.4g}",
                    f"{100 * each.efficiency():.0f}",
                    bound(each),
                )
                for each in rows
            ],
        )
        for line in verdicts(rows):
            click.echo(line)


def bound(prediction: Prediction) -> str:
    """Return whether the network or the worker's processor decides the iteration."""
    return "network" if prediction.efficiency() < 0.95 else "computing"


def verdicts(predictions: list[Prediction]) -> list[str]:
    """Say for each number of workers whether aggregation will help against the ring."""
    lines: list[str] = []
    for count in sorted({each.num_workers for each in predictions} - {1}):
        by_strategy = {each.strategy: each for each in predictions if each.num_workers == count}
        if Strategy.INA not in by_strategy:
            continue
        ring = by_strategy[Strategy.RING].overlapped_s
        gains = {
            strategy: ring / by_strategy[strategy].overlapped_s
            for strategy in (Strategy.INA, Strategy.BEST)
        }
        helps = "helps" if gains[Strategy.INA] > 1.05 else "brings little"
        lines.append(
            f"{count} workers: aggregation {helps}: {gains[Strategy.INA]:.2f} times the throughput"
            f" of a ring; with the best scheme per layer {gains[Strategy.BEST]:.2f} times"
        )
    return lines


def _as_dict(prediction: Prediction) -> dict[str, Any]:
    return {
        "strategy": prediction.strategy.value,
        "workers": prediction.num_workers,
        "batch": prediction.batch,
        "link_bits_per_s": prediction.link_bits_per_s,
        "compute_s": prediction.compute_s,
        "exchange_s": prediction.exchange_s,
        "sequential_s": prediction.sequential_s,
        "overlapped_s": prediction.overlapped_s,
        "samples_per_s": prediction.throughput(),
        "efficiency": prediction.efficiency(),
        "schemes": prediction.schemes,
    }
