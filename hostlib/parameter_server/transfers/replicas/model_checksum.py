# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a server and its replica have the same model, and what first values could change."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final

from ...rows.chunks import StoredRows, add_checksums
from ...tables.defined_table import DefinedTable
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
