# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What somebody reads who listens between a worker and its controller."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from certificates import CertificateSet
from controller_fixtures import run, running_controller
from recording_link import RecordingLink
from switchfold.hostlib.control.controller_link import GrpcControllerLink
from switchfold.hostlib.control.join_request import JoinRequest
from switchfold.hostlib.control.view import Endpoint
from switchfold.hostlib.credentials import Role
from switchfold.hostlib.options import SessionOptions

TOKEN = "a-token-of-workers"
JOB_TOKEN = "a-token-of-one-job"
WAIT_S = 60.0


def join(address: str, credentials: Path | None) -> None:
    """Join a job of one worker and leave it."""
    options = SessionOptions(
        ingress_port=1,
        token=TOKEN,
        job_token=JOB_TOKEN,
        credentials=None if credentials is None else str(credentials),
    )
    local = Endpoint(address="10.0.0.1", udp_port=5000)
    request = JoinRequest(
        job="a-job-by-name", worker_id=0, num_workers=1, local=local, options=options
    )
    link = GrpcControllerLink(address, request)
    try:
        link.join(WAIT_S)
    finally:
        link.close()


@pytest.mark.parametrize("is_protected", [True, False])
def test_tokens_do_not_cross_in_clear(tmp_path: Path, is_protected: bool) -> None:
    """The tap of the unprotected run finds what that of the protected one must not."""
    certificates = CertificateSet.create(tmp_path / "certs")
    ours, worker = (
        certificates.of(role).folder if is_protected else None
        for role in (Role.CONTROLLER, Role.WORKER)
    )

    async def scenario() -> bytes:
        options = {"credentials": ours, "insecure": not is_protected, "token": TOKEN}
        async with running_controller(tmp_path, **options) as (server, _):
            host, _, port = server.address.rpartition(":")
            with RecordingLink(int(port)) as tap:
                await asyncio.to_thread(join, f"{host}:{tap.port}", worker)
                return bytes(tap.upwards)

    seen = run(scenario())
    assert seen
    for secret in (TOKEN, JOB_TOKEN, "a-job-by-name"):
        assert (secret.encode() in seen) is not is_protected
