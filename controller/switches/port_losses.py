# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames that a switch's ports lost or refused, which no counter of the P4 program sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import grpc
from google.protobuf import empty_pb2, struct_pb2

from ...hostlib.credentials import Credentials, Role, role_name
from ...hostlib.credentials.grpc_channels import open_channel
from ..config import SwitchConfig
from .switch_call import unreachable_error

_METHOD: Final = "/softswitch.Ports/Statistics"
_TIMEOUT_S: Final = 10.0
_TRAFFIC: Final = frozenset(
    f"{direction}_{what}"
    for direction in ("rx", "tx")
    for what in ("packets", "bytes", "super_frames")
)


@dataclass(frozen=True, kw_only=True)
class PortLoss:
    """Frames that a port lost or refused for one cause."""

    port: int
    cause: str
    frames: int


async def read_port_losses(config: SwitchConfig) -> list[PortLoss] | None:
    """Return what the ports lost, by port and cause; None if the switch does not count it (BMv2).

    Raises SwitchUnreachableError.
    """
    channel: Any = open_channel(
        grpc.aio,
        config.address,
        credentials=None if config.credentials is None else Credentials(config.credentials),
        server=role_name(Role.SWITCH, config.name),
    )
    async with channel:
        method = channel.unary_unary(
            _METHOD,
            request_serializer=empty_pb2.Empty.SerializeToString,
            response_deserializer=struct_pb2.Struct.FromString,
        )
        try:
            reply: struct_pb2.Struct = await method(empty_pb2.Empty(), timeout=_TIMEOUT_S)
        except grpc.aio.AioRpcError as exc:
            if exc.code() is grpc.StatusCode.UNIMPLEMENTED:
                return None
            raise unreachable_error(config, f"{exc.code().name} {exc.details()}") from exc
    return [
        PortLoss(port=int(port), cause=cause, frames=int(count.number_value))
        for port, counters in sorted(reply.fields.items(), key=lambda item: int(item[0]))
        for cause, count in sorted(counters.struct_value.fields.items())
        if cause not in _TRAFFIC
    ]
