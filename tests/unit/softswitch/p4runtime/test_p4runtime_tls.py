# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""TLS and mutual TLS, with certificates of this test, and files that cannot be used."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from click.testing import CliRunner
from finsy.proto import p4r, p4r_grpc

from fake_data_plane import FakeDataPlane
from switchfold.softswitch.commands.command import main
from switchfold.softswitch.p4runtime.service.server import P4RuntimeServer
from switchfold.softswitch.p4runtime.service.tls import TlsError, TlsFiles
from switchfold.softswitch.program.bmv2_json import read_program

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
DEADLINE_S = 60.0


def _openssl(*arguments: str | Path) -> None:
    command = ["openssl", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@dataclass(frozen=True)
class Pair:
    certificate: Path
    key: Path


def _authority(folder: Path, name: str) -> Pair:
    made = Pair(folder / f"{name}.pem", folder / f"{name}.key")
    _openssl(
        *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
        *("-keyout", made.key, "-out", made.certificate, "-days", "2", "-subj", f"/CN={name}"),
    )
    return made


def _signed(folder: Path, name: str, authority: Pair) -> Pair:
    made = Pair(folder / f"{name}.pem", folder / f"{name}.key")
    request = folder / f"{name}.csr"
    _openssl(
        *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
        *("-keyout", made.key, "-out", request, "-subj", f"/CN={name}"),
    )
    extensions = folder / f"{name}.ext"
    extensions.write_text("subjectAltName=IP:127.0.0.1\n")
    _openssl(
        *("x509", "-req", "-in", request, "-CA", authority.certificate, "-CAkey", authority.key),
        *("-CAcreateserial", "-days", "2", "-extfile", extensions, "-out", made.certificate),
    )
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    authority = _authority(folder, "authority")
    _authority(folder, "stranger")
    _signed(folder, "server", authority)
    _signed(folder, "controller", authority)
    return folder


def _files(folder: Path, *, mutual: bool = False) -> TlsFiles:
    ca = folder / "authority.pem" if mutual else None
    return TlsFiles(certificate=folder / "server.pem", key=folder / "server.key", client_ca=ca)


def _serve(tls: TlsFiles) -> P4RuntimeServer:
    return P4RuntimeServer(
        FakeDataPlane(),
        address="127.0.0.1:0",
        device_id=1,
        compile_program=read_program,
        tls=tls,
    )


def _capabilities(channel: grpc.Channel) -> str:
    with channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        answer = stub.Capabilities(p4r.CapabilitiesRequest(), timeout=DEADLINE_S)
    return answer.p4runtime_api_version


def _secure(folder: Path, port: int, authority: str, client: str | None = None) -> grpc.Channel:
    pair: dict[str, bytes] = {}
    if client is not None:
        pair["private_key"] = (folder / f"{client}.key").read_bytes()
        pair["certificate_chain"] = (folder / f"{client}.pem").read_bytes()
    root = (folder / f"{authority}.pem").read_bytes()
    credentials = grpc.ssl_channel_credentials(root_certificates=root, **pair)
    return grpc.secure_channel(f"127.0.0.1:{port}", credentials)


def _is_refused(channel: grpc.Channel) -> bool:
    with pytest.raises(grpc.RpcError) as caught:
        _capabilities(channel)
    error = caught.value
    assert isinstance(error, grpc.Call)
    return error.code() is grpc.StatusCode.UNAVAILABLE


def test_clients_that_trust_the_server_are_served(folder: Path) -> None:
    with _serve(_files(folder)) as server:
        assert _capabilities(_secure(folder, server.port, "authority")) == "1.4.0"
        assert _is_refused(_secure(folder, server.port, "stranger"))
        assert _is_refused(grpc.insecure_channel(f"127.0.0.1:{server.port}"))


def test_mutual_tls_wants_a_certificate_of_the_client_too(folder: Path) -> None:
    with _serve(_files(folder, mutual=True)) as server:
        channel = _secure(folder, server.port, "authority", "controller")
        assert _capabilities(channel) == "1.4.0"
        assert _is_refused(_secure(folder, server.port, "authority"))
        assert _is_refused(_secure(folder, server.port, "authority", "stranger"))


def test_files_that_cannot_be_used_are_named(folder: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_bytes(b"")
    good = _files(folder)
    missing = tmp_path / "missing.pem"
    passphrase = tmp_path / "passphrase.key"
    _openssl("ec", "-in", good.key, "-aes128", "-passout", "pass:x", "-out", passphrase)
    cases = [
        (TlsFiles(certificate=missing, key=good.key), "certificate cannot be read: No such file"),
        (TlsFiles(certificate=good.certificate, key=missing), "key cannot be read"),
        (TlsFiles(certificate=good.certificate, key=folder / "stranger.key"), "mismatch"),
        (TlsFiles(certificate=empty, key=good.key), "are not a PEM certificate"),
        (TlsFiles(certificate=good.certificate, key=passphrase), "passphrase"),
        (
            TlsFiles(certificate=good.certificate, key=good.key, client_ca=empty),
            "holds no PEM certificate",
        ),
        (
            TlsFiles(certificate=good.certificate, key=good.key, client_ca=missing),
            "client CA cannot be read",
        ),
    ]
    for files, text in cases:
        with pytest.raises(TlsError, match="TLS") as caught:
            files.credentials()
        assert text in str(caught.value)


def test_the_command_checks_its_options(folder: Path) -> None:
    certificate = str(folder / "server.pem")
    runner = CliRunner()
    for options in (
        ["--grpc-tls-cert", certificate],
        ["--grpc-tls-key", str(folder / "server.key")],
        ["--grpc-tls-ca", str(folder / "authority.pem")],
    ):
        result = runner.invoke(main, ["run", "--grpc", "127.0.0.1:0", *options])
        assert result.exit_code == 2
        assert "--grpc-tls-cert and --grpc-tls-key" in result.output
    result = runner.invoke(
        main,
        [
            *("run", "--grpc", "127.0.0.1:0", "--grpc-tls-cert", certificate),
            *("--grpc-tls-key", str(folder / "stranger.key")),
        ],
    )
    assert result.exit_code == 1
    assert "mismatch" in result.output
