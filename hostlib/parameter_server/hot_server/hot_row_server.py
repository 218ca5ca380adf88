# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The server of hot rows: between its tables, the switch, the controller and the workers."""

from __future__ import annotations

import logging
import time
from collections import Counter
from dataclasses import replace
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from ...control.row_server_link import ROW_DTYPE, RowView
from ...control.view import Endpoint
from ...errors import HostlibError, HotRowError, TransportError
from ...hot_rows import FrequencySketch, KeyBatches
from ...peers.event_loop import EventLoop
from ...peers.frames import HotRowsState
from ...slots.wire import Operation
from .changes import HotLayout
from .link import RowLink
from .options import HotRowOptions
from .planning import HotPlanner
from .round_server import RoundServer
from .rounds import RowsOfRounds
from .served_rows import Floats, ServedRows
from .state import DecidedRounds, HotState
from .switch_end import SwitchEnd
from .tables_seam import HotTables
from .teller import HotCaller, WorkerTeller
from .value_server import ValueServer
from .worker_state import state_of

_CHECK_S: Final = 0.1
SILENT_S: Final = 1.0
"""So long without an answer, a switch counts as gone."""
_FIRST_PAUSE_S: Final = 1.0
"""How long the rows stay cold when the switch is silent; doubles up to the last one."""
_LAST_PAUSE_S: Final = 60.0
_IDLE_STEP: Final = 16
"""While no worker uses the rows, the gradients of one in so many pushes are looked at."""
_logger = logging.getLogger(__name__)


@final
class HotRowServer:
    """Runs in the loop's thread, except for the constructor.

    Without options, no row is hot; it answers workers that had pushes under way all the same.

    Counters: hot_layouts (changes of the rows), hot_silences (of the switch), hot_sketches, and
    those of SwitchEnd, RoundServer and ValueServer.
    """

    def __init__(
        self,
        loop: EventLoop,
        tables: HotTables,
        server_id: int,
        options: HotRowOptions | None = None,
    ) -> None:
        """`options.address` is not empty. Raises TransportError."""
        self._loop = loop
        self._tables = tables
        self._flush_s = options.flush_s if options is not None else 0.0
        self._refresh_s = options.refresh_s if options is not None else 0.0
        self._end: SwitchEnd | None = None
        if options is not None:
            local = options.address, options.udp_port
            self._end = SwitchEnd(loop, local, tables.counters, self.on_packets)
        write_s = options.write_pause_s if options is not None else 0.0
        self._planner = HotPlanner(server_id)
        self._rounds = RoundServer(loop, tables, self._planner, self._end, self._flush_s)
        self._values = ValueServer(loop, tables, self._end, write_s)
        self._teller = WorkerTeller(loop, self._compose, self._flush_s)
        self._link: RowLink | None = None
        self._view: RowView | None = None
        self._is_changing = False  # a layout waits for the log
        self._is_installed = False  # the switches have the rows
        self._has_heard = False  # from the switch, since then
        self._is_told = False  # workers know the rows
        self._num_idle: Counter[int] = Counter()  # pushes by table
        self._pause_s = _FIRST_PAUSE_S
        self._cold_until_s = 0.0
        self._refreshed_s = time.monotonic()

    @property
    def local(self) -> Endpoint | None:
        """The UDP socket's address and port."""
        return None if self._end is None else self._end.local

    def start(self, link: RowLink | None) -> None:
        """Begin; the link has not started. Without a link, nothing is hot any more."""
        self._link = link
        if link is not None:
            self._watch()
        elif self._state.served.rows.size:
            self._change(self._planner.empty(self._state.generation, self._state.served))
        else:
            self._is_told = True

    def close(self) -> None:
        """Close the socket; the link is closed before."""
        if self._end is not None:
            self._end.close()
        self._link = None

    # Workers' connections call the methods below.

    def enter(self, worker_id: int, caller: HotCaller) -> None:
        """Tell a worker of the rows from now on; it has got ENTERED."""
        self._teller.enter(worker_id, caller)

    def leave(self, worker_id: int, caller: HotCaller) -> None:
        """Learn that a connection is gone."""
        self._teller.leave(worker_id, caller)

    def on_drained(self, worker_id: int, caller: HotCaller) -> None:
        """Learn that a worker has read everything."""
        self._teller.on_drained(worker_id, caller)

    def add_sketch(self, table: int, sketch: FrequencySketch) -> None:
        """Take what a worker has counted. Raises HotRowError for a sketch of another capacity."""
        if self._has_hot_keys(table):
            capacity = self._tables.hot_tables[table].definition.sketch_capacity
            if sketch.capacity != capacity:
                raise HotRowError(f"a sketch of {sketch.capacity} counters instead of {capacity}")
            self._tables.counters["hot_sketches"] += 1
            self._planner.add_sketch(table, sketch)

    def add_batches(self, table: int, batches: KeyBatches) -> None:
        """Take the keys of some mini-batches of a worker."""
        if self._has_hot_keys(table):
            self._planner.add_batches(table, batches)

    def decide(
        self, worker_id: int, caller: HotCaller, generation: int, asked: RowsOfRounds
    ) -> None:
        """Decide rounds soon, and tell the worker at once of those that are decided."""
        self._values.note_use()
        decided = self._rounds.decide(generation, asked, worker_id)
        decided["version"] = self._values.version
        self._teller.answer(caller, generation, decided)

    # The service calls the methods below.

    def wants_batch(self, table: int) -> bool:
        """Learn that a START or PUSH is applied; return whether to pass it to `on_batch`.

        While no worker uses the rows, which of them have changed does not matter, and the gradients
        of some pushes tell their size.
        """
        if not self._has_hot_keys(table):
            return False
        if not self._values.is_idle:
            return True
        self._values.mark_unknown()
        self._num_idle[table] += 1
        return self._num_idle[table] % _IDLE_STEP == 1

    def on_batch(self, table: int, keys: NDArray[np.int64], values: Floats) -> None:
        """Learn what a START or PUSH has changed."""
        self._planner.note_gradients(table, values)
        if not self._values.is_idle:  # otherwise `wants_batch` has said it
            touched = self._state.served.touched(table, keys)
            if touched.size:
                self._values.mark(touched)

    def on_decided(self, decided: DecidedRounds) -> None:
        """Learn that rounds are decided, and that this is durable."""
        rounds = decided.rounds
        has_pushes = rounds["bitmap"] != 0
        rounds["version"] = self._values.version
        self._teller.note(decided.generation, rounds)
        if has_pushes.any():
            self._values.mark(self._state.served.indexes(rounds["row"][has_pushes]))

    def on_layout(self) -> None:
        """Learn that other rows are hot from now on."""
        self._tables.counters["hot_layouts"] += 1
        self._is_changing = False
        self._rounds.forget()
        self._install()
        self._plan(is_refresh=False)  # the view may have changed meanwhile

    def on_layout_failed(self) -> None:
        """Learn that the log did not take other rows; `_watch` tries again."""
        self._is_changing = False

    # The link's calls come here.

    def on_view(self, view: RowView) -> None:
        """Take the job's view."""
        if self._end is None or self._link is None or view == self._view:
            return
        self._view = view
        self._pause_s, self._cold_until_s = _FIRST_PAUSE_S, 0.0
        if view.reason:
            _logger.info("hot rows in generation %d: %s", view.generation, view.reason)
        self._is_told = False  # that rounds of older generations are decided is not logged yet
        self._end.shut()
        if self._has_place:
            try:
                self._end.open(view)
            except TransportError as error:
                _logger.error("no hot rows in generation %d: %s", view.generation, error)
                view = self._view = replace(view, num_rows=0, reason=str(error))
        if not self._is_changing and view.generation in (0, self._state.generation):
            self._install()
        self._plan(is_refresh=False)

    def on_down(self, error: HostlibError) -> None:
        """Go on without hot rows: the controller refuses this server."""
        _logger.error("no hot rows any more: %s", error)
        if self._view is not None:
            self.on_view(replace(self._view, num_rows=0, reason=str(error)))

    def on_installed(self, generation: int, number: int) -> None:
        """Learn that the switches have a set of rows."""
        served = self._state.served
        is_last = (generation, number) == (served.generation, served.number)
        if is_last and not self._is_changing and not self._is_installed:
            self._is_installed = True
            self._values.start()

    # The switch's packets come here.

    def on_packets(self, packets: NDArray[np.void]) -> None:
        """Take packets of the view."""
        operation = packets["header"]["operation"]
        results = packets[operation == Operation.RESULT]
        if results.size:
            self._values.note_use()
            self._rounds.take_results(results)
        self._values.take_receipts(packets["header"][operation == Operation.WRITE])
        self._values.take_notices(packets["header"][operation == Operation.NOTICE])
        if self._is_installed and not self._has_heard:
            self._has_heard = True
            self._pause_s = _FIRST_PAUSE_S
            self._tell_if_ready()

    # The methods below are this class's own.

    @property
    def _state(self) -> HotState:
        return self._tables.hot_state

    @property
    def _has_place(self) -> bool:
        return self._view is not None and self._view.generation > 0 and self._view.num_rows > 0

    def _has_hot_keys(self, table: int) -> bool:
        found = self._tables.hot_tables.get(table)
        return found is not None and found.definition.hot_keys > 0

    def _compose(self, worker_id: int) -> HotRowsState | None:
        """Return what a worker has to know, None while the rows change.

        Meanwhile its pushes wait, or it asks about them.
        """
        if not self._is_told:
            return None
        state = self._state
        return state_of(worker_id, state.rounds, state.served, self._view, self._flush_s)

    def _plan(self, *, is_refresh: bool) -> None:
        """Change the rows if there is a reason."""
        view, served = self._view, self._state.served
        if view is None or self._is_changing:
            return
        generation = view.generation or self._state.generation
        planned: ServedRows | None = None
        if self._has_place and time.monotonic() >= self._cold_until_s:
            tables = self._tables.hot_tables
            planned = self._planner.plan(view, served, tables, is_refresh=is_refresh)
        elif served.rows.size or generation != self._state.generation:
            planned = self._planner.empty(generation, served)
        if planned is not None:
            self._change(planned)

    def _change(self, served: ServedRows) -> None:
        self._is_changing = True
        self._tables.submit_hot(HotLayout(served))

    def _install(self) -> None:
        """Have the switches hold the rows of the state, before workers learn of them."""
        served = self._state.served
        self._has_heard = self._is_told = False
        self._is_installed = not served.rows.size
        self._values.stop()
        if self._link is not None:
            rows = np.zeros(served.rows.size, ROW_DTYPE)
            for name in ("row", "epoch", "exponent"):
                rows[name] = served.rows[name]
            self._link.set_rows(served.generation, served.number, rows)
        self._tell_if_ready()

    def _tell_if_ready(self) -> None:
        """Tell the workers of the rows when the switches have them, and have answered."""
        has_rows = self._state.served.rows.size > 0
        if self._is_changing or self._is_told or (has_rows and not self._has_heard):
            return
        self._is_told = True
        self._teller.tell_states()

    def _watch(self) -> None:
        """Refresh the hot keys, and go on cold without a switch."""
        if self._link is None or self._end is None:
            return
        now_s = time.monotonic()
        is_refresh = now_s - self._refreshed_s >= self._refresh_s
        if is_refresh:
            self._refreshed_s = now_s
        if self._end.silent_s > SILENT_S:
            self._tables.counters["hot_silences"] += 1
            _logger.warning("the switch has not answered for %g s: no row is hot", SILENT_S)
            self._cold_until_s = now_s + self._pause_s
            self._pause_s = min(2 * self._pause_s, _LAST_PAUSE_S)
            self._end.forget()
        self._plan(is_refresh=is_refresh)
        self._values.write_some_again()
        self._loop.call_later(_CHECK_S, self._watch)
