# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A row server that speaks the session API, driven by hand."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import grpc

from controller_fixtures import testbed_credentials
from switchfold.hostlib.control.session_api import session_pb2 as pb
from switchfold.hostlib.control.session_api import session_pb2_grpc
from switchfold.hostlib.credentials import Role, role_name
from switchfold.hostlib.credentials.grpc_channels import open_channel
from switchfold.hostlib.slots.wire import WIRE_VERSION


class FakeRowServer:
    """One stream of ServeRows."""

    def __init__(self, address: str, server_id: int = 0, /, **fields: Any) -> None:
        defaults: dict[str, Any] = {
            "job_name": "train",
            "server_id": server_id,
            "identity": bytes([server_id]) * 16,
            "wire_version": WIRE_VERSION,
            "address": f"10.0.0.{4 - server_id}",
            "udp_port": 6000 + server_id,
            "rows_wanted": 8,
        }
        self.request = pb.AttachRowServer(**(defaults | fields))
        self._channel: Any = open_channel(
            grpc.aio,
            address,
            credentials=testbed_credentials(address, Role.SERVER),
            server=role_name(Role.CONTROLLER),
        )
        stub: Any = session_pb2_grpc.SwitchfoldSessionStub(self._channel)
        self._call = stub.ServeRows()
        self._heart: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()

    async def attach(self) -> FakeRowServer:
        await self.send(attach=self.request)
        self._heart = asyncio.create_task(self._beat())
        return self

    async def send(self, **message: Any) -> None:
        """Send a message; one after the stream's end is lost."""
        data = pb.RowServerMessage(**message).SerializeToString()
        over = suppress(asyncio.InvalidStateError, grpc.aio.AioRpcError, grpc.aio.InternalError)
        async with self._writing:  # two writes at a time are an error in gRPC
            with over:
                await self._call.wait_for_connection()
                # Not `write`: while a stream ends, it replaces the status by an error.
                await self._call._cython_call.send_serialized_message(data)

    async def _beat(self) -> None:
        while not self._call.done():
            await asyncio.sleep(1.0)
            await self.send(heartbeat=pb.Heartbeat())

    async def set_rows(self, view: pb.RowView, number: int, *rows: tuple[int, int, int]) -> None:
        """Set rows of (row, epoch, exponent)."""
        await self.send(
            set_rows=pb.SetRows(
                generation=view.generation,
                number=number,
                rows=[row for row, _, _ in rows],
                epochs=[epoch for _, epoch, _ in rows],
                exponents=[exponent for _, _, exponent in rows],
            )
        )

    async def receive(self) -> pb.RowControllerMessage:
        """Return the next message; raises AioRpcError when the stream was refused."""
        message = await self._call.read()
        assert isinstance(message, pb.RowControllerMessage), "stream ended"
        return message

    async def view(self) -> pb.RowView:
        message = await self.receive()
        assert message.HasField("row_view"), message
        return message.row_view

    async def place(self) -> pb.RowView:
        """Return the first view that has rows for this server."""
        while not (view := await self.view()).num_rows:
            pass
        return view

    async def installed(self) -> tuple[int, int]:
        message = await self.receive()
        assert message.HasField("rows_installed"), message
        return message.rows_installed.generation, message.rows_installed.number

    async def refusal(self) -> tuple[grpc.StatusCode, str]:
        """Return the status that the stream ends with, whatever comes before it."""
        with suppress(grpc.aio.AioRpcError):
            while isinstance(await self._call.read(), pb.RowControllerMessage):
                pass
        return await self._call.code(), await self._call.details()

    async def close(self) -> None:
        """Break the connection."""
        if self._heart is not None:
            self._heart.cancel()
            await asyncio.gather(self._heart, return_exceptions=True)
        self._call.cancel()
        await self._channel.close()
