# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Wraps every unary method: reads and checks its request, and turns errors into statuses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc
from google.protobuf.message import DecodeError, Message

from ..errors import ControllerError, InvalidJobError
from ..jobs.punctual_timer import within
from .printable import details
from .request_check import REQUEST_TIMEOUT_S, check_request


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

        async def call(_requests: object, context: Any) -> object:
            try:
                request = _decoded(await _only_message(context), handler.request_deserializer)
                check_request(request)
                return await handler.unary_unary(request, context)
            except ControllerError as exc:
                await context.abort(exc.status, details(exc))
                raise AssertionError("abort raises") from exc

        # For a unary handler, gRPC would wait for the request endlessly, before any check.
        make: Any = grpc.stream_unary_rpc_method_handler
        return make(
            call,
            request_deserializer=None,  # gRPC would log a traceback for each damaged request
            response_serializer=handler.response_serializer,
        )


async def _only_message(context: Any) -> bytes:
    try:
        data = await within(REQUEST_TIMEOUT_S, context.read())
    except TimeoutError as exc:
        raise InvalidJobError(
            f"no whole request within {REQUEST_TIMEOUT_S:g} s; send it at once"
        ) from exc
    if not isinstance(data, bytes):
        raise InvalidJobError("the call has no request; send one")
    return data


def _decoded(data: bytes, decode: Callable[[bytes], Message]) -> Message:
    try:
        return decode(data)
    except DecodeError as exc:
        raise InvalidJobError(
            f"the request cannot be read: {exc}; install the same release on its sender and on the "
            "controller"
        ) from exc
