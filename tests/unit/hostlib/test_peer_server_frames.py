# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames between workers: each kind's fields have their place in the header, and come back."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from switchfold.hostlib.peers.frames import (
    AnswerFrame,
    FactorsFrame,
    FailedFrame,
    FetchFrame,
    Frame,
    FrameKind,
    LostFrame,
    PushedFactorsFrame,
    UpdateFrame,
    ValuesFrame,
)

CASES: list[tuple[Any, FrameKind, int, tuple[int, ...]]] = [
    (ValuesFrame(40, 5, 6, 3, 7, 8, 9, 10), FrameKind.LANES, 40, (5, 6, 3, 7, 8, 9, 10)),
    (LostFrame(6), FrameKind.LOST, 0, (6, 0, 0, 0, 0, 0, 0)),
    (FetchFrame(7, 900), FrameKind.FETCH, 0, (7, 0, 0, 0, 0, 900, 0)),
    (FactorsFrame(90, 3, 2, 4, 5, 18), FrameKind.FACTORS, 90, (3, 0, 0, 4, 2, 5, 18)),
    (PushedFactorsFrame(72, 3, 1, 2, 4, 5, 11), FrameKind.FACTORS, 72, (3, 2, 0, 4, 2, 5, 11)),
    (UpdateFrame(80, 11, 1, 20, 9, 7), FrameKind.UPDATE, 80, (9, 2, 0, 1, 20, 0, 11)),
    (AnswerFrame(80, 11, 1, 9, 4), FrameKind.ANSWER, 80, (9, 0, 0, 1, 0, 4, 11)),
    (FailedFrame(30, 11, 9), FrameKind.FAILED, 30, (9, 0, 0, 0, 0, 0, 11)),
]


@pytest.mark.parametrize(
    ("typed", "kind", "payload_bytes", "fields"), CASES, ids=[repr(case[0]) for case in CASES]
)
def test_fields_have_their_place_and_come_back(
    typed: Any, kind: FrameKind, payload_bytes: int, fields: tuple[int, ...]
) -> None:
    packed = typed.pack()
    assert packed == struct.pack("!HBBIQHHIIII", 0x5346, 2, kind, payload_bytes, *fields)
    frame = Frame.unpack(packed)
    assert frame == (kind, payload_bytes, fields)
    again: Any = typed.unpack(frame)
    assert again == typed
    assert again.__class__ is typed.__class__


def test_failure_of_all_keys_has_a_key_of_its_own() -> None:
    frame = Frame.unpack(FailedFrame(30, None, 0).pack())
    assert frame.fields == (0, 0, 0, 0, 0, 0, 0xFFFFFFFF)
    assert FailedFrame.unpack(frame).key is None
