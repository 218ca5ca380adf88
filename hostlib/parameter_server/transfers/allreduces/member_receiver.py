# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A member's receiving end: what other members send, and the memory for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from ....errors import PeerProtocolError
from ....peers.frames import CommittedFrame
from ..update_port import IncomingUpdate, UpdatePort
from .member_message import MemberMessage

MOST_HELD_BYTES: Final = 1 << 30
"""Values that have come and cannot be added yet; those that can be always get memory."""


@final
class MemberReceiver:
    """Acknowledges each message when it is whole; runs in the loop's thread."""

    def __init__(
        self,
        take: Callable[[MemberMessage], None],
        *,
        is_due: Callable[[MemberMessage], bool],
        on_entered: Callable[[int, int], None],
        on_gone: Callable[[int], None],
        most_bytes: int = MOST_HELD_BYTES,
    ) -> None:
        """`take(message)` owns its memory, and frees it by `release`.

        `is_due(message)`: whether it is used as soon as it is there. `on_entered(worker_id,
        incarnation)`: a member's process sends from now on, perhaps another one than before.
        `on_gone(worker_id)`: the connection from a member is over.
        """
        self._take = take
        self._is_due = is_due
        self._on_entered = on_entered
        self._on_gone = on_gone
        self._most_bytes = most_bytes
        self._held_bytes = 0
        self._ports: dict[int, UpdatePort] = {}

    def review(self) -> None:
        """Let messages come that are due now."""
        for port in list(self._ports.values()):
            port.on_room()

    # The ports call the methods below.

    def enter(self, port: UpdatePort, incarnation: int) -> None:
        """Let a member send; nothing of an earlier connection is known."""
        older = self._ports.get(port.worker_id)
        self._ports[port.worker_id] = port
        if older is not None:
            older.drop()
            self._on_gone(port.worker_id)
        self._on_entered(port.worker_id, incarnation)
        port.answer_enter(0, 0)

    def is_known(self, worker_id: int, incarnation: int, number: int) -> bool:
        """Return False: a connection that breaks ends what was on it."""
        return False

    def reserve(self, update: IncomingUpdate) -> bool:
        """Return whether there is memory."""
        size, message = update.head.num_bytes, MemberMessage(update)
        is_too_much = self._held_bytes and self._held_bytes + size > self._most_bytes
        if is_too_much and not self._is_due(message):
            return False
        self._held_bytes += size
        return True

    def release(self, update: IncomingUpdate) -> None:
        """Free an update's memory, and let others come."""
        self._held_bytes -= update.head.num_bytes
        self.review()

    def arrive(self, update: IncomingUpdate) -> None:
        """Take a whole message. Raises PeerProtocolError for one that members do not send."""
        message = MemberMessage(update)
        if update.summed or update.head.num_keys:
            raise PeerProtocolError("members of an allreduce send no keys, and no sums of updates")
        _ = message.kind
        update.port.on_committed(CommittedFrame(update.head.number, 0, 0))
        self._take(message)

    def detach(self, port: UpdatePort) -> None:
        """Learn that a connection is gone; what has not come of a message will not."""
        if self._ports.get(port.worker_id) is port:
            del self._ports[port.worker_id]
            self._on_gone(port.worker_id)
