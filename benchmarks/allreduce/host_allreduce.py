# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Host allreduce against torch's Gloo over the same links; no switch sums.

One testbed runs around a bridge of the kernel or around softswitch, which only forwards here.
Every worker sums the same tensors in turn by a session with host allreduce and by Gloo. Each result
is verified before its time counts. Both send as much as a ring sends. The benchmark first probes
the rate that the links really carry, which is the C of the limit 2 (n - 1) / n times 8 S / (C g').

    python benchmarks/allreduce/host_allreduce.py --workers 4 --rate 100M --bytes 16000000

With --tls, the workers sum over TLS as well, in turn with the others.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.support import limits, report  # noqa: E402
from benchmarks.support.credentials import make_credentials  # noqa: E402
from benchmarks.support.machine import (  # noqa: E402
    check_machine,
    describe_machine,
    machine_line,
    parse_rate,
    probed_rate,
)
from benchmarks.support.results import parameters_of, write_json  # noqa: E402
from benchmarks.support.worker_runs import add_sum_options, outputs, sum_arguments  # noqa: E402
from switchfold.bmv2_topos import Testbed, Topology  # noqa: E402
from switchfold.bmv2_topos.errors import TestbedError  # noqa: E402
from switchfold.bmv2_topos.topology.topology import join_host, make_host, make_switch  # noqa: E402

WORKER = Path(__file__).with_name("host_allreduce_worker.py")
NAMES = {"host": "host allreduce", "tls": "the same over TLS", "gloo": "Gloo"}


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", type=int, default=4, help="hosts on one bridge, default 4")
    add_sum_options(parser)
    parser.add_argument("--links", choices=["bridge", "switch"], default="bridge")
    parser.add_argument("--only", choices=sorted(NAMES), help="run one contender alone")
    parser.add_argument("--tls", action="store_true", help="sum over TLS, too")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds per allreduce")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    return parser.parse_args()


def around_one_switch(num_workers: int, rate_bits_per_s: int) -> Topology:
    """Return a switch or bridge with its hosts, which may be more than a switch can sum for."""
    switch = make_switch(1)
    hosts = tuple(make_host(n, subnet=1, place=n) for n in range(1, num_workers + 1))
    links = tuple(join_host(h, switch, h.worker_id + 1, rate_bits_per_s) for h in hosts)
    return Topology(hosts=hosts, switches=(switch,), links=links)


def run_workers(
    options: argparse.Namespace, labels: list[str], rate_bits_per_s: int, credentials: Path
) -> list[dict[str, Any]]:
    """Build the testbed, run the workers, and return the output of each."""
    topology = around_one_switch(options.workers, rate_bits_per_s)
    with Testbed(topology, has_bridge=options.links == "bridge") as testbed:
        command = [
            *(sys.executable, str(WORKER), "--labels", ",".join(labels)),
            *sum_arguments(options, testbed),
            *("--addresses", ",".join(host.address for host in topology.hosts)),
            *("--credentials", str(credentials)),
        ]
        return outputs(
            testbed.run_workers(
                command,
                job="bench",
                timeout_s=120 + len(labels) * (options.repeats + 1) * options.timeout,
                environment={"OMP_NUM_THREADS": "1"},
            )
        )


def main() -> None:
    options = parse_options()
    check_machine()
    rate_bits_per_s = parse_rate(options.rate)
    labels = [label for label in NAMES if label != "tls" or options.tls]
    if options.only:
        labels = [options.only]
    machine = describe_machine()
    try:
        from_host, to_host = probed_rate(rate_bits_per_s)
        carried = min(from_host, to_host)
        print(machine_line(machine))
        print(
            f"{options.bytes / 1e6:g} MB of float32, {options.workers} workers around a"
            f" {options.links}, links of {rate_bits_per_s / 1e6:g} Mbit/s that carry"
            f" {from_host / 1e6:.2f} from a host and {to_host / 1e6:.2f} to it; {options.repeats}"
            f" repeats after 1 warm-up, in turn; every sum verified\n\n{report.HEADING}",
            flush=True,
        )
        with tempfile.TemporaryDirectory() as folder:
            if "tls" in labels:
                make_credentials(Path(folder))
            workers = run_workers(options, labels, rate_bits_per_s, Path(folder) / "worker")
    except TestbedError as exc:
        raise SystemExit(f"benchmark stopped: {exc}") from exc
    limit_s = limits.ring_limit_s(options.bytes, carried, options.workers)
    row = {label: limits.collect_series(label, workers, limit_s).as_dict() for label in labels}
    for label in labels:
        print(report.series_line(str(options.workers), NAMES[label], row[label]))
    if not options.only:
        ratio = row["host"]["median_s"] / row["gloo"]["median_s"]
        print(f"{'':>9}{ratio:.2f} times Gloo's time over the same links")
    if "tls" in row and "host" in row:
        ratio = row["tls"]["median_s"] / row["host"]["median_s"]
        cpu_ratio = row["tls"]["worker_cpu_s"] / row["host"]["worker_cpu_s"]
        print(f"{'':>9}TLS: {ratio:.2f} times the time, {cpu_ratio:.2f} times the processor time")
    for line in report.bound_lines(row, {label: NAMES[label] for label in labels}):
        print(line)
    peaks = [worker["peak_bytes"] for worker in workers]
    print(f"{'':>9}peak memory of a worker: {max(peaks) / 1e6:.0f} MB of the whole process")
    content = {
        "machine": machine,
        "parameters": parameters_of(options),
        "probed_bits_per_s": [from_host, to_host],
        "row": row,
    }
    write_json(options.out / "host_allreduce.json", content)


if __name__ == "__main__":
    main()
