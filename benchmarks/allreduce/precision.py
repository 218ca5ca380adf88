# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Cost of exact sums: the same tensors are summed exactly and in blocks, in turn.

Large tensors are float32 and float64; tensors of two values show the latency. Every sum is
verified. The benchmark needs root.

    python benchmarks/allreduce/precision.py --workers 4 --rate 100M --repeats 3
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.support.machine import (  # noqa: E402
    check_machine,
    describe_machine,
    machine_line,
    parse_rate,
)
from benchmarks.support.results import parameters_of, write_json  # noqa: E402
from benchmarks.support.worker_runs import outputs  # noqa: E402
from switchfold.bmv2_topos import Testbed, WorkerEndpoint, single_switch  # noqa: E402
from switchfold.bmv2_topos.errors import TestbedError  # noqa: E402

WORKER = Path(__file__).with_name("precision_worker.py")
HEADING = (
    "| tensor | precision | median | fastest to slowest | CPU of a worker | packets |\n"
    "|---|---|---|---|---|---|"
)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--rate", default="100M", help="rate of each link, default 100M bit/s")
    parser.add_argument("--bytes", type=int, default=16_000_000, help="size of a large tensor")
    parser.add_argument("--repeats", type=int, default=3, help="repeats after one warm-up")
    parser.add_argument(
        "--small-sums", type=int, default=50, help="consecutive sums of two values in a repeat"
    )
    parser.add_argument("--variant", choices=["wide", "narrow"], default="wide")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    return parser.parse_args()


def run_workers(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Run the workers; return the output of each."""
    topology = single_switch(options.workers, rate_bits_per_s=parse_rate(options.rate))
    with Testbed(topology, variant=options.variant) as testbed:

        def command(_: WorkerEndpoint) -> list[str]:
            return [
                *(sys.executable, str(WORKER)),
                *("--bytes", str(options.bytes), "--repeats", str(options.repeats)),
                *("--small-sums", str(options.small_sums)),
            ]

        environment = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
        return outputs(
            testbed.run_workers(command, job="bench", timeout_s=900, environment=environment)
        )


def rows_of(workers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each tensor and precision; a sum takes as long as its slowest worker."""
    groups: dict[tuple[str, int, str], list[list[dict[str, Any]]]] = {}
    for runs in zip(*(worker["runs"] for worker in workers), strict=True):
        first = runs[0]
        if first["repeat"]:
            key = first["dtype"], first["size"], first["precision"]
            groups.setdefault(key, []).append(list(runs))
    rows: list[dict[str, Any]] = []
    for (dtype, size, precision), repeats in groups.items():
        rows.append(
            {
                "dtype": dtype,
                "size": size,
                "precision": precision,
                "times_s": [max(run["elapsed_s"] for run in runs) for runs in repeats],
                "cpu_s": statistics.median(run["cpu_s"] for runs in repeats for run in runs),
                "packets": repeats[0][0]["packets"],
            }
        )
    return rows


def describe(row: dict[str, Any]) -> str:
    times = row["times_s"]
    unit, factor = ("ms", 1e3) if row["size"] == 2 else ("s", 1.0)
    median, least, most = (f(times) * factor for f in (statistics.median, min, max))
    return (
        f"| {row['size']} {row['dtype']} | {row['precision']} | {median:.2f} {unit} |"
        f" {least:.2f} to {most:.2f} {unit} | {row['cpu_s'] * factor:.2f} {unit} |"
        f" {row['packets']:.0f} |"
    )


def main() -> None:
    options = parse_options()
    check_machine()
    machine = describe_machine()
    print(machine_line(machine))
    print(
        f"{options.workers} workers, links of {options.rate}bit/s, softswitch {options.variant};"
        f" {options.repeats} repeats after 1 warm-up, in turn; every sum verified\n\n{HEADING}"
    )
    try:
        rows = rows_of(run_workers(options))
    except TestbedError as exc:
        raise SystemExit(f"benchmark stopped: {exc}") from exc
    for row in rows:
        print(describe(row))
    content = {"machine": machine, "parameters": parameters_of(options), "rows": rows}
    write_json(options.out / "precision.json", content)
    print(f"wrote {options.out / 'precision.json'}")


if __name__ == "__main__":
    main()
