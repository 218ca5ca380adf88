# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Row servers at a controller over TLS: who is let in, and who is told why not."""

from __future__ import annotations

import asyncio
import queue
import re
from pathlib import Path

import pytest

from certificates import CertificateSet, damaged_caller
from controller_fixtures import run, running_controller
from switchfold.hostlib.control.row_server_link import RowServerLink, RowServerRequest, RowView
from switchfold.hostlib.control.view import Endpoint
from switchfold.hostlib.credentials import Credentials, Role
from switchfold.hostlib.errors import HostlibError, JobRefusedError
from time_bound import until


class RowLink:
    """A row server's link to a controller, and what it is told."""

    def __init__(self, address: str, credentials: Credentials | None) -> None:
        self.views: queue.SimpleQueue[RowView] = queue.SimpleQueue()
        self.downs: queue.SimpleQueue[HostlibError] = queue.SimpleQueue()
        self.link = RowServerLink(
            address,
            RowServerRequest(
                job="train",
                server_id=0,
                identity=b"i" * 16,
                local=Endpoint(address="10.0.0.2", udp_port=6000),
                rows_wanted=8,
                ingress_port=2,
                credentials=None if credentials is None else str(credentials.folder),
            ),
            on_view=self.views.put,
            on_installed=lambda *_: None,
            on_down=self.downs.put,
        )

    def __enter__(self) -> RowLink:
        self.link.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.link.close()


ROW_SERVER_REFUSALS = {
    "none": "wants TLS and a certificate; name a folder",
    "wrong authority": "our certificate .* is not valid: (unable|certificate sig)",
    "expired": "is not valid: certificate has expired; renew it",
    "revoked": "is not valid: certificate revoked",
}


@pytest.mark.parametrize("kind", ROW_SERVER_REFUSALS)
def test_a_row_server_says_what_is_wrong_with_its_certificate(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It asks again, since certificates can be renewed; its rows stay as they are."""
    certificates = CertificateSet.create(tmp_path / "certs")
    caller = damaged_caller(certificates, kind, Role.SERVER)

    async def scenario() -> None:
        ours = certificates.of(Role.CONTROLLER).folder
        async with running_controller(tmp_path, credentials=ours) as (server, _):
            with RowLink(server.address, caller) as server_of_rows:
                said = re.compile(f"{ROW_SERVER_REFUSALS[kind]}.*; rows stay as they are")
                await until(lambda: said.search(caplog.text) is not None)
                assert server_of_rows.views.empty()
                assert server_of_rows.downs.empty()

    run(scenario())


def test_a_row_server_attaches_once_its_certificate_is_renewed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    certificates = CertificateSet.create(tmp_path / "certs")

    async def scenario() -> None:
        ours = certificates.of(Role.CONTROLLER).folder
        async with running_controller(tmp_path, credentials=ours) as (server, _):
            with RowLink(server.address, certificates.expired(Role.SERVER)) as link:
                await until(lambda: "certificate has expired" in caplog.text)
                certificates.authority.renew(f"expired-{Role.SERVER}")
                await asyncio.to_thread(link.views.get, timeout=60.0)

    run(scenario())


def test_a_row_server_with_another_role_is_refused(tmp_path: Path) -> None:
    certificates = CertificateSet.create(tmp_path / "certs")

    async def scenario() -> None:
        ours = certificates.of(Role.CONTROLLER).folder
        async with running_controller(tmp_path, credentials=ours) as (server, _):
            with RowLink(server.address, certificates.of(Role.WORKER)) as refused:
                error = await asyncio.to_thread(refused.downs.get, timeout=60.0)
            assert isinstance(error, JobRefusedError)
            assert "a certificate of role worker is not for this call" in str(error)
            with RowLink(server.address, certificates.of(Role.SERVER)) as served:
                await asyncio.to_thread(served.views.get, timeout=60.0)

    run(scenario())
