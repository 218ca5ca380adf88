# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Key updates and pulls per second of sparse tables on one server, over loopback.

Workers are processes; so is the server, with and without a log. The limit is the table alone, in
one process. Pushes count until the last receipt.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from benchmarks.support.machine import describe_machine, machine_line  # noqa: E402
from switchfold.hostlib.parameter_server import (  # noqa: E402
    ClientOptions,
    ParameterServer,
    ServerOptions,
)
from switchfold.hostlib.parameter_server.rows import RowTable  # noqa: E402
from switchfold.hostlib.parameter_server.tables import TableClient, TableDefinition  # noqa: E402

LOOPBACK = "127.0.0.1"
NUM_BATCHES = 16
"""Different batches of a worker, which it sends again and again."""
MAX_PULLS = 16
"""Pulls of a worker that are open at a time."""
Process = subprocess.Popen[str]


def batches_of(worker_id: int, options: argparse.Namespace) -> list[NDArray[np.int64]]:
    rng = np.random.default_rng(worker_id)
    return [rng.integers(0, options.rows, options.batch) for _ in range(NUM_BATCHES)]


def serve(options: argparse.Namespace) -> None:
    log = None if options.log is None else Path(options.log)
    server_options = ServerOptions(num_workers=options.workers + 1, log=log)
    with ParameterServer(server_options, address=LOOPBACK, insecure=True) as server:
        print(server.port, flush=True)
        sys.stdin.read()


def work(options: argparse.Namespace) -> None:
    """Answer each line of the input, when its work is done, with an empty one."""
    batches = itertools.cycle(batches_of(options.work, options))
    ones = np.ones((options.batch, options.width), np.float32)
    with open_client(options.port, options.work) as client:
        table = client.define(definition_of(options))
        print(flush=True)
        for line in sys.stdin:
            if line == "push\n":
                pushes = [table.push(next(batches), ones) for _ in range(options.rounds)]
                for push in pushes:
                    push.result()
            else:
                pulls = [table.pull(next(batches)) for _ in range(MAX_PULLS)]
                for _ in range(options.rounds - MAX_PULLS):
                    pulls.pop(0).result()
                    pulls.append(table.pull(next(batches)))
                for pull in pulls:
                    pull.result()
            print(flush=True)


def open_client(port: int, worker_id: int) -> TableClient:
    options = ClientOptions(worker_id=worker_id, timeout_s=100.0, insecure=True)
    return TableClient([(LOOPBACK, port)], options)


def definition_of(options: argparse.Namespace) -> TableDefinition:
    return TableDefinition(name="rate", width=options.width, max_rows=options.rows)


@contextmanager
def start(options: argparse.Namespace, *mode: object) -> Iterator[Process]:
    """Run this script in another mode until the block ends."""
    given = {name: getattr(options, name) for name in ("rows", "width", "batch", "rounds")}
    flags = [str(part) for name, value in given.items() for part in (f"--{name}", value)]
    with subprocess.Popen(
        [sys.executable, __file__, *flags, *map(str, mode)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process


def said(process: Process) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise SystemExit("a process of the benchmark has ended")
    return line


def seconds(workers: list[Process], what: str) -> float:
    """Return the time in which all workers do something."""
    start_s = time.perf_counter()
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(f"{what}\n")
        worker.stdin.flush()
    for worker in workers:
        said(worker)
    return time.perf_counter() - start_s


def measure(options: argparse.Namespace, num_workers: int, log: Path | None) -> tuple[float, float]:
    """Return million keys per second of pushes and of pulls, best of the repeats."""
    options.rounds = options.keys // (options.batch * num_workers)
    with ExitStack() as stack:
        place = () if log is None else ("--log", log)
        server = stack.enter_context(start(options, "--serve", "--workers", num_workers, *place))
        port = int(said(server))
        workers = [
            stack.enter_context(start(options, "--work", w, "--port", port))
            for w in range(num_workers)
        ]
        for worker in workers:
            said(worker)
        times = {what: [seconds(workers, what) for _ in range(options.repeats)] for what in KINDS}
        check_sums(options, num_workers, port)
    moved = options.rounds * options.batch * num_workers / 1e6
    return moved / min(times["push"]), moved / min(times["pull"])


KINDS = ("push", "pull")


def check_sums(options: argparse.Namespace, num_workers: int, port: int) -> None:
    expected = np.zeros(options.rows, np.int64)
    for w in range(num_workers):
        batches = batches_of(w, options)
        for number in range(options.rounds * options.repeats):
            expected += np.bincount(batches[number % NUM_BATCHES], minlength=options.rows)
    assert expected.max() < 1 << 24, "float32 does not hold these sums"
    with open_client(port, num_workers) as client:
        table = client.define(definition_of(options))
        for first in range(0, options.rows, 1 << 16):
            keys = np.arange(first, min(first + (1 << 16), options.rows))
            if (table.pull(keys).result().values != expected[keys, None]).any():
                raise SystemExit("the sums are wrong")


def alone(options: argparse.Namespace) -> tuple[float, float]:
    """Return million keys per second of the table in this process."""
    table = RowTable(width=options.width, max_rows=options.rows)
    batches = batches_of(0, options) * (options.keys // (options.batch * NUM_BATCHES))
    ones = np.ones((options.batch, options.width), np.float32)
    rates: list[float] = []
    for call in (lambda keys: table.push(keys, ones), table.pull):
        best_s = float("inf")
        for _ in range(options.repeats):
            start_s = time.perf_counter()
            for keys in batches:
                call(keys)
            best_s = min(best_s, time.perf_counter() - start_s)
        rates.append(len(batches) * options.batch / best_s / 1e6)
    return rates[0], rates[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1 << 18)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--keys", type=int, default=1 << 21, help="keys of a run")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--batch", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--log", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--work", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options)
    elif options.work is not None:
        work(options)
    else:
        report(options)


def report(options: argparse.Namespace) -> None:
    print(machine_line(describe_machine(has_torch=False)))
    print(
        f"{options.rows} rows of {options.width} values, {options.keys} keys a run, best of"
        f" {options.repeats} runs, sums verified; million keys per second"
    )
    print(" batch workers  log  pushed  share  pulled  share")
    with tempfile.TemporaryDirectory() as folder:
        numbers = itertools.count()
        for options.batch in (1024, 8192):
            push_limit, pull_limit = alone(options)
            print(
                f"{options.batch:6} {'table alone':>12} {push_limit:7.2f} {'':>6} {pull_limit:7.2f}"
            )
            for num_workers, has_log in itertools.product((1, 4), (False, True)):
                log = Path(folder) / f"log{next(numbers)}" if has_log else None
                pushed, pulled = measure(options, num_workers, log)
                print(
                    f"{options.batch:6} {num_workers:7} {'yes' if has_log else 'no':>4}"
                    f" {pushed:7.2f} {pushed / push_limit:6.0%} {pulled:7.2f}"
                    f" {pulled / pull_limit:6.0%}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
