# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames of switch groups, there and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchfold.hostlib.errors import PeerProtocolError
from switchfold.hostlib.peers.frames import (
    Frame,
    GroupBeginFrame,
    GroupJoinFrame,
    GroupLeaseFrame,
    GroupOverFrame,
    GroupProgressFrame,
)
from switchfold.hostlib.peers.frames.header import HEADER_BYTES

U32, U64 = (st.integers(0, (1 << bits) - 1) for bits in (32, 64))
EXPONENTS = st.lists(st.integers(-(1 << 14), 1 << 14), min_size=1, max_size=9).map(
    lambda numbers: np.array(numbers, np.int32)
)


def parts(packed: bytes) -> tuple[Frame, memoryview]:
    frame = Frame.unpack(packed[:HEADER_BYTES])
    assert frame.payload_bytes == len(packed) - HEADER_BYTES
    return frame, memoryview(packed)[HEADER_BYTES:]


@settings(deadline=None, derandomize=True)
@given(
    st.builds(
        GroupLeaseFrame,
        generation=U32,
        tree_id=U32,
        switch_address=st.ip_addresses(v=4).map(str),
        switch_udp_port=U32,
        child_id=U32,
        worker_bitmap=U32,
        values_per_packet=st.integers(1, 352),
        first_row=U32,
        num_rows=st.integers(1, 512),
        epoch=U32,
        first_round=U32,
    )
)
def test_leases(sent: GroupLeaseFrame) -> None:
    _, payload = parts(sent.pack())
    assert GroupLeaseFrame.unpack(payload) == sent
    with pytest.raises(PeerProtocolError, match="a GROUP_LEASE of"):
        GroupLeaseFrame.unpack(payload[1:])


def test_a_lease_without_rows_is_none() -> None:
    assert GroupLeaseFrame.unpack(parts(GroupLeaseFrame().pack())[1]) == GroupLeaseFrame()
    for lacks in ("num_rows", "values_per_packet"):
        fields = {"generation": 1, "num_rows": 8, "values_per_packet": 32, lacks: 0}
        with pytest.raises(PeerProtocolError, match="without rows or lanes"):
            GroupLeaseFrame.unpack(parts(GroupLeaseFrame(**fields).pack())[1])


@settings(deadline=None, derandomize=True)
@given(
    st.builds(GroupJoinFrame, U64, U64, U64, U64, U64, U32, U32, U32, U32, U32, EXPONENTS)
    | st.builds(GroupBeginFrame, U64, U64, st.integers(1, 32), EXPONENTS)
)
def test_joins_and_beginnings(sent: GroupJoinFrame | GroupBeginFrame) -> None:
    frame, payload = parts(sent.pack())
    back = type(sent).unpack(frame, payload)
    assert back[:-1] == sent[:-1]
    assert np.array_equal(back.exponents, sent.exponents)
    assert back.exponents.dtype == np.int32
    with pytest.raises(PeerProtocolError, match=f"a {frame.kind.name} of"):
        type(sent).unpack(frame, payload[1:])


@pytest.mark.parametrize("count", [0, 33])
def test_a_group_has_as_many_members_as_a_bitmap_has_bits(count: int) -> None:
    frame, payload = parts(GroupBeginFrame(1, 1, count, np.zeros(1, np.int32)).pack())
    with pytest.raises(PeerProtocolError, match=f"{count} members"):
        GroupBeginFrame.unpack(frame, payload)


@settings(deadline=None, derandomize=True)
@given(
    st.builds(GroupProgressFrame, U64, U32, st.integers(0, 1024), U32)
    | st.builds(GroupOverFrame, U64)
)
def test_progress_and_ends(sent: GroupProgressFrame | GroupOverFrame) -> None:
    assert type(sent).unpack(Frame.unpack(sent.pack())) == sent


def test_progress_has_as_many_bits_as_it_says() -> None:
    frame = Frame.unpack(GroupProgressFrame(1, 2, 9, 0).pack())
    assert frame.payload_bytes == 2
    with pytest.raises(PeerProtocolError, match="9 bits in 1 bytes"):
        GroupProgressFrame.unpack(frame._replace(payload_bytes=1))
