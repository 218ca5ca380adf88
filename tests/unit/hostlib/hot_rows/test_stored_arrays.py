# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays as bytes: what comes back, how few they are, and which are refused."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from switchfold.hostlib.errors import HotRowError
from switchfold.hostlib.hot_rows.stored_arrays import (
    MOST_BYTES,
    StoredArrays,
    StoredKind,
    pack_arrays,
)

FIELDS = struct.Struct("<I")
SEVEN = FIELDS.pack(7)
ARRAYS = (
    np.array([0, (1 << 63) - 1, -(1 << 63), -1, 5], np.int64),
    np.array([3, (1 << 32) - 1, 0], np.uint32),
    np.array([1.5, -0.0, np.inf], np.float64),
    np.empty(0, np.int64),
)


def resealed(data: bytes, body: bytes) -> bytes:
    """Return the head of bytes, another body, and the right checksum."""
    whole = data[: 6 + FIELDS.size] + body
    return whole + struct.pack("<I", zlib.crc32(whole))


def restored(data: bytes, kind: StoredKind, *like: NDArray[Any]) -> list[NDArray[Any]]:
    stored = StoredArrays(data, kind, FIELDS)
    assert stored.fields == (7,)
    arrays = [stored.take(array.dtype.type, array.size) for array in like]
    stored.finish()
    return arrays


@pytest.mark.parametrize("kind", StoredKind)
def test_arrays_come_back(kind: StoredKind) -> None:
    for before, after in zip(
        ARRAYS, restored(pack_arrays(kind, SEVEN, *ARRAYS), kind, *ARRAYS), strict=True
    ):
        assert after.dtype == before.dtype
        assert after.tobytes() == before.tobytes()


def test_rising_keys_of_a_sample_take_few_bytes() -> None:
    keys = np.unique(np.random.default_rng(1).integers(0, 150_000_000, 2500))
    data = pack_arrays(StoredKind.SKETCH, SEVEN, keys, np.ones(keys.size))
    assert len(data) < 3 * keys.size


@pytest.mark.parametrize("kind", StoredKind)
def test_too_few_and_too_many_bytes_are_refused(kind: StoredKind) -> None:
    keys = np.arange(9)
    data = pack_arrays(kind, SEVEN, keys)
    with pytest.raises(HotRowError, match="ends inside an array of 80 bytes"):
        restored(data, kind, np.arange(10))
    with pytest.raises(HotRowError, match="more"):
        restored(data, kind, np.arange(8))
    longer = resealed(data, data[6 + FIELDS.size : -4] + b"x")
    with pytest.raises(HotRowError, match="1 bytes more"):
        restored(longer, kind, keys)


@pytest.mark.parametrize("body", [b"", b"no stream", zlib.compress(bytes(72))[:-4]])
def test_damaged_streams_are_refused(body: bytes) -> None:
    data = resealed(pack_arrays(StoredKind.BATCHES, SEVEN), body)
    with pytest.raises(HotRowError, match="BATCHES"):
        restored(data, StoredKind.BATCHES, np.arange(9))


def test_a_small_stream_of_a_large_array_is_not_inflated() -> None:
    keys = np.zeros(MOST_BYTES // 8 + 1, np.int64)
    data = pack_arrays(StoredKind.BATCHES, SEVEN, keys)
    assert len(data) < MOST_BYTES // 64
    with pytest.raises(HotRowError, match=f"at most {MOST_BYTES}"):
        restored(data, StoredKind.BATCHES, keys)
