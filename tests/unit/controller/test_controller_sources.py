# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Callers of one address leave calls and waiting jobs for those of others."""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode

from controller_fixtures import (
    TEST_TIMEOUT_S,
    FakeWorker,
    command,
    resume_of,
    run,
    running_controller,
)
from flooding import Target, joining
from http2_calls import END_HEADERS, HEADERS, Http2Connection, frame, header_block
from switchfold.controller.api.callers.source_calls import (
    MOST_CALLS,
    SourceCalls,
    SourceCount,
    default_share,
    source_of,
)
from switchfold.controller.api.operator_client import OperatorClient
from switchfold.controller.errors import SourceLimitError
from switchfold.hostlib.control.controller_link import JOIN_METHOD
from switchfold.hostlib.control.session_api import session_pb2 as pb
from switchfold.hostlib.slots.wire import WIRE_VERSION
from time_bound import until

__all__ = ["command"]
OTHER = "127.0.0.2"
"""Where strangers call from; workers call from 127.0.0.1."""


@pytest.mark.parametrize(
    ("peer", "source"),
    [
        ("ipv4:10.0.0.1:4242", "10.0.0.1"),
        ("ipv6:%5B2001:db8:0:7::9%5D:4242", "2001:db8:0:7::/64"),
        ("ipv6:[2001:db8:0:7:1::]:4242", "2001:db8:0:7::/64"),
        ("ipv6:[::ffff:10.0.0.1]:4242", "10.0.0.1"),
        ("ipv6:%5Bfe80::1%25eth0%5D:4242", "fe80::/64"),
        ("ipv6:%5B::1%5D:4242", "::1"),
        ("unix:", ""),
        ("unix:/run/controller.sock", ""),
    ],
)
def test_source_of_a_peer(peer: str, source: str):
    assert source_of(peer) == source


def test_share_leaves_room_for_others():
    assert default_share(1_000_000) == MOST_CALLS >= 16 * 64
    assert [default_share(count) for count in (1, 7, 1000)] == [1, 1, 250]


def test_a_source_takes_its_share_and_nobody_elses():
    sources = SourceCalls(2)
    for _ in range(2):
        sources.enter("a")
        sources.check_share("a")
    sources.enter("a")
    with pytest.raises(SourceLimitError, match="at a have 2 calls or more under way"):
        sources.check_share("a")
    sources.enter("a")  # for those that resume
    with pytest.raises(SourceLimitError, match=r"4 calls .* raise max_calls_per_source \(2\)"):
        sources.enter("a")
    sources.enter("b")
    sources.check_share("b")
    for _ in range(4):
        sources.leave("a")
    sources.enter("a")
    sources.check_share("a")


def test_callers_of_a_unix_socket_have_no_limit():
    sources = SourceCalls(1)
    for _ in range(10):
        sources.enter("")
        sources.check_share("")
    assert not sources.counts(10)


def test_refusals_are_counted_for_the_last_sources_alone():
    sources = SourceCalls(1)
    sources.enter("busy")
    for number in range(1000):
        sources.note_refused(f"stranger {number}")
        sources.note_refused("worst")
    counts = sources.counts(1000)
    assert counts[0] == SourceCount("worst", 0, 1000)
    assert counts[-1] == SourceCount("busy", 1, 0)
    assert len(counts) < 300


def slow_calls(address: str, method: str, count: int, source: str) -> Http2Connection:
    """Make calls without a message."""
    connection = Http2Connection(address, TEST_TIMEOUT_S, source=source)
    for stream in range(1, 2 * count, 2):
        connection.send(frame(HEADERS, END_HEADERS, stream, header_block(method)))
    return connection


@pytest.mark.parametrize("method", [JOIN_METHOD, "/switchfold.operator.v1.Operator/ListJobs"])
def test_flood_of_one_address_leaves_calls_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
):
    for name in ("request_guard", "session_stream"):
        monkeypatch.setattr(f"switchfold.controller.api.{name}.REQUEST_TIMEOUT_S", 600.0)
    share, num_calls = 3, 20

    async def scenario() -> None:
        async with running_controller(tmp_path, max_calls_per_source=share) as (server, _):
            client = OperatorClient(server.address)
            with slow_calls(server.address, method, num_calls, OTHER) as flood:
                await asyncio.to_thread(flood.finish, num_calls - 2 * share)
                assert f"callers at {OTHER} have".encode() in flood.said
                assert b"raise max_calls_per_source (3) of the controller" in flood.said
                members = [await FakeWorker(server.address, n).join() for n in range(2)]
                for member in members:
                    await member.join_reply()
                shown = await asyncio.to_thread(client.show_controller)
                assert shown.calls_per_source == share
                told = [(each.source, each.calls, each.refused) for each in shown.sources]
                assert told == [
                    (OTHER, 2 * share, num_calls - 2 * share),
                    ("127.0.0.1", 3, 0),  # with this call
                ]
            for member in members:
                await member.close()

    run(scenario())


def test_new_workers_beyond_the_share_are_refused_and_others_resume(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path, max_calls_per_source=2) as (server, _):
            members = [await FakeWorker(server.address, n).join() for n in range(2)]
            replies = [await member.join_reply() for member in members]
            one_more = await FakeWorker(server.address, 2, is_joining=True).knock()
            code, told = await one_more.refusal()
            assert code is StatusCode.RESOURCE_EXHAUSTED
            assert "callers at 127.0.0.1 have 2 calls or more under way" in told
            sources = server._endpoint.sources
            await until(lambda: [each.calls for each in sources.counts(2)] == [2])
            # The controller has not noticed yet that the streams before are broken.
            back = [
                await FakeWorker(server.address, n, resume=resume_of(reply)).join()
                for n, reply in enumerate(replies)
            ]
            for member, reply in zip(back, replies, strict=True):
                assert (await member.join_reply()).view == reply.view
            for worker in (*members, one_more, *back):
                await worker.close()

    run(scenario())


def waiting(address: str, job: str, source: str) -> Http2Connection:
    """Open a job that waits for another worker."""
    request = pb.JoinRequest(
        job_name=job,
        num_workers=2,
        wire_version=WIRE_VERSION,
        address="10.0.0.1",
        udp_port=5000,
    )
    message = pb.WorkerMessage(join_request=request).SerializeToString()
    return joining(message)(Target(address, JOIN_METHOD, source=source))


def test_jobs_of_one_address_that_wait_leave_others_room_to_wait(tmp_path: Path, command: Any):
    async def scenario() -> None:
        async with running_controller(tmp_path, max_waiting_jobs=6) as (server, _):
            with ExitStack() as stack:
                for number in range(3):
                    stack.enter_context(waiting(server.address, f"stranger {number}", OTHER))
                # Each has a connection of its own, so the last one may be read first.
                await until(
                    lambda: all(server.membership.live_job(f"stranger {n}") for n in range(3))
                )
                refused = stack.enter_context(waiting(server.address, "stranger 3", OTHER))
                await asyncio.to_thread(refused.finish, 1)
                assert f"3 jobs of callers at {OTHER} wait".encode() in refused.said
                members = [
                    await FakeWorker(server.address, 0, job_name=f"own {n}").join()
                    for n in range(3)
                ]
                members.append(await FakeWorker(server.address, 1, job_name="own 2").join())
                await members[-1].join_reply()
                asked = ("doctor", "--json", "--controller", server.address)
                _, out, _ = await command(*asked)
                (check,) = (each for each in json.loads(out)["checks"] if each["name"] == "callers")
                assert check["status"] == "warn"
                assert f"1 of {OTHER}, which has 3 now" in check["text"]
            for worker in members:
                await worker.close()

    run(scenario())
