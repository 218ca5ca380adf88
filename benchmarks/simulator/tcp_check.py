# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Checks the simulator's fair sharing against real TCP over shaped links.

Workers and a plain parameter server run in network namespaces around a bridge of the kernel. They
train asynchronously: get a model, wait as if they computed, push an update. Their record is
compared with the simulator by `replay`. Needs root.
Run: python benchmarks/simulator/tcp_check.py
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.contention.shared_link import await_line
from benchmarks.simulator.contenders import CONTENDERS
from benchmarks.simulator.replay import (
    Comparison,
    compare,
    parse_bits_per_s,
    scenario_of,
    verdict,
)
from benchmarks.simulator.timeline import TimelineEvent, read_timeline, write_timeline
from benchmarks.simulator.traces import ComputeSetting, ComputeTrace
from benchmarks.support.machine import check_machine, describe_machine, machine_line
from switchfold.bmv2_topos import Testbed, single_switch

WORKER = Path(__file__).with_name("tcp_worker.py")
RESULTS = Path(__file__).parents[1] / "results"
PAYLOAD_SHARE = 1448 / 1514
"""Bytes of a TCP stream over those of its Ethernet frames, as the shapers count them."""


def record_run(options: argparse.Namespace, computing: ComputeTrace) -> list[TimelineEvent]:
    """Run the parameter server and its workers; return their events by time, from 0."""
    count = options.workers
    topology = single_switch(count + 1, rate_bits_per_s=round(options.rate))
    with Testbed(topology, has_bridge=True) as testbed:
        records = [testbed.run_directory / f"timeline{number}.jsonl" for number in range(count + 1)]
        sizes = ["--bytes", str(options.bytes)]
        command = [sys.executable, str(WORKER), "server", *sizes, "--record", str(records[0])]
        command += ["--workers", str(count), "--iterations", str(options.iterations)]
        server_host = topology.hosts[0]
        processes = [testbed.start("server", command, node=server_host)]
        await_line(processes[0], "listening")
        for number in range(count):
            waits = [computing.time_s(number, each) for each in range(options.iterations)]
            command = [sys.executable, str(WORKER), "worker", *sizes, "--number", str(number)]
            command += ["--server", server_host.address, "--record", str(records[number + 1])]
            command += ["--waits", *(f"{wait_s:.4f}" for wait_s in waits)]
            host = topology.hosts[number + 1]
            processes.append(testbed.start(f"worker{number}", command, node=host))
        for process in processes:
            status = process.wait(timeout_s=options.timeout)
            if status:
                raise SystemExit(f"{process.record.name} ended with {status}: {process.log}")
        return joined(records)


def joined(records: Sequence[Path]) -> list[TimelineEvent]:
    """Return the events of several records in one, which begins at 0."""
    events = [event for record in records for event in read_timeline(record)]
    first_s = min(event.time_s for event in events)
    moved = [
        TimelineEvent(
            time_s=event.time_s - first_s,
            event=event.event,
            worker=event.worker,
            server=event.server,
            bytes=event.bytes,
        )
        for event in events
    ]
    return sorted(moved, key=lambda event: event.time_s)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--bytes", type=int, default=12_500_000, help="of an update")
    parser.add_argument("--rate", type=parse_bits_per_s, default=1e8, help="of all links")
    parser.add_argument("--compute", type=float, default=0.5, help="nominal seconds")
    parser.add_argument(
        "--computing",
        choices=[each.value for each in ComputeSetting],
        default=ComputeSetting.STRAGGLERS.value,
    )
    parser.add_argument("--seed", type=int, default=1, help="of the first run's computing times")
    parser.add_argument("--repeats", type=int, default=3, help="runs, of which the mean counts")
    parser.add_argument("--tolerance", type=float, default=0.1)
    parser.add_argument(
        "--draws", type=int, default=10, help="simulations, of which the mean counts"
    )
    parser.add_argument("--timeout", type=float, default=600.0)
    parser.add_argument("--name", default="tcp_check", help="of the records in results/")
    options = parser.parse_args()
    check_machine(has_torch=False)
    print(machine_line(describe_machine(has_torch=False)))
    rate = options.rate * PAYLOAD_SHARE
    found: list[list[Comparison]] = []
    for seed in range(options.seed, options.seed + options.repeats):
        setting = ComputeSetting(options.computing)
        computing = ComputeTrace(setting, seed, options.workers, options.compute)
        events = record_run(options, computing)
        write_timeline(events, RESULTS / f"{options.name}_{seed}.jsonl")
        scenario = scenario_of(events, rate, rate)
        rows, _ = compare(events, CONTENDERS["async-ps"], scenario, options.draws)
        found.append(rows)
        print(", ".join(f"{row.name} {row.recorded:.2f} ({row.simulated:.2f})" for row in rows))
    print(
        f"\nMeans of {options.repeats} runs; {options.workers} workers, {options.bytes:,} bytes\n"
    )
    return 0 if verdict(means_of(found), options.tolerance) else 1


def means_of(runs: Sequence[Sequence[Comparison]]) -> list[Comparison]:
    """Return the means of the same figures of several runs."""
    return [
        Comparison(
            name=rows[0].name,
            recorded=statistics.mean(row.recorded for row in rows),
            simulated=statistics.mean(row.simulated for row in rows),
        )
        for rows in zip(*runs, strict=True)
    ]


if __name__ == "__main__":
    sys.exit(main())
