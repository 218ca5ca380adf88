# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One fully connected layer by parameter server, factors and switch: is the chosen scheme the best?

For each vector of the cost model's tests, a testbed has as many hosts as workers around one switch,
with links so slow that they limit the time. The same worker processes sum the same gradients by
each scheme in turn: over shards on the workers' hosts, by factors in streams to every other worker,
by factors that the switch multicasts, and by sums in the switch. Each result is verified before its
time counts. The report shows the prediction beside each time, and compares the bytes on each host's
link with the formula.

    python benchmarks/schemes/schemes.py --vectors 1,2,3 --out benchmarks/results
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.schemes.schemes_report import HEADING, describe_row, summary  # noqa: E402
from benchmarks.schemes.schemes_worker import MULTICAST  # noqa: E402
from benchmarks.support.machine import (  # noqa: E402
    check_machine,
    describe_machine,
    machine_line,
    parse_rate,
)
from benchmarks.support.results import write_json  # noqa: E402
from benchmarks.support.worker_runs import outputs  # noqa: E402
from switchfold.bmv2_topos import Testbed, Topology, single_switch  # noqa: E402
from switchfold.bmv2_topos.errors import TestbedError  # noqa: E402
from switchfold.hostlib.parameter_server import PAIR_BYTES  # noqa: E402
from switchfold.hostlib.schemes import (  # noqa: E402
    Cluster,
    Coordinator,
    InformationBook,
    JobHosts,
    Layer,
    Scheme,
    busiest_floats,
    three_way,
    two_way,
)
from switchfold.hostlib.schemes.wire_cost import factor_time, seconds, wire_bytes  # noqa: E402

WORKER = Path(__file__).with_name("schemes_worker.py")
CONTENDERS = {
    "ps": (Scheme.PS, False),
    "sfb": (Scheme.SFB, False),
    MULTICAST: (Scheme.SFB, True),
    "ina": (Scheme.INA, False),
}
"""Scheme by name, and whether the switch multicasts factors."""
FIRST_PORT = 23000


@dataclass(frozen=True)
class Vector:
    """A layer, and the network over which it is exchanged."""

    rows: int
    columns: int
    batch: int
    workers: int
    rate: str
    iterations: int

    @property
    def name(self) -> str:
        return f"{self.rows}x{self.columns} K={self.batch} P={self.workers}"


VECTORS = (
    Vector(64, 48, 4, 2, "6M", 40),
    Vector(64, 48, 4, 4, "6M", 40),
    Vector(64, 48, 16, 4, "6M", 40),
    Vector(64, 48, 16, 3, "6M", 40),
    Vector(32, 16, 8, 4, "3M", 40),
    Vector(1024, 1000, 128, 4, "20M", 2),
    Vector(1024, 1000, 128, 8, "20M", 2),
    Vector(4096, 4096, 32, 8, "32M", 1),
    Vector(4096, 1000, 32, 32, "24M", 1),
)
"""Vectors of the cost model's tests. With these rates the links limit the time, not two cores.
Where messages are small, answers come before a delayed acknowledgement would be sent alone."""
WARM_UPS = 1
"""Warm-up iterations, if more than one is measured; they open the connections."""


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    every = ",".join(str(number) for number in range(1, len(VECTORS) + 1))
    parser.add_argument(
        "--vectors",
        default=every.rpartition(",")[0],
        help="default %(default)s; the last one, with 32 workers, takes another five minutes",
    )
    parser.add_argument("--schemes", default=",".join(CONTENDERS), help="default all: %(default)s")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds per iteration")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    options = parser.parse_args()
    numbers = options.vectors.split(",")
    for number in numbers:
        if not number.isdecimal() or not 1 <= int(number) <= len(VECTORS):
            parser.error(f"no vector {number}; choose from {every}")
    unknown = set(options.schemes.split(",")) - set(CONTENDERS)
    if unknown:
        parser.error(f"no scheme {', '.join(sorted(unknown))}; choose from {', '.join(CONTENDERS)}")
    options.chosen = [VECTORS[int(number) - 1] for number in numbers]
    return options


def probed_flops() -> float:
    """Return this machine's operations per second of matrix products, on all cores together."""
    u, v = (np.ones((256, size), np.float32) for size in (2048, 2048))
    fastest_s = math.inf
    for _ in range(3):
        began_s = time.perf_counter()
        np.matmul(u.T, v)
        fastest_s = min(fastest_s, time.perf_counter() - began_s)
    return 2 * 256 * 2048 * 2048 / fastest_s


def write_book(vector: Vector, topology: Topology, flops_per_s: float) -> InformationBook:
    """Return the coordinator's book, with pairs small enough for equal shards."""
    layer = Layer(name="layer", kind="fc", rows=vector.rows, columns=vector.columns)
    cluster = Cluster(
        num_workers=vector.workers,
        batch=vector.batch,
        link_bits_per_s=float(parse_rate(vector.rate)),
        flops_per_s=flops_per_s / vector.workers,
    )
    even_bytes = -(-layer.num_values // vector.workers) * 4
    return Coordinator(
        [layer],
        cluster,
        hosts=JobHosts(
            job="schemes",
            workers=[(host.address, 0) for host in topology.hosts],
            first_port=FIRST_PORT,
        ),
        pair_bytes=min(PAIR_BYTES, even_bytes),
    ).book


def measure(vector: Vector, options: argparse.Namespace, flops_per_s: float) -> dict[str, Any]:
    """Run a vector; return times, predictions and bytes of each scheme, and the choice."""
    topology = single_switch(vector.workers, rate_bits_per_s=parse_rate(vector.rate))
    with Testbed(topology) as testbed:
        book = write_book(vector, topology, flops_per_s)
        path = testbed.run_directory / "book.json"
        path.write_text(book.to_json())
        command = [
            *(sys.executable, str(WORKER), "--book", str(path), "--testbed", testbed.name),
            *("--iterations", str(vector.iterations)),
            *("--warm-up", str(WARM_UPS * (vector.iterations > 1))),
            *("--schemes", options.schemes, "--timeout", str(options.timeout)),
        ]
        results = testbed.run_workers(
            command,
            job="schemes",
            timeout_s=60 + 4 * options.timeout,
            environment={"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
    workers = outputs(results)
    if {worker["book"] for worker in workers} != {book.hash}:
        raise TestbedError("the workers' information books differ")
    layer, cluster = book.entries[0].layer, book.cluster
    schemes = {
        name: describe(name, workers, book, vector.iterations)
        for name in options.schemes.split(",")
    }
    predicted_s = {name: predict(name, layer, cluster) for name in CONTENDERS}
    chosen = book.best_scheme(layer.name).value
    return {
        "vector": vector.name,
        "rate": vector.rate,
        "iterations": vector.iterations,
        "schemes": schemes,
        "two_way": two_way(layer, cluster).value,
        "by_floats": three_way(layer, cluster, busiest_floats).value,
        **compare(chosen, {name: each for name, each in schemes.items() if name != MULTICAST}),
        "with_copies": compare(min(predicted_s, key=predicted_s.__getitem__), schemes),
        "statistics": workers[0]["statistics"],
        "slots": workers[0]["slots"],
    }


def predict(name: str, layer: Layer, cluster: Cluster) -> float:
    """Return the predicted seconds of a contender."""
    scheme, is_copied = CONTENDERS[name]
    if scheme is Scheme.SFB:
        return factor_time(layer, cluster, is_copied=is_copied).seconds
    return seconds(scheme, layer, cluster)


def compare(chosen: str, schemes: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the chosen contender, the fastest one, and the ratio of their times.

    The ratio is 0 if the chosen contender was not measured.
    """
    best = min(schemes, key=lambda name: schemes[name]["seconds"], default=chosen)
    ratio = schemes[chosen]["seconds"] / schemes[best]["seconds"] if chosen in schemes else 0.0
    return {"chosen": chosen, "best": best, "ratio": ratio}


def describe(
    name: str, workers: list[dict[str, Any]], book: InformationBook, iterations: int
) -> dict[str, Any]:
    """Return a scheme's figures per iteration; TestbedError if workers hold different sums."""
    scheme, has_multicast = CONTENDERS[name]
    layer = book.entries[0].layer
    cluster = book.cluster.replace(has_multicast=has_multicast)
    runs = [worker["runs"][name] for worker in workers]
    if len({tuple(run["checksums"]) for run in runs}) != 1:
        raise TestbedError(f"{name}: workers hold different results")
    # All workers have an iteration's result before any worker can have the next one's.
    ends_s = [max(each) for each in zip(*(run["ends_s"] for run in runs), strict=True)]
    ends_s.insert(0, min(run["began_s"] for run in runs))
    formula = wire_bytes(scheme, layer, cluster)
    carried = [[count / iterations for count in counts] for counts in runs[0]["carried"].values()]
    expected = (formula.worker_sent, formula.worker_received)
    differences = [
        counted / wanted - 1
        for counts in carried
        for counted, wanted in zip(counts, expected, strict=True)
    ]
    return {
        "seconds": statistics.median(end - start for start, end in pairwise(ends_s)),
        "predicted_s": predict(name, layer, cluster),
        "formula_bytes": expected,
        "carried_bytes": carried,
        "largest_difference": max(differences, key=abs),
        "packets": [run["packets"] for run in runs],
        "tcp": dict(sum((Counter[str](run["tcp"]) for run in runs), Counter[str]())),
        "busy_cores": max(run["busy_s"] for run in runs) / (ends_s[-1] - ends_s[0]),
    }


def main() -> None:
    options = parse_options()
    check_machine(has_torch=False)
    machine = describe_machine(has_torch=False)
    print(machine_line(machine))
    flops_per_s = probed_flops()
    print(f"matrix products: {flops_per_s / 1e9:.0f} Gflop/s, shared by all workers")
    print("softswitch wide; shards on the workers' hosts; every sum verified\n\n" + HEADING)
    began_s = time.monotonic()
    rows: list[dict[str, Any]] = []
    for vector in options.chosen:
        try:
            row = measure(vector, options, flops_per_s)
        except TestbedError as exc:
            row = {"vector": vector.name, "rate": vector.rate, "error": str(exc)}
        print(describe_row(row), flush=True)
        rows.append(row)
    print(f"\n{summary(rows)}\n{time.monotonic() - began_s:.0f} s")
    content = {"machine": machine, "flops_per_s": flops_per_s, "rows": rows}
    write_json(options.out / "schemes.json", content)
    print(f"wrote {options.out / 'schemes.json'}")
    if any("error" in row for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
