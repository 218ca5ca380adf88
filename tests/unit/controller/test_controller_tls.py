# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The controller over TLS: who is let in with which certificate, and who is told why not."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass
from grpc import StatusCode

from certificates import CertificateSet, damaged_caller
from controller_fixtures import run, running_controller
from switchfold.controller.api.access import allowed_roles, required_role
from switchfold.controller.api.operator_client import OperatorClient
from switchfold.controller.config import load_config
from switchfold.controller.errors import ConfigError, OperatorRefusedError
from switchfold.controller.listening import SERVICES
from switchfold.hostlib.control.controller_addresses import ControllerAddresses
from switchfold.hostlib.control.controller_channel import ControllerChannel
from switchfold.hostlib.control.controller_link import GrpcControllerLink
from switchfold.hostlib.control.join_request import JoinRequest
from switchfold.hostlib.control.view import Endpoint
from switchfold.hostlib.credentials import Credentials, CredentialsError, Role, role_name
from switchfold.hostlib.credentials.grpc_channels import open_channel
from switchfold.hostlib.errors import JobRefusedError
from switchfold.hostlib.options import SessionOptions

METHODS = [method for service in SERVICES for method in service.methods]
REFUSED = (StatusCode.UNAUTHENTICATED, StatusCode.PERMISSION_DENIED)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> CertificateSet:
    return CertificateSet.create(tmp_path_factory.mktemp("certs"))


@pytest.fixture(autouse=True)
def probes_wait_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("switchfold.hostlib.credentials.grpc_channels._PROBE_S", 60.0)


def open_to(address: str, credentials: Credentials) -> grpc.Channel:
    name = role_name(Role.CONTROLLER)
    return cast("grpc.Channel", open_channel(grpc, address, credentials=credentials, server=name))


def status_of(channel: grpc.Channel, method: MethodDescriptor) -> StatusCode:
    """Call a method with an empty request; return the status that it ends with."""
    path = f"/{method.containing_service.full_name}/{method.name}"
    request = GetMessageClass(method.input_type)()
    if method.client_streaming:
        many = cast("Any", channel).stream_stream(path, type(request).SerializeToString)
        return many(iter([request])).code()
    one = cast("Any", channel).unary_unary(path, type(request).SerializeToString)
    return one.future(request).code()


def statuses(address: str, credentials: Credentials) -> dict[str, StatusCode]:
    with open_to(address, credentials) as channel:
        return {method.name: status_of(channel, method) for method in METHODS}


def link_to(
    address: str, credentials: Credentials | None, *, token: str = "", worker_id: int = 0
) -> GrpcControllerLink:
    folder = None if credentials is None else str(credentials.folder)
    return GrpcControllerLink(
        address,
        JoinRequest(
            job="train",
            worker_id=worker_id,
            num_workers=1,
            local=Endpoint(address="10.0.0.1", udp_port=5000),
            options=SessionOptions(ingress_port=1, token=token, credentials=folder),
        ),
    )


def join(address: str, credentials: Credentials | None, **options: Any) -> None:
    """Join a job of one worker and leave it."""
    link = link_to(address, credentials, **options)
    try:
        link.join(60.0)
    finally:
        link.close()


@pytest.mark.parametrize("role", Role)
def test_each_role_opens_its_own_methods(
    certificates: CertificateSet, tmp_path: Path, role: Role
) -> None:
    ours = certificates.of(Role.CONTROLLER).folder

    async def scenario() -> dict[str, StatusCode]:
        async with running_controller(tmp_path, credentials=ours) as (server, _):
            return await asyncio.to_thread(statuses, server.address, certificates.of(role))

    found = run(scenario())
    for method in METHODS:
        is_open = role in allowed_roles(required_role(method))
        assert (found[method.name] not in REFUSED) is is_open, (method.name, found[method.name])
    opened = {name for name, status in found.items() if status not in REFUSED}
    assert opened == {
        Role.WORKER: {"Join", "FollowAsWorker"},
        Role.SERVER: {"ServeRows", "FollowAsServer", "FollowAsReplica"},
        Role.OPERATOR: {method.name for method in METHODS},
        Role.READ_ONLY: {
            *("ShowController", "ListJobs", "ShowJob", "ListSwitches", "ShowSwitch"),
            *("ShowTree", "ListLinks", "ShowSchedule", "ShowActivity"),
        },
    }.get(role, set[str]())


def test_a_worker_joins_and_an_operator_looks(certificates: CertificateSet, tmp_path: Path) -> None:
    ours = certificates.of(Role.CONTROLLER).folder

    async def scenario() -> None:
        async with running_controller(tmp_path, credentials=ours, token="x") as (server, _):
            worker, operator = certificates.of(Role.WORKER), certificates.of(Role.OPERATOR)
            await asyncio.to_thread(join, server.address, worker, token="x")
            client = OperatorClient(server.address, "x", operator.folder)
            assert (await asyncio.to_thread(client.show_controller)).SerializeToString()
            jobs = await asyncio.to_thread(lambda: client.list_jobs(include_ended=True))
            assert [job.name for job in jobs] == ["train"]
            with pytest.raises(JobRefusedError, match="wrong token"):
                await asyncio.to_thread(join, server.address, worker, token="y")

    run(scenario())


OF_ANOTHER = "our certificate .* is not valid: (unable|certificate sig)"
WORKER_REFUSALS = {
    "none": (CredentialsError, "wants TLS and a certificate; name a folder"),
    "wrong authority": (CredentialsError, OF_ANOTHER),
    "expired": (CredentialsError, "is not valid: certificate has expired; renew it"),
    "revoked": (CredentialsError, "is not valid: certificate revoked"),
    "wrong role": (JobRefusedError, "a certificate of role read-only is not for this call"),
}


@pytest.mark.parametrize("kind", WORKER_REFUSALS)
def test_a_worker_is_told_what_is_wrong_with_its_certificate(tmp_path: Path, kind: str) -> None:
    certificates = CertificateSet.create(tmp_path / "certs")
    caller = damaged_caller(certificates, kind, Role.WORKER)
    error, text = WORKER_REFUSALS[kind]

    async def scenario() -> None:
        ours = certificates.of(Role.CONTROLLER).folder
        async with running_controller(tmp_path, credentials=ours) as (server, _):
            with pytest.raises(error, match=text):
                await asyncio.to_thread(join, server.address, caller)

    run(scenario())


OPERATOR_REFUSALS = {
    "none": (ConfigError, "wants TLS and a certificate"),
    "wrong authority": (ConfigError, OF_ANOTHER),
    "expired": (ConfigError, "is not valid: certificate has expired; renew it"),
    "revoked": (ConfigError, "is not valid: certificate revoked"),
    "wrong role": (OperatorRefusedError, "a certificate of role worker is not for this call"),
}


@pytest.mark.parametrize("kind", OPERATOR_REFUSALS)
def test_an_operator_is_told_what_is_wrong_with_its_certificate(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SWITCHFOLD_CREDENTIALS", raising=False)
    certificates = CertificateSet.create(tmp_path / "certs")
    caller = damaged_caller(certificates, kind, Role.OPERATOR)
    error, text = OPERATOR_REFUSALS[kind]

    async def scenario() -> None:
        ours = certificates.of(Role.CONTROLLER).folder
        async with running_controller(tmp_path, credentials=ours) as (server, _):
            folder = None if caller is None else caller.folder
            client = OperatorClient(server.address, credentials=folder)
            with pytest.raises(error, match=text):
                await asyncio.to_thread(client.list_jobs)

    run(scenario())


@pytest.mark.parametrize("kind", ["wrong name", "wrong authority", "expired", "no TLS"])
def test_a_false_controller_is_not_believed(tmp_path: Path, kind: str) -> None:
    certificates = CertificateSet.create(tmp_path / "certs")
    false: dict[str, Callable[[], Credentials | None]] = {
        "wrong name": lambda: certificates.of(Role.WORKER),
        "wrong authority": lambda: certificates.strange(Role.CONTROLLER),
        "expired": lambda: certificates.expired(Role.CONTROLLER),
        "no TLS": lambda: None,
    }
    presented = false[kind]()
    text = {
        "wrong name": "no valid controller.switchfold: Hostname mismatch",
        "wrong authority": "no valid controller.switchfold: (unable to get|self)",
        "expired": "no valid controller.switchfold: certificate has expired",
        "no TLS": "does not use TLS",
    }[kind]

    async def scenario() -> None:
        folder = None if presented is None else presented.folder
        options = {"insecure": True} if folder is None else {"credentials": folder}
        async with running_controller(tmp_path, **options) as (server, _):
            with pytest.raises(CredentialsError, match=text):
                await asyncio.to_thread(join, server.address, certificates.of(Role.WORKER))
            operator = certificates.of(Role.OPERATOR).folder
            client = OperatorClient(server.address, credentials=operator)
            with pytest.raises(ConfigError, match=text):
                await asyncio.to_thread(client.list_jobs)

    run(scenario())


def test_a_certificate_that_is_revoked_now_opens_nothing_any_more(tmp_path: Path) -> None:
    certificates = CertificateSet.create(tmp_path / "certs")
    ours, operator = certificates.of(Role.CONTROLLER), certificates.of(Role.OPERATOR)

    def revoke_between(channel: grpc.Channel) -> list[StatusCode]:
        (method,) = (one for one in METHODS if one.name == "ListJobs")
        before = status_of(channel, method)
        certificates.authority.revoke("operator")
        return [before, status_of(channel, method)]

    async def scenario() -> None:
        async with running_controller(tmp_path, credentials=ours.folder) as (server, _):
            with open_to(server.address, operator) as channel:
                found = await asyncio.to_thread(revoke_between, channel)
            assert found == [StatusCode.OK, StatusCode.UNAUTHENTICATED]

    run(scenario())


def shown_certificate(address: str, client: Credentials) -> str:
    """Return the PEM certificate that a server shows to a new connection."""
    host, _, port = address.rpartition(":")
    context = client.client_context()
    with (
        socket.create_connection((host, int(port))) as sock,
        context.wrap_socket(sock, server_hostname=role_name(Role.CONTROLLER)) as encrypted,
    ):
        der = encrypted.getpeercert(binary_form=True)
    assert der is not None
    return ssl.DER_cert_to_PEM_cert(der)


def test_renewal_keeps_the_job_and_counts_from_the_next_connection_on(tmp_path: Path) -> None:
    certificates = CertificateSet.create(tmp_path / "certs")
    ours, worker = certificates.of(Role.CONTROLLER), certificates.of(Role.WORKER)

    async def scenario() -> None:
        async with running_controller(tmp_path, credentials=ours.folder) as (server, _):
            link = link_to(server.address, worker)
            await asyncio.to_thread(link.join, 60.0)
            await asyncio.to_thread(link.barrier, "before", 60.0)
            before = await asyncio.to_thread(shown_certificate, server.address, worker)
            assert before.split() == ours.certificate.read_text().split()
            certificates.authority.renew("controller")
            certificates.authority.renew("worker")
            await asyncio.to_thread(link.barrier, "renewed", 60.0)
            after = await asyncio.to_thread(shown_certificate, server.address, worker)
            assert after.split() == ours.certificate.read_text().split()
            assert after != before
            await asyncio.to_thread(link.close)

    run(scenario())


def test_a_renewed_worker_opens_another_channel_and_damaged_files_change_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    certificates = CertificateSet.create(tmp_path / "certs")
    worker = certificates.of(Role.WORKER)
    channel = ControllerChannel(ControllerAddresses("127.0.0.1:1"), str(worker.folder))
    first = channel.get()
    assert channel.get() is first
    certificates.authority.renew("worker")
    second = channel.get()
    assert second is not first
    worker.certificate.write_text("damaged")
    assert channel.get() is second
    assert "the certificate before stays in use" in caplog.text
    channel.close()


def test_settings_name_credentials_for_all_switches_or_one(tmp_path: Path) -> None:
    file = tmp_path / "controller.toml"
    file.write_text(
        'credentials = "c1"\n'
        '[[switch]]\nname = "s1"\naddress = "127.0.0.1:1"\n'
        '[[switch]]\nname = "s2"\naddress = "127.0.0.1:2"\ncredentials = "other"\n'
    )
    config = load_config(file)
    assert config.credentials == Path("c1")
    assert [switch.credentials for switch in config.switches] == [Path("c1"), Path("other")]


@pytest.mark.usefixtures("no_choice")
def test_a_controller_without_credentials_must_be_told_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(**options: bool) -> None:
        async with running_controller(tmp_path, **options):
            pass

    with pytest.raises(
        ConfigError, match=r"^this controller: no credentials.*or choose --insecure"
    ):
        run(scenario(insecure=False))
    run(scenario(insecure=True))
    assert "INSECURE: this controller: without credentials, nothing is encrypted" in caplog.text
