# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Refuses calls of sources that have too many, before a message of them is read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from ....hostlib.credentials.grpc_guard import behaviour_of, with_behaviour
from ...errors import SourceLimitError
from .refusal_log import RefusalLog
from .source_calls import SourceCalls, source_of


class SourceGuard(grpc.aio.ServerInterceptor):
    """Counts every call of every service while it lasts.

    It stands behind the AccessGuard: calls that have no right to be there take nobody's share.
    """

    def __init__(self, sources: SourceCalls, log: RefusalLog) -> None:
        self._sources = sources
        self._log = log

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Return the method's handler with the count around it."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None  # gRPC answers UNIMPLEMENTED
        behaviour = behaviour_of(handler)

        async def answer(request: Any, context: Any) -> Any:
            source = source_of(context.peer())
            try:
                self._sources.enter(source)
            except SourceLimitError as exc:
                self._sources.note_refused(source)
                self._log.note(exc, context.peer())
                await context.abort(exc.status, str(exc))
            try:
                return await behaviour(request, context)
            finally:
                self._sources.leave(source)

        return with_behaviour(handler, answer)
