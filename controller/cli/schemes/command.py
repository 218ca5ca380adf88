# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold scheme`: which scheme each layer uses, and how long an iteration takes."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

import click

from ....hostlib.schemes.best_scheme import candidates, two_way
from ....hostlib.schemes.coordinator import Coordinator
from ....hostlib.schemes.cost import busiest_floats
from ....hostlib.schemes.model_file import find_model
from ....hostlib.schemes.prediction import Computing, Prediction, Strategy, predict
from ....hostlib.schemes.wire_cost import seconds
from ..output import json_option, print_json, print_table
from .hardware_options import described_hardware, hardware_options
from .scheme_options import (
    cluster_options,
    described_cluster,
    read_counts,
    read_quantities,
    read_quantity,
)

_EXIT_CODES = "Exit codes: 0 done, 1 an invalid model or cluster."
LITTLE: Final = 1.05
"""Times count as equal if their ratio is at most this."""


@click.group(epilog=_EXIT_CODES)
def scheme() -> None:
    """Choose a scheme per layer, and predict iteration times.

    PS: a parameter server adds. INA: the switch adds. SFB: workers send each other the factors of
    a fully connected layer's gradient.
    """


@scheme.command("best", epilog=_EXIT_CODES)
@cluster_options
@click.option(
    "--workers", default=4, show_default=True, type=click.IntRange(1), help="Number of workers."
)
@click.option(
    "--rate", default="1G", show_default=True, callback=read_quantity, help="Bits/s of each link."
)
@json_option
def best(model_name: str, workers: int, rate: float, is_json: bool, **options: Any) -> None:
    """Show for each layer what the schemes cost, and which one is the best.

    Times are those of a layer on idle links; "floats" in the JSON output are those that the busiest
    node sends and receives.

    \b
    Examples:
      switchfold scheme best --model vgg19 --workers 8 --rate 10G
      switchfold scheme best --model model.toml --workers 4 --rate 100M --slots 64 --json
    """
    model, cluster = find_model(model_name), described_cluster(options, workers, rate)
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
    "--workers",
    default="1,2,4,8",
    show_default=True,
    callback=read_counts,
    metavar="NUMBERS",
    help="Numbers of workers, with commas.",
)
@click.option(
    "--rate",
    "rates",
    default="1G",
    show_default=True,
    callback=read_quantities,
    metavar="RATES",
    help="Bits/s of each link; several with commas.",
)
@click.option(
    "--iteration-ms",
    default=0.0,
    type=click.FloatRange(0),
    help="Measured time of the forward and backward pass of one worker alone.",
)
@click.option(
    "--flops",
    default=None,
    callback=read_quantity,
    metavar="RATE",
    help="Instead of --iteration-ms: operations per second that a worker achieves, such as 5T.",
)
@click.option(
    "--bucket",
    default=None,
    callback=read_quantity,
    metavar="BYTES",
    help="Exchange layers together as DistributedDataParallel does, such as 25M.",
)
@hardware_options
@json_option
def predict_command(  # noqa: PLR0913 - click passes options by name
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

    Compare "ina" and "best" with "ring" (Gloo) to see whether aggregation will help. An exchange
    takes as long as the slowest of link, workers and switch. What hosts and switch can carry comes
    from 'switchfold calibrate', which measures this machine, or from a table of named hardware; it
    is printed with its source.

    \b
    Examples:
      switchfold scheme predict --model vgg19 --iteration-ms 900 --rate 10G,1G
      switchfold scheme predict --model resnet-50 --flops 5T --workers 4,8 --bucket 25M
      switchfold scheme predict --model bert-base --flops 20T --rate 100G --switch tofino
      switchfold scheme predict --model model.toml --rate 100M --json
    """
    model = find_model(model_name)
    computing = Computing(flops_per_s=flops, iteration_s=iteration_ms / 1e3)
    hardware = described_hardware(options)
    hardware.check_rates(rates)
    strategies = [each for each in Strategy if each is not Strategy.INA or options["slots"] > 1]
    found = [
        predict(
            model,
            described_cluster(options, count, rate),
            strategy,
            computing,
            bucket_bytes=int(bucket),
            capacity=hardware.capacity,
        )
        for rate in rates
        for count in workers
        for strategy in strategies
    ]
    if is_json:
        print_json(
            {
                "model": model.name,
                "hosts": dataclasses.asdict(hardware.hosts),
                "switch": dataclasses.asdict(hardware.switch),
                "capacity": dataclasses.asdict(hardware.capacity),
                "predictions": [_as_dict(each) for each in found],
            }
        )
        return
    click.echo(f"{model.name}: {model.num_values:,} parameters ({model.source})")
    for line in hardware.describe():
        click.echo(line)
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
    """Return what limits the iteration: the computing, or the limit of the exchange."""
    return prediction.limit if prediction.efficiency() < 0.95 else "computing"


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
        lines.append(
            f"{count} workers: {_verdict(gains[Strategy.INA], by_strategy[Strategy.INA])};"
            f" with the best scheme per layer {gains[Strategy.BEST]:.2f} times"
        )
    return lines


def _verdict(gain: float, aggregation: Prediction) -> str:
    if round(1 / gain, 2) > 1:
        faster = "faster" if gain < 1 / LITTLE else "a little faster"
        return (
            f"a ring is {faster} here: {1 / gain:.2f} times the throughput of aggregation, which"
            f" the {aggregation.limit} limits"
        )
    helps = "helps" if gain > LITTLE else "brings little"
    return f"aggregation {helps}: {gain:.2f} times the throughput of a ring"


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
