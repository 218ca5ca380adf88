# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Rate of the parameter server's log: durable records per second, against what the disk allows."""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from benchmarks.support.machine import describe_machine, machine_line  # noqa: E402
from switchfold.hostlib.errors import StorageError  # noqa: E402
from switchfold.hostlib.parameter_server.storage import LogEvents, WriteAheadLog  # noqa: E402
from switchfold.hostlib.parameter_server.storage.record import record_bytes  # noqa: E402

RECORD_BYTES = (1 << 10, 64 << 10)
IN_FLIGHT = (1, 8, 64)
SEQUENTIAL_BYTES = 128 << 20
WRITE_BYTES = 1 << 20


@dataclass(frozen=True)
class LogRun:
    """What a contender did in a turn."""

    records: int
    seconds: float
    syncs: int


class CountedCalls:
    """The system calls of a log; counts those that make data durable."""

    def __init__(self) -> None:
        self.num_syncs = 0
        self.writev = os.writev

    def fdatasync(self, fd: int, /) -> None:
        self.num_syncs += 1
        os.fdatasync(fd)


class Producer:
    """Appends records, at most so many of them in flight."""

    def __init__(self, in_flight: int) -> None:
        self._in_flight = in_flight
        self._durable_lsn = 0
        self._error: StorageError | None = None
        self._changed = threading.Condition()
        self.events = LogEvents(
            on_durable=self._on_durable, on_failed=self._on_failed, on_room=lambda: None
        )

    def _on_durable(self, lsn: int) -> None:
        with self._changed:
            self._durable_lsn = lsn
            self._changed.notify()

    def _on_failed(self, first_lsn: int, last_lsn: int, error: StorageError) -> None:
        with self._changed:
            self._error = error
            self._changed.notify()

    def _wait(self, lsn: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._error or self._durable_lsn >= lsn)
            if self._error is not None:
                raise self._error

    def run(self, log: WriteAheadLog, body: memoryview, seconds: float) -> tuple[int, float]:
        """Return the number of records and the time until the last one was durable."""
        start_s = time.monotonic()
        lsn = 0
        while time.monotonic() - start_s < seconds:
            lsn = log.append([(lsn + 1).to_bytes(8, "little"), body])
            self._wait(lsn + 1 - self._in_flight)
        self._wait(lsn)
        return lsn, time.monotonic() - start_s


def run_log(directory: Path, size: int, in_flight: int, seconds: float) -> LogRun:
    """Fill a log, then read it again; raise SystemExit unless it has every record."""
    body = memoryview(random.Random(size).randbytes(size - 8))
    producer, calls = Producer(in_flight), CountedCalls()
    with WriteAheadLog(directory, producer.events, calls=calls) as log:
        before = calls.num_syncs
        records, elapsed_s = producer.run(log, body, seconds)
        num_syncs = calls.num_syncs - before
    with WriteAheadLog(directory, producer.events) as log:
        expected = 1
        for lsn, payload in log.replay(1):
            if (lsn, payload[:8], payload[8:]) != (expected, lsn.to_bytes(8, "little"), body):
                raise SystemExit(f"record {lsn} is wrong, or {expected} is missing")
            expected += 1
    if expected != records + 1:
        raise SystemExit(f"{expected - 1} records came back, {records} were durable")
    return LogRun(records, elapsed_s, num_syncs)


def run_plain(path: Path, size: int, seconds: float) -> LogRun:
    """Write as many bytes as a record has, and make them durable, again and again."""
    data = random.Random(size).randbytes(record_bytes(size))
    records = 0
    with path.open("wb", buffering=0) as file:
        start_s = time.monotonic()
        while time.monotonic() - start_s < seconds:
            os.write(file.fileno(), data)
            os.fdatasync(file.fileno())
            records += 1
        return LogRun(records, time.monotonic() - start_s, records)


def run_sequential(path: Path) -> float:
    """Return the bytes/s of large writes with one fdatasync at their end."""
    data = random.Random(0).randbytes(WRITE_BYTES)
    with path.open("wb", buffering=0) as file:
        start_s = time.monotonic()
        for _ in range(SEQUENTIAL_BYTES // WRITE_BYTES):
            os.write(file.fileno(), data)
        os.fdatasync(file.fileno())
        return SEQUENTIAL_BYTES / (time.monotonic() - start_s)


def take_turn(folder: Path, size: int, seconds: float) -> tuple[dict[int, LogRun], float]:
    """Run every contender once; 0 records in flight stand for the plain loop."""
    runs = {0: run_plain(folder / "plain", size, seconds)}
    for in_flight in IN_FLIGHT:
        runs[in_flight] = run_log(folder / f"log{in_flight}", size, in_flight, seconds)
    return runs, run_sequential(folder / "sequential")


def report(size: int, turns: list[tuple[dict[int, LogRun], float]]) -> None:
    """Print medians over the turns, and ratios within the turns."""
    sequential = statistics.median(rate for _, rate in turns)
    print(f"records of {size >> 10} KiB; sequential writes {sequential / 1e6:.0f} MB/s")
    figures: defaultdict[int, list[tuple[float, float, float, float]]] = defaultdict(list)
    for runs, sequential in turns:
        plain = runs[0].records / runs[0].seconds
        for in_flight, run in runs.items():
            rate = run.records / run.seconds
            share = rate * size / sequential
            figures[in_flight].append((rate, rate / plain, share, run.records / run.syncs))
    for in_flight, rows in figures.items():
        rate, ratio, share, group = (statistics.median(row) for row in zip(*rows, strict=True))
        name = f"log, {in_flight:2} in flight" if in_flight else "write and fdatasync"
        slowest, fastest = min(row[0] for row in rows), max(row[0] for row in rows)
        print(
            f"  {name:20} {rate:8.0f} records/s ({slowest:.0f} to {fastest:.0f})"
            f" {rate * size / 1e6:7.1f} MB/s {group:5.1f} records per fdatasync,"
            f" {ratio:5.2f} times the plain loop, {100 * share:3.0f} % of sequential writes"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--directory", type=Path, default=Path(), help="where to write, default the current one"
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="length of one measurement")
    parser.add_argument("--turns", type=int, default=3, help="turns of each contender")
    options = parser.parse_args()
    print(machine_line(describe_machine(has_torch=False)))
    print(f"{options.turns} turns of {options.seconds:g} s; every record read again and compared")
    for size in RECORD_BYTES:
        turns: list[tuple[dict[int, LogRun], float]] = []
        for _ in range(options.turns):
            with tempfile.TemporaryDirectory(dir=options.directory) as folder:
                turns.append(take_turn(Path(folder), size, options.seconds))
        report(size, turns)


if __name__ == "__main__":
    main()
