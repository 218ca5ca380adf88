# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Probes: if no result comes, the worker asks the switch what the oldest slot waits for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..control.view import JobView
from ..engine.allreduce_task import AllreduceTask
from ..errors import AllreduceTimeoutError, SwitchUnreachableError, WorkerMissingError
from ..transports.base import Transport
from .wire import Operation

_OPERATION_BYTE = 1
_FLAGS_BYTES = slice(2, 4)
_TREE_BYTES = slice(4, 6)
_PRIORITY_BYTE = 7
INTERVAL_S = 0.05
FORGETFULNESS = 5
"""After so many probes without an answer, earlier answers do not count any more."""
STANDING_NOTICES = 5
"""If results have come since the first probe, so many notices without a result between them show
that the job makes no progress. A single notice may come from a job that does: a contribution was
under way, or lost and about to be sent again."""
PROBES_SENT = "probe_packets_sent"
"""Key in the counters."""


class SlotProbe:
    """Sends probes and keeps what their answers show."""

    def __init__(self, view: JobView, transport: Transport, counters: Counter[str]) -> None:
        self._view = view
        self._transport = transport
        self._counters = counters
        self._next_s = -math.inf
        self.reset()

    def reset(self) -> None:
        """Forget the last probing."""
        self._is_probing = False
        self._told: frozenset[int] = frozenset()
        self._forget()

        self._silent_since_s = math.inf
        self._tree_id = 0  # of the slot that was asked about last

    def _forget(self) -> None:
        self._unanswered = 0
        self._has_answer = False
        self._has_results = False  # since the first probe
        self._num_notices = 0  # about the awaited round, since the last result
        self._bitmap: int | None = None

    def send(self, datagram: NDArray[np.uint8] | None, now_s: float) -> None:
        """Probe the slot of a contribution, if any waits, unless the last probe was just sent."""
        if now_s < self._next_s:
            return
        if not self._is_probing:
            self.reset()
            self._is_probing = True
        self._next_s = now_s + INTERVAL_S
        if datagram is not None:
            datagram[_OPERATION_BYTE] = Operation.PROBE
            datagram[_FLAGS_BYTES] = 0
            datagram[_PRIORITY_BYTE] = self._view.control_priority
            self._tree_id = int.from_bytes(datagram[_TREE_BYTES].tobytes(), "big")
            if self._unanswered == FORGETFULNESS:
                self._forget()  # the switch was reachable, and is not any more
            self._unanswered += 1
            self._silent_since_s = min(self._silent_since_s, now_s)
            self._counters[PROBES_SENT] += self._transport.send(datagram[None, :])

    def note_answer(self) -> None:
        """Note that a packet came from the switch, which can thus be reached."""
        self._has_answer = True
        self._unanswered = 0
        self._silent_since_s = math.inf

    def note_results(self) -> None:
        """Note that results came: earlier notices may be outdated."""
        self.note_answer()
        self._has_results = True
        self._num_notices = 0
        self._bitmap = None

    def note_notice(self, bitmap: int) -> None:
        """Keep which workers are in the slot's present round; none if it is another round."""
        self._bitmap = bitmap
        self._num_notices += 1

    def note_missing(self, workers: Sequence[int]) -> None:
        """Keep the workers that all others wait for, as the controller has found out."""
        self._told = frozenset(workers)

    def silent_s(self, now_s: float) -> float:
        """Return how long no probe has been answered, 0 if none was sent."""
        return max(0.0, now_s - self._silent_since_s)

    @property
    def silent_tree(self) -> int:
        """The tree that was probed last if no probe has been answered since then, else 0."""
        return self._tree_id if math.isfinite(self._silent_since_s) else 0

    @property
    def missing(self) -> list[int]:
        """Workers that have not contributed to the oldest slot, as far as notices show.

        On a tree these are too many. A notice comes from one switch, and does not name the workers
        that have contributed at other switches and wait there.
        """
        if self._bitmap is None or not self._bitmap & self._view.worker_bitmap:
            return []
        return self._view.missing_workers(self._bitmap)

    def _certain(self, candidates: list[int]) -> list[int]:
        """Return which of the workers that a notice does not name are missing without doubt.

        These are the workers at this worker's own switch, which answers by itself while one of
        them is missing, and those that the controller names, which has heard from all workers.
        """
        if len(candidates) == 1:
            return candidates
        return [i for i in candidates if i in self._told or self._view.is_neighbour(i)]

    def _mtu_hint(self) -> str:
        """Return what ICMP messages claimed about the MTU; they may be forged."""
        claims = self._transport.counters["path_mtu_ignored"]
        if not claims:
            return ""
        return (
            f"; {claims} ICMP messages, genuine or forged, said that a link on the path does not"
            " carry packets of this size: if there is such a link, raise its MTU"
        )

    def verdict(self, task: AllreduceTask, progress: str = "") -> AllreduceTimeoutError:
        """Return the error that says why a task has no result; `progress`: how far it is."""
        what = f"tensor {task.tensor_id}: no result after {task.timeout_s} s{progress}"
        view = self._view
        switch = view.switch_of(self._tree_id)
        if not self._has_answer:
            return SwitchUnreachableError(
                f"{what}; the switch at {switch.address}:{switch.udp_port} answers"
                f" neither contributions nor probes, the last {self._unanswered} of them: check"
                " the link, the address, that the switch"
                f" runs and that job {view.job} generation {view.generation} is installed on it"
                f"{self._mtu_hint()}"
            )
        if self._has_results and self._num_notices < STANDING_NOTICES:
            return AllreduceTimeoutError(
                f"{what}; results came until now, so no worker is known to be missing: the tensor"
                " did not get through in time. Likely the timeout is too short for what is queued,"
                " or the network loses many packets"
            )
        return self._standing(what) or AllreduceTimeoutError(
            f"{what}; the switch at {switch.address} answers, but the tensor did not get"
            " through in time: likely the network loses most packets, or the timeout is too short"
        )

    def _standing(self, what: str) -> AllreduceTimeoutError | None:
        """Return the error for a round that does not end, if notices show a cause."""
        view = self._view
        candidates = self.missing
        missing = self._certain(candidates)
        if missing:
            names = ", ".join(str(i) for i in missing)
            return WorkerMissingError(
                f"{what}; job {view.job} waits for worker {names}, of which the switch has no"
                " contribution: it may be late or gone, submit another sequence of tensors, or"
                " lose its packets; see whether it runs",
                missing,
            )
        if candidates:
            names = ", ".join(str(i) for i in candidates)
            return WorkerMissingError(
                f"{what}; job {view.job} waits for workers below another switch, some of"
                f" {names}: see whether they run and submit the same sequence of tensors",
                [],
            )
        if self._bitmap and view.has_worker_bitmaps and not self._bitmap & view.worker_bitmap:
            names = ", ".join(str(i) for i in view.present_workers(self._bitmap))
            return AllreduceTimeoutError(
                f"{what}; the switch has this round from worker {names} but takes none from worker"
                f" {view.worker_id}: if 'mismatch' in 'switchfold job show' is not 0, the workers"
                " submit different shapes, dtypes, operations, labels or tolerances; if it is, this"
                " worker's packets are likely lost before they reach the switch"
            )
        return None
