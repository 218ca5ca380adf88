# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Switch groups at a worker: its updates to one server that travel with those of others."""

from __future__ import annotations

import logging
import math
import time
import zlib
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np

from ...control.view import Endpoint
from ...errors import PeerProtocolError, TransportError
from ...hot_rows.row_packets import RowPackets
from ...native.structures import BATCH
from ...peers.event_loop import EventLoop, Timer
from ...peers.frames import (
    Exponents,
    Frame,
    FrameKind,
    GroupBeginFrame,
    GroupJoinFrame,
    GroupLeaseFrame,
    GroupOverFrame,
    GroupProgressFrame,
    Packable,
)
from ...transports.base import Datagrams
from ..hot_worker.row_socket import RowSocket
from ..tables.state import KEY_BYTES, VALUE_BYTES
from .stream import Floats, MemberChunks, StreamPlace, update_exponents

GROUP_ANSWERS = frozenset(
    (
        FrameKind.GROUP_LEASE,
        FrameKind.GROUP_BEGIN,
        FrameKind.GROUP_PROGRESS,
        FrameKind.GROUP_OVER,
    )
)
if TYPE_CHECKING:  # updates' links import this module
    from ..transfers.granted_rate import GrantedRate

PACE_S: Final = 0.005
"""Pause between two portions of a paced update."""
_logger = logging.getLogger(__name__)


@dataclass(eq=False)
class _Joining:
    """An update that has asked for a group, and its chunks when there is one."""

    number: int
    values: Floats
    exponents: Exponents
    lease: GroupLeaseFrame
    rate: GrantedRate | None
    first: int = 0
    chunks: MemberChunks | None = None


@dataclass(frozen=True)
class OfferedUpdate:
    """An update that may go in a group."""

    number: int
    version: int
    table: int
    num_keys: int
    payload: memoryview
    """Keys, then values; it must stay as it is until the update's outcome is known."""
    transfer_id: int
    sequence: int
    """Its place in the server's commit sequence."""
    rate: GrantedRate | None
    """None: it may leave at once."""

    @property
    def values(self) -> Floats:
        """Of all keys."""
        return np.frombuffer(self.payload, np.float32, offset=KEY_BYTES * self.num_keys)


@final
class SwitchGroupMember:
    """Runs in the loop's thread. One update at a time is in a group; others wait for it.

    An update belongs to it from `offer` until `settle`, `decline` or `drop_all`.

    `counters`: switched_updates (sent to the switch), declined_updates (in no group, or in one that
    was given up), switched_packets, resent_packets (of these, sent again).
    """

    def __init__(
        self,
        loop: EventLoop,
        *,
        address: str | None,
        counters: Counter[str],
        send: Callable[[Packable], None],
        open_from: Callable[[], int],
        decline: Callable[[int], None],
    ) -> None:
        """`address`: this host's for packets to the switch; None: the one on the route to it.

        `send(frame)` to the server. `open_from()`: the lowest number whose outcome is not known.
        `decline(number)`: this update is in no group.
        """
        self.counters = counters
        self._loop = loop
        self._address = address
        self._send, self._open_from, self._decline = send, open_from, decline
        self._lease = GroupLeaseFrame()
        self._socket: RowSocket | None = None
        self._packets: RowPackets | None = None
        self._waiting: deque[OfferedUpdate] = deque()
        self._joining: _Joining | None = None
        self._timer: Timer | None = None

    @property
    def is_offered(self) -> bool:
        """Whether the server has rows for groups."""
        return self._packets is not None

    def offer(self, update: OfferedUpdate) -> None:
        """Send an update in a group if there is one; `decline` tells if not."""
        self._waiting.append(update)
        self._join_next()

    def settle(self, number: int) -> None:
        """Learn that the outcome of an update is known."""
        self._waiting = deque(each for each in self._waiting if each.number != number)
        if self._joining is not None and self._joining.number == number:
            self._end()
            self._join_next()

    def drop_all(self) -> list[int]:
        """Forget everything: the connection is gone, and with it all that the server has told.

        Returns the numbers of the updates.
        """
        numbers = [each.number for each in self._waiting]
        if self._joining is not None:
            numbers.append(self._joining.number)
        self._waiting.clear()
        self._end()
        self._lease, self._packets = GroupLeaseFrame(), None
        return numbers

    def close(self) -> None:
        """Close the socket."""
        self.drop_all()
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def on_frame(self, frame: Frame, payload: memoryview) -> None:
        """Take one of GROUP_ANSWERS. Raises PeerProtocolError."""
        match frame.kind:
            case FrameKind.GROUP_LEASE:
                self._adopt(GroupLeaseFrame.unpack(payload))
            case FrameKind.GROUP_BEGIN:
                self._begin(GroupBeginFrame.unpack(frame, payload))
            case FrameKind.GROUP_PROGRESS:
                self._note(GroupProgressFrame.unpack(frame), payload)
            case _:
                self._over(GroupOverFrame.unpack(frame).number)

    # The methods below are this class's own.

    def _adopt(self, lease: GroupLeaseFrame) -> None:
        """Use these rows from now on; the server has told before that groups of others are over."""
        self._lease, self._packets = lease, None
        if lease.generation:
            packets = RowPackets(
                job_id=lease.tree_id,
                generation=lease.generation,
                worker_id=lease.child_id,
                worker_bitmap=lease.worker_bitmap,
                num_workers=1,
                values_per_packet=lease.values_per_packet,
            )
            if self._connect(lease, packets.datagram_bytes):
                self._packets = packets
        self._join_next()

    def _connect(self, lease: GroupLeaseFrame, datagram_bytes: int) -> bool:
        """Have a socket to the switch; return whether there is one."""
        switch = Endpoint(address=lease.switch_address, udp_port=lease.switch_udp_port)
        socket = self._socket
        if socket is not None and (socket.switch, socket.datagram_bytes) == (
            switch,
            datagram_bytes,
        ):
            return True
        if socket is not None:
            socket.close()
        try:
            self._socket = RowSocket(
                self._loop,
                switch,
                datagram_bytes,
                address=self._address,
                take=self._take,
                lost=self._lose,
            )
        except TransportError as error:
            self._lose(error)
        return self._socket is not None

    def _lose(self, error: TransportError) -> None:
        """Join no group until there are other rows; the server gives up one that is under way."""
        self._socket = self._packets = None
        _logger.warning("no switch groups until the server names other rows: %s", error)

    def _join_next(self) -> None:
        while self._joining is None and self._waiting:
            update = self._waiting.popleft()
            if self._packets is None:
                self._decline_one(update.number)
                continue
            lanes, values = self._lease.values_per_packet, update.values
            exponents = update_exponents(values, lanes)
            self._joining = _Joining(update.number, values, exponents, self._lease, update.rate)
            self._send(
                GroupJoinFrame(
                    number=update.number,
                    open_from=self._open_from(),
                    version=update.version,
                    transfer_id=update.transfer_id,
                    sequence=update.sequence,
                    table=update.table,
                    num_keys=update.num_keys,
                    num_values=values.size,
                    keys_checksum=zlib.crc32(update.payload[: KEY_BYTES * update.num_keys]),
                    generation=self._lease.generation,
                    exponents=exponents,
                )
            )

    def _begin(self, begin: GroupBeginFrame) -> None:
        joining, packets = self._joining, self._packets
        if joining is None or joining.number != begin.number:
            return
        if begin.exponents.size != joining.exponents.size:
            raise PeerProtocolError(f"exponents of {begin.exponents.size} chunks")
        if packets is None or joining.lease != self._lease:
            return  # its rows are gone: the server gives the group up
        lease = joining.lease
        place = StreamPlace(
            packets=packets,
            first_row=lease.first_row,
            num_rows=lease.num_rows,
            epoch=lease.epoch,
            first_round=lease.first_round,
            first=begin.first,
            num_members=begin.num_members,
        )
        self.counters["switched_updates"] += 1
        joining.first = begin.first
        joining.chunks = MemberChunks(
            place, lease.worker_bitmap, joining.values, begin.exponents, time.monotonic()
        )
        self._pump(joining.chunks)

    def _note(self, progress: GroupProgressFrame, payload: memoryview) -> None:
        joining = self._joining
        if joining is None or joining.chunks is None or joining.first != progress.first:
            return
        joining.chunks.note(progress, payload, time.monotonic())
        self._pump(joining.chunks)

    def _take(self, datagrams: Datagrams) -> None:
        joining, packets = self._joining, self._packets
        if joining is None or joining.chunks is None or packets is None:
            return
        ours = packets.view(datagrams)
        if ours.size:
            rows = np.ascontiguousarray(ours).view(np.uint8).reshape(ours.size, -1)
            joining.chunks.take(rows, time.monotonic())

    def _pump(self, chunks: MemberChunks) -> None:
        """Send what is due and granted, and look again when it is time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        joining, socket = self._joining, self._socket
        if joining is None or socket is None or chunks.is_done:
            return
        count, limit = BATCH, BATCH
        while count == BATCH:
            now_s = time.monotonic()
            limit = self._allowed_packets(joining.rate, now_s)
            datagrams = chunks.due(now_s, limit)
            count = len(datagrams)
            if count:
                self.counters["switched_packets"] += count
                socket.send(datagrams)
                if joining.rate is not None:
                    joining.rate.spend(count * VALUE_BYTES * joining.lease.values_per_packet)
        due_s = chunks.due_s
        if limit < BATCH and count == limit and joining.rate is not None:  # more may be due
            due_s = time.monotonic() + max(PACE_S, joining.rate.wait_s(time.monotonic()))
        if due_s < math.inf:
            wait_s = max(0.0, due_s - time.monotonic())
            self._timer = self._loop.call_later(wait_s, lambda: self._pump(chunks))

    def _allowed_packets(self, rate: GrantedRate | None, now_s: float) -> int:
        """Return how many packets may leave now; of a slow rate's bucket, one if it is full."""
        if rate is None:
            return BATCH
        packet_bytes = VALUE_BYTES * self._lease.values_per_packet
        allowed = rate.allowed(now_s)
        if 0 < int(rate.depth_bytes) < packet_bytes:
            return int(allowed >= int(rate.depth_bytes))
        return min(BATCH, allowed // packet_bytes)

    def _over(self, number: int) -> None:
        if self._joining is not None and self._joining.number == number:
            self._end()
            self._decline_one(number)
            self._join_next()

    def _decline_one(self, number: int) -> None:
        self.counters["declined_updates"] += 1
        self._decline(number)

    def _end(self) -> None:
        """Send nothing more of the update that is in a group."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        joining, self._joining = self._joining, None
        if joining is not None and joining.chunks is not None:
            self.counters["resent_packets"] += joining.chunks.num_resent
