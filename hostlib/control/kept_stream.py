# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A stream to the controller that is opened again whenever it breaks."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final, Generic, Protocol, TypeVar, final

from ..errors import ControllerUnreachableError, CredentialsError, HostlibError, WorkerTakenError
from ..guarded_thread import GuardedThread

FIRST_PAUSE_S: Final = 0.05
"""Pause before the first attempt to reach the controller again."""
LAST_PAUSE_S: Final = 2.0
"""Longest pause between attempts."""
TAKEN_WAIT_S: Final = 15.0
"""How long a caller asks again while another process has its place, which may be about to end."""
_logger = logging.getLogger(__name__)
Event = TypeVar("Event")


class ClosableStream(Protocol):
    """One call of the controller."""

    def close(self) -> None:
        """End it, from any thread."""
        ...


Stream = TypeVar("Stream", bound=ClosableStream)


@final
class KeptStream(Generic[Stream, Event]):
    """Runs in a thread of its own; its callbacks are called there, one at a time."""

    def __init__(  # noqa: PLR0913 - the callbacks
        self,
        open_stream: Callable[[], Stream],
        events: Callable[[Stream], Iterator[Event]],
        *,
        on_event: Callable[[Event], None],
        on_failed: Callable[[HostlibError], None],
        on_broken: Callable[[], None] = lambda: None,
        may_reopen: Callable[[HostlibError], bool] = lambda error: False,
        on_open: Callable[[Stream], None] = lambda stream: None,
        name: str,
        meanwhile: str,
    ) -> None:
        """`open_stream` may raise CredentialsError; `events` gives those of a stream.

        `on_open(stream)`: before its first event, with `lock` held. `on_broken()`: an event came,
        and now the stream is gone. `on_failed(error)`: the controller refuses the caller, or
        something here has raised what nobody expected (ThreadFailedError), and there is no further
        attempt. `may_reopen(error)` returns whether a refusal that ended a stream,
        after an event came, concerns no later stream. `name` is the thread's, `meanwhile` says what
        goes on without the controller.
        """
        self.lock = threading.Lock()
        """Guards `stream`, and what `on_open` sends."""
        self.stream: Stream | None = None
        self._open_stream = open_stream
        self._events = events
        self._on_event = on_event
        self._on_failed = on_failed
        self._on_broken = on_broken
        self._may_reopen = may_reopen
        self._on_open = on_open
        self._meanwhile = meanwhile
        self._is_closing = threading.Event()
        self._thread = GuardedThread(self._run, name=name, on_failed=self._fail)

    def start(self) -> None:
        """Open the stream in the thread; keeps trying while nobody answers."""
        self._thread.start()

    def close(self) -> None:
        """End the stream; no callback comes later. Not to be called from a callback."""
        self._is_closing.set()
        with self.lock:
            stream = self.stream
        if stream is not None:
            stream.close()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        """Keep a stream open until the controller refuses it or the link is closed."""
        pause_s, taken_since_s, is_away = FIRST_PAUSE_S, None, False
        while not self._is_closing.is_set():
            is_attached = False
            try:
                stream = self._open()
                if self._is_closing.is_set():
                    return  # `close` may not have seen this stream
                for event in self._events(stream):
                    if self._is_closing.is_set():
                        break
                    is_attached = True
                    pause_s, taken_since_s, is_away = FIRST_PAUSE_S, None, False
                    self._on_event(event)
            except (ControllerUnreachableError, CredentialsError) as error:
                # A certificate that has expired may be renewed.
                if not is_away and not self._is_closing.is_set():
                    is_away = True
                    _logger.warning("%s; %s", error, self._meanwhile)
            except WorkerTakenError as error:
                now_s = time.monotonic()
                taken_since_s = now_s if taken_since_s is None else taken_since_s
                # Two processes with one identity must not take the place from each other for ever.
                if is_attached or now_s - taken_since_s >= TAKEN_WAIT_S:
                    self._fail(error)
                    return
            except HostlibError as error:
                if not (is_attached and self._may_reopen(error)):
                    self._fail(error)
                    return
            finally:
                self._close_stream()
                if is_attached and not self._is_closing.is_set():
                    self._on_broken()
            # Jitter: all callers of a controller lose it at the same time.
            self._is_closing.wait(pause_s * random.uniform(0.5, 1.0))
            pause_s = min(2 * pause_s, LAST_PAUSE_S)

    def _open(self) -> Stream:
        stream = self._open_stream()
        with self.lock:
            self.stream = stream
            self._on_open(stream)
        return stream

    def _close_stream(self) -> None:
        with self.lock:
            stream, self.stream = self.stream, None
        if stream is not None:
            stream.close()

    def _fail(self, error: HostlibError) -> None:
        if not self._is_closing.is_set():
            self._on_failed(error)
