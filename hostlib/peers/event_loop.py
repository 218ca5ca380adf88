# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One thread that waits for sockets, timers and calls from other threads."""

from __future__ import annotations

import heapq
import itertools
import logging
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol, final

from ..errors import PeerClosedError, ThreadFailedError
from ..guarded_thread import GuardedThread

_logger = logging.getLogger(__name__)


class SocketHandler(Protocol):
    """Is called when a socket is ready."""

    def on_ready(self, events: int) -> None:
        """Read or write without blocking."""
        ...


@final
class Timer:
    """A call at a later time."""

    def __init__(self, when_s: float, call: Callable[[], None]) -> None:
        self.when_s = when_s
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Never call."""
        self.call = None


@final
class EventLoop:
    """Runs handlers, timers and posted calls, one at a time, in a daemon thread."""

    def __init__(self, name: str) -> None:
        self.clock_ns = time.monotonic_ns
        """The clock of measurements; timers have their own."""
        self.turn_ns = self.clock_ns()
        """When the loop last learned which sockets are ready."""
        self._selector = selectors.DefaultSelector()
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._selector.register(self._reader, selectors.EVENT_READ, None)
        self._calls: deque[Callable[[], None]] = deque()
        self._timers: list[tuple[float, int, Timer]] = []
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._is_stopping = False
        self._failure: ThreadFailedError | None = None
        self._listeners: list[Callable[[PeerClosedError], None]] = []
        self._num_lingering = 0
        self._lingering = threading.Condition()
        self._thread = GuardedThread(self._run, name=name, on_failed=self._fail)
        self._thread.start()

    @property
    def is_own_thread(self) -> bool:
        """Whether the caller runs in the loop's thread."""
        return threading.current_thread() is self._thread

    def post(self, call: Callable[[], None]) -> None:
        """Run `call` in the loop soon, from any thread.

        Raises PeerClosedError after `stop`, or after the thread has failed.
        """
        with self._lock:
            if self._is_stopping:
                raise self.failure or PeerClosedError(
                    "the peer server is closed; join the job again"
                )
            self._calls.append(call)
            if len(self._calls) == 1:
                self._wake()

    def run(self, call: Callable[[], None], timeout_s: float = 30.0) -> None:
        """Run `call` in the loop, wait for its end, and raise its exception here."""
        if self.is_own_thread:
            call()
            return
        done = threading.Event()
        failures: list[BaseException] = []

        def report() -> None:
            try:
                call()
            except BaseException as error:  # handed over to the waiting thread
                failures.append(error)
            finally:
                done.set()

        self.post(report)
        if not done.wait(timeout_s):
            raise PeerClosedError(
                f"the peer thread ran no call for {timeout_s} s; has the process no time?"
            )
        if failures:
            raise failures[0]

    @property
    def failure(self) -> PeerClosedError | None:
        """What is wrong with the loop since its thread has failed; None: nothing."""
        failure = self._failure
        if failure is None:
            return None
        error = PeerClosedError(str(failure))
        error.__cause__ = failure
        return error

    def on_failure(self, tell: Callable[[PeerClosedError], None]) -> None:
        """Call `tell(error)` in the loop's thread if that fails, or here if it has failed already.

        Calls that were posted run before. No handler, timer or call runs after, and all sockets are
        closed.
        """
        with self._lock:
            failure = self.failure
            if failure is None:
                self._listeners.append(tell)
        if failure is not None:
            tell(failure)

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Timer:
        """Run `call` after a delay; in the loop's thread only."""
        timer = Timer(time.monotonic() + delay_s, call)
        heapq.heappush(self._timers, (timer.when_s, next(self._numbers), timer))
        return timer

    def watch(self, sock: socket.socket, events: int, handler: SocketHandler) -> None:
        """Call `handler` at these events of the selectors module from now on; 0 for none."""
        is_watched = sock in self._selector.get_map()
        if not events:
            if is_watched:
                self._selector.unregister(sock)
        elif is_watched:
            self._selector.modify(sock, events, handler)
        else:
            self._selector.register(sock, events, handler)

    def note_lingering(self, change: int) -> None:
        """Count connections that wait for their last bytes to arrive; +1 or -1."""
        with self._lingering:
            self._num_lingering += change
            self._lingering.notify_all()

    def wait_for_lingering(self, timeout_s: float) -> None:
        """Wait until no connection lingers, or for the timeout; not in the loop's thread."""
        with self._lingering:
            self._lingering.wait_for(lambda: self._num_lingering == 0, timeout_s)

    def stop(self, last_call: Callable[[], None]) -> None:
        """Run `last_call` in the loop, then end the thread; waits unless called from it."""
        with self._lock:
            if self._is_stopping:
                return
            self._calls.append(last_call)  # before: a loop that is awake ends without calls
            self._is_stopping = True
            self._wake()
        if not self.is_own_thread:
            self._thread.join()

    def _wake(self) -> None:
        try:
            self._writer.send(b"\0")
        except BlockingIOError:
            return  # the socket is full of wake-ups, so the loop wakes anyway

    def _run(self) -> None:
        while not (self._is_stopping and not self._calls):
            self._turn()
        self._release()

    def _turn(self) -> None:
        ready = self._selector.select(self._wait_s())
        self.turn_ns = self.clock_ns()
        for key, events in ready:
            handler: SocketHandler | None = key.data
            if handler is None:
                self._reader.recv(4096)
            else:
                _guard(lambda handler=handler, events=events: handler.on_ready(events))
        self._run_calls()
        self._run_timers()

    def _fail(self, failure: ThreadFailedError) -> None:
        """Refuse calls from now on, run those that wait, and tell the owners."""
        with self._lock:
            self._failure, self._is_stopping = failure, True
            listeners, error = self._listeners, self.failure
        assert error is not None
        self._run_calls()
        for tell in listeners:
            _guard(lambda tell=tell: tell(error))
        self._release()

    def _release(self) -> None:
        for key in list(self._selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
        self._selector.close()
        self._writer.close()

    def _wait_s(self) -> float | None:
        if self._calls:
            return 0.0
        if not self._timers:
            return None
        return max(0.0, self._timers[0][0] - time.monotonic())

    def _run_calls(self) -> None:
        with self._lock:
            calls, self._calls = self._calls, deque()
        for call in calls:
            _guard(call)

    def _run_timers(self) -> None:
        now_s = time.monotonic()
        while self._timers and self._timers[0][0] <= now_s:
            timer = heapq.heappop(self._timers)[2]
            if timer.call is not None:
                _guard(timer.call)


def _guard(call: Callable[[], None]) -> None:
    """Run a call, and log its exception: a defect in one call must not end the loop."""
    try:
        call()
    except BaseException:  # a callback of the program's may raise SystemExit
        _logger.exception("a call in the peer thread failed")
