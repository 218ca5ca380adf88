# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The reducer of a view with switches: two streams of the C library over the slots of its trees."""

from __future__ import annotations

import ctypes
import math
import weakref
from collections import Counter
from collections.abc import Sequence
from typing import Final, final

import numpy as np

from ..allgather import AllgatherTask, BlockExchange
from ..control.view import JobView
from ..engine.allreduce_task import AllreduceTask
from ..engine.reducer import Arrivals, Task
from ..errors import HostlibError
from ..native import structures as native
from ..native.library import library
from ..native.transports import CallbackTransport, NativeTransport
from ..options import SessionOptions
from ..transports.base import Transport
from .slot_map import SlotMap
from .slot_probe import SlotProbe
from .slot_stream import SlotStream
from .wire import datagram_bytes

STALL_S = 1.0
"""A worker without results for so long asks why, and reports it to the controller."""
_EXPONENTS, _VALUES = 0, 1
_NOTICE, _ANSWER, _BEHIND = 0, 1, 2
REFUSALS: Final = (
    "version",
    "operation",
    "foreign_job",
    "generation",
    "slot",
    "mismatch",
    "duplicate",
    "notice",
    "foreign_worker",
)
"""Causes in the order of `refusal_t` of refusal.h."""


def split_slots(slot_count: int) -> tuple[int, int]:
    """Return how many slots carry (exponents, values); a function of the job's slots alone."""
    exponent_slots = min(16, max(1, slot_count // 8))
    return exponent_slots, slot_count - exponent_slots


def _members(view: JobView) -> native.MembersStruct:
    """Return the workers of a view as the library sees them."""
    ids = view.member_ids
    return native.MembersStruct(
        num_members=len(ids),
        own=list(ids).index(view.worker_id),
        ids=(ctypes.c_uint8 * native.MAX_MEMBERS)(*ids),
    )


def _closers(view: JobView) -> ctypes.Array[native.ClosersStruct]:
    """Return who closes chunks at this worker's switch, by tree; nobody where it is not known."""
    neighbours = [i for i in view.member_ids if view.is_neighbour(i)]
    everybody = sum(1 << i for i in view.member_ids)
    closers = (native.ClosersStruct * len(view.trees))()
    for tree, each in zip(view.trees, closers, strict=True):
        if view.has_worker_bitmaps and tree.members:
            each.count, each.own = len(neighbours), neighbours.index(view.worker_id)
            each.members, each.level = tree.members, tree.level
            each.is_root = tree.members == everybody
    return closers


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
        self._counters = counters
        self._counted = [0] * len(REFUSALS)
        self._datagram_bytes = datagram_bytes(view.values_per_packet)
        self._carrier: NativeTransport = (
            transport
            if isinstance(transport, NativeTransport)
            else CallbackTransport(transport, self._datagram_bytes)
        )
        self._reducer = self._open(options)
        self._arrivals = native.ArrivalsStruct()
        self.exponents = SlotStream(library.reducer_stream(self._reducer, _EXPONENTS))
        self.values = SlotStream(library.reducer_stream(self._reducer, _VALUES))
        self._streams = (self.exponents, self.values)
        self.probe = SlotProbe(view, transport, counters)
        self.multicast: BlockExchange | None = None
        blocks = library.reducer_blocks(self._reducer)
        if blocks is not None:
            self.multicast = BlockExchange(view, blocks, self._carrier)

    def _open(self, options: SessionOptions) -> int:
        view = self.view
        deadline_s = view.straggler.deadline_s
        slots = SlotMap(view.trees)
        settings = native.StreamOptionsStruct(
            generation=view.generation,
            worker_bitmap=view.worker_bitmap,
            child_id=view.child_id,
            num_workers=view.num_workers,
            values_per_packet=view.values_per_packet,
            num_trees=len(view.trees),
            straggler_s=math.inf if deadline_s is None else deadline_s,
            initial_rto_s=options.initial_rto_s,
            minimum_rto_s=options.min_rto_s,
            maximum_rto_s=options.max_rto_s,
            window=options.window,
            batch=min(options.batch, native.BATCH),
            coalesce_s=options.coalesce_s,
            control_priority=view.control_priority,
            has_adaptive_wait=options.late_wait == "adaptive",
            has_statements=view.may_be_stale,
            has_dynamic_incast=options.dynamic_incast,
        )
        count = len(view.trees)
        ids = (ctypes.c_uint16 * count)(*(tree.tree_id for tree in view.trees))
        sizes = (ctypes.c_uint32 * count)(*(tree.slot_count for tree in view.trees))
        places = np.stack([slots.tree, slots.local], axis=1).astype(np.uint32)
        reducer = library.reducer_new(
            self._carrier.handle,
            ctypes.byref(settings),
            ids,
            sizes,
            _closers(view),
            places.ctypes.data_as(ctypes.POINTER(native.SlotPlaceStruct)),
            view.slot_count,
            split_slots(view.slot_count)[0],
            ctypes.byref(_members(view)) if view.can_multicast else None,
        )
        if not reducer:
            raise MemoryError(f"no memory for the {view.slot_count} slots of job {view.job}")
        # A thread that interrupts may hold this object a moment longer than its owner.
        weakref.finalize(self, library.reducer_free, reducer)
        return reducer

    def poll(self, until_s: float) -> Arrivals:
        """Send, receive and keep timers until something has come, or until `until_s`."""
        arrivals = self._arrivals
        self._carrier.raise_failure(
            library.reducer_poll(self._reducer, until_s, ctypes.byref(arrivals))
        )
        for stream in self._streams:
            stream.note_progress()
        return self._take(arrivals)

    def _take(self, arrivals: native.ArrivalsStruct) -> Arrivals:
        if arrivals.num_results:
            self.probe.note_results()
        elif arrivals.has_multicasts:
            self.probe.note_answer()
        behind = [
            tensor_id
            for event in arrivals.events[: arrivals.num_events]
            for tensor_id in self._take_event(event)
        ]
        self._count_refusals()
        if self.multicast is not None:
            self.multicast.note_progress()
        return Arrivals(
            results=arrivals.num_results + arrivals.num_blocks,
            progress_s=arrivals.result_s,
            behind=tuple(behind),
        )

    def _take_event(self, event: native.EventStruct) -> list[int]:
        """Note what a slot waits for; return its tensor if the others have left its round."""
        self.probe.note_answer()
        if event.kind == _BEHIND:
            return [event.tensor_id]
        if event.kind == _NOTICE:
            self.probe.note_notice(event.bitmap)
        return []

    def _count_refusals(self) -> None:
        counts = library.reducer_refused(self._reducer)[: len(REFUSALS)]
        if counts != self._counted:
            for cause, count, before in zip(REFUSALS, counts, self._counted, strict=True):
                if count != before:
                    self._counters[cause] += count - before
            self._counted = counts

    def interrupt(self) -> None:
        """Make `poll` return (any thread)."""
        library.reducer_interrupt(self._reducer)
        self._transport.wake()

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
        """Minus infinity: only results move, which `poll` counts."""
        return -np.inf

    def ask(self, now_s: float) -> None:
        """Probe the oldest slot that waits, which holds values if any value slot waits."""
        stream = self.values
        if not stream.outstanding:
            stream = self.exponents
        self.probe.send(stream.oldest_datagram(self._datagram_bytes), now_s)

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

    @property
    def silent_tree(self) -> int:
        """The tree whose switch answers no probe, 0 if none was sent or one was answered."""
        return self.probe.silent_tree

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
