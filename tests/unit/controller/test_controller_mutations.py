# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Damaged and arbitrary requests to the session and operator APIs: a job goes on unharmed.

`CONTROLLER_MUTATIONS=1000000` tries more than the usual number of messages, and `.ci/run` tries
20,000; `CONTROLLER_SEED` repeats a run.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import resource
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc import StatusCode

from controller_fixtures import FakeWorker, fake_switch, make_config, serving
from fake_station import FakeStation, stations
from message_mutations import made_message, mutate_bytes, mutate_field
from switchfold.controller.listening import SERVICES
from switchfold.controller.transfers.transfer_config import TransferConfig
from switchfold.hostlib.control.session_api import session_pb2 as pb
from switchfold.hostlib.control.transfers_api import transfers_pb2
from switchfold.hostlib.slots.wire import WIRE_VERSION

COUNT: Final = int(os.environ.get("CONTROLLER_MUTATIONS", "2000"))
SEED: Final = int(os.environ.get("CONTROLLER_SEED", "1"))
PARTS: Final = 10
AT_ONCE: Final = 16
"""Calls that are open at the same time."""
DEADLINE_S: Final = 120.0
MAX_GROWTH_KIB: Final = 64 * 1024
METHODS: Final = {method.name: method for service in SERVICES for method in service.methods}
IMPROPER: Final = {
    *(StatusCode.UNKNOWN, StatusCode.INTERNAL, StatusCode.UNAVAILABLE, StatusCode.DATA_LOSS)
}
NEVER_ARRIVED: Final = "never arrived within"
"""By this text, DEADLINE_EXCEEDED is an answer: a job's other workers were waited for in vain."""
LIKELY: Final[dict[str, list[Any]]] = {
    "JoinRequest.job_name": [*("mutant", "other", "third") * 3, "calm"],
    "JoinRequest.worker_id": [*(0,) * 6, 1, 2],
    "JoinRequest.num_workers": [*(1,) * 6, 2, 3],
    "JoinRequest.wire_version": [WIRE_VERSION],
    "JoinRequest.values_per_packet": [0, 32],
    "JoinRequest.address": [*("10.0.0.2",) * 9, "10.0.0.1", "10.0.0.77"],
    "JoinRequest.mac": [*("", "02:00:00:00:00:02") * 4, "02:00:00:00:00:77"],
    "JoinRequest.udp_port": [5000, 5001, 5002],
    "JoinRequest.ingress_port": [*(2,) * 9, 1, 7],
    "JoinRequest.ingress_port_name": ["s1-eth2"],
    "JoinRequest.switch_name": [*("", "s1") * 4, "s9"],
    "JoinRequest.peer_address": [*("",) * 8, "10.0.0.2"],
    "JoinRequest.peer_port": [*(0,) * 8, 4000],
    "JoinRequest.weight": [1.0, 2.0],
    "JoinRequest.join_timeout_s": [0.05, 0.5],
    "JoinRequest.job_token": [*("",) * 8, "token"],
    "JoinRequest.path": [0, 1, 2],
    "AttachRowServer.job_name": ["mutant", "calm", "other"],
    "AttachRowServer.server_id": [0, 1],
    "AttachRowServer.wire_version": [WIRE_VERSION],
    "AttachRowServer.address": ["10.0.0.4"],
    "AttachRowServer.udp_port": [7000],
    "AttachRowServer.rows_wanted": [1, 64],
    "Register.job_name": [*("mutant", "other", "third") * 3, "still"],
    "Register.station_id": [*(0, 1, 2) * 3, 64],
    "Register.identity": [b"a" * 16, b"b" * 16],
    "Register.host": [*("h1", "h2") * 4, "h9"],
    "Register.job_token": [*("",) * 8, "token"],
    "Register.tau_max": [*(4,) * 8, 5],
    "Register.div_max": [*(2.0,) * 8, 3.0],
    "Register.version": [0, 7, 1 << 53],
    "Register.next_sequence": [0, 3, 1 << 53],
    "TransferRequested.transfer_id": [(11 << 32) + n for n in range(8)],
    "TransferRequested.server_id": [0, 0, 1, 70],
    "TransferRequested.size_bytes": [1, 1000, 1 << 40],
    "TransferRequested.version": [0, 0, 1, 7],
    "TransferRequested.norm": [0.0, 1.0],
    "TransferDelivered.worker_id": [0, 1],
    "TransferDelivered.transfer_id": [(11 << 32) + n for n in range(8)],
    "TransferWithdrawn.transfer_id": [(11 << 32) + n for n in range(8)],
    "UpdatesCommitted.version": [0, 1, 7],
    "RateObserved.transfer_id": [(11 << 32) + n for n in range(8)],
    "RateObserved.seconds": [0.0, 0.1],
    "ShowScheduleRequest.name": ["still", "mutant"],
    "ShowActivityRequest.name": ["calm", "mutant"],
    "ShowJobRequest.name": ["calm", "mutant"],
    "StopJobRequest.name": ["mutant", "other"],
    "ShowSwitchRequest.name": ["s1"],
    "ShowTreeRequest.name": ["calm", "mutant"],
    "SetLinkRequest.name": ["s1-s2"],
    "SetSwitchRequest.name": ["s9"],
}
"""Values by which many requests are valid, and none ends the calm job or takes its switch away."""


def streams() -> dict[str, tuple[type[Message], str]]:
    """Return the messages of methods with streams, and the kind of the first."""
    return {
        "Join": (pb.WorkerMessage, "join_request"),
        "ServeRows": (pb.RowServerMessage, "attach"),
        "FollowAsWorker": (transfers_pb2.StationMessage, "register"),
        "FollowAsServer": (transfers_pb2.StationMessage, "register"),
        "FollowAsReplica": (transfers_pb2.StationMessage, "register"),
    }


def made(kind: type[Message], rng: random.Random) -> bytes:
    """Return a message, half of the time with one or two fields or a few bytes changed."""
    message = made_message(kind, rng, LIKELY)
    chance = rng.random()
    if chance < 0.25:
        return mutate_bytes(message.SerializeToString(), rng)
    if chance < 0.5:
        for _ in range(rng.randint(1, 2)):
            mutate_field(message, rng)
    return message.SerializeToString()


def call_of(method: MethodDescriptor, rng: random.Random) -> list[bytes]:
    """Return the messages of one call."""
    if method.name not in streams():
        return [made(GetMessageClass(method.input_type), rng)]
    kind, first = streams()[method.name]
    begin = kind()
    field = kind.DESCRIPTOR.fields_by_name[first]
    getattr(begin, first).CopyFrom(made_message(GetMessageClass(field.message_type), rng, LIKELY))
    messages = [begin.SerializeToString() if rng.random() < 0.8 else made(kind, rng)]
    return messages + [made(kind, rng) for _ in range(rng.randrange(rng.choice((1, 8))))]


async def status_of(
    channel: Any, method: MethodDescriptor, messages: list[bytes]
) -> tuple[StatusCode, str]:
    """Call a method with these messages; return how it ended, or CANCELLED for one that stays.

    And the text with it.
    """
    path = f"/{method.containing_service.full_name}/{method.name}"
    if not method.client_streaming:
        call = channel.unary_unary(path)(messages[0], timeout=DEADLINE_S)
        return await call.code(), await call.details()
    call = channel.stream_stream(path)(timeout=DEADLINE_S)
    with suppress(asyncio.InvalidStateError, grpc.aio.AioRpcError, grpc.aio.InternalError):
        await call.wait_for_connection()
        for message in messages:
            # Not `write`: while a stream ends, it replaces the status by an error.
            await call._cython_call.send_serialized_message(message)
        await call.done_writing()
    # A worker that waits for others gets no answer before its deadline.
    reading = asyncio.ensure_future(_read_on(call))
    await asyncio.wait((reading,), timeout=0.2)
    call.cancel()
    await asyncio.wait((reading,))
    return await call.code(), await call.details()


async def _read_on(call: Any) -> None:
    with suppress(grpc.aio.AioRpcError, asyncio.CancelledError):
        while await call.read() is not grpc.aio.EOF:
            pass


def resident_kib() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() // 1024


@asynccontextmanager
async def calm_jobs(
    folder: Path,
) -> AsyncGenerator[tuple[str, FakeWorker, FakeStation, FakeStation]]:
    """Run a controller, a job with one worker, and one with live transfers.

    Yields the controller's address, the worker, and the other job's server and worker.
    """
    transfers = TransferConfig(lease_s=3600.0)  # its stations send no heartbeats
    async with (
        fake_switch() as fake,
        serving(make_config(folder, fake, transfers=transfers)) as server,
        stations(server.address, 1, job_name="still", job_token="secret") as (still, (sender,)),
    ):
        calm = await FakeWorker(server.address, 0, 1, job_name="calm").join()
        await calm.join_reply()
        yield server.address, calm, still, sender
        await calm.close()


async def push_one(server: FakeStation, sender: FakeStation, number: int) -> None:
    """Pass an update through a job that nobody may disturb."""
    await sender.push(sender.first_id + number, version=number)
    assert (await sender.granted()).sequence == number
    assert (await server.expected()).sequence == number
    await server.deliver(0, sender.first_id + number)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_requests_of_any_kind_leave_a_job_unharmed(tmp_path: Path) -> None:
    codes: Counter[str] = Counter()

    async def one(channel: Any, method: MethodDescriptor, messages: list[bytes]) -> int:
        status, text = await status_of(channel, method, messages)
        is_answer = status not in IMPROPER and (
            status is not StatusCode.DEADLINE_EXCEEDED or NEVER_ARRIVED in text
        )
        assert is_answer, (
            f"{method.name}: {status}: {text}: {[item.hex()[:2000] for item in messages]}"
        )
        codes[f"{method.name} {status.name}"] += 1
        return len(messages)

    async def scenario() -> None:
        rng, resident = random.Random(SEED), 0
        async with (
            calm_jobs(tmp_path) as (address, calm, still, sender),
            grpc.aio.insecure_channel(address) as to,
        ):
            for part in range(PARTS):
                num_sent = 0
                while num_sent < COUNT // PARTS:
                    chosen = [rng.choice(list(METHODS.values())) for _ in range(AT_ONCE)]
                    calls = [one(to, method, call_of(method, rng)) for method in chosen]
                    num_sent += sum(await asyncio.gather(*calls))
                await calm.send(barrier=pb.Barrier(name="b", use=part + 1))
                while not (await calm.receive()).HasField("barrier_released"):
                    pass  # views in which other jobs get slots
                await push_one(still, sender, part)
                gc.collect()
                if part == 1:  # by now, all code has run once
                    resident = resident_kib()
            print(dict(codes))
            assert resident_kib() - resident < MAX_GROWTH_KIB

    asyncio.run(scenario())
    methods = {name.split()[0] for name, count in codes.items() if "OK" in name and count}
    assert methods >= {"ShowController", "ListJobs", "ShowJob", "ListSwitches", "ShowSwitch"}
    assert "ShowSchedule" in methods
    assert {"Join INVALID_ARGUMENT", "ServeRows INVALID_ARGUMENT"} <= set(codes)
    assert {"FollowAsWorker INVALID_ARGUMENT", "FollowAsServer INVALID_ARGUMENT"} <= set(codes)
    assert {"FollowAsWorker OK", "FollowAsServer OK"} <= set(codes), "some mutants have registered"
    assert "FollowAsReplica INVALID_ARGUMENT" in codes
    assert codes["Join OK"] + codes["Join CANCELLED"], "no mutant has ever joined"
