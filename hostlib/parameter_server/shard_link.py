# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A client's access to a shard: over TCP, or in its own process without bytes on the wire."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol, final

from ..errors import PeerError, PeerProtocolError, PeerRefusedError, ServerLostError
from ..peers.dialled import DialledLink
from ..peers.event_loop import EventLoop
from ..peers.frames import (
    AnswerFrame,
    FailedFrame,
    Frame,
    FrameKind,
    Packable,
    PushedFactorsFrame,
    UpdateFrame,
)
from ..peers.handshake import PeerCall
from .layout import VALUE_BYTES, Pair
from .pair_state import Answer, Failure, FailureKind, Origin
from .rules import Values
from .server import ParameterServer
from .transfer import KeyTransfer, TransferName

if TYPE_CHECKING:
    from .client import ParameterClient


class ShardLink(Protocol):
    """A shard, as the client sees it; called in the client's thread."""

    def submit(self, transfer: KeyTransfer) -> None:
        """Send the shard's pairs of a transfer."""
        ...

    def close(self) -> None:
        """Close for good."""
        ...


@final
class RemoteShard:
    """A shard over TCP: dialled when first needed, and again when it breaks."""

    def __init__(
        self,
        client: ParameterClient,
        loop: EventLoop,
        call: PeerCall,
        *,
        unreachable_s: float,
    ) -> None:
        self.shard = call.greeting.receiver
        self._client = client
        self._loop = loop
        self._call = call
        self._unreachable_s = unreachable_s
        self._link: DialledLink | None = None
        self._declared = 0
        self._answer: AnswerFrame | None = None  # of the payload under way
        self._place: Values | None = None

    def submit(self, transfer: KeyTransfer) -> None:
        """Send now, or when the connection is up; dial if there is no link."""
        if self._link is None:
            self._link = DialledLink(
                self._loop, self._call, self, unreachable_s=self._unreachable_s
            )
        if self._link.is_up:
            self._declare()
            self._send(transfer)

    def close(self) -> None:
        """Close for good."""
        if self._link is not None:
            self._link.close()
            self._link = None

    def _declare(self) -> None:
        known = len(self._client.layout.keys)
        if known > self._declared:
            text = self._client.layout.description(self._declared, known)
            self._send_frame(Frame(FrameKind.DECLARE, payload_bytes=len(text)), memoryview(text))
            self._declared = known

    def _send(self, transfer: KeyTransfer) -> None:
        pairs = transfer.pairs_of(self.shard)
        if not pairs:
            return
        open_from = self._client.open_from(transfer)
        if transfer.matrix is not None:
            frame = PushedFactorsFrame(
                payload_bytes=transfer.source.nbytes,
                iteration=transfer.iteration,
                open_from=open_from,
                rows=transfer.matrix.rows,
                u_columns=transfer.matrix.u_columns,
                v_columns=transfer.matrix.v_columns,
                key=transfer.key.number,
            )
            self._send_values(frame, transfer.source)
            return
        for pair in pairs:
            frame = UpdateFrame(
                payload_bytes=VALUE_BYTES * pair.num_values,
                key=transfer.key.number,
                pair=pair.number,
                num_values=pair.num_values,
                iteration=transfer.iteration,
                open_from=open_from,
            )
            self._send_values(frame, transfer.part(pair))

    def _send_values(self, frame: Packable, values: Values) -> None:
        self._client.counters["sent_floats"] += values.size
        # An empty view cannot be cast.
        self._send_frame(frame, values.data.cast("B") if values.size else memoryview(b""))

    def _send_frame(self, frame: Packable, payload: memoryview) -> None:
        assert self._link is not None
        self._link.send(frame, payload)

    # The dialled link calls the methods below.

    def on_up(self, link: DialledLink) -> None:
        """Declare the keys, and send all that is not answered, possibly once more."""
        self._link = link  # it may be up before the constructor has returned
        self._declared = 0
        self._declare()
        for transfer in self._client.transfers_at(self.shard):
            self._send(transfer)

    def on_down(self, link: DialledLink, error: PeerError) -> bool:
        """Dial again, even when idle: the server gives up a worker that is gone for long."""
        if self._client.transfers_at(self.shard):
            self._client.counters["reconnections"] += 1
        return True

    def on_lost(self, link: DialledLink, error: PeerError) -> None:
        """Fail the transfers that this shard had to answer."""
        self._link = None
        if not isinstance(error, PeerRefusedError):
            lost = ServerLostError(f"parameter server {self.shard}: {error}", self.shard)
            lost.__cause__ = error
            error = lost
        self._client.on_shard_lost(self.shard, error)

    def target(self, frame: Frame) -> memoryview:
        """Return memory for an answer: in the result if the answer is still due."""
        self._place = None
        if frame.kind is FrameKind.ANSWER:
            self._answer = AnswerFrame.unpack(frame)
            found = self._wanted(self._answer)
            if found is not None:
                transfer, pair = found
                if frame.payload_bytes != VALUE_BYTES * pair.num_values:
                    raise PeerProtocolError(
                        f"{frame.payload_bytes} bytes answer {pair.num_values} values"
                    )
                self._place = transfer.place(pair)
                return self._place.data.cast("B")
        elif frame.kind is not FrameKind.FAILED:
            raise PeerProtocolError(f"{frame.kind.name} frame from a parameter server")
        return memoryview(bytearray(frame.payload_bytes))

    def on_frame(self, frame: Frame, payload: memoryview) -> None:
        """Take answers and failures."""
        if frame.kind is FrameKind.FAILED:
            fields = json.loads(bytes(payload))
            failure = Failure(
                FailureKind(fields["kind"]), str(fields["text"]), tuple(fields["worker_ids"])
            )
            failed = FailedFrame.unpack(frame)
            name = None if failed.key is None else TransferName(failed.key, failed.iteration)
            self._client.on_failure(name, failure)
            return
        self._client.counters["received_floats"] += frame.payload_bytes // VALUE_BYTES
        place, self._place = self._place, None
        answer, self._answer = self._answer, None
        assert answer is not None
        found = self._wanted(answer)
        if found is None or place is None:
            self._client.counters["unwanted_answers"] += 1
            return
        self._client.on_answer(*found, place, answer.num_contributors)

    def _wanted(self, answer: AnswerFrame) -> tuple[KeyTransfer, Pair] | None:
        return self._client.find(TransferName(answer.key, answer.iteration), answer.pair)


@final
class LocalShard:
    """A shard in the worker's own process, whose server runs in the client's thread."""

    def __init__(self, client: ParameterClient, server: ParameterServer) -> None:
        self._client = client
        self._server = server
        self._shard = server.options.shard
        self._declared = 0
        server.attach(client.worker_id, self)

    def submit(self, transfer: KeyTransfer) -> None:
        """Lend the values to the server."""
        client, server = self._client, self._server
        known = len(client.layout.keys)
        if known > self._declared:
            try:
                server.declare(client.worker_id, client.layout.description(self._declared, known))
            except PeerError as error:
                client.on_shard_lost(self._shard, error)
                return
            self._declared = known
        origin = Origin(client.worker_id, transfer.iteration, client.open_from(transfer))
        if transfer.matrix is not None:
            rows, u_columns, v_columns = transfer.matrix
            u = transfer.source[: rows * u_columns].reshape(rows, u_columns)
            v = transfer.source[rows * u_columns :].reshape(rows, v_columns)
            server.multiply(origin, transfer.key.number, u, v)
            return
        for pair in transfer.pairs_of(self._shard):
            part = transfer.part(pair)
            server.update(origin, transfer.key.number, pair.number, part, is_lent=True)

    def close(self) -> None:
        """Detach from the server."""
        self._server.detach(self._client.worker_id, self)

    # The server calls the methods below.

    def send_answer(self, key: int, pair: int, iteration: int, answer: Answer) -> None:
        """Pass an answer on."""
        found = self._client.find(TransferName(key, iteration), pair)
        if found is not None:
            self._client.on_answer(*found, answer.values, len(answer.contributors))

    def send_failure(self, key: int, iteration: int, failure: Failure) -> None:
        """Pass a failure on."""
        self._client.on_failure(TransferName(key, iteration), failure)
