# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Requests that wait until a batch of them is planned, and the grants that are open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


class QueuedRequest(Protocol):
    """A request of one transfer."""

    @property
    def transfer_id(self) -> int:
        """Unique in its queue."""
        ...


RequestT = TypeVar("RequestT", bound=QueuedRequest)
GrantT = TypeVar("GrantT")


class BatchQueue(Generic[RequestT, GrantT]):
    """Requests of one kind at one server."""

    def __init__(self) -> None:
        self.waiting: dict[int, RequestT] = {}
        """By transfer id, oldest first."""
        self.granted: dict[int, GrantT] = {}
        """By transfer id, in the order of grants; until they are done."""
        self._held: dict[int, RequestT] = {}
        """Those that must not go yet, such as for want of a route."""
        self._arrived_s: dict[int, float] = {}

    def __contains__(self, transfer_id: int) -> bool:
        """Whether a request waits."""
        return transfer_id in self._arrived_s

    def enqueue(self, request: RequestT, now_s: float) -> None:
        """Let a request wait."""
        self.waiting[request.transfer_id] = request
        self._arrived_s[request.transfer_id] = now_s

    def remove(self, transfer_id: int) -> RequestT:
        """Take a request out of those that wait."""
        del self._arrived_s[transfer_id]
        held = self._held.pop(transfer_id, None)
        return self.waiting.pop(transfer_id) if held is None else held

    @property
    def last_s(self) -> float:
        """When the last of the waiting requests came; there is one."""
        return max(self._arrived_s[transfer_id] for transfer_id in self.waiting)

    def due_s(self, batch_max: int, batch_wait_s: float, idle_wait_s: float = 0.0) -> float | None:
        """Return when the waiting requests become a batch, None if none waits.

        The rule is ours: at once if enough requests wait, else in time; that is `idle_wait_s` if no
        grant is open.
        """
        if not self.waiting:
            return None
        first_s = self._arrived_s[next(iter(self.waiting))]
        if len(self.waiting) >= batch_max:
            return first_s
        return first_s + (batch_wait_s if self.granted else idle_wait_s)

    def sort_out(self, may_go: Callable[[RequestT], bool]) -> None:
        """Let requests that may go wait for their batch, and others for the next call."""
        requests = sorted(
            [*self.waiting.values(), *self._held.values()],
            key=lambda each: self._arrived_s[each.transfer_id],
        )
        self.waiting, self._held = {}, {}
        for each in requests:
            (self.waiting if may_go(each) else self._held)[each.transfer_id] = each
