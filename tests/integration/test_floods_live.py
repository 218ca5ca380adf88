# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Floods of a controller and of a switch while a job sums: sums stay exact, memory is bounded.

The controller is a process with few files, so that a flood soon takes all that it may have.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from grpc import StatusCode

from flooding import (
    CALLS,
    HALF_OPEN,
    Closeable,
    Flood,
    ProcessMemory,
    Target,
    joining,
    slow_messages,
)
from live_testbed import DEADLINE_S, LiveTestbed
from loopback import LOOPBACK
from switchfold.bmv2_topos import Testbed, state
from switchfold.bmv2_topos.processes import daemons
from switchfold.bmv2_topos.processes.certificates import role_folder
from switchfold.bmv2_topos.processes.processes import read_records
from switchfold.controller.api import open_files
from switchfold.controller.api.request_check import MAX_MESSAGE_BYTES
from switchfold.hostlib.config import join_from_environment
from switchfold.hostlib.control.controller_link import JOIN_METHOD
from switchfold.hostlib.control.session_api import session_pb2 as pb
from switchfold.hostlib.credentials import Credentials, Role, role_name
from switchfold.hostlib.credentials.grpc_channels import open_channel
from switchfold.hostlib.credentials.tokens import token_metadata
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.session import Session
from switchfold.hostlib.slots.wire import WIRE_VERSION
from switchfold.softswitch.p4runtime.service import server as p4runtime
from time_bound import wait_until

WORKERS = 2
FILES = 300
"""What the controller may open."""
CONNECTION_BYTES = 200 << 10
"""Of a connection, at most, at a controller or switch; docs/security.md states it."""
CALL_BYTES = 32 << 10
"""Of a call, without its message."""
SLACK_BYTES = 16 << 20
"""For what the process does besides."""
STRANGER = "127.0.0.{}"
"""Where callers of a flood call from, if not from the workers' address: {} from 2 on."""
OF_ONE_SOURCE = 40
"""Less than the share of an address, which is a quarter of the controller's calls."""
NUMBERS = itertools.count()
WRITE = "/p4.v1.P4Runtime/Write"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveTestbed]:
    """A testbed whose controller listens at a TCP address and may open few files."""
    address, plain = f"{LOOPBACK}:7000", daemons.controller_command

    def command(config: Path) -> list[str]:
        return ["prlimit", f"--nofile={FILES}:{FILES}", *plain(config)]

    root: Path = tmp_path_factory.mktemp("r")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "records_directory", lambda: root)
        patch.setattr(Testbed, "controller_address", address)
        patch.setattr(daemons, "controller_command", command)
        with LiveTestbed(2 * WORKERS) as made:
            yield made


class Summing:
    """A job that sums one tensor after the other in a thread of its own, and checks each."""

    def __init__(self, sessions: Sequence[Session]) -> None:
        self._sessions = sessions
        self._count = 0
        self._is_stopping = False
        self._failures: list[BaseException] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._is_stopping:
                check_sum(self._sessions, self._count)
                self._count += 1
        except BaseException as error:
            self._failures.append(error)
            raise

    def go_on(self, count: int = 5) -> None:
        """Wait for so many more sums."""
        end = self._count + count
        wait_until(lambda: self._failures or self._count >= end, "sums")
        assert not self._failures

    def stop(self) -> None:
        self._is_stopping = True
        self._thread.join(DEADLINE_S)
        assert not self._failures


def check_sum(sessions: Sequence[Session], step: int) -> None:
    generator = np.random.default_rng(step)
    arrays = [generator.integers(-999, 999, 3000, np.int32) for _ in sessions]
    futures = [s.allreduce(a) for s, a in zip(sessions, arrays, strict=True)]
    for future in futures:
        np.testing.assert_array_equal(future.result(DEADLINE_S), np.sum(arrays, axis=0))
        assert future.num_contributors == WORKERS


@pytest.fixture(scope="module")
def calm(live: LiveTestbed) -> Iterator[Summing]:
    with running_job(live, "calm", range(WORKERS)) as sessions:
        summing = Summing(sessions)
        summing.go_on()
        yield summing
        summing.stop()


@pytest.fixture(scope="module", autouse=True)
def num_files(live: LiveTestbed, calm: Summing) -> int:
    """How many files the controller has open when only the job calls."""
    return ProcessMemory(pid_of(live, "controller")).num_files()


def pid_of(live: LiveTestbed, name: str) -> int:
    (record,) = (each for each in read_records(live.made.run_directory) if each.name == name)
    return record.pid


def join(live: LiveTestbed, host: int, worker_id: int, job: str) -> Session:
    variables = live.made.endpoint(host).environment(job) | {
        "SWITCHFOLD_WORKER_ID": str(worker_id),
        "SWITCHFOLD_NUM_WORKERS": str(WORKERS),
        "SWITCHFOLD_JOB_TOKEN": f"token-of-{job}",
    }
    return join_from_environment(SessionOptions(timeout_s=DEADLINE_S), variables=variables)


@contextmanager
def running_job(live: LiveTestbed, job: str, hosts: Sequence[int]) -> Generator[list[Session]]:
    with ExitStack() as stack, ThreadPoolExecutor(WORKERS) as pool:
        joins = [pool.submit(join, live, host, n, job) for n, host in enumerate(hosts)]
        yield [stack.enter_context(joined.result(DEADLINE_S)) for joined in joins]


def check_new_job(live: LiveTestbed) -> None:
    """Let new workers join and sum; tables of the switch change."""
    job = f"new-{next(NUMBERS)}"
    with running_job(live, job, range(WORKERS, 2 * WORKERS)) as sessions:
        check_sum(sessions, 0)


def controller_of(live: LiveTestbed, token: str = "") -> Target:
    return Target(
        live.made.controller_address,
        JOIN_METHOD,
        Credentials(role_folder(live.made.run_directory, Role.WORKER)),
        role_name(Role.CONTROLLER),
        token or live.made.endpoint(0).token,
    )


@pytest.mark.parametrize("caller", HALF_OPEN)
def test_half_open_connections_leave_the_controller_files_and_memory(
    live: LiveTestbed, calm: Summing, caller: Callable[[Target], Closeable]
) -> None:
    target = controller_of(live)
    memory = ProcessMemory(pid_of(live, "controller"))
    count = FILES + 50
    with Flood(caller, target, count) as flood:
        flood.add(count)
        assert memory.num_files() < FILES - open_files.OWN // 2
        calm.go_on()
        assert memory.growth() < FILES * CONNECTION_BYTES + SLACK_BYTES
    wait_until(lambda: memory.num_files() < FILES - open_files.RESERVED, "they are closed")
    check_new_job(live)
    calm.go_on()


def test_slow_messages_are_ended(live: LiveTestbed, calm: Summing) -> None:
    """They take the share of their address, and leave the workers theirs."""
    target, num_connections = replace(controller_of(live), source=STRANGER.format(2)), 2
    memory = ProcessMemory(pid_of(live, "controller"))
    with ExitStack() as stack:
        slow = [slow_messages(target) for _ in range(num_connections)]
        for connection in slow:
            stack.enter_context(connection)
            connection.sync()
        calm.go_on()
        check_new_job(live)
        for connection in slow:
            connection.finish(CALLS)
        said = b"".join(connection.said for connection in slow)
        assert b"no JoinRequest within 5 s; send it first on the stream" in said
        assert f"callers at {target.source} have".encode() in said
    num_calls = num_connections * CALLS
    assert memory.growth() < num_calls * (MAX_MESSAGE_BYTES + CALL_BYTES) + SLACK_BYTES
    calm.go_on()


def join_request(live: LiveTestbed, job: str, **fields: Any) -> bytes:
    """Return what a worker on the last host says first; its job waits for another worker."""
    request = pb.JoinRequest(
        job_name=job,
        num_workers=WORKERS,
        wire_version=WIRE_VERSION,
        address=live.made.topology.hosts[-1].address,
        udp_port=5000,
        lease_s=600.0,
        join_timeout_s=600.0,
        **fields,
    )
    return pb.WorkerMessage(join_request=request).SerializeToString()


def statuses(target: Target, messages: Sequence[bytes]) -> Counter[StatusCode]:
    """Join by each message at the same time, on connections of their own; return how they end."""

    async def one(message: bytes) -> StatusCode:
        async with open_channel(
            grpc.aio,
            target.address,
            credentials=target.credentials,
            server=target.server,
            options=(("grpc.use_local_subchannel_pool", 1),),
        ) as channel:
            call: Any = channel.stream_stream(target.method)(metadata=token_metadata(target.token))
            with suppress(grpc.aio.AioRpcError, grpc.aio.InternalError):
                await call.wait_for_connection()
                # Not `write`: while a stream ends, it replaces the status by an error.
                await call._cython_call.send_serialized_message(message)
            return await call.code()

    async def all_of_them() -> list[StatusCode]:
        async with asyncio.timeout(DEADLINE_S):
            return await asyncio.gather(*map(one, messages))

    return Counter(asyncio.run(all_of_them()))


def test_join_storm_ends_with_statuses(live: LiveTestbed, calm: Summing, num_files: int) -> None:
    target, num_callers = controller_of(live), 10
    memory = ProcessMemory(pid_of(live, "controller"))
    stranger = replace(target, token="guess")
    requests = [join_request(live, f"storm {number}") for number in range(num_callers)]
    assert statuses(stranger, requests) == {StatusCode.UNAUTHENTICATED: num_callers}
    wrong = [join_request(live, "calm", job_token="guess")] * num_callers
    assert statuses(target, wrong) == {StatusCode.PERMISSION_DENIED: num_callers}
    with ExitStack() as stack:
        # Some more, as a file may have been open for a moment when they were counted.
        for number in range(FILES - open_files.RESERVED - num_files + 10):
            message = join_request(live, f"waits {number}")
            source = STRANGER.format(2 + number // OF_ONE_SOURCE)
            stack.enter_context(joining(message)(replace(target, source=source))).sync()
        assert statuses(target, requests) == {StatusCode.RESOURCE_EXHAUSTED: num_callers}
        assert statuses(stranger, requests) == {StatusCode.UNAUTHENTICATED: num_callers}
        calm.go_on()
    assert memory.growth() < FILES * (CONNECTION_BYTES + CALL_BYTES) + SLACK_BYTES
    wait_until(lambda: memory.num_files() < FILES - open_files.RESERVED, "they are closed")
    check_new_job(live)
    calm.go_on()


def test_giant_messages_are_refused(live: LiveTestbed, calm: Summing) -> None:
    target, num_callers = controller_of(live), 50
    memory = ProcessMemory(pid_of(live, "controller"))
    name = "x" * (MAX_MESSAGE_BYTES - 200)
    almost, beyond = join_request(live, name), join_request(live, 4 * name)
    assert len(almost) < MAX_MESSAGE_BYTES < len(beyond)
    assert statuses(target, [almost] * num_callers) == {StatusCode.INVALID_ARGUMENT: num_callers}
    assert statuses(target, [beyond] * num_callers) == {StatusCode.RESOURCE_EXHAUSTED: num_callers}
    calm.go_on()
    call_bytes = MAX_MESSAGE_BYTES + CALL_BYTES
    assert memory.growth() < num_callers * (CONNECTION_BYTES + call_bytes) + SLACK_BYTES
    check_new_job(live)


def switch_of(live: LiveTestbed) -> Target:
    switch = live.made.switch
    return Target(
        live.made.switch_address,
        WRITE,
        live.made.switch_operator,
        role_name(Role.SWITCH, switch.name),
    )


@pytest.mark.parametrize("caller", HALF_OPEN)
def test_half_open_connections_leave_the_switch_memory(
    live: LiveTestbed, calm: Summing, caller: Callable[[Target], Closeable]
) -> None:
    target = switch_of(live)
    memory = ProcessMemory(pid_of(live, live.made.switch.name))
    num_files = memory.num_files()
    count = p4runtime.MAX_CONNECTIONS + 50
    with Flood(caller, target, count) as flood:
        flood.add(count)
        assert memory.num_files() <= num_files + p4runtime.MAX_CONNECTIONS
        calm.go_on()
        check_new_job(live)  # the controller's connection stands
    assert memory.growth() < p4runtime.MAX_CONNECTIONS * CONNECTION_BYTES + SLACK_BYTES


def test_giant_messages_are_refused_by_the_switch(live: LiveTestbed, calm: Summing) -> None:
    target, num_callers = switch_of(live), 8
    memory = ProcessMemory(pid_of(live, live.made.switch.name))
    messages = [bytes(p4runtime.MAX_MESSAGE_BYTES + 1)] * num_callers
    assert statuses(target, messages) == {StatusCode.RESOURCE_EXHAUSTED: num_callers}
    calm.go_on()
    call_bytes = p4runtime.UNREAD_BYTES + CALL_BYTES
    assert memory.growth() < num_callers * (CONNECTION_BYTES + call_bytes) + SLACK_BYTES
