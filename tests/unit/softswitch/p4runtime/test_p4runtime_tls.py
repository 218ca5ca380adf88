# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""P4Runtime over TLS: controllers and operators alone, and the controller's own calls."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from click.testing import CliRunner
from finsy.proto import p4r, p4r_grpc

from certificates import EXPIRED_DAYS, CertificateSet
from fake_data_plane import FakeDataPlane
from switchfold.controller.config import SwitchConfig
from switchfold.controller.errors import SwitchError, SwitchUnreachableError
from switchfold.controller.switches import port_losses, switch_call
from switchfold.controller.switches.port_losses import read_port_losses
from switchfold.controller.switches.switch_call import fetch_pipeline
from switchfold.hostlib.credentials import (
    Credentials,
    CredentialsError,
    Role,
    grpc_channels,
    role_name,
)
from switchfold.hostlib.credentials.grpc_channels import channel_credentials
from switchfold.softswitch.commands.command import main
from switchfold.softswitch.p4runtime.service.server import P4RuntimeServer
from switchfold.softswitch.program.bmv2_json import read_program

DEADLINE_S, START_S = 60.0, 180.0
SWITCH = "switch"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> CertificateSet:
    return CertificateSet.create(tmp_path_factory.mktemp("certs"))


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may stop both ends for longer than a controller waits."""
    monkeypatch.setattr(switch_call, "_FETCH_TIMEOUT_S", DEADLINE_S)
    monkeypatch.setattr(port_losses, "_TIMEOUT_S", DEADLINE_S)
    monkeypatch.setattr(grpc_channels, "_PROBE_S", DEADLINE_S)


def serve(
    credentials: Credentials | None, address: str = "127.0.0.1:0", *, insecure: bool = False
) -> P4RuntimeServer:
    return P4RuntimeServer(
        FakeDataPlane(),
        address=address,
        device_id=1,
        compile_program=read_program,
        credentials=credentials,
        insecure=insecure,
        port_statistics=dict,
    )


def channel_to(port: int, credentials: Credentials | None) -> grpc.Channel:
    """Return a channel that shows any certificate, as an attacker's would."""
    address = f"127.0.0.1:{port}"
    if credentials is None:
        return grpc.insecure_channel(address)
    name = ("grpc.ssl_target_name_override", role_name(Role.SWITCH, SWITCH))
    return grpc.secure_channel(address, channel_credentials(credentials), [name])


def status_of(port: int, credentials: Credentials | None) -> grpc.StatusCode:
    with channel_to(port, credentials) as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        call: Any = stub.Capabilities.future(p4r.CapabilitiesRequest(), timeout=DEADLINE_S)
        return call.code()


@pytest.mark.parametrize("role", Role)
def test_controllers_and_operators_alone_are_served(
    certificates: CertificateSet, role: Role
) -> None:
    with serve(certificates.of(Role.SWITCH)) as server:
        is_served = role in (Role.CONTROLLER, Role.OPERATOR)
        expected = grpc.StatusCode.OK if is_served else grpc.StatusCode.PERMISSION_DENIED
        assert status_of(server.port, certificates.of(role)) is expected


def test_others_are_refused(certificates: CertificateSet) -> None:
    unavailable, unknown = grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNAUTHENTICATED
    with serve(certificates.of(Role.SWITCH)) as server:
        assert status_of(server.port, None) is unavailable
        assert status_of(server.port, certificates.mixed(Role.CONTROLLER)) is unavailable
        assert status_of(server.port, certificates.expired(Role.CONTROLLER)) is unavailable
        assert status_of(server.port, certificates.revoked(Role.CONTROLLER)) is unknown
        assert status_of(server.port, certificates.of(Role.CONTROLLER)) is grpc.StatusCode.OK


def config_of(port: int, credentials: Credentials | None) -> SwitchConfig:
    folder = None if credentials is None else credentials.folder
    return SwitchConfig(name=SWITCH, address=f"127.0.0.1:{port}", credentials=folder)


def test_the_controller_calls_with_its_certificate(certificates: CertificateSet) -> None:
    with serve(certificates.of(Role.SWITCH)) as server:
        config = config_of(server.port, certificates.of(Role.CONTROLLER))
        assert asyncio.run(fetch_pipeline(config)) is None
        assert asyncio.run(read_port_losses(config)) == []


@pytest.mark.parametrize(
    ("presented", "text"),
    [
        (lambda made: made.of(Role.WORKER), "no valid switch.switch.switchfold: Hostname mismatch"),
        (lambda made: made.another(Role.SWITCH, "s2"), "Hostname mismatch"),
        (lambda made: made.strange(Role.SWITCH), "no valid switch.switch.switchfold"),
        (
            lambda made: made.authority.renew(SWITCH, days=EXPIRED_DAYS),
            "certificate has expired",
        ),
        (lambda _: None, "does not use TLS"),
    ],
    ids=["role", "name", "authority", "expired", "plain"],
)
def test_the_controller_believes_no_false_switch(
    tmp_path: Path, presented: Callable[[CertificateSet], Credentials | None], text: str
) -> None:
    certificates = CertificateSet.create(tmp_path)
    with serve(presented(certificates)) as server:
        config = config_of(server.port, certificates.of(Role.CONTROLLER))
        with pytest.raises(SwitchUnreachableError, match=text):
            asyncio.run(fetch_pipeline(config))


def test_the_controller_says_that_a_switch_wants_its_certificate(
    certificates: CertificateSet,
) -> None:
    with serve(certificates.of(Role.SWITCH)) as server:
        with pytest.raises(SwitchUnreachableError, match="wants TLS and a certificate"):
            asyncio.run(fetch_pipeline(config_of(server.port, None)))
        worker = config_of(server.port, certificates.of(Role.WORKER))
        with pytest.raises(SwitchError, match="of role worker is not for this call"):
            asyncio.run(fetch_pipeline(worker))


def test_the_command_checks_its_credentials(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        main, ["run", "--grpc", "127.0.0.1:0", "--credentials", str(tmp_path)]
    )
    assert result.exit_code == 1
    assert "ca.pem cannot be read" in result.output


@pytest.mark.usefixtures("no_choice")
def test_server_without_credentials_must_be_told_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(CredentialsError, match=r"^P4Runtime at 127.0.0.1:0: no credentials"):
        serve(None)
    with serve(None, f"unix:{tmp_path}/grpc"):
        assert "INSECURE" not in caplog.text, "the file's rights say who connects"
    for count in (1, 2):
        with serve(None, insecure=True) as server:
            assert status_of(server.port, None) is grpc.StatusCode.OK
        assert caplog.text.count("INSECURE: P4Runtime at 127.0.0.1:0: without") == count


@pytest.mark.usefixtures("no_choice")
def test_softswitch_without_credentials_must_be_told_so() -> None:
    command = [sys.executable, "-m", "switchfold.softswitch", "run", "--grpc", "127.0.0.1:0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=START_S)
    assert done.returncode == 1
    assert "Error: P4Runtime at 127.0.0.1:0: no credentials: make certificates" in done.stderr
    assert "--role switch" in done.stderr
    assert "or choose --insecure" in done.stderr
    with subprocess.Popen(
        [*command, "--insecure"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready: P4Runtime on 127.0.0.1:")
        process.terminate()
        _, said = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0
    assert "INSECURE: P4Runtime at 127.0.0.1:0: without credentials" in said
