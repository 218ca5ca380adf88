# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One server as the scheduler sees it: its version, its commit sequence, and who waits for it."""

from __future__ import annotations

from .commit_sequence import CommitSequence
from .errors import InvalidTransferError
from .transfers import TransferGrant, TransferRequest


class ServerQueue:
    """Requests that wait for a server, and grants that it has not applied."""

    def __init__(self, server: str, version: int) -> None:
        self.server = server
        self.version = version
        """Updates that the server has applied."""
        self.waiting: dict[int, TransferRequest] = {}
        """By transfer id, oldest first."""
        self.granted: dict[int, TransferGrant] = {}
        """By transfer id, in commit order; until the server has applied them."""
        self.next_sequence = 0
        self.last_commit_s = 0.0
        """Planned time of the last granted commit."""
        self.commits: CommitSequence[TransferGrant] = CommitSequence()
        self._arrived_s: dict[int, float] = {}

    @property
    def next_commit(self) -> int:
        """Updates that the server will have applied once all grants are done."""
        return self.version + len(self.granted)

    def add(self, request: TransferRequest, now_s: float) -> None:
        """Let a request wait."""
        if request.version > self.next_commit:
            raise InvalidTransferError(
                f"transfer {request.transfer_id} of {request.worker}: version is "
                f"{request.version}, but {self.server} will have {self.next_commit} once all "
                "grants are done. Send the version of the model that the worker got"
            )
        self.waiting[request.transfer_id] = request
        self._arrived_s[request.transfer_id] = now_s

    def remove(self, transfer_id: int) -> TransferRequest:
        """Take a request out of those that wait."""
        del self._arrived_s[transfer_id]
        return self.waiting.pop(transfer_id)

    def due_s(self, batch_max: int, batch_wait_s: float) -> float | None:
        """Return when the waiting requests become a batch, None if none waits.

        The rule is ours: at once if no grant is open or enough requests wait, else in time.
        """
        if not self.waiting:
            return None
        first_s = next(iter(self._arrived_s.values()))
        if not self.granted or len(self.waiting) >= batch_max:
            return first_s
        return first_s + batch_wait_s
