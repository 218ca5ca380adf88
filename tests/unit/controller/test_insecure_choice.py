# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Commands without credentials, and with those of another authority for switches."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from certificates import CertificateSet
from controller_fixtures import command, run, running_controller
from fake_data_plane import FakeDataPlane
from switchfold.bmv2_topos.processes.certificates import make_certificates, switch_operator
from switchfold.bmv2_topos.processes.free_ports import free_port
from switchfold.controller.api.operator_client import OperatorClient
from switchfold.controller.cli.doctor import system
from switchfold.controller.errors import ConfigError
from switchfold.hostlib.credentials import Role
from switchfold.softswitch.p4runtime.service.server import P4RuntimeServer
from switchfold.softswitch.program.bmv2_json import read_program

__all__ = ["command"]

Command = Callable[..., Coroutine[Any, Any, tuple[int, str, str]]]


@pytest.mark.usefixtures("no_choice")
def test_command_without_credentials_must_be_told_so(
    tmp_path: Path,
    command: Command,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SWITCHFOLD_CREDENTIALS", raising=False)
    jobs = ("job", "list", "--controller")

    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            before = len(insecure_calls(caplog))
            code, out, err = await command(*jobs, server.address)
            assert (code, out) == (1, "")
            assert err.startswith(f"error: calls of the controller at {server.address}: no cred")
            assert "or choose --insecure or SWITCHFOLD_INSECURE=1" in err
            for count in (1, 2):
                code, _, _ = await command(*jobs, server.address, "--insecure")
                assert (code, len(insecure_calls(caplog))) == (0, before + count)

    run(scenario())
    code, _, err = run(command(*jobs, f"127.0.0.1:{free_port()}"))
    assert (code, "no controller answers at" in err) == (3, True), "there is nobody to be safe from"


def insecure_calls(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line for line in caplog.messages if line.startswith("INSECURE: calls of the contr")]


@pytest.mark.usefixtures("no_choice")
def test_commands_need_no_choice_for_a_unix_socket(
    tmp_path: Path, command: Command, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        listen = f"unix:{tmp_path}/controller.sock"
        async with running_controller(tmp_path, listen=listen):
            assert (await command("job", "list", "--controller", listen))[0] == 0

    run(scenario())
    assert insecure_calls(caplog) == []


def verdict_on_s1(out: str) -> tuple[str, str]:
    (check,) = (one for one in json.loads(out)["checks"] if one["name"] == "switch s1")
    return check["status"], check["text"]


@pytest.mark.usefixtures("no_choice")
def test_doctor_calls_a_switch_of_another_authority(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = (CertificateSet.create(tmp_path / name) for name in ("ours", "theirs"))
    monkeypatch.setenv("SWITCHFOLD_CREDENTIALS", str(ours.of(Role.OPERATOR).folder))
    monkeypatch.setattr(system, "_CONNECT_TIMEOUT_S", 60.0)

    async def doctor(address: str, *options: str) -> tuple[str, str]:
        at = ("--controller", f"127.0.0.1:{free_port()}", "--switch", f"s1={address}")
        _, out, _ = await command("doctor", "--json", *at, *options)
        return verdict_on_s1(out)

    with P4RuntimeServer(
        FakeDataPlane(),
        address="127.0.0.1:0",
        device_id=1,
        compile_program=read_program,
        credentials=theirs.another(Role.SWITCH, "s1"),
        port_statistics=dict,
    ) as served:
        address = served.address
        status, text = run(doctor(address))
        assert status == "fail"
        assert "no valid s1.switch.switchfold: unable to get local issuer certificate" in text
        folder = str(theirs.of(Role.OPERATOR).folder)
        status, text = run(doctor(address, "--switch-credentials", folder))
        assert (status, text) == ("ok", f"P4Runtime 1.4.0 at {address}, device 1")
        monkeypatch.delenv("SWITCHFOLD_CREDENTIALS")
        status, text = run(doctor(address))
        assert (status, "no credentials: make certificates" in text) == ("fail", True)
        expired = str(theirs.expired(Role.OPERATOR).folder)
        status, text = run(doctor(address, "--switch-credentials", expired))
        assert (status, "certificate has expired" in text) == ("fail", True)


@pytest.mark.usefixtures("no_choice")
def test_testbeds_have_the_folder_for_their_switches_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SWITCHFOLD_CREDENTIALS", raising=False)
    make_certificates(tmp_path, ["s1"])
    client = OperatorClient(f"unix:{tmp_path}/controller.sock")
    address, given = f"unix:{tmp_path}/s1.sock", tmp_path / "given"
    assert client.folder_for_switch(address, None) == switch_operator(tmp_path).folder
    assert client.folder_for_switch(address, given) == given
    with pytest.raises(ConfigError, match=r"calls of the switch at 127.0.0.1:9559: no credentials"):
        client.folder_for_switch("127.0.0.1:9559", None)
