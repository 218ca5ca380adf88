# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Options of the sockets that sessions run over, as the kernel has them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
from pathlib import Path

import pytest

from controller_fixtures import FakeWorker, run, running_controller
from switchfold.controller.api.keepalive import PROBE_S, probe_connections
from switchfold.hostlib.control.controller_channel import CONTROLLER_GONE_S
from switchfold.hostlib.control.controller_link import GrpcControllerLink
from switchfold.hostlib.control.join_request import JoinRequest
from switchfold.hostlib.control.view import Endpoint
from switchfold.hostlib.options import SessionOptions

TCP = socket.IPPROTO_TCP


class Sockets(contextlib.ExitStack):
    """Duplicates of this process's TCP connections, closed in the end."""

    def connections(self) -> list[socket.socket]:
        """Return those that are connected."""
        found: list[socket.socket] = []
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):  # closed by now, or not connected
                if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                    each = self.enter_context(socket.socket(fileno=os.dup(int(name))))
                    if each.family in (socket.AF_INET, socket.AF_INET6) and each.getpeername():
                        found.append(each)
        return found


def test_accepted_sessions_are_probed_by_the_kernel(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_controller(tmp_path, host_gone_s=3.5) as (server, _):
            port = int(server.address.rpartition(":")[2])
            worker = await FakeWorker(server.address, 0, 1).join()
            await worker.join_reply()
            with Sockets() as sockets:
                accepted = [e for e in sockets.connections() if e.getsockname()[1] == port]
                assert len(accepted) == 1
                assert accepted[0].getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
                assert accepted[0].getsockopt(TCP, socket.TCP_KEEPIDLE) == PROBE_S
                assert accepted[0].getsockopt(TCP, socket.TCP_KEEPINTVL) == PROBE_S
                assert accepted[0].getsockopt(TCP, socket.TCP_USER_TIMEOUT) == 3500
            await worker.close()

    run(scenario())


def test_worker_gives_its_controller_a_time_limit(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            port = int(server.address.rpartition(":")[2])
            request = JoinRequest(
                job="train",
                worker_id=0,
                num_workers=1,
                local=Endpoint(address="10.0.0.1", udp_port=5000),
                options=SessionOptions(ingress_port=1),
            )
            link = GrpcControllerLink(server.address, request)
            await asyncio.to_thread(link.join, 60.0)
            with Sockets() as sockets:
                dialled = [e for e in sockets.connections() if e.getpeername()[1] == port]
                limits = [each.getsockopt(TCP, socket.TCP_USER_TIMEOUT) for each in dialled]
            assert limits == [1000 * CONTROLLER_GONE_S]
            await asyncio.to_thread(link.close)

    run(scenario())


def test_port_where_nothing_listens_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert probe_connections(bound.getsockname()[1]) == 0
    assert "only leases detect vanished hosts" in caplog.text
