# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One server as the scheduler sees it: its version, its commit sequence, and who waits for it."""

from __future__ import annotations

from dataclasses import replace

from .errors import InvalidTransferError
from .state.batch_queue import BatchQueue
from .transfers import TransferGrant, TransferRequest


class ServerQueue(BatchQueue[TransferRequest, TransferGrant]):
    """Updates that wait for a server, and grants that it has not applied."""

    def __init__(self, server: str, version: int) -> None:
        super().__init__()
        self.server = server
        self.version = version
        """Updates that the server has applied."""
        self.next_sequence = 0

    @property
    def last_commit_s(self) -> float:
        """Planned time of the last commit that is granted and not done; 0 without any."""
        return max((grant.commit_s for grant in self.granted.values()), default=0.0)

    @property
    def next_commit(self) -> int:
        """Updates that the server will have applied once all grants are done."""
        return self.version + len(self.granted)

    def gathering_due_s(
        self, batch_max: int, batch_wait_s: float, gather_wait_s: float, idle_wait_s: float = 0.0
    ) -> float | None:
        """Return when the waiting requests become a batch that may have groups, None if none waits.

        They wait while the server's link has work, since a group costs time if it has none. The
        batch is closed `batch_wait_s` before the last planned commit, so that the link goes on.
        """
        due_s = self.due_s(batch_max, batch_wait_s, idle_wait_s)
        first_s = self.due_s(1, 0.0)
        if due_s is None or first_s is None or due_s <= first_s:
            return due_s
        return min(max(due_s, self.last_commit_s - batch_wait_s), first_s + gather_wait_s)

    def add(self, request: TransferRequest, now_s: float) -> None:
        """Let a request wait."""
        if request.version > self.next_commit:
            raise InvalidTransferError(
                f"transfer {request.transfer_id} of {request.worker}: version is "
                f"{request.version}, but {self.server} will have {self.next_commit} once all "
                "grants are done. Send the version of the model that the worker got"
            )
        self.enqueue(request, now_s)

    def move_waiting(self, other: ServerQueue, now_s: float) -> list[TransferRequest]:
        """Let all requests wait for another server; return those whose model is too new for it.

        These no longer wait. A request without a route waits for its batch there as well.
        """
        self.sort_out(lambda each: True)
        refused: list[TransferRequest] = []
        for request in list(self.waiting.values()):
            moved = replace(self.remove(request.transfer_id), server=other.server)
            if moved.version > other.version:
                refused.append(request)
            else:
                other.enqueue(moved, now_s)
        return refused
