# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Wraps every unary method: checks its request, and turns typed errors into statuses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

import grpc
from google.protobuf.message import Message

from ..errors import ControllerError
from .printable import details
from .request_check import check_request


class RequestGuard(grpc.aio.ServerInterceptor):
    """Passes only checked requests to services, and lets services raise ControllerErrors.

    The service of a stream checks the stream's messages as it reads them.
    """

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Return the method's handler with checks around it."""
        handler = await continuation(handler_call_details)
        if handler is None or handler.unary_unary is None:
            return handler

        async def call(request: Message, context: Any) -> object:
            try:
                check_request(request)
                return await handler.unary_unary(request, context)
            except ControllerError as exc:
                await context.abort(exc.status, details(exc))
                raise AssertionError("abort raises") from exc

        return grpc.unary_unary_rpc_method_handler(
            cast("Any", call),
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )
