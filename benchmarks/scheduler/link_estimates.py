# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How soon, and how well, a controller learns that a host's link carries half, and all again.

Workers on a testbed push granted updates of the same size, one after another, or all at once in
each round. Between two updates, the link of the first worker's host is halved, as by `switchfold
testbed rate`. Nobody is told. After each report of this worker, the estimate of its uplink is
compared with what the link carries of payload, and the time of the update with its plan. Then the
link is restored, and seconds count until the estimate is within 10 % again. At the end, the model
is the exact sum. Run as root: python benchmarks/scheduler/link_estimates.py
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from benchmarks.simulator.tcp_check import PAYLOAD_SHARE  # noqa: E402
from benchmarks.support.machine import (  # noqa: E402
    check_machine,
    describe_machine,
    machine_line,
    parse_rate,
)
from fabric_job import LIMIT_S, FabricJob  # noqa: E402
from switchfold.bmv2_topos import Testbed, single_switch  # noqa: E402
from switchfold.hostlib.parameter_server.tables import TensorDefinition  # noqa: E402
from time_bound import wait_until  # noqa: E402

WITHIN: Final = 0.1
"""An estimate so near to the true rate is right."""
REPORTS: Final = 2
"""It should be after so many; then the next update should end as planned, within `PLAN_WITHIN`."""
PLAN_WITHIN: Final = 0.15
BACK_S: Final = 10.0
"""So soon after the link is restored, the estimate should be right again."""
GIVEN_UP_S: Final = 120.0


@dataclass(frozen=True, kw_only=True)
class EstimateReport:
    """An update of the first worker, and the estimate of its uplink once it was reported."""

    planned_s: float
    """From the grant to the planned arrival of the last byte."""
    measured_s: float
    """From the grant to its arrival."""
    limit: str
    """What limited it, as the controller says."""
    estimate: float
    """Bits/s of the uplink."""
    true: float
    """Bits/s of payload that it carries."""

    @property
    def error(self) -> float:
        """By how much of the true rate the estimate is too high."""
        return self.estimate / self.true - 1

    @property
    def is_right(self) -> bool:
        return abs(self.error) <= WITHIN

    @property
    def lateness(self) -> float:
        """By how much of the planned time the update took longer."""
        return self.measured_s / self.planned_s - 1


@dataclass(frozen=True, kw_only=True)
class RateChange:
    """What followed once the link was halved, and once it was restored."""

    halved: list[EstimateReport]
    restored: list[EstimateReport]
    back_s: float
    """Until the estimate was right after the link was restored."""

    @property
    def num_reports(self) -> int:
        """How many reports it took until the estimate was right when the link was halved."""
        return next(number for number, one in enumerate(self.halved, 1) if one.is_right)

    @property
    def next_lateness(self) -> float:
        """By how much the next update after that took longer than planned."""
        return self.halved[self.num_reports].lateness


class EstimateRig:
    """A job whose first worker's link changes."""

    def __init__(self, testbed: Testbed, job: FabricJob, timeline: Path, num_values: int) -> None:
        self._testbed, self._job, self._timeline = testbed, job, timeline
        self._update = np.ones(num_values, np.float32)
        self._link = testbed.topology.link_named("h1-s1")
        self._whole = testbed.topology.links[0].rate_bits_per_s or 0
        self.num_rounds = 0

    def change(self, num_reports: int, is_at_once: bool) -> RateChange:
        """Halve the link, and restore it once its estimate was right and some updates were sent.

        Unless it is to be done at once, this first waits until nothing is left of earlier ones.
        """
        began_s = time.monotonic()
        while not is_at_once and self._job.report()["rates"]:
            if time.monotonic() - began_s > GIVEN_UP_S:
                raise SystemExit(f"earlier estimates are left after {GIVEN_UP_S:g} s")
            self.push(1.0)
        self._testbed.link_rates.set(self._link, self._whole // 2)
        halved = self._push_until_right(0.5)
        halved += [self.push(0.5) for _ in range(max(1, num_reports - len(halved)))]
        self._testbed.link_rates.restore()
        began_s = time.monotonic()
        restored = self._push_until_right(1.0)
        return RateChange(halved=halved, restored=restored, back_s=time.monotonic() - began_s)

    def _push_until_right(self, share: float) -> list[EstimateReport]:
        began_s = time.monotonic()
        reports = [self.push(share)]
        while not reports[-1].is_right:
            if time.monotonic() - began_s > GIVEN_UP_S:
                raise SystemExit(f"the estimate is not right after {GIVEN_UP_S:g} s: {reports[-1]}")
            reports.append(self.push(share))
        return reports

    def push(self, share: float) -> EstimateReport:
        """Let all workers push, while the first one's link has that share of its rate."""
        before = len(self._events("observed"))
        for pushed in [worker.push(self._update) for worker in self._job.workers]:
            if not pushed.result(LIMIT_S).is_committed:
                raise SystemExit("an update was not committed")
        self.num_rounds += 1
        wait_until(lambda: len(self._events("observed")) > before, "a report", LIMIT_S)
        observed = self._events("observed")[-1]
        transfer = observed["transfer"]
        granted, delivered = (self._await(kind, transfer) for kind in ("granted", "delivered"))
        shown = {each["host"]: each["up_bits_per_s"] for each in self._job.report()["rates"]}
        return EstimateReport(
            planned_s=granted["ends"],
            measured_s=delivered["time"] - granted["time"],
            limit=observed.get("limit", "unknown"),
            estimate=shown.get("h1", self._whole),
            true=share * self._whole * PAYLOAD_SHARE,
        )

    def verify(self) -> None:
        """End the process if the model is not the sum of all updates."""
        model = self._job.workers[0].get().result(LIMIT_S)
        if not (model == self.num_rounds * len(self._job.workers)).all():
            raise SystemExit("the model is not the sum of all updates")

    def _events(self, kind: str) -> list[dict[str, Any]]:
        """Return the first worker's events of a kind."""
        lines = self._timeline.read_text("utf-8").splitlines()
        events = [json.loads(line) for line in lines if f'"{kind}"' in line]
        return [each for each in events if each["event"] == kind and each["worker"] == 0]

    def _await(self, kind: str, transfer: int) -> dict[str, Any]:
        """Return the event of an update; it may come later than the worker's report."""

        def found() -> list[dict[str, Any]]:
            return [each for each in self._events(kind) if each["transfer"] == transfer]

        wait_until(found, lambda: f"update {transfer} was not {kind}", LIMIT_S)
        return found()[-1]


def measure(num_workers: int, options: argparse.Namespace) -> list[RateChange]:
    """Return what followed each change of the link."""
    topology = single_switch(num_workers + 1, rate_bits_per_s=options.rate)
    definition = TensorDefinition(name="w", num_values=round(options.megabytes * 1e6) // 4)
    with tempfile.TemporaryDirectory() as folder:
        timeline = Path(folder) / "transfers.jsonl"
        with (
            Testbed(topology, controller_options=("--transfer-log", str(timeline))) as testbed,
            FabricJob(testbed, definition, grant_wait_s=LIMIT_S) as job,
        ):
            rig = EstimateRig(testbed, job, timeline, definition.num_values)
            for _ in range(3):  # a warm-up
                rig.push(1.0)
            found: list[RateChange] = []
            for _ in range(options.repeats):
                found.append(rig.change(options.reports, options.at_once))
                print_change(num_workers, found[-1])
            rig.verify()
            return found


def print_change(num_workers: int, change: RateChange) -> None:
    """Print a line for each report."""
    for name, reports in (("halved", change.halved), ("restored", change.restored)):
        for number, one in enumerate(reports, 1):
            print(
                f"{num_workers:7}  {name:8}  {number:6}  {one.estimate / 1e6:8.2f}"
                f"  {one.true / 1e6:5.2f} Mbit/s  {100 * one.error:+5.0f} %"
                f" | {one.planned_s:7.2f}  {one.measured_s:8.2f} s  {100 * one.lateness:+5.0f} %"
                f"  {one.limit}",
                flush=True,
            )
    print(f"{num_workers:7}  right again {change.back_s:.2f} s after the link was restored")


def spread(values: list[float], unit: str, digits: int = 0) -> str:
    """Return median (least .. most)."""
    parts = statistics.median(values), min(values), max(values)
    return "{:.{d}f} {unit} ({:.{d}f} .. {:.{d}f})".format(*parts, d=digits, unit=unit)


def judge(num_workers: int, found: list[RateChange]) -> None:
    """Print the aims and how often they are met."""
    reports = [float(each.num_reports) for each in found]
    plans = [abs(each.next_lateness) for each in found]
    backs = [each.back_s for each in found]
    print(f"{num_workers} workers, {len(found)} changes; median (least .. most), aim met:")
    for what, values, aim, scale, unit, digits in (
        ("estimate right after", reports, REPORTS, 1, "reports", 0),
        ("next update's time, apart from its plan", plans, PLAN_WITHIN, 100, "%", 0),
        ("estimate right again after", backs, BACK_S, 1, "s", 2),
    ):
        met = sum(value <= aim for value in values)
        shown = spread([scale * value for value in values], unit, digits)
        print(f"  {what}: {shown}; at most {scale * aim:g} {unit}: {met} of {len(values)}")


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=parse_rate, default=20_000_000, help="of links (20M)")
    parser.add_argument("--megabytes", type=float, default=1.0, help="size of an update (1)")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="of each run (1 2)")
    parser.add_argument(
        "--reports", type=int, default=5, help="least updates while the link is halved (5)"
    )
    parser.add_argument(
        "--at-once",
        action="store_true",
        help="halve the link again as soon as its estimate is right, not only when it is whole",
    )
    parser.add_argument("--repeats", type=int, default=5, help="changes in a run (5)")
    parser.add_argument("--json", type=Path, help="file that also gets the figures")
    options = parser.parse_args()
    check_machine(has_torch=False)
    print(machine_line(describe_machine(has_torch=False)))
    print(f"updates of {options.megabytes:g} MB, links of {options.rate / 1e6:g} Mbit/s")
    print("workers  link      report  estimate   true         error | planned  measured   apart")
    runs = {number: measure(number, options) for number in options.workers}
    for number, found in runs.items():
        judge(number, found)
    if options.json:
        shown = {number: [asdict(each) for each in found] for number, found in runs.items()}
        options.json.write_text(json.dumps(shown, indent=2) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
