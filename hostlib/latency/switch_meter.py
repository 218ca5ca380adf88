# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker measures of its requests that go by the switch: pushes and pulls of hot keys."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Final, final

from .request_meter import RequestMeter
from .schema import NO_VALUE, OPERATIONS, OUTCOMES, PATHS

PUSH: Final = OPERATIONS.index("push")
PULL: Final = OPERATIONS.index("pull")
_SWITCH: Final = PATHS.index("switch")
_ANSWERED, _LOST, _UNMEASURED = (
    OUTCOMES.index(name) for name in ("answered", "lost", "unmeasured")
)


@final
class SwitchRequest:
    """The hot part of a push or pull to one server."""

    def __init__(self, operation: int, num_keys: int, call: int, number: int, now_ns: int) -> None:
        """`now_ns`: t0, if no packet leaves for this request at once."""
        self.operation = operation
        self.num_keys = num_keys
        self.call = call
        self.number = number
        self.sent_ns = now_ns
        self.sent_bytes = 0
        self.is_cold = False
        """Whether some of its keys went to the server by TCP after all."""


@final
class SwitchMeter:
    """Logs a row for each request by the switch of a recorded call; runs in the loop's thread.

    It is of one session. N_tx of a push is the rtt of the last recorded pull by the switch: both go
    to the same switch, in about as many packets of the same size. What is left of the push's rtt is
    the switch's wait.
    """

    def __init__(self, frames: RequestMeter) -> None:
        """`frames` sees the server's frames; DECISIONS among them end pushes."""
        self._frames = frames
        self._log = frames.log
        self._number = 0
        self._sending: SwitchRequest | None = None
        self._reach_us = NO_VALUE
        """Of the last recorded pull by the switch."""

    def begin(self, operation: int, num_keys: int) -> SwitchRequest | None:
        """Return a request whose packets leave until `end_sending`; None: it is not recorded."""
        call = self._log.recording
        if not call:
            return None
        self._number += 1
        self._log.num_requests += 1
        self._frames.num_by_switch += 1
        now_ns = self._frames.loop.clock_ns()
        self._sending = request = SwitchRequest(operation, num_keys, call, self._number, now_ns)
        return request

    def send(self, num_bytes: int) -> None:
        """Learn that packets are handed to the kernel."""
        request = self._sending
        if request is not None:
            if not request.sent_bytes:
                request.sent_ns = self._frames.loop.clock_ns()
            request.sent_bytes += num_bytes

    def end_sending(self) -> None:
        """Learn that the request's packets have been handed over; what comes later is repeated."""
        self._sending = None

    def receive(self, arrived_ns: int) -> None:
        """Learn that the loop has taken packets of the switch, which had arrived at that time."""
        if self._frames.num_by_switch:
            self._frames.note_answer(arrived_ns, 0)

    @contextmanager
    def by_tcp(self, requests: Iterable[SwitchRequest | None]) -> Generator[None]:
        """Let what is sent to the server meanwhile be of these requests' call.

        The requests have no times: they end when the server has answered. Without a recorded one
        (None), what is sent is not recorded.
        """
        log = self._log
        before, log.recording = log.recording, 0
        for request in requests:
            if request is not None:
                request.is_cold = True
                log.recording = request.call
        try:
            yield
        finally:
            log.recording = before

    def end(self, request: SwitchRequest, *, has_failed: bool) -> None:
        """Log a request whose last row was answered or decided just now."""
        frames, log, size = self._frames, self._log, request.sent_bytes
        frames.num_by_switch -= 1
        is_pull = request.operation == PULL
        answered = size if is_pull else frames.answer_bytes
        times = (NO_VALUE,) * 8
        outcome = _LOST if has_failed else _UNMEASURED
        if not (has_failed or request.is_cold):
            times = self._times(request, is_pull=is_pull)
            if is_pull or self._reach_us != NO_VALUE:
                outcome = _ANSWERED
        log.append(
            (
                log.worker_id,
                frames.server,
                frames.iteration,
                request.call,
                request.number,
                request.operation,
                _SWITCH,
                outcome,
                request.sent_ns // 1000,
                size,
                answered,
                request.num_keys,
                *times,
            )
        )

    def _times(self, request: SwitchRequest, *, is_pull: bool) -> tuple[int, ...]:
        frames = self._frames
        rtt_us = (frames.arrived_ns - request.sent_ns) // 1000
        n_tx_us = rtt_us if is_pull else min(rtt_us, self._reach_us)
        wait_us = rtt_us - n_tx_us
        if is_pull:
            wait_us = NO_VALUE
            if request.sent_bytes:  # otherwise it has shared what an earlier one asked for
                self._reach_us = rtt_us
        elif self._reach_us == NO_VALUE:
            n_tx_us = wait_us = NO_VALUE
        w_queue_us = (frames.read_ns - frames.arrived_ns) // 1000
        w_proc_us = (frames.loop.clock_ns() - frames.read_ns) // 1000
        return rtt_us, n_tx_us, *(NO_VALUE,) * 3, w_queue_us, w_proc_us, wait_us
