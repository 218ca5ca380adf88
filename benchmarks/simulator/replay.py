# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Compares a recorded run with the simulator: live transfers, or a run of tcp_check.py.

The timeline of a controller (`--transfer-log`) has the requests of a job. The simulator's scheduler
gets the same requests, each as long after its worker's last commit, and the times until commits are
compared.

Any other record is simulated again with the same computing times and sizes. It is a file of JSON
lines with time_s, event (get, got, push, sent, commit, drop), worker, server and bytes. Computing
times are those between the last `got` and the `push` of each of a worker's iterations; the
simulator gets them, the links' rates and the contender, and nothing else.

The exit status is 1 if a figure differs by more than the tolerance.
Run: python benchmarks/simulator/replay.py transfers.jsonl --rate 95.6M --granted-rate 100M
     python benchmarks/simulator/replay.py RECORD --contender async-ps --rate 100M
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.simulator.contenders import CONTENDERS, SimulatedContender, simulate
from benchmarks.simulator.live_log import LiveRequest, is_live_log, read_live_log
from benchmarks.simulator.outcome import figures_of
from benchmarks.simulator.request_replay import (
    RequestTimes,
    close_share,
    request_times,
    scenario_of_requests,
)
from benchmarks.simulator.scenario import Scenario
from benchmarks.simulator.timeline import (
    TimelineError,
    TimelineEvent,
    TimelineKind,
    read_timeline,
    write_timeline,
)
from benchmarks.simulator.traces import RecordedComputing

UNITS = {"k": 1e3, "M": 1e6, "G": 1e9}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One figure of both runs."""

    name: str
    recorded: float
    simulated: float

    @property
    def difference(self) -> float:
        """Simulated over recorded, less 1; 0 if both are 0."""
        if self.recorded == self.simulated:
            return 0.0
        return self.simulated / self.recorded - 1 if self.recorded else float("inf")


def computing_of(
    events: Sequence[TimelineEvent], workers: Sequence[str], num_servers: int
) -> RecordedComputing:
    """Return the computing times of a record; TimelineError if a `push` follows no `got`."""
    got: dict[str, list[float]] = {worker: [] for worker in workers}
    times: dict[str, list[float]] = {worker: [] for worker in workers}
    pushed: dict[str, int] = dict.fromkeys(workers, 0)
    for event in events:
        if event.event is TimelineKind.GOT:
            got[event.worker].append(event.time_s)
        elif event.event is TimelineKind.PUSH:
            if pushed[event.worker] % num_servers == 0:
                if not got[event.worker]:
                    raise TimelineError(
                        f"{event.worker} pushes at {event.time_s} s, but no `got` comes before: "
                        "record the arrival of models, too"
                    )
                times[event.worker].append(event.time_s - got[event.worker][-1])
            pushed[event.worker] += 1
    return RecordedComputing(times_s=[times[worker] for worker in workers])


def scenario_of(
    events: Sequence[TimelineEvent], rate_bits_per_s: float, server_rate_bits_per_s: float
) -> Scenario:
    """Return the scenario of a record. Rates are those of payload."""
    workers = {event.worker for event in events}
    servers = {event.server for event in events}
    pushes = [event.bytes for event in events if event.event is TimelineKind.PUSH]
    if not pushes:
        raise TimelineError("the record has no push, so nothing to compare")
    if len(set(pushes)) > 1:
        raise TimelineError(
            f"updates have from {min(pushes)} to {max(pushes)} bytes: the simulator takes records "
            "whose updates are of one size"
        )
    gets = [event.time_s for event in events if event.event is TimelineKind.GET]
    gots = [event.time_s for event in events if event.event is TimelineKind.GOT]
    return Scenario(
        num_workers=len(workers),
        num_servers=len(servers),
        seed=0,
        update_bytes=pushes[0] * len(servers),
        link_bits_per_s=round(rate_bits_per_s),
        server_link_bits_per_s=round(server_rate_bits_per_s),
        has_models=sum(gots) > sum(gets),
    )


def compare(
    events: Sequence[TimelineEvent], contender: SimulatedContender, scenario: Scenario, draws: int
) -> tuple[list[Comparison], Sequence[TimelineEvent]]:
    """Return the figures of a record beside the means of its simulations, and the first's events.

    Simulations differ in how unequally streams share a server's link.
    """
    workers = sorted({event.worker for event in events})
    computing = computing_of(events, workers, scenario.num_servers)
    runs = [
        simulate(contender, replace(scenario, seed=seed), duration_s=1e9, computing=computing)
        for seed in range(draws)
    ]
    recorded = _figures(events, contender, scenario)
    simulated = [_figures(run.events, contender, scenario) for run in runs]
    rows = [
        Comparison(
            name=name,
            recorded=recorded[name],
            simulated=statistics.mean(each[name] for each in simulated),
        )
        for name in recorded
    ]
    return rows, runs[0].events


def compare_requests(
    requests: Sequence[LiveRequest], scenario: Scenario, share: float
) -> tuple[list[Comparison], float]:
    """Return figures of live requests beside those of their simulation.

    The second value is the share of requests whose times are within a tenth. `share`: of the rates
    that the scheduler plans with, what links carry.
    """
    recorded, simulated = request_times(requests, scenario, share)
    figures = _request_figures(recorded), _request_figures(simulated)
    rows = [
        Comparison(name=name, recorded=figures[0][name], simulated=figures[1][name])
        for name in figures[0]
    ]
    return rows, close_share(recorded, simulated, 0.1)


def _request_figures(times: Sequence[RequestTimes]) -> Mapping[str, float]:
    took_s = [each.took_s for each in times]
    lasted_s = max(each.committed_s for each in times) - min(each.asked_s for each in times)
    return {
        "mean time to the commit, s": statistics.mean(took_s),
        "median time to the commit, s": statistics.median(took_s),
        "longest time to the commit, s": max(took_s),
        "time to the last commit, s": lasted_s,
    }


def _figures(
    events: Sequence[TimelineEvent], contender: SimulatedContender, scenario: Scenario
) -> Mapping[str, float]:
    commits = [event.time_s for event in events if event.event is TimelineKind.COMMIT]
    if not commits:
        raise TimelineError("no update was applied, so there is nothing to compare")
    lasted_s = max(commits[-1] - events[0].time_s, 1e-9)
    found = figures_of(
        events,
        duration_s=lasted_s,
        num_servers=scenario.num_servers,
        wanted_updates=0,
        is_synchronous=contender.is_synchronous,
    )
    return {
        "updates": found.updates,
        "time to the last commit, s": lasted_s,
        "updates/s": found.updates_per_s,
        "mean delay": found.mean_delay,
        "mean time of a push, s": found.mean_push_s,
    }


def parse_bits_per_s(text: str) -> float:
    """Return bits/s of a text such as 100M; ArgumentTypeError."""
    unit = UNITS.get(text[-1:], 1.0)
    try:
        rate = float(text.rstrip("kMG")) * unit
    except ValueError as exc:
        raise argparse.ArgumentTypeError(f"{text!r} is no rate: write 100M, 1G or 94.9M") from exc
    if not 0 < rate < float("inf"):
        raise argparse.ArgumentTypeError(f"the rate {text} is not above 0")
    return rate


def verdict(rows: Sequence[Comparison], tolerance: float) -> bool:
    """Print both runs' figures; return whether all are within the tolerance."""
    print("| figure | recorded | simulated | difference |\n|---|---|---|---|")
    for row in rows:
        figures = f"{row.recorded:.3f} | {row.simulated:.3f} | {100 * row.difference:+.1f} %"
        print(f"| {row.name} | {figures} |")
    is_close = all(abs(row.difference) <= tolerance for row in rows)
    outcome = "within" if is_close else "NOT within"
    print(f"\n{outcome} {100 * tolerance:.0f} % of the record")
    return is_close


def main() -> int:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("Run:")[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("record", type=Path, help="JSON lines of the run")
    parser.add_argument("--job", help="of a controller's timeline that has several")
    parser.add_argument("--contender", choices=list(CONTENDERS), default="async-ps")
    parser.add_argument(
        "--rate", type=parse_bits_per_s, default=1e8, help="payload bits/s of a worker's link"
    )
    parser.add_argument(
        "--server-rate", type=parse_bits_per_s, help="of a server's (default: same)"
    )
    parser.add_argument(
        "--granted-rate",
        type=parse_bits_per_s,
        help="bits/s that the controller plans with for a worker's link (default: --rate)",
    )
    parser.add_argument("--tolerance", type=float, default=0.1)
    parser.add_argument(
        "--draws", type=int, default=10, help="simulations, of which the mean counts"
    )
    parser.add_argument("--write", type=Path, help="file that gets the simulated timeline")
    options = parser.parse_args()
    try:
        if is_live_log(options.record):
            return 0 if _compare_live(options) else 1
        events = read_timeline(options.record)
        scenario = scenario_of(events, options.rate, options.server_rate or options.rate)
        rows, simulated = compare(events, CONTENDERS[options.contender], scenario, options.draws)
    except (OSError, TimelineError) as exc:
        parser.exit(2, f"{exc}\n")
    if options.write:
        write_timeline(simulated, options.write)
    return 0 if verdict(rows, options.tolerance) else 1


def _compare_live(options: argparse.Namespace) -> bool:
    """Compare a controller's timeline; return whether all figures are within the tolerance."""
    requests = read_live_log(options.record, options.job)
    granted = options.granted_rate or options.rate
    share = options.rate / granted
    server = (options.server_rate or options.rate) / share
    scenario = scenario_of_requests(requests, granted, server)
    rows, close = compare_requests(requests, scenario, share)
    is_close = verdict(rows, options.tolerance)
    print(f"{100 * close:.0f} % of {len(requests)} requests are within 10 % each")
    return is_close


if __name__ == "__main__":
    sys.exit(main())
