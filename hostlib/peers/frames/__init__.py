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
from .hot import (
    DECISION_DTYPE,
    HOT_ROW_DTYPE,
    OPEN_ROUND_DTYPE,
    HotRowsFrame,
    HotRowsState,
    RoundsFrame,
    SampleFrame,
    TableRows,
)
from .parameters import (
    AnswerFrame,
    FailedFrame,
    UpdateFrame,
)
from .reduction import LostFrame, ValueFlag, ValuesFrame
from .request import FetchFrame
from .switch_groups import (
    Exponents,
    GroupBeginFrame,
    GroupJoinFrame,
    GroupLeaseFrame,
    GroupOverFrame,
    GroupProgressFrame,
)
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
    whole_version,
)
from .transfers import CommittedFrame, PieceFrame, TransferFrame

__all__ = [
    "DECISION_DTYPE",
    "FRAME_VERSION",
    "HEADER_BYTES",
    "HOT_ROW_DTYPE",
    "MAGIC",
    "MAX_BATCH_BYTES",
    "MAX_FACTOR_BYTES",
    "MAX_PAIR_BYTES",
    "NONCE_BYTES",
    "NO_TIMES",
    "OPEN_ROUND_DTYPE",
    "PIECE_BYTES",
    "AnswerFrame",
    "CommittedFrame",
    "DeniedFrame",
    "EnterFrame",
    "EnteredFrame",
    "Exponents",
    "FactorsFrame",
    "FailedFrame",
    "FetchFrame",
    "Frame",
    "FrameKind",
    "Greeting",
    "GroupBeginFrame",
    "GroupJoinFrame",
    "GroupLeaseFrame",
    "GroupOverFrame",
    "GroupProgressFrame",
    "HotRowsFrame",
    "HotRowsState",
    "LostFrame",
    "Packable",
    "PieceFrame",
    "Purpose",
    "PushedFactorsFrame",
    "ReceiptFrame",
    "RoundsFrame",
    "RowsFrame",
    "SampleFrame",
    "ServerTimes",
    "TableFrame",
    "TableRows",
    "TransferFrame",
    "UpdateFrame",
    "ValueFlag",
    "ValuesFrame",
    "pack_times",
    "server_times",
    "unpack_times",
    "whole_version",
]
