# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the latency log costs: time and processor time per request, with it and without.

Two workers in this process use one server in turns, one with a log and one without, so that both
have the same processes and the same machine. A slice is a fixed number of pushes and pulls, some of
them open at a time. The server's own log is on or off for both; with `--server-log both`, its
effect is the difference of the two lines. The worker's log records as many calls as its budget of
processor time allows.
"""

from __future__ import annotations

import argparse
import itertools
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

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
from switchfold.hostlib.latency.call_sampler import CallSampler  # noqa: E402
from switchfold.hostlib.parameter_server import ClientOptions  # noqa: E402
from switchfold.hostlib.parameter_server.tables import (  # noqa: E402
    SparseTable,
    TableClient,
    TableDefinition,
)
from switchfold.hostlib.peers.event_loop import EventLoop  # noqa: E402
from switchfold.hostlib.peers.frames import Frame, FrameKind, TableFrame  # noqa: E402

NUM_KEYS = 1 << 17
TIMED: Final = (
    *((RequestMeter, name) for name in ("sent", "received", "parsed")),
    *((WorkerLog, name) for name in ("begin_call", "end_call")),
)
"""What the log does for a request by TCP, in the worker's loop."""


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


def record_costs(count: int = 5000, repeats: int = 9) -> str:
    """Return what the log adds to a request in the worker's loop, and later in its thread.

    Of processor time: medians of the repeats. The cost of making the frames is left out.
    """
    loop = EventLoop("switchfold-benchmark")
    with tempfile.TemporaryDirectory() as directory:
        log = WorkerLog(Path(directory), worker_id=0, job=1)
        frames = RequestMeter(loop, log, 0)
        frames.iteration = 0
        switch = SwitchMeter(frames)
        numbers = itertools.count(1)

        def by_tcp() -> None:
            number = next(numbers)
            frames.sent(TableFrame(FrameKind.PULL, 512, number, 0, 64, 0, log.recording != 0))
            answer = Frame(FrameKind.ROWS, 4096, (number, 0, 3, 40, 0, 50, 0))
            frames.received(answer, memoryview(b""), 0)
            frames.parsed()

        def by_switch() -> None:
            request = switch.begin(PULL if next(numbers) % 2 else PUSH, 64)
            switch.send(1448)
            if request is not None:
                switch.end_sending()
            switch.receive(0)
            if request is not None:
                switch.end(request, has_failed=False)

        def frames_alone() -> None:
            number = next(numbers)
            TableFrame(FrameKind.PULL, 512, number, 0, 64)
            Frame(FrameKind.ROWS, 4096, (number, 0, 3, 40, 0, 50, 0))

        spent: dict[str, list[float]] = {}

        def measure(name: str, ask: Callable[[], None]) -> None:
            begun_ns = time.thread_time_ns()
            for _ in range(count):
                ask()
            cost_us = (time.thread_time_ns() - begun_ns) / 1e3 / count
            spent.setdefault(name, []).append(cost_us)

        for _ in range(repeats):
            measure("frames", frames_alone)
            for call, state in ((1, "recorded"), (0, "not recorded")):
                log.recording = call
                measure(f"server, {state}", by_tcp)
                measure(f"switch, {state}", by_switch)
        begun_ns = time.process_time_ns()
        log.close()
        written_us = (time.process_time_ns() - begun_ns) / 1e3 / log.num_requests
    loop.stop(lambda: None)
    found = {name: statistics.median(each) for name, each in spent.items()}
    frames_us = found.pop("frames")
    told = "; ".join(
        f"{name}: {cost_us - frames_us * name.startswith('server'):.1f}"
        for name, cost_us in found.items()
    )
    return f"us of a request in the worker's loop: {told}; of a record in a file: {written_us:.1f}"


@contextmanager
def stopwatch() -> Generator[list[int]]:
    """Add up the processor time (ns) of the log in a worker's loop, less that of reading clocks."""
    spent, clock_ns = [0], time.thread_time_ns

    def timed(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            before_ns, begun_ns = clock_ns(), clock_ns()
            found = call(*arguments)
            spent[0] += clock_ns() - begun_ns - (begun_ns - before_ns)
            return found

        return run

    with ExitStack() as stack:
        for owner, name in TIMED:
            stack.enter_context(patch.object(owner, name, timed(getattr(owner, name))))
        yield spent


def share_in_worker(
    address: tuple[str, int], options: argparse.Namespace, batch: int, *, records_all: bool
) -> str:
    """Return which share of a worker's processor time the log takes, once its budget is spent."""
    with ExitStack() as stack:
        if records_all:
            stack.enter_context(patch.object(CallSampler, "begin_call", lambda *_: True))
        spent = stack.enter_context(stopwatch())
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        client = stack.enter_context(
            TableClient(
                [address], ClientOptions(worker_id=0, latency_log=Path(directory), insecure=True)
            )
        )
        log: Any = client._latency
        rows = client.define(TableDefinition(name="rows", width=options.width))
        readings: list[tuple[int, int, int]] = []
        for _ in range(2):
            for _ in range(10):
                run_slice(rows, options, batch)
            readings.append((spent[0], time.process_time_ns(), log.num_requests))
    log_ns, worker_ns, records = (after - before for before, after in zip(*readings, strict=True))
    calls = 10 * options.requests
    return (
        f"{batch} keys, {100 * records / calls:.0f} % of the calls recorded: the log takes"
        f" {log_ns / 1e3 / calls:.1f} of {worker_ns / 1e3 / calls:.0f} us a call,"
        f" {100 * log_ns / worker_ns:.1f} % of the worker's processor"
    )


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
    print(record_costs())
    with server(None) as (address, _):
        for batch, records_all in itertools.product(options.batches, (True, False)):
            print("  " + share_in_worker(address, options, batch, records_all=records_all))
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
