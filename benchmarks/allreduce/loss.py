# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Cost of random loss: the rate of a job as a share of its rate without loss.

One job runs around one switch, which loses packets at random on every hop: contributions as they
enter, and multicast results as they leave at each port. Equal seeds lose the same packets. For each
number of workers and each link, the lossy runs follow the lossless run. Every sum is checked. The
rate is that of the results taken; retransmissions do not count.

    python benchmarks/allreduce/loss.py --workers 2,4 --rates 100M,none --loss 0.01,0.05 --seconds 4
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.contention.shared_link import Report, run, start_worker  # noqa: E402
from benchmarks.support.machine import (  # noqa: E402
    check_machine,
    describe_machine,
    machine_line,
    parse_rate,
)
from benchmarks.support.results import write_json  # noqa: E402
from switchfold.bmv2_topos import Testbed, single_switch  # noqa: E402
from switchfold.bmv2_topos.errors import TestbedError  # noqa: E402
from switchfold.hostlib import SessionOptions  # noqa: E402
from switchfold.hostlib.slots import wire  # noqa: E402

CHUNK_BITS = 8 * wire.frame_bytes(wire.VALUES_PER_PACKET_WIDE)
HEADING = (
    "| workers | links | loss per hop | chunks/s | of the lossless rate | sent again of all sent "
    "| found by later results | window |\n|---|---|---|---|---|---|---|---|"
)


def measure(
    options: argparse.Namespace, num_workers: int, rate: str, loss: float
) -> dict[str, float]:
    """Run a job once; return its rate and the share of retransmissions."""
    topology = single_switch(num_workers, rate_bits_per_s=rate_of(rate))
    switch_options: list[str] = []
    for link in topology.links if loss else ():
        for number, direction in enumerate(("in", "out")):
            settings = f"loss={loss},seed={2 * link.port + number}"
            switch_options += ["--impair", f"{link.port}:{direction}:{settings}"]
    sizes = ["--elements", str(options.elements), "--window", str(options.window)]
    with Testbed(topology, switch_options=switch_options) as testbed:
        workers = [
            start_worker(
                testbed, number, "job", sizes, job=("loss", number), num_workers=num_workers
            )
            for number in range(num_workers)
        ]
        return summary(run(testbed, workers, options.seconds))


def rate_of(text: str) -> int | None:
    """Return a link's rate in bits/s, or None for an unshaped link."""
    return None if text == "none" else parse_rate(text)


def summary(reports: list[Report]) -> dict[str, float]:
    counts = [report["statistics"] for report in reports]
    sent = sum(each["value_packets_sent"] for each in counts)
    again = sum(each["value_packets_retransmitted"] for each in counts)
    # Older versions, which find losses by timers alone, do not count this.
    fast = sum(each.get("value_packets_fast_retransmitted", 0) for each in counts)
    return {
        "chunks_per_s": min(report["bits_per_s"] for report in reports) / CHUNK_BITS,
        "sent_again": again / max(1, sent + again),
        "found_by_results": fast / max(1, again),
        "window": statistics.median(report["window"] for report in reports),
    }


def row(runs: list[dict[str, float]]) -> dict[str, float]:
    """Return the median of each figure."""
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def measure_group(options: argparse.Namespace, num_workers: int, rate: str) -> list[dict[str, Any]]:
    """Measure without loss and with each loss, in turn; print and return a row for each."""
    losses = [0.0, *map(float, options.loss.split(","))]
    runs: dict[float, list[dict[str, float]]] = {loss: [] for loss in losses}
    for _ in range(options.repeats):
        for loss in losses:
            runs[loss].append(measure(options, num_workers, rate, loss))
    lossless = row(runs[0.0])["chunks_per_s"]
    rows: list[dict[str, Any]] = []
    for loss in losses:
        figures = row(runs[loss])
        share = figures["chunks_per_s"] / lossless
        rows.append({"workers": num_workers, "rate": rate, "loss": loss, "share": share, **figures})
        print(
            f"| {num_workers} | {rate} | {100 * loss:g} % | {figures['chunks_per_s']:.0f} "
            f"| {100 * share:.0f} % | {100 * figures['sent_again']:.1f} % "
            f"| {100 * figures['found_by_results']:.1f} % | {figures['window']:.0f} |",
            flush=True,
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", default="2,4", help="default %(default)s")
    parser.add_argument("--rates", default="100M,none", help="link rates, default %(default)s")
    parser.add_argument("--loss", default="0.01,0.05", help="loss per hop, default %(default)s")
    parser.add_argument("--seconds", type=float, default=4.0, help="length of each run, default 4")
    parser.add_argument("--repeats", type=int, default=1, help="repeats of each run, default 1")
    parser.add_argument("--elements", type=int, default=65_536, help="values per int32 tensor")
    parser.add_argument(
        "--window", type=int, default=SessionOptions().window, help="most chunks in flight"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    options = parser.parse_args()
    check_machine(has_torch=False)
    machine = describe_machine(has_torch=False)
    print(machine_line(machine))
    print(f"\n{HEADING}")
    rows: list[dict[str, Any]] = []
    try:
        for rate in options.rates.split(","):
            for number in map(int, options.workers.split(",")):
                rows += measure_group(options, number, rate)
    except TestbedError as exc:
        raise SystemExit(f"benchmark stopped: {exc}") from exc
    content = {"machine": machine, "rows": rows}
    write_json(options.out / "loss.json", content)


if __name__ == "__main__":
    main()
