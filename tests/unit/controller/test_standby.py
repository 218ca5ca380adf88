# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A standby answers at once, names the leader, and workers and commands go there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from controller_fixtures import FakeWorker, fake_switch, make_config, run, serving
from switchfold.controller.__main__ import run as run_command
from switchfold.controller.api.operator_client import OperatorClient
from switchfold.controller.database.postgres_url import PostgresUrl
from switchfold.controller.errors import ControllerUnreachableError
from switchfold.controller.leadership.leader_lease import LeaderLease
from switchfold.controller.leadership.standby import Standby
from switchfold.hostlib.control.controller_link import GrpcControllerLink
from switchfold.hostlib.control.join_request import JoinRequest
from switchfold.hostlib.control.view import Endpoint
from switchfold.hostlib.errors import ControllerUnreachableError as WorkerUnreachableError
from switchfold.hostlib.options import SessionOptions

URL = PostgresUrl("postgresql://127.0.0.1:1/state")


def make_lease(leader: str) -> LeaderLease:
    lease = LeaderLease(URL, lease_s=5.0, least_term=10)
    lease.leader_address = leader
    return lease


@asynccontextmanager
async def started(standby: Standby) -> AsyncGenerator[str]:
    address = await standby.start()
    try:
        yield address
    finally:
        await standby.stop()


def request(**options: object) -> JoinRequest:
    return JoinRequest(
        job="train",
        worker_id=0,
        num_workers=1,
        local=Endpoint(address="10.0.0.1", mac="02:00:00:00:00:01", udp_port=5000),
        peers=("10.0.0.1", 4000),
        options=SessionOptions(ingress_port=1, **options),  # pyright: ignore[reportArgumentType]
    )


def test_callers_of_a_standby_get_to_the_leader(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    async def scenario() -> None:
        async with (
            fake_switch() as fake,
            serving(make_config(tmp_path, fake)) as leader,
            AsyncExitStack() as stack,
        ):
            standby = Standby(make_config(tmp_path, fake), make_lease(leader.address))
            address = await stack.enter_async_context(started(standby))
            worker = await FakeWorker(address, 0, 1).knock()
            code, details = await worker.refusal()
            assert code is grpc.StatusCode.UNAVAILABLE
            assert details == f"this controller is a standby; the leader is at {leader.address}"
            await worker.close()
            link = GrpcControllerLink(address, request())
            view = await asyncio.to_thread(link.join, 60.0)
            assert view.num_workers == 1
            words = ["job", "list", "--json", "--controller", address]
            assert await asyncio.to_thread(run_command, words) == 0
            assert '"train"' in capsys.readouterr().out
            await asyncio.to_thread(link.close)
            shown = await asyncio.to_thread(OperatorClient(address).show_controller)
            assert (shown.role, shown.leader) == ("standby", leader.address)
            shown = await asyncio.to_thread(OperatorClient(leader.address).show_controller)
            assert (shown.role, shown.term, list(shown.controllers)) == ("leader", 10, [])

    run(scenario())


def test_without_a_leader_callers_are_told(tmp_path: Path):
    async def scenario() -> None:
        async with fake_switch() as fake:
            standby = Standby(make_config(tmp_path, fake), make_lease(""))
            async with started(standby) as address:
                with pytest.raises(ControllerUnreachableError, match="standby; none leads"):
                    await asyncio.to_thread(OperatorClient(address).list_jobs)

    run(scenario())


class _Stopping(grpc.GenericRpcHandler):
    """Ends all calls as gRPC ends those that its server has not taken yet when it stops."""

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        name: str = handler_call_details.method  # pyright: ignore
        if name.endswith("/Join"):
            return _made(grpc.stream_stream_rpc_method_handler, self._drop)
        return _made(grpc.unary_unary_rpc_method_handler, self._drop)

    async def _drop(self, request: object, context: Any) -> None:
        await context.abort(grpc.StatusCode.CANCELLED, "CANCELLED")


def _made(make: Callable[..., Any], *arguments: Any) -> Any:
    return make(*arguments)


@asynccontextmanager
async def stopping_controller() -> AsyncGenerator[str]:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((_Stopping(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


def test_calls_that_a_stopping_controller_drops_have_no_controller():
    """Their callers are not told a bare CANCELLED as if somebody had refused them."""

    async def scenario() -> None:
        async with stopping_controller() as address:
            with pytest.raises(ControllerUnreachableError, match="no controller answers at"):
                await asyncio.to_thread(OperatorClient(address).show_controller)
            link = GrpcControllerLink(address, request())
            with pytest.raises(WorkerUnreachableError, match="CANCELLED"):
                await asyncio.to_thread(link.join, 60.0)
            await asyncio.to_thread(link.close)

    run(scenario())


def test_calls_go_on_to_another_when_a_controller_stops(tmp_path: Path):
    async def scenario() -> None:
        async with (
            fake_switch() as fake,
            serving(make_config(tmp_path, fake)) as leader,
            stopping_controller() as address,
        ):
            client = OperatorClient(f"{address}, {leader.address}")
            assert await asyncio.to_thread(client.list_jobs) == []
            assert client.address == leader.address

    run(scenario())


def test_commands_ask_the_addresses_in_turn(tmp_path: Path):
    async def scenario() -> None:
        async with fake_switch() as fake, serving(make_config(tmp_path, fake)) as leader:
            client = OperatorClient(f"127.0.0.1:1, {leader.address}")
            assert await asyncio.to_thread(client.list_jobs) == []
            assert client.address == leader.address
            link = GrpcControllerLink(f"127.0.0.1:1,{leader.address}", request())
            assert (await asyncio.to_thread(link.join, 60.0)).num_workers == 1
            await asyncio.to_thread(link.close)

    run(scenario())
