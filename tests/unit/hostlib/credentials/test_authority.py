# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The authority: what it signs, renews and revokes, as Python's and OpenSSL's TLS judge it."""

from __future__ import annotations

import os
import ssl
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from certificates import CertificateSet
from switchfold.controller.__main__ import switchfold
from switchfold.controller.errors import ConfigError
from switchfold.hostlib.credentials import (
    Credentials,
    CredentialsError,
    Role,
    role_name,
    roles_of,
)
from switchfold.hostlib.credentials.authority import CertificateAuthority


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> CertificateSet:
    return CertificateSet.create(tmp_path_factory.mktemp("certs"))


def handshake(server: Credentials, client: Credentials, name: str) -> frozenset[Role]:
    """Return the roles that the client's certificate proves; raises ssl.SSLError of either end."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    accepting = server.server_context().wrap_bio(to_server, to_client, server_side=True)
    calling = client.client_context().wrap_bio(to_client, to_server, server_hostname=name)
    waiting = [calling, accepting]
    while waiting:
        end = waiting.pop(0)
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            waiting.append(end)
    return roles_of(accepting.getpeercert())


@pytest.mark.parametrize("role", Role)
def test_a_certificate_proves_its_role_and_no_other(
    certificates: CertificateSet, role: Role
) -> None:
    server = certificates.of(Role.CONTROLLER)
    client = certificates.of(role)
    assert handshake(server, client, role_name(Role.CONTROLLER)) == {role}
    for other in set(Role) - {role}:
        with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
            handshake(client, server, role_name(other))


def test_a_server_proves_its_name(certificates: CertificateSet) -> None:
    server = certificates.another(Role.SWITCH, "leaf_1.pod-2")
    client = certificates.of(Role.CONTROLLER)
    assert handshake(server, client, role_name(Role.SWITCH, "leaf_1.pod-2")) == {Role.CONTROLLER}
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        handshake(server, client, role_name(Role.SWITCH, "leaf_1.pod-3"))


def test_certificates_of_another_authority_are_refused_by_both_ends(
    certificates: CertificateSet,
) -> None:
    ours, thief = certificates.of(Role.WORKER), certificates.mixed(Role.WORKER)
    for server, client in ((ours, thief), (thief, ours)):
        with pytest.raises(ssl.SSLCertVerificationError) as caught:
            handshake(server, client, role_name(Role.WORKER))
        assert caught.value.verify_code in (7, 20)  # bad signature, no such issuer


def test_an_expired_certificate_is_refused_by_both_ends(certificates: CertificateSet) -> None:
    ours, late = certificates.of(Role.WORKER), certificates.expired(Role.WORKER)
    for server, client in ((ours, late), (late, ours)):
        with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
            handshake(server, client, role_name(Role.WORKER))


def test_a_revoked_certificate_is_refused_by_both_ends(certificates: CertificateSet) -> None:
    ours, bad = certificates.of(Role.WORKER), certificates.revoked(Role.WORKER)
    for server, client in ((ours, bad), (bad, ours)):
        with pytest.raises(ssl.SSLCertVerificationError, match="revoked"):
            handshake(server, client, role_name(Role.WORKER))
    assert handshake(ours, ours, role_name(Role.WORKER)) == {Role.WORKER}


def test_revoking_a_name_revokes_what_renewals_have_replaced(
    certificates: CertificateSet, tmp_path: Path
) -> None:
    made = certificates.another(Role.WORKER, "twice")
    old = made.certificate.read_bytes()
    certificates.authority.renew("twice")
    assert made.certificate.read_bytes() != old
    ours = certificates.of(Role.WORKER)
    assert handshake(ours, made, role_name(Role.WORKER)) == {Role.WORKER}
    certificates.authority.revoke("twice")
    for content in (old, made.certificate.read_bytes()):
        made.certificate.write_bytes(content)
        with pytest.raises(ssl.SSLCertVerificationError, match="revoked"):
            handshake(ours, made, role_name(Role.WORKER))


def test_a_revoked_name_is_issued_again_with_another_key(certificates: CertificateSet) -> None:
    made = certificates.revoked(Role.SERVER)
    key = made.key.read_bytes()
    with pytest.raises(CredentialsError, match="is revoked; issue another"):
        certificates.authority.renew("revoked-server")
    certificates.authority.issue(Role.SERVER, "revoked-server")
    assert made.key.read_bytes() != key
    client = certificates.of(Role.WORKER)
    assert handshake(made, client, role_name(Role.SERVER)) == {Role.WORKER}


def test_renewal_keeps_key_role_and_addresses(certificates: CertificateSet) -> None:
    made = certificates.authority.issue(
        Role.CONTROLLER, "c9", days=1, addresses=("10.0.0.9", "control.example.org")
    )
    key = made.key.read_bytes()
    (before,) = (one for one in certificates.authority.list_issued() if one.name == "c9")
    certificates.authority.renew("c9", days=30)
    (after,) = (one for one in certificates.authority.list_issued() if one.name == "c9")
    assert made.key.read_bytes() == key
    assert (after.role, after.is_revoked) == (Role.CONTROLLER, False)
    assert after.not_after > before.not_after
    for name in ("control.example.org", "10.0.0.9", role_name(Role.CONTROLLER)):
        assert handshake(made, certificates.of(Role.WORKER), name) == {Role.WORKER}


def test_keys_are_their_owners_alone(certificates: CertificateSet) -> None:
    folder = certificates.authority.folder
    for path in (folder / "ca.key", *folder.glob("issued/*/key.pem")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("name", ["ca.pem", "cert.pem", "key.pem", "crl.pem"])
def test_files_that_are_missing_or_damaged_are_named(
    certificates: CertificateSet, name: str
) -> None:
    made = certificates.another(Role.WORKER, f"damaged-{name}")
    made.check()
    (made.folder / name).write_text("-----BEGIN NONSENSE-----\n")
    with pytest.raises(CredentialsError, match=f"{name}.*switchfold certs issue"):
        made.check()
    (made.folder / name).unlink()
    with pytest.raises(CredentialsError, match=f"{name} cannot be read: No such file"):
        made.check()


def test_a_key_of_another_certificate_is_refused(certificates: CertificateSet) -> None:
    made = certificates.another(Role.WORKER, "mixed-up")
    made.key.write_bytes(certificates.of(Role.WORKER).key.read_bytes())
    with pytest.raises(CredentialsError, match="are not a certificate and its key"):
        made.check()


def test_a_list_of_revoked_certificates_that_the_authority_did_not_sign_is_refused(
    certificates: CertificateSet,
) -> None:
    made = certificates.another(Role.WORKER, "forged-list")
    made.revoked.write_bytes((certificates.stranger.folder / "crl.pem").read_bytes())
    with pytest.raises(ssl.SSLCertVerificationError, match="CRL"):
        handshake(made, certificates.of(Role.WORKER), role_name(Role.WORKER))


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "-x", "x" * 64, "é", "a b"])
def test_names_that_are_no_names_are_refused(certificates: CertificateSet, name: str) -> None:
    with pytest.raises(CredentialsError, match="is not a name"):
        certificates.authority.issue(Role.WORKER, name)


@pytest.mark.parametrize("address", ["operator.switchfold", "x.operator.switchfold", "no/name"])
def test_addresses_prove_no_roles(certificates: CertificateSet, address: str) -> None:
    with pytest.raises(CredentialsError, match="is no IP address or DNS name"):
        certificates.authority.issue(Role.WORKER, "sly", addresses=(address,))


def test_an_authority_is_not_replaced(certificates: CertificateSet) -> None:
    with pytest.raises(CredentialsError, match="is not empty"):
        CertificateAuthority.create(certificates.authority.folder)
    with pytest.raises(CredentialsError, match="has a certificate; renew it"):
        certificates.authority.issue(Role.WORKER, "worker")


def test_commands(tmp_path: Path) -> None:
    folder = tmp_path / "authority"

    def run(*words: str | os.PathLike[str]) -> str:
        done = CliRunner().invoke(switchfold, ["certs", *map(str, words)])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == 0, done.output
        return done.output

    run("init", folder)
    assert run("issue", folder, "--role", "worker", "w1", "w2").splitlines() == [
        str(folder / "issued" / name) for name in ("w1", "w2")
    ]
    run("issue", folder, "--role", "controller", "--days", "3", "c1")
    assert run("renew", folder, "--within-days", "10").splitlines() == [
        str(folder / "issued" / "c1")
    ]
    run("revoke", folder, "w2")
    cells = [line.strip("│").split("│") for line in run("list", folder).splitlines()]
    states = {row[0].strip(): row[3].strip() for row in cells if "worker" in "".join(row)}
    assert states == {"w1": "valid", "w2": "revoked"}
    with pytest.raises(ConfigError, match="give names, or --within-days"):
        run("renew", folder)
    with pytest.raises(CredentialsError, match="no certificate of 'w3'"):
        run("revoke", folder, "w3")
    with pytest.raises(CredentialsError, match=r"^cannot read .*make an authority with"):
        run("list", tmp_path / "nowhere")
