# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Pools of a fixed number of threads and copy streams, for syncers."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from typing import final

import torch

from ...errors import ConfigurationError, SessionClosedError
from ..staging.streams import CopyStream, open_stream

SyncerJob = Callable[[CopyStream], None]
"""The run of one syncer; it handles its own errors."""

_logger = logging.getLogger("switchfold.hostlib.torch")


@final
class SyncerPools:
    """Runs jobs in the order of submission, each with a thread and a stream of its own.

    Jobs start in the same order on all workers. So the first job that has not finished everywhere
    has a thread everywhere: a small pool is slower, but never blocks for ever.
    """

    def __init__(
        self, num_threads: int, device: torch.device, *, num_streams: int | None = None
    ) -> None:
        num_streams = num_threads if num_streams is None else num_streams
        if num_threads < 1 or num_streams < 1:
            raise ConfigurationError(
                f"a pool of {num_threads} threads and {num_streams} streams; give at least 1 each"
            )
        self.num_threads, self.num_streams = num_threads, num_streams
        self.most_running = 0
        """Most jobs that have run at a time."""
        self._num_running = 0
        self._lock = threading.Lock()
        self._is_closed = False
        self._streams: queue.SimpleQueue[CopyStream] = queue.SimpleQueue()
        for _ in range(num_streams):
            self._streams.put(open_stream(device))
        self._jobs: queue.SimpleQueue[SyncerJob | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=f"switchfold-syncer-{i}", daemon=True)
            for i in range(num_threads)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, job: SyncerJob) -> None:
        """Queue a job; returns at once."""
        with self._lock:
            if self._is_closed:
                raise SessionClosedError("the syncers' pools are closed")
            self._jobs.put(job)

    def close(self) -> None:
        """Drop the queued jobs, wait for the running ones, and end the threads."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            while not self._jobs.empty():
                self._jobs.get()
            for _ in self._threads:
                self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        # Each thread has a gradient mode of its own.
        with torch.no_grad():
            while (job := self._jobs.get()) is not None:
                # Another job returns its stream when it ends, and each job ends at its deadline.
                stream = self._streams.get()
                with self._lock:
                    self._num_running += 1
                    self.most_running = max(self.most_running, self._num_running)
                try:
                    job(stream)
                except Exception:  # a defect: jobs tell their own errors; others need the thread
                    _logger.exception("a syncer job failed")
                finally:
                    with self._lock:
                        self._num_running -= 1
                    self._streams.put(stream)
                    # This thread must not keep gradients alive while it waits.
                    del job
