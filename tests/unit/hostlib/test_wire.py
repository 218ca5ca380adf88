# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest

from switchfold.hostlib.slots import wire


def test_header_is_44_bytes_without_holes() -> None:
    offset = 0
    for name in wire.HEADER_DTYPE.names or ():
        field, place = wire.HEADER_DTYPE.fields[name][:2]  # type: ignore[index]
        assert place == offset, name
        offset += field.itemsize
    assert offset == wire.HEADER_BYTES == 44


@pytest.mark.parametrize(("values", "size"), [(32, 172), (352, 1452)])
def test_datagram_sizes(values: int, size: int) -> None:
    assert wire.datagram_bytes(values) == size == wire.datagram_dtype(values).itemsize
    assert wire.frame_bytes(values) == size + 42
    assert wire.frame_bytes(values) - wire.ETHERNET_BYTES <= 1500


def test_view_datagrams_shares_memory() -> None:
    buffer = np.zeros((3, wire.datagram_bytes(352)), np.uint8)
    view = wire.view_datagrams(buffer, 352)
    assert view.shape == (3,)
    view["header"]["round"][2] = 1
    assert buffer[2, 19] == 1
    assert np.shares_memory(view, buffer)
