# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Allreduce through the switch against torch's Gloo ring, on equal links in the same run.

For each number of workers, two testbeds with the same links run together: one around a switch with
its controller, one around a bridge of the kernel. Every worker sums the same tensors in turn by
Switchfold, by Gloo through the same switch (as ordinary IPv4 traffic) and by Gloo over the bridge.
Each result is verified before its time counts. The ratio to quote is the one against the faster
Gloo. The benchmark first probes the rate that the links really carry, which is the C of the limits.

    python benchmarks/allreduce/allreduce.py --workers 2,4,8 --rate 100M --repeats 5
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.support import limits, plot, report  # noqa: E402
from benchmarks.support.machine import (  # noqa: E402
    check_machine,
    describe_machine,
    machine_line,
    parse_rate,
    probed_rate,
)
from benchmarks.support.results import parameters_of, write_json  # noqa: E402
from benchmarks.support.worker_runs import add_sum_options, outputs, sum_arguments  # noqa: E402
from switchfold.bmv2_topos import Testbed, WorkerEndpoint, single_switch  # noqa: E402
from switchfold.bmv2_topos.errors import TestbedError  # noqa: E402
from switchfold.hostlib import SessionOptions  # noqa: E402
from switchfold.hostlib.slots import wire  # noqa: E402

WORKER = Path(__file__).with_name("allreduce_worker.py")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", default="2,4,8", help="numbers of workers, default 2,4,8")
    add_sum_options(parser)
    parser.add_argument("--variant", choices=["wide", "narrow"], default="wide")
    parser.add_argument("--target", choices=["softswitch", "bmv2"], default="softswitch")
    parser.add_argument("--transport", choices=["udp", "raw"], default="udp")
    parser.add_argument(
        "--offloads",
        action="store_true",
        help="links of both testbeds carry large frames, as between virtual machines",
    )
    parser.add_argument(
        "--window", type=int, default=SessionOptions().window, help="most chunks in flight"
    )
    parser.add_argument(
        "--slots", type=int, default=0, help="slots of the job, default the controller's choice"
    )
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds per allreduce")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    return parser.parse_args()


def run_workers(
    options: argparse.Namespace, num_workers: int, rate_bits_per_s: int | None
) -> list[dict[str, Any]]:
    """Build both testbeds, run the workers, and return the output of each."""
    topology = single_switch(num_workers, rate_bits_per_s=rate_bits_per_s)
    with (
        Testbed(
            topology,
            target=options.target,
            variant=options.variant,
            offloads=options.offloads,
        ) as testbed,
        Testbed(topology, has_bridge=True, offloads=options.offloads) as bridged,
    ):

        def command(endpoint: WorkerEndpoint) -> list[str]:
            return [
                *(sys.executable, str(WORKER)),
                *sum_arguments(options, testbed),
                *("--window", str(options.window), "--slots", str(options.slots)),
                *("--bridge-namespace", str(bridged.namespace_of(endpoint.host))),
            ]

        workers = outputs(
            testbed.run_workers(
                command,
                job="bench",
                timeout_s=120 + 3 * (options.repeats + 1) * options.timeout,
                environment={"OMP_NUM_THREADS": "1", "SWITCHFOLD_TRANSPORT": options.transport},
            )
        )
        check_both_used(testbed, bridged, options)
    return workers


def check_both_used(testbed: Testbed, bridged: Testbed, options: argparse.Namespace) -> None:
    """Raise TestbedError unless the links of both testbeds carried at least their tensors."""
    num_workers = len(testbed.topology.hosts)
    ring_bytes = (options.repeats + 1) * options.bytes * 2 * (num_workers - 1) / num_workers
    switchfold_bytes = (options.repeats + 1) * options.bytes
    for each, least in ((testbed, ring_bytes + switchfold_bytes), (bridged, ring_bytes)):
        for link in each.link_bytes():
            carried = min(link.from_host_bytes, link.to_host_bytes)
            if not least <= carried < 1.25 * least:
                raise TestbedError(
                    f"link of {link.host} in {each.name} carried {carried} bytes instead of the "
                    f"{least:.0f} bytes of its tensors: a contender used another link"
                )


def measure(
    options: argparse.Namespace,
    num_workers: int,
    rate_bits_per_s: int | None,
    carried_bits_per_s: float,
) -> dict[str, Any]:
    workers = run_workers(options, num_workers, rate_bits_per_s)
    values = (
        wire.VALUES_PER_PACKET_WIDE if options.variant == "wide" else wire.VALUES_PER_PACKET_NARROW
    )
    ring_s = limits.ring_limit_s(options.bytes, carried_bits_per_s, num_workers)
    limits_s = {
        "switchfold": limits.switchfold_limit_s(options.bytes, carried_bits_per_s, values),
        "gloo_switch": ring_s,
        "gloo_bridge": ring_s,
    }
    row: dict[str, Any] = {
        "num_workers": num_workers,
        "num_chunks": -(-options.bytes // (values * wire.VALUE_BYTES)),
        **{
            label: limits.collect_series(label, workers, limit_s).as_dict()
            for label, limit_s in limits_s.items()
        },
        "window": workers[0]["window"],
        "slots": workers[0]["slots"],
        "statistics": [worker["statistics"] for worker in workers],
    }
    return {**row, **report.compare(row)}


def main() -> None:
    options = parse_options()
    check_machine()
    rate_bits_per_s = None if options.rate == "none" else parse_rate(options.rate)
    machine = describe_machine()
    try:
        from_host = to_host = math.inf
        links = "links without a rate, so that the processor is the limit"
        if rate_bits_per_s is not None:
            from_host, to_host = probed_rate(rate_bits_per_s)
            links = (
                f"links of {rate_bits_per_s / 1e6:g} Mbit/s that carry {from_host / 1e6:.2f} from a"
                f" host and {to_host / 1e6:.2f} to it (frames without preamble and FCS, as the"
                " kernel's shaper counts)"
            )
        carried = min(from_host, to_host)
        print(machine_line(machine))
        print(f"{options.bytes / 1e6:g} MB of float32, {links}")
        rows: list[dict[str, Any]] = []
        for number in options.workers.split(","):
            row = measure(options, int(number), rate_bits_per_s, carried)
            if not rows:
                print(
                    f"{options.target} {options.variant}, transport {options.transport}, "
                    f"offloads {'on' if options.offloads else 'off'}, "
                    f"{row['slots']} slots, window {row['window']} chunks; {options.repeats} "
                    f"repeats after 1 warm-up, in turn; every sum verified\n\n{report.HEADING}"
                )
            print(report.describe_row(row), flush=True)
            rows.append(row)
    except TestbedError as exc:
        raise SystemExit(f"benchmark stopped: {exc}") from exc
    content = {
        "machine": machine,
        "parameters": parameters_of(options),
        "probed_bits_per_s": [from_host, to_host],
        "rows": rows,
    }
    write_json(options.out / "allreduce.json", content)
    plot.draw_allreduce(rows, machine, options.out / "allreduce.png")
    print(f"wrote {options.out / 'allreduce.json'} and allreduce.png")


if __name__ == "__main__":
    main()
