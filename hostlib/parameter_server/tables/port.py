# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's connection to the tables, at the server."""

from __future__ import annotations

import json
from typing import Final, final

import numpy as np

from ...errors import (
    HostlibError,
    HotRowError,
    PeerError,
    PeerMismatchError,
    PeerProtocolError,
    PeerRefusedError,
)
from ...hot_rows import FrequencySketch, KeyBatches
from ...latency import ServedRequests, ServerLog
from ...peers.connection import Connection
from ...peers.event_loop import EventLoop
from ...peers.frames import (
    MAX_BATCH_BYTES,
    DeniedFrame,
    EnteredFrame,
    EnterFrame,
    Frame,
    FrameKind,
    ModelCameFrame,
    NotSentOnFrame,
    Packable,
    PieceFrame,
    ReceiptFrame,
    RoundsFrame,
    RowsFrame,
    SampleFrame,
    TableFrame,
    pack_times,
)
from ...peers.heartbeat import Heartbeat
from ...peers.inbound import REFUSED_S
from ...peers.pacing import PacedLink
from ..hot_server.hot_row_server import HotRowServer
from ..hot_server.rounds import RowsOfRounds
from ..rows import PulledRows
from .change import CHANGES, UPDATES, TableChange
from .denial import describe
from .service import TableService
from .state import KEY_BYTES

_MAX_UNREAD_BYTES: Final = MAX_BATCH_BYTES
"""Rows that a worker has not read; beyond it, its further pulls wait."""
_MOST_UNTOLD_BYTES: Final = 1 << 22
"""What a worker has not read; beyond it, it is told nothing more of hot rows."""
_SAMPLES: Final = frozenset((FrameKind.SKETCH, FrameKind.BATCHES))
_HOT: Final = _SAMPLES | {FrameKind.DECIDE}
_OF_MODELS: Final = frozenset((FrameKind.MODEL_CAME, FrameKind.NOT_SENT_ON))
_KINDS: Final = CHANGES - UPDATES | _HOT | _OF_MODELS | {FrameKind.PULL, FrameKind.HEARTBEAT}
_MEASURED: Final = frozenset((FrameKind.PUSH, FrameKind.PULL))


@final
class TablePort:
    """Passes frames to the service, and its answers back; runs in the loop's thread."""

    def __init__(
        self,
        service: TableService,
        loop: EventLoop,
        worker_id: int,
        connection: Connection,
        *,
        hot: HotRowServer | None = None,
        latency: ServerLog | None = None,
    ) -> None:
        self.connection = connection
        self._service = service
        self._loop = loop
        self._worker_id = worker_id
        self._incarnation = 0
        self._is_paused = False
        self._is_refused = False
        self._unread_bytes = 0  # rows since the kernel had last taken all
        self._receipt: int | None = None  # the number of the next RECEIPT
        self._served = ServedRequests(loop)
        self._hot = hot
        self._wants_hot = False
        self._latency = latency
        self._connection_number = latency.connect() if latency is not None else 0
        connection.receiver = self
        connection.send(Frame(FrameKind.WELCOME))
        Heartbeat(loop, connection)

    # The connection calls the methods below.

    def target(self, connection: Connection, frame: Frame) -> memoryview | None:
        """Return room for a payload, None while the frame has to wait."""
        if frame.kind not in _KINDS and not self._is_refused:
            self._refuse_frame(f"{frame.kind.name} frame at the tables of a parameter server")
        if self._is_refused:
            return memoryview(bytearray(frame.payload_bytes))
        has_unread = self._unread_bytes > _MAX_UNREAD_BYTES and not connection.is_drained
        if not self._service.takes(frame.kind) or (has_unread and frame.kind is FrameKind.PULL):
            self._is_paused = True
            return None
        return memoryview(bytearray(frame.payload_bytes))

    def on_frame(self, connection: Connection, frame: Frame, payload: memoryview) -> None:
        """Take requests and pulls."""
        if self._is_refused or frame.kind is FrameKind.HEARTBEAT:
            return
        try:
            self._take(connection, frame, payload)
        except PeerProtocolError as error:
            self._refuse_frame(str(error))

    def _refuse_frame(self, text: str) -> None:
        """Say what is wrong with a frame: if the worker dialled again, it would come again."""
        self.refuse(PeerProtocolError(f"{text}; install one release on all workers and servers"))

    def _take(self, connection: Connection, frame: Frame, payload: memoryview) -> None:
        if frame.kind is FrameKind.ENTER:
            enter = EnterFrame.unpack(frame)
            self._served = ServedRequests(self._loop)
            self._wants_hot = enter.wants_hot
            self._enter(enter.incarnation, enter.num_servers)
            return
        if not self._incarnation:
            raise PeerProtocolError(f"{frame.kind.name} frame before ENTER")
        if frame.kind in _HOT:
            self._take_hot(frame, payload)
            return
        if frame.kind in _OF_MODELS:
            self._take_of_model(frame)
            return
        asked, log, arrived_ns = TableFrame.unpack(frame), self._latency, connection.arrived_ns
        if log is not None and not log.is_paused and asked.kind in _MEASURED:
            log.arrived(self._worker_id, self._connection_number, asked.kind, arrived_ns)
        if not asked.is_measured:
            self._pass_on(asked, payload)
            return
        self._served.begin(asked.kind, asked.number, arrived_ns)
        self._pass_on(asked, payload)
        self._served.pause()

    def _pass_on(self, asked: TableFrame, payload: memoryview) -> None:
        if asked.kind is FrameKind.PULL:
            self._pull(asked, payload)
            return
        origin = (self._worker_id, self._incarnation, asked.number)
        self._service.submit(TableChange(asked.kind, *origin, asked.table, asked.num_keys), payload)

    def _take_of_model(self, frame: Frame) -> None:
        models = self._service.models
        if models is None:
            return
        if frame.kind is FrameKind.MODEL_CAME:
            came = ModelCameFrame.unpack(frame)
            if came.is_whole:
                self._served.forget(FrameKind.PULL, came.number)
            models.on_came(self, came)
        else:
            models.on_not_sent_on(self, NotSentOnFrame.unpack(frame).number)

    def _take_hot(self, frame: Frame, payload: memoryview) -> None:
        if self._hot is None:
            return
        if frame.kind in _SAMPLES:
            table = SampleFrame.unpack(frame).table
            try:
                if frame.kind is FrameKind.SKETCH:
                    self._hot.add_sketch(table, FrequencySketch.unpack(bytes(payload)))
                else:
                    self._hot.add_batches(table, KeyBatches.unpack(bytes(payload)))
            except HotRowError as error:
                raise PeerProtocolError(f"{frame.kind.name} frame: {error}") from error
            return
        asked = RoundsFrame.unpack(frame)
        rounds = asked.rounds(payload)
        of_rows = RowsOfRounds(rounds["row"].astype(np.uint32), rounds["round"].astype(np.uint32))
        self._hot.decide(self._worker_id, self, asked.generation, of_rows)

    def on_drained(self, connection: Connection) -> None:
        """Answer pulls again."""
        self._unread_bytes = 0
        if self._hot is not None:
            self._hot.on_drained(self._worker_id, self)
        self.on_room()

    def on_closed(self, connection: Connection, error: PeerError) -> None:
        """Tell the service; the worker may connect again."""
        self._service.detach(self._worker_id, self)
        if self._hot is not None:
            self._hot.leave(self._worker_id, self)

    def _enter(self, incarnation: int, num_servers: int) -> None:
        if not incarnation or self._incarnation not in (0, incarnation):
            raise PeerProtocolError(f"incarnation {incarnation} after {self._incarnation}")
        self._incarnation = incarnation
        request = TableChange(FrameKind.ENTER, self._worker_id, incarnation, 0, num_servers)
        try:
            self._service.enter(self, request)
        except (PeerRefusedError, PeerMismatchError) as error:
            self.refuse(error)

    def _pull(self, asked: TableFrame, payload: memoryview) -> None:
        if len(payload) != KEY_BYTES * asked.num_keys:
            raise PeerProtocolError(f"{len(payload)} bytes of {asked.num_keys} keys")
        keys = np.frombuffer(payload, np.int64)
        origin = (self._worker_id, asked.number, asked.clock)
        self._service.pull(self, origin, asked.table, keys, self if asked.is_model else None)

    # The service calls the methods below.

    def on_applied(self, request: TableChange) -> None:
        """Answer ENTER, and send one receipt for all requests of a turn of the loop."""
        if request.kind is FrameKind.ENTER:
            self._answer_enter()
            return
        if request.kind is FrameKind.PUSH:
            self._served.applied(request.number, self._service.began_ns)
        if self._receipt is None:
            self._loop.call_later(0, self._send_receipt)
        self._receipt = max(self._receipt or 0, request.number)

    def _answer_enter(self) -> None:
        service, worker_id = self._service, self._worker_id
        for number, error in service.denials(worker_id):
            self.on_denied(number, error, is_pull=False)
        accepted, num_open = service.accepted(worker_id), service.num_open(worker_id)
        clock = service.state.workers[worker_id].clock
        self._send(EnteredFrame(accepted, num_open, clock, service.identity, service.version))
        if self._hot is not None and self._wants_hot:
            self._hot.enter(worker_id, self)

    def _send_receipt(self) -> None:
        if self._receipt:
            measured = self._served.receipt()
            own = measured.pop()[1] if measured and measured[-1][0] == self._receipt else None
            times = pack_times(measured)
            receipt = ReceiptFrame(self._receipt, len(times), own, self._service.version)
            self._send(receipt, memoryview(times))
        self._receipt = None

    def on_denied(self, number: int, error: HostlibError, *, is_pull: bool) -> None:
        """Say why a request or a pull has no effect."""
        self._served.forget(FrameKind.PULL if is_pull else FrameKind.PUSH, number)
        text = memoryview(json.dumps(describe(error)).encode())
        self._send(DeniedFrame(len(text), number, is_pull), text)

    def on_rows(self, number: int, table: int, rows: PulledRows) -> None:
        """Send rows: the values, then the numbers of updates, and the version of the tables."""
        payload, began_ns = self.rows_payload(rows), self._service.began_ns
        self._send_last(number, table, rows.updates.size, payload, began_ns)

    # The keeper of models calls the methods below, too.

    @property
    def link(self) -> PacedLink:
        """The connection."""
        return self.connection

    def rows_payload(self, rows: PulledRows) -> memoryview:
        """Return the bytes of an answer with these rows, at the present version."""
        service = self._service
        versions = np.array([service.version, service.state.num_commits], np.uint64)
        parts = rows.values.reshape(-1).view(np.uint32), rows.updates, versions.view(np.uint32)
        return np.concatenate(parts).data.cast("B")

    def send_piece(self, number: int, piece: memoryview) -> None:
        """Send the next bytes of the answer to a pull, but not the last ones."""
        self._send(PieceFrame(piece.nbytes, number), piece)
        self._note_unread(piece.nbytes)

    def tell(self, frame: Packable) -> None:
        """Tell the worker that an answer is sent on, or comes from another worker."""
        self._send(frame)

    def send_rows(self, number: int, table: int, num_keys: int, rest: memoryview) -> None:
        """Send the last bytes of the answer to a pull."""
        self._send_last(number, table, num_keys, rest, self._loop.clock_ns())

    def _send_last(
        self, number: int, table: int, num_keys: int, rest: memoryview, began_ns: int
    ) -> None:
        times = self._served.pulled(number, began_ns)
        self._send(RowsFrame(rest.nbytes, number, table, num_keys, times), rest)
        self._note_unread(rest.nbytes)

    def _note_unread(self, num_bytes: int) -> None:
        self._unread_bytes += num_bytes
        if self.connection.is_drained:
            self._unread_bytes = 0

    # The server of hot rows calls the methods below.

    @property
    def is_behind(self) -> bool:
        """Whether the worker has not read so much that it is told nothing more now."""
        return self._unread_bytes > _MOST_UNTOLD_BYTES and not self.connection.is_drained

    def send_hot(self, frame: Packable, payload: bytes) -> None:
        """Send a frame about hot rows."""
        self._send(frame, memoryview(payload) if payload else None)
        self._note_unread(len(payload))

    # The service calls the methods below, too.

    def on_room(self) -> None:
        """Read on."""
        if self._is_paused:
            self._is_paused = False
            self.connection.resume()

    def refuse(self, error: PeerError) -> None:
        """Say why this connection is of no use, then close it."""
        self._is_refused = True
        text = memoryview(str(error).encode()[:1024])
        self._send(Frame(FrameKind.REFUSED, payload_bytes=len(text)), text)
        # Closing with unread bytes would reset the connection, and the reason might get lost.
        self._loop.call_later(REFUSED_S, lambda: self.connection.close(error))

    def drop(self) -> None:
        """Close this connection: the same process has another one."""
        self.connection.close()

    def _send(self, frame: Packable, payload: memoryview | None = None) -> None:
        self.connection.send(frame, payload)
