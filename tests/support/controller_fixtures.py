# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A controller in front of fake switches, and workers that speak the session API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import grpc
import pytest

from fake_p4runtime import FakeP4Runtime
from fake_program import write_program
from loopback import LOOPBACK
from switchfold.bmv2_topos.processes.certificates import role_folder
from switchfold.bmv2_topos.processes.tokens import worker_token
from switchfold.controller.__main__ import run as run_command
from switchfold.controller.config import ControllerConfig, HostConfig, SwitchConfig
from switchfold.controller.server import ControllerServer
from switchfold.hostlib.control.session_api import session_pb2 as pb
from switchfold.hostlib.control.session_api import session_pb2_grpc
from switchfold.hostlib.credentials import Credentials, Role, role_name
from switchfold.hostlib.credentials.grpc_channels import open_channel
from switchfold.hostlib.credentials.tokens import token_metadata
from switchfold.hostlib.slots.wire import WIRE_VERSION

TEST_TIMEOUT_S = 240.0
"""Below pytest's limit, so that a scenario that hangs is cancelled and cleans up."""
_T = TypeVar("_T")

HOSTS = tuple(
    HostConfig(name=f"h{n}", port=n, address=f"10.0.0.{n}", mac=f"02:00:00:00:00:{n:02x}")
    for n in range(1, 5)
)


def run(scenario: Coroutine[Any, Any, _T]) -> _T:
    """Run a scenario with a deadline."""

    async def bounded() -> _T:
        async with asyncio.timeout(TEST_TIMEOUT_S):
            return await scenario

    return asyncio.run(bounded())


def make_config(folder: Path, *fakes: FakeP4Runtime, **options: Any) -> ControllerConfig:
    write_program(folder)
    switches = tuple(
        SwitchConfig(name=f"s{n}", address=fake.address, hosts=HOSTS if n == 1 else ())
        for n, fake in enumerate(fakes, 1)
    )
    defaults: dict[str, Any] = {
        "insecure": "credentials" not in options,
        "listen": f"{LOOPBACK}:0",
        "database": folder / "controller.sqlite3",
        "program_dir": folder,
        "lease_s": 30.0,
        "join_timeout_s": 60.0,
        "connect_timeout_s": 60.0,
        "reconcile_interval_s": 0.2,
    }
    return ControllerConfig(switches=switches, **(defaults | options))


@asynccontextmanager
async def fake_switch(**options: Any) -> AsyncGenerator[FakeP4Runtime]:
    fake = FakeP4Runtime(**options)
    await fake.start()
    try:
        yield fake
    finally:
        await fake.stop()


@asynccontextmanager
async def serving(config: ControllerConfig) -> AsyncGenerator[ControllerServer]:
    server = ControllerServer(config)
    async with server.serve():
        yield server


@asynccontextmanager
async def running_controller(
    folder: Path, **options: Any
) -> AsyncGenerator[tuple[ControllerServer, FakeP4Runtime]]:
    async with fake_switch() as fake, serving(make_config(folder, fake, **options)) as server:
        yield server, fake


class FakeWorker:
    """One session stream, driven by hand.

    It answers proposals and enters committed views by itself, as a worker without tensors would,
    unless `is_following` is False or its heartbeats are stopped.
    """

    def __init__(
        self,
        address: str,
        worker_id: int,
        num_workers: int = 2,
        /,
        *,
        is_following: bool = True,
        **fields: Any,
    ) -> None:
        defaults: dict[str, Any] = {
            "job_name": "train",
            "worker_id": worker_id,
            "num_workers": num_workers,
            "wire_version": WIRE_VERSION,
            "address": f"10.0.0.{worker_id + 1}",
            "udp_port": 5000 + worker_id,
        }
        token = fields.pop("token", "") or _testbed_token(address)
        self.join_request = pb.JoinRequest(**(defaults | fields))
        self._channel: Any = open_channel(
            grpc.aio,
            address,
            credentials=testbed_credentials(address, Role.WORKER),
            server=role_name(Role.CONTROLLER),
        )
        stub: Any = session_pb2_grpc.SwitchfoldSessionStub(self._channel)
        self._call = stub.Join(metadata=token_metadata(token))
        self._heart: asyncio.Task[None] | None = None
        self._reader: asyncio.Task[None] | None = None
        self._messages: asyncio.Queue[pb.ControllerMessage | grpc.aio.AioRpcError | None] = (
            asyncio.Queue()  # None: the stream's end
        )
        self._is_following = is_following
        self._is_beating = True
        self._writing = asyncio.Lock()

    async def join(self) -> FakeWorker:
        await self.knock()
        self._heart = asyncio.create_task(self._beat())
        return self

    async def knock(self) -> FakeWorker:
        """Send a JoinRequest, and no heartbeats; `refusal` says if the stream had ended before."""
        self._reader = asyncio.create_task(self._read())
        with suppress(asyncio.InvalidStateError):
            await self.send(join_request=self.join_request)
        return self

    async def send(self, **message: Any) -> None:
        """Send a message; raises InvalidStateError where the stream has ended."""
        await self.send_bytes(pb.WorkerMessage(**message).SerializeToString())

    async def send_bytes(self, data: bytes) -> None:
        """Send what may be no message, as `send` does."""
        call: Any = self._call
        async with self._writing:  # two writes at a time are an error in gRPC
            if not call.done():
                with suppress(grpc.aio.AioRpcError):  # refused meanwhile: it is done then
                    await call.wait_for_connection()
            if call.done():
                raise asyncio.InvalidStateError("the stream has ended")
            try:
                # Not `write`: while a stream ends, it replaces the status by an error.
                await call._cython_call.send_serialized_message(data)
            except grpc.aio.InternalError as exc:
                raise asyncio.InvalidStateError("the stream has ended") from exc

    async def receive(self) -> pb.ControllerMessage:
        """Return the next message; raises AioRpcError when the stream was refused."""
        message = await self._next()
        assert isinstance(message, pb.ControllerMessage), "stream ended"
        return message

    async def is_at_end(self) -> bool:
        return not isinstance(await self._next(), pb.ControllerMessage)

    async def _next(self) -> pb.ControllerMessage | None:
        if self._reader is None:  # it has not joined
            self._reader = asyncio.create_task(self._read())
        message = await self._messages.get()
        if not isinstance(message, pb.ControllerMessage):
            self._messages.put_nowait(message)  # later readers get the end, too
        if isinstance(message, grpc.aio.AioRpcError):
            raise message
        return message

    async def _read(self) -> None:
        try:
            while isinstance(message := await self._call.read(), pb.ControllerMessage):
                with suppress(asyncio.InvalidStateError):  # the stream's end tells more
                    await self._take(message)
            self._messages.put_nowait(None)
        except grpc.aio.AioRpcError as error:
            self._messages.put_nowait(error)

    async def _take(self, message: pb.ControllerMessage) -> None:
        is_following = self._is_following and self._is_beating
        if is_following and message.HasField("view_proposal"):
            generation = message.view_proposal.generation
            await self.send(view_ready=pb.ViewReady(generation=generation))
        elif is_following and message.HasField("view_commit"):
            generation = message.view_commit.view.generation
            await self.send(view_entered=pb.ViewEntered(generation=generation))
        else:
            self._messages.put_nowait(message)

    async def join_reply(self) -> pb.JoinReply:
        message = await self.receive()
        assert message.HasField("join_reply"), message
        return message.join_reply

    async def refusal(self) -> tuple[grpc.StatusCode, str]:
        """Return the status that the stream ends with."""
        with suppress(grpc.aio.AioRpcError):
            await self._next()
        return await self._call.code(), await self._call.details()

    def hold_heart(self) -> None:
        """Stop the heartbeats, but not during a write: that would cancel the call."""
        self._is_beating = False

    async def close(self) -> None:
        """Break the connection."""
        tasks = [task for task in (self._heart, self._reader) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._call.cancel()
        await self._channel.close()

    async def _beat(self) -> None:
        sequence = 0
        while not self._call.done():
            await asyncio.sleep(0.2)
            if not self._is_beating:
                return
            sequence += 1
            try:
                await self.send(heartbeat=pb.Heartbeat(sequence=sequence))
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                return


def silence(server: ControllerServer, worker: FakeWorker, lease_s: float = 0.3) -> None:
    """Stop a worker's heartbeats, and shorten its lease alone: no other worker may be late."""
    worker.hold_heart()
    live = server.membership.live_job(worker.join_request.job_name)
    assert live is not None
    lease = live.leases[worker.join_request.worker_id]
    lease._lease_s = lease_s  # a beat on its way would renew it
    lease.renew(lease_s)


async def join_all(address: str, num_workers: int = 2, /, **fields: Any) -> list[FakeWorker]:
    """Start all workers of a job."""
    return [
        await FakeWorker(address, worker_id, num_workers, **fields).join()
        for worker_id in range(num_workers)
    ]


async def resume_all(address: str, join_replies: Sequence[pb.JoinReply], /) -> list[FakeWorker]:
    """Bring all workers of a job back, by the join replies that they got."""
    num_workers = len(join_replies)
    return [
        await FakeWorker(address, worker_id, num_workers, resume=resume_of(join_reply)).join()
        for worker_id, join_reply in enumerate(join_replies)
    ]


def resume_of(join_reply: pb.JoinReply) -> pb.Resume:
    """Return the Resume with which the worker that got this join reply comes back."""
    return pb.Resume(
        job_number=join_reply.job_number,
        generation=join_reply.view.generation,
        secret=join_reply.resume_secret,
    )


def testbed_credentials(address: str, role: Role) -> Credentials | None:
    """Return the credentials of the testbed whose controller listens there, None for others."""
    folder = role_folder(Path(address.removeprefix("unix:")).parent, role)
    return Credentials(folder) if folder.is_dir() else None


def _testbed_token(address: str) -> str:
    """Return the token of the testbed whose controller listens there, "" for others."""
    return worker_token(Path(address.removeprefix("unix:")).parent)


@pytest.fixture
def command(
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., Coroutine[Any, Any, tuple[int, str, str]]]:
    """Run a command line beside the event loop; return (exit code, stdout, stderr)."""

    async def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = await asyncio.to_thread(run_command, list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call
