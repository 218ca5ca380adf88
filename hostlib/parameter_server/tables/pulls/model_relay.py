# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker's sessions tell of models that it sends on, or gets from other workers."""

from __future__ import annotations

from typing import Protocol

from ....peers.frames import Frame, FrameKind, ModelCameFrame, NotSentOnFrame, Packable


class RelaySession(Protocol):
    """A worker's session with one server, as the relay of models sees it."""

    @property
    def shard(self) -> int:
        """The server."""
        ...

    def answer_of(self, number: int) -> tuple[memoryview, int] | None:
        """Return what has come of the answer to a pull, and its whole size; None: it is not open.

        The bytes are those that the server has sent.
        """
        ...

    def take_model(self, number: int, payload: memoryview) -> bool:
        """Answer a pull with bytes from another worker; False: the server has begun to, or has."""
        ...

    def note_heard(self) -> None:
        """Learn that an answer is on its path: the server need not say anything meanwhile."""
        ...

    def tell_server(self, frame: Packable) -> None:
        """Send a frame, if the connection stands."""
        ...


class ModelRelay(Protocol):
    """Sends models on, and takes them; all in the thread of the sessions' loop."""

    def on_told(self, session: RelaySession, frame: Frame, payload: memoryview) -> None:
        """Take what a server says: SEND_ON or MODEL_COMING. Raises PeerProtocolError."""
        ...

    def on_bytes(self, session: RelaySession, number: int, piece: memoryview) -> None:
        """Learn of the next bytes of the answer to a pull, which the server has sent."""
        ...

    def forget(self, session: RelaySession) -> None:
        """Learn that a session's connection is gone; its pulls are answered over the next one."""
        ...


def declined(told: Frame) -> Packable:
    """Return what a worker that relays nothing answers to SEND_ON or MODEL_COMING."""
    number = told.fields[0]
    if told.kind is FrameKind.SEND_ON:
        return NotSentOnFrame(number)
    return ModelCameFrame(number, is_whole=False, took_us=0)
