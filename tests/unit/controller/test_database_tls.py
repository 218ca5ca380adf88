# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Certificates between controllers and PostgreSQL, each end of which must show one."""

from __future__ import annotations

import logging
from collections.abc import Generator
from dataclasses import dataclass
from urllib.parse import quote

import pytest

from certificates import CertificateSet
from loopback import LOOPBACK
from postgres_server import PostgresServer, postgres_server
from switchfold.controller.database.database import Database
from switchfold.controller.database.postgres import PostgresDatabase
from switchfold.controller.database.postgres_connection import PostgresConnection
from switchfold.controller.database.postgres_url import PostgresUrl
from switchfold.controller.errors import DatabaseError
from switchfold.hostlib.credentials import Credentials, Role

USER = "tests"
"""The server's user, and so the name of the controller's certificate."""


@dataclass(frozen=True)
class SecuredServer:
    server: PostgresServer
    certificates: CertificateSet
    controller: Credentials
    revoked: Credentials

    def url(
        self, credentials: Credentials | None, host: str = LOOPBACK, **more: str
    ) -> PostgresUrl:
        """Return the address as docs/certificates.md writes it."""
        options = {"hostaddr": LOOPBACK, "sslmode": "verify-full"}
        if credentials is not None:
            options |= {
                "sslrootcert": str(credentials.authority),
                "sslcert": str(credentials.certificate),
                "sslkey": str(credentials.key),
                "sslcrl": str(credentials.revoked),
            }
        text = "&".join(f"{name}={quote(value, '')}" for name, value in (options | more).items())
        return PostgresUrl(f"postgresql://{USER}@{host}:{self.server.port}/postgres?{text}")


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Generator[SecuredServer]:
    made = CertificateSet.create(tmp_path_factory.mktemp("certificates"))
    controller = made.another(Role.CONTROLLER, USER)
    # Another certificate of that name, which is revoked before the server starts.
    made.authority.revoke(USER)
    revoked = Credentials(controller.folder.rename(controller.folder.with_name("revoked")))
    controller = made.another(Role.CONTROLLER, USER)
    own = made.authority.issue(Role.DATABASE, "db", addresses=(LOOPBACK,))
    with postgres_server(own) as server:
        yield SecuredServer(server, made, controller, revoked)


def test_the_state_is_kept_over_tls(
    secured: SecuredServer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        kept = PostgresDatabase(secured.url(secured.controller))
        database = Database(kept)
    assert "INSECURE" not in caplog.text
    with kept.transaction() as execute:
        rows = execute("SELECT ssl, client_dn FROM pg_stat_ssl WHERE pid = pg_backend_pid()", ())
    assert [tuple(row) for row in rows] == [(True, f"/CN={USER}")]
    database.close()


def refusal(url: PostgresUrl) -> str:
    with pytest.raises(DatabaseError) as caught:
        PostgresConnection(url)
    return str(caught.value)


def test_clients_that_the_server_refuses(secured: SecuredServer) -> None:
    ours = secured.controller
    trusted = {"sslrootcert": str(ours.authority), "sslcert": "", "sslkey": ""}
    assert "client certificate" in refusal(secured.url(None, **trusted))
    thief = secured.certificates.stranger.issue(Role.CONTROLLER, USER)
    assert "unknown ca" in refusal(secured.url(thief, sslrootcert=str(ours.authority), sslcrl=""))
    assert "revoked" in refusal(secured.url(secured.revoked))
    worker = secured.certificates.of(Role.WORKER)
    assert f'authentication failed for user "{USER}"' in refusal(secured.url(worker))
    assert "no pg_hba.conf entry" in refusal(secured.url(ours, sslmode="disable"))


def test_servers_that_the_controller_refuses(secured: SecuredServer) -> None:
    ours = secured.controller
    assert "does not match host name" in refusal(secured.url(ours, host="db.example"))
    stranger = secured.certificates.strange(Role.CONTROLLER)
    other = secured.url(ours, sslrootcert=str(stranger.authority), sslcrl="")
    assert "certificate verify failed" in refusal(other)


@pytest.mark.parametrize(
    ("host", "is_readable"), [(LOOPBACK, False), ("10.0.0.1", True)], ids=["loopback", "network"]
)
def test_a_connection_in_clear_is_warned_of(
    host: str, is_readable: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with postgres_server() as server, caplog.at_level(logging.WARNING):
        url = server.url().replace(f"@{LOOPBACK}:", f"@{host}:")
        PostgresDatabase(PostgresUrl(f"{url}?hostaddr={LOOPBACK}")).close()
    assert ("is not encrypted" in caplog.text) is is_readable
