# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Rate of the parameter server alone: worker processes push and pull over loopback."""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from benchmarks.support.machine import describe_machine, machine_line  # noqa: E402
from switchfold.hostlib.parameter_server import ClientOptions, ParameterClient  # noqa: E402

WARM_UP = 3
TIMEOUT_S = 60.0


def work(worker_id: int, num_workers: int, addresses: list[str], megabytes: int, n: int) -> None:
    """Push and pull; print the seconds of each iteration and the processor seconds as JSON."""
    servers = [(host, int(port)) for host, _, port in (text.partition(":") for text in addresses)]
    array = np.full(megabytes << 18, worker_id + 1, np.float32)
    out = np.empty_like(array)
    seconds: list[float] = []
    with ParameterClient(servers, ClientOptions(worker_id=worker_id)) as client:
        cpu_s = 0.0
        for iteration in range(WARM_UP + n):
            if iteration == WARM_UP:
                cpu_s = time.process_time()
            start_s = time.monotonic()
            client.push_pull("all", array, iteration, out).result(TIMEOUT_S)
            seconds.append(time.monotonic() - start_s)
        cpu_s = (time.process_time() - cpu_s) / n
    if not (out == num_workers * (num_workers + 1) / 2).all():
        raise SystemExit("the sum is wrong")
    print(json.dumps({"seconds": seconds[WARM_UP:], "cpu_s": cpu_s}))


def measure(num_workers: int, num_servers: int, megabytes: int, iterations: int) -> dict[str, Any]:
    """Run servers and workers; return medians. An iteration takes as long as its slowest worker."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)

    def start(stack: ExitStack, *command: str) -> subprocess.Popen[str]:
        return stack.enter_context(
            subprocess.Popen(
                [sys.executable, *command], env=environment, stdout=subprocess.PIPE, text=True
            )
        )

    with ExitStack() as stack:
        servers: list[subprocess.Popen[str]] = []
        addresses: list[str] = []
        for shard in range(num_servers):
            options = ["--address", "127.0.0.1", "--num-workers", str(num_workers)]
            server = start(
                stack, "-m", "switchfold.hostlib.parameter_server", *options, f"--shard={shard}"
            )
            stack.callback(server.terminate)
            servers.append(server)
            assert server.stdout is not None
            said = re.search(r"on (\S+)", server.stdout.readline())
            assert said is not None
            addresses.append(said[1])
        job = json.dumps([num_workers, addresses, megabytes, iterations])
        workers = [
            start(stack, __file__, "--worker", str(w), "--job", job) for w in range(num_workers)
        ]
        reports = [json.loads(worker.communicate(timeout=TIMEOUT_S * 3)[0]) for worker in workers]
        for server in servers:
            server.terminate()
            server.communicate(timeout=TIMEOUT_S)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    slowest = [max(times) for times in zip(*(r["seconds"] for r in reports), strict=True)]
    return {
        "workers": num_workers,
        "servers": num_servers,
        "megabytes": megabytes,
        "median_ms": 1e3 * statistics.median(slowest),
        "fastest_ms": 1e3 * min(slowest),
        "slowest_ms": 1e3 * max(slowest),
        "worker_gigabytes_per_s": megabytes * 2**20 / statistics.median(slowest) / 1e9,
        "worker_cpu_ms": 1e3 * statistics.median(r["cpu_s"] for r in reports),
        "all_cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--servers", default="1,2", help="numbers of shards")
    parser.add_argument("--megabytes", type=int, default=16, help="MiB per worker")
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker is not None:
        work(options.worker, *json.loads(options.job))
        return
    print(machine_line(describe_machine(has_torch=False)))
    print(f"{WARM_UP} iterations to warm up, {options.iterations} measured, sums verified")
    for num_servers in map(int, options.servers.split(",")):
        found = measure(options.workers, num_servers, options.megabytes, options.iterations)
        print(
            "{workers} workers, {servers} servers, {megabytes} MiB: {median_ms:.1f} ms"
            " ({fastest_ms:.1f} to {slowest_ms:.1f}), {worker_gigabytes_per_s:.2f} GB/s in each"
            " direction per worker; {worker_cpu_ms:.1f} ms of processor time per worker and"
            " iteration, {all_cpu_s:.1f} s of all processes with their startup".format(**found)
        )


if __name__ == "__main__":
    main()
