# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The sketch against exact counts, its sum over workers, and its bytes."""

from __future__ import annotations

import struct
import zlib
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchfold.controller.cli.workloads.key_stream import KeyPopularity, KeyStream
from switchfold.hostlib import ConfigurationError, HotRowError
from switchfold.hostlib.hot_rows import BatchSampler, FrequencySketch
from switchfold.hostlib.hot_rows.stored_arrays import StoredKind, pack_arrays

KEYS = st.lists(st.integers(0, 30), max_size=60)
BATCHES = st.lists(KEYS, max_size=8)


def sketch_of(batches: list[list[int]], capacity: int) -> FrequencySketch:
    sketch = FrequencySketch(capacity)
    for batch in batches:
        sketch.update(np.array(batch, np.int64))
    return sketch


def exact_counts(batches: list[list[int]]) -> Counter[int]:
    return Counter(key for batch in batches for key in batch)


def check_bounds(sketch: FrequencySketch, exact: Counter[int], factor: float = 1.0) -> None:
    """Compare the counts of all keys with the exact ones."""
    keys = np.arange(31)
    counts = sketch.counts(keys)
    true = factor * np.array([exact[key] for key in keys.tolist()])
    assert sketch.total == pytest.approx(true.sum())
    assert (counts <= true + 1e-9).all()
    assert (true <= counts + sketch.error + 1e-9).all()
    assert sketch.error <= (sketch.total - counts.sum()) / (sketch.capacity + 1) + 1e-9
    assert np.count_nonzero(counts) <= sketch.capacity


@settings(max_examples=200, deadline=None, derandomize=True)
@given(BATCHES, st.integers(1, 40))
def test_counts_keep_the_bound(batches: list[list[int]], capacity: int) -> None:
    sketch = sketch_of(batches, capacity)
    check_bounds(sketch, exact_counts(batches))
    assert sketch.squares == sketch.total


@settings(max_examples=200, deadline=None, derandomize=True)
@given(BATCHES, BATCHES, st.integers(1, 40), st.sampled_from([0.0, 0.25, 1.0]))
def test_merged_sketches_count_the_sum(
    first: list[list[int]], second: list[list[int]], capacity: int, decay: float
) -> None:
    sketch = sketch_of(first, capacity)
    sketch.merge(sketch_of(second, capacity))
    check_bounds(sketch, exact_counts(first + second))
    sketch.decay(decay)
    check_bounds(sketch, exact_counts(first + second), decay)
    assert sketch.squares == pytest.approx(decay * sketch.total)


def test_few_keys_are_counted_exactly_after_many_batches() -> None:
    stream = KeyStream(KeyPopularity(num_keys=1000, exponent=1.0), seed=3)
    batches = [stream.draw(500).ravel() for _ in range(20)]
    parts = [FrequencySketch(1000), FrequencySketch(1000)]
    for number, batch in enumerate(batches):
        parts[number % 2].update(batch)
    parts[0].merge(parts[1])
    keys, exact = np.unique(np.concatenate(batches), return_counts=True)
    assert np.array_equal(parts[0].counts(keys), exact)
    assert parts[0].error == 0
    top, counts = parts[0].top(10)
    assert np.array_equal(counts, np.sort(exact)[::-1][:10])
    assert np.array_equal(parts[0].counts(top), counts)


def test_memory_is_bounded_whatever_the_number_of_keys() -> None:
    sketch = FrequencySketch(1 << 10)
    for start in range(0, 1 << 20, 1 << 14):
        sketch.update(np.arange(start, start + (1 << 14)))
        assert sketch.memory_bytes <= 24 << 10
    assert sketch.total == 1 << 20
    assert 0 < sketch.error <= sketch.total / (1 + (1 << 10))


def test_equal_counts_are_ranked_by_key() -> None:
    sketch = sketch_of([[5, 3, 9, 9, 7]], 10)
    assert sketch.top(3)[0].tolist() == [9, 3, 5]
    assert sketch.top(9)[0].tolist() == [9, 3, 5, 7]


def test_batch_may_change_after_it_was_counted() -> None:
    sketch = FrequencySketch(10)
    batch = np.array([1, 1, 2])
    sketch.update(batch)
    batch[:] = 7
    assert sketch.counts(np.array([1, 2, 7])).tolist() == [2, 1, 0]


def test_sketch_refuses_what_it_cannot_count() -> None:
    sketch = FrequencySketch(10)
    with pytest.raises(HotRowError, match="key -3 is negative"):
        sketch.update(np.array([1, -3]))
    with pytest.raises(HotRowError, match="11 counters"):
        sketch.merge(FrequencySketch(11))
    for capacity in (0, 1 << 27):
        with pytest.raises(ConfigurationError, match="counters"):
            FrequencySketch(capacity)
    for factor in (-0.1, 1.1, float("nan")):
        with pytest.raises(ConfigurationError, match="decay"):
            sketch.decay(factor)
    assert sketch.total == 0


@settings(max_examples=100, deadline=None, derandomize=True)
@given(BATCHES, st.integers(1, 40), st.sampled_from([0.3, 1.0]))
def test_bytes_restore_the_sketch(batches: list[list[int]], capacity: int, decay: float) -> None:
    sketch = sketch_of(batches, capacity)
    sketch.decay(decay)
    restored = FrequencySketch.unpack(sketch.pack())
    assert restored.pack() == sketch.pack()
    assert (restored.total, restored.squares, restored.error, restored.capacity) == (
        sketch.total,
        sketch.squares,
        sketch.error,
        capacity,
    )
    assert np.array_equal(restored.counts(np.arange(31)), sketch.counts(np.arange(31)))
    restored.merge(sketch)
    assert restored.total == 2 * sketch.total


def test_damaged_bytes_are_refused() -> None:
    data = sketch_of([[1, 1, 2, 3, 4, 4, 4]], 3).pack()
    for length in range(len(data)):
        with pytest.raises(HotRowError):
            FrequencySketch.unpack(data[:length])
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x41
        with pytest.raises(HotRowError):
            FrequencySketch.unpack(bytes(damaged))
    with pytest.raises(HotRowError):
        FrequencySketch.unpack(data + b"\0")


def resealed(body: bytes) -> bytes:
    """Return bytes with the right checksum."""
    return body + struct.pack("<I", zlib.crc32(body))


def test_wrong_fields_are_refused_behind_a_right_checksum() -> None:
    def packed(  # one case changes one field
        capacity: int = 4,
        sums: tuple[float, float, float] = (4.0, 4.0, 0.0),
        keys: tuple[int, ...] = (1, 2),
        counts: tuple[float, ...] = (3.0, 1.0),
        *,
        head: bytes = b"SFHR\x02\x01",
    ) -> bytes:
        fields = struct.pack("<IIddd", capacity, len(keys), *sums)
        arrays = np.array(keys, np.int64), np.array(counts, np.float64)
        body = pack_arrays(StoredKind.SKETCH, fields, *arrays)[len(head) : -4]
        return resealed(head + body)

    assert FrequencySketch.unpack(packed()).top(2)[0].tolist() == [1, 2]
    nan, inf = float("nan"), float("inf")
    for damaged in (
        packed(head=b"SFHX\x02\x01"),
        packed(head=b"SFHR\x01\x01"),
        packed(head=b"SFHR\x02\x02"),
        packed(capacity=1),
        packed(capacity=0),
        packed(capacity=1 << 27),
        packed(keys=(2, 1)),
        packed(keys=(1, 1)),
        packed(keys=(-1, 1)),
        packed(counts=(3.0, 0.0)),
        packed(counts=(3.0, nan)),
        packed(counts=(3.0, inf)),
        packed(counts=(3.0,)),
        packed(counts=(3.0, 0.5, 0.5)),
        packed(sums=(3.0, 3.0, 0.0)),
        packed(sums=(nan, 4.0, 0.0)),
        packed(sums=(inf, 4.0, 0.0)),
        packed(sums=(4.0, 5.0, 0.0)),
        packed(sums=(4.0, -1.0, 0.0)),
        packed(sums=(4.0, 4.0, 0.1)),
        packed(sums=(4.0, 4.0, -0.1)),
        packed(sums=(4.0, 4.0, nan)),
    ):
        with pytest.raises(HotRowError):
            FrequencySketch.unpack(damaged)


def test_sampler_takes_its_share_from_a_generator_of_its_own() -> None:
    np.random.default_rng(9)
    taken = [BatchSampler(0.05, seed=9).takes_next() for _ in range(3)]
    assert len(set(taken)) == 1
    sampler = BatchSampler(0.05, seed=9)
    share = np.mean([sampler.takes_next() for _ in range(20_000)])
    assert 0.045 < share < 0.055
    first, second = BatchSampler(0.5, seed=1), BatchSampler(0.5, seed=2)
    draws = [(first.takes_next(), second.takes_next()) for _ in range(64)]
    assert any(a != b for a, b in draws)
    always = BatchSampler(1.0, seed=0)
    assert all(always.takes_next() for _ in range(1000))
    for probability in (0.0, 1.01, float("nan")):
        with pytest.raises(ConfigurationError, match="probability"):
            BatchSampler(probability, seed=0)
