# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Changes on their path through the log: held while it has no room, then until they are durable."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple, final

import numpy as np

from ...errors import ConfigurationError, HostlibError, LogBusyError, StorageError
from ..hot_server.changes import HotChange
from ..hot_server.rounds import RowsOfRounds
from ..storage import WriteAheadLog
from .change import TableChange

NOTHING = memoryview(b"")
_NO_ROUNDS = RowsOfRounds(np.empty(0, np.uint32), np.empty(0, np.uint32))


class QueuedChange(NamedTuple):
    """A change whose record is not durable yet."""

    request: TableChange | HotChange
    payload: memoryview = NOTHING
    """Of a TableChange."""
    claimed: RowsOfRounds = _NO_ROUNDS
    """Rounds of hot rows that it decides, and that no sum decides any more."""


class _Logged(NamedTuple):
    lsn: int
    num_bytes: int
    change: QueuedChange


@final
class ChangeQueue:
    """Applies changes in the order in which they were taken; without a log, at once."""

    def __init__(
        self,
        log: WriteAheadLog | None,
        num_workers: int,
        apply: Callable[[QueuedChange, int, int], None],
        fail: Callable[[QueuedChange, HostlibError], None],
    ) -> None:
        """`apply` gets a durable change, its lsn and its size; `fail`, what the log refuses."""
        self._log = log
        self._apply = apply
        self._fail = fail
        self._held: deque[QueuedChange] = deque()
        self._logged: deque[_Logged] = deque()
        self._last_lsn = [0] * num_workers

    @property
    def is_held(self) -> bool:
        """Whether changes wait for room in the log."""
        return bool(self._held)

    @property
    def has_room(self) -> bool:
        """Whether the log would take a change at once."""
        return self._log is None or (not self._held and self._log.has_room)

    @property
    def first_lsn(self) -> int:
        """The first lsn that is not durable; 0: there is none."""
        return self._logged[0].lsn if self._logged else 0

    def last_lsn(self, worker_id: int) -> int:
        """Return the lsn of a worker's last change, 0 if nothing has to become durable."""
        return self._last_lsn[worker_id] if self._logged else 0

    def requests(self) -> Iterator[TableChange]:
        """Yield the workers' changes that are not durable."""
        for change in (*(logged.change for logged in self._logged), *self._held):
            if isinstance(change.request, TableChange):
                yield change.request

    def take(self, change: QueuedChange) -> None:
        """Log and apply a change, at once or later."""
        if self._log is None:
            self._apply(change, 0, 0)
        elif self._held or not self._append(self._log, change):
            self._held.append(change)

    def on_durable(self, last_lsn: int) -> None:
        """Apply the changes up to an lsn."""
        while self._logged and self._logged[0].lsn <= last_lsn:
            lsn, num_bytes, change = self._logged.popleft()
            self._apply(change, lsn, num_bytes)

    def on_failed(self, first_lsn: int, last_lsn: int, error: StorageError) -> None:
        """Learn that the log has not taken some."""
        self.on_durable(first_lsn - 1)
        while self._logged and self._logged[0].lsn <= last_lsn:
            self._fail(self._logged.popleft().change, error)

    def take_held(self) -> bool:
        """Log what the log had no room for; return whether nothing waits for room any more."""
        had = bool(self._held)
        while self._held and self._log is not None and self._append(self._log, self._held[0]):
            self._held.popleft()
        return had and not self._held

    def _append(self, log: WriteAheadLog, change: QueuedChange) -> bool:
        """Log a change, or let it fail; return False if it has to wait for room."""
        request, payload, _ = change
        is_table = isinstance(request, TableChange)
        parts = [request.pack(), payload] if is_table else request.pack()
        try:
            lsn = log.append(parts)
        except LogBusyError:
            return False
        except ValueError as error:
            self._fail(change, ConfigurationError(f"{error}; push fewer keys at a time"))
        except StorageError as error:
            self._fail(change, error)
        else:
            if is_table:
                self._last_lsn[request.worker_id] = lsn
            num_bytes = sum(memoryview(part).nbytes for part in parts)
            self._logged.append(_Logged(lsn, num_bytes, change))
        return True
