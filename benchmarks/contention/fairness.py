# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How two jobs and a TCP flow share a link: the part of its fair share that each gets.

Two switches have one link between them. softswitch shapes it, so the P4 program sees its queue.
Each job has a worker behind each switch: contributions cross the link in one direction, results in
the other. The TCP flow crosses it, too. Besides this main case there are other kinds of TCP and
jobs alone. Every sum is checked. A rate counts frames on the link without retransmissions; the fair
share is the link's rate divided by the number of jobs and flows.

    python benchmarks/contention/fairness.py --rate 100M --seconds 8 --repeats 5
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.contention.shared_link import Load, Report, measure  # noqa: E402
from benchmarks.support.machine import (  # noqa: E402
    check_machine,
    describe_machine,
    machine_line,
    parse_rate,
)
from benchmarks.support.results import write_json  # noqa: E402
from switchfold.bmv2_topos.errors import TestbedError  # noqa: E402

CASES: dict[str, dict[str, Any]] = {
    "cubic": {"jobs": 2, "flows": 1},
    "reno": {"jobs": 2, "flows": 1, "tcp": "reno"},
    "three-jobs": {"jobs": 3},
    "one-job": {"jobs": 1},
    "one-flow": {"jobs": 0, "flows": 1},
    "no-ecn": {"jobs": 2, "flows": 1, "tcp_ecn": False},
    "no-ecn-short-queue": {"jobs": 2, "flows": 1, "tcp_ecn": False, "queue_packets": 64},
}
"""The first is the main case; the last two show why TCP needs ECN beside jobs."""


def rates(reports: dict[str, list[Report]]) -> dict[str, float]:
    """Return bits/s by job and flow; a job is as fast as its slowest worker."""
    return {
        name: min(report["bits_per_s"] for report in each if "bits_per_s" in report)
        for name, each in reports.items()
    }


def shares(load: Load, seconds: float, repeats: int) -> dict[str, Any]:
    """Measure a case; return medians over the repeats, as shares of the fair share."""
    fair_bits_per_s = load.rate_bits_per_s / (load.jobs + load.flows)
    runs = [rates(measure(load, seconds)) for _ in range(repeats)]
    return {
        "fair_bits_per_s": fair_bits_per_s,
        "runs": runs,
        "shares": {
            name: statistics.median(run[name] for run in runs) / fair_bits_per_s for name in runs[0]
        },
        "least": min(min(run.values()) for run in runs) / fair_bits_per_s,
        "used": statistics.median(sum(run.values()) for run in runs) / load.rate_bits_per_s,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", default=",".join(CASES), help="default all: %(default)s")
    parser.add_argument("--rate", default="100M", help="rate of the shared link, default 100M")
    parser.add_argument("--seconds", type=float, default=8.0, help="length of a run, default 8")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each case, default 5")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    options = parser.parse_args()
    check_machine(has_torch=False)
    machine = describe_machine(has_torch=False)
    print(machine_line(machine))
    print(
        f"link of {options.rate}bit/s; medians of {options.repeats} runs of {options.seconds:g} s, "
        "as shares of the fair share\n\n"
        "| case | each | least of any run | link used |\n|---|---|---|---|"
    )
    rows: dict[str, Any] = {}
    try:
        for case in options.cases.split(","):
            load = Load(**CASES[case], rate_bits_per_s=parse_rate(options.rate))
            row = rows[case] = shares(load, options.seconds, options.repeats)
            each = ", ".join(f"{name} {100 * share:.0f} %" for name, share in row["shares"].items())
            print(
                f"| {case} | {each} | {100 * row['least']:.0f} % | {100 * row['used']:.0f} % |",
                flush=True,
            )
    except TestbedError as exc:
        raise SystemExit(f"benchmark stopped: {exc}") from exc
    content = {"machine": machine, "rate": options.rate, "cases": rows}
    write_json(options.out / "fairness.json", content)


if __name__ == "__main__":
    main()
