# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a controller answers that does not lead: who does, and how things are with itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

from ...hostlib.control.controller_addresses import LEADER_METADATA
from ..api.operator_api import operator_pb2 as pb
from ..config import ControllerConfig
from ..listening import SERVICES, ApiListener
from .leader_lease import LeaderLease


class Standby:
    """Serves the controller's address until it takes the lease."""

    def __init__(self, config: ControllerConfig, lease: LeaderLease) -> None:
        self._config = config
        self._lease = lease
        self.database_error = ""
        """Why the lease could not be looked at the last time."""
        self._server: grpc.aio.Server | None = None

    async def start(self) -> str:
        """Listen if it does not yet, and return the address with the port that was taken."""
        if self._server is None:
            self._server, address = await ApiListener(self._config).listen(
                lambda server: server.add_generic_rpc_handlers((_Handlers(self),))
            )
            self._config = dataclasses.replace(self._config, listen=address)
        return self._config.listen

    async def stop(self) -> None:
        """Make room for the leader's services."""
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    def shown(self) -> pb.Controller:
        """Return the state of this controller."""
        return pb.Controller(
            database=str(self._config.database),
            database_error=self.database_error,
            role="standby",
            leader=self._lease.leader_address,
            controllers=self._lease.controllers,
        )

    async def refuse(self, context: Any) -> None:
        """End a call with the status that names the leader."""
        leader = self._lease.leader_address
        text = f"the leader is at {leader}" if leader else "none leads at the moment"
        await context.abort(
            grpc.StatusCode.UNAVAILABLE,
            f"this controller is a standby; {text}",
            trailing_metadata=((LEADER_METADATA, leader.encode()),),
        )


class _Handlers(grpc.GenericRpcHandler):
    """Answers ShowController, and refuses all other methods of a leader."""

    def __init__(self, standby: Standby) -> None:
        self._standby = standby
        self._methods = {
            f"/{service.full_name}/{method.name}": method
            for service in SERVICES
            for method in service.methods
        }

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Return the handler of a method; None if a leader does not know it either."""
        name: str = handler_call_details.method  # pyright: ignore
        method = self._methods.get(name)
        return None if method is None else self._handler(method)

    def _handler(self, method: MethodDescriptor) -> Any:
        if method.client_streaming:
            return _made(grpc.stream_stream_rpc_method_handler, self._stream)
        is_shown = method.full_name == "switchfold.operator.v1.Operator.ShowController"
        return _made(
            grpc.unary_unary_rpc_method_handler,
            self._show if is_shown else self._unary,
            request_deserializer=GetMessageClass(method.input_type).FromString,
            response_serializer=pb.Controller.SerializeToString,
        )

    async def _show(self, request: object, context: object) -> pb.Controller:
        return self._standby.shown()

    async def _unary(self, request: object, context: object) -> pb.Controller:
        await self._standby.refuse(context)
        raise AssertionError("abort raises")

    async def _stream(self, requests: object, context: object) -> None:
        await self._standby.refuse(context)


def _made(make: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    return make(*arguments, **options)
