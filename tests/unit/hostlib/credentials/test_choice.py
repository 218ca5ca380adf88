# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Without credentials, nothing of the host library serves or calls unless its user chose so."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fake_controller import FakeController, join_reply
from fake_switch import FakeSwitch
from loopback import LOOPBACK
from switchfold.hostlib.config import complete_from_environment, join_from_environment
from switchfold.hostlib.credentials import Role, require_choice
from switchfold.hostlib.errors import CredentialsError, ServerLostError
from switchfold.hostlib.factors import ExchangeOptions, FactorExchange
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.parameter_server import (
    ClientOptions,
    ParameterClient,
    ParameterServer,
    ServerOptions,
)
from switchfold.hostlib.parameter_server.command import run as run_command
from switchfold.hostlib.parameter_server.hot_server.options import HotRowOptions
from switchfold.hostlib.parameter_server.tables import TableClient
from switchfold.hostlib.session import Session

VARIABLE = "SWITCHFOLD_INSECURE"
PS = ("--address", LOOPBACK, "--num-workers", "1")

pytestmark = pytest.mark.usefixtures("no_choice")


def choose(credentials: object = None, *, insecure: bool = False, address: str = "") -> None:
    require_choice(credentials, who="it", role=Role.WORKER, insecure=insecure, address=address)


@pytest.mark.parametrize("value", [None, "", "0"])
def test_nothing_is_no_choice(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    if value is not None:
        monkeypatch.setenv(VARIABLE, value)
    text = (
        r"^it: no credentials: make certificates with 'switchfold certs init' and 'issue --role"
        r" worker', and name their folder in --credentials; or choose --insecure or"
        r" SWITCHFOLD_INSECURE=1, without TLS$"
    )
    with pytest.raises(CredentialsError, match=text):
        choose()


@pytest.mark.parametrize("is_by_variable", [True, False])
def test_choice_is_said_each_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, is_by_variable: bool
) -> None:
    if is_by_variable:
        monkeypatch.setenv(VARIABLE, "1")
    for _ in range(2):
        choose(insecure=not is_by_variable)
    texts = [record.getMessage() for record in caplog.records]
    assert len(texts) == 2
    assert all(text.startswith("INSECURE: it: without credentials, nothing") for text in texts)


def test_unclear_choice_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "true")
    with pytest.raises(CredentialsError, match="is 'true'; write 1 to do without TLS, or unset it"):
        choose()


def test_who_has_credentials_or_a_unix_socket_is_silent(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    choose("folder")
    choose(address="unix:/run/it.sock")
    monkeypatch.setenv(VARIABLE, "1")
    choose("folder", insecure=True)
    choose(address="unix:/run/it.sock", insecure=True)
    assert not caplog.records


def test_abstract_socket_has_no_file_and_so_no_rights() -> None:
    with pytest.raises(CredentialsError):
        choose(address="unix-abstract:it")


@pytest.fixture
def controller() -> Any:
    running = FakeController(
        lambda message, _: [join_reply()] if message.HasField("join_request") else []
    )
    yield running
    running.stop()


def join(controller: FakeController, options: SessionOptions) -> Session:
    return Session.join(
        controller=controller.address,
        job="train",
        worker_id=0,
        num_workers=1,
        transport=FakeSwitch(1).transport(0),
        options=options,
    )


def test_session_without_credentials_must_be_told_so(
    controller: FakeController, caplog: pytest.LogCaptureFixture
) -> None:
    text = "worker 0 of job 'train': no credentials.* SessionOptions.insecure or SWITCHFOLD_INSEC"
    with pytest.raises(CredentialsError, match=text):
        join(controller, SessionOptions())
    assert controller.seen == [], "nothing was sent"
    for count in (1, 2):
        with join(controller, SessionOptions(insecure=True)):
            said = [line for line in caplog.messages if line.startswith("INSECURE: worker 0 of")]
            assert len(said) == count


def test_environment_chooses_for_a_session(
    controller: FakeController, caplog: pytest.LogCaptureFixture
) -> None:
    variables = {
        "SWITCHFOLD_CONTROLLER": controller.address,
        "SWITCHFOLD_JOB": "train",
        "SWITCHFOLD_WORKER_ID": "0",
        "SWITCHFOLD_NUM_WORKERS": "1",
    }
    with pytest.raises(CredentialsError, match="no credentials"):
        join_from_environment(variables=variables, transport=FakeSwitch(1).transport(0))
    chosen = variables | {VARIABLE: "1"}
    assert complete_from_environment(SessionOptions(), chosen).insecure
    with join_from_environment(variables=chosen, transport=FakeSwitch(1).transport(0)):
        assert "INSECURE: worker 0 of job 'train'" in caplog.text


def server(**options: Any) -> ParameterServer:
    return ParameterServer(ServerOptions(num_workers=1), address=LOOPBACK, **options)


def half_secured_server(**options: Any) -> ParameterServer:
    """Return a server that would call the controller without TLS."""
    hot = HotRowOptions(controller=f"{LOOPBACK}:1", job="train")
    return ParameterServer(
        ServerOptions(num_workers=1, hot=hot), address=LOOPBACK, row_link=never_linked, **options
    )


def never_linked(*_: Any, **__: Any) -> Any:
    raise AssertionError("it has linked")


def parameter_client(**options: Any) -> ParameterClient:
    return ParameterClient([(LOOPBACK, 1)], ClientOptions(worker_id=0, **options))


def table_client(**options: Any) -> TableClient:
    """Return nothing: no server is there."""
    return TableClient([(LOOPBACK, 1)], ClientOptions(worker_id=0, reconnect_s=0.1, **options))


def exchange(**options: Any) -> FactorExchange:
    return FactorExchange(0, [(LOOPBACK, 0), (LOOPBACK, 1)], ExchangeOptions(**options))


ENDS: dict[str, Callable[..., Any]] = {
    "parameter server 0": server,
    "worker 0's client of parameter servers": parameter_client,
    "worker 0's exchange of factors": exchange,
}


@pytest.mark.parametrize("who", ENDS)
def test_end_without_credentials_must_be_told_so(
    who: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(CredentialsError, match=f"^{who}: no credentials"):
        ENDS[who]()
    assert not caplog.records
    with closing(ENDS[who](insecure=True)):
        assert [line.partition(": without")[0] for line in caplog.messages] == [f"INSECURE: {who}"]


def test_table_client_without_credentials_must_be_told_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(CredentialsError, match="client of parameter servers: no credentials"):
        table_client()
    with pytest.raises(ServerLostError):
        table_client(insecure=True)
    assert "INSECURE: worker 0's client of parameter servers" in caplog.text


def test_server_that_attaches_to_a_job_needs_credentials_for_the_controller() -> None:
    with pytest.raises(CredentialsError, match="no credentials"):
        half_secured_server()


def test_server_without_credentials_must_be_told_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SWITCHFOLD_CREDENTIALS", raising=False)
    assert run_command(PS) == 1
    out, err = capsys.readouterr()
    assert "error: parameter server 0: no credentials" in err
    assert "or choose --insecure" in err
    assert out == ""
    command = [sys.executable, "-m", "switchfold.controller", "ps", "run", *PS, "--insecure"]
    for _ in range(2):
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("listening on ")
            process.terminate()
            _, err = process.communicate(timeout=60)
        assert process.returncode == 0
        assert "INSECURE: parameter server 0: without credentials" in err.splitlines()[0]


def test_credentials_that_are_damaged_are_no_choice(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match="cannot be read"):
        join_from_environment(
            SessionOptions(credentials=str(tmp_path), insecure=True),
            variables={
                "SWITCHFOLD_CONTROLLER": f"{LOOPBACK}:1",
                "SWITCHFOLD_JOB": "train",
                "SWITCHFOLD_WORKER_ID": "0",
                "SWITCHFOLD_NUM_WORKERS": "1",
            },
            transport=FakeSwitch(1).transport(0),
        )
