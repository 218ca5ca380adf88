# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Streams of row servers: their messages become calls, and the answers messages."""

from __future__ import annotations

import asyncio
import logging

import grpc

from ...hostlib.control.session_api import session_pb2 as pb
from ..api.callers.source_calls import SourceCalls, source_of
from ..api.open_files import check_room
from ..api.printable import details
from ..api.session_stream import SessionStream
from ..errors import ControllerError, ControllerStoppingError, InvalidJobError, SourceLimitError
from ..jobs.membership import Membership
from .row_lease import RowLease

_LOGGER = logging.getLogger(__name__)

RowContext = grpc.aio.ServicerContext[pb.RowServerMessage, pb.RowControllerMessage]


class RowStreams:
    """Serves the streams of ServeRows."""

    def __init__(self, membership: Membership, sources: SourceCalls) -> None:
        self._membership = membership
        self._sources = sources

    async def serve(self, context: RowContext) -> None:
        """Serve one row server from its attachment to the end of the stream."""
        stream = SessionStream(context, pb.RowServerMessage)
        source = source_of(context.peer())
        try:
            self._membership.check_open()
            message = await stream.first("attach", "AttachRowServer")
            check_room()
            self._sources.check_share(source)
            lease, outbox = self._membership.attach_row_server(message.attach)
        except ControllerError as exc:
            if isinstance(exc, SourceLimitError):
                self._sources.note_refused(source)
            if not isinstance(exc, ControllerStoppingError):
                _LOGGER.info("row server refused: %s", exc)
            await context.abort(exc.status, details(exc))
        reader = asyncio.create_task(
            stream.read(
                outbox,
                lambda message: self._take(lease, message),
                is_current=lambda: self._membership.row_servers.is_current(lease),
                job=lease.job_name,
                caller=f"row server {lease.server_id}",
                remedy="attach again",
            )
        )
        try:
            await stream.write(outbox)
        finally:
            # This must come before any await: gRPC may cancel this handler here once more.
            self._membership.row_servers.stream_ended(lease, outbox)
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    def _take(self, lease: RowLease, message: pb.RowServerMessage) -> bool:
        """Handle a message; none is the last."""
        servers = self._membership.row_servers
        servers.heard(lease)
        if message.HasField("set_rows"):
            servers.set_rows(lease, message.set_rows)
        elif not message.HasField("heartbeat"):
            kind = message.WhichOneof("message")
            raise InvalidJobError(f"unexpected message {kind!r} of a row server")
        return False
