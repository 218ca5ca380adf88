# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Published headline figures beside what the project's models give: which agree, which do not.

Poseidon: `hostlib.schemes` predicts iterations from layer tables, with its reconstructed two-way
rule. SwitchML: rates of links with headers. Hot parameters: Zipf's law and the load of servers.
MLfabric: figures that this project has measured and simulated before. No time is measured here, so
the output is the same on every machine.
Run: python benchmarks/simulator/shapes.py
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.simulator import published
from benchmarks.simulator.shapes_plot import draw_shapes
from benchmarks.support.results import write_json
from switchfold.controller.cli.workloads.zipf import ZipfRanks
from switchfold.hostlib.schemes.cluster import Cluster
from switchfold.hostlib.schemes.known_models import MODELS
from switchfold.hostlib.schemes.models import VGG19_22K, Model
from switchfold.hostlib.schemes.prediction import Computing, Strategy, predict

RESULTS = Path(__file__).parents[1] / "results"
BATCH = 32
RTT_S = 50e-6
GBIT = 1e9
VGG_ITERATION_S = BATCH / published.CAFFE_IMAGES_PER_S
ROCE_SHARE = 0.926
"""Payload over wire bytes of 1,024 bytes in a RoCE packet, preamble and gap included."""
LIBRA_CONTRIBUTIONS = 80
"""Workers whose updates of a hot parameter the switch adds up."""
OUR_GRIDS = {
    "scheduled, simulated": (1.48, 3.40),
    "scheduled, measured": (0.89, 2.48),
    "switch adds and relays, measured": (1.33, 5.49),
}
"""Least and most times as fast to the target as plain asynchronous PS, over nine cells: medians of
five seeds in docs/simulator.md and docs/fabric_evaluation.md."""
CONTENDERS = (
    ("PS, no overlap", Strategy.PS, False),
    ("PS, overlap", Strategy.PS, True),
    ("two-way, overlap", Strategy.TWO_WAY, True),
    ("switch, overlap", Strategy.INA, True),
    ("best of three, overlap", Strategy.BEST, True),
)


@dataclass(frozen=True, kw_only=True)
class ShapeRow:
    """One published figure and ours."""

    what: str
    published: float
    ours: float
    tolerance: float = 0.1

    @property
    def is_close(self) -> bool:
        """Whether ours is within the tolerance."""
        return abs(self.ours / self.published - 1) <= self.tolerance

    def text(self) -> str:
        """Return a line of the table."""
        outcome = "yes" if self.is_close else "no"
        difference = 100 * (self.ours / self.published - 1)
        return (
            f"| {self.what} | {self.published:g} | {self.ours:.2f} | {difference:+.0f} % "
            f"| {outcome} |"
        )


def speed_up(
    model: Model,
    nodes: int,
    link_bits_per_s: float,
    iteration_s: float,
    strategy: Strategy,
    *,
    has_overlap: bool = True,
) -> float:
    """Return the predicted throughput over that of one node that exchanges nothing."""
    multiplications = sum(layer.multiplications for layer in model.layers)
    cluster = Cluster(
        num_workers=nodes,
        link_bits_per_s=link_bits_per_s,
        batch=BATCH,
        round_trip_s=RTT_S,
        # Gradients are rebuilt from factors as fast as the model itself is computed.
        flops_per_s=3 * 2 * multiplications * BATCH / iteration_s,
    )
    found = predict(model, cluster, strategy, Computing(iteration_s=iteration_s))
    return nodes * found.efficiency(has_overlap=has_overlap)


def inception_iteration_s() -> float:
    """Return Inception-V3's iteration, assumed as fast per multiplication as VGG19-22K's."""
    inception, vgg = (
        sum(layer.multiplications for layer in model.layers)
        for model in (MODELS["inception-v3"], VGG19_22K)
    )
    return VGG_ITERATION_S * inception / vgg


def poseidon_rows() -> list[ShapeRow]:
    """Return Poseidon's headlines."""
    inception = MODELS["inception-v3"]
    iteration_s = inception_iteration_s()
    rows = [
        ShapeRow(
            what=f"Poseidon: {published.POSEIDON_10G.what}",
            published=published.POSEIDON_10G.value,
            ours=speed_up(VGG19_22K, 16, 10 * GBIT, VGG_ITERATION_S, Strategy.TWO_WAY),
        ),
        ShapeRow(
            what=f"Poseidon: {published.POSEIDON_INCEPTION.what}",
            published=published.POSEIDON_INCEPTION.value,
            ours=speed_up(inception, 32, 40 * GBIT, iteration_s, Strategy.TWO_WAY),
        ),
        ShapeRow(
            what=f"Poseidon: {published.TENSORFLOW_INCEPTION.what}",
            published=published.TENSORFLOW_INCEPTION.value,
            ours=speed_up(inception, 32, 40 * GBIT, iteration_s, Strategy.PS, has_overlap=False),
        ),
    ]
    ours = {
        "Poseidon": (Strategy.TWO_WAY, True),
        "overlap only": (Strategy.PS, True),
        "Caffe with PS": (Strategy.PS, False),
    }
    for name, curve in published.POSEIDON_CURVES.items():
        strategy, has_overlap = ours[name]
        value = speed_up(
            VGG19_22K, 32, 40 * GBIT, VGG_ITERATION_S, strategy, has_overlap=has_overlap
        )
        what = f"Poseidon: VGG19-22K in Caffe, 32 nodes, 40 GbE: {name}"
        rows.append(ShapeRow(what=what, published=curve[-1], ours=value))
    return rows


def poseidon_curves(
    link_bits_per_s: float, model: Model = VGG19_22K, iteration_s: float = VGG_ITERATION_S
) -> dict[str, list[float]]:
    """Return a model's speed-ups by number of nodes."""
    return {
        name: [
            speed_up(model, nodes, link_bits_per_s, iteration_s, strategy, has_overlap=has_overlap)
            for nodes in published.POSEIDON_NODES
        ]
        for name, strategy, has_overlap in CONTENDERS
    }


def switch_elements_per_s(link_bits_per_s: float = 100 * GBIT) -> float:
    """Return float32 values per second that the switch adds for each worker, by the link."""
    return link_bits_per_s * ROCE_SHARE / 32


def ring_elements_per_s(workers: int, link_bits_per_s: float = 100 * GBIT) -> float:
    """Return the most that a ring of equal efficiency adds."""
    return switch_elements_per_s(link_bits_per_s) * workers / (2 * (workers - 1))


def switchml_rows() -> list[ShapeRow]:
    """Return SwitchML's rates and their ratios to NCCL's ring."""
    rows: list[ShapeRow] = []
    for workers, found, ring in zip(
        published.SWITCHML_WORKERS,
        published.SWITCHML_ELEMENTS_PER_S,
        published.NCCL_ELEMENTS_PER_S,
        strict=True,
    ):
        rows.append(
            ShapeRow(
                what=f"SwitchML: {workers} workers, million values/s",
                published=found / 1e6,
                ours=switch_elements_per_s() / 1e6,
            )
        )
        rows.append(
            ShapeRow(
                what=f"SwitchML: {workers} workers, times NCCL's ring",
                published=round(found / ring, 2),
                ours=switch_elements_per_s() / ring_elements_per_s(workers),
            )
        )
    return rows


def writes_saved(hot_share: float, contributions: int) -> float:
    """Return a server's writes without hot rows over those with: 1 / (1 - h + h / c)."""
    return 1 / (1 - hot_share + hot_share / contributions)


def hot_rows() -> list[ShapeRow]:
    """Return the skew that the study measured; and Libra's range by the load of servers."""
    rows = [
        ShapeRow(
            what=f"hot parameters: {name}, share of the 20,000 hottest of {keys:,}",
            published=share,
            ours=ZipfRanks(keys, exponent).share(published.HOT_KEYS),
        )
        for name, (keys, share, exponent) in published.HOT_SHARES.items()
    ]
    shares = [share for _, share, _ in published.HOT_SHARES.values()]
    for share, value in zip(shares, published.LIBRA_RANGE, strict=True):
        what = (
            f"Libra: gradient aggregation faster; fewer writes with {share:.0%} hot,"
            f" {LIBRA_CONTRIBUTIONS} workers"
        )
        ours = writes_saved(share, LIBRA_CONTRIBUTIONS)
        rows.append(ShapeRow(what=what, published=value, ours=ours))
    return rows


def mlfabric_rows() -> list[ShapeRow]:
    """Return the ends of MLfabric's grid, beside those of ours; no cell matches one of ours."""
    cells = [cell for row in published.MLFABRIC_GRID for cell in row]
    return [
        ShapeRow(what=f"MLfabric: {end} of its 9 cells; {name}", published=value, ours=ours)
        for name, ends in OUR_GRIDS.items()
        for end, value, ours in zip(("least", "most"), (min(cells), max(cells)), ends, strict=True)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--name", default="simulator_shapes", help="of the files in results/")
    options = parser.parse_args()
    rows = [*poseidon_rows(), *switchml_rows(), *hot_rows(), *mlfabric_rows()]
    print("| figure | published | our model | difference | within 10 % |\n|---|---|---|---|---|")
    for row in rows:
        print(row.text())
    curves = {rate: poseidon_curves(rate * GBIT) for rate in (10, 40)}
    for rate, found in curves.items():
        nodes = published.POSEIDON_NODES
        print(f"\nVGG19-22K, {rate} GbE, our model\n")
        print(f"| nodes | {' | '.join(str(each) for each in nodes)} |\n|---{'|---' * len(nodes)}|")
        for name, values in found.items():
            print(f"| {name} | {' | '.join(f'{value:.2f}' for value in values)} |")
    inception = poseidon_curves(40 * GBIT, MODELS["inception-v3"], inception_iteration_s())
    hot_shares = [each / 100 for each in range(0, 101, 2)]
    libra = {share: writes_saved(share, LIBRA_CONTRIBUTIONS) for share in hot_shares}
    write_json(
        RESULTS / f"{options.name}.json",
        {
            "rows": [
                {"what": row.what, "published": row.published, "ours": row.ours} for row in rows
            ],
            "curves": {str(rate): found for rate, found in curves.items()},
            "inception": inception,
        },
    )
    rates = {
        "switch": [switch_elements_per_s()] * len(published.SWITCHML_WORKERS),
        "ring": [ring_elements_per_s(workers) for workers in published.SWITCHML_WORKERS],
    }
    path = RESULTS / f"{options.name}.png"
    draw_shapes(curves, inception, rates, libra, path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
