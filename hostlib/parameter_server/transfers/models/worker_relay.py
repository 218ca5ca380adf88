# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's part in chains of workers that get one model: it takes bytes, and sends them on.

Its servers tell it whose model comes from where, and with which digest. What does not come, or is
other bytes, it has its server send.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from ....closable import Closable
from ....errors import PeerClosedError, PeerProtocolError
from ....peers.event_loop import EventLoop
from ....peers.frames import (
    DIGEST_BYTES,
    Frame,
    FrameKind,
    ModelCameFrame,
    ModelComingFrame,
    NotSentOnFrame,
    Purpose,
    SendOnFrame,
)
from ...options import ClientOptions
from ...tables.session import ShardSession
from ...transfer_options import TransferOptions
from ..group_path import FellowEnd
from .relay_link import OutgoingRelay, RelayLink
from .relay_receiver import IncomingModel, RelayReceiver

EARLY_WAIT_S: Final = 5.0
"""How long a model waits for its server's word."""
_logger = logging.getLogger(__name__)


@dataclass(eq=False)
class _Coming:
    """An answer that another worker sends, as the server has told."""

    session: ShardSession
    told: ModelComingFrame
    incoming: IncomingModel | None = None
    passed_bytes: int = 0
    """Of it, that were sent on."""


@final
class WorkerRelay(Closable):
    """Listens in a thread of its own; all else runs in the loop's thread.

    `counters`: taken_models (of other workers), sent_on_models (of which all has left),
    failed_relays (models that were to come, or to be sent on).
    """

    def __init__(
        self,
        loop: EventLoop,
        options: TransferOptions,
        client: ClientOptions,
        counters: Counter[str],
    ) -> None:
        """Listen. Raises ConfigurationError without an address, AddressUnreachableError."""
        self._loop = loop
        self._client = client
        self._counters = counters
        self._coming: dict[bytes, _Coming] = {}
        self._early: dict[bytes, IncomingModel] = {}
        self._going: dict[tuple[ShardSession, int], OutgoingRelay] = {}
        """By the pull whose answer is sent on."""
        self._links: dict[tuple[tuple[str, int], int], RelayLink] = {}
        self._receiver = RelayReceiver(
            options,
            client,
            on_progress=lambda incoming: self._post(lambda: self._on_progress(incoming)),
        )

    @property
    def place(self) -> tuple[str, int]:
        """Where it listens."""
        return self._receiver.place

    def close(self) -> None:
        """End it, when the sessions know it no more; from any thread but the loop's."""
        self._receiver.close()
        with contextlib.suppress(PeerClosedError):  # the client is closed, and its sockets with it
            self._loop.run(self._close_links)

    def _close_links(self) -> None:
        for link in self._links.values():
            link.close()
        self._links.clear()
        self._going.clear()
        self._coming.clear()
        self._early.clear()

    def _post(self, call: Callable[[], None]) -> None:
        with contextlib.suppress(PeerClosedError):  # the client is closed
            self._loop.post(call)

    # The sessions call the methods below.

    def on_told(self, session: ShardSession, frame: Frame, payload: memoryview) -> None:
        """Take what a server says: SEND_ON or MODEL_COMING. Raises PeerProtocolError."""
        if frame.kind is FrameKind.SEND_ON:
            self._send_on(session, SendOnFrame.unpack(frame, payload))
        else:
            self._expect(session, ModelComingFrame.unpack(frame, payload))

    def on_bytes(self, session: ShardSession, number: int, piece: memoryview) -> None:
        """Send on what the server has sent; it sends itself, if another worker was to."""
        coming = self._of_pull(session, number)
        if coming is not None:
            self._forget(coming)
            self._give_up(session, number)
        self._pass_on(session, number, piece)

    def forget(self, session: ShardSession) -> None:
        """Forget what a server has told: it answers over the next connection."""
        for coming in [each for each in self._coming.values() if each.session is session]:
            self._forget(coming)
        for _, number in [key for key in self._going if key[0] is session]:
            self._give_up(session, number)

    def _send_on(self, session: ShardSession, told: SendOnFrame) -> None:
        open_pull, coming = session.answer_of(told.number), self._of_pull(session, told.number)
        if open_pull is None or open_pull[1] != told.num_bytes:
            self._not_sent_on(session, told.number)
            return
        key = session, told.number
        self._give_up(*key)
        relay = self._link(told).begin(
            told.model_id,
            told.num_bytes,
            lambda is_sent: self._on_over(key, relay, is_sent=is_sent),
        )
        self._going[key] = relay
        came, _ = open_pull
        if came.nbytes:
            self._pass_on(session, told.number, came)
        elif coming is not None and coming.incoming is not None:
            self._pass_what_came(coming, coming.incoming.came)

    def _link(self, told: SendOnFrame) -> RelayLink:
        key = told.address, told.worker_id
        if key not in self._links:
            end = FellowEnd(
                options=self._client, worker_id=told.worker_id, address=told.address, shard=0
            )
            self._links[key] = RelayLink(self._loop, end.call_for(Purpose.MODELS))
        return self._links[key]

    def _on_over(
        self, key: tuple[ShardSession, int], relay: OutgoingRelay, *, is_sent: bool
    ) -> None:
        if self._going.get(key) is not relay:
            return
        del self._going[key]
        if is_sent:
            self._counters["sent_on_models"] += 1
        else:
            self._not_sent_on(*key)

    def _give_up(self, session: ShardSession, number: int) -> None:
        """Send nothing more of an answer: the next worker gets it from the server."""
        relay = self._going.pop((session, number), None)
        if relay is not None:
            relay.give_up()

    def _not_sent_on(self, session: ShardSession, number: int) -> None:
        self._counters["failed_relays"] += 1
        session.tell_server(NotSentOnFrame(number))

    def _pass_on(self, session: ShardSession, number: int, piece: memoryview) -> None:
        relay = self._going.get((session, number))
        if relay is not None and piece.nbytes:
            relay.send(piece)

    # What comes from other workers.

    def _expect(self, session: ShardSession, told: ModelComingFrame) -> None:
        open_pull = session.answer_of(told.number)
        if open_pull is None:
            return  # the pull has failed here
        if open_pull[1] != told.num_bytes:
            raise PeerProtocolError(f"rows of {told.num_bytes} bytes instead of {open_pull[1]}")
        coming = self._coming[told.model_id] = _Coming(session, told)
        early = self._early.pop(told.model_id, None)
        if early is not None:
            coming.incoming = early
            self._take(coming)

    def _on_progress(self, incoming: IncomingModel) -> None:
        if incoming.is_over:
            return
        coming = self._coming.get(incoming.model_id)
        if coming is None:
            self._hold(incoming)
        elif coming.incoming in {None, incoming}:
            coming.incoming = incoming
            coming.session.note_heard()
            self._take(coming)
        else:
            self._receiver.release(incoming)  # it comes twice

    def _hold(self, incoming: IncomingModel) -> None:
        """Keep a model of which the server has not told yet, for some time."""
        held = self._early.get(incoming.model_id)
        if held is not None:
            if held is not incoming:
                self._receiver.release(incoming)  # it comes twice
            return
        self._early[incoming.model_id] = incoming
        self._loop.call_later(EARLY_WAIT_S, lambda: self._expire(incoming))

    def _expire(self, incoming: IncomingModel) -> None:
        if self._early.get(incoming.model_id) is incoming:
            del self._early[incoming.model_id]
            self._receiver.release(incoming)

    def _take(self, coming: _Coming) -> None:
        """Send on what has come, and take a model that is whole."""
        incoming, told = coming.incoming, coming.told
        assert incoming is not None, "something of it has come"
        is_broken, came = incoming.is_broken, incoming.came  # more may come meanwhile
        is_whole = False
        if incoming.num_bytes == told.num_bytes:
            self._pass_what_came(coming, came)
            is_whole = came.nbytes == told.num_bytes
            if not (is_whole or is_broken):
                return
        self._forget(coming)
        is_taken = is_whole and self._answer(coming, came)
        if not is_taken:
            self._give_up(coming.session, told.number)
        took_s = time.monotonic() - incoming.began_s
        self._counters["taken_models" if is_taken else "failed_relays"] += 1
        coming.session.tell_server(ModelCameFrame(told.number, is_taken, round(1e6 * took_s)))

    def _answer(self, coming: _Coming, model: memoryview) -> bool:
        told = coming.told
        digest = hashlib.blake2b(model, digest_size=DIGEST_BYTES).digest()
        if digest != told.digest:
            _logger.warning("another worker has sent other bytes than the model's; they are unused")
            return False
        return coming.session.take_model(told.number, model)

    def _pass_what_came(self, coming: _Coming, came: memoryview) -> None:
        """Send on what has come and has not been sent on, if it is to be."""
        if (coming.session, coming.told.number) in self._going:
            piece = came[coming.passed_bytes :]
            coming.passed_bytes = came.nbytes
            self._pass_on(coming.session, coming.told.number, piece)

    def _of_pull(self, session: ShardSession, number: int) -> _Coming | None:
        return next(
            (
                each
                for each in self._coming.values()
                if each.session is session and each.told.number == number
            ),
            None,
        )

    def _forget(self, coming: _Coming) -> None:
        del self._coming[coming.told.model_id]
        if coming.incoming is not None:
            self._receiver.release(coming.incoming)
