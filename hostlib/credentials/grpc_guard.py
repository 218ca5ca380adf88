# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""gRPC handlers with a check before them, of synchronous and asyncio servers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..control.grpc_seam import load_grpc
from ..errors import CallerRoleError, UnknownCallerError

_grpc = load_grpc()


def behaviour_of(handler: Any) -> Callable[..., Any]:
    """Return the function that answers a handler's calls."""
    kinds = (
        handler.unary_unary,
        handler.unary_stream,
        handler.stream_unary,
        handler.stream_stream,
    )
    return next(one for one in kinds if one is not None)


def with_behaviour(handler: Any, behaviour: Callable[..., Any]) -> Any:
    """Return a handler of the same kind whose calls `behaviour` answers."""
    kinds: dict[tuple[bool, bool], Callable[..., Any]] = {
        (False, False): _grpc.unary_unary_rpc_method_handler,
        (False, True): _grpc.unary_stream_rpc_method_handler,
        (True, False): _grpc.stream_unary_rpc_method_handler,
        (True, True): _grpc.stream_stream_rpc_method_handler,
    }
    return kinds[handler.request_streaming, handler.response_streaming](
        behaviour,
        request_deserializer=handler.request_deserializer,
        response_serializer=handler.response_serializer,
    )


def caller_status(error: UnknownCallerError | CallerRoleError) -> Any:
    """Return the gRPC status that a refused caller sees."""
    status = _grpc.StatusCode
    is_unknown = isinstance(error, UnknownCallerError)
    return status.UNAUTHENTICATED if is_unknown else status.PERMISSION_DENIED
