# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Session API server: one bidirectional stream per worker, or per row server."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

import grpc

from ...hostlib.control.session_api import session_pb2 as pb
from ...hostlib.control.session_api import session_pb2_grpc
from ..errors import ControllerError, ControllerStoppingError, InvalidJobError, SourceLimitError
from ..jobs.live_job import LiveJob
from ..jobs.membership import Membership
from ..jobs.worker_lease import WorkerLease
from ..rows.row_streams import RowContext, RowStreams
from .callers.source_calls import SourceCalls, source_of
from .open_files import check_room
from .printable import details
from .session_stream import SessionStream

_LOGGER = logging.getLogger(__name__)
_LINGER_S: Final = 0.5
"""Time for a worker to close its side after the last message."""

JoinContext = grpc.aio.ServicerContext[pb.WorkerMessage, pb.ControllerMessage]


class SessionService(session_pb2_grpc.SwitchfoldSessionServicer):
    """Turns a worker's messages into calls of the membership, and the answers into messages."""

    def __init__(self, membership: Membership, sources: SourceCalls) -> None:
        self._membership = membership
        self._sources = sources
        self._row_streams = RowStreams(membership, sources)

    async def Join(  # noqa: N802
        self, request_iterator: object, context: JoinContext
    ) -> None:
        """Serve one worker from its JoinRequest to the end of the stream."""
        stream = SessionStream(context, pb.WorkerMessage)
        source = source_of(context.peer())
        try:
            self._membership.check_open()
            join_request = (await stream.first("join_request", "JoinRequest")).join_request
            if not join_request.HasField("resume"):
                check_room()
                self._sources.check_share(source)
            live, lease, outbox = await self._membership.enter(join_request, source)
        except ControllerError as exc:
            if isinstance(exc, SourceLimitError):
                self._sources.note_refused(source)
            if not isinstance(exc, ControllerStoppingError):
                _LOGGER.info("worker refused: %s", exc)
            await context.abort(exc.status, details(exc))
        reader = asyncio.create_task(
            stream.read(
                outbox,
                lambda message: self._has_left(live, lease, message),
                is_current=lambda: live.is_current(lease),
                job=live.name,
                caller=f"worker {lease.worker_id}",
                remedy="resume, or join again",
            )
        )
        try:
            await stream.write(outbox)
            # If the stream ends while the worker writes, messages may be lost that it has not read.
            await asyncio.wait((reader,), timeout=_LINGER_S)
        finally:
            # This must come before any await: gRPC may cancel this handler here once more.
            self._membership.stream_ended(live, lease, outbox)
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    async def ServeRows(  # noqa: N802
        self, request_iterator: object, context: RowContext
    ) -> None:
        """Serve one row server from its attachment to the end of the stream."""
        await self._row_streams.serve(context)

    def _has_left(self, live: LiveJob, lease: WorkerLease, message: pb.WorkerMessage) -> bool:
        """Handle one message; return whether it was the worker's last."""
        self._membership.heard(lease)
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
