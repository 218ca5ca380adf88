# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sparse tables against dictionaries and numpy, bit for bit, and what they refuse."""

from __future__ import annotations

import hashlib
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from row_reference import (
    HEADER_BYTES,
    OPTIMISERS,
    RowReference,
    draw,
    initial_values,
    stored_rows,
)
from switchfold.hostlib import (
    ConfigurationError,
    LogOrderError,
    NonFiniteGradientError,
    RowFormatError,
    RowShapeError,
    RowTableFullError,
)
from switchfold.hostlib.parameter_server.rows import (
    Adam,
    GradientSum,
    Initialiser,
    Normal,
    Optimiser,
    RowTable,
    Sgd,
    Uniform,
    Zeros,
)

LEAST, MOST = -(1 << 63), (1 << 63) - 1
KEYS = st.sampled_from([0, 1, 2, 3, -1, LEAST, MOST, 1 << 32, 2 << 32, 12345678901])
SIZES = st.integers(0, 12)
OF_EACH_OPTIMISER = pytest.mark.parametrize("optimiser", OPTIMISERS, ids=lambda each: each.name)


def as_keys(*keys: int) -> NDArray[np.int64]:
    return np.array(keys, np.int64)


def ones(*shape: int) -> NDArray[np.float32]:
    return np.ones(shape, np.float32)


@OF_EACH_OPTIMISER
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_table_is_that_of_the_reference(optimiser: Optimiser, data: st.DataObject) -> None:
    width = data.draw(st.integers(1, 9))
    initialiser = data.draw(st.sampled_from([Zeros(), Uniform(low=-0.25, high=1.5)]))
    seed = data.draw(st.integers(0, (1 << 64) - 1))
    options = {"optimiser": optimiser, "initialiser": initialiser, "seed": seed}
    table = RowTable(width=width, max_rows=10, **options)
    reference = RowReference(width=width, **options)
    lsn = 0
    for _ in range(data.draw(st.integers(1, 8))):
        keys = data.draw(st.lists(KEYS, max_size=12))
        kind = data.draw(st.sampled_from(["pull", "push", "logged", "replay"]))
        if kind == "pull":
            pulled = table.pull(as_keys(*keys))
            values, updates = reference.pull(keys)
            assert pulled.values.tobytes() == values.tobytes()
            assert pulled.updates.tolist() == updates
            continue
        numbers = data.draw(st.integers(0, 1 << 32))
        gradients = np.random.default_rng(numbers).standard_normal((len(keys), width), np.float32)
        if kind == "replay":
            old = data.draw(st.integers(1, 12))
            table.replay(as_keys(*keys), gradients, lsn=old)
            reference.push(keys, gradients, lsn=old, is_replay=True)
            lsn = max(lsn, old)
        else:
            lsn += kind == "logged"
            of_log = lsn if kind == "logged" else 0
            table.push(as_keys(*keys), gradients, lsn=of_log)
            reference.push(keys, gradients, lsn=of_log)
        assert table.lsn == lsn
    assert len(table) == len(reference.rows)
    assert stored_rows(table, data.draw(st.integers(1, 11))) == reference.stored_rows()


@pytest.mark.parametrize(
    "initialiser", [Zeros(), Uniform(low=-2.0, high=3.0), Normal(deviation=0.02)], ids=repr
)
def test_initial_values_depend_on_seed_key_and_position_alone(initialiser: Initialiser) -> None:
    keys = as_keys(LEAST, -1, 0, 1, 77, MOST, 78, 1 << 40)
    wide, narrow, other = (
        RowTable(width=width, max_rows=100, initialiser=initialiser, seed=seed)
        for width, seed in ((24, 5), (7, 5), (24, 6))
    )
    values = wide.pull(keys).values
    narrow.push(keys[:3], np.zeros((3, 7), np.float32))
    backwards = narrow.pull(keys[::-1].copy()).values[::-1]
    assert backwards.tobytes() == values[:, :7].tobytes()
    expected = np.array([initial_values(initialiser, 5, int(key), 24) for key in keys])
    np.testing.assert_array_max_ulp(values, expected, maxulp=isinstance(initialiser, Normal))
    if not isinstance(initialiser, Zeros):
        assert np.unique(values).size > 0.99 * values.size
        assert np.intersect1d(values, other.pull(keys).values).size == 0


@pytest.mark.parametrize(
    ("initialiser", "digest"),
    [
        (Uniform(low=-1.0, high=1.0), "01c3742be50f2e5b"),
        (Normal(deviation=1.0), "0d263d9d7290416c"),
    ],
    ids=repr,
)
def test_initial_values_are_the_same_on_every_machine(
    initialiser: Initialiser, digest: str
) -> None:
    table = RowTable(width=16, max_rows=1000, initialiser=initialiser, seed=2026)
    values = table.pull(np.arange(1000, dtype=np.int64)).values.astype("<f4")
    assert hashlib.sha256(values.tobytes()).hexdigest()[:16] == digest


def test_normal_values_have_their_moments() -> None:
    table = RowTable(width=64, max_rows=5000, initialiser=Normal(deviation=0.5))
    values = table.pull(np.arange(5000, dtype=np.int64)).values.astype(np.float64) / 0.5
    count = values.size
    # Five standard errors of a normal distribution's mean, variance and fourth moment.
    assert abs(values.mean()) < 5 / math.sqrt(count)
    assert abs((values**2).mean() - 1) < 5 * math.sqrt(2 / count)
    assert abs((values**4).mean() - 3) < 5 * math.sqrt(96 / count)
    neighbours = values[:, :-1] * values[:, 1:], values[:-1] * values[1:]
    assert all(abs(products.mean()) < 5 / math.sqrt(products.size) for products in neighbours)


def test_uniform_values_have_their_moments() -> None:
    table = RowTable(width=64, max_rows=5000, initialiser=Uniform(low=2.0, high=6.0))
    values = table.pull(np.arange(5000, dtype=np.int64)).values.astype(np.float64)
    assert values.min() >= 2
    assert values.max() <= 6
    assert abs(values.mean() - 4) < 5 * math.sqrt(16 / 12 / values.size)


def test_gradients_of_a_repeated_key_are_added_first() -> None:
    table = RowTable(width=2, max_rows=9, optimiser=Adam(learning_rate=0.1))
    once = RowTable(width=2, max_rows=9, optimiser=Adam(learning_rate=0.1))
    gradients = np.array([[1e8, 1], [3, 2], [-1e8, 3], [7, 4]], np.float32)
    table.push(as_keys(5, 6, 5, 5), gradients)
    # In this order: 1e8 - 1e8 + 7; the sum in another order would not be 7.
    once.push(as_keys(5, 6), np.array([[7, 8], [3, 2]], np.float32))
    assert stored_rows(table) == stored_rows(once)
    assert table.pull(as_keys(5)).updates.tolist() == [1]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_gradient_that_is_not_finite_changes_nothing(bad: float) -> None:
    table = RowTable(width=3, max_rows=9)
    table.push(as_keys(1, 2), ones(2, 3), lsn=4)
    before = stored_rows(table)
    gradients = ones(4, 3)
    gradients[2, 1] = gradients[3, 0] = bad
    with pytest.raises(NonFiniteGradientError, match="key 8 at 2: NaN or infinity") as caught:
        table.push(as_keys(1, 7, 8, 9), gradients, lsn=5)
    assert (caught.value.position, caught.value.key) == (2, 8)
    assert stored_rows(table) == before
    assert table.lsn == 4


def test_sum_of_a_repeated_key_that_overflows_changes_nothing() -> None:
    table = RowTable(width=2, max_rows=9)
    gradients = np.full((4, 2), 3e38, np.float32)
    with pytest.raises(NonFiniteGradientError, match="key 6 at 1: a sum beyond") as caught:
        table.push(as_keys(5, 6, 7, 6), gradients)
    assert (caught.value.position, caught.value.key) == (1, 6)
    assert len(table) == 0


def test_full_table_refuses_new_keys_and_serves_old_ones() -> None:
    table = RowTable(width=1, max_rows=3)
    table.push(as_keys(10, 11), ones(2, 1), lsn=1)
    before = stored_rows(table)
    for call in (
        lambda: table.pull(as_keys(11, 12, 12, 13, 14)),
        lambda: table.push(as_keys(11, 12, 12, 13, 14), ones(5, 1), lsn=2),
    ):
        with pytest.raises(
            RowTableFullError, match="key 13 at 3: the table has 2 of at most 3 rows"
        ):
            call()
        assert stored_rows(table) == before
    table.push(as_keys(10, 12, 12), ones(3, 1), lsn=2)
    assert table.pull(as_keys(10, 11, 12)).values.ravel().tolist() == [2, 1, 2]
    with pytest.raises(RowTableFullError):
        table.pull(as_keys(0))


def test_prepared_push_has_its_rows_and_applies_nothing() -> None:
    initialiser = Uniform(low=0.0, high=1.0)
    table = RowTable(width=2, max_rows=3, initialiser=initialiser, optimiser=OPTIMISERS[-1])
    untouched = RowTable(width=2, max_rows=3, initialiser=initialiser, optimiser=OPTIMISERS[-1])
    untouched.pull(as_keys(1, 2))
    table.prepare(as_keys(1, 2, 1), ones(3, 2))
    assert stored_rows(table) == stored_rows(untouched)
    with pytest.raises(NonFiniteGradientError, match="key 1 at 0"):
        table.prepare(as_keys(1), ones(1, 2) * math.nan)
    with pytest.raises(RowTableFullError, match="key 4 at 1"):
        table.prepare(as_keys(3, 4), ones(2, 2))
    table.prepare(as_keys(3), ones(1, 2))
    with pytest.raises(RowTableFullError):
        table.pull(as_keys(4))
    table.push(as_keys(3), ones(1, 2), lsn=1)
    assert table.pull(as_keys(1, 2, 3)).updates.tolist() == [0, 0, 1]


def test_logged_pushes_come_in_order() -> None:
    table = RowTable(width=1, max_rows=3)
    table.push(as_keys(1), ones(1, 1), lsn=7)
    for lsn in (7, 3):
        with pytest.raises(LogOrderError, match=f"push {lsn} of the log comes after push 7"):
            table.push(as_keys(2), ones(1, 1), lsn=lsn)
    assert len(table) == 1
    table.push(as_keys(1), ones(1, 1), lsn=(1 << 64) - 1)
    assert table.lsn == (1 << 64) - 1


def test_push_that_is_not_logged_leaves_the_lsn() -> None:
    table = RowTable(width=1, max_rows=3)
    table.push(as_keys(1), ones(1, 1), lsn=7)
    table.push(as_keys(1), ones(1, 1))
    table.replay(as_keys(1), ones(1, 1), lsn=7)
    assert table.pull(as_keys(1)).values.tolist() == [[2]]
    table.replay(as_keys(1), ones(1, 1), lsn=8)
    assert table.pull(as_keys(1)).values.tolist() == [[3]]
    assert table.lsn == 8


@pytest.mark.parametrize("step", [1, 1 << 32, -(1 << 52) + 1])
def test_table_grows(step: int) -> None:
    """Several slabs, and segments that double many times; 10 keys of 300,000 at a time repeat."""
    table = RowTable(width=8, max_rows=400_000, optimiser=Sgd(learning_rate=1.0, momentum=0.5))
    keys = np.arange(300_000, dtype=np.int64) * step
    gradients = np.repeat(np.arange(300_000, dtype=np.float32)[:, None], 8, axis=1)
    for start in range(0, 300_000, 9_990):
        part = slice(start, start + 10_000)
        table.push(keys[part], gradients[part])
    assert len(table) == 300_000
    pulled = table.pull(keys)
    twice = (np.arange(300_000) % 9_990 < 10) & (np.arange(300_000) >= 9_990)
    assert pulled.updates.tolist() == (1 + twice).tolist()
    expected = -gradients * np.where(twice, np.float32(2.5), np.float32(1))[:, None]
    np.testing.assert_array_equal(pulled.values, expected)


def key_with_hash(hashed: int) -> int:
    """Return the key whose hash in row_index.h this is: the inverse of `draw(key, 0)`."""
    modulus = 1 << 64
    for shift, factor in ((31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9), (30, 1)):
        hashed ^= hashed >> shift ^ hashed >> 2 * shift
        hashed = hashed * pow(factor, -1, modulus) % modulus
    key = (hashed - 0x9E3779B97F4A7C15) % modulus
    return key - modulus if key >> 63 else key


def test_keys_whose_hashes_agree_have_rows_of_their_own() -> None:
    """The index keeps 32 bits of a hash: these keys differ in the others, and share a segment."""
    tag = 0xFFFFFFF0
    keys = as_keys(*(key_with_hash(number << 32 | tag) for number in range(1, 400)))
    assert {draw(int(key) % (1 << 64), 0) & 0xFFFFFFFF for key in keys} == {tag}
    table = RowTable(width=1, max_rows=1000)
    for start in range(0, 300, 20):
        part = keys[start : start + 20]
        table.push(part, np.arange(start, start + 20, dtype=np.float32)[:, None])
    order = np.random.default_rng(0).permutation(399)
    pulled = table.pull(keys[order])
    assert pulled.updates.tolist() == (order < 300).astype(int).tolist()
    assert pulled.values.ravel().tolist() == np.where(order < 300, order, 0).tolist()


def test_number_of_updates_stops_at_its_end() -> None:
    table = RowTable(width=1, max_rows=1)
    table.push(as_keys(5), ones(1, 1))
    data = table.export().data
    data[HEADER_BYTES + 16 : HEADER_BYTES + 20] = 255
    data[HEADER_BYTES + 16] = 254
    table.import_rows(data)
    for updates in (1, 2):
        table.push(as_keys(5), ones(1, 1))
        values = table.pull(as_keys(5))
        assert values.updates.tolist() == [(1 << 32) - 1]
        assert values.values.tolist() == [[1 + updates]]


def test_optimisers_that_the_library_does_not_have_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="no optimiser optimiser; use one of this module"):
        RowTable(width=1, max_rows=1, optimiser=Optimiser())


def test_empty_batches_change_nothing() -> None:
    table = RowTable(width=4, max_rows=1)
    assert table.pull(as_keys()).values.shape == (0, 4)
    table.push(as_keys(), ones(0, 4), lsn=1)
    chunk = table.export()
    assert chunk.data.size == HEADER_BYTES
    assert chunk.next_cursor is None
    table.import_rows(chunk.data)
    assert len(table) == 0


@pytest.mark.parametrize(
    "keys",
    [
        np.zeros(2, np.int32),
        np.zeros(2, np.uint64),
        np.zeros(2, ">i8"),
        np.zeros((2, 1), np.int64),
        np.zeros(4, np.int64)[::2],
        np.zeros(17, np.uint8)[1:].view(np.int64),
    ],
    ids=["int32", "uint64", "big-endian", "two-dimensional", "strided", "unaligned"],
)
def test_keys_of_another_form_are_refused(keys: NDArray[np.int64]) -> None:
    table = RowTable(width=1, max_rows=9)
    with pytest.raises(RowShapeError, match=r"keys of .*; give a contiguous array of int64"):
        table.pull(keys)
    with pytest.raises(RowShapeError, match="keys"):
        table.push(keys, ones(2, 1))


@pytest.mark.parametrize(
    "gradients",
    [ones(2, 3), ones(3, 2), ones(4), np.ones((2, 2)), ones(2, 4)[:, ::2]],
    ids=["width", "count", "flat", "float64", "strided"],
)
def test_gradients_of_another_form_are_refused(gradients: NDArray[np.float32]) -> None:
    table = RowTable(width=2, max_rows=9)
    with pytest.raises(RowShapeError, match=r"gradients of .* float32 and shape \(2, 2\)"):
        table.push(as_keys(1, 2), gradients)
    assert len(table) == 0


@pytest.mark.parametrize(
    "options",
    [
        {"width": 0},
        {"width": (1 << 20) + 1},
        {"max_rows": 0},
        {"max_rows": (1 << 31) + 1},
        {"seed": -1},
        {"seed": 1 << 64},
    ],
    ids=repr,
)
def test_table_refuses_options(options: dict[str, int]) -> None:
    with pytest.raises(ConfigurationError, match="give"):
        RowTable(**{"width": 1, "max_rows": 1, **options})


def test_table_refuses_numbers_out_of_range() -> None:
    table = RowTable(width=1, max_rows=1)
    for lsn in (-1, 1 << 64):
        with pytest.raises(ConfigurationError, match="log sequence number"):
            table.push(as_keys(1), ones(1, 1), lsn=lsn)
    for lsn in (0, 1 << 64):
        with pytest.raises(ConfigurationError, match=r"log sequence number .* from 1 to"):
            table.replay(as_keys(1), ones(1, 1), lsn=lsn)
    for cursor, max_rows in ((-1, 1), (0, 0), ((1 << 31) + 1, 1), (0, (1 << 30) + 1)):
        with pytest.raises(ConfigurationError, match="take the cursor of the chunk before"):
            table.export(cursor, max_rows)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Uniform(low=1.0, high=0.0),
        lambda: Uniform(low=0.0, high=math.inf),
        lambda: Uniform(low=math.nan, high=0.0),
        lambda: Normal(deviation=0.0),
        lambda: Normal(deviation=1e-60),
        lambda: Normal(deviation=math.nan),
    ],
)
def test_initialisers_refuse_numbers(make: type[Initialiser]) -> None:
    with pytest.raises(ConfigurationError, match="give"):
        make()


@OF_EACH_OPTIMISER
@pytest.mark.parametrize("width", [1, 2, 300_000])
def test_chunks_bring_all_rows_to_another_table(optimiser: Optimiser, width: int) -> None:
    options = {"width": width, "optimiser": optimiser, "initialiser": Uniform(low=0.0, high=1.0)}
    table, copy = RowTable(max_rows=9, **options), RowTable(max_rows=9, **options)
    table.push(as_keys(3, -4, MOST), ones(3, width), lsn=8)
    table.push(as_keys(-4), ones(1, width), lsn=9)
    copy.push(as_keys(-4), 2 * ones(1, width), lsn=5)
    cursor: int | None = 0
    while cursor is not None:
        data, cursor = table.export(cursor, 2)
        copy.import_rows(data.tobytes())
    assert stored_rows(copy) == stored_rows(table)
    assert copy.lsn == 9


def test_bytes_that_are_no_rows_are_refused() -> None:
    table = RowTable(width=2, max_rows=9, optimiser=Adam(learning_rate=0.1))
    table.push(as_keys(1, 2, 3), ones(3, 2))
    before = stored_rows(table)
    data = table.export().data.tobytes()
    others = [
        RowTable(width=3, max_rows=9, optimiser=Adam(learning_rate=0.1)),
        RowTable(width=6, max_rows=9),
        RowTable(width=3, max_rows=9, optimiser=Sgd(learning_rate=0.1, momentum=0.1)),
    ]
    wrong = [other.export().data.tobytes() for other in others]
    wrong += [data[:-1], data + b"0", data[: HEADER_BYTES - 1], b"", bytes(len(data))]
    wrong += [data[:at] + b"\xff" + data[at + 1 :] for at in range(HEADER_BYTES)]
    for each in wrong:
        with pytest.raises(RowFormatError, match="not rows of width 2 with the state of adam"):
            table.import_rows(each)
    assert stored_rows(table) == before


def test_chunk_without_room_changes_nothing() -> None:
    table, small = RowTable(width=1, max_rows=9), RowTable(width=1, max_rows=3)
    table.push(as_keys(1, 2, 3), ones(3, 1), lsn=1)
    small.push(as_keys(3, 4), ones(2, 1))
    before = stored_rows(small)
    with pytest.raises(
        RowTableFullError, match="the rows of a chunk: the table has 2 of at most 3"
    ):
        small.import_rows(table.export().data)
    assert stored_rows(small) == before


def test_table_without_memory_keeps_its_rows() -> None:
    if "libasan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("the sanitizer's allocator needs address space without a limit")
    code = """if True:
        import resource
        import numpy as np
        from switchfold.hostlib import RowMemoryError
        from switchfold.hostlib.parameter_server.rows import RowTable

        table = RowTable(width=1024, max_rows=1 << 31)
        batches = [np.arange(n, n + 256, dtype=np.int64) for n in range(0, 1 << 20, 256)]
        gradients = np.ones((256, 1024), np.float32)
        table.push(batches[0], gradients)
        status = open("/proc/self/statm").read().split()
        limit = int(status[0]) * resource.getpagesize() + (100 << 20)
        free = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (limit, free[1]))
        try:
            for lsn, keys in enumerate(batches[1:], 1):
                table.push(keys, gradients, lsn=lsn)
        except RowMemoryError as error:
            assert "no memory" in str(error)
            assert len(table) >= 256 * lsn
            assert table.lsn == lsn - 1
        else:
            raise AssertionError("4 GiB in 100 MiB")
        resource.setrlimit(resource.RLIMIT_AS, free)
        for keys in batches[:lsn]:
            table.push(keys, gradients)
        pulled = table.pull(np.concatenate([batches[0][:100], batches[lsn - 1][:100]]))
        assert (pulled.values == 2).all()
        print("kept")
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "kept\n", done.stderr


def test_sums_of_integers_are_exact() -> None:
    table = RowTable(width=4, max_rows=500, optimiser=GradientSum())
    rng = np.random.default_rng(3)
    sums = np.zeros((500, 4), np.int64)
    for _ in range(50):
        keys = rng.integers(0, 500, 300)
        gradients = rng.integers(-100, 100, (300, 4))
        np.add.at(sums, keys, gradients)
        table.push(keys, gradients.astype(np.float32))
    assert (table.pull(np.arange(500)).values == sums).all()
