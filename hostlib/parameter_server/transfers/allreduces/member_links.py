# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A member's connections to the others, on which its parts and sums leave as they are granted."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Sequence
from typing import final

from ....errors import HostlibError, MemberLostError, PeerRefusedError
from ....peers.event_loop import EventLoop
from ...options import ClientOptions
from ..granted_rate import GrantedRate
from ..group_path import FellowEnd
from ..outgoing import OutgoingUpdate, PartOutcome
from ..update_link import UpdateLink
from .member_message import MemberKind, pack_error


@final
class MemberLinks:
    """Runs in the loop's thread. A member is dialled again when there is something to send.

    What `send` got is open until its receiver has acknowledged it.
    """

    def __init__(
        self,
        loop: EventLoop,
        members: Sequence[tuple[str, int]],
        options: ClientOptions,
        *,
        on_sent: Callable[[], None],
        on_unsent: Callable[[int, int, HostlibError], None],
    ) -> None:
        """`on_sent()`: a receiver has acknowledged something.

        `on_unsent(receiver, number, error)`: something of an allreduce will not be acknowledged:
        its receiver cannot be reached (MemberLostError), or refuses this member
        (PeerRefusedError). Neither is called for what was cancelled.
        """
        self._loop = loop
        self._members = members
        self._on_sent = on_sent
        self._on_unsent = on_unsent
        self._keys = itertools.count()
        self._open: dict[int, tuple[int, OutgoingUpdate | None]] = {}
        """By key: the receiver, and the message unless it is just being sent."""
        incarnation = secrets.randbits(64) | 1
        self._links = {
            worker_id: UpdateLink(
                loop,
                FellowEnd(options=options, worker_id=worker_id, address=address, shard=worker_id),
                incarnation,
                unreachable_s=options.reconnect_s,
                timeout_s=options.timeout_s,
                on_measured=lambda update, seconds: None,
                sends_again=False,
            )
            for worker_id, address in enumerate(members)
            if worker_id != options.worker_id
        }

    @property
    def others(self) -> list[int]:
        """All members but this one."""
        return [*self._links]

    @property
    def receivers(self) -> set[int]:
        """Members that have not acknowledged everything."""
        return {receiver for receiver, _ in self._open.values()}

    def send(
        self,
        receiver: int,
        kind: MemberKind,
        number: int,
        payload: memoryview,
        *,
        start_byte: int = 0,
        rate: GrantedRate | None = None,
    ) -> None:
        """Send a message at a rate, or at once; nobody may change its payload."""
        key = next(self._keys)
        self._open[key] = receiver, None

        def settle(outcome: PartOutcome | HostlibError) -> None:
            if self._open.pop(key, None) is None:
                return
            if isinstance(outcome, PartOutcome):
                self._on_sent()
                return
            error = self._lost(receiver, number, outcome)
            # Not at once: the caller may be sending more.
            self._loop.call_later(0, lambda: self._on_unsent(receiver, number, error))

        update = _message(receiver, kind, number, payload, settle)
        update.version, update.rate = start_byte, rate
        self._links[receiver].send(update)
        if key in self._open:
            self._open[key] = receiver, update

    def tell_failure(self, receiver: int, number: int, error: HostlibError) -> None:
        """Tell a member that a call fails; nobody waits for its acknowledgement."""
        payload = pack_error(error)
        failure = _message(receiver, MemberKind.FAILURE, number, payload, lambda outcome: None)
        self._links[receiver].send(failure)

    def dial(self) -> None:
        """Connect to all members, so that they notice if this one is gone."""
        for link in self._links.values():
            link.dial()

    def cancel(self) -> None:
        """Send nothing more of what is open."""
        updates, self._open = [update for _, update in self._open.values()], {}
        for update in updates:
            if update is not None:
                self._links[update.shard].cancel(update)

    def close(self, error: HostlibError) -> None:
        """End all connections."""
        for link in self._links.values():
            link.close(error)

    def _lost(self, receiver: int, number: int, error: HostlibError) -> HostlibError:
        host, port = self._members[receiver]
        where = f"allreduce {number}: worker {receiver} at {host}:{port}"
        if isinstance(error, PeerRefusedError):
            found: HostlibError = PeerRefusedError(f"{where} refuses this one: {error}")
        else:
            cause = error.__cause__ or error
            found = MemberLostError(f"{where} is lost, or its connection: {cause}", receiver)
        found.__cause__ = error
        return found


def _message(
    receiver: int,
    kind: MemberKind,
    number: int,
    payload: memoryview,
    done: Callable[[PartOutcome | HostlibError], None],
) -> OutgoingUpdate:
    return OutgoingUpdate(
        shard=receiver,
        table=kind,
        num_keys=0,
        payload=payload,
        version=0,
        norm=0.0,
        done=done,
        transfer_id=number,
    )
