# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The switch rows that a server leases for groups: from the controller's view to usable rounds.

A lease is the place of a row server in a job (docs/protocol.md, what the controller must do). All
its rows have one epoch, drawn for each view, so what an earlier process has sent is COLD. Before
rows are used, the server asks the switch which rounds their copies hold, and begins above them.
"""

from __future__ import annotations

import logging
import secrets
from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ...control.row_server_link import MAX_ROW_SERVERS, ROW_DTYPE, RowMember, RowView
from ...control.view import Endpoint
from ...errors import HostlibError, TransportError
from ...peers.event_loop import EventLoop, Timer
from ...peers.frames import GroupLeaseFrame
from ...slots.wire import Flag, Operation
from ...transports.base import Datagrams
from ..hot_server.link import RowLink
from ..hot_server.switch_end import SwitchEnd
from .stream import StreamPlace

COPIES: Final = 2
_FIRST_PAUSE_S: Final = 0.05
"""After this time, copies that have not answered are asked again; doubles up to the last one."""
_LAST_PAUSE_S: Final = 1.0
_ROUNDS: Final = 1 << 32
_logger = logging.getLogger(__name__)


class CopyRounds(NamedTuple):
    """Which rounds the copies of rows hold, as far as they have answered; shape (2, rows)."""

    rounds: NDArray[np.uint32]
    has_answered: NDArray[np.bool_]

    @property
    def newest(self) -> int:
        """The newest of the rounds, as serial numbers (RFC 1982)."""
        return newest_round(self.rounds)


def newest_round(rounds: NDArray[np.uint32]) -> int:
    """Return the newest of some rounds that lie within 2^31 of each other."""
    base = rounds.flat[0]
    ahead = (rounds - base).astype(np.int32)
    return (int(base) + int(ahead.max())) % _ROUNDS


@final
class GroupLease:
    """Runs in the loop's thread, but for the constructor.

    `on_change()`: rows have become usable, or are not any more. `on_packets(packets)`: what the
    switch has sent, other than answers to the lease's own questions.
    """

    def __init__(
        self,
        loop: EventLoop,
        local: tuple[str, int],
        server_id: int,
        *,
        on_change: Callable[[], None],
        on_packets: Callable[[NDArray[np.void]], None],
    ) -> None:
        """`local`: IPv4 address and UDP port. Raises TransportError."""
        self._loop = loop
        self._server_id = server_id
        self._on_change, self._on_packets = on_change, on_packets
        self.counters: Counter[str] = Counter()
        self._end = SwitchEnd(loop, local, self.counters, self._take)
        self._link: RowLink | None = None
        self._view: RowView | None = None
        self._epoch = 0
        self._number = 0  # of the last set of rows
        self._is_installed = False
        self._asked: CopyRounds | None = None  # None: nothing is asked
        self._timer: Timer | None = None
        self._pause_s = _FIRST_PAUSE_S
        self._first_round = 0
        self._next = 0  # of the stream's chunks
        self.is_ready = False

    @property
    def local(self) -> Endpoint:
        """Where the socket is bound."""
        return self._end.local

    @property
    def members(self) -> dict[int, RowMember]:
        """The workers at the server's switch, by worker id, while the rows are usable."""
        view = self._view
        if view is None or not self.is_ready:
            return {}
        own = view.switch.address, view.switch.udp_port  # only the server needs its MAC address
        return {
            member.worker_id: member
            for member in view.members
            if (member.switch.address, member.switch.udp_port) == own
        }

    def start(self, link: RowLink) -> None:
        """Begin; the link has not started."""
        self._link = link

    def close(self) -> None:
        """Give the rows back, and close the socket."""
        link, self._link = self._link, None
        if link is not None and self._view is not None and self._view.generation:
            self._number += 1
            link.set_rows(self._view.generation, self._number, np.empty(0, ROW_DTYPE))
        self._stop()
        self._end.close()

    # The groups call the methods below, while `is_ready`.

    def take(self, num_chunks: int, num_members: int) -> StreamPlace:
        """Return the place of the next group in the stream."""
        view, first = self._view, self._next
        assert view is not None
        self._next += num_chunks
        return StreamPlace(
            packets=self._end.packets,
            first_row=view.first_row,
            num_rows=view.num_rows,
            epoch=self._epoch,
            first_round=self._first_round,
            first=first,
            num_members=num_members,
        )

    def frame(self, worker_id: int) -> GroupLeaseFrame:
        """Return what a worker has to know."""
        member, view = self.members.get(worker_id), self._view
        if member is None or view is None:
            return GroupLeaseFrame()
        return GroupLeaseFrame(
            generation=view.generation,
            tree_id=view.tree_id,
            switch_address=member.switch.address,
            switch_udp_port=member.switch.udp_port,
            child_id=member.child_id,
            worker_bitmap=member.worker_bitmap,
            values_per_packet=view.values_per_packet,
            first_row=view.first_row,
            num_rows=view.num_rows,
            epoch=self._epoch,
            first_round=self._first_round,
        )

    def send(self, datagrams: Datagrams) -> None:
        """Send packets to the switch."""
        self._end.send(datagrams)

    def check(self) -> None:
        """Do not use the rows until the switch has answered: it was silent."""
        if self.is_ready:
            self._ask_all()

    # The link's calls come here.

    def on_view(self, view: RowView) -> None:
        """Take the job's view."""
        if self._link is None or view == self._view:
            return
        self._stop()
        self._view = view
        if not view.generation or not view.num_rows:
            if view.reason:
                _logger.info("switch groups in generation %d: %s", view.generation, view.reason)
            return
        try:
            self._end.open(view)
        except TransportError as error:
            _logger.warning("no switch groups in generation %d: %s", view.generation, error)
            return
        ids = (1 << 32) // MAX_ROW_SERVERS
        self._epoch = MAX_ROW_SERVERS * (1 + secrets.randbelow(ids - 1)) + self._server_id
        self._number += 1
        self._next, self._first_round = 0, 1
        rows = np.zeros(view.num_rows, ROW_DTYPE)
        rows["row"] = view.first_row + np.arange(view.num_rows)
        rows["epoch"] = self._epoch
        self._link.set_rows(view.generation, self._number, rows)

    def on_installed(self, generation: int, number: int) -> None:
        """Learn that the switches have a set of rows."""
        view = self._view
        is_last = view is not None and (generation, number) == (view.generation, self._number)
        if is_last and not self._is_installed and self._link is not None:
            self._is_installed = True
            self._ask_all()

    def on_down(self, error: HostlibError) -> None:
        """Learn that the controller refuses this server."""
        _logger.error("no switch groups: %s", error)
        self._stop()

    # The methods below are this class's own.

    def _stop(self) -> None:
        """Use no rows until there is a view."""
        self._is_installed = False
        self._asked = None
        self._cancel()
        self._end.shut()
        self._set_ready(False)

    def _set_ready(self, is_ready: bool) -> None:
        if is_ready != self.is_ready:
            self.is_ready = is_ready
            self._on_change()

    def _ask_all(self) -> None:
        """Ask for the rounds of all copies, and use no row before all have answered."""
        view = self._view
        assert view is not None
        shape = COPIES, view.num_rows
        self._asked = CopyRounds(np.zeros(shape, np.uint32), np.zeros(shape, np.bool_))
        self._pause_s = _FIRST_PAUSE_S
        self._set_ready(False)
        self._ask()

    def _ask(self) -> None:
        self._cancel()
        asked, view = self._asked, self._view
        if asked is None or view is None or not self._end.speaks(view.generation):
            return
        copies, rows = np.nonzero(~asked.has_answered)
        numbers = (rows + view.first_row).astype(np.uint32)
        epochs = np.full(numbers.size, self._epoch, np.uint32)
        self._end.send(self._end.packets.probe(numbers, epochs, copies.astype(np.uint32)))
        self._timer = self._loop.call_later(self._pause_s, self._ask)
        self._pause_s = min(2 * self._pause_s, _LAST_PAUSE_S)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _take(self, packets: NDArray[np.void]) -> None:
        if self._asked is None:
            self._on_packets(packets)
        else:
            self._take_answers(self._asked, packets["header"])

    def _take_answers(self, asked: CopyRounds, header: NDArray[np.void]) -> None:
        view = self._view
        assert view is not None
        is_answer = (header["operation"] == Operation.NOTICE) & ((header["flags"] & Flag.COLD) == 0)
        answers = header[is_answer & (header["tensor_id"] == self._epoch)]
        rows = answers["slot_index"].astype(np.int64) - view.first_row
        # A notice has the copy's round in place of the question's, so the question's copy is in the
        # chunk, which is echoed.
        copies = answers["chunk_index"].astype(np.int64) % COPIES
        is_ours = (rows >= 0) & (rows < view.num_rows)
        rows, copies = rows[is_ours], copies[is_ours]
        asked.rounds[copies, rows] = answers["round"][is_ours]
        asked.has_answered[copies, rows] = True
        if asked.has_answered.all():
            self._begin(asked.newest)

    def _begin(self, newest: int) -> None:
        """Use the rows, in rounds that are newer than all that the copies or members may have."""
        view = self._view
        assert view is not None
        self._asked = None
        self._cancel()
        used = (self._first_round - 1 + -(-self._next // view.num_rows)) % _ROUNDS
        known = np.array([newest, used], np.uint32)
        self._first_round, self._next = (newest_round(known) + 1) % _ROUNDS, 0
        _logger.info(
            "%d switch rows for groups, from round %d of generation %d",
            view.num_rows,
            self._first_round,
            view.generation,
        )
        self._set_ready(True)
