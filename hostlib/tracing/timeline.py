# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Timeline of a worker's computation and transfers; `trace_files` writes it to a file."""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from ..future import AllreduceFuture

MAX_EVENTS: Final = 100_000
"""Most spans, and most transfers, that a timeline keeps; it drops the oldest."""
WAIT: Final = "wait"
"""Category of a span in which the worker only waits."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """An interval of the worker's computation or waiting; times are of `time.monotonic()`."""

    name: str
    category: str
    """`forward`, `backward`, `optimizer`, another word for computing, or WAIT."""
    begin_s: float
    end_s: float


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """Transfer of a tensor, such as a bucket of DDP; times of `time.monotonic()`, 0 for never."""

    name: str
    num_bytes: int
    ready_s: float
    """When the owner handed the tensor over."""
    first_packet_s: float
    last_result_s: float
    done_s: float
    """When the owner could use the result."""
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Clock:
    """Facts by which the clocks of two files are aligned."""

    boot_id: str
    """Boot of the machine; processes of one boot share the monotonic clock."""
    barrier_s: float = 0.0
    """Time at which all ranks passed the same barrier; 0 for none."""


@final
class Timeline:
    """Keeps the spans and transfers of one rank; safe from any thread."""

    def __init__(
        self, rank: int, *, job: str = "", host: str = "", max_events: int = MAX_EVENTS
    ) -> None:
        self.rank = rank
        self.job = job
        self.host = host or socket.gethostname()
        self.clock = Clock(boot_id=_boot_id())
        self.num_dropped = 0
        """Number of events that were dropped for newer ones."""
        self._spans: deque[Span] = deque(maxlen=max_events)
        self._transfers: deque[Transfer] = deque(maxlen=max_events)
        self._lock = threading.Lock()

    @property
    def spans(self) -> list[Span]:
        """All spans, in the order in which they ended."""
        with self._lock:
            return list(self._spans)

    @property
    def transfers(self) -> list[Transfer]:
        """All transfers, in the order in which they were done."""
        with self._lock:
            return list(self._transfers)

    def note_barrier(self) -> None:
        """Note a barrier that all ranks have just passed; it aligns files of several machines."""
        self.clock = Clock(boot_id=self.clock.boot_id, barrier_s=time.monotonic())

    def add_span(self, span: Span) -> None:
        """Record a span that has ended."""
        with self._lock:
            self.num_dropped += len(self._spans) == self._spans.maxlen
            self._spans.append(span)

    def add_transfer(self, transfer: Transfer) -> None:
        """Record a transfer that is done."""
        with self._lock:
            self.num_dropped += len(self._transfers) == self._transfers.maxlen
            self._transfers.append(transfer)

    @contextmanager
    def span(self, name: str, category: str) -> Generator[None]:
        """Record the run time of the `with` block, even if it raises."""
        begin_s = time.monotonic()
        try:
            yield
        finally:
            end_s = time.monotonic()
            self.add_span(Span(name=name, category=category, begin_s=begin_s, end_s=end_s))

    def follow(self, future: AllreduceFuture, name: str, *, ready_s: float = 0.0) -> None:
        """Record an allreduce once it is done.

        `ready_s`: when the owner handed it over, if that was before it was submitted.
        """

        def record(done: AllreduceFuture) -> None:
            self.add_transfer(finished_transfer(done, name, ready_s=ready_s))

        future.add_done_callback(record)


def finished_transfer(
    future: AllreduceFuture, name: str, *, ready_s: float = 0.0, done_s: float = 0.0
) -> Transfer:
    """Return the transfer of an allreduce that is done.

    `ready_s` and `done_s` replace the future's own times if the owner worked before or after them.
    """
    times, error = future.times, future.exception()
    return Transfer(
        name=name,
        num_bytes=times.num_bytes,
        ready_s=ready_s or times.submitted_s,
        first_packet_s=times.first_packet_s,
        last_result_s=times.last_result_s,
        done_s=done_s or times.done_s,
        error="" if error is None else f"{type(error).__name__}: {error}",
    )


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""  # unknown: files are then aligned by their barriers
