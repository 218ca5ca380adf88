# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A sparse table: rows by key, made when they are first touched; the store itself is in C."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterator
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ...errors import (
    ConfigurationError,
    LogOrderError,
    NonFiniteGradientError,
    RowFormatError,
    RowMemoryError,
    RowShapeError,
    RowTableFullError,
)
from ...native.library import address, library
from ...native.row_library import (
    MOST_POSITIONS,
    MOST_ROWS,
    MOST_WIDTH,
    OPTIMISER_NUMBERS,
    RowPushStruct,
    RowStatus,
    RowTableOptionsStruct,
)
from .chunks import StoredRows
from .initialisers import Initialiser, Zeros
from .optimisers import GradientSum, Optimiser, Values, check_array

Keys = NDArray[np.int64]
Versions = NDArray[np.uint64]
"""Of the tables of each server, in the order of the servers; 0: unknown."""
CHUNK_ROWS: Final = 4096
"""Rows of a chunk unless the caller says otherwise."""
_CHUNK_BYTES: Final = 1 << 24
_LSN_END: Final = 1 << 64
_NO_VERSIONS: Final = np.empty(0, np.uint64)


class PulledRows(NamedTuple):
    """What a table holds for keys."""

    values: Values
    """Shape (number of keys, width)."""
    updates: NDArray[np.uint32]
    """By key, the pushes that changed its row: the row's version. They stop at 2^32 - 1."""
    versions: Versions = _NO_VERSIONS
    """Of rows that a client has pulled: what the tables of each server had as these were read.

    0 of a server that has none of the keys, or if a switch answered for some of its keys.
    """
    commits: Versions = _NO_VERSIONS
    """Likewise: how many scheduled updates the tables of each server contained then."""


class RowChunk(NamedTuple):
    """Some rows of a table as bytes."""

    data: NDArray[np.uint8]
    next_cursor: int | None
    """Where the next chunk begins; None: there are no more rows."""


@final
class RowTable:
    """Rows of `width` float32 values by key: any int64.

    A row is made when a pull or a push first touches its key. Its initial values depend on seed,
    key and position alone. A row counts its updates, and has the log sequence number (lsn) of the
    last push that was applied to it.

    Arrays of keys are one-dimensional and contiguous. Calls may come from any thread and do not
    hold the interpreter lock; each sees all of another call's changes or none, except that an
    export sees each row by itself.
    """

    def __init__(
        self,
        *,
        width: int,
        max_rows: int,
        optimiser: Optimiser | None = None,
        initialiser: Initialiser | None = None,
        seed: int = 0,
    ) -> None:
        """Make an empty table, whose pushes are summed, and whose values start at 0, by default.

        Raises ConfigurationError and RowMemoryError.
        """
        if not (1 <= width <= MOST_WIDTH and 1 <= max_rows <= MOST_ROWS):
            raise ConfigurationError(
                f"a table of at most {max_rows} rows of {width} values; give 1 to {MOST_ROWS} rows"
                f" and 1 to {MOST_WIDTH} values"
            )
        if not 0 <= seed < 1 << 64:
            raise ConfigurationError(f"seed {seed}; give one from 0 to 2^64 - 1")
        self.width: Final = width
        self.max_rows: Final = max_rows
        self._optimiser = optimiser or GradientSum()
        self.initialiser: Final = initialiser or Zeros()
        self.seed: Final = seed
        self._handle: int | None = library.row_table_new(
            self.optimiser.handle,
            RowTableOptionsStruct(
                width=width,
                max_rows=max_rows,
                numbers=(ctypes.c_double * OPTIMISER_NUMBERS)(*self.optimiser.numbers),
                initial=self.initialiser.describe(seed),
            ),
        )
        if self._handle is None:
            raise RowMemoryError("no memory for a table; lower max_rows")
        weakref.finalize(self, library.row_table_free, self._handle)

    @property
    def optimiser(self) -> Optimiser:
        """Through which pushes go."""
        return self._optimiser

    @optimiser.setter
    def optimiser(self, optimiser: Optimiser) -> None:
        """Let later pushes go through one of the same kind. Raises ConfigurationError."""
        if optimiser.name != self._optimiser.name:
            raise ConfigurationError(
                f"{optimiser!r} in place of {self._optimiser!r}; give one that keeps the same state"
            )
        numbers = (ctypes.c_double * OPTIMISER_NUMBERS)(*optimiser.numbers)
        library.row_table_set_numbers(self._handle, numbers)
        self._optimiser = optimiser

    def __len__(self) -> int:
        """Return the number of rows that have been made."""
        return library.row_table_rows(self._handle)

    @property
    def lsn(self) -> int:
        """The highest lsn of a push or an imported row; 0: none."""
        return library.row_table_lsn(self._handle)

    def pull(self, keys: Keys) -> PulledRows:
        """Return the rows of keys, which may repeat.

        Raises RowTableFullError, and then makes no row, RowMemoryError and RowShapeError.
        """
        _check_keys(keys)
        values = np.empty((keys.size, self.width), np.float32)
        updates = np.empty(keys.size, np.uint32)
        position = ctypes.c_uint32()
        places = address(keys), keys.size, address(values), address(updates)
        status = library.row_table_pull(self._handle, *places, ctypes.byref(position))
        self._check(status, keys, position.value)
        return PulledRows(values, updates)

    def push(self, keys: Keys, gradients: Values, *, lsn: int = 0) -> None:
        """Apply gradients of shape (number of keys, width); on any error, no value changes.

        Gradients of a key that repeats are added in their order, then applied once. `lsn` is that
        of the push in the log, and has to be above the table's; 0 is a push that is not logged.

        Raises NonFiniteGradientError, RowTableFullError, LogOrderError, RowMemoryError and
        RowShapeError.
        """
        self._push(keys, gradients, RowPushStruct(lsn=_checked(lsn, 0)))

    def start(self, keys: Keys, values: Values, *, lsn: int = 0, is_replay: bool = False) -> None:
        """Give rows their first values, of shape (number of keys, width).

        A row that has been started or pushed to before keeps what it has. Keys must not repeat.
        Raises as `push` does.
        """
        if np.unique(keys).size != keys.size:
            raise RowShapeError("keys repeat; give each row its first values once")
        self._push(
            keys,
            values,
            RowPushStruct(lsn=_checked(lsn, int(is_replay)), is_replay=is_replay, is_start=True),
        )

    def prepare(self, keys: Keys, gradients: Values) -> None:
        """Raise what a push of this would raise, and make its rows, but apply nothing.

        For pushes that are logged before they are applied: afterwards, the push can fail without
        memory or out of the log's order alone.
        """
        self._push(keys, gradients, RowPushStruct(is_check=True))

    def replay(self, keys: Keys, gradients: Values, *, lsn: int) -> None:
        """Apply a push from the log to those rows whose own lsn is lower.

        Rows that were exported while pushes went on, and then all pushes since the lsn that the
        table had when the export began, make the same table. Raises as `push` does.
        """
        self._push(keys, gradients, RowPushStruct(lsn=_checked(lsn, 1), is_replay=True))

    def export(self, cursor: int = 0, max_rows: int = CHUNK_ROWS) -> RowChunk:
        """Return up to `max_rows` rows as bytes, beginning at a cursor; 0 is the first row.

        Other threads may pull and push meanwhile: they wait for about a MiB to be copied at a time.
        Rows keep their places, so that all chunks together have every row that was there when the
        first one was made.
        """
        if not (0 <= cursor <= MOST_ROWS and 1 <= max_rows <= MOST_POSITIONS):
            raise ConfigurationError(
                f"{max_rows} rows from cursor {cursor}; take the cursor of the chunk before, and 1"
                f" to {MOST_POSITIONS} rows"
            )
        most = min(max_rows, max(len(self) - cursor, 0))
        data = np.empty(library.row_chunk_bytes(self._handle, most), np.uint8)
        found: int = library.row_table_export(self._handle, cursor, most, address(data))
        end = cursor + found
        return RowChunk(data, end if end < len(self) else None)

    @property
    def rows_at_once(self) -> int:
        """How many rows are best in a chunk: CHUNK_ROWS, or fewer if these are more than 16 MiB."""
        row_bytes = library.row_chunk_bytes(self._handle, 1) - library.row_chunk_bytes(
            self._handle, 0
        )
        return max(1, min(CHUNK_ROWS, _CHUNK_BYTES // row_bytes))

    def updates(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint32]]]:
        """Yield keys and their numbers of updates, for all rows; as `export` does."""
        cursor: int | None = 0
        while cursor is not None:
            data, cursor = self.export(cursor, self.rows_at_once)
            rows = StoredRows(data)
            if rows.count:
                yield rows.keys, rows.updates

    def import_rows(self, data: NDArray[np.uint8] | bytes | memoryview) -> None:
        """Take the rows of a chunk, in place of rows with the same keys.

        The chunk is to come from a table of the same width and kind of optimiser, on a machine of
        the same byte order. On any error, no row changes. Raises RowFormatError, RowTableFullError
        and RowMemoryError.
        """
        chunk = np.frombuffer(data, np.uint8)
        position = ctypes.c_uint32()
        places = address(chunk), chunk.size, ctypes.byref(position)
        self._check(library.row_table_import(self._handle, *places))

    def _push(self, keys: Keys, gradients: Values, push: RowPushStruct) -> None:
        _check_keys(keys)
        check_array("gradients", gradients, np.float32, (keys.size, self.width))
        position = ctypes.c_uint32()
        places = address(keys), address(gradients), keys.size, ctypes.byref(position)
        status = library.row_table_push(self._handle, ctypes.byref(push), *places)
        if status == RowStatus.LSN:
            raise LogOrderError(
                f"push {push.lsn} of the log comes after push {self.lsn}; push in the order of the"
                " log, each record once, or replay"
            )
        self._check(status, keys, position.value)

    def _check(self, status: int, keys: Keys | None = None, position: int = 0) -> None:
        """Raise what a status says; `position` is that of a key."""
        place = "" if keys is None or not keys.size else f"key {keys[position]} at {position}"
        match status:
            case RowStatus.DONE:
                return
            case RowStatus.NO_MEMORY:
                raise RowMemoryError(
                    f"no memory for a batch on a table of {len(self)} rows; no value has changed."
                    " Give the process more memory, or the table more shards"
                )
            case RowStatus.FULL:
                raise RowTableFullError(
                    f"no room for {place or 'the rows of a chunk'}: the table has {len(self)} of"
                    f" at most {self.max_rows} rows; raise max_rows, or use more shards"
                )
            case RowStatus.FORMAT:
                raise RowFormatError(
                    f"not rows of width {self.width} with the state of {self.optimiser.name};"
                    " import whole chunks that such a table exported on a machine of this byte"
                    " order"
                )
            case _:
                sums = status == RowStatus.SUM_NOT_FINITE
                what = "a sum beyond float32" if sums else "NaN or infinity"
                raise NonFiniteGradientError(
                    f"gradients of {place}: {what}; nothing was applied. Clip or scale the"
                    " gradients before they are pushed",
                    position,
                    0 if keys is None else int(keys[position]),
                )


def _checked(lsn: int, least: int) -> int:
    if not least <= lsn < _LSN_END:
        raise ConfigurationError(f"log sequence number {lsn}; give one from {least} to 2^64 - 1")
    return lsn


def _check_keys(keys: Keys) -> None:
    check_array("keys", keys, np.int64, (keys.size,))
    if keys.size > MOST_POSITIONS:
        raise ConfigurationError(f"{keys.size} keys in one call; give at most {MOST_POSITIONS}")
