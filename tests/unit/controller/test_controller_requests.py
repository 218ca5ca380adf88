# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Requests to a controller: every field is checked, and no text reaches a terminal unescaped."""

from __future__ import annotations

import asyncio
import dataclasses
import io
import logging
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc import StatusCode

from controller_fixtures import (
    HOSTS,
    FakeWorker,
    join_all,
    run,
    running_controller,
    silence,
)
from switchfold.controller.__main__ import run as run_command
from switchfold.controller.api.operator_api import operator_pb2
from switchfold.controller.api.operator_client import OperatorClient
from switchfold.controller.api.printable import details, quoted
from switchfold.controller.api.request_check import (
    MAX_MESSAGE_BYTES,
    RANGES,
    SECRET_TEXTS,
    check_request,
)
from switchfold.controller.cli.output import print_table
from switchfold.controller.config import ControllerConfig, HostConfig, LinkConfig, SwitchConfig
from switchfold.controller.errors import InvalidJobError
from switchfold.controller.jobs.barriers import MAX_WAITING, Barriers
from switchfold.controller.jobs.job import Worker
from switchfold.controller.jobs.worker_place import check_peers, check_place
from switchfold.controller.listening import SERVICES
from switchfold.hostlib.control.session_api import session_pb2 as pb
from switchfold.hostlib.control.session_api import session_pb2_grpc
from switchfold.hostlib.credentials.tokens import MAX_TOKEN_LENGTH, token_metadata
from switchfold.hostlib.observing.logs import EscapingFormatter, escaped

HOSTILE = ("\x1b[2J", "a\nb", "a\0b", "\x9b31m", "\u202egnp", "n" * 256)
_NUMBERS = {
    FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64,
    FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64,
    FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT,
}  # fmt: skip
REQUESTS = [method.input_type for service in SERVICES for method in service.methods]


def fields_of(message: Descriptor) -> Iterator[FieldDescriptor]:
    """Yield all fields of a request, those of its parts too."""
    for field in message.fields:
        if field.message_type is not None:
            yield from fields_of(field.message_type)
        else:
            yield field


def name_of(field: FieldDescriptor) -> str:
    return f"{message_of(field).name}.{field.name}"


def message_of(field: FieldDescriptor) -> Descriptor:
    assert field.containing_type is not None
    return field.containing_type


FIELDS = {name_of(field): field for request in REQUESTS for field in fields_of(request)}


def with_value(field: FieldDescriptor, value: object) -> Message:
    """Return a message with one field set."""
    message = GetMessageClass(message_of(field))()
    if field.is_repeated:
        getattr(message, field.name).append(value)
    else:
        setattr(message, field.name, value)
    return message


def test_every_number_of_every_request_has_a_range():
    numbers = {name for name, field in FIELDS.items() if field.cpp_type in _NUMBERS}
    assert numbers == set(RANGES), "a new field needs a line in RANGES, a gone one none"


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_every_field_refuses_invalid_values(name: str):
    field = FIELDS[name]
    bad: list[object] = []
    if name in SECRET_TEXTS:
        bad = [*HOSTILE[:-1], "two words", "Schlüssel", "n" * (MAX_TOKEN_LENGTH + 1)]
    elif field.type == FieldDescriptor.TYPE_STRING:
        bad = list(HOSTILE)
    elif field.type == FieldDescriptor.TYPE_BYTES:
        bad = [bytes(65)]
    elif field.type == FieldDescriptor.TYPE_ENUM:
        bad = [77]
    elif (allowed := RANGES.get(name)) is not None:
        bad = [int(allowed[1]) + 1]
        if field.cpp_type == FieldDescriptor.CPPTYPE_DOUBLE:
            above = math.nextafter(float(allowed[1]), math.inf)
            bad = [above, float("nan"), float("inf"), -1.0]
    for value in bad:
        with pytest.raises(InvalidJobError, match=name) as refusal:
            check_request(with_value(field, value))
        assert str(refusal.value).isprintable()
        assert len(str(refusal.value)) < 300
        assert name not in SECRET_TEXTS or str(value) not in str(refusal.value)


def test_every_token_of_a_request_is_a_secret_text():
    assert {name for name in FIELDS if name.endswith("token")} == SECRET_TEXTS
    longest = "n" * MAX_TOKEN_LENGTH
    check_request(pb.JoinRequest(job_token=longest, udp_port=5000))
    check_request(pb.AttachRowServer(job_token=longest, udp_port=5000, rows_wanted=1))


def test_list_that_is_too_long():
    with pytest.raises(InvalidJobError, match=r"Stalled.missing_workers has 65536 items"):
        check_request(pb.WorkerMessage(stalled=pb.Stalled(missing_workers=range(65536))))
    most = pb.WorkerMessage(stalled=pb.Stalled(missing_workers=range(65535)))
    check_request(most)
    assert most.ByteSize() < MAX_MESSAGE_BYTES


CONFIG = ControllerConfig(
    switches=(
        SwitchConfig(name="s1", address="127.0.0.1:1", hosts=HOSTS, service_address="10.0.255.1"),
        SwitchConfig(name="s2", address="127.0.0.1:2", service_address="10.0.255.2"),
        SwitchConfig(
            name="s3", address="127.0.0.1:3", service_address="10.0.255.3",
            hosts=(HostConfig(name="lo", port=1, address="127.0.0.9", mac="02:00:00:00:00:99"),),
        ),
    ),
    links=(LinkConfig(a="s1", a_port=9, b="s2", b_port=9),),
)  # fmt: skip


def worker(worker_id: int = 0, **changes: Any) -> Worker:
    fields: dict[str, Any] = {
        "address": "10.0.1.1", "mac": "02:00:00:00:01:01", "udp_port": 5000, "port": 7,
        "switch": "s2", "peer_address": "10.0.1.1", "peer_port": 4000,
    }  # fmt: skip
    return Worker(worker_id=worker_id, **(fields | changes))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"address": "255.255.255.255"}, "address 255.255.255.255 is no address of a host"),
        ({"address": "0.0.0.0"}, "0.0.0.0 is no address of a host"),
        ({"address": "0.1.2.3"}, "no address of a host"),
        ({"address": "224.0.0.1"}, "no address of a host"),
        ({"address": "127.0.0.1"}, "loopback, which no switch reaches"),
        ({"address": "10.0.255.1"}, "service address of switch s1"),
        ({"address": "10.0.0.1"}, "10.0.0.1 is h1 at switch s1, not at s2"),
        ({"mac": "ff:ff:ff:ff:ff:ff"}, "mac ff:ff:ff:ff:ff:ff is no address of a host"),
        ({"mac": "00:00:00:00:00:00"}, "no address of a host"),
        ({"mac": "02:53:46:00:00:fe"}, "that of switch s1"),
        ({"udp_port": 21318}, "UDP port 21318 is the switches' own"),
        ({"port": 9}, "port 9 of s2 is link s1-s2"),
        ({"switch": "s1", "port": 2}, r"port 2 of s1 is that of h2 \(10.0.0.2\)"),
        ({"peer_address": "255.255.255.255"}, "peer address 255.255.255.255 is no address"),
        ({"peer_address": "0.0.0.0"}, "peer address 0.0.0.0 is no address"),
        ({"peer_address": "10.0.255.2"}, "peer address 10.0.255.2 is the service address"),
        ({"peer_address": "1.2.3.400"}, "neither an IP address nor a host name"),
        ({"peer_address": "a b"}, "neither an IP address nor a host name"),
    ],
)  # fmt: skip
def test_place_that_no_host_can_have(changes: dict[str, Any], text: str):
    with pytest.raises(InvalidJobError, match=text):
        check_place(worker(**changes), CONFIG)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"peer_address": "127.0.0.1"},
        {"peer_address": "node-7.cluster.example"},
        {"peer_address": "fd00::7"},
        {"peer_address": "", "peer_port": 0},
        {"address": "127.0.0.9", "mac": "02:00:00:00:00:99", "switch": "s3", "port": 1},
        {"address": "10.0.0.1", "mac": "02:00:00:00:00:01", "switch": "s1", "port": 1},
    ],
)
def test_place_that_a_host_may_have(changes: dict[str, Any]):
    check_place(worker(**changes), CONFIG)


def test_place_behind_a_port_of_several_hosts():
    hosts = tuple(dataclasses.replace(host, port=1) for host in HOSTS)
    switch = SwitchConfig(name="s1", address="127.0.0.1:1", hosts=hosts)
    shared = ControllerConfig(switches=(switch,))
    for host in hosts:
        station = {"address": host.address, "mac": host.mac, "switch": "s1", "port": 1}
        check_place(worker(**station), shared)
    with pytest.raises(InvalidJobError, match=r"is that of h1 \(10.0.0.1\), h2 \(10.0.0.2\)"):
        check_place(worker(switch="s1", port=1), shared)


def test_peer_servers_are_all_on_loopback_or_none_is():
    here = [worker(n, peer_address="127.0.0.1") for n in range(3)]
    check_peers(here[0], here[1:])
    check_peers(worker(3), [worker(4), worker(5, peer_address="", peer_port=0)])
    with pytest.raises(InvalidJobError, match=r"'127.0.0.1' of worker 1 cannot both be right"):
        check_peers(worker(0), here[1:])


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"job_name": "\x1b]0;owned\x07"}, r"JoinRequest.job_name is '\x1b]0;owned\x07'"),
        ({"job_name": "two\nlines"}, r"'two\nlines'"),
        ({"job_name": "n" * 100_000}, "and 99936 more characters"),
        ({"address": "255.255.255.255", "ingress_port": 9, "mac": "02:00:00:00:00:09"}, "no addr"),
        ({"udp_port": 21318}, "switches' own"),
        ({"peer_port": 99999}, "JoinRequest.peer_port is 99999; 0 to 65535 is allowed"),
        ({"straggler": pb.Straggler(quorum=4294967295)}, "Straggler.quorum is 4294967295"),
        ({"straggler": pb.Straggler(deadline_s=float("nan"))}, "Straggler.deadline_s is nan"),
        ({"join_timeout_s": float("nan")}, "JoinRequest.join_timeout_s is nan"),
        ({"ingress_port_name": "s1-eth" + "9" * 200}, "is not SWITCH-ethN"),
        ({"switch_name": "s9"}, "no switch 's9'"),
        ({"path": 9}, "JoinRequest.path is 9"),
    ],
)
def test_invalid_join_request(tmp_path: Path, fields: dict[str, Any], text: str):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            strange = await FakeWorker(server.address, 0, 1, **fields).knock()
            code, told = await strange.refusal()
            assert (code, text in told) == (StatusCode.INVALID_ARGUMENT, True), told
            await strange.close()

    run(scenario())


def test_job_name_of_3_mb_is_neither_read_nor_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)

    async def scenario() -> None:
        async with running_controller(tmp_path, token="secret") as (server, _):
            stranger = FakeWorker(server.address, 0, 1, job_name="n" * 3_000_000)
            assert (await stranger.refusal())[0] is StatusCode.UNAUTHENTICATED
            await stranger.close()
            join_request = pb.WorkerMessage(join_request=stranger.join_request)
            status = await asyncio.to_thread(status_of_join, server.address, join_request, "secret")
            assert status is StatusCode.RESOURCE_EXHAUSTED

    run(scenario())
    assert "nnnn" not in caplog.text


def status_of_join(address: str, message: pb.WorkerMessage, token: str) -> StatusCode:
    """Send one message, though the call may end before it is written."""
    with grpc.insecure_channel(address) as channel:
        stub: Any = cast("Any", session_pb2_grpc).SwitchfoldSessionStub(channel)
        call = stub.Join(iter([message]), metadata=token_metadata(token))
        return call.code()


def test_invalid_operator_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            for words in (["job", "show"], ["job", "stop"], ["switch", "show"], ["tree", "show"]):
                capsys.readouterr()
                code = await asyncio.to_thread(
                    run_command, [*words, "\x1b[2Jx", "--controller", server.address]
                )
                err = capsys.readouterr().err
                assert (code, err.rstrip("\n").isprintable()) == (1, True), err
                assert r"is '\x1b[2Jx'; at most 255 printable characters are allowed" in err

    run(scenario())


def test_invalid_message_in_a_session(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            member = await FakeWorker(server.address, 0, 1).knock()
            await member.join_reply()
            await member.send(barrier=pb.Barrier(name="b\x1b", use=1))
            code, told = await member.refusal()
            assert (code, r"Barrier.name is 'b\x1b'" in told) == (
                StatusCode.INVALID_ARGUMENT,
                True,
            )
            await member.close()

    run(scenario())


def test_waiting_jobs_hold_nothing_and_are_not_endless(tmp_path: Path):
    async def scenario() -> None:
        limits = {"max_waiting_jobs": 30, "max_waiting_jobs_per_source": 30}
        async with running_controller(tmp_path, **limits) as (server, _):
            (runs,) = await join_all(server.address, 1)
            view = (await runs.join_reply()).view
            assert view.trees[0].slot_count == 128
            waiting = [
                await FakeWorker(server.address, 0, 2, job_name=f"waits {number}").join()
                for number in range(30)
            ]
            await until_waiting(server, 30)
            held = [x.generation for x in server.views._database.live_views()]  # pyright: ignore[reportPrivateUsage]
            assert held == [view.generation]
            assert server.views.rebalance() == []
            one_more = await FakeWorker(server.address, 0, 2, job_name="one more").knock()
            code, told = await one_more.refusal()
            assert (code, "30 jobs wait for workers" in told) == (
                StatusCode.RESOURCE_EXHAUSTED,
                True,
            )
            # One that starts gets its share, the running one keeps its own.
            partner = await FakeWorker(server.address, 1, 2, job_name="waits 7").join()
            assert (await partner.join_reply()).view.trees[0].slot_count == 128
            await runs.send(barrier=pb.Barrier(name="b"))
            assert (await runs.receive()).HasField("barrier_released"), "no change of its view"
            for each in (runs, *waiting, one_more, partner):
                await each.close()

    run(scenario())


async def until_waiting(server: Any, count: int) -> None:
    async with asyncio.timeout(60):
        client = OperatorClient(server.address)
        while True:
            jobs = await asyncio.to_thread(client.list_jobs)
            if sum(job.state == "waiting" for job in jobs) == count:
                return
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("is_running", [False, True])
def test_stream_closed_for_silence_says_why(tmp_path: Path, is_running: bool):
    async def scenario() -> None:
        # A job that is to run must get its first view within the lease, however busy all is.
        lease_s = 60.0 if is_running else 4.0
        async with running_controller(tmp_path, lease_s=lease_s) as (server, _):
            worker = await FakeWorker(server.address, 0, 1 if is_running else 2).knock()
            if is_running:
                await worker.join_reply()
                silence(server, worker, 4.0)
                ended = (await worker.receive()).job_ended
                assert "worker 0 lost (no heartbeat for 4 s)" in ended.reason
            code, told = await worker.refusal()
            assert code is StatusCode.ABORTED, told
            assert "worker 0 of job train was silent for 4 s (its lease)" in told
            await worker.close()

    run(scenario())


def test_barriers_are_bounded():
    barriers = Barriers()
    for number in range(MAX_WAITING):
        assert not barriers.reach((f"b{number}", 1), 0)
    with pytest.raises(InvalidJobError, match="1024 others wait"):
        barriers.reach(("one more", 1), 0)
    assert not barriers.reach(("b7", 1), 1), "one that waits already"
    for number in range(5000):
        barriers.release({0})
        barriers.reach((f"c{number}", 1), 0)
    assert len(barriers.last_uses()) == 1024


def test_text_is_escaped_and_shortened():
    assert escaped("a\x1b[31m\n\0\x9b\u202e é") == r"a\x1b[31m\n\x00\x9b\u202e é"
    assert quoted("x" * 100) == f"'{'x' * 64}' and 36 more characters"
    assert details(ValueError("y" * 9999)).endswith("and 7999 more characters")


def test_log_has_one_line_for_each_record():
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(EscapingFormatter("%(levelname)s: %(message)s"))
    logger = logging.Logger("test")
    logger.addHandler(handler)
    logger.warning("job %s", "x\nWARNING: forged\x1b[2J")
    try:
        raise ValueError("\x1b[2J")
    except ValueError:
        logger.exception("failed")
    first, second, *rest = stream.getvalue().splitlines()
    assert first == r"WARNING: job x\nWARNING: forged\x1b[2J"
    assert second == "ERROR: failed"
    assert rest[-1] == r"ValueError: \x1b[2J"


def test_command_prints_no_escapes_of_a_controller(capsys: pytest.CaptureFixture[str]):
    class Hostile(grpc.GenericRpcHandler):
        def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
            async def answer(request: bytes, context: Any) -> bytes:
                if handler_call_details.method.endswith("ShowJob"):
                    await context.abort(StatusCode.NOT_FOUND, "no job \x1b[2J")
                job = operator_pb2.Job(name="\x1b[2J", reason="a\nb", switches=["\x9b"])
                job.workers.add(address="\x1b[1m", state="[red]")
                return operator_pb2.ListJobsResponse(jobs=[job]).SerializeToString()

            make: Any = grpc.unary_unary_rpc_method_handler
            return make(answer)

    async def scenario() -> None:
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((Hostile(),))
        address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        await server.start()
        for words in (["list"], ["list", "--json"], ["show", "x"]):
            await asyncio.to_thread(run_command, ["job", *words, "--controller", address])
        await server.stop(None)

    run(scenario())
    captured = capsys.readouterr()
    text = captured.out + captured.err
    assert r"\x1b[2J" in text
    assert all(line.isprintable() for line in text.splitlines())
    print_table("t", ("a",), [("[red]x[/red]",)])
    assert "[red]x[/red]" in capsys.readouterr().out
