# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Exact sums through sessions: view changes, hosts, late workers, options."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from exact_oracle import IDIOMS, exact_sum, mixed_tensors
from fake_switch import FakeSwitch
from loopback import LOOPBACK
from switchfold.hostlib.errors import (
    AllreduceTimeoutError,
    ConfigurationError,
    TensorTooLargeError,
    UnsupportedDtypeError,
)
from switchfold.hostlib.options import Precision, SessionOptions
from switchfold.hostlib.peers import PeerServer
from switchfold.hostlib.session import Session
from switchfold.hostlib.straggler import StragglerPolicy
from switchfold.hostlib.summation.exact_chunks import ExactLayout
from view_driver import QUICK, ViewDriver

TENSORS = [
    *[[np.array(values, dtype)] * 3 for dtype, values in IDIOMS],
    mixed_tensors(3, 700, "float32", 1, spread=20),
    mixed_tensors(3, 100, "float64", 2, spread=700),
    mixed_tensors(3, 6000, "float16", 3, spread=8),
]


def same(results: list[NDArray[Any]]) -> NDArray[Any]:
    assert len({result.tobytes() for result in results}) == 1
    return results[0]


@pytest.mark.parametrize("is_abort", [False, True])
@pytest.mark.parametrize("trees", [{100: 16}, {}], ids=["switch", "hosts"])
def test_sums_stay_exact_when_the_view_changes(trees: dict[int, int], is_abort: bool) -> None:
    switch = FakeSwitch(3, loss=0.02, duplication=0.02, reordering=0.02)
    with closing(ViewDriver(switch, range(3))) as driver:
        before = [
            [driver.sessions[i].allreduce(array) for i, array in enumerate(arrays)]
            for arrays in TENSORS
        ]
        driver.change(trees, is_abort=is_abort)
        driver.wait_entered()
        after = [
            [driver.sessions[i].allreduce(array, "mean") for i, array in enumerate(arrays)]
            for arrays in TENSORS
        ]
        for futures, is_mean in ((before, False), (after, True)):
            for arrays, group in zip(TENSORS, futures, strict=True):
                result = same([future.result(60) for future in group])
                expected = exact_sum(arrays, is_mean=is_mean)
                np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("values", [32, 352])
@pytest.mark.parametrize("operation", ["sum", "mean"])
def test_late_worker_gets_the_exact_sum_of_the_others(values: int, operation: Any) -> None:
    policy = StragglerPolicy(quorum=2)
    switch = FakeSwitch(3, values_per_packet=values, straggler=policy, slot_count=8)
    tensors = [arrays for arrays in TENSORS if arrays[0].size < 1000]
    if values == 32:
        tensors = [arrays for arrays in tensors if arrays[0].size != 100]  # see the next test
    with ExitStack() as stack:
        for i in range(3):
            switch.peers[i] = PeerServer(LOOPBACK)
        workers = [
            stack.enter_context(
                Session.direct(switch.view(i), switch.transport(i), QUICK, peers=switch.peers[i])
            )
            for i in range(3)
        ]
        done = [
            [w.allreduce(arrays[i], operation) for arrays in tensors]
            for i, w in enumerate(workers[:2])
        ]
        results = [same([future.result(60) for future in pair]) for pair in zip(*done, strict=True)]
        late = [workers[2].allreduce(arrays[2], operation) for arrays in tensors]
        for arrays, result, future in zip(tensors, results, late, strict=True):
            expected = exact_sum(arrays[:2], is_mean=operation == "mean")
            np.testing.assert_array_equal(result, expected)
            assert future.result(60).tobytes() == result.tobytes()
            assert future.num_contributors == 2


def test_values_wider_than_a_packet_are_refused_where_workers_may_be_left_out() -> None:
    switch = FakeSwitch(1, straggler=StragglerPolicy(quorum=1))
    array = np.array([1e-300, 1e300] * 100)
    with Session.direct(switch.view(0), switch.transport(0), QUICK) as session:
        error = session.allreduce(array).exception(60)
        assert isinstance(error, TensorTooLargeError)
        assert "precision='block'" in str(error)
        np.testing.assert_array_equal(session.allreduce(np.ones(100)).result(60), np.ones(100))


def test_infinities_leave_their_neighbours_exact() -> None:
    arrays = [np.full(9000, 0.1, np.float64) for _ in range(3)]
    arrays[0][5], arrays[1][6], arrays[2][7] = np.inf, np.nan, -np.inf
    arrays[1][8000] = np.inf
    expected = sum(array[0] for array in arrays)
    switch = FakeSwitch(3, values_per_packet=352)
    with ExitStack() as stack:
        workers = [
            stack.enter_context(Session.direct(switch.view(i), switch.transport(i), QUICK))
            for i in range(3)
        ]
        for part in (np.s_[:], np.s_[5:8]):
            futures = [
                w.allreduce(a[part], nonfinite="propagate")
                for w, a in zip(workers, arrays, strict=True)
            ]
            result = same([future.result(60) for future in futures])
            true = np.full(9000, expected)
            true[5:8], true[8000] = [np.inf, np.nan, -np.inf], np.inf
            np.testing.assert_allclose(result, true[part], rtol=1e-15)


def test_bfloat16_values_are_rounded_once() -> None:
    rng = np.random.default_rng(6)
    words = rng.integers(0x3E00, 0x4100, (3, 9000)) << 16
    arrays = [row.astype(np.uint32).view(np.float32) for row in words]
    switch = FakeSwitch(3, values_per_packet=352)
    with ExitStack() as stack:
        workers = [
            stack.enter_context(Session.direct(switch.view(i), switch.transport(i), QUICK))
            for i in range(3)
        ]
        for part in (np.s_[:10], np.s_[:]):
            futures = [
                w.allreduce(a[part], round_to="bfloat16")
                for w, a in zip(workers, arrays, strict=True)
            ]
            result = same([future.result(60) for future in futures])
            own = [array[part] for array in arrays]
            np.testing.assert_array_equal(result, exact_sum(own, name="bfloat16"))


def test_precision_of_a_call_overrides_that_of_the_session() -> None:
    switch = FakeSwitch(1)
    array = np.array([1e-9, 100.0] * 100, np.float32)
    options = SessionOptions(timeout_s=120.0, precision="block", min_rto_s=0.01, initial_rto_s=0.02)
    with Session.direct(switch.view(0), switch.transport(0), options) as session:
        assert session.allreduce(array).result(60)[0] == 0
        assert session.allreduce(array, precision="exact").result(60)[0] == array[0]
        for bad in ({"precision": "double"}, {"precision": "exact", "round_to": "float8"}):
            with pytest.raises(ConfigurationError, match="choose"):
                session.allreduce(array, **bad)  # pyright: ignore[reportArgumentType]
        with pytest.raises(UnsupportedDtypeError, match="round_to"):
            session.allreduce(array.astype(np.float64), precision="exact", round_to="bfloat16")
    with pytest.raises(ConfigurationError, match="precision is 'fast'"):
        SessionOptions(precision="fast")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("size", [2, 6000])
def test_workers_that_differ_in_precision_get_errors_and_no_sum(size: int) -> None:
    switch = FakeSwitch(2)
    precisions: list[Precision] = ["exact", "block"]
    with ExitStack() as stack:
        workers = [
            stack.enter_context(Session.direct(switch.view(i), switch.transport(i), QUICK))
            for i in range(2)
        ]
        futures = [
            w.allreduce(np.ones(size), precision=precision, timeout_s=1.0)
            for w, precision in zip(workers, precisions, strict=True)
        ]
        for future in futures:
            assert isinstance(future.exception(60), AllreduceTimeoutError)


@pytest.mark.parametrize("values", [32, 352])
def test_chunks_of_a_layout_have_room_for_every_value(values: int) -> None:
    rng = np.random.default_rng(7)
    high = rng.integers(-1000, 1000, 30)
    ranges = np.stack([high, rng.integers(0, 900, 30) - high, rng.integers(0, 2, 30)], axis=1)
    size = 29 * 5632 + 77
    layout = ExactLayout(
        size, values, dtype="float64", num_workers=5, ranges=ranges.astype(np.int32)
    )
    chunk = 0
    for place, group in enumerate(layout.groups):
        limbs, width, unit_chunks = group["limbs"], int(group["width"]), int(group["unit_chunks"])
        lanes = int(limbs["count"]) + 2 * bool(limbs["has_specials"])
        assert lanes * width <= unit_chunks * values
        assert (unit_chunks - 1) * values < lanes
        assert limbs["bits"] * limbs["count"] <= 2400
        assert group["first_chunk"] == chunk
        chunk += -(-min(5632, size - 5632 * place) // width) * unit_chunks
    assert chunk == layout.num_chunks
