# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Tokens: every method needs one, roles are told apart, secrets stay secret."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass
from grpc import StatusCode

from controller_fixtures import (
    FakeWorker,
    fake_switch,
    join_all,
    make_config,
    resume_of,
    run,
    running_controller,
    serving,
)
from switchfold.bmv2_topos.config import OPERATOR_CREDENTIAL_FILE
from switchfold.bmv2_topos.processes.tokens import controller_environment, draw_tokens, worker_token
from switchfold.controller.__main__ import run as run_command
from switchfold.controller.api.access import AccessGuard, Role, Tokens, required_role
from switchfold.controller.api.operator_client import OperatorClient
from switchfold.controller.config import SwitchConfig, load_config
from switchfold.controller.errors import ConfigError, ControllerError, OperatorRefusedError
from switchfold.controller.listening import SERVICES
from switchfold.hostlib.control.session_api import session_pb2 as pb
from switchfold.hostlib.credentials.tokens import token_metadata

METHODS = [method for service in SERVICES for method in service.methods]
TOKENS = {"token": "for-workers", "operator_token": "for-operators", "read_only_token": "to-look"}
REFUSED = (StatusCode.UNAUTHENTICATED, StatusCode.PERMISSION_DENIED)


async def status_of(address: str, method: MethodDescriptor, token: str) -> StatusCode:
    """Call a method with an empty request; return the status that it ends with."""
    return await asyncio.to_thread(_status_of, address, method, token)


def _status_of(address: str, method: MethodDescriptor, token: str) -> StatusCode:
    path = f"/{method.containing_service.full_name}/{method.name}"
    request, metadata = GetMessageClass(method.input_type)(), token_metadata(token)
    with grpc.insecure_channel(address) as channel:
        if method.client_streaming:
            many = cast("Any", channel).stream_stream(path, type(request).SerializeToString)
            return many(iter([request]), metadata=metadata).code()
        one = cast("Any", channel).unary_unary(path, type(request).SerializeToString)
        return one.future(request, metadata=metadata).code()


def test_every_method_wants_a_token(tmp_path: Path):
    assert {method.name for method in METHODS} >= {"Join", "StopJob", "SetLink", "ShowController"}

    async def scenario() -> None:
        async with running_controller(tmp_path, **TOKENS) as (server, _):
            for method in METHODS:
                for token in ("", "guess", "for-worker", "for-operators!"):
                    status = await status_of(server.address, method, token)
                    assert status is StatusCode.UNAUTHENTICATED, (method.name, token)

    run(scenario())


@pytest.mark.parametrize(
    ("token", "roles"),
    [
        ("for-workers", {Role.WORKER, Role.SERVER}),
        ("to-look", {Role.READ_ONLY}),
        ("for-operators", {Role.WORKER, Role.SERVER, Role.READ_ONLY, Role.OPERATOR}),
    ],
)
def test_roles_are_told_apart(tmp_path: Path, token: str, roles: set[Role]):
    async def scenario() -> None:
        async with running_controller(tmp_path, **TOKENS) as (server, _):
            for method in METHODS:
                status = await status_of(server.address, method, token)
                is_open = required_role(method) in roles
                assert (status is StatusCode.PERMISSION_DENIED) is not is_open, method.name
                assert status is not StatusCode.UNAUTHENTICATED

    run(scenario())


def test_methods_that_change_something_are_the_operators():
    roles = {method.name: required_role(method) for method in METHODS}
    assert roles["Join"] is Role.WORKER
    changing = {name for name, role in roles.items() if role is Role.OPERATOR}
    assert changing == {"StopJob", "SetLink", "SetSwitch"}


@pytest.mark.parametrize("options", [{"token": "x"}, {"operator_token": "x"}])
def test_one_token_opens_everything_and_nothing_is_open_without(
    tmp_path: Path, options: dict[str, str]
):
    async def scenario() -> None:
        async with running_controller(tmp_path, **options) as (server, _):
            for method in METHODS:
                assert await status_of(server.address, method, "x") not in REFUSED
                assert await status_of(server.address, method, "") is StatusCode.UNAUTHENTICATED

    run(scenario())


def test_no_token_leaves_all_open_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            for method in METHODS:
                assert await status_of(server.address, method, "") not in REFUSED

    run(scenario())
    assert "no token is set: whoever reaches" in caplog.text


def test_method_that_nobody_described_is_the_operators():
    """A service that was added without its descriptor is not open to other roles."""

    async def scenario() -> None:
        server = grpc.aio.server(
            interceptors=(AccessGuard(Tokens(operator="a", read_only="b"), ()),)
        )

        async def answer(request: bytes, context: object) -> bytes:
            return request

        handler = cast("Any", grpc).unary_unary_rpc_method_handler(answer)
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("new.Service", {"Call": handler}),)
        )
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            call = cast("Any", channel).unary_unary("/new.Service/Call")
            found = [
                await call(b"", metadata=token_metadata(token)).code() for token in ("", "b", "a")
            ]
        await server.stop(None)
        assert found == [*REFUSED, StatusCode.OK]

    run(scenario())


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"read_only_token": "x"}, "read_only_token alone"),
        ({"token": "x", "operator_token": "x"}, "must differ"),
        ({"token": "two words"}, "token must consist of printable ASCII"),
        ({"operator_token": "Schlüssel"}, "operator_token must consist"),
        ({"token": "x" * 1025}, "at most 1024"),
    ],
)
def test_tokens_that_cannot_work_are_refused(tmp_path: Path, options: dict[str, str], text: str):
    async def scenario() -> None:
        async with fake_switch() as fake:
            with pytest.raises(ConfigError, match=text) as refusal:
                async with serving(make_config(tmp_path, fake, **options)):
                    pass
            assert "two words" not in str(refusal.value)

    run(scenario())


def test_stranger_ends_no_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    async def scenario() -> None:
        async with running_controller(tmp_path, **TOKENS) as (server, _):
            at = ("--controller", server.address)
            (worker,) = await join_all(server.address, 1, job_name="vic", token="for-workers")
            await worker.join_reply()

            async def command(*arguments: str) -> tuple[int, str]:
                capsys.readouterr()
                code = await asyncio.to_thread(run_command, [*arguments, *at])
                return code, capsys.readouterr().err

            for words in (("stop", "vic"), ("show", "vic"), ("list",)):
                code, err = await command("job", *words)
                assert (code, "this controller wants a token" in err) == (1, True)
            code, err = await command("job", "stop", "vic", "--token", "to-look")
            assert (code, "operator role" in err) == (1, True)
            assert server.membership.live_job("vic") is not None
            assert (await command("job", "show", "vic", "--token", "to-look"))[0] == 0
            assert (await command("job", "stop", "vic", "--token", "for-operators"))[0] == 0
            assert server.membership.live_job("vic") is None
            await worker.close()

    run(scenario())


def test_workers_token_opens_the_jobs_of_others(tmp_path: Path):
    """There is one token for the workers of all jobs: docs/security.md says so."""

    async def scenario() -> None:
        async with running_controller(tmp_path, **TOKENS) as (server, _):
            same = {"job_name": "victim", "token": "for-workers"}
            mine = await FakeWorker(server.address, 0, 2, **same).join()
            stranger = await FakeWorker(server.address, 1, 2, **same, address="10.0.0.3").join()
            views = [(await worker.join_reply()).view for worker in (mine, stranger)]
            assert views[0].generation == views[1].generation
            for worker in (mine, stranger):
                await worker.close()

    run(scenario())


@pytest.mark.parametrize("whose", ["nobody's", "another worker's"])
def test_stream_is_taken_over_by_its_own_worker_only(tmp_path: Path, whose: str):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            workers = await join_all(server.address, 2)
            join_replies = [await worker.join_reply() for worker in workers]
            secrets = {join_reply.resume_secret for join_reply in join_replies}
            assert [len(secret) for secret in secrets] == [16, 16]
            resume = resume_of(join_replies[0])
            resume.secret = join_replies[1].resume_secret if whose == "another worker's" else b""
            thief = await FakeWorker(server.address, 0, resume=resume).knock()
            code, details = await thief.refusal()
            assert code is StatusCode.PERMISSION_DENIED
            assert "only that worker may take up its stream" in details
            for worker in workers:
                await worker.send(barrier=pb.Barrier(name="all are still there"))
            for worker in workers:
                assert (await worker.receive()).HasField("barrier_released")
            back = await FakeWorker(server.address, 0, resume=resume_of(join_replies[0])).join()
            assert (await back.join_reply()).view == join_replies[0].view
            for worker in (*workers, thief, back):
                await worker.close()

    run(scenario())


def test_secret_outlives_the_controller_and_is_shown_nowhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)

    async def scenario() -> None:
        async with fake_switch() as fake:
            config = make_config(tmp_path, fake)
            async with serving(config) as first:
                (worker,) = await join_all(first.address, 1)
                join_reply = await worker.join_reply()
                client = OperatorClient(first.address)
                shown = await asyncio.to_thread(client.show_job, "train")
                assert join_reply.resume_secret not in shown.SerializeToString()
            assert join_reply.resume_secret not in config.database.read_bytes()
            async with serving(config) as second:
                wrong = resume_of(join_reply)
                wrong.secret = bytes(16)
                thief = await FakeWorker(second.address, 0, 1, resume=wrong).knock()
                assert (await thief.refusal())[0] is StatusCode.PERMISSION_DENIED
                back = await FakeWorker(second.address, 0, 1, resume=resume_of(join_reply)).join()
                assert (await back.join_reply()).view == join_reply.view
                for each in (worker, thief, back):
                    await each.close()
            assert repr(join_reply.resume_secret)[2:-1] not in caplog.text
            assert join_reply.resume_secret.hex() not in caplog.text

    run(scenario())


def test_place_of_a_worker_whose_connection_broke_is_kept_from_other_hosts(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path, reconnect_grace_s=60.0) as (server, _):
            members = await join_all(server.address, 2, peer_port=4000)
            join_replies = [await member.join_reply() for member in members]
            live = server.membership.live_job("train")
            assert live is not None
            await members[1].close()
            while live.leases[1].is_attached:
                await asyncio.sleep(0.01)
            for is_joining in (True, False):
                thief = await FakeWorker(
                    server.address, 1, address="10.0.0.3", is_joining=is_joining,
                    peer_port=4000,
                ).knock()  # fmt: skip
                code, details = await thief.refusal()
                assert (code, "may still come back" in details) == (
                    StatusCode.ALREADY_EXISTS,
                    True,
                )
                await thief.close()
            back = await FakeWorker(server.address, 1, resume=resume_of(join_replies[1])).join()
            assert (await back.join_reply()).view == join_replies[1].view
            for member in (*members, back):
                await member.close()

    run(scenario())


def test_refused_calls_do_not_fill_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    async def scenario() -> None:
        async with running_controller(tmp_path, token="secret") as (server, _):
            for _ in range(20):
                worker = FakeWorker(server.address, 0, job_name="n" * 100_000)
                assert (await worker.refusal())[0] is StatusCode.UNAUTHENTICATED
                await worker.close()

    run(scenario())
    lines = [record.getMessage() for record in caplog.records if "refused" in record.message]
    assert 1 <= len(lines) < 20
    assert "nnnn" not in caplog.text
    assert "secret" not in "".join(lines)


def test_testbed_draws_tokens_that_its_owner_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    draw_tokens(tmp_path)
    variables = controller_environment(tmp_path)
    file = tmp_path / OPERATOR_CREDENTIAL_FILE
    assert file.stat().st_mode & 0o777 == 0o600
    assert variables["SWITCHFOLD_TOKEN"] == worker_token(tmp_path) != file.read_text().strip()
    monkeypatch.setenv("SWITCHFOLD_OPERATOR_TOKEN", "of another controller")
    listen = f"unix:{tmp_path}/controller.sock"

    async def scenario() -> None:
        options = {
            "listen": listen,
            "token": variables["SWITCHFOLD_TOKEN"],
            "operator_token": variables["SWITCHFOLD_OPERATOR_TOKEN"],
        }
        async with running_controller(tmp_path, **options):
            assert await asyncio.to_thread(OperatorClient(listen).list_jobs) == []
            with pytest.raises(ControllerError, match="wrong token"):
                await asyncio.to_thread(OperatorClient(listen, "guess").list_jobs)

    run(scenario())


def test_server_that_is_no_controller_is_called_that():
    async def scenario() -> None:
        async with fake_switch() as fake:
            with pytest.raises(OperatorRefusedError, match="is no controller of Switchfold"):
                await asyncio.to_thread(OperatorClient(fake.address).list_jobs)

    run(scenario())


def test_operator_token_of_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SWITCHFOLD_OPERATOR_TOKEN", "not ok")
    with pytest.raises(ConfigError, match="printable ASCII"):
        OperatorClient("127.0.0.1:1")


def test_options_with_tokens_are_not_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)

    async def scenario() -> None:
        async with running_controller(tmp_path, **TOKENS):
            pass

    run(scenario())
    assert "operator_token = ***" in caplog.text
    assert not any(token in caplog.text for token in TOKENS.values())
    switches = (SwitchConfig(name="s1", address="127.0.0.1:1"),)
    config = load_config(None, switches=switches, **TOKENS)
    assert not any(token in repr(config) for token in TOKENS.values())
