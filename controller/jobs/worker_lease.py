# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The leases of workers in live jobs, and the streams that carry their messages."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Final

from ...hostlib.control.session_api import session_pb2 as pb
from ..errors import ControllerError, WorkerTakenError
from .job import Worker, WorkerId
from .punctual_timer import PunctualTimer

Outbox = asyncio.Queue[pb.ControllerMessage | ControllerError | None]
"""Messages of one stream; an error or None ends it."""


_SECRET_BYTES: Final = 16


class WorkerLease:
    """A worker's right to be in a job; it outlives a broken stream for `lease_s`."""

    def __init__(
        self,
        worker: Worker,
        on_expired: Callable[[WorkerLease], None],
        lease_s: float,
        digest: bytes | None = None,
    ) -> None:
        """`digest`: of the secret of a worker from before the controller's restart."""
        self.worker: Final = worker
        self.secret: Final = secrets.token_bytes(_SECRET_BYTES) if digest is None else b""
        """The worker shows it when it resumes; only this worker gets it. b"" after a restart."""
        self.digest: Final = _digest(self.secret) if digest is None else digest
        """All that is stored of the secret."""
        self._lease_s = lease_s
        self._heard_s = float("-inf")
        self._outbox: Outbox | None = None  # of the attached stream
        self._is_expected = digest is not None
        self._has_view = self._is_expected
        self._on_expired = on_expired
        self._timer: PunctualTimer | None = None

    @property
    def worker_id(self) -> WorkerId:
        """Id of the worker."""
        return self.worker.worker_id

    @property
    def lease_s(self) -> float:
        """How long the worker may send nothing while its connection stands."""
        return self._lease_s

    @property
    def heard_s(self) -> float:
        """When the worker last sent something, on the loop's clock."""
        return self._heard_s

    @property
    def is_expected(self) -> bool:
        """Whether it is known from before the controller's restart, and not back yet."""
        return self._is_expected

    @property
    def has_view(self) -> bool:
        """Whether the worker knows a view: it must be asked before there is another."""
        return self._has_view

    @property
    def is_attached(self) -> bool:
        """Whether a stream carries this lease."""
        return self._outbox is not None

    def is_secret(self, secret: bytes) -> bool:
        """Whether it is the worker's own."""
        return hmac.compare_digest(_digest(secret), self.digest)

    def note_view(self) -> None:
        """Note that the worker is told of a view."""
        self._has_view = True

    def attach(self, lease_s: float) -> Outbox:
        """Take a new stream, and renew the lease for so long; an older stream gets an error."""
        self.send(
            WorkerTakenError(
                f"worker {self.worker_id} has resumed on another stream, which carries its "
                "messages from now on; let one process alone be this worker"
            )
        )
        self._outbox = Outbox()
        self._is_expected = False
        self._lease_s = lease_s
        self.hear()
        return self._outbox

    def detach(self, outbox: Outbox) -> bool:
        """Note that a stream is over; return whether it was the current one."""
        if self._outbox is not outbox:
            return False
        self._outbox = None
        return True

    def send(self, message: pb.ControllerMessage | ControllerError) -> None:
        """Queue a message if a stream is attached."""
        if self._outbox is not None:
            self._outbox.put_nowait(message)

    def close(self) -> None:
        """End the attached stream after what is queued."""
        if self._outbox is not None:
            self._outbox.put_nowait(None)

    def hear(self) -> None:
        """Note that the worker said something, and renew its lease."""
        self._heard_s = asyncio.get_running_loop().time()
        self.renew(self._lease_s)

    def renew(self, lease_s: float) -> None:
        """Give the worker so long from now."""
        self.release()
        self._timer = PunctualTimer(lease_s, lambda: self._on_expired(self))

    def release(self) -> None:
        """Stop counting the lease."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _digest(secret: bytes) -> bytes:
    return hashlib.sha256(secret).digest()
