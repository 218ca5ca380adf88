# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Rate of the parameter server alone: worker processes push and pull over loopback.

With --tls, the same workers do so by TLS as well, in turn with plain TCP, at servers of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from benchmarks.support.credentials import make_credentials  # noqa: E402
from benchmarks.support.machine import describe_machine, machine_line  # noqa: E402
from benchmarks.support.processor import read_times  # noqa: E402
from switchfold.hostlib.credentials import credentials_in  # noqa: E402
from switchfold.hostlib.parameter_server import ClientOptions, ParameterClient  # noqa: E402

WARM_UP = 3
TIMEOUT_S = 60.0
PLAIN, TLS = "plain TCP", "TLS"


def work(worker_id: int, num_workers: int, addresses: dict[str, list[str]], **job: Any) -> None:
    """Push and pull by each protection in turn; print seconds, and processor seconds, as JSON.

    `addresses`: of the servers, by protection. `job`: see `measure`.
    """
    array = np.full(job["megabytes"] << 18, worker_id + 1, np.float32)
    outs = {label: np.empty_like(array) for label in addresses}
    found = {label: {"seconds": [], "cpu_s": []} for label in addresses}
    with ExitStack() as stack:
        clients: dict[str, ParameterClient] = {}
        for label, texts in addresses.items():
            servers = [(host, int(port)) for host, _, port in (t.partition(":") for t in texts)]
            credentials = credentials_in(Path(job["folder"]) / "worker") if label == TLS else None
            options = ClientOptions(
                worker_id=worker_id, credentials=credentials, insecure=label != TLS
            )
            clients[label] = stack.enter_context(ParameterClient(servers, options))
        for iteration in range(WARM_UP + job["iterations"]):
            for label, client in clients.items():
                start_s, start_cpu_s = time.monotonic(), time.process_time()
                client.push_pull("all", array, iteration, outs[label]).result(TIMEOUT_S)
                found[label]["seconds"].append(time.monotonic() - start_s)
                found[label]["cpu_s"].append(time.process_time() - start_cpu_s)
                if not (outs[label] == num_workers * (num_workers + 1) / 2).all():
                    raise SystemExit(f"the sum is wrong: {label}")
    print(json.dumps(found))


def measure(
    num_workers: int, num_servers: int, labels: list[str], **job: Any
) -> dict[str, dict[str, Any]]:
    """Run servers and workers; return medians by protection.

    An iteration takes as long as its slowest worker. `job`: megabytes, iterations, and the folder
    with credentials.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}

    def start(stack: ExitStack, *command: str) -> subprocess.Popen[str]:
        return stack.enter_context(
            subprocess.Popen(
                [sys.executable, *command], env=environment, stdout=subprocess.PIPE, text=True
            )
        )

    with ExitStack() as stack:
        servers: dict[str, list[subprocess.Popen[str]]] = {label: [] for label in labels}
        addresses: dict[str, list[str]] = {label: [] for label in labels}
        for label, shard in product(labels, range(num_servers)):
            options = ["--address", "127.0.0.1", "--num-workers", str(num_workers)]
            if label == TLS:
                options += ["--credentials", str(Path(job["folder"]) / "server")]
            else:
                options.append("--insecure")
            server = start(
                stack, "-m", "switchfold.hostlib.parameter_server", *options, f"--shard={shard}"
            )
            stack.callback(server.terminate)
            servers[label].append(server)
            assert server.stdout is not None
            said = re.search(r"on (\S+)", server.stdout.readline())
            assert said is not None
            addresses[label].append(said[1])
        pids = {label: [server.pid for server in servers[label]] for label in labels}
        before_s = {label: sum(read_times(pids[label]).switches_s) for label in labels}
        text = json.dumps({"num_workers": num_workers, "addresses": addresses, **job})
        workers = [
            start(stack, __file__, "--worker", str(w), "--job", text) for w in range(num_workers)
        ]
        reports = [json.loads(worker.communicate(timeout=TIMEOUT_S * 3)[0]) for worker in workers]
        server_s = {
            label: sum(read_times(pids[label]).switches_s) - before_s[label] for label in labels
        }
        for server in chain.from_iterable(servers.values()):
            server.terminate()
            server.communicate(timeout=TIMEOUT_S)
    results: dict[str, dict[str, Any]] = {}
    for label in labels:
        seconds, cpu_s = (
            np.array([report[label][name] for report in reports])[:, WARM_UP:]
            for name in ("seconds", "cpu_s")
        )
        slowest = seconds.max(axis=0)
        results[label] = {
            "median_ms": 1e3 * float(np.median(slowest)),
            "fastest_ms": 1e3 * float(slowest.min()),
            "slowest_ms": 1e3 * float(slowest.max()),
            "worker_gigabytes_per_s": job["megabytes"] * 2**20 / float(np.median(slowest)) / 1e9,
            "worker_cpu_ms": 1e3 * float(np.median(cpu_s)),
            "server_cpu_ms": 1e3 * server_s[label] / (WARM_UP + job["iterations"]),
        }
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--servers", default="1,2", help="numbers of shards")
    parser.add_argument("--megabytes", type=int, default=16, help="MiB per worker")
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--tls", action="store_true", help="with TLS, too, in turn")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker is not None:
        work(options.worker, **json.loads(options.job))
        return
    labels = [PLAIN, TLS] if options.tls else [PLAIN]
    print(machine_line(describe_machine(has_torch=False)))
    print(f"{WARM_UP} iterations to warm up, {options.iterations} measured, sums verified")
    with tempfile.TemporaryDirectory() as folder:
        if options.tls:
            make_credentials(Path(folder))
        for num_servers in map(int, options.servers.split(",")):
            found = measure(
                options.workers,
                num_servers,
                labels,
                megabytes=options.megabytes,
                iterations=options.iterations,
                folder=folder,
            )
            for label, each in found.items():
                print(
                    f"{options.workers} workers, {num_servers} servers, {options.megabytes} MiB,"
                    f" {label}: "
                    "{median_ms:.1f} ms ({fastest_ms:.1f} to {slowest_ms:.1f}),"
                    " {worker_gigabytes_per_s:.2f} GB/s in each direction per worker; processor"
                    " time per iteration: {worker_cpu_ms:.1f} ms of a worker, {server_cpu_ms:.1f}"
                    " ms of all servers".format(**each)
                )
            if options.tls:
                ratio = found[TLS]["median_ms"] / found[PLAIN]["median_ms"]
                print(f"TLS takes {ratio:.2f} times as long")


if __name__ == "__main__":
    main()
