# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Stations that speak the transfer API, driven by hand."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc

from controller_fixtures import fake_switch, make_config, serving, testbed_credentials
from switchfold.controller.config import HostConfig, LinkConfig
from switchfold.controller.server import ControllerServer
from switchfold.controller.transfers.transfer_config import TransferConfig
from switchfold.hostlib.control.transfers_api import transfers_pb2 as pb
from switchfold.hostlib.control.transfers_api import transfers_pb2_grpc
from switchfold.hostlib.credentials import Role, role_name
from switchfold.hostlib.credentials.grpc_channels import open_channel
from switchfold.hostlib.credentials.tokens import token_metadata

UPDATE_BYTES = 12_500_000
"""1 s at 100 Mbit/s."""
PATIENT = dict.fromkeys(
    ("lease_s", "reconnect_grace_s", "overdue_least_s", "server_wait_s"), 3600.0
)
"""Nobody is lost and nothing is given up, however slow the machine is."""


class FakeStation:
    """One stream of a worker, on host h<id + 2>, or of a server, on h1; it sends no heartbeats.

    `follow` is another method than that of the role, such as FollowAsReplica.
    """

    def __init__(
        self, address: str, role: Role, station_id: int = 0, /, *, token: str = "", **fields: Any
    ) -> None:
        is_server = role is Role.SERVER
        follow = fields.pop("follow", "FollowAsServer" if is_server else "FollowAsWorker")
        defaults: dict[str, Any] = {
            "job_name": "train",
            "station_id": station_id,
            "identity": bytes([station_id]) * 16,
            "host": "h1" if is_server else f"h{station_id + 2}",
        }
        self.request = pb.Register(**(defaults | fields))
        self._channel: Any = open_channel(
            grpc.aio,
            address,
            credentials=testbed_credentials(address, role),
            server=role_name(Role.CONTROLLER),
        )
        stub: Any = transfers_pb2_grpc.TransfersStub(self._channel)
        self._call = getattr(stub, follow)(metadata=token_metadata(token))
        self._writing = asyncio.Lock()
        self.first_id = 0
        """Of a worker that has registered: of its next transfer."""

    async def register(self) -> pb.Registered:
        """Register; raises AioRpcError if that is refused."""
        await self.send(register=self.request)
        message = await self.receive()
        assert message.HasField("registered"), message
        self.first_id = message.registered.next_transfer_id
        return message.registered

    async def send(self, **message: Any) -> None:
        """Send a message; one after the stream's end is lost."""
        data = pb.StationMessage(**message).SerializeToString()
        over = suppress(asyncio.InvalidStateError, grpc.aio.AioRpcError, grpc.aio.InternalError)
        async with self._writing:  # two writes at a time are an error in gRPC
            with over:
                await self._call.wait_for_connection()
                # Not `write`: while a stream ends, it replaces the status by an error.
                await self._call._cython_call.send_serialized_message(data)

    async def receive(self) -> pb.SchedulerMessage:
        """Return the next message; raises AioRpcError when the stream was refused."""
        message = await self._call.read()
        assert isinstance(message, pb.SchedulerMessage), "stream ended"
        return message

    async def push(self, transfer_id: int, **fields: Any) -> None:
        """Ask for the transfer of an update; its id counts from 0."""
        defaults: dict[str, Any] = {"size_bytes": UPDATE_BYTES, "norm": 1.0}
        await self.send(
            requested=pb.TransferRequested(**(defaults | {"transfer_id": transfer_id} | fields))
        )

    async def granted(self) -> pb.TransferGranted:
        message = await self.receive()
        assert message.HasField("granted"), message
        return message.granted

    async def dropped(self) -> pb.TransferDropped:
        message = await self.receive()
        assert message.HasField("dropped"), message
        return message.dropped

    async def expected(self) -> pb.CommitExpected:
        message = await self.receive()
        assert message.HasField("expected"), message
        return message.expected

    async def skipped(self) -> int:
        message = await self.receive()
        assert message.HasField("skipped"), message
        return message.skipped.sequence

    async def deliver(self, worker_id: int, transfer_id: int, **fields: Any) -> None:
        """Report an update, by default a granted one."""
        values: dict[str, Any] = {
            "worker_id": worker_id,
            "transfer_id": transfer_id,
            "is_granted": True,
        }
        await self.send(delivered=pb.TransferDelivered(**(values | fields)))

    async def refusal(self) -> tuple[grpc.StatusCode, str]:
        """Return the status that the stream ends with, whatever comes before it."""
        with suppress(grpc.aio.AioRpcError):
            while isinstance(await self._call.read(), pb.SchedulerMessage):
                pass
        return await self._call.code(), await self._call.details()

    async def close(self) -> None:
        """Break the connection."""
        self._call.cancel()
        await self._channel.close()


@asynccontextmanager
async def stations(
    address: str, num_workers: int, /, *, version: int = 0, **fields: Any
) -> AsyncGenerator[tuple[FakeStation, list[FakeStation]]]:
    """Register a server and workers; yield (server, workers)."""
    async with AsyncExitStack() as stack:
        server = FakeStation(address, Role.SERVER, version=version, **fields)
        stack.push_async_callback(server.close)
        await server.register()
        workers: list[FakeStation] = []
        for number in range(num_workers):
            worker = FakeStation(address, Role.WORKER, number, **fields)
            stack.push_async_callback(worker.close)
            await worker.register()
            workers.append(worker)
        yield server, workers


@asynccontextmanager
async def transfer_controller(
    folder: Path,
    rates_mbit: Sequence[float | None] = (100,) * 8,
    /,
    *,
    num_switches: int = 1,
    **options: Any,
) -> AsyncGenerator[ControllerServer]:
    """Run a controller whose hosts h1, h2, ... at switch s1 have so many Mbit/s.

    `transfers` are options of transfers, whose waits are `PATIENT` by default. A second switch,
    s2, has as many further hosts, and one link to s1.
    """
    transfers = TransferConfig(**(PATIENT | options.pop("transfers", {})))
    async with AsyncExitStack() as stack:
        fakes = [await stack.enter_async_context(fake_switch()) for _ in range(num_switches)]
        config = make_config(folder, *fakes, transfers=transfers, **options)
        switches = tuple(
            dataclasses.replace(
                switch,
                service_address=f"10.0.255.{number}",
                hosts=_hosts(rates_mbit, number * len(rates_mbit)),
            )
            for number, switch in enumerate(config.switches)
        )
        links = tuple(
            LinkConfig(a="s1", a_port=100, b=switch.name, b_port=100) for switch in switches[1:]
        )
        config = dataclasses.replace(config, switches=switches, links=links)
        yield await stack.enter_async_context(serving(config))


async def refused_registration(folder: Path, role: Role, **place: Any) -> str:
    """Register station 1 with a place that nobody can reach; return why it is refused."""
    async with transfer_controller(folder) as controller:
        station = FakeStation(controller.address, role, 1, **place)
        await station.send(register=station.request)
        status, text = await station.refusal()
        assert status is grpc.StatusCode.INVALID_ARGUMENT
        await station.close()
        return text


def _hosts(rates_mbit: Sequence[float | None], before: int) -> tuple[HostConfig, ...]:
    return tuple(
        HostConfig(
            name=f"h{before + port}",
            port=port,
            address=f"10.0.{before}.{port}",
            mac=f"02:00:00:00:{before:02x}:{port:02x}",
            rate_bits_per_s=None if rate is None else round(rate * 1_000_000),
        )
        for port, rate in enumerate(rates_mbit, 1)
    )
