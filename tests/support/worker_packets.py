# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Packets about hot rows as workers send them, field by field: the product's are made in C."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from switchfold.hostlib.hot_rows.row_packets import Lanes, RowNumbers, RowPackets
from switchfold.hostlib.slots.wire import Operation, view_datagrams

Datagrams = NDArray[np.uint8]


def push_packets(
    packets: RowPackets, rows: RowNumbers, epochs: RowNumbers, rounds: RowNumbers, lanes: Lanes
) -> Datagrams:
    """Return contributions."""
    raw = packets.flush(rows, epochs, rounds, level=1)
    made = view_datagrams(raw, packets.values_per_packet)
    made["header"]["operation"] = Operation.AGGREGATE_ADD
    made["header"]["expected"] = packets.num_workers
    made["values"] = lanes
    return raw


def read_packets(
    packets: RowPackets, rows: RowNumbers, epochs: RowNumbers, versions: RowNumbers
) -> Datagrams:
    """Return questions for values of these versions or newer ones."""
    raw = packets.flush(rows, epochs, versions, level=1)
    view_datagrams(raw, packets.values_per_packet)["header"]["operation"] = Operation.READ
    return raw
