# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How a stream handles losses, in simulated time: which worker retransmits, when, at what rate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from slot_simulation import Simulation
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.slots.wire import HEADER_BYTES, HEADER_DTYPE

LEAST_TIMER_S = SessionOptions().min_rto_s
WARM_UP_CHUNKS = 200


def lose_first(
    simulation: Simulation, chunk: int, *, worker_id: int, is_result: bool
) -> Callable[[], int]:
    """Lose the first packet of a chunk that a worker sends, or gets; return how many it counts."""
    seen = 0

    def losses(worker: int, to: int | None, row: NDArray[Any]) -> bool:
        nonlocal seen
        number = int(row[:HEADER_BYTES].view(HEADER_DTYPE)["chunk_index"][0])
        if number != chunk or worker != worker_id or (to is not None) != is_result:
            return False
        seen += 1
        return seen == 1

    simulation.losses = losses
    return lambda: seen


@pytest.mark.parametrize("is_result", [False, True], ids=["contribution", "result"])
def test_one_loss_is_mended_at_once_by_the_workers_without_the_result(is_result: bool) -> None:
    simulation = Simulation(3)
    simulation.sum(WARM_UP_CHUNKS)
    lossless_s = simulation.sum(400)
    count = lose_first(simulation, 200, worker_id=1, is_result=is_result)
    took_s = simulation.sum(400)
    assert count() == 2
    again = [worker.values.counters.fast_retransmitted for worker in simulation.workers]
    assert again == ([0, 1, 0] if is_result else [1, 1, 1])
    assert [w.values.counters.retransmitted for w in simulation.workers] == again
    if is_result:
        assert [w.values.counters.replayed for w in simulation.workers] == [0, 1, 0]
    assert took_s < lossless_s + LEAST_TIMER_S / 4


@pytest.mark.parametrize("is_result", [False, True], ids=["contribution", "result"])
def test_loss_of_the_last_chunk_does_not_wait_for_the_timer(is_result: bool) -> None:
    simulation = Simulation(2)
    simulation.sum(8)  # so that RTTs are short, without queueing
    lossless_s = simulation.sum(8)
    lose_first(simulation, 7, worker_id=1, is_result=is_result)
    took_s = simulation.sum(8)
    counters = [worker.values.counters for worker in simulation.workers]
    assert sum(each.probe_retransmitted for each in counters) >= 1
    assert sum(each.retransmitted for each in counters) == sum(
        each.probe_retransmitted for each in counters
    )
    assert took_s < lossless_s + LEAST_TIMER_S / 2


@pytest.mark.parametrize("num_workers", [2, 4])
def test_random_loss_on_every_hop_leaves_most_of_the_rate(num_workers: int) -> None:
    lossless = Simulation(num_workers)
    lossless.sum(WARM_UP_CHUNKS)
    lossless_s = lossless.sum(1600)
    for loss, share in ((0.01, 0.85), (0.05, 0.6)):
        simulation = Simulation(num_workers, loss=loss)
        simulation.sum(WARM_UP_CHUNKS)
        assert lossless_s / simulation.sum(1600) > share
        for worker in simulation.workers:
            counters = worker.values.counters
            assert counters.fast_retransmitted > 0.9 * counters.retransmitted
            assert worker.values.window == lossless.workers[0].values.window // 2


@pytest.mark.parametrize(("num_workers", "chunks"), [(2, 400), (4, 200)])
def test_heavy_loss_on_every_hop_is_repaired_without_timers(num_workers: int, chunks: int) -> None:
    by_timers = again = 0
    for seed in range(1, 7):  # the end of one tensor may need some
        simulation = Simulation(num_workers, seed=seed)
        simulation.sum(WARM_UP_CHUNKS)
        simulation.loss = 0.2
        simulation.sum(chunks)
        for worker in simulation.workers:
            counters = worker.values.counters
            by_timers += counters.retransmitted
            by_timers -= counters.fast_retransmitted + counters.probe_retransmitted
            again += counters.retransmitted
            assert worker.values.window >= 16  # as in the beginning
    assert by_timers <= 0.02 * again


def test_late_worker_loses_nothing() -> None:
    simulation = Simulation(2)
    simulation.sum(WARM_UP_CHUNKS)
    window = simulation.workers[0].values.window
    first, second = simulation.workers
    first.submit(200)
    simulation.at(simulation.now_s + 0.3, lambda: second.submit(200))
    simulation.run(lambda: second.num_submitted == 2 and first.is_done and second.is_done)
    assert first.values.counters.fast_retransmitted == 0
    assert 0 < first.values.counters.retransmitted < 100
    assert first.values.window == window


def test_queue_that_drops_without_marks_makes_windows_small() -> None:
    simulation = Simulation(2, queue_packets=16)
    simulation.sum(WARM_UP_CHUNKS)
    dropped, received = simulation.dropped, simulation.workers[0].values.counters.received
    rate = 1000 / simulation.sum(1000)
    assert rate > 0.8 / simulation.packet_s
    received = simulation.workers[0].values.counters.received - received
    assert simulation.dropped - dropped < 0.3 * received


def test_duplicated_results_show_no_loss() -> None:
    simulation = Simulation(1)
    simulation.sum(WARM_UP_CHUNKS)
    worker = simulation.workers[0]
    take = worker.take

    def take_thrice(row: NDArray[np.uint8]) -> None:
        for _ in range(3):
            take(row)

    worker.take = take_thrice  # type: ignore[method-assign]
    simulation.sum(300)
    assert worker.values.counters.retransmitted == 0
