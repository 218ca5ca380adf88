# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Checks the simulator against live transfers: workers on a testbed, planned by its controller.

Workers wait as if they computed, and push, each until it has done its iterations. The controller's
timeline has their requests. The simulator's scheduler gets the same requests, each as long after
its worker's last commit, and the times until commits are compared. The model must be the exact sum.
Workers and server run in this process, in the namespaces of their hosts. Needs root.
Run: python benchmarks/simulator/live_check.py
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from benchmarks.simulator.live_log import LiveRequest, read_live_log  # noqa: E402
from benchmarks.simulator.replay import (  # noqa: E402
    Comparison,
    compare_requests,
    parse_bits_per_s,
    verdict,
)
from benchmarks.simulator.request_replay import scenario_of_requests  # noqa: E402
from benchmarks.simulator.tcp_check import PAYLOAD_SHARE, means_of  # noqa: E402
from benchmarks.simulator.traces import ComputeSetting, ComputeTrace  # noqa: E402
from benchmarks.support.machine import (  # noqa: E402
    check_machine,
    describe_machine,
    machine_line,
)
from fabric_job import FabricJob  # noqa: E402
from switchfold.bmv2_topos import Testbed, single_switch  # noqa: E402
from switchfold.hostlib.parameter_server.tables import TensorDefinition  # noqa: E402
from switchfold.hostlib.parameter_server.transfers import FabricWorker  # noqa: E402
from time_bound import wait_until  # noqa: E402

WAIT_S = 300.0


def record_run(options: argparse.Namespace, computing: ComputeTrace) -> list[LiveRequest]:
    """Run workers and a server; return the requests of the controller's timeline."""
    topology = single_switch(options.workers + 1, rate_bits_per_s=round(options.rate))
    definition = TensorDefinition(name="w", num_values=options.bytes // 4)
    expected = options.workers * options.iterations
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "transfers.jsonl"
        with (
            Testbed(topology, controller_options=("--transfer-log", str(log))) as testbed,
            FabricJob(testbed, definition) as job,
        ):

            def train(number: int, fabric: FabricWorker) -> None:
                ones = np.ones(definition.num_values, np.float32)
                for iteration in range(options.iterations):
                    if options.models:
                        fabric.get().result(WAIT_S)
                    time.sleep(computing.time_s(number, iteration))
                    fabric.push(ones).result(WAIT_S)

            with ThreadPoolExecutor(options.workers) as pool:
                runs = [pool.submit(train, n, fabric) for n, fabric in enumerate(job.workers)]
                for run in runs:
                    run.result(WAIT_S)
            if not (job.workers[0].get().result(WAIT_S) == expected).all():
                raise SystemExit("the model is not the sum of all updates")
            ended = ("committed", "ungranted")
            wait_until(
                lambda: (
                    sum(log.read_text().count(f'"event":"{event}"') for event in ended) == expected
                ),
                "the timeline lacks updates",
            )
        return read_live_log(log)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("Run:")[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--iterations", type=int, default=6)
    parser.add_argument("--bytes", type=int, default=1_250_000, help="of an update")
    parser.add_argument("--rate", type=parse_bits_per_s, default=2e7, help="of all links")
    parser.add_argument("--compute", type=float, default=0.5, help="nominal seconds")
    parser.add_argument(
        "--computing",
        choices=[each.value for each in ComputeSetting],
        default=ComputeSetting.STRAGGLERS.value,
    )
    parser.add_argument("--seed", type=int, default=1, help="of the first run's computing times")
    parser.add_argument("--repeats", type=int, default=3, help="runs, of which the mean counts")
    parser.add_argument(
        "--models",
        action="store_true",
        help="let workers get the model before each push; the controller plans that, too, and the"
        " simulation has no models",
    )
    parser.add_argument("--tolerance", type=float, default=0.1)
    options = parser.parse_args()
    check_machine(has_torch=False)
    print(machine_line(describe_machine(has_torch=False)))
    found: list[list[Comparison]] = []
    shares: list[float] = []
    for seed in range(options.seed, options.seed + options.repeats):
        setting = ComputeSetting(options.computing)
        computing = ComputeTrace(setting, seed, options.workers, options.compute)
        requests = record_run(options, computing)
        scenario = scenario_of_requests(requests, options.rate, options.rate)
        rows, close = compare_requests(requests, scenario, PAYLOAD_SHARE)
        found.append(rows)
        shares.append(close)
        figures = ", ".join(f"{r.name} {r.recorded:.2f} ({r.simulated:.2f})" for r in rows)
        print(f"seed {seed}: {figures}; {100 * close:.0f} % of the requests within 10 % each")
    print(
        f"\nMeans of {options.repeats} runs; {options.workers} workers, {options.bytes:,} bytes,"
        f" links of {options.rate / 1e6:g} Mbit/s;"
        f" {100 * statistics.mean(shares):.0f} % of the requests within 10 % each\n"
    )
    return 0 if verdict(means_of(found), options.tolerance) else 1


if __name__ == "__main__":
    sys.exit(main())
