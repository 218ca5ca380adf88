# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's connection for scheduled updates, at the server."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, final

from ...errors import (
    HostlibError,
    PeerError,
    PeerProtocolError,
)
from ...peers.connection import Connection
from ...peers.event_loop import EventLoop, Timer
from ...peers.frames import (
    MAX_BATCH_BYTES,
    CommittedFrame,
    DeniedFrame,
    EnteredFrame,
    EnterFrame,
    Frame,
    FrameKind,
    GroupJoinFrame,
    GroupOverFrame,
    Packable,
    PieceFrame,
    SendAgainFrame,
    SumFrame,
    SummedUpdate,
    TransferFrame,
)
from ...peers.heartbeat import Heartbeat
from ...peers.inbound import REFUSED_S
from ..summed_updates import head_bytes
from ..switch_groups.server import GroupDoor
from ..tables.change import UPDATE_BYTES
from ..tables.denial import describe

MOST_OPEN: Final = 256
"""Updates of a worker to a server whose outcome it does not know."""
_KINDS: Final = frozenset(
    (
        FrameKind.ENTER,
        FrameKind.TRANSFER,
        FrameKind.SUM,
        FrameKind.PIECE,
        FrameKind.GROUP_JOIN,
        FrameKind.HEARTBEAT,
    )
)


@dataclass(eq=False)
class IncomingUpdate:
    """An update of which a part has come, or all."""

    worker_id: int
    incarnation: int
    head: TransferFrame
    began_s: float
    """When its head came, on the monotonic clock."""
    is_repeated: bool
    """The server has it already: its bytes are thrown away."""
    port: UpdatePort
    summed: tuple[SummedUpdate, ...] = ()
    """Of a SUM: the updates in it."""
    payload: memoryview | None = None
    """`head_bytes` for what the log has before them, then keys and values; None: there is no room
    yet."""
    filled_bytes: int = 0
    is_early: bool = False
    """It has come by itself, long before its granted time."""

    @property
    def head_bytes(self) -> int:
        """Bytes of the payload before the keys."""
        return head_bytes(len(self.summed)) if self.summed else UPDATE_BYTES

    @property
    def members(self) -> tuple[SummedUpdate, ...]:
        """The updates that it brings: those of a sum, or itself."""
        head = self.head
        return self.summed or (
            SummedUpdate(
                self.worker_id,
                self.incarnation,
                head.number,
                head.open_from,
                head.transfer_id,
                head.version,
                head.sequence,
            ),
        )

    @property
    def is_whole(self) -> bool:
        """Whether all bytes have come."""
        return self.filled_bytes == self.head.num_bytes


class UpdateReceiver(Protocol):
    """Takes the updates of all workers; UpdateService does."""

    def enter(self, port: UpdatePort, incarnation: int) -> None:
        """Answer a worker's process through a port from now on."""
        ...

    def is_known(self, worker_id: int, incarnation: int, number: int) -> bool:
        """Return whether an update has come before."""
        ...

    def reserve(self, update: IncomingUpdate) -> bool:
        """Return whether there is memory for an update; if not, `on_room` tells."""
        ...

    def release(self, update: IncomingUpdate) -> None:
        """Learn that the rest of an update will not come: its memory is free."""
        ...

    def arrive(self, update: IncomingUpdate) -> None:
        """Take a whole update."""
        ...

    def detach(self, port: UpdatePort) -> None:
        """Learn that a connection is gone."""
        ...


@final
class UpdatePort:
    """Collects the pieces of updates, and sends their outcomes; runs in the loop's thread."""

    def __init__(
        self,
        receiver: UpdateReceiver,
        loop: EventLoop,
        worker_id: int,
        connection: Connection,
        groups: GroupDoor | None = None,
        *,
        hold_s: Callable[[IncomingUpdate], float] = lambda _: 0.0,
    ) -> None:
        """`groups`: of switches; None: the receiver has none.

        `hold_s(update)`: for how many seconds nothing more of an update is to be read; `on_room`
        has it asked again.
        """
        self.worker_id = worker_id
        self.incarnation = 0
        self._receiver = receiver
        self._groups = groups
        self._hold_s = hold_s
        self._loop = loop
        self._connection = connection
        self._incoming: dict[int, IncomingUpdate] = {}
        self._highest = 0
        self._is_paused = False
        self._hold_timer: Timer | None = None
        self._is_refused = False
        connection.receiver = self
        connection.send(Frame(FrameKind.WELCOME))
        Heartbeat(loop, connection)

    # The connection calls the methods below.

    def target(self, connection: Connection, frame: Frame) -> memoryview | None:
        """Return where a payload goes, None while its update has no memory, or is held."""
        if frame.kind is not FrameKind.PIECE or self._is_refused:
            return memoryview(bytearray(frame.payload_bytes))
        number = PieceFrame.unpack(frame).number
        update = self._incoming.get(number)
        if update is None:
            if number > self._highest:
                raise PeerProtocolError("a PIECE of an update that has not begun")
            return memoryview(bytearray(frame.payload_bytes))  # its outcome was told meanwhile
        end = update.filled_bytes + frame.payload_bytes
        if end > update.head.num_bytes:
            raise PeerProtocolError(f"{end} bytes of an update of {update.head.num_bytes}")
        if update.is_repeated:
            return memoryview(bytearray(frame.payload_bytes))
        # The socket is not read meanwhile, so TCP's window stops the worker's kernel.
        if (hold_s := self._hold_s(update)) > 0:
            self._is_paused = True
            self._hold_timer = self._loop.call_later(hold_s, self.on_room)
            return None
        if update.payload is None:
            if not self._receiver.reserve(update):
                self._is_paused = True
                return None
            update.payload = memoryview(bytearray(update.head_bytes + update.head.num_bytes))
        return update.payload[update.head_bytes + update.filled_bytes : update.head_bytes + end]

    def on_frame(self, connection: Connection, frame: Frame, payload: memoryview) -> None:
        """Take the head or a piece of an update, or the worker's ENTER."""
        if self._is_refused or frame.kind is FrameKind.HEARTBEAT:
            return
        try:
            if frame.kind not in _KINDS:
                raise PeerProtocolError(f"{frame.kind.name} frame among scheduled updates")
            if frame.kind is FrameKind.ENTER:
                self._enter(EnterFrame.unpack(frame).incarnation)
            elif not self.incarnation:
                raise PeerProtocolError(f"{frame.kind.name} frame before ENTER")
            elif frame.kind is FrameKind.TRANSFER:
                self._begin(TransferFrame.unpack(frame, payload))
            elif frame.kind is FrameKind.SUM:
                self._begin(*SumFrame.unpack(frame, payload))
            elif frame.kind is FrameKind.GROUP_JOIN:
                self._join(GroupJoinFrame.unpack(frame, payload))
            else:
                self._take_piece(PieceFrame.unpack(frame))
        except PeerProtocolError as error:
            # If the worker dialled again, the same would come again.
            text = f"{error}; install one release on all workers and servers"
            self.refuse(PeerProtocolError(text))

    def on_drained(self, connection: Connection) -> None:
        """Do nothing: answers are small."""

    def on_closed(self, connection: Connection, error: PeerError) -> None:
        """Forget what has come of unfinished updates; the worker sends them again."""
        self._end_hold()
        self._free_all()
        self._receiver.detach(self)
        if self._groups is not None:
            self._groups.leave(self)

    def _enter(self, incarnation: int) -> None:
        if not incarnation or self.incarnation:
            raise PeerProtocolError(f"incarnation {incarnation} after {self.incarnation}")
        self.incarnation = incarnation
        self._receiver.enter(self, incarnation)
        if self._groups is not None and not self._is_refused:
            self._groups.enter(self)

    def _join(self, head: GroupJoinFrame) -> None:
        is_odd = not 1 <= head.open_from <= head.number < head.open_from + MOST_OPEN
        if is_odd or head.number in self._incoming:
            raise PeerProtocolError(f"update {head.number} cannot join a group")
        if self._groups is None:
            self.send_group(GroupOverFrame(head.number))
        else:
            self._groups.join(self, head)

    def _begin(self, head: TransferFrame, summed: tuple[SummedUpdate, ...] = ()) -> None:
        is_odd = not (
            1 <= head.open_from <= head.number < head.open_from + MOST_OPEN
            and 1 <= head.num_bytes <= MAX_BATCH_BYTES
            and math.isfinite(head.factor)
            and head.factor > 0
        )
        # A worker that is told to send an update again may have begun to do so before.
        over = [each for each in self._incoming if each < head.open_from or each == head.number]
        for number in over:
            self._free(self._incoming.pop(number))
        if is_odd or len(self._incoming) == MOST_OPEN:
            raise PeerProtocolError(f"update {head.number} cannot begin: {head}")
        self._highest = max(self._highest, head.number)
        is_repeated = self._receiver.is_known(self.worker_id, self.incarnation, head.number)
        self._incoming[head.number] = IncomingUpdate(
            self.worker_id, self.incarnation, head, time.monotonic(), is_repeated, self, summed
        )

    def _take_piece(self, piece: PieceFrame) -> None:
        update = self._incoming.get(piece.number)
        if update is None:
            return
        update.filled_bytes += piece.payload_bytes
        if update.is_whole:
            del self._incoming[piece.number]
            self._receiver.arrive(update)

    def _stop(self, number: int) -> None:
        """Throw away what still comes of an update."""
        update = self._incoming.pop(number, None)
        if update is not None:
            self._free(update)
            self.on_room()  # if it was held, what follows it is not

    def _free_all(self) -> None:
        incoming, self._incoming = self._incoming, {}
        for update in incoming.values():
            self._free(update)

    def _free(self, update: IncomingUpdate) -> None:
        if update.payload is not None:
            self._receiver.release(update)

    # The receiver calls the methods below.

    def answer_enter(self, identity: int, version: int) -> None:
        """Let the worker send."""
        self._connection.send(EnteredFrame(0, 0, 0, identity, version))

    def on_committed(self, committed: CommittedFrame) -> None:
        """Tell the worker that an update is applied; it may stop to send it again."""
        self._stop(committed.number)
        self._connection.send(committed)

    def on_denied(self, number: int, error: HostlibError) -> None:
        """Tell the worker why an update has no effect; what has come of it is forgotten."""
        self._stop(number)
        text = memoryview(json.dumps(describe(error)).encode())
        self._connection.send(DeniedFrame(len(text), number, is_pull=False), text)

    def send_again(self, number: int) -> None:
        """Have the worker send an update by itself, unless it does so now."""
        update = self._incoming.get(number)
        if update is not None and not update.is_repeated:
            return
        self._stop(number)
        self._connection.send(SendAgainFrame(number))

    def send_group(self, frame: Packable, payload: memoryview | None = None) -> None:
        """Tell the worker something of switch groups."""
        self._connection.send(frame, payload)

    def on_room(self) -> None:
        """Read on, unless there is still no memory, or no time yet."""
        self._end_hold()
        if self._is_paused:
            self._is_paused = False
            self._connection.resume()

    def _end_hold(self) -> None:
        if self._hold_timer is not None:
            self._hold_timer.cancel()
            self._hold_timer = None

    def refuse(self, error: PeerError) -> None:
        """Say why this connection is of no use, then close it."""
        self._is_refused = True
        self._free_all()
        text = memoryview(str(error).encode()[:1024])
        self._connection.send(Frame(FrameKind.REFUSED, payload_bytes=len(text)), text)
        self.on_room()
        # Closing with unread bytes would reset the connection, and the reason might get lost.
        self._loop.call_later(REFUSED_S, lambda: self._connection.close(error))

    def drop(self) -> None:
        """Close this connection: the same process has another one."""
        self._free_all()
        self._connection.close()
