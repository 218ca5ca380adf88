# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sums of a switch group are those of the members' integers, whatever the network does."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from group_world import LANES, GroupWorld, sum_in_integers
from switchfold.hostlib.hot_rows.row_packets import SERVER_ID_BASE
from switchfold.hostlib.native.switch_group_library import GroupChunkState
from switchfold.hostlib.slots.wire import Flag, Operation


def updates_of(workers: range, size: int, seed: int) -> dict[int, NDArray[np.float32]]:
    """Values of very different sizes, so that chunks have exponents of their own."""
    rng = np.random.default_rng(seed)
    scale = np.exp2(rng.integers(-40, 40, size).astype(np.float64))
    return {worker: (rng.standard_normal(size) * scale).astype(np.float32) for worker in workers}


def check(world: GroupWorld, updates: dict[int, NDArray[np.float32]]) -> None:
    values = world.begin(updates)
    world.run()
    assert np.array_equal(values, sum_in_integers(list(updates.values())))


@pytest.mark.parametrize("size", [1, LANES - 1, LANES, LANES + 1, 40 * LANES + 5])
@pytest.mark.parametrize("count", [2, 3, 32])
def test_sum_is_that_of_the_integers(count: int, size: int) -> None:
    check(GroupWorld(count), updates_of(range(count), size, seed=size))


@pytest.mark.parametrize("seed", range(6))
def test_sum_is_that_of_the_integers_over_a_bad_network(seed: int) -> None:
    world = GroupWorld(4, loss=0.1, duplication=0.1, jitter_s=0.004, seed=seed)
    for group in range(3):
        check(world, updates_of(range(4), 60 * LANES + 1, seed=100 * seed + group))


def test_groups_of_any_members_follow_each_other_in_the_same_rows() -> None:
    world = GroupWorld(5, num_rows=4, first_round=(1 << 32) - 3)  # rounds wrap around
    for members in (range(5), range(2), range(1, 4), range(3, 5)):
        check(world, updates_of(members, 30 * LANES, seed=members.start))


def test_a_network_without_loss_carries_each_chunk_once() -> None:
    world = GroupWorld(3, num_rows=16)
    check(world, updates_of(range(3), 50 * LANES, seed=1))
    assert all(member.num_resent == 0 for member in world.members.values())
    assert world.num_to_switch == 3 * 50
    assert world.num_to_server == 50


def test_members_overwrite_no_sum_that_the_server_has_not_got() -> None:
    """Of member 1, chunk 0 never arrives: the others go on only as far as there are copies."""
    world = GroupWorld(2, num_rows=4)
    highest = [0]

    def note(packet: NDArray[np.void], to: int | None) -> bool:
        header, chunk = packet["header"], int(packet["header"]["chunk_index"])
        if to is not None or header["operation"] != Operation.AGGREGATE_ADD:
            return False
        highest[0] = max(highest[0], chunk)
        return chunk == 0 and header["worker_id"] == 1

    world.drop = note
    world.begin(updates_of(range(2), 500 * LANES, seed=1))
    start_s = world.now_s
    world.run(lambda: world.now_s > start_s + 20)
    assert world.sums.num_taken == 2 * 4 - 1
    assert highest[0] == 2 * 4 - 1


@pytest.mark.parametrize("to", [SERVER_ID_BASE, None])
def test_what_is_lost_once_comes_again(to: int | None) -> None:
    """The first sum of each chunk is lost, or each contribution of member 1."""
    seen: set[int] = set()

    def drop(packet: NDArray[np.void], where: int | None) -> bool:
        header, chunk = packet["header"], int(packet["header"]["chunk_index"])
        is_lost = (
            where == to
            and chunk not in seen
            and (to is not None or (header["worker_id"] == 1))
            and header["operation"] in (Operation.RESULT, Operation.AGGREGATE_ADD)
        )
        if is_lost:
            seen.add(chunk)
        return is_lost

    world = GroupWorld(3)
    world.drop = drop
    check(world, updates_of(range(3), 40 * LANES, seed=1))
    assert len(seen) == 40


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_switch_that_loses_its_registers_adds_up_again(share: float) -> None:
    updates = updates_of(range(3), 100 * LANES, seed=2)
    world = GroupWorld(3)
    values = world.begin(updates)
    world.run(lambda: world.sums.num_taken >= share * 100)
    world.restart_switch()
    world.run()
    assert np.array_equal(values, sum_in_integers(list(updates.values())))


def test_a_switch_that_has_told_that_it_has_a_chunk_may_forget_it() -> None:
    """Member 2 begins late: the others have notices for what the switch then loses."""
    updates = updates_of(range(3), 20 * LANES, seed=3)
    world = GroupWorld(3, num_rows=32)
    world.is_silent = {2}
    values = world.begin(updates)
    start_s = world.now_s
    world.run(lambda: world.now_s > start_s + 10)
    assert {GroupChunkState.KEPT} == set(world.members[0]._kept[3].tolist())
    world.restart_switch()
    world.is_silent = set()
    world._pump(2)
    world.run()
    assert np.array_equal(values, sum_in_integers(list(updates.values())))


def test_what_is_left_of_a_group_that_was_given_up_counts_in_no_other() -> None:
    """Member 2 sends nothing. The others' packets of that group come late, among the next one's."""
    world = GroupWorld(3, num_rows=4)
    world.is_silent = {2}
    old = world.begin(updates_of(range(3), 20 * LANES, seed=1))
    late: list[NDArray[np.void]] = []

    def keep(packet: NDArray[np.void], to: int | None) -> bool:
        if to is None:
            late.append(packet.copy())
        return False

    world.drop = keep
    start_s = world.now_s
    world.run(lambda: world.now_s > start_s + 1)
    assert np.isnan(old).all()
    world.drop = lambda packet, to: False
    updates = updates_of(range(2), 40 * LANES, seed=2)
    values = world.begin(updates)
    for number, packet in enumerate(late):
        sender = int(packet["header"]["worker_id"])
        world._after(0.0005 * number, lambda s=sender, p=packet: world._arrive(s, p))
    world.run()
    assert np.array_equal(values, sum_in_integers(list(updates.values())))
    assert np.isnan(old).all()


def test_only_whole_sums_of_the_group_count() -> None:
    """A sum that lacks a member, or that saturated, or of another chunk's place, is none."""
    world = GroupWorld(3)
    values = world.begin(updates_of(range(3), 4 * LANES, seed=1))
    sums: list[NDArray[np.void]] = []

    def keep(packet: NDArray[np.void], to: int | None) -> bool:
        if to == SERVER_ID_BASE:
            sums.append(packet.copy())
        return to == SERVER_ID_BASE

    world.drop = keep
    world.run(lambda: len(sums) >= 4)
    for field, value in (
        ("worker_bitmap", 3),
        ("tensor_id", 96),
        ("round", 2),
        ("slot_index", 0),
        ("generation", 999),
        ("job_id", 8),
        ("range_end", 31),
        ("chunk_index", 4),
        ("operation", Operation.NOTICE),
    ):
        bad = sums[0].copy()
        bad["header"][field] = value
        assert world.sums.take(bad.reshape(1)) == 0, field
    assert not world.sums.has_overflowed
    saturated = sums[0].copy()
    saturated["header"]["flags"] |= Flag.OVERFLOW
    assert world.sums.take(saturated.reshape(1)) == 0
    assert world.sums.has_overflowed
    assert np.isnan(values).all()
    assert sum(world.sums.take(each.reshape(1)) for each in sums[:4]) == 4
    assert world.sums.is_done
