# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Latency of small sums: median and 99th percentile of single allreduces, beside Gloo.

Every worker sums a small float32 tensor again and again, by each contender in turns of some sums,
over the testbeds of allreduce.py. A worker starts its next sum when it has the result of the last
one, as a training loop does. Every result is compared with the true sum after its turn.

    python benchmarks/allreduce/latency.py --workers 4 --bytes 1024 --turns 10 --sums 50
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.support.machine import (  # noqa: E402
    check_machine,
    describe_machine,
    machine_line,
    parse_rate,
)
from benchmarks.support.report import NAMES, PEERS  # noqa: E402
from benchmarks.support.results import parameters_of, write_json  # noqa: E402
from benchmarks.support.worker_runs import outputs  # noqa: E402
from switchfold.bmv2_topos import Testbed, WorkerEndpoint, single_switch  # noqa: E402
from switchfold.bmv2_topos.errors import TestbedError  # noqa: E402

WORKER = Path(__file__).with_name("latency_worker.py")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", type=int, default=4, help="number of workers, default 4")
    parser.add_argument("--rate", default="1G", help="rate of each link, default 1G bit/s")
    parser.add_argument("--bytes", type=int, default=1024, help="size of the tensor, default 1024")
    parser.add_argument("--turns", type=int, default=10, help="turns of each contender")
    parser.add_argument("--sums", type=int, default=50, help="sums in one turn")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds per allreduce")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    return parser.parse_args()


def run_workers(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Build both testbeds, run the workers, and return the output of each."""
    topology = single_switch(options.workers, rate_bits_per_s=parse_rate(options.rate))
    with Testbed(topology) as testbed, Testbed(topology, has_bridge=True) as bridged:

        def command(endpoint: WorkerEndpoint) -> list[str]:
            return [
                *(sys.executable, str(WORKER)),
                *("--bytes", str(options.bytes), "--timeout", str(options.timeout)),
                *("--turns", str(options.turns), "--sums", str(options.sums)),
                *("--rendezvous", str(testbed.run_directory / "gloo-rendezvous")),
                *("--bridge-namespace", str(bridged.namespace_of(endpoint.host))),
            ]

        return outputs(
            testbed.run_workers(
                command,
                job="latency",
                timeout_s=120 + 3 * options.turns * options.sums * options.timeout,
                environment={"OMP_NUM_THREADS": "1"},
            )
        )


def describe(workers: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return p50 and p99 in microseconds over all workers' sums, by contender."""
    found: dict[str, dict[str, float]] = {}
    for label in NAMES:
        times_s = np.concatenate([worker["times_s"][label] for worker in workers])
        p50_us, p99_us = 1e6 * np.percentile(times_s, [50, 99])
        found[label] = {"p50_us": float(p50_us), "p99_us": float(p99_us), "sums": len(times_s)}
    return found


def main() -> None:
    options = parse_options()
    check_machine()
    machine = describe_machine()
    try:
        found = describe(run_workers(options))
    except TestbedError as exc:
        raise SystemExit(f"benchmark stopped: {exc}") from exc
    print(machine_line(machine))
    print(
        f"{options.bytes} bytes of float32, {options.workers} workers, links of {options.rate}bit/s"
    )
    print(f"{'contender':<20} {'p50 us':>9} {'p99 us':>9} {'sums':>7}")
    for label, name in NAMES.items():
        each = found[label]
        print(f"{name:<20} {each['p50_us']:9.0f} {each['p99_us']:9.0f} {each['sums']:7.0f}")
    faster = min(PEERS, key=lambda peer: found[peer]["p50_us"])
    for key in ("p50_us", "p99_us"):
        ratio = found["switchfold"][key] / found[faster][key]
        print(f"{key[:3]}: Switchfold takes {ratio:.2f} times as long as {NAMES[faster]}")
    content = {"machine": machine, "parameters": parameters_of(options), "contenders": found}
    write_json(options.out / "latency.json", content)
    print(f"wrote {options.out / 'latency.json'}")


if __name__ == "__main__":
    main()
