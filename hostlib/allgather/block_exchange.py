# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The blocks of one view: sent once by each worker, copied by its switch to all others.

See `hostlib/native/blocks/block_exchange.h` for what the C library does with them.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from typing import Final, final

from ..control.view import JobView
from ..errors import AllgatherTimeoutError, PeerMismatchError
from ..native.library import library
from ..native.transports import NativeTransport
from .allgather_task import AllgatherTask, NativeAllgather

MIN_DELAY_S: Final = 0.001
"""How long a report waits at least for chunks that could carry the same receipts."""
DELAY_SHARE: Final = 2
"""The pause between reports is a round trip divided by this."""


def largest_window(window: int, num_others: int) -> int:
    """Return the largest window of one worker, as a share of a session's window.

    All members send to the same ports at a time.
    """
    return library.block_sender_largest_window(window, num_others)


@final
class BlockExchange:
    """All allgathers of a view; used by the I/O thread alone, but for `counts`."""

    def __init__(self, view: JobView, handle: int, carrier: NativeTransport) -> None:
        """`handle`: the library's exchange, which stays its reducer's."""
        self._view = view
        self._handle = handle
        self._carrier = carrier
        self._others = [i for i in view.member_ids if i != view.worker_id]
        self._mismatch = library.block_exchange_mismatch(handle).contents
        # Those that the library uses, in their order. A task begins again in a later view.
        self._active: list[tuple[AllgatherTask, NativeAllgather]] = []
        self._waiting: list[AllgatherTask] = []

    def enqueue(self, task: AllgatherTask, now_s: float) -> None:
        """Append an allgather to the sequence, which is the same on all workers.

        Raises PeerMismatchError.
        """
        native = task.native
        assert native is not None, "it has begun in this view"
        self._waiting.append(task)
        self._active.append((task, native))
        self._carrier.raise_failure(
            library.block_exchange_enqueue(self._handle, ctypes.byref(native.struct), now_s)
        )
        self.note_progress()

    def note_progress(self) -> None:
        """Learn what the library has done. Raises PeerMismatchError."""
        for _, native in self._active:
            native.note_times()
        self._active = [each for each in self._active if not each[1].has_ended]
        if self._mismatch.is_there:
            raise PeerMismatchError(
                f"tensor {self._mismatch.tensor_id}: worker {self._mismatch.worker_id} gathers"
                f" something else there (its tensor {self._mismatch.other_tensor_id}); all workers"
                " must submit the same sequence of shapes, dtypes and operations"
            )

    @property
    def is_waiting(self) -> bool:
        """Whether blocks, or receipts for this worker's, are due."""
        self._waiting = [task for task in self._waiting if not task.is_settled]
        return bool(self._waiting)

    @property
    def is_owing(self) -> bool:
        """Whether a member may still miss chunks, or a report, of this worker."""
        return library.block_exchange_is_owing(self._handle)

    @property
    def missing(self) -> list[int]:
        """Workers that the oldest allgather waits for: their blocks, or else their receipts."""
        incomplete = (task for task, native in self._active if not native.struct.is_complete)
        oldest = next(incomplete, None)
        return self._blame([] if oldest is None else oldest.missing_workers)

    def _blame(self, incomplete: list[int]) -> list[int]:
        """Return the workers to wait for, given those whose blocks are incomplete here.

        A late worker takes no chunks, so all others stop within their windows. Then no block is
        complete, and the late worker is the only one that lags in taking this worker's block.
        """
        bits = library.block_exchange_lagging(self._handle)
        lagging = [worker_id for i, worker_id in enumerate(self._others) if bits >> i & 1]
        return [i for i in incomplete if i in lagging] or incomplete or lagging

    @property
    def next_s(self) -> float:
        """When something is to be sent again or reported next."""
        return library.block_exchange_next_s(self._handle)

    @property
    def counts(self) -> Counter[str]:
        """Packets by kind, for statistics."""
        counters = library.block_exchange_counters(self._handle)
        return Counter(
            {f"multicast_packets_{name}": getattr(counters, name) for name, _ in counters._fields_}
        )

    def verdict(self, task: AllgatherTask) -> AllgatherTimeoutError:
        """Return the error that says why an allgather has no result in time."""
        what = f"tensor {task.tensor_id}: no result of the allgather after {task.timeout_s} s"
        incomplete = task.missing_workers
        missing = self._blame(incomplete)
        cause = "its block is not complete"
        if not incomplete:
            cause = "it does not take this worker's block"
        return AllgatherTimeoutError(
            f"{what}; job {self._view.job} waits for worker {', '.join(str(i) for i in missing)}"
            f" ({cause}): see whether it runs and submits the same sequence of tensors",
            missing,
        )
