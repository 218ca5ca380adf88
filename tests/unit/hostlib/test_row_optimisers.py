# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Optimisers against numpy, bit for bit, and FTRL against its paper's formulas in float64."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from row_reference import OPTIMISERS, apply
from switchfold.hostlib import ConfigurationError, RowShapeError
from switchfold.hostlib.parameter_server.rows import (
    Adagrad,
    Adam,
    Ftrl,
    GradientSum,
    Optimiser,
    RowTable,
    Sgd,
)

OF_EACH_OPTIMISER = pytest.mark.parametrize("optimiser", OPTIMISERS, ids=lambda each: each.name)


@OF_EACH_OPTIMISER
@settings(max_examples=40, deadline=None)
@given(
    count=st.integers(0, 70),
    scale=st.sampled_from([1e-20, 1e-3, 1.0, 1e4]),
    first_step=st.sampled_from([1, 2, 1000, 1 << 40]),
    seed=st.integers(0, 1 << 32),
)
def test_dense_steps_are_those_of_numpy(
    optimiser: Optimiser, count: int, scale: float, first_step: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(count, np.float32)
    state = np.zeros((optimiser.num_states, count), np.float32)
    expected, expected_state = values.copy(), state.copy()
    for step in range(first_step, first_step + 4):
        gradient = rng.standard_normal(count, np.float32) * np.float32(scale)
        optimiser.apply_dense(values, state, gradient, step=step)
        apply(optimiser, expected, expected_state, gradient, step)
    assert values.tobytes() == expected.tobytes()
    assert state.tobytes() == expected_state.tobytes()


@OF_EACH_OPTIMISER
def test_rows_move_as_dense_arrays_do(optimiser: Optimiser) -> None:
    table = RowTable(width=33, max_rows=2, optimiser=optimiser)
    values = np.zeros(33, np.float32)
    state = np.zeros((optimiser.num_states, 33), np.float32)
    rng = np.random.default_rng(1)
    keys = np.array([1, 2], np.int64)
    for step in range(1, 6):
        gradient = rng.standard_normal(33, np.float32)
        optimiser.apply_dense(values, state, gradient, step=step)
        table.push(keys[:1], gradient[None])
        table.push(keys[1:], rng.standard_normal((1, 33), np.float32))
    assert table.pull(keys).values[0].tobytes() == values.tobytes()


@pytest.mark.parametrize("l1", [0.0, 2.0])
def test_ftrl_is_that_of_its_paper(l1: float) -> None:
    """Algorithm 1 of McMahan et al. (2013), in float64 and with the weights from z each time."""
    alpha, beta, l2 = 0.5, 1.0, 0.25
    optimiser = Ftrl(alpha=alpha, beta=beta, l1=l1, l2=l2)
    rng = np.random.default_rng(3)
    count, steps = 200, 50
    values, state = np.zeros(count, np.float32), np.zeros((2, count), np.float32)
    z, n = np.zeros(count), np.zeros(count)
    weights = np.zeros(count)
    slopes = rng.uniform(-1.0, 1.0, count)
    for step in range(1, steps + 1):
        gradient = (slopes + rng.standard_normal(count)).astype(np.float32)
        optimiser.apply_dense(values, state, gradient, step=step)
        g = gradient.astype(np.float64)
        sigma = (np.sqrt(n + g**2) - np.sqrt(n)) / alpha
        z += g - sigma * weights
        n += g**2
        rate = 1 / ((beta + np.sqrt(n)) / alpha + l2)
        weights = np.where(np.abs(z) <= l1, 0.0, -rate * (z - np.sign(z) * l1))
    # Each step rounds z and n a few times, by 2^-24 of numbers up to the largest |z| and n.
    unit = steps * 2.0**-22
    np.testing.assert_allclose(state[1], n, rtol=unit)
    np.testing.assert_allclose(state[0], z, rtol=0, atol=unit * np.abs(z).max())
    np.testing.assert_allclose(values, weights, rtol=0, atol=unit * np.abs(weights).max())
    is_zero = (values == 0).sum()
    assert (0 < is_zero < count) if l1 else is_zero == 0


def test_adam_counts_the_steps_of_each_row() -> None:
    optimiser = Adam(learning_rate=0.1)
    table = RowTable(width=1, max_rows=2, optimiser=optimiser)
    often, seldom = np.array([1, 1, 2], np.int64)[1:2], np.array([2], np.int64)
    for _ in range(50):
        table.push(often, np.ones((1, 1), np.float32))
    before = table.pull(seldom).values.copy()
    table.push(seldom, np.full((1, 1), 7, np.float32))
    # The first step of a row is a whole learning rate, however late it comes.
    np.testing.assert_allclose(table.pull(seldom).values, before - 0.1, rtol=1e-6)
    assert table.pull(np.array([1, 2], np.int64)).updates.tolist() == [50, 1]


@pytest.mark.parametrize(
    ("optimiser", "num_states"),
    [*zip(OPTIMISERS, (0, 0, 1, 1, 2, 2), strict=True)],
    ids=lambda each: getattr(each, "name", str(each)),
)
def test_optimisers_have_names_and_states(optimiser: Optimiser, num_states: int) -> None:
    assert optimiser.num_states == num_states
    assert OPTIMISERS[0].name == "sum"
    assert len({each.name for each in OPTIMISERS}) == len(OPTIMISERS)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Sgd(learning_rate=0.0),
        lambda: Sgd(learning_rate=math.inf),
        lambda: Sgd(learning_rate=1e-60),
        lambda: Sgd(learning_rate=1e60),
        lambda: Sgd(learning_rate=math.nan),
        lambda: Sgd(learning_rate=0.1, momentum=1.0),
        lambda: Sgd(learning_rate=0.1, momentum=-0.1),
        lambda: Adagrad(learning_rate=-1.0),
        lambda: Adagrad(learning_rate=1.0, epsilon=0.0),
        lambda: Adam(learning_rate=0.0),
        lambda: Adam(learning_rate=1.0, beta1=1.0),
        lambda: Adam(learning_rate=1.0, beta2=-0.5),
        lambda: Adam(learning_rate=1.0, epsilon=math.nan),
        lambda: Ftrl(alpha=0.0),
        lambda: Ftrl(alpha=1.0, beta=0.0),
        lambda: Ftrl(alpha=1.0, l1=-1.0),
        lambda: Ftrl(alpha=1.0, l2=math.inf),
    ],
)
def test_optimisers_refuse_numbers(make: Callable[[], Optimiser]) -> None:
    with pytest.raises(ConfigurationError, match="give"):
        make()


def test_dense_arrays_of_another_form_are_refused() -> None:
    values, state = np.zeros(4, np.float32), np.zeros((1, 4), np.float32)
    optimiser = Adagrad(learning_rate=0.1)
    for arrays in (
        (np.zeros(4), state, values),
        (values, np.zeros((2, 4), np.float32), values),
        (values, state, np.zeros(3, np.float32)),
        (np.zeros(8, np.float32)[::2], state, values),
    ):
        with pytest.raises(RowShapeError, match="give a contiguous array of float32"):
            optimiser.apply_dense(*arrays, step=1)
    read_only = values.copy()
    read_only.flags.writeable = False
    with pytest.raises(RowShapeError, match="arrays to write to"):
        optimiser.apply_dense(read_only, state, values, step=1)
    with pytest.raises(ConfigurationError, match="step 0"):
        GradientSum().apply_dense(values, state[:0], values, step=0)
