# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the latency log costs: time and processor time per request, with it and without.

Two workers in this process use one server in turns, one with a log and one without, so that both
have the same processes and the same machine. A slice is a fixed number of pushes and pulls, some of
them open at a time. The server's own log is on or off for both; with `--server-log both`, its
effect is the difference of the two lines.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Generator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from benchmarks.support.machine import describe_machine, machine_line  # noqa: E402
from switchfold.hostlib.latency import (  # noqa: E402
    PULL,
    PUSH,
    RequestMeter,
    SwitchMeter,
    WorkerLog,
)
from switchfold.hostlib.parameter_server import ClientOptions  # noqa: E402
from switchfold.hostlib.parameter_server.tables import (  # noqa: E402
    SparseTable,
    TableClient,
    TableDefinition,
)
from switchfold.hostlib.peers.event_loop import EventLoop  # noqa: E402

NUM_KEYS = 1 << 17


@contextmanager
def server(log: Path | None) -> Generator[tuple[tuple[str, int], int]]:
    """Give the address of a server for two workers, and the id of its process."""
    command = [sys.executable, "-m", "switchfold.hostlib.parameter_server"]
    options = ["--address", "127.0.0.1", "--num-workers", "2", "--insecure"]
    logged = [] if log is None else ["--latency-log", str(log)]
    with subprocess.Popen(
        [*command, *options, *logged], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            said = re.fullmatch(r"listening on (.*):(\d+)\n", process.stdout.readline())
            assert said is not None
            yield (said[1], int(said[2])), process.pid
        finally:
            process.terminate()
            process.communicate()


def run_slice(rows: SparseTable, options: argparse.Namespace, batch: int) -> float:
    """Return the seconds of a slice."""
    rng = np.random.default_rng(1)
    batches = [rng.integers(0, NUM_KEYS, batch) for _ in range(16)]
    gradients = np.ones((batch, options.width), np.float32)
    pending: deque[Future[Any]] = deque()
    started_s = time.perf_counter()
    for number in range(options.requests // 2):
        keys = batches[number % len(batches)]
        pending.extend(rows.push_pull(keys, gradients, keys))
        while len(pending) > options.window:
            pending.popleft().result()
    while pending:
        pending.popleft().result()
    return time.perf_counter() - started_s


def processor_s(pid: int) -> float:
    """Return the processor time of this process and of a server's."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return time.process_time() + sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def compare(
    contenders: tuple[SparseTable, SparseTable], pid: int, options: argparse.Namespace, batch: int
) -> str:
    """Return what the slices of one size show."""
    for rows in contenders:
        run_slice(rows, options, batch)
    times: list[float] = []
    spent: list[float] = []
    rates: list[float] = []
    costs: list[float] = []
    for number in range(options.pairs):
        taken, used = [0.0, 0.0], [0.0, 0.0]
        for which in (0, 1) if number % 2 else (1, 0):
            before_s = processor_s(pid)
            taken[which] = run_slice(contenders[which], options, batch)
            used[which] = processor_s(pid) - before_s
        times.append(taken[0] / taken[1])
        spent.append(used[0] / used[1])
        rates.append(options.requests / taken[1])
        costs.append(used[1] / options.requests * 1e6)
    return (
        f"{batch} keys: {statistics.median(rates):.0f} requests/s and"
        f" {statistics.median(costs):.0f} us of both ends' processors each without the worker's"
        f" log; with it, {quartiles(times)} times the time, {quartiles(spent)} times the processor"
    )


def quartiles(values: list[float]) -> str:
    """Return the median, and the other quartiles."""
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.3f} ({low:.3f} to {high:.3f})"


def switch_record_us(count: int = 5000) -> float:
    """Return the processor time of what the log adds to a request by the switch: median of 9."""
    loop = EventLoop("switchfold-benchmark")
    times_us: list[float] = []
    with tempfile.TemporaryDirectory() as directory:
        log = WorkerLog(Path(directory), worker_id=0, job=1)
        meter = SwitchMeter(RequestMeter(loop, log, 0))
        for _ in range(9):
            begun_ns = time.thread_time_ns()
            for number in range(count):
                request = meter.begin(PULL if number % 2 else PUSH, 64)
                meter.send(1448)
                meter.end_sending()
                meter.receive(request.sent_ns)
                meter.end(request, has_failed=False)
            times_us.append((time.thread_time_ns() - begun_ns) / 1e3 / count)
        log.close()
    loop.stop(lambda: None)
    return statistics.median(times_us)


def main() -> int:
    """Run the contenders in turns and print their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, nargs="+", default=[64, 1024, 4096], help="keys")
    parser.add_argument("--width", type=int, default=16, help="values of a row")
    parser.add_argument("--requests", type=int, default=400, help="pushes and pulls of a slice")
    parser.add_argument("--window", type=int, default=4, help="most requests open at a time")
    parser.add_argument("--pairs", type=int, default=60, help="slices of each contender")
    parser.add_argument("--server-log", choices=["on", "off", "both"], default="on")
    options = parser.parse_args()
    print(machine_line(describe_machine()))
    print(f"a record of a request by the switch: {switch_record_us():.1f} us in the worker's loop")
    for is_on in {"on": [True], "off": [False], "both": [False, True]}[options.server_log]:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory)
            with (
                server(path if is_on else None) as (address, pid),
                TableClient(
                    [address], ClientOptions(worker_id=0, latency_log=path, insecure=True)
                ) as logged,
                TableClient([address], ClientOptions(worker_id=1, insecure=True)) as plain,
            ):
                definition = TableDefinition(name="rows", width=options.width)
                contenders = logged.define(definition), plain.define(definition)
                print(f"server's log {'on' if is_on else 'off'}")
                for batch in options.batches:
                    print("  " + compare(contenders, pid, options, batch))
    return 0


if __name__ == "__main__":
    sys.exit(main())
