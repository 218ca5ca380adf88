# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One thread that turns samples and expired entries into stream messages for the primary."""

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager

from finsy.proto import p4r

from .dataplane import DataPlane, Match
from .idle import IdleEntries
from .pipeline_config import Pipeline

MAX_WAITING = 65_536
"""Samples, and expired entries, that may wait for the thread; more are dropped."""


class Notifier:
    """Takes samples and expired entries from the data plane's threads, and sends messages."""

    def __init__(
        self,
        dataplane: DataPlane,
        running: Callable[[], Pipeline | None],
        lock: AbstractContextManager[object],
        send: Callable[[p4r.StreamMessageResponse], object],
    ) -> None:
        self._dataplane = dataplane
        self._running = running
        self._lock = lock
        self._send = send
        self._wake = threading.Condition()
        self._samples: deque[tuple[int, bytes]] = deque(maxlen=MAX_WAITING)
        self._expired: deque[tuple[int, Match]] = deque(maxlen=MAX_WAITING)
        self._idle = IdleEntries(dataplane)
        self._is_closing = False
        self._is_woken = False
        self._thread = threading.Thread(target=self._run, name="p4runtime-notify", daemon=True)

    def start(self) -> None:
        """Start to receive from the data plane."""
        self._thread.start()
        self._dataplane.set_digest(self._take_sample)
        self._dataplane.set_idle(self._take_expired)

    def close(self) -> None:
        """Stop receiving, and end the thread."""
        if not self._thread.is_alive():
            return
        self._dataplane.set_digest(None)
        self._dataplane.set_idle(None)
        with self._wake:
            self._is_closing = True
            self._wake.notify()
        self._thread.join()

    def wake(self) -> None:
        """Make the thread check its deadlines again, because limits have changed."""
        with self._wake:
            self._is_woken = True
            self._wake.notify()

    def _take_sample(self, list_id: int, sample: bytes) -> None:
        # Checked on arrival: a digest that is switched on later reports only later samples.
        pipeline = self._running()
        if pipeline is None or not pipeline.stores.digests.is_on(list_id):
            return
        with self._wake:
            self._samples.append((list_id, sample))
            self._wake.notify()

    def _take_expired(self, table: int, match: Match) -> None:
        with self._wake:
            self._expired.append((table, match))
            self._wake.notify()

    def _run(self) -> None:
        deadline: int | None = None
        while True:
            with self._wake:
                if not self._is_busy():
                    self._wake.wait_for(self._is_busy, _seconds_until(deadline))
                if self._is_closing:
                    return
                self._is_woken = False
                samples = [self._samples.popleft() for _ in range(len(self._samples))]
                expired = [self._expired.popleft() for _ in range(len(self._expired))]
            deadline = self._serve(samples, expired)

    def _is_busy(self) -> bool:
        return bool(self._is_closing or self._is_woken or self._samples or self._expired)

    def _serve(
        self, samples: list[tuple[int, bytes]], expired: list[tuple[int, Match]]
    ) -> int | None:
        """Send what is due; return when to check again (monotonic ns)."""
        pipeline = self._running()
        if pipeline is None:
            return None
        digests = pipeline.stores.digests
        times: list[int] = []
        for list_id, sample in samples:
            digests.add(list_id, sample)
            # Each sample may complete a list, which must not grow beyond its size.
            self._send_lists(pipeline)
        again = self._send_lists(pipeline)
        if again is not None:
            times.append(again)
        if expired or self._idle.is_waiting:
            with self._lock:
                if self._running() is not pipeline:  # replaced meanwhile, with its entries
                    return min(times, default=None)
                notice, again = self._idle.collect(pipeline, expired)
            if notice is not None:
                self._send(p4r.StreamMessageResponse(idle_timeout_notification=notice))
            if again is not None:
                times.append(again)
        return min(times, default=None)

    def _send_lists(self, pipeline: Pipeline) -> int | None:
        made, again = pipeline.stores.digests.take_lists()
        for item in made:
            self._send(p4r.StreamMessageResponse(digest=item))
        return again


def _seconds_until(deadline: int | None) -> float | None:
    return None if deadline is None else max(0.0, (deadline - time.monotonic_ns()) / 1e9)
