# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Packets about hot rows, and the frames that say which rows there are."""

from __future__ import annotations

import numpy as np
import pytest

from switchfold.hostlib import PeerProtocolError
from switchfold.hostlib.hot_rows.row_packets import RowPackets
from switchfold.hostlib.peers.frames import (
    HOT_ROW_DTYPE,
    Frame,
    FrameKind,
    HotRowsState,
    RoundsFrame,
    SampleFrame,
    TableRows,
)
from switchfold.hostlib.slots import wire
from switchfold.hostlib.slots.wire import Flag, Operation

ROWS = np.array([4, 9], np.uint32)
EPOCHS = np.array([64, 97], np.uint32)
ROUNDS = np.array([1, 2**32 - 1], np.uint32)


@pytest.fixture
def packets() -> RowPackets:
    return RowPackets(
        job_id=7,
        generation=3,
        worker_id=2,
        worker_bitmap=4,
        num_workers=5,
        values_per_packet=wire.VALUES_PER_PACKET_NARROW,
    )


def test_a_flush_names_its_level(packets: RowPackets) -> None:
    header = wire.view_datagrams(packets.flush(ROWS, EPOCHS, ROUNDS, level=2), 32)["header"]
    assert header["operation"].tolist() == [Operation.FLUSH] * 2
    assert header["num_contributors"].tolist() == [2, 2]
    assert header["expected"].tolist() == [0, 0]
    assert header["flags"].tolist() == [Flag.TO_SERVER] * 2
    assert header["slot_index"].tolist() == header["chunk_index"].tolist() == [4, 9]
    assert header["tensor_id"].tolist() == [64, 97]
    assert header["round"].tolist() == [1, 2**32 - 1]
    assert header["range_start"].tolist() == [128, 288]
    assert header["range_end"].tolist() == [160, 320]
    assert header["worker_bitmap"].tolist() == [4, 4]


def test_only_packets_of_the_generation_are_seen(packets: RowPackets) -> None:
    flush = packets.flush(ROWS, EPOCHS, ROUNDS, level=0)
    assert packets.view(flush)["header"]["slot_index"].tolist() == [4, 9]
    other = flush.copy()
    wire.view_datagrams(other[:1], 32)["header"]["generation"] = 2
    wire.view_datagrams(other[1:], 32)["header"]["flags"] = 0
    assert packets.view(other).size == 0


def test_the_state_of_rows_comes_back_from_its_bytes() -> None:
    rows = np.zeros(3, HOT_ROW_DTYPE)
    rows["row"] = 5, 6, 7
    rows["exponent"] = -20
    rows["counted"] = [[1, 2], [3 << 32, 4], [5, 6]]
    state = HotRowsState(9, 7, "10.1.2.3", 21318, 1, 2, 4, 32, 5000, rows, (TableRows(8, b"abc"),))
    found = HotRowsState.unpack(memoryview(state.pack()))
    assert np.array_equal(found.rows, rows)
    assert found._replace(rows=rows) == state
    assert HotRowsState.unpack(memoryview(HotRowsState(0).pack())).generation == 0


@pytest.mark.parametrize("size", [0, 10, 46, -1])
def test_cut_states_are_refused(size: int) -> None:
    state = HotRowsState(9, rows=np.zeros(2, HOT_ROW_DTYPE), tables=(TableRows(8, b"abc"),))
    with pytest.raises(PeerProtocolError, match="HOT_ROWS"):
        HotRowsState.unpack(memoryview(state.pack()[:size]))


def test_headers_of_rounds_and_sketches_come_back_from_their_bytes() -> None:
    decided = RoundsFrame(FrameKind.DECISIONS, 32, 2**32 - 1)
    assert RoundsFrame.unpack(Frame.unpack(decided.pack())) == decided
    assert decided.rounds(memoryview(bytes(32))).size == 2
    with pytest.raises(PeerProtocolError, match="DECIDE of 9 bytes"):
        RoundsFrame(FrameKind.DECIDE, 9, 1).rounds(memoryview(bytes(9)))
    sketch = SampleFrame(FrameKind.SKETCH, 12, 2**32 - 1)
    assert SampleFrame.unpack(Frame.unpack(sketch.pack())) == sketch
