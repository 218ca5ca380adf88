# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A gRPC service for the counters of ports, which P4Runtime does not have.

Method `/softswitch.Ports/Statistics` takes google.protobuf.Empty and returns a
google.protobuf.Struct. The struct has an object for each port number, with the counters of
`Ports.statistics` that are not zero.
"""

from collections.abc import Callable, Mapping

import grpc
from google.protobuf import empty_pb2, struct_pb2

from .handlers import with_request

SERVICE = "softswitch.Ports"
Counters = Mapping[int, Mapping[str, int]]


def statistics_handler(read: Callable[[], Counters]) -> grpc.GenericRpcHandler:
    """Return the handler of the method."""

    def statistics(request: empty_pb2.Empty, context: grpc.ServicerContext) -> struct_pb2.Struct:
        del request, context
        reply = struct_pb2.Struct()
        for port, counters in read().items():
            reply.get_or_create_struct(str(port)).update(
                {name: count for name, count in counters.items() if count}
            )
        return reply

    method = grpc.stream_unary_rpc_method_handler(
        with_request(statistics),
        request_deserializer=empty_pb2.Empty.FromString,
        response_serializer=struct_pb2.Struct.SerializeToString,
    )
    return grpc.method_handlers_generic_handler(SERVICE, {"Statistics": method})
