# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's listening end for models that other workers send on."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, final

from ....closable import Closable
from ....errors import (
    PeerClosedError,
    PeerError,
    PeerProtocolError,
)
from ....peers.connection import Connection
from ....peers.event_loop import EventLoop
from ....peers.frames import (
    MAX_BATCH_BYTES,
    Frame,
    FrameKind,
    ModelFrame,
    PieceFrame,
    Purpose,
)
from ....peers.heartbeat import Heartbeat
from ...options import ClientOptions
from ...transfer_options import TransferOptions
from ..worker_door import WorkerDoor, listen, serve

MOST_HELD_BYTES: Final = 1 << 28
"""Of models in a worker's memory; what would need more is thrown away, and its server sends it."""
MOST_OPEN: Final = 64
"""Models of one connection of which a part has come."""
_KINDS: Final = frozenset((FrameKind.MODEL, FrameKind.PIECE, FrameKind.HEARTBEAT))


@dataclass(eq=False)
class IncomingModel:
    """A model of which a part has come from another worker, or all.

    The receiver's thread writes it; others may read the first `filled_bytes`.
    """

    model_id: bytes
    num_bytes: int
    began_s: float = field(default_factory=time.monotonic)
    memory: memoryview | None = None
    """None: there is no room for it, and its bytes are thrown away."""
    filled_bytes: int = 0
    is_broken: bool = False
    """The rest does not come."""
    is_over: bool = False
    """It is of no use any more."""

    @property
    def came(self) -> memoryview:
        """What has come by now."""
        return memoryview(b"") if self.memory is None else self.memory[: self.filled_bytes]


@final
class RelayReceiver(Closable):
    """Listens in a thread of its own, so that models come while the worker's loop is busy.

    `on_progress(incoming)` is called in that thread whenever something of a model has come, and
    when its rest will not. Call `release` when it is of no use any more.
    """

    def __init__(
        self,
        options: TransferOptions,
        client: ClientOptions,
        *,
        on_progress: Callable[[IncomingModel], None],
        most_bytes: int = MOST_HELD_BYTES,
    ) -> None:
        """Listen. Raises ConfigurationError without an address, AddressUnreachableError."""
        self._peers = peers = listen(
            client,
            options.relay_address,
            options.relay_port,
            task="relay models",
            option="relay_address",
        )
        self.place: Final = (peers.address, peers.port)
        """Where it listens."""
        loop = peers.loop
        self._memory = RelayMemory(on_progress, most_bytes)
        door = WorkerDoor(
            Purpose.MODELS,
            "a relay of models",
            lambda connection, _: RelayPort(self._memory, loop, connection),
        )
        serve(peers, client, door)

    def release(self, incoming: IncomingModel) -> None:
        """Free a model's memory; from one thread. Nothing is told of it any more."""
        if incoming.memory is not None and not incoming.is_over:
            incoming.is_over = True
            with contextlib.suppress(PeerClosedError):  # the worker is being closed
                self._peers.loop.post(lambda: self._memory.free(incoming))

    def close(self) -> None:
        """End it: servers send what was to come."""
        self._peers.close()


@final
class RelayMemory:
    """Gives models memory, within a bound; runs in the loop's thread."""

    def __init__(self, on_progress: Callable[[IncomingModel], None], most_bytes: int) -> None:
        self._on_progress = on_progress
        self._most_bytes = most_bytes
        self.held_bytes = 0

    def begin(self, incoming: IncomingModel) -> None:
        """Give a model memory, if there is any."""
        if self.held_bytes + incoming.num_bytes <= self._most_bytes:
            self.held_bytes += incoming.num_bytes
            incoming.memory = memoryview(bytearray(incoming.num_bytes))

    def free(self, incoming: IncomingModel) -> None:
        """Have a model's memory for others; what still comes of it is thrown away."""
        incoming.memory = None
        self.held_bytes -= incoming.num_bytes

    def progress(self, incoming: IncomingModel) -> None:
        """Tell of a model."""
        if incoming.memory is not None:
            self._on_progress(incoming)


@final
class RelayPort:
    """Another worker's connection; runs in the loop's thread."""

    def __init__(self, memory: RelayMemory, loop: EventLoop, connection: Connection) -> None:
        self._memory = memory
        self._incoming: dict[int, IncomingModel] = {}
        connection.receiver = self
        connection.send(Frame(FrameKind.WELCOME))
        Heartbeat(loop, connection)

    def target(self, connection: Connection, frame: Frame) -> memoryview:
        """Return where a payload goes."""
        if frame.kind not in _KINDS:
            raise PeerProtocolError(f"{frame.kind.name} frame at a relay of models")
        if frame.kind is FrameKind.PIECE:
            incoming = self._incoming.get(PieceFrame.unpack(frame).number)
            if incoming is None:
                raise PeerProtocolError("a PIECE of a model that has not begun")
            end = incoming.filled_bytes + frame.payload_bytes
            if end > incoming.num_bytes:
                raise PeerProtocolError(f"{end} bytes of a model of {incoming.num_bytes}")
            if incoming.memory is not None:
                return incoming.memory[incoming.filled_bytes : end]
        return memoryview(bytearray(frame.payload_bytes))

    def on_frame(self, connection: Connection, frame: Frame, payload: memoryview) -> None:
        """Take the head or a piece of a model."""
        if frame.kind is FrameKind.MODEL:
            self._begin(ModelFrame.unpack(frame, payload))
        elif frame.kind is FrameKind.PIECE:
            self._take_piece(PieceFrame.unpack(frame))

    def on_drained(self, connection: Connection) -> None:
        """Do nothing: there are no answers."""

    def on_closed(self, connection: Connection, error: PeerError) -> None:
        """Tell of models that have not come as a whole."""
        incoming, self._incoming = self._incoming, {}
        for each in incoming.values():
            each.is_broken = True
            self._memory.progress(each)

    def _begin(self, head: ModelFrame) -> None:
        is_odd = not 1 <= head.num_bytes <= MAX_BATCH_BYTES or head.number in self._incoming
        if is_odd or len(self._incoming) == MOST_OPEN:
            raise PeerProtocolError(f"model {head.number} of {head.num_bytes} bytes cannot begin")
        incoming = self._incoming[head.number] = IncomingModel(head.model_id, head.num_bytes)
        self._memory.begin(incoming)

    def _take_piece(self, piece: PieceFrame) -> None:
        incoming = self._incoming[piece.number]
        incoming.filled_bytes += piece.payload_bytes
        if incoming.filled_bytes == incoming.num_bytes:
            del self._incoming[piece.number]
        self._memory.progress(incoming)
