# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Shortly before a deadline: ask the switch what the oldest slot waits for, to name the cause."""

from __future__ import annotations

import math

from hostlib.allreduce_task import AllreduceTask
from hostlib.errors import AllreduceTimeoutError, SwitchUnreachableError, WorkerMissingError
from hostlib.job_view import JobView
from hostlib.reception import Notice
from hostlib.slot_stream import SlotStream
from hostlib.transports.base import Transport
from hostlib.wire import Operation

LEAD_S = 1.0
"""Probing starts this long before the deadline, or at three quarters of a short timeout."""
INTERVAL_S = 0.05
OPERATION_BYTE = 1
FLAGS_BYTES = slice(2, 4)


class SlotProbe:
    """Sends probes and keeps what came back."""

    def __init__(self, view: JobView, transport: Transport) -> None:
        self._view = view
        self._transport = transport
        self._next_s = -math.inf
        self.sent = 0
        """Probes sent since the start."""
        self.reset()

    def reset(self) -> None:
        """Forget the last probing."""
        self._is_probing = False
        self._has_answer = False
        self._bitmap: int | None = None

    def start_s(self, task: AllreduceTask) -> float:
        """Return when probing for a task starts."""
        return task.deadline_s - min(LEAD_S, task.timeout_s / 4)

    def next_s(self, task: AllreduceTask, now_s: float) -> float:
        """Return when `send` is due next for a task."""
        start_s = self.start_s(task)
        if now_s < start_s:
            return start_s
        return max(start_s, self._next_s)

    def send(self, stream: SlotStream, now_s: float) -> None:
        """Probe the oldest slot of a stream, unless the last probe was just sent."""
        if now_s < self._next_s:
            return
        if not self._is_probing:
            self.reset()
            self._is_probing = True
        self._next_s = now_s + INTERVAL_S
        datagram = stream.oldest_datagram()
        if datagram is not None:
            datagram[OPERATION_BYTE] = Operation.PROBE
            datagram[FLAGS_BYTES] = 0
            self.sent += self._transport.send(datagram[None, :])

    def note_answer(self) -> None:
        """Note that a result or a notice came: the switch can be reached."""
        self._has_answer = True

    def note_notice(self, notice: Notice, *, is_same_round: bool) -> None:
        """Keep who is in the slot's present round."""
        self._bitmap = notice.worker_bitmap if is_same_round else 0

    def verdict(self, task: AllreduceTask) -> AllreduceTimeoutError:
        """Return the error that says what a task waited for in vain."""
        view = self._view
        what = f"tensor {task.tensor_id}: no result after {task.timeout_s} s"
        if not self._has_answer:
            return SwitchUnreachableError(
                f"{what}; the switch at {view.switch.address}:{view.switch.udp_port} answers"
                " neither contributions nor probes: check the link, the address, that the switch"
                f" runs and that job {view.job} generation {view.generation} is installed on it"
            )
        if self._bitmap is not None and self._bitmap & view.worker_bitmap:
            missing = view.missing_workers(self._bitmap)
            if missing:
                names = ", ".join(str(i) for i in missing)
                return WorkerMissingError(
                    f"{what}; job {view.job} waits for worker {names}: see whether it runs and"
                    " submits the same sequence of tensors",
                    missing,
                )
        if self._bitmap:
            present = view.present_workers(self._bitmap)
            names = ", ".join(str(i) for i in present)
            return AllreduceTimeoutError(
                f"{what}; the switch has this round from worker {names} but takes none from worker"
                f" {view.worker_id}: the workers submit different shapes or dtypes; see"
                " the count of 'mismatch' in 'switchfold job show'"
            )
        return AllreduceTimeoutError(
            f"{what}; the switch at {view.switch.address} answers, but the tensor did not get"
            " through in time: the network may lose most packets, or the timeout is too short"
        )
