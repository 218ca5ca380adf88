# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Allgathers of sessions whose view changes: redone, fetched, or refused on all workers."""

from __future__ import annotations

from contextlib import closing, suppress

import numpy as np
import pytest
from numpy.typing import NDArray

from fake_switch import FakeSwitch
from switchfold.hostlib import errors
from switchfold.hostlib.future import AllgatherFuture
from switchfold.hostlib.slots.wire import Flag, Operation, view_datagrams
from time_bound import wait_until
from view_driver import ViewDriver

WAIT_S = 60.0


def blocks(number: int, num: int, size: int = 30_000) -> NDArray[np.uint8]:
    return np.random.default_rng(number).integers(0, 256, (num, size)).astype(np.uint8)


def gather(driver: ViewDriver, arrays: NDArray[np.uint8]) -> dict[int, AllgatherFuture]:
    return {i: session.allgather(arrays[i]) for i, session in driver.sessions.items()}


@pytest.mark.parametrize("is_abort", [False, True])
def test_allgathers_continue_in_another_view(is_abort: bool) -> None:
    switch = FakeSwitch(3, loss=0.02, duplication=0.02, reordering=0.02)
    with closing(ViewDriver(switch, range(3))) as driver:
        rounds = [(blocks(number, 3), gather(driver, blocks(number, 3))) for number in range(6)]
        driver.change({100: 16}, is_abort=is_abort)
        driver.wait_entered()
        rounds.append((blocks(7, 3), gather(driver, blocks(7, 3))))
        for arrays, futures in rounds:
            for future in futures.values():
                np.testing.assert_array_equal(future.result(WAIT_S), arrays)
                assert future.members == (0, 1, 2)


def test_allgather_of_the_survivors_has_their_blocks() -> None:
    with closing(ViewDriver(FakeSwitch(3), range(3))) as driver:
        arrays = blocks(1, 3)
        futures = {i: driver.sessions[i].allgather(arrays[i]) for i in (0, 2)}
        driver.kill(1)
        driver.change({100: 16}, is_abort=True)
        for future in futures.values():
            np.testing.assert_array_equal(future.result(WAIT_S), arrays[[0, 2]])
            assert future.members == (0, 2)


def test_allgather_that_others_have_completed_is_fetched() -> None:
    switch = FakeSwitch(3)
    deliver = switch.deliver

    def lose(worker_id: int, to: int | None, row: NDArray[np.uint8]) -> None:
        header = view_datagrams(row[None, :], 32)["header"][0]
        is_chunk = header["operation"] == Operation.MULTICAST and not header["flags"] & Flag.REPORT
        if not (is_chunk and to == 2 and header["worker_bitmap"] == 1 << 1):
            deliver(worker_id, to, row)

    switch.deliver = lose
    with closing(ViewDriver(switch, range(3))) as driver:
        # Within a window: so the others can complete.
        arrays = blocks(2, 3, size=500)
        futures = gather(driver, arrays)
        for i in (0, 1):
            np.testing.assert_array_equal(futures[i].result(WAIT_S), arrays)
        assert not futures[2].done()
        assert driver.change({100: 16}, is_abort=True) == 1
        np.testing.assert_array_equal(futures[2].result(WAIT_S), arrays)


def test_allgather_is_refused_where_no_switch_multicasts() -> None:
    with closing(ViewDriver(FakeSwitch(2), range(2))) as driver:
        positions = driver.propose(is_abort=True)
        futures = gather(driver, blocks(3, 2))
        assert driver.commit(positions, {}) == 0
        for future in futures.values():
            with pytest.raises(errors.MulticastUnavailableError):
                future.result(WAIT_S)
        session = driver.sessions[0]
        wait_until(lambda: not session.can_multicast, "the view has no switch")
        with pytest.raises(errors.MulticastUnavailableError):
            session.allgather(np.ones(3))
        sums = [session.allreduce(np.ones(9, np.int32)) for session in driver.sessions.values()]
        assert all(future.result(WAIT_S)[0] == 2 for future in sums)


def test_retained_blocks_have_a_bound() -> None:
    with closing(ViewDriver(FakeSwitch(2), range(2))) as driver:
        for peer in driver.peers.values():
            peer.results.gathered_limit_bytes = 150_000
        for number in range(5):
            arrays = blocks(number, 2)
            for future in gather(driver, arrays).values():
                np.testing.assert_array_equal(future.result(WAIT_S), arrays)
        for peer in driver.peers.values():
            num_bytes = 0
            for number in range(5):
                with suppress(errors.ResultForgottenError):
                    result = peer.results.get(number)
                    num_bytes += 0 if result is None else result.num_bytes
            assert 0 < num_bytes <= 150_000
            assert peer.results.get(4) is not None
            with pytest.raises(errors.ResultForgottenError):
                peer.results.get(1)
