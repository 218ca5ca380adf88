# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Mini-batches of which a server learns, as bytes and within their bounds."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pytest

from switchfold.hostlib.errors import HotRowError
from switchfold.hostlib.hot_rows import KeyBatches
from switchfold.hostlib.hot_rows.stored_arrays import StoredKind, pack_arrays


def lists(batches: KeyBatches) -> list[list[int]]:
    return [batch.tolist() for batch in batches.batches]


def packed(sizes: Sequence[int], keys: Sequence[int]) -> bytes:
    fields = struct.pack("<II", len(sizes), len(keys))
    arrays = np.array(sizes, np.uint32), np.array(keys, np.int64)
    return pack_arrays(StoredKind.BATCHES, fields, *arrays)


def test_the_oldest_mini_batches_go_first() -> None:
    batches = KeyBatches(5)
    for keys in ([3, 1, 3], [-7], [9, 2], [4, 5]):
        batches.add(np.array(keys))
    assert lists(batches) == [[2, 9], [4, 5]]
    assert batches.num_keys == 4
    batches.add(np.arange(6))  # alone too large
    assert lists(batches) == [[2, 9], [4, 5]]


def test_mini_batches_come_back_from_their_bytes() -> None:
    empty = KeyBatches.unpack(KeyBatches(8).pack())
    assert (lists(empty), empty.num_keys) == ([], 0)
    batches = KeyBatches(8)
    for keys in ([5], [1, 7], [0, 2, 2**62]):
        batches.add(np.array(keys))
    again = KeyBatches.unpack(batches.pack())
    assert lists(again) == lists(batches)
    assert again.num_keys == 6
    narrow = KeyBatches(3)
    narrow.merge(again)
    assert lists(narrow) == [[0, 2, 2**62]]
    tiny = KeyBatches(2)
    tiny.merge(again)
    assert lists(tiny) == [[1, 7]]


@pytest.mark.parametrize(
    ("sizes", "keys"),
    [([2], [1]), ([1], [1, 2]), ([], [1]), ([0], []), ([1, 0], [4]), ([2], [3, 3]), ([2], [4, 3])],
)
def test_bytes_of_no_mini_batches_are_refused(sizes: Sequence[int], keys: Sequence[int]) -> None:
    with pytest.raises(HotRowError, match="mini-batch"):
        KeyBatches.unpack(packed(sizes, keys))


def test_negative_keys_are_refused() -> None:
    assert lists(KeyBatches.unpack(packed([1, 2], [9, 0, 1]))) == [[9], [0, 1]]
    with pytest.raises(HotRowError, match="mini-batch"):
        KeyBatches.unpack(packed([1, 2], [9, -1, 1]))
