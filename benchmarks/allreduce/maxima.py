# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Maxima of int32 and float32 on the switch, by a host allreduce, and by Gloo, over the same links.

Every worker takes the maxima of the same tensors by each contender, in turn. Each result is
compared with numpy's, bit for bit, before its time counts. The benchmark first probes the rate that
the links really carry, which is the C of the limits. It needs root.

    python benchmarks/allreduce/maxima.py --workers 4 --rate 100M --bytes 1000000
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.allreduce.host_allreduce import around_one_switch  # noqa: E402
from benchmarks.support import limits, report  # noqa: E402
from benchmarks.support.machine import (  # noqa: E402
    check_machine,
    describe_machine,
    machine_line,
    parse_rate,
    probed_rate,
)
from benchmarks.support.results import parameters_of, write_json  # noqa: E402
from benchmarks.support.worker_runs import add_sum_options, outputs, sum_arguments  # noqa: E402
from switchfold.bmv2_topos import Testbed  # noqa: E402
from switchfold.bmv2_topos.errors import TestbedError  # noqa: E402
from switchfold.hostlib.slots.wire import VALUES_PER_PACKET_WIDE  # noqa: E402

WORKER = Path(__file__).with_name("maxima_worker.py")
DTYPES = ("float32", "int32")
NAMES = {"switch": "switch", "host": "host allreduce", "gloo": "Gloo"}


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", type=int, default=4, help="hosts at one switch, default 4")
    add_sum_options(parser)
    parser.set_defaults(bytes=1_000_000)
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds per allreduce")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    return parser.parse_args()


def run_workers(options: argparse.Namespace, rate_bits_per_s: int) -> list[dict[str, Any]]:
    """Build the testbed, run the workers, and return the output of each."""
    topology = around_one_switch(options.workers, rate_bits_per_s)
    with Testbed(topology) as testbed:
        command = [
            *(sys.executable, str(WORKER)),
            *sum_arguments(options, testbed),
            *("--addresses", ",".join(host.address for host in topology.hosts)),
        ]
        return outputs(
            testbed.run_workers(
                command,
                job="bench",
                timeout_s=120 + 6 * (options.repeats + 1) * options.timeout,
                environment={"OMP_NUM_THREADS": "1"},
            )
        )


def rows_of(
    options: argparse.Namespace, carried_bits_per_s: float, workers: list[dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return the series of each dtype and contender."""
    ring_s = limits.ring_limit_s(options.bytes, carried_bits_per_s, options.workers)
    switch_s = limits.switchfold_limit_s(options.bytes, carried_bits_per_s, VALUES_PER_PACKET_WIDE)
    return {
        f"{dtype} {label}": limits.collect_series(
            f"{dtype} {label}", workers, switch_s if label == "switch" else ring_s
        ).as_dict()
        for dtype in DTYPES
        for label in NAMES
    }


def main() -> None:
    options = parse_options()
    check_machine()
    rate_bits_per_s = parse_rate(options.rate)
    machine = describe_machine()
    try:
        from_host, to_host = probed_rate(rate_bits_per_s)
        print(machine_line(machine))
        print(
            f"maxima of {options.bytes / 1e6:g} MB, {options.workers} workers at one softswitch,"
            f" links of {rate_bits_per_s / 1e6:g} Mbit/s that carry {from_host / 1e6:.2f} from a"
            f" host and {to_host / 1e6:.2f} to it; {options.repeats} repeats after 1 warm-up, in"
            f" turn; every result compared bit for bit\n\n{report.HEADING}",
            flush=True,
        )
        workers = run_workers(options, rate_bits_per_s)
    except TestbedError as exc:
        raise SystemExit(f"benchmark stopped: {exc}") from exc
    rows = rows_of(options, min(from_host, to_host), workers)
    for dtype in DTYPES:
        for label, name in NAMES.items():
            print(report.series_line(dtype, name, rows[f"{dtype} {label}"]))
        ours = rows[f"{dtype} switch"]["median_s"]
        ratios = [rows[f"{dtype} {label}"]["median_s"] / ours for label in ("host", "gloo")]
        print(f"{'':>9}{ratios[0]:.2f} times the host allreduce, {ratios[1]:.2f} times Gloo")
    for line in report.bound_lines(rows, {row: row for row in rows}):
        print(line)
    content = {
        "machine": machine,
        "parameters": parameters_of(options),
        "probed_bits_per_s": [from_host, to_host],
        "rows": rows,
    }
    write_json(options.out / "maxima.json", content)
    print(f"wrote {options.out / 'maxima.json'}")


if __name__ == "__main__":
    main()
