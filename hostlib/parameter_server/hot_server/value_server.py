# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the values of hot rows to the switch, until it says that it has them."""

from __future__ import annotations

import time
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from ...peers.event_loop import EventLoop
from ...slots.wire import Flag
from .served_rows import Indexes
from .switch_end import SwitchEnd
from .tables_seam import HotTables
from .value_writer import ValueWriter

_REWRITE_S: Final = 5.0
"""Every row is written again after this time at the latest: a switch may have lost its values."""
IDLE_S: Final = 0.25
"""If no worker has pushed to a row for so long, all use TCP, as far as the server knows..."""
IDLE_WRITE_S: Final = 0.2
"""...and then this is the least time between two writes, which hardly any worker reads..."""
IDLE_REWRITE_S: Final = 1.0
"""...and the least time between two times when all rows are to be written."""
_COLD: Final = int(Flag.COLD)


@final
class ValueServer:
    """Runs in the loop's thread.

    It is idle while no worker pushes to the rows. Then nobody tells it which rows have changed, and
    it writes all of them now and again.

    Counters: hot_writes, and hot_receipts of them.
    """

    def __init__(
        self, loop: EventLoop, tables: HotTables, end: SwitchEnd | None, write_s: float
    ) -> None:
        self._loop = loop
        self._tables = tables
        self._end = end
        self._write_s = write_s
        # A server that comes back with a log has rows before it hears of a view.
        self._writer = ValueWriter(tables.hot_state.served.rows.size)
        self._is_on = False
        self._is_armed = False
        self.is_idle = False
        """Whether the switches have the rows, and no worker has pushed to them for a while."""
        self._is_behind = False  # some rows have changed, and nobody knows which
        self._version_offset = 0
        self._rewritten_s = self._used_s = time.monotonic()

    @property
    def version(self) -> int:
        """Of the values that the tables hold now: no version ever has two contents."""
        return (self._tables.num_applied + self._version_offset) & 0xFFFFFFFF

    def stop(self) -> None:
        """Write nothing until `start`; the rows may have changed."""
        self._is_on = self.is_idle = self._is_behind = False
        self._writer = ValueWriter(self._tables.hot_state.served.rows.size)

    def start(self) -> None:
        """Write all rows; the switches have them."""
        self._is_on = True
        self._used_s = time.monotonic()
        self._arm()

    def mark(self, indexes: Indexes) -> None:
        """Learn that values of rows have changed; -1 is no row."""
        self._writer.mark(indexes[indexes >= 0])
        self._arm()

    def mark_unknown(self) -> None:
        """Learn that some rows may have changed, while `is_idle`."""
        self._is_behind = True

    def note_use(self) -> None:
        """Learn that workers push to rows: the server is not idle any more."""
        self._used_s = time.monotonic()
        self.is_idle = False
        if self._is_behind:
            self._mark_all()

    def write_some_again(self) -> None:
        """Have every row written again in turn; called every now and then."""
        now_s = time.monotonic()
        self.is_idle = self._is_on and now_s - self._used_s > IDLE_S
        since_s = now_s - self._rewritten_s
        if not self._is_on:
            self._rewritten_s = now_s
        elif not self._is_behind:
            count = int(min(1.0, since_s / _REWRITE_S) * self._tables.hot_state.served.rows.size)
            if count:
                self._rewritten_s = now_s
            self._writer.mark_some(count)
            self._arm()
        elif since_s >= IDLE_REWRITE_S:
            self._rewritten_s = now_s
            self._mark_all()

    def _mark_all(self) -> None:
        self._is_behind = False
        self._writer.mark_some(self._tables.hot_state.served.rows.size)
        self._arm()

    def take_receipts(self, headers: NDArray[np.void]) -> None:
        """Take the headers of WRITEs that the switch has passed on."""
        self._tables.counters["hot_receipts"] += headers.size
        indexes = self._tables.hot_state.served.indexes(headers["slot_index"].astype(np.uint32))
        versions = headers["round"].astype(np.uint32)
        is_known = indexes >= 0
        self._writer.note_receipts(indexes[is_known], versions[is_known], time.monotonic())

    def take_notices(self, headers: NDArray[np.void]) -> None:
        """Learn of newer values than ours: a notice without workers answers a WRITE."""
        is_cold = (headers["flags"] & _COLD) != 0
        answers = headers[~is_cold & (headers["num_contributors"] == 0) & (headers["round"] != 0)]
        indexes = self._tables.hot_state.served.indexes(answers["slot_index"].astype(np.uint32))
        versions = answers["round"].astype(np.uint32)[indexes >= 0]
        indexes = indexes[indexes >= 0]
        is_older = self._writer.is_older(indexes, versions)
        if is_older.any():
            ahead = versions[is_older] - np.uint32(self.version)  # modulo 2^32
            self._version_offset += max(0, int(ahead.view(np.int32).max()) + 1)
            self.mark(indexes[is_older])

    def _arm(self) -> None:
        if self._is_on and not self._is_armed and self._writer.has_work:
            self._is_armed = True
            pause_s = max(self._write_s, IDLE_WRITE_S) if self.is_idle else self._write_s
            self._loop.call_later(pause_s, self._write)

    def _write(self) -> None:
        self._is_armed = False
        served, end = self._tables.hot_state.served, self._end
        if not self._is_on or end is None or not end.speaks(served.generation):
            return
        now_s = time.monotonic()
        due = self._writer.take_due(now_s)
        if due.size:
            tables = self._tables.hot_tables
            lanes = served.values(
                due, lambda table, keys: tables[table].values(keys), end.packets.values_per_packet
            )
            rows, version = served.rows[due], self.version
            versions = np.full(due.size, version, np.uint32)
            self._tables.counters["hot_writes"] += due.size
            self._writer.note_sent(due, version, now_s)
            end.send(end.packets.write(rows["row"], rows["epoch"], versions, lanes))
        self._arm()
