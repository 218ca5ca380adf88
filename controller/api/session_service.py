# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Session API server: one bidirectional stream per worker."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final, cast

import grpc
from google.protobuf.message import DecodeError

from ...hostlib.control.session_api import session_pb2 as pb
from ...hostlib.control.session_api import session_pb2_grpc
from ..errors import ControllerError, ControllerStoppingError, InvalidJobError
from ..jobs.live_job import LiveJob
from ..jobs.membership import Membership
from ..jobs.punctual_timer import PunctualTimer
from ..jobs.worker_lease import Outbox, WorkerLease
from .open_files import check_room
from .printable import details
from .request_check import check_request

_LOGGER = logging.getLogger(__name__)
_JOIN_REQUEST_TIMEOUT_S: Final = 5.0
_LINGER_S: Final = 0.5
"""Time for a worker to close its side after the last message."""

JoinContext = grpc.aio.ServicerContext[pb.WorkerMessage, pb.ControllerMessage]


class SessionService(session_pb2_grpc.SwitchfoldSessionServicer):
    """Turns a worker's messages into calls of the membership, and the answers into messages."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership

    async def Join(  # noqa: N802
        self, request_iterator: object, context: JoinContext
    ) -> None:
        """Serve one worker from its JoinRequest to the end of the stream."""
        try:
            self._membership.check_open()
            join_request = await self._read_join_request(context)
            if not join_request.HasField("resume"):
                check_room()
            live, lease, outbox = await self._membership.enter(join_request)
        except ControllerError as exc:
            if not isinstance(exc, ControllerStoppingError):
                _LOGGER.info("worker refused: %s", exc)
            await context.abort(exc.status, details(exc))
        reader = asyncio.create_task(self._read(live, lease, outbox, context))
        try:
            await self._write(outbox, context)
            # If the stream ends while the worker writes, messages may be lost that it has not read.
            await asyncio.wait((reader,), timeout=_LINGER_S)
        finally:
            # This must come before any await: gRPC may cancel this handler here once more.
            self._membership.stream_ended(live, lease, outbox)
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    async def _read_join_request(self, context: JoinContext) -> pb.JoinRequest:
        try:
            async with asyncio.timeout(None) as limit:
                timer = PunctualTimer(_JOIN_REQUEST_TIMEOUT_S, lambda: limit.reschedule(0.0))
                try:
                    message = await self._message(context)
                finally:
                    timer.cancel()
        except TimeoutError as exc:
            raise InvalidJobError(
                f"no JoinRequest within {_JOIN_REQUEST_TIMEOUT_S:g} s; send it first on the stream"
            ) from exc
        if message is None or message.WhichOneof("message") != "join_request":
            raise InvalidJobError("the first message of a stream must be JoinRequest")
        check_request(message)
        return message.join_request

    async def _write(self, outbox: Outbox, context: JoinContext) -> None:
        while (message := await outbox.get()) is not None:
            if isinstance(message, ControllerError):
                await context.abort(message.status, details(message))
            await cast("Any", context).write(message)

    async def _read(
        self, live: LiveJob, lease: WorkerLease, outbox: Outbox, context: JoinContext
    ) -> None:
        """Handle messages until the worker leaves, disconnects or sends an invalid one."""
        while True:
            try:
                message = await self._message(context)
                if message is None:
                    outbox.put_nowait(None)
                    return
                if not live.is_current(lease):
                    continue
                check_request(message)
                self._membership.heard(lease)
                if self._has_left(live, lease, message):
                    return
            except ControllerError as exc:
                _LOGGER.info(
                    "job %s: worker %d is disconnected: %s", live.name, lease.worker_id, exc
                )
                outbox.put_nowait(exc)
                return
            except grpc.aio.BaseError:  # the stream is over
                outbox.put_nowait(None)
                return
            except Exception:
                # Nothing reads the stream any more: its worker would be lost for silence.
                _LOGGER.exception("job %s: worker %d is disconnected", live.name, lease.worker_id)
                outbox.put_nowait(_failure(live, lease))
                return

    async def _message(self, context: JoinContext) -> pb.WorkerMessage | None:
        """Return the next message, None at the end of the worker's side."""
        try:
            message = cast("object", await cast("Any", context).read())
        except DecodeError as exc:
            raise InvalidJobError(
                "a message is not a WorkerMessage of the session API; install the same release on "
                f"worker and controller ({exc})"
            ) from exc
        return message if isinstance(message, pb.WorkerMessage) else None

    def _has_left(self, live: LiveJob, lease: WorkerLease, message: pb.WorkerMessage) -> bool:
        """Handle one message; return whether it was the worker's last."""
        match message.WhichOneof("message"):
            case "heartbeat":
                pass
            case "barrier":
                self._membership.reach_barrier(live, lease, message.barrier)
            case "view_ready":
                self._membership.view_ready(live, lease, message.view_ready)
            case "view_entered":
                self._membership.view_entered(live, lease, message.view_entered)
            case "stalled":
                self._membership.stalled(live, lease, message.stalled)
            case "leave":
                self._membership.leave(live, lease, message.leave)
                return True
            case other:
                raise InvalidJobError(f"unexpected message {other!r} in a session")
        return False


def _failure(live: LiveJob, lease: WorkerLease) -> ControllerError:
    return ControllerError(
        f"job {live.name!r}: the controller failed at a message of worker {lease.worker_id}, see "
        "its log; resume, or join again"
    )
