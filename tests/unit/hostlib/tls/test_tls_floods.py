# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A parameter server that strangers flood: sums stay exact, and its memory is bounded."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from certificates import CertificateSet
from flooding import Flood, ProcessMemory, Target, half_handshake, half_hello, silent
from parameter_cluster import WAIT_S
from server_process import ServerProcess
from switchfold.hostlib.credentials import Role
from switchfold.hostlib.parameter_server import ClientOptions, ParameterClient
from switchfold.hostlib.peers.server import ACCEPTS, MAX_INBOUND
from time_bound import wait_until

CONNECTION_BYTES = 128 << 10
"""Of a stranger's connection, at most."""
SLACK_BYTES = 16 << 20
"""For what the process does besides."""
TURNS = 5


@pytest.mark.parametrize("caller", [silent, half_hello, half_handshake])
def test_flooded_server_sums_on(
    certificates: CertificateSet, caller: Callable[[Target], socket.socket]
) -> None:
    own, array = certificates.of(Role.SERVER), np.arange(5000, dtype=np.float32)
    most = MAX_INBOUND + ACCEPTS
    options: dict[str, Any] = {"credentials": certificates.of(Role.WORKER), "timeout_s": WAIT_S}
    with ServerProcess("--credentials", str(own.folder), num_workers=1) as server:
        target = Target("{}:{}".format(*server.address), "")
        with ParameterClient([server.address], ClientOptions(worker_id=0, **options)) as client:
            assert client.push_pull("w", array, 0).result(WAIT_S).tobytes() == array.tobytes()
            memory = ProcessMemory(server.process.pid)
            with Flood(caller, target, most) as flood:
                for turn in range(TURNS):
                    flood.add(most)
                    found = client.push_pull("w", array, 1 + turn).result(WAIT_S)
                    assert found.tobytes() == array.tobytes()
                assert memory.growth() < most * CONNECTION_BYTES + SLACK_BYTES
        wait_until(lambda: memory.num_files() < MAX_INBOUND, "they are closed")
        with ParameterClient([server.address], ClientOptions(worker_id=0, **options)) as again:
            iteration = 1 + TURNS
            found = again.push_pull("w", array, iteration).result(WAIT_S)
            assert found.tobytes() == array.tobytes()
