# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The reducer of a view with switches: two slot streams over the slots of its trees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from ..allgather import AllgatherTask, BlockExchange
from ..allgather.packet import MULTICAST_WORD, OPERATION_MASK
from ..control.view import JobView
from ..engine.allreduce_task import AllreduceTask
from ..engine.reducer import Arrivals, Task
from ..engine.straggler_timeout import StragglerTimeout
from ..errors import HostlibError
from ..options import SessionOptions
from ..transports.base import Transport
from .congestion import CongestionWindow, tolerated_loss
from .datagram_ring import WORD_SLOT, WORD_TREE, Words
from .reception import Notice, sort_out
from .rtt import RoundTripTimer
from .slot_map import SlotMap
from .slot_probe import SlotProbe
from .slot_stream import Pacing, SlotStream
from .wire import Operation

FREE_SHARE = 2
"""After losses, the window is at most the number of slots divided by this. A chunk that is sent
again holds its slot, and other chunks use the free ones. Measured: if the window has all slots, 5 %
loss costs up to a sixth more of the rate."""
STALL_S = 1.0
"""A worker without results for so long asks why, and reports it to the controller."""


def split_slots(slot_count: int) -> tuple[int, int]:
    """Return how many slots carry (exponents, values); a function of the job's slots alone."""
    exponent_slots = min(16, max(1, slot_count // 8))
    return exponent_slots, slot_count - exponent_slots


@final
class SwitchReducer:
    """Runs a view's chunks over a transport that is open to the view's switch."""

    def __init__(
        self,
        view: JobView,
        transport: Transport,
        options: SessionOptions,
        counters: Counter[str],
        *,
        first_tensor: int = 0,
    ) -> None:
        self.view = view
        self.first_tensor = first_tensor
        self.failure: HostlibError | None = None
        """Always None: a silent switch may come back."""
        self._transport = transport
        self._options = options
        self._counters = counters
        self._slot_map = SlotMap(view.trees)
        exponent_slots, value_slots = split_slots(view.slot_count)
        self.exponents = self._stream(Operation.AGGREGATE_MAX, range(exponent_slots))
        self.values = self._stream(
            Operation.AGGREGATE_ADD, range(exponent_slots, exponent_slots + value_slots)
        )
        self._streams = (self.exponents, self.values)
        self.probe = SlotProbe(view, transport, counters)
        self.multicast: BlockExchange | None = None
        if view.can_multicast:
            self.multicast = BlockExchange(view, transport, options, counters)

    def _stream(self, operation: Operation, slots: range) -> SlotStream:
        options, slot_count = self._options, len(slots)
        timer = RoundTripTimer(
            initial_s=options.initial_rto_s,
            minimum_s=options.min_rto_s,
            maximum_s=options.max_rto_s,
        )
        window = CongestionWindow(
            min(options.window, slot_count),
            tolerated=tolerated_loss(self.view.num_workers),
            floor=max(1, slot_count // FREE_SHARE),
        )
        straggler_timeout = None
        deadline_s = self.view.straggler.deadline_s
        if deadline_s is not None:
            straggler_timeout = StragglerTimeout(slot_count, deadline_s, options.max_rto_s)
        return SlotStream(
            self.view,
            self._transport,
            operation,
            slots,
            slot_map=self._slot_map,
            pacing=Pacing(timer=timer, window=window, straggler_timeout=straggler_timeout),
        )

    def pump(self, now_s: float) -> bool:
        """Send what windows and slots allow; return False when the transport took less."""
        is_idle = self.exponents.pump(now_s)
        is_idle = self.values.pump(now_s) and is_idle
        return (self.multicast is None or self.multicast.pump(now_s)) and is_idle

    @property
    def outstanding(self) -> int:
        """Value chunks that were sent and have no result yet."""
        return self.values.outstanding

    @property
    def is_waiting(self) -> bool:
        """Whether results are due."""
        is_waiting = bool(self.values.outstanding or self.exponents.outstanding)
        return is_waiting or (self.multicast is not None and self.multicast.is_waiting)

    @property
    def stall_s(self) -> float:
        """A short time, as answers of a switch take round trips only."""
        return STALL_S

    @property
    def moved_s(self) -> float:
        """Minus infinity: only results move, which `take` counts."""
        return -np.inf

    def take(self, words: Words, now_s: float) -> Arrivals:
        """Take datagrams; count those that are not for this view by cause."""
        done = self.values.accept_run(words, now_s)
        if done < len(words):
            done += self.exponents.accept_run(words[done:], now_s)
        if done:
            self.probe.note_results()
        words = words[done:]
        if len(words) and self.multicast is not None:
            is_copy = words[:, 0] & OPERATION_MASK == MULTICAST_WORD
            if is_copy.any():
                self.probe.note_answer()
                is_all = bool(is_copy.all())
                done += self.multicast.take(words if is_all else words[is_copy], now_s)
                words = words[:0] if is_all else words[~is_copy]
        if not len(words):
            return Arrivals(results=done)
        rest = self._take_any(words, now_s)
        return Arrivals(results=done + rest.results, behind=rest.behind)

    def _take_any(self, words: Words, now_s: float) -> Arrivals:
        """Take datagrams that come in any order."""
        trees = words[:, WORD_TREE].byteswap() >> np.uint32(16)
        slots = self._slot_map.slots(trees, words[:, WORD_SLOT].byteswap())
        is_value = self.values.owns(slots)
        if is_value.all():
            taken = self._accept(self.values, words, slots, now_s)
        else:
            taken = np.zeros(len(words), np.bool_)
            for stream, is_own in (
                (self.values, is_value),
                (self.exponents, self.exponents.owns(slots)),
            ):
                if is_own.any():
                    own = words[is_own]
                    taken[is_own] = self._accept(stream, own, slots[is_own], now_s)
        results = int(np.count_nonzero(taken))
        if results:
            self.probe.note_results()
        behind: list[int] = []
        if results < len(words):
            rest = ~taken
            for notice in sort_out(
                words[rest], slots[rest], self.view, self._streams, self._counters
            ):
                behind.extend(self._take_notice(notice))
        return Arrivals(results=results, behind=tuple(behind))

    def _accept(
        self, stream: SlotStream, words: Words, slots: NDArray[np.int64], now_s: float
    ) -> NDArray[np.bool_]:
        """Pass datagrams to a stream; a result twice in one batch counts as a duplicate."""
        before = stream.counters.received
        taken = stream.accept(words, slots, now_s)
        repeated = int(np.count_nonzero(taken)) - (stream.counters.received - before)
        if repeated:
            self._counters["duplicate"] += repeated
        return taken

    def _take_notice(self, notice: Notice) -> list[int]:
        """Note what a slot waits for; return its tensor if the others have left its round."""
        stream = self.exponents
        if notice.slot >= self.values.first_slot:
            stream = self.values
        own_round = stream.outstanding_round(notice.slot)
        self.probe.note_answer()
        if own_round is None or (notice.round ^ own_round) & 1:
            return []  # not about the copy that this worker waits for
        ahead = (notice.round - own_round) & 0xFFFFFFFF
        if 0 < ahead < 1 << 31:
            return [stream.outstanding_tensor(notice.slot)]
        self.probe.note_notice(notice, is_same_round=ahead == 0)
        return []

    def keep_time(self, now_s: float) -> None:
        """Send again what is overdue, and close rounds that have waited too long."""
        for stream in self._streams:
            stream.retransmit(now_s)
        if self.multicast is not None:
            self.multicast.keep_time(now_s)

    @property
    def next_s(self) -> float:
        """When `keep_time` is to be called next."""
        next_s = min(self.exponents.next_expiry_s, self.values.next_expiry_s)
        return next_s if self.multicast is None else min(next_s, self.multicast.next_s)

    def ask(self, now_s: float) -> None:
        """Probe the oldest slot that waits, which holds values if any value slot waits."""
        stream = self.values
        if not stream.outstanding:
            stream = self.exponents
        self.probe.send(stream, now_s)

    def end_probe(self) -> None:
        """Forget what probes have shown."""
        self.probe.reset()

    @property
    def missing(self) -> list[int]:
        """Workers that the oldest chunk waits for, as far as probes have shown."""
        if self.multicast is None or self.values.outstanding or self.exponents.outstanding:
            return self.probe.missing
        return self.multicast.missing

    def silent_s(self, now_s: float) -> float:
        """Return how long the switch has answered no probe."""
        return self.probe.silent_s(now_s)

    def note_missing(self, workers: Sequence[int]) -> None:
        """Learn from the controller which of the workers that `missing` names are missing."""
        self.probe.note_missing(workers)

    def verdict(self, task: Task) -> HostlibError:
        """Return the error that says why a task has no result in time."""
        if isinstance(task, AllgatherTask):
            assert self.multicast is not None, "else it would not have begun"
            return self.multicast.verdict(task)
        return self.probe.verdict(task, self._progress(task))

    def _progress(self, task: AllreduceTask) -> str:
        """Return how far a task is, and how many packets were sent again."""
        counts = [stream.counters for stream in self._streams]
        again = sum(each.retransmitted for each in counts)
        sent = sum(each.sent for each in counts) + again
        done = "its values were not sent yet"
        if task.is_in_values and task.source is not None:
            done = f"{self.values.num_done(task.source)} of {task.source.num_chunks} chunks done"
        return f" ({done}; {again} of {sent} packets of this view were sent again)"

    def close(self) -> None:
        """Nothing to release: the transport is the session's."""
