# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests what priorities are worth: a small tensor's time beside a job that fills a link.

Two jobs have a worker behind each of two switches. The link between these is a port of softswitch
with priority queues. One job ("back") sums large tensors all the time. The other one ("front") sums
small tensors of floats, one at a time, and agrees on exponents for each: control packets. Every sum
is checked.

    python benchmarks/contention/priority.py --rate 25M --seconds 6     # root
"""

from __future__ import annotations

import argparse
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.contention.shared_link import run, start_worker, two_switches  # noqa: E402
from benchmarks.support.machine import (  # noqa: E402
    check_machine,
    describe_machine,
    machine_line,
    parse_rate,
)
from benchmarks.support.results import write_json  # noqa: E402
from switchfold.bmv2_topos import Testbed  # noqa: E402
from switchfold.bmv2_topos.errors import TestbedError  # noqa: E402

QUEUE_PACKETS: Final = 660
"""Of each priority of the link; further packets are dropped."""
FRONT_ELEMENTS: Final = 16_384
LIMIT: Final = 7
"""Highest priority that the controller grants."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """What both jobs ask for, and the priority of the small tensors."""

    name: str
    max_priority: int = 0
    priority: int = 0
    has_back: bool = True


CASES: Final = (
    Case(name="front alone", has_back=False),
    Case(name="one queue"),
    Case(name="control first", max_priority=1),
    Case(name="control and front first", max_priority=3, priority=2),
)


def measure(case: Case, rate_bits_per_s: int, seconds: float) -> dict[str, float]:
    """Return the times of small tensors and control packets, and the large tensors' rate."""
    topology = two_switches(2)
    shaping = f"rate_bits_per_s={rate_bits_per_s},queue_packets={QUEUE_PACKETS}"
    asked = ["--max-priority", str(case.max_priority)]
    with Testbed(
        topology,
        switch_options=["--impair", f"3:out:{shaping}"],
        controller_options=["--max-priority", str(LIMIT)],
    ) as testbed:
        small = [*asked, "--priority", str(case.priority), "--elements", str(FRONT_ELEMENTS)]
        workers = [
            start_worker(testbed, host, "front", small, job=("front", worker_id))
            for worker_id, host in enumerate((0, 2))
        ]
        if case.has_back:
            workers += [
                start_worker(testbed, host, "job", asked, job=("back", worker_id))
                for worker_id, host in enumerate((1, 3))
            ]
        reports = run(testbed, workers, seconds)
    front, back = reports[:2], reports[2:]
    if {report["granted"] for report in front} != {case.max_priority}:
        raise SystemExit(f"benchmark stopped: {case.name}: granted {front}")
    figures = {name: max(r[name] for r in front) for name in ("median_s", "p99_s", "control_s")}
    figures["back_bits_per_s"] = min((report["bits_per_s"] for report in back), default=0.0)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rate", default="25M", help="rate of the link, default %(default)s")
    parser.add_argument("--seconds", type=float, default=6.0, help="length of a run, default 6")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each case, default 3")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    options = parser.parse_args()
    check_machine(has_torch=False)
    machine = describe_machine(has_torch=False)
    print(machine_line(machine))
    print(
        f"link of {options.rate}bit/s; tensors of {FRONT_ELEMENTS} floats beside large ones;"
        f" medians of {options.repeats} runs of {options.seconds:g} s, the range in brackets\n\n"
        "| case | small tensor | its 99th percentile | control RTT | large tensors |\n"
        "|---|---|---|---|---|"
    )
    runs: dict[str, list[dict[str, float]]] = {case.name: [] for case in CASES}
    try:
        for _ in range(options.repeats):
            for case in CASES:  # in turn, so that the machine's own load meets all of them
                figures = measure(case, parse_rate(options.rate), options.seconds)
                runs[case.name].append(figures)
                print(f"{case.name}: {figures}", file=sys.stderr, flush=True)
    except TestbedError as exc:
        raise SystemExit(f"benchmark stopped: {exc}") from exc
    for name, each in runs.items():
        cells = [_milliseconds(each, figure) for figure in ("median_s", "p99_s", "control_s")]
        back = statistics.median(run["back_bits_per_s"] for run in each) / 1e6
        print(f"| {name} | {' | '.join(cells)} | {f'{back:.1f} Mbit/s' if back else 'none'} |")
    content: dict[str, Any] = {"machine": machine, "rate": options.rate, "runs": runs}
    write_json(options.out / "priority.json", content)


def _milliseconds(runs: list[dict[str, float]], name: str) -> str:
    values = sorted(1e3 * run[name] for run in runs)
    return f"{statistics.median(values):.1f} ms ({values[0]:.1f} to {values[-1]:.1f})"


if __name__ == "__main__":
    main()
