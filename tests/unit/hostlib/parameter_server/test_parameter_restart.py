# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Parameter servers that are killed, and workers that are started again."""

from __future__ import annotations

import numpy as np
import pytest

from loopback import LOOPBACK
from parameter_cluster import WAIT_S, gradients, sum_in_order
from server_process import ServerProcess
from switchfold.hostlib.errors import ExchangeTimeoutError, ServerRestartedError
from switchfold.hostlib.parameter_server import (
    ClientOptions,
    ParameterClient,
    ParameterServer,
    ServerOptions,
)
from time_bound import wait_until

WORKERS = 2
PATIENT_S = 10 * WAIT_S
"""For a server process to come back, which takes long on a busy machine. A worker that gave it up
would leave the other one waiting for it."""


def client(address: tuple[str, int], worker_id: int) -> ParameterClient:
    return ParameterClient([address], ClientOptions(worker_id=worker_id, reconnect_s=PATIENT_S))


def test_updates_reach_a_killed_server_that_comes_back() -> None:
    arrays = gradients(WORKERS, 400_000)
    expected = sum_in_order(arrays).tobytes()
    with (
        ServerProcess(num_workers=WORKERS) as server,
        client(server.address, 0) as one,
        client(server.address, 1) as other,
    ):
        for iteration in range(2):
            # In place: an answer that was half here must not be sent as an update.
            first = one.push_pull("w", copy := arrays[0].copy(), iteration, copy)
            if iteration:
                wait_until(lambda: one.counters["sent_floats"] == 2 * 400_000, "the update")
                server.kill()
                server.start()
            second = other.push_pull("w", arrays[1], iteration)
            for future in (first, second):
                assert future.result(WAIT_S).tobytes() == expected
        assert one.counters["reconnections"] == 1


def test_a_sum_of_which_one_worker_has_the_answer_cannot_be_made_once_more() -> None:
    array, options = np.ones(10, np.float32), ServerOptions(num_workers=WORKERS)
    with ParameterServer(options, address=LOOPBACK) as server:
        address = (server.address, server.port)
        one = client(address, 0)
        with one, client(address, 1) as other:
            futures = [each.push_pull("w", array, 0) for each in (one, other)]
            assert all((future.result(WAIT_S) == 2).all() for future in futures)
            server.close()
            with (
                ParameterServer(options, address=LOOPBACK, port=server.port) as restarted,
                client(address, 1) as again,
            ):
                other.close()
                late = again.push_pull("w", array, 0)
                wait_until(lambda: restarted.counters["updates"] == 1, "the late update")
                futures = [one.push_pull("w", array, 1)]
                with pytest.raises(
                    ServerRestartedError,
                    match=r"worker 0 is at iteration 1 .* to iteration 0: .*restart all workers",
                ):
                    late.result(WAIT_S)
                futures.append(again.push_pull("w", array, 1))
                assert all((future.result(WAIT_S) == 2).all() for future in futures)


def test_a_new_run_that_counts_from_the_start_gets_an_error() -> None:
    array = np.ones(4, np.float32)
    with ParameterServer(ServerOptions(num_workers=1)) as server:
        address = (server.address, server.port)
        with client(address, 0) as first:
            for iteration in range(3):
                first.push_pull("w", array, iteration).result(WAIT_S)
        with client(address, 0) as second:
            with pytest.raises(ExchangeTimeoutError, match="counts on from 3"):
                second.push_pull("w", array, 0).result(WAIT_S)
            second.push_pull("w", array, 3).result(WAIT_S)
