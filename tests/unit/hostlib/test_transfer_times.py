# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Moments of a tensor: in their order, over the switch and by host allreduce."""

from __future__ import annotations

import time
from contextlib import closing

import numpy as np
import pytest

from fake_switch import FakeSwitch
from switchfold.hostlib import AllreduceFuture
from view_driver import ViewDriver


@pytest.mark.parametrize("trees", [{60: 16}, {}], ids=["switch", "hosts"])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_moments_are_in_order_and_wait_for_the_last_worker(
    trees: dict[int, int], dtype: str
) -> None:
    with closing(ViewDriver(FakeSwitch(2), range(2))) as driver:
        driver.change(trees)
        driver.wait_entered()
        array = np.ones(3000, dtype)
        early = [driver.sessions[0].allreduce(array) for _ in range(3)]
        wait_for_first_packet(early[0])
        assert early[0].times.last_result_s == early[0].times.done_s == 0
        late_s = time.monotonic()
        late = [driver.sessions[1].allreduce(array) for _ in range(3)]
        for future in (*early, *late):
            np.testing.assert_array_equal(future.result(60), 2 * array)
            times = future.times
            assert times.num_bytes == array.nbytes
            assert 0 < times.submitted_s <= times.first_packet_s < times.last_result_s
            assert times.last_result_s <= times.done_s <= time.monotonic()
        assert early[0].times.first_packet_s < late_s < early[0].times.last_result_s
        ends = [future.times.last_result_s for future in early]
        assert ends == sorted(ends)


def wait_for_first_packet(future: AllreduceFuture) -> None:
    deadline_s = time.monotonic() + 60
    while not future.times.first_packet_s:
        assert time.monotonic() < deadline_s, "nothing was sent"
        time.sleep(0.001)


def test_moments_of_a_tensor_that_fails() -> None:
    with closing(ViewDriver(FakeSwitch(2), range(2))) as driver:
        future = driver.sessions[0].allreduce(np.ones(10, np.int32))
        wait_for_first_packet(future)
        driver.sessions[0].close()
        assert future.exception(60) is not None
        assert future.times.done_s > future.times.first_packet_s > 0
        assert future.times.last_result_s == 0
