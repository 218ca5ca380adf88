# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Transfer API server: one bidirectional stream per station."""

from __future__ import annotations

import asyncio
import logging

import grpc

from ...hostlib.control.transfers_api import transfers_pb2 as pb
from ...hostlib.control.transfers_api import transfers_pb2_grpc
from ..api.callers.source_calls import SourceCalls, source_of
from ..api.open_files import check_room
from ..api.printable import details
from ..api.session_stream import SessionStream
from ..errors import ControllerError, ControllerStoppingError, SourceLimitError
from .live_station import LiveStation, StationRole
from .transfer_jobs import TransferJobs

_LOGGER = logging.getLogger(__name__)

StationContext = grpc.aio.ServicerContext[pb.StationMessage, pb.SchedulerMessage]


class TransferService(transfers_pb2_grpc.TransfersServicer):
    """Turns stations' messages into calls of TransferJobs, and the answers into messages."""

    def __init__(self, jobs: TransferJobs, sources: SourceCalls) -> None:
        self._jobs = jobs
        self._sources = sources

    async def FollowAsWorker(  # noqa: N802
        self, request_iterator: object, context: StationContext
    ) -> None:
        """Serve one worker from its registration to the end of the stream."""
        await self._serve(context, StationRole.WORKER)

    async def FollowAsServer(  # noqa: N802
        self, request_iterator: object, context: StationContext
    ) -> None:
        """Serve one parameter server from its registration to the end of the stream."""
        await self._serve(context, StationRole.SERVER)

    async def FollowAsReplica(  # noqa: N802
        self, request_iterator: object, context: StationContext
    ) -> None:
        """Serve one replica of a server, which may become the server."""
        await self._serve(context, StationRole.REPLICA)

    async def _serve(self, context: StationContext, role: StationRole) -> None:
        stream = SessionStream(context, pb.StationMessage)
        source = source_of(context.peer())
        try:
            self._jobs.check_open()
            message = await stream.first("register", "Register")
            check_room()
            self._sources.check_share(source)
            station, outbox = self._jobs.register(role, message.register, source)
        except ControllerError as exc:
            if isinstance(exc, SourceLimitError):
                self._sources.note_refused(source)
            if not isinstance(exc, ControllerStoppingError):
                _LOGGER.info("station refused: %s", exc)
            await context.abort(exc.status, details(exc))
        reader = asyncio.create_task(
            stream.read(
                outbox,
                lambda message: self._take(station, message),
                is_current=lambda: station.is_carried_by(outbox),
                job=station.job_name,
                caller=str(station),
                remedy="register again",
            )
        )
        try:
            await stream.write(outbox)
        finally:
            # This must come before any await: gRPC may cancel this handler here once more.
            self._jobs.stream_ended(station, outbox)
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    def _take(self, station: LiveStation, message: pb.StationMessage) -> bool:
        """Handle a message; none is the last."""
        self._jobs.take(station, message)
        return False
