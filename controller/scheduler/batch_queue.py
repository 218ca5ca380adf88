# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Requests that wait until a batch of them is planned, and the grants that are open."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from .network import TransferNetwork


class QueuedRequest(Protocol):
    """A request of one transfer."""

    @property
    def transfer_id(self) -> int:
        """Unique in its queue."""
        ...

    @property
    def sender(self) -> str:
        """Host that has the bytes."""
        ...

    @property
    def receiver(self) -> str:
        """Host that gets the bytes."""
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
        self._stranded: dict[int, RequestT] = {}
        """Those that wait for a network with a route."""
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
        stranded = self._stranded.pop(transfer_id, None)
        return self.waiting.pop(transfer_id) if stranded is None else stranded

    def due_s(self, batch_max: int, batch_wait_s: float) -> float | None:
        """Return when the waiting requests become a batch, None if none waits.

        The rule is ours: at once if no grant is open or enough requests wait, else in time.
        """
        if not self.waiting:
            return None
        first_s = self._arrived_s[next(iter(self.waiting))]
        if not self.granted or len(self.waiting) >= batch_max:
            return first_s
        return first_s + batch_wait_s

    def sort_out(self, network: TransferNetwork) -> None:
        """Let requests without a route wait for the next network, and others for their batch."""
        requests = sorted(
            [*self.waiting.values(), *self._stranded.values()],
            key=lambda each: self._arrived_s[each.transfer_id],
        )
        self.waiting, self._stranded = {}, {}
        for each in requests:
            is_joined = network.joins(each.sender, each.receiver)
            (self.waiting if is_joined else self._stranded)[each.transfer_id] = each
