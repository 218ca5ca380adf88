# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""1, 2, 4 and 8 jobs at once on one switch with few slots: goodput and slots of each job.

Every job has two workers with links of their own, so jobs contend for slots alone; another job
holds most of the slots and sums nothing. Links have a delay, so a job's rate follows from its
slots. Jobs arrive while others run: first with slot shares that the controller adjusts, then with
fixed numbers of slots, which four jobs can have. The other jobs run among their hosts. The picture
shows the measured rates beside the formulas for a static split and for best effort.

    python benchmarks/contention/contention.py --jobs 1,2,4,8 --rate 40M --delay-ms 5
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.contention import contention_report  # noqa: E402
from benchmarks.contention.contention_jobs import RunningJobs  # noqa: E402
from benchmarks.contention.contention_plot import draw_contention  # noqa: E402
from benchmarks.support import limits  # noqa: E402
from benchmarks.support.machine import (  # noqa: E402
    check_machine,
    describe_machine,
    machine_line,
    parse_rate,
    probed_rate,
)
from benchmarks.support.results import parameters_of, write_json  # noqa: E402
from switchfold.bmv2_topos import Testbed, single_switch  # noqa: E402
from switchfold.bmv2_topos.errors import TestbedError  # noqa: E402
from switchfold.hostlib.slots import wire  # noqa: E402

WORKERS_PER_JOB = 2
HEADROOM = wire.NUM_SLOTS // 8
"""Slots of a switch that the controller keeps free for view changes."""
FITTING_FIXED = 4
"""Number of jobs with fixed slots that the switch can hold."""


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", default="1,2,4,8", help="numbers of jobs, default %(default)s")
    parser.add_argument("--rate", default="40M", help="rate of each link, default 40M bit/s")
    parser.add_argument(
        "--delay-ms", type=float, default=5.0, help="delay of each link in each direction"
    )
    parser.add_argument("--slots", type=int, default=112, help="slots that the jobs share")
    parser.add_argument(
        "--bytes", type=int, default=500_000, help="size of the float32 tensor, default 0.5 MB"
    )
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="measured time for each number of jobs"
    )
    parser.add_argument(
        "--settle", type=float, default=20.0, help="most seconds until slot shares are stable"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    return parser.parse_args()


def measure(options: argparse.Namespace, testbed: Testbed, *, is_fixed: bool) -> dict[str, Any]:
    """Let jobs arrive; return a row for each number of jobs, and one after most jobs have left."""
    numbers = sorted({int(number) for number in options.jobs.split(",")})
    slots = (options.slots + HEADROOM) // FITTING_FIXED if is_fixed else 0
    rows: list[dict[str, Any]] = []
    with RunningJobs(testbed, options.bytes // 4, WORKERS_PER_JOB) as jobs:
        for number in numbers:
            jobs.start_until(number, slots=slots)
            has_settled = jobs.settle(options.settle)
            rows.append(
                {"num_jobs": number, "has_settled": has_settled, **jobs.span(options.seconds)}
            )
        if not is_fixed and len(numbers) > 1:
            jobs.stop_until(numbers[0])
            has_settled = jobs.settle(options.settle)
            rows.append(
                {"num_jobs": numbers[0], "has_settled": has_settled, **jobs.span(options.seconds)}
            )
        jobs.stop_until(0)
        for row in rows:
            row["jobs"] = jobs.rates(row["began_s"], row["ended_s"])
        return {"rows": rows, "round_trip_s": jobs.first_round_trip_s(), "slots_wanted": slots}


def main() -> None:
    options = parse_options()
    check_machine(has_torch=False)
    machine = describe_machine(has_torch=False)
    rate_bits_per_s = parse_rate(options.rate)
    most = max(int(number) for number in options.jobs.split(","))
    topology = single_switch(WORKERS_PER_JOB * most + 1, rate_bits_per_s=rate_bits_per_s)
    held = wire.NUM_SLOTS - HEADROOM - options.slots
    try:
        carried = min(probed_rate(rate_bits_per_s))
        print(machine_line(machine))
        print(
            f"{most} jobs of {WORKERS_PER_JOB} workers, links of {rate_bits_per_s / 1e6:g} Mbit/s "
            f"that carry {carried / 1e6:.2f}, {options.delay_ms:g} ms delay in each direction; "
            f"{options.bytes / 1e6:g} MB of float32; every sum verified\n"
            f"of the switch's {wire.NUM_SLOTS} slots another job holds {held} and the controller "
            f"keeps {HEADROOM} for view changes: {options.slots} are shared"
        )
        with (
            Testbed(topology, impairments=f"delay_s={options.delay_ms / 1000:g}") as testbed,
            RunningJobs(testbed, 1, 1, first_host=most * WORKERS_PER_JOB) as others,
        ):
            others.start_until(1, slots=held, name="other", is_idle=True)
            others.settle(options.settle)
            shared = measure(options, testbed, is_fixed=False)
            fixed = measure(options, testbed, is_fixed=True)
            others.stop_until(0)
    except TestbedError as exc:
        raise SystemExit(f"benchmark stopped: {exc}") from exc
    efficiency = limits.switchfold_efficiency(wire.VALUES_PER_PACKET_WIDE)
    content: dict[str, Any] = {
        "machine": machine,
        "parameters": parameters_of(options),
        "link_bits_per_s": carried * efficiency,
        "round_trip_s": statistics.median([shared["round_trip_s"], fixed["round_trip_s"]]),
        "shared_slots": options.slots,
        "workers_per_job": WORKERS_PER_JOB,
        "values_per_packet": wire.VALUES_PER_PACKET_WIDE,
        "shared": shared,
        "fixed": fixed,
        "time_s": time.time(),
    }
    print(contention_report.describe(content))
    write_json(options.out / "contention.json", content)
    draw_contention(content, options.out / "contention.png")
    print(f"wrote {options.out / 'contention.json'} and contention.png")


if __name__ == "__main__":
    main()
