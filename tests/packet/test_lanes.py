# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of the lanes against numpy, at the edges of int32."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from packet_frames import Job, change, contribution, to_all_workers, to_switch, to_worker
from packet_target import Target, check_exchange
from switchfold.hostlib.slots.wire import Flag, Operation, Outcome

LOW, HIGH = -(2**31), 2**31 - 1
EDGES = np.array([LOW, LOW + 1, -2, -1, 0, 1, 2, HIGH - 1, HIGH], np.int64)


def edge_rows(values: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return pairs of rows that hold every pair of edges."""
    left, right = (grid.ravel() for grid in np.meshgrid(EDGES, EDGES))
    rows = -(-len(left) // values)
    left, right = np.resize(left, rows * values), np.resize(right, rows * values)
    return list(zip(left.reshape(rows, values), right.reshape(rows, values), strict=True))


def check_sum(
    target: Target,
    job: Job,
    round_: int,
    operation: Operation,
    rows: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> None:
    left, right = rows
    first = contribution(job, 0, left, round=round_, operation=operation)
    second = contribution(job, 1, right, round=round_, operation=operation)
    expected, flags = np.maximum(left, right), 0
    if operation is Operation.AGGREGATE_ADD:
        expected = np.clip(left + right, LOW, HIGH)
        flags = Flag.OVERFLOW if (expected != left + right).any() else 0
    result = change(
        second,
        expected,
        operation=Operation.RESULT,
        flags=flags,
        worker_bitmap=3,
        num_contributors=2,
    )
    check_exchange(target, 1, to_switch(job, 0, first), Outcome.ABSORBED)
    check_exchange(
        target, 2, to_switch(job, 1, second), Outcome.COMPLETED, to_all_workers(job, result)
    )
    replay = change(result, worker_id=0, flags=flags | Flag.REPLAY)
    check_exchange(
        target, 1, to_switch(job, 0, first), Outcome.REPLAYED, [(1, to_worker(job, 0, replay))]
    )


@pytest.mark.parametrize("operation", [Operation.AGGREGATE_ADD, Operation.AGGREGATE_MAX])
def test_lanes_every_pair_of_edges(target: Target, job: Job, operation: Operation) -> None:
    for index, rows in enumerate(edge_rows(job.values_per_packet)):
        check_sum(target, job, 1 + index, operation, rows)


@pytest.mark.parametrize("operation", [Operation.AGGREGATE_ADD, Operation.AGGREGATE_MAX])
def test_lanes_random_values_differ_in_every_lane(
    target: Target, job: Job, operation: Operation
) -> None:
    generator = np.random.default_rng(2)
    for round_ in range(1, 5):
        left, right = generator.integers(LOW, HIGH, (2, job.values_per_packet), endpoint=True)
        check_sum(target, job, round_, operation, (left, right))


@pytest.mark.parametrize("lane", [0, 1, -2, -1])
@pytest.mark.parametrize(("left", "right"), [(HIGH, 1), (LOW, -1)])
def test_lanes_saturation_of_one_lane_is_flagged(
    target: Target, job: Job, lane: int, left: int, right: int
) -> None:
    rows = np.zeros((2, job.values_per_packet), np.int64)
    rows[:, lane] = left, right
    check_sum(target, job, 1, Operation.AGGREGATE_ADD, (rows[0], rows[1]))


def test_lanes_edges_without_saturation_are_not_flagged(target: Target, job: Job) -> None:
    rows = np.full((2, job.values_per_packet), 0, np.int64)
    rows[0, 0::2], rows[1, 0::2] = HIGH, LOW
    rows[0, 1::2], rows[1, 1::2] = HIGH - 1, 1
    check_sum(target, job, 1, Operation.AGGREGATE_ADD, (rows[0], rows[1]))


def test_lanes_overflow_flag_ends_with_its_round(target: Target, job: Job) -> None:
    values = job.values_per_packet
    loud, quiet = np.full(values, HIGH, np.int64), np.ones(values, np.int64)
    check_sum(target, job, 1, Operation.AGGREGATE_ADD, (loud, loud))
    check_sum(target, job, 3, Operation.AGGREGATE_ADD, (quiet, quiet))


def test_lanes_slots_and_copies_do_not_mix(target: Target, job: Job) -> None:
    places = [(slot, round_) for slot in range(job.slot_count) for round_ in (1, 2)]
    for index, (slot, round_) in enumerate(places):
        datagram = contribution(job, 0, 1000 * index, slot_index=slot, round=round_)
        check_exchange(target, 1, to_switch(job, 0, datagram), Outcome.ABSORBED)
    for index, (slot, round_) in enumerate(places):
        datagram = contribution(job, 1, 1, slot_index=slot, round=round_)
        result = change(
            datagram,
            1000 * index + 1,
            operation=Operation.RESULT,
            worker_bitmap=3,
            num_contributors=2,
        )
        check_exchange(
            target, 2, to_switch(job, 1, datagram), Outcome.COMPLETED, to_all_workers(job, result)
        )
