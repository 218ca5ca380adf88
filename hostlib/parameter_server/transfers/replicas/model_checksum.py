# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a server and its replica have the same model, and what could still change it."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from typing import Final

from ....control.stations.replica_terms import StateReported
from ....control.stations.station import MOST_NORM
from ...rows import Sgd
from ...rows.chunks import StoredRows, add_checksums
from ...tables.defined_table import DefinedTable
from ...tables.service import TableService
from ...tables.state import TableState

_FACTOR: Final = 0x9E3779B97F4A7C15
_MODULUS: Final = 1 << 64


def model_checksum(state: TableState) -> int:
    """Return a 64-bit sum over all tables: definitions, keys, values and the optimisers' state.

    Cost: O(size of the tables).
    """
    total = 0
    for number, table in state.tables.items():
        rows_sum = number
        for rows in _chunks(table):
            rows_sum = add_checksums(rows_sum, rows.model_checksum)
        numbers = table.rows.optimiser.numbers
        rule = zlib.crc32(table.definition.pack() + struct.pack(f"={len(numbers)}d", *numbers))
        mixed = ((rows_sum ^ rule) * _FACTOR) % _MODULUS
        total = add_checksums(total, mixed ^ (mixed >> 31))
    return total


def momentum_step(state: TableState) -> float:
    """Return the most by which the momentum of all tables' optimisers can move the model at once.

    That is the norm of learning rate times momentum; 0 if no optimiser has one. At most MOST_NORM,
    also if the model has diverged. Cost: O(size of the tables with momentum).
    """
    squares = 0.0
    for table in state.tables.values():
        optimiser = table.rows.optimiser
        if isinstance(optimiser, Sgd) and optimiser.momentum:
            width = table.definition.width
            sums = [rows.sum_of_squares(width, 2 * width) for rows in _chunks(table) if rows.count]
            squares += optimiser.learning_rate**2 * sum(sums)
    step = math.sqrt(squares) if squares >= 0 else MOST_NORM
    return min(step, MOST_NORM)


def stored_state(tables: TableService, next_sequence: int) -> StateReported:
    """Return what a server or a replica reports; nothing may be on its path to the log."""
    state, log = tables.state, tables.log
    return StateReported(
        version=state.num_commits,
        checksum=model_checksum(state),
        next_sequence=next_sequence,
        lsn=0 if log is None else tables.num_applied,
        log=b"" if log is None else log.identity.bytes,
        step=momentum_step(state),
    )


def unstarted_tables(state: TableState) -> frozenset[int]:
    """Return the numbers of tables of which first values could still change rows."""
    return frozenset(
        number
        for number, table in state.tables.items()
        if not all(rows.are_started for rows in _chunks(table) if rows.count)
    )


def _chunks(table: DefinedTable) -> Iterator[StoredRows]:
    cursor: int | None = 0
    while cursor is not None:
        data, cursor = table.rows.export(cursor, table.rows.rows_at_once)
        yield StoredRows(data)
