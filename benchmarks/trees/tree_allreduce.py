# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Allreduce through aggregation trees against torch's Gloo ring, on the same links and switches.

Eight workers run in three fabrics: under four leaves and two spines with a 4:1 bottleneck between
leaf and spine; the same with one spine of equal capacity; and around one switch. In each fabric the
same worker processes sum the same tensors by Switchfold, over the trees that the controller plans,
and by Gloo, whose TCP the same switches forward as ordinary IPv4 packets. Each result is verified
before its time counts, and the bytes on each link are compared with the controller's prediction.

    python benchmarks/trees/tree_allreduce.py --fabrics 2-spines,1-spine,1-switch --repeats 5
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.support import limits, link_check, plot  # noqa: E402
from benchmarks.support.machine import (  # noqa: E402
    check_machine,
    describe_machine,
    machine_line,
    parse_rate,
    probed_rate,
)
from benchmarks.support.results import parameters_of, write_json  # noqa: E402
from benchmarks.support.worker_runs import outputs, sum_arguments  # noqa: E402
from benchmarks.trees import tree_report  # noqa: E402
from switchfold.bmv2_topos import Testbed, Topology, leaf_spine, single_switch  # noqa: E402
from switchfold.bmv2_topos.errors import TestbedError  # noqa: E402
from switchfold.controller.config import ControllerConfig, load_config  # noqa: E402
from switchfold.controller.fabric.fabric import Direction, Fabric  # noqa: E402
from switchfold.controller.fabric.host_attachment import attach_hosts  # noqa: E402
from switchfold.controller.fabric.routes import path  # noqa: E402
from switchfold.hostlib import SessionOptions  # noqa: E402
from switchfold.hostlib.slots import wire  # noqa: E402

WORKER = ROOT / "benchmarks" / "allreduce" / "allreduce_worker.py"
NUM_LEAVES, HOSTS_PER_LEAF = 4, 2
OVERSUBSCRIPTION = 4
"""Rate of all hosts of a leaf divided by the rate of all its uplinks."""


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--fabrics", default="2-spines,1-spine,1-switch", help="default all: %(default)s"
    )
    parser.add_argument("--rate", default="100M", help="rate of a host's link, default 100M bit/s")
    parser.add_argument(
        "--bytes", type=int, default=8_000_000, help="size of the float32 tensor, default 8 MB"
    )
    parser.add_argument(
        "--repeats", type=int, default=5, help="sums by each contender, after one warm-up"
    )
    parser.add_argument("--window", type=int, default=SessionOptions().window)
    parser.add_argument(
        "--slots", type=int, default=0, help="slots of the job, default the controller's choice"
    )
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds per allreduce")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    options = parser.parse_args()
    for name in options.fabrics.split(","):
        if name not in ("2-spines", "1-spine", "1-switch"):
            parser.error(f"no fabric {name}; choose from 2-spines, 1-spine, 1-switch")
    return options


def uplink_rate(host_bits_per_s: int, num_spines: int) -> int:
    """Return the rate of one of a leaf's uplinks, bits/s."""
    return HOSTS_PER_LEAF * host_bits_per_s // OVERSUBSCRIPTION // num_spines


def topology_of(name: str, host_bits_per_s: int) -> Topology:
    if name == "1-switch":
        return single_switch(NUM_LEAVES * HOSTS_PER_LEAF, rate_bits_per_s=host_bits_per_s)
    num_spines = int(name[0])
    return leaf_spine(
        NUM_LEAVES,
        num_spines,
        HOSTS_PER_LEAF,
        host_rate_bits_per_s=host_bits_per_s,
        uplink_rate_bits_per_s=uplink_rate(host_bits_per_s, num_spines),
    )


def run_workers(
    options: argparse.Namespace, topology: Topology
) -> tuple[list[dict[str, Any]], ControllerConfig]:
    """Return the output of each worker, and the controller's configuration of the fabric."""
    with Testbed(topology) as testbed:
        config = load_config(testbed.run_directory / "controller.toml")
        command = [
            *(sys.executable, str(WORKER)),
            *sum_arguments(options, testbed),
            *("--window", str(options.window), "--slots", str(options.slots)),
            *("--testbed", testbed.name),
        ]
        results = testbed.run_workers(
            command,
            job="bench",
            timeout_s=120 + 2 * (options.repeats + 1) * options.timeout,
            environment={"OMP_NUM_THREADS": "1"},
        )
    return outputs(results), config


def ring_streams(fabric: Fabric, config: ControllerConfig) -> Counter[Direction]:
    """Return the number of ring streams that cross each direction of a link."""
    hosts = attach_hosts(config)
    streams: Counter[Direction] = Counter()
    for sender, receiver in zip(hosts, [*hosts[1:], hosts[0]], strict=True):
        streams.update(path(fabric, sender, receiver) or ())
    return streams


def mean_bytes(
    workers: list[dict[str, Any]], label: str, *, is_predicted: bool = False
) -> dict[str, float]:
    """Return the measured or predicted mean bytes of a contender's allreduce, by direction.

    Runs in which the trees changed are left out; TestbedError if they changed in all runs.
    """
    runs = [run for run in workers[0]["runs"] if run["label"] == label][1:]
    runs = [run for run in runs if run["predicted_bytes"] or label != "switchfold"]
    if not runs:
        raise TestbedError("the trees changed during every sum: their bytes have no prediction")
    key = "predicted_bytes" if is_predicted else "carried_bytes"
    return {link: statistics.mean(run[key].get(link, 0.0) for run in runs) for link in runs[0][key]}


def measure(
    options: argparse.Namespace, name: str, rates_bits_per_s: dict[int, float]
) -> dict[str, Any]:
    """Run one fabric; `rates_bits_per_s` has the real rate of links by their nominal rate."""
    host_bits_per_s = parse_rate(options.rate)
    topology = topology_of(name, host_bits_per_s)
    workers, config = run_workers(options, topology)
    fabric = Fabric.of(config)
    streams = ring_streams(fabric, config)
    carried_bits_per_s = rates_bits_per_s[host_bits_per_s]
    leaf_uplinks = [link for link in topology.switch_links if "s1" in (link.a, link.b)]
    uplinks_bits_per_s = sum(
        rates_bits_per_s[link.rate_bits_per_s or 0] for link in leaf_uplinks
    ) or float("inf")
    narrowest = min(carried_bits_per_s, uplinks_bits_per_s)
    limits_s = {
        "switchfold": limits.switchfold_limit_s(
            options.bytes, narrowest, wire.VALUES_PER_PACKET_WIDE
        ),
        "gloo_switch": limits.routed_ring_limit_s(
            options.bytes,
            len(workers),
            [(count, rates_bits_per_s[fabric.rate(side)]) for side, count in streams.items()],
        ),
    }
    carried = mean_bytes(workers, "switchfold")
    predicted = mean_bytes(workers, "switchfold", is_predicted=True)
    differences = link_check.differences(carried, predicted)
    row: dict[str, Any] = {
        "fabric": name,
        "num_workers": len(workers),
        **{
            label: limits.collect_series(label, workers, limit_s).as_dict()
            for label, limit_s in limits_s.items()
        },
        "spread_ring_limit_s": limits.ring_limit_s(options.bytes, narrowest, len(workers)),
        "window": workers[0]["window"],
        "slots": workers[0]["slots"],
        "trees": workers[0]["trees"],
        "links": [
            {"link": link, "predicted": predicted[link], "measured": carried[link]}
            for link in predicted
        ],
        "largest_difference": max(differences.values(), key=abs),
        "gloo_bytes": mean_bytes(workers, "gloo_switch"),
        "statistics": [worker["statistics"] for worker in workers],
    }
    ours, gloo = row["switchfold"], row["gloo_switch"]
    row["ratio"] = gloo["median_s"] / ours["median_s"]
    row["ratio_of_limits"] = gloo["limit_s"] / ours["limit_s"]
    return row


def main() -> None:
    options = parse_options()
    check_machine()
    machine = describe_machine()
    host_bits_per_s = parse_rate(options.rate)
    names = options.fabrics.split(",")
    nominal = {host_bits_per_s} | {
        link.rate_bits_per_s or 0
        for name in names
        for link in topology_of(name, host_bits_per_s).switch_links
    }
    try:
        rates_bits_per_s = {rate: min(probed_rate(rate)) for rate in sorted(nominal)}
        print(machine_line(machine))
        shown = ", ".join(
            f"{rate / 1e6:g} Mbit/s carry {real / 1e6:.2f}"
            for rate, real in rates_bits_per_s.items()
        )
        print(f"{options.bytes / 1e6:g} MB of float32; links of {shown}")
        print(
            f"{NUM_LEAVES * HOSTS_PER_LEAF} workers; softswitch wide; {options.repeats} repeats "
            "after 1 warm-up, one contender after the other; every sum verified\n\n"
            f"{tree_report.HEADING}"
        )
        rows: list[dict[str, Any]] = []
        for name in names:
            row = measure(options, name, rates_bits_per_s)
            print(tree_report.describe_row(row), flush=True)
            rows.append(row)
    except TestbedError as exc:
        raise SystemExit(f"benchmark stopped: {exc}") from exc
    print("\n" + "\n".join(tree_report.describe_links(row) for row in rows))
    content = {
        "machine": machine,
        "parameters": parameters_of(options),
        "probed_bits_per_s": rates_bits_per_s,
        "rows": rows,
    }
    write_json(options.out / "tree_allreduce.json", content)
    plot.draw_bars(
        [(tree_report.tick_text(row), row) for row in rows],
        tree_report.NAMES,
        "Allreduce of 8 workers, every sum verified",
        machine,
        options.out / "tree_allreduce.png",
    )
    print(f"wrote {options.out / 'tree_allreduce.json'} and tree_allreduce.png")


if __name__ == "__main__":
    main()
