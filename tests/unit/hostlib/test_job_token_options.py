# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A job's token at its workers and row servers: where it comes from, where it goes, who sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fake_controller import FakeController, join_reply
from fake_row_controller import FakeRowController, row_view
from fake_switch import FakeSwitch
from loopback import LOOPBACK
from switchfold.hostlib.config import (
    complete_from_environment,
    job_token_from_environment,
    secret_from_environment,
    token_from_environment,
)
from switchfold.hostlib.control import controller_channel
from switchfold.hostlib.control.join_request import JoinRequest
from switchfold.hostlib.control.row_server_link import RowServerLink, RowServerRequest
from switchfold.hostlib.control.session_api import session_pb2 as api
from switchfold.hostlib.control.view import Endpoint
from switchfold.hostlib.errors import ConfigurationError, PeerRefusedError, ResultTimeoutError
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.parameter_server import command
from switchfold.hostlib.parameter_server.hot_server.options import HotRowOptions
from switchfold.hostlib.peers import PeerServer
from switchfold.hostlib.session import Session
from time_bound import wait_until

TOKEN = "of-the-job"
BAD = ("two words", "Schlüssel", "x" * 1025, "\udc80")
LOCAL = Endpoint(address="10.0.0.9", udp_port=6000, mac="02:00:00:00:00:09")


@pytest.fixture
def controller(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeController]:
    monkeypatch.setattr(controller_channel, "CONNECT_TIMEOUT_S", 60.0)

    def answer(message: api.WorkerMessage, _context: Any) -> list[api.ControllerMessage]:
        return [join_reply()] if message.HasField("join_request") else []

    running = FakeController(answer)
    yield running
    running.stop()


def join(address: str, options: SessionOptions) -> Session:
    return Session.join(
        controller=address,
        job="train",
        worker_id=0,
        num_workers=1,
        transport=FakeSwitch(1).transport(0),
        options=options,
    )


def row_request(job_token: str) -> RowServerRequest:
    return RowServerRequest(
        job="train",
        server_id=1,
        identity=b"i" * 16,
        local=LOCAL,
        rows_wanted=8,
        token="of-all",
        job_token=job_token,
    )


def test_worker_sends_the_token_when_it_joins_and_when_it_resumes() -> None:
    options = SessionOptions(token="of-all", job_token=TOKEN, job_run="3")
    request = JoinRequest(job="train", worker_id=0, num_workers=1, local=LOCAL, options=options)
    switch = FakeSwitch(1)
    for resumed in (None, switch.view(0)):
        sent = request.join_request(resumed).join_request
        assert (sent.job_token, sent.job_run) == (TOKEN, "3")
    assert TOKEN not in repr(request)
    assert TOKEN not in repr(options)


def test_session_joins_with_the_token_and_its_peers_prove_it(
    controller: FakeController, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("switchfold.hostlib.peers.fetch.ANSWER_SHARE", 0.003)  # of 60 s
    options = SessionOptions(token="of-all", job_token=TOKEN, peer_address=LOOPBACK)
    with join(controller.address, options):
        sent = controller.wait_for("join_request").join_request
        assert sent.job_token == TOKEN
        assert controller.tokens == [f"Bearer {options.token}"]
        member = api.Member(worker_id=0, peer_address=LOOPBACK, peer_port=sent.peer_port)
        for secret, error in (("of-all", PeerRefusedError), (TOKEN, ResultTimeoutError)):
            with PeerServer(LOOPBACK, token=secret) as peer:
                peer.enter_job(7, 1)
                with pytest.raises(error):  # nothing was summed that could be fetched
                    peer.fetch_result(member, 0, 60)


@pytest.mark.parametrize("bad", BAD)
def test_token_that_cannot_be_sent_is_refused_and_not_shown(bad: str) -> None:
    refusals: list[str] = []
    with pytest.raises(ConfigurationError, match="the job token") as refusal:
        join("127.0.0.1:1", SessionOptions(job_token=bad))
    refusals.append(str(refusal.value))
    link = RowServerLink(
        "127.0.0.1:1",
        row_request(bad),
        on_view=lambda _: None,
        on_installed=lambda *_: None,
        on_down=lambda _: None,
    )
    with pytest.raises(ConfigurationError, match="the job token") as refusal:
        link.start()
    refusals.append(str(refusal.value))
    with pytest.raises(ConfigurationError, match="the job's token") as refusal:
        HotRowOptions(controller="here:1", job="train", job_token=bad)
    refusals.append(str(refusal.value))
    assert not any(bad in text for text in refusals)


def test_row_server_sends_the_token() -> None:
    attached: list[api.AttachRowServer] = []

    def answer(message: api.RowServerMessage, _context: Any) -> list[api.RowControllerMessage]:
        if message.HasField("attach"):
            attached.append(message.attach)
            return [row_view()]
        return []

    server = FakeRowController(answer)
    link = RowServerLink(
        server.address,
        row_request(TOKEN),
        on_view=lambda _: None,
        on_installed=lambda *_: None,
        on_down=lambda _: None,
    )
    link.start()
    wait_until(lambda: attached, "the attachment")
    link.close()
    server.stop()
    assert attached[0].job_token == TOKEN
    assert TOKEN not in repr(row_request(TOKEN))


def test_environment_gives_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {"SWITCHFOLD_TOKEN": "of-all", "SWITCHFOLD_JOB_TOKEN": TOKEN}
    options = complete_from_environment(SessionOptions(), variables)
    assert (options.token, options.job_token, options.peer_secret) == ("of-all", TOKEN, TOKEN)
    del variables["SWITCHFOLD_JOB_TOKEN"]
    assert complete_from_environment(SessionOptions(), variables).peer_secret == "of-all"
    monkeypatch.setenv("SWITCHFOLD_TOKEN", "of-all")
    monkeypatch.delenv("SWITCHFOLD_JOB_TOKEN", raising=False)
    assert (job_token_from_environment(), secret_from_environment()) == ("", "of-all")
    monkeypatch.setenv("SWITCHFOLD_JOB_TOKEN", TOKEN)
    assert (job_token_from_environment(), secret_from_environment()) == (TOKEN, TOKEN)
    assert token_from_environment() == "of-all"


@pytest.mark.parametrize(("given", "found"), [(None, "of-environment"), (TOKEN, TOKEN), ("", "")])
def test_command_of_a_row_server_takes_the_token(
    monkeypatch: pytest.MonkeyPatch, given: str | None, found: str
) -> None:
    monkeypatch.setenv("SWITCHFOLD_TOKEN", "of-all")
    monkeypatch.setenv("SWITCHFOLD_JOB_TOKEN", "of-environment")
    words = ["--address", LOOPBACK, "--num-workers", "1", "--controller", "here:1"]
    words += ["--hot-job", "train"] + ([] if given is None else ["--hot-job-token", given])
    made: list[tuple[Any, str]] = []

    class OpenedError(Exception):
        """Instead of a server."""

    def open_server(options: Any, *, token: str, **_: Any) -> None:
        made.append((options.hot, token))
        raise OpenedError

    monkeypatch.setattr(command, "ParameterServer", open_server)
    with pytest.raises(OpenedError):
        command.run(words)
    ((hot, secret),) = made
    assert (hot.token, hot.job_token) == ("of-all", found)
    assert secret == (found or "of-environment")
    assert isinstance(hot, HotRowOptions)
