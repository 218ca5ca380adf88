# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Allgathers over the compiled P4 program on softswitch: exact, and one block from each worker."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from softswitch_job import OPTIONS, running_job
from switchfold import p4src
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.session import Session
from switchfold.hostlib.slots.wire import Outcome, frame_bytes
from switchfold.softswitch.switch.impairments import Impairments
from time_bound import wait_until

WAIT_S = 120.0
BAD: dict[str, Any] = {
    "loss": 0.03,
    "duplication": 0.03,
    "reordering": 0.03,
    "reordering_delay_s": 0.01,
}
UNHURRIED = SessionOptions(timeout_s=WAIT_S, initial_rto_s=60.0, min_rto_s=60.0, max_rto_s=60.0)
"""A machine that is busy loses no packets; nothing needs to be sent again."""


def check(workers: list[Session], arrays: list[NDArray[Any]]) -> None:
    futures = [w.allgather(a) for w, a in zip(workers, arrays, strict=True)]
    for future in futures:
        np.testing.assert_array_equal(future.result(WAIT_S), arrays)


@pytest.mark.parametrize(("variant", "port_kind"), [("wide", "udp"), ("narrow", "mem")])
def test_allgather_each_worker_sends_its_block_once(variant: p4src.Variant, port_kind: str) -> None:
    num_workers, chunks = 4, 700
    with running_job(variant, num_workers, port_kind=port_kind) as job:
        values = job.values_per_packet
        generator = np.random.default_rng(1)
        arrays = list(generator.integers(-(2**31), 2**31, (num_workers, chunks * values), np.int32))
        with job.sessions(UNHURRIED) as workers:
            # A udp port learns its worker's address from the worker's packets.
            for future in [w.allreduce(np.ones(1, np.int32)) for w in workers]:
                assert future.result(WAIT_S)[0] == num_workers
            before = [job.switch.ports.statistics(w + 1)["rx_bytes"] for w in range(num_workers)]
            check(workers, arrays)
        counts = [worker.statistics for worker in workers]
        sent = [count["multicast_packets_sent"] for count in counts]
        again = [count["multicast_packets_retransmitted"] for count in counts]
        reports = [count["multicast_packets_reported"] for count in counts]
        assert sent == [chunks] * num_workers
        # The last reports may still be under way.
        copied = sum(sent) + sum(again) + sum(reports)
        wait_until(lambda: job.outcomes()[Outcome.MULTICAST] == copied, lambda: f"{job.outcomes()}")
        # One block and few reports, the more the busier the machine; a block to each of the
        # others would be three.
        for worker_id in range(num_workers):
            packets = chunks + reports[worker_id] + again[worker_id]
            num_bytes = job.switch.ports.statistics(worker_id + 1)["rx_bytes"]
            assert num_bytes - before[worker_id] == packets * frame_bytes(values)
            assert packets < 2 * chunks, (reports, again)


@pytest.mark.parametrize("port_kind", ["mem", "udp"])
def test_allgather_is_exact_on_a_bad_network(port_kind: str) -> None:
    def impairments(worker_id: int) -> Impairments:
        return Impairments(seed=worker_id + 1, **BAD)

    generator = np.random.default_rng(2)
    with (
        running_job("narrow", 3, port_kind=port_kind, impairments=impairments) as job,
        job.sessions(OPTIONS) as workers,
    ):
        for length in (1, 333, 20_000):
            check(workers, [generator.standard_normal(length) for _ in range(3)])
            sums = [w.allreduce(np.full(length, 3, np.int32)) for w in workers]
            assert all((future.result(WAIT_S) == 9).all() for future in sums)
