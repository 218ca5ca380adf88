# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The service's methods as gRPC handlers that read their requests themselves.

gRPC would read a unary request before anything is checked, and wait for it endlessly. It would
answer one that cannot be decoded with INTERNAL, log a traceback and keep memory.
"""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import grpc
from finsy.proto import p4r, p4r_grpc
from google.protobuf.message import DecodeError, Message

SERVICE = "p4.v1.P4Runtime"
UNREADABLE = "the request's bytes are not the message that this method takes"
REQUEST_TIMEOUT_S = 60.0
"""A call is cancelled if its request is not complete by then; the largest one needs 9 Mbit/s."""


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
        name: grpc.stream_unary_rpc_method_handler(
            with_request(method),
            request_deserializer=_reader(kind),
            response_serializer=_serialize,
        )
        for name, (kind, method) in unary.items()
    }
    handlers["Read"] = grpc.stream_stream_rpc_method_handler(
        with_request(servicer.Read),
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


def with_request(
    method: Callable[..., Any],
) -> Callable[[Iterator[Any], grpc.ServicerContext], Any]:
    """Return the behaviour of a handler with streams of requests: a method that takes just one."""

    def call(requests: Iterator[Any], context: grpc.ServicerContext) -> Any:
        late = threading.Timer(REQUEST_TIMEOUT_S, context.cancel)
        late.start()
        try:
            request = next(requests, Unreadable())
        finally:
            late.cancel()
        if isinstance(request, Unreadable):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, UNREADABLE)
        return method(request, context)

    return call
