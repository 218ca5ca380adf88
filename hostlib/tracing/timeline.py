# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Records what a worker computed and what it transferred, and when; `trace_files` writes it."""

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
"""Of each kind; the newest are kept."""
WAIT: Final = "wait"
"""Category of a span in which nothing is computed."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """Something that this worker did."""

    name: str
    category: str
    """`forward`, `backward`, another word for computing, or WAIT."""
    begin_s: float
    end_s: float


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """A tensor, such as a bucket of DDP, on its way; moments of `time.monotonic()`, 0 for never."""

    name: str
    num_bytes: int
    ready_s: float
    """It was handed over."""
    first_packet_s: float
    last_result_s: float
    done_s: float
    """Its owner can use the result."""
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Clock:
    """What tells how the clocks of two files relate."""

    boot_id: str
    """Processes of one boot share the monotonic clock."""
    barrier_s: float = 0.0
    """A moment that all ranks passed together, 0 for none."""


@final
class Timeline:
    """Keeps spans and transfers of one rank; may be used from any thread."""

    def __init__(
        self, rank: int, *, job: str = "", host: str = "", max_events: int = MAX_EVENTS
    ) -> None:
        self.rank = rank
        self.job = job
        self.host = host or socket.gethostname()
        self.clock = Clock(boot_id=_boot_id())
        self.num_dropped = 0
        """Events that newer ones have pushed out."""
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
        """Call after a barrier of all ranks, so that files of several machines can be aligned."""
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
        """Record how long the block takes, also if it raises."""
        begin_s = time.monotonic()
        try:
            yield
        finally:
            end_s = time.monotonic()
            self.add_span(Span(name=name, category=category, begin_s=begin_s, end_s=end_s))

    def follow(self, future: AllreduceFuture, name: str, *, ready_s: float = 0.0) -> None:
        """Record an allreduce once it is done.

        `ready_s`: when it was handed over, if that was before it was submitted.
        """

        def record(done: AllreduceFuture) -> None:
            self.add_transfer(finished_transfer(done, name, ready_s=ready_s))

        future.add_done_callback(record)


def finished_transfer(
    future: AllreduceFuture, name: str, *, ready_s: float = 0.0, done_s: float = 0.0
) -> Transfer:
    """Return what there is to record about an allreduce that is done.

    `ready_s` and `done_s` stand for the future's own, where its owner did more before and after.
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
        return ""  # no claim: files are then aligned by their barriers
