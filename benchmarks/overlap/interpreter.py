# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Speed of a Python loop in a worker's main thread while its session sums a large tensor.

One worker and an embedded switch stand for a job: the worker's share of the work does not depend
on the number of workers. The worker counts in plain Python, alone and while a sum is under way, in
turns. A session that holds the interpreter lock while it moves packets slows the loop down. The
switch runs in another process, and the two processes have a core each. Every sum is checked.

    python benchmarks/overlap/interpreter.py --bytes 100000000 --repeats 5
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import threading
import time
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
from benchmarks.support.results import parameters_of, write_json  # noqa: E402
from benchmarks.support.worker_runs import outputs  # noqa: E402
from switchfold.bmv2_topos import Testbed, WorkerEndpoint, single_switch  # noqa: E402
from switchfold.bmv2_topos.errors import TestbedError  # noqa: E402
from switchfold.hostlib import SessionOptions  # noqa: E402
from switchfold.hostlib.config import join_from_environment  # noqa: E402

STEPS = 20_000
"""Additions between two looks at the clock, a millisecond or so."""


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bytes", type=int, default=100_000_000, help="size of the tensor")
    parser.add_argument("--rate", default="1G", help="rate of the link, default 1G bit/s")
    parser.add_argument("--offloads", action="store_true", help="the link carries super-frames")
    parser.add_argument("--repeats", type=int, default=5, help="sums, after one warm-up")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds per allreduce")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--is-worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def rate_until(is_over: threading.Event) -> float:
    """Count in plain Python until the event is set; return additions per second."""
    total, began_s = 0, time.perf_counter()
    while not is_over.is_set():
        for _ in range(STEPS):
            total += 1
    return total / (time.perf_counter() - began_s)


def run_worker(options: argparse.Namespace) -> dict[str, Any]:
    """Count alone and beside a sum, in turns."""
    array = np.arange(options.bytes // 4, dtype=np.int32)
    runs: list[dict[str, float]] = []
    with join_from_environment(SessionOptions(timeout_s=options.timeout)) as session:
        for _ in range(options.repeats + 1):
            is_over = threading.Event()
            began_s = time.perf_counter()
            future = session.allreduce(array)
            future.add_done_callback(lambda _, event=is_over: event.set())
            beside = rate_until(is_over)
            sum_s = time.perf_counter() - began_s
            np.testing.assert_array_equal(future.result(), array)
            is_over = threading.Event()
            timer = threading.Timer(sum_s, is_over.set)
            timer.start()
            alone = rate_until(is_over)
            timer.join()
            runs.append(
                {
                    "alone_per_s": alone,
                    "beside_per_s": beside,
                    "sum_s": sum_s,
                }
            )
    return {"runs": runs[1:]}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run the worker on the host of a testbed."""
    topology = single_switch(1, rate_bits_per_s=parse_rate(options.rate))
    with Testbed(topology, offloads=options.offloads) as testbed:

        def command(_: WorkerEndpoint) -> list[str]:
            return [
                *(sys.executable, __file__, "--is-worker"),
                *("--bytes", str(options.bytes), "--repeats", str(options.repeats)),
                *("--timeout", str(options.timeout)),
            ]

        limit_s = 120 + 3 * (options.repeats + 1) * options.timeout
        (content,) = outputs(testbed.run_workers(command, job="interpreter", timeout_s=limit_s))
    return content


def main() -> None:
    options = parse_options()
    if options.is_worker:
        print(json.dumps(run_worker(options)))
        return
    check_machine()
    machine = describe_machine()
    try:
        runs = measure(options)["runs"]
    except TestbedError as exc:
        raise SystemExit(f"benchmark stopped: {exc}") from exc
    shares = [run["beside_per_s"] / run["alone_per_s"] for run in runs]
    print(machine_line(machine))
    print(
        f"{options.bytes / 1e6:g} MB of int32, one worker, link of {options.rate}bit/s, offloads"
        f" {'on' if options.offloads else 'off'};"
        f" {len(runs)} sums of {statistics.median(run['sum_s'] for run in runs):.2f} s"
    )
    print(
        f"a Python loop keeps {100 * statistics.median(shares):.1f} % of its speed during a sum"
        f" ({100 * min(shares):.1f} to {100 * max(shares):.1f} %)"
    )
    write_json(
        options.out / "interpreter.json",
        {"machine": machine, "parameters": parameters_of(options), "runs": runs},
    )
    print(f"wrote {options.out / 'interpreter.json'}")


if __name__ == "__main__":
    main()
