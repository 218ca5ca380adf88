# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The service's methods as gRPC handlers that refuse requests which cannot be decoded.

Without them, gRPC would answer such a request with INTERNAL, log a traceback and keep memory.
"""

from collections.abc import Callable, Iterator
from typing import Any

import grpc
from finsy.proto import p4r, p4r_grpc
from google.protobuf.message import DecodeError, Message

SERVICE = "p4.v1.P4Runtime"
UNREADABLE = "the request's bytes are not the message that this method takes"


def generic_handler(servicer: p4r_grpc.P4RuntimeServicer) -> grpc.GenericRpcHandler:
    """Return the handler of all methods of the service."""
    unary: dict[str, tuple[type[Message], Callable[..., Any]]] = {
        "Write": (p4r.WriteRequest, servicer.Write),
        "SetForwardingPipelineConfig": (
            p4r.SetForwardingPipelineConfigRequest,
            servicer.SetForwardingPipelineConfig,
        ),
        "GetForwardingPipelineConfig": (
            p4r.GetForwardingPipelineConfigRequest,
            servicer.GetForwardingPipelineConfig,
        ),
        "Capabilities": (p4r.CapabilitiesRequest, servicer.Capabilities),
    }
    handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        name: grpc.unary_unary_rpc_method_handler(
            _checked(method),
            request_deserializer=_reader(kind),
            response_serializer=_serialize,
        )
        for name, (kind, method) in unary.items()
    }
    handlers["Read"] = grpc.unary_stream_rpc_method_handler(
        _checked_stream(servicer.Read),
        request_deserializer=_reader(p4r.ReadRequest),
        response_serializer=_serialize,
    )
    handlers["StreamChannel"] = grpc.stream_stream_rpc_method_handler(
        servicer.StreamChannel,
        request_deserializer=_reader(p4r.StreamMessageRequest),
        response_serializer=_serialize,
    )
    return grpc.method_handlers_generic_handler(SERVICE, handlers)


class Unreadable:
    """Stands for a request that cannot be decoded."""


def _reader(kind: type[Message]) -> Callable[[bytes], Message | Unreadable]:
    def read(data: bytes) -> Message | Unreadable:
        try:
            return kind.FromString(data)
        except DecodeError:
            return Unreadable()

    return read


def _serialize(message: Message) -> bytes:
    return message.SerializeToString()


def _checked(method: Callable[..., Any]) -> Callable[[Any, grpc.ServicerContext], Any]:
    def call(request: Any, context: grpc.ServicerContext) -> Any:
        if isinstance(request, Unreadable):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, UNREADABLE)
        return method(request, context)

    return call


def _checked_stream(
    method: Callable[..., Any],
) -> Callable[[Any, grpc.ServicerContext], Iterator[Any]]:
    def call(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        if isinstance(request, Unreadable):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, UNREADABLE)
        yield from method(request, context)

    return call
