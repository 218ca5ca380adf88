# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Workers that do without results they have lost, over softswitch; refused in the network."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from live_testbed import LiveTestbed
from softswitch_job import OPTIONS, running_job
from switchfold.bmv2_topos.topology.topology import single_switch
from switchfold.hostlib import ConfigurationError
from switchfold.hostlib.loss_tolerance import LossTolerance
from switchfold.hostlib.session import Session
from switchfold.hostlib.straggler import StragglerPolicy
from switchfold.softswitch.switch.impairments import Impairments

NUM_WORKERS = 3
CHUNKS = 600
POLICY = StragglerPolicy(tolerance=LossTolerance(loss=0, stale=0.2))


def is_stale(ranges: tuple[tuple[int, int], ...], size: int) -> NDArray[np.bool_]:
    found = np.zeros(size, bool)
    for start, end in ranges:
        found[start:end] = True
    return found


def test_worker_behind_a_lossy_link_keeps_old_values_within_the_bound() -> None:
    """Its link loses a twentieth of what the switch sends; what it has not lost is right."""
    with ExitStack() as stack:
        job = stack.enter_context(running_job("narrow", NUM_WORKERS, slot_count=128))
        job.switch.ports.set_impairments(1, Impairments(loss=0.05, seed=5), direction="out")
        workers: list[Session] = []
        for number in range(NUM_WORKERS):
            view = replace(job.view(number), straggler=POLICY, is_on_host=True)
            session = Session.direct(view, job.transport(number), OPTIONS)
            workers.append(stack.enter_context(session))
        size = job.values_per_packet * CHUNKS
        previous = [np.full(size, -1 - number, np.int32) for number in range(NUM_WORKERS)]
        num_stale = 0
        for turn in range(4):
            given = [np.arange(size, dtype=np.int32) * (turn + n) for n in range(NUM_WORKERS)]
            futures = [
                worker.allreduce(array, previous=old)
                for worker, array, old in zip(workers, given, previous, strict=True)
            ]
            for number, future in enumerate(futures):
                result, delivery = future.result(100), future.delivery
                assert delivery is not None
                kept = is_stale(delivery.stale, size)
                if number:
                    assert not kept.any(), "these links lose nothing"
                assert kept.sum() <= 0.2 * size
                expected: Any = np.where(kept, previous[number], np.sum(given, axis=0))
                np.testing.assert_array_equal(result, expected)
                num_stale += int(kept.sum())
                previous[number] = result
        counts = [worker.statistics for worker in workers]
        kept_packets = [each["value_packets_kept"] for each in counts]
        assert kept_packets[0] * job.values_per_packet == num_stale
        assert kept_packets[0] > 0
        assert kept_packets[1:] == [0, 0]


def test_network_switch_refuses_stale_results() -> None:
    with (
        LiveTestbed(single_switch(1)) as testbed,
        pytest.raises(ConfigurationError, match=r"stale is 0\.2, .* on_host in"),
    ):
        testbed.join(0, 1, "stale", straggler=POLICY)
