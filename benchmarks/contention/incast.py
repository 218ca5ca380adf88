# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests whether goodput collapses as workers increase, with 8 slots each and short queues.

One job has 2, 4, 8 or 16 workers around one switch. All send at once, and each result leaves at the
ports of all workers. Many jobs have as many workers in pairs, all over one link between two
switches, whose queue is shorter than the sum of their windows. Every sum is checked. Goodput counts
frames without retransmissions, divided by the rate of the link.

    python benchmarks/contention/incast.py --workers 2,4,8,16 --seconds 5
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.contention.shared_link import Load, Report, measure, run, start_worker  # noqa: E402
from benchmarks.support.machine import (  # noqa: E402
    check_machine,
    describe_machine,
    machine_line,
    parse_rate,
)
from benchmarks.support.results import write_json  # noqa: E402
from switchfold.bmv2_topos import Testbed, single_switch  # noqa: E402
from switchfold.bmv2_topos.errors import TestbedError  # noqa: E402

SLOTS = 9
"""8 slots for values and one for exponents."""
ELEMENTS = 16_384
JOB_QUEUE_PACKETS = 16
LINK_QUEUE_PACKETS = 32


def one_job(num_workers: int, rate_bits_per_s: int, seconds: float) -> dict[str, float]:
    """Return goodput over the rate, and retransmissions over packets, of one job on one switch."""
    topology = single_switch(num_workers, rate_bits_per_s=None)
    shaping = f"rate_bits_per_s={rate_bits_per_s},queue_packets={JOB_QUEUE_PACKETS}"
    options = [
        word for link in topology.links for word in ("--impair", f"{link.port}:out:{shaping}")
    ]
    sizes = ["--slots", str(SLOTS), "--elements", str(ELEMENTS)]
    with Testbed(topology, switch_options=options) as testbed:
        workers = [
            start_worker(
                testbed, number, "job", sizes, job=("incast", number), num_workers=num_workers
            )
            for number in range(num_workers)
        ]
        reports = run(testbed, workers, seconds)
    goodput = min(report["bits_per_s"] for report in reports) / rate_bits_per_s
    return {"goodput": goodput, **_retransmissions(reports)}


def many_jobs(num_workers: int, rate_bits_per_s: int, seconds: float) -> dict[str, float]:
    """Return the same for jobs of two workers over one link, with the goodput of all jobs."""
    load = Load(
        jobs=num_workers // 2,
        rate_bits_per_s=rate_bits_per_s,
        queue_packets=LINK_QUEUE_PACKETS,
        slots=SLOTS,
        elements=ELEMENTS,
    )
    jobs = measure(load, seconds)
    goodput = sum(min(report["bits_per_s"] for report in job) for job in jobs.values())
    reports = [report for job in jobs.values() for report in job]
    return {"goodput": goodput / rate_bits_per_s, **_retransmissions(reports)}


def _retransmissions(reports: list[Report]) -> dict[str, float]:
    counts = [report["statistics"] for report in reports]
    sent = sum(each["value_packets_sent"] for each in counts)
    again = sum(each["value_packets_retransmitted"] for each in counts)
    return {"retransmitted": again / max(1, sent + again)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", default="2,4,8,16", help="default %(default)s")
    parser.add_argument("--rate", default="4M", help="rate of one job's links, default 4M")
    parser.add_argument("--link-rate", default="40M", help="rate of many jobs' link, default 40M")
    parser.add_argument("--seconds", type=float, default=5.0, help="length of a run, default 5")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    options = parser.parse_args()
    check_machine(has_torch=False)
    machine = describe_machine(has_torch=False)
    print(machine_line(machine))
    print("\n| workers | case | goodput of the rate | retransmitted |\n|---|---|---|---|")
    rows: list[dict[str, Any]] = []
    try:
        for case, rate, measured in (
            ("one job", options.rate, one_job),
            ("many jobs", options.link_rate, many_jobs),
        ):
            for number in map(int, options.workers.split(",")):
                row = measured(number, parse_rate(rate), options.seconds)
                rows.append({"case": case, "workers": number, **row})
                print(
                    f"| {number} | {case} | {100 * row['goodput']:.0f} % "
                    f"| {100 * row['retransmitted']:.2f} % |",
                    flush=True,
                )
    except TestbedError as exc:
        raise SystemExit(f"benchmark stopped: {exc}") from exc
    content = {"machine": machine, "rows": rows}
    write_json(options.out / "incast.json", content)


if __name__ == "__main__":
    main()
