# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The server's times travel in ROWS and RECEIPT, whatever they are."""

from __future__ import annotations

import pytest

from switchfold.hostlib.errors import PeerProtocolError
from switchfold.hostlib.latency import ServedRequests
from switchfold.hostlib.peers.frames import (
    NO_TIMES,
    EnterFrame,
    Frame,
    FrameKind,
    ReceiptFrame,
    RowsFrame,
    ServerTimes,
    TableFrame,
    pack_times,
    server_times,
    unpack_times,
)

MOST = (1 << 32) - 1
NUMBERS = [1, 77, MOST, MOST + 1, (1 << 64) - 1]
TIMES: list[ServerTimes] = [NO_TIMES, (1, 2, 3), (MOST, 0, 1), (0, MOST, 1 << 16), (5, 6, MOST)]


class Loop:
    """The clock of a loop."""

    def __init__(self) -> None:
        self.now_ns = 1000

    def clock_ns(self) -> int:
        return self.now_ns


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("times", TIMES)
def test_headers_carry_times(number: int, times: ServerTimes) -> None:
    rows = RowsFrame(120, number, MOST, 10, times)
    assert RowsFrame.unpack(Frame.unpack(rows.pack())) == rows
    as_before = TableFrame(FrameKind.ROWS, 120, number, MOST, 10)
    assert TableFrame.unpack(Frame.unpack(rows.pack())) == as_before
    for receipt in (ReceiptFrame(number, 16, times), ReceiptFrame(number)):
        assert ReceiptFrame.unpack(Frame.unpack(receipt.pack())) == receipt


def test_frames_without_times_are_as_they_were() -> None:
    assert (
        RowsFrame(120, 7, 3, 10, NO_TIMES).pack()
        == TableFrame(FrameKind.ROWS, 120, 7, 3, 10).pack()
    )
    assert ReceiptFrame(7).pack() == Frame(FrameKind.RECEIPT, 0, (7, 0, 0, 0, 0, 0, 0)).pack()
    assert EnterFrame(7).pack() == Frame(FrameKind.ENTER, 0, (7, 0, 0, 0, 0, 0, 0)).pack()


@pytest.mark.parametrize("kind", [FrameKind.PUSH, FrameKind.PULL])
@pytest.mark.parametrize("is_measured", [False, True])
def test_a_request_says_whether_it_is_measured(kind: FrameKind, is_measured: bool) -> None:
    asked = TableFrame(kind, 80, MOST << 32, MOST, 10, is_measured=is_measured)
    assert TableFrame.unpack(Frame.unpack(asked.pack())) == asked


def test_times_of_rows_are_no_wish_for_times() -> None:
    rows = RowsFrame(120, 7, 3, 10, (1, 2, 1))
    assert not TableFrame.unpack(Frame.unpack(rows.pack())).is_measured


@pytest.mark.parametrize("last", NUMBERS)
def test_receipts_carry_times_of_earlier_pushes(last: int) -> None:
    sent = [(number, times) for number, times in zip(range(last - 5, last), TIMES, strict=True)]
    sent = [(number, times) for number, times in sent if number > 0]
    assert [*unpack_times(memoryview(pack_times(sent)), last)] == sent


def test_a_broken_receipt_is_refused() -> None:
    with pytest.raises(PeerProtocolError, match="RECEIPT of 17 bytes"):
        [*unpack_times(memoryview(bytes(17)), 5)]


def test_times_stop_at_their_limit() -> None:
    hour_ns = 3600 * 10**9
    assert server_times(2 * hour_ns, 1999, 5_000_000_000) == (MOST, 1, 5_000_000)
    assert server_times(999, 1000, 1999) == (0, 1, 1)


def test_requests_without_times_have_none() -> None:
    loop = Loop()
    served = ServedRequests(loop)  # type: ignore[arg-type]
    assert served.pulled(3, 0) == NO_TIMES
    served.applied(3, 0)
    assert served.receipt() == []
    for kind in (FrameKind.PUSH, FrameKind.PULL):
        served.begin(kind, 4, 500)
        served.forget(kind, 4)
        served.pause()
        served.begin(kind, 5, 500)
        served.pause()
        served.forget(kind, 5)
    served.applied(5, 0)
    assert served.pulled(5, 0) == NO_TIMES
    assert served.receipt() == []


def test_other_requests_leave_nothing_behind() -> None:
    loop = Loop()
    served = ServedRequests(loop)  # type: ignore[arg-type]
    served.begin(FrameKind.ADVANCE, 4, 500)
    served.pause()
    assert not served.is_busy
    served.applied(4, 0)
    assert served.receipt() == []
