# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames between workers: one header for all kinds, and a class per kind that names its fields."""

from .factors import FactorsFrame, PushedFactorsFrame
from .greeting import Greeting, Purpose
from .header import (
    FRAME_VERSION,
    HEADER_BYTES,
    MAGIC,
    MAX_BATCH_BYTES,
    MAX_FACTOR_BYTES,
    MAX_PAIR_BYTES,
    NONCE_BYTES,
    PIECE_BYTES,
    Frame,
    FrameKind,
    Packable,
)
from .parameters import (
    AnswerFrame,
    FailedFrame,
    UpdateFrame,
)
from .reduction import LostFrame, ValueFlag, ValuesFrame
from .request import FetchFrame
from .tables import (
    NO_TIMES,
    DeniedFrame,
    EnteredFrame,
    EnterFrame,
    ReceiptFrame,
    RowsFrame,
    ServerTimes,
    TableFrame,
    pack_times,
    server_times,
    unpack_times,
)

__all__ = [
    "FRAME_VERSION",
    "HEADER_BYTES",
    "MAGIC",
    "MAX_BATCH_BYTES",
    "MAX_FACTOR_BYTES",
    "MAX_PAIR_BYTES",
    "NONCE_BYTES",
    "NO_TIMES",
    "PIECE_BYTES",
    "AnswerFrame",
    "DeniedFrame",
    "EnterFrame",
    "EnteredFrame",
    "FactorsFrame",
    "FailedFrame",
    "FetchFrame",
    "Frame",
    "FrameKind",
    "Greeting",
    "LostFrame",
    "Packable",
    "Purpose",
    "PushedFactorsFrame",
    "ReceiptFrame",
    "RowsFrame",
    "ServerTimes",
    "TableFrame",
    "UpdateFrame",
    "ValueFlag",
    "ValuesFrame",
    "pack_times",
    "server_times",
    "unpack_times",
]
