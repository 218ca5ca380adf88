# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A log that is written as Parquet files by a thread, in bounded memory."""

from __future__ import annotations

import importlib
import json
import logging
import os
import struct
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from ..errors import LatencyLogError
from .schema import FORMAT, METADATA_KEY, NO_VALUE, Column, FileKind

FILE_ROWS: Final = 1 << 16
"""Rows after which a file is written. Twice as many are in memory at most: further ones are dropped
and counted."""
FLUSH_S: Final = 30.0
"""Rows are in a file after this time at the latest; those of a process that is killed are lost."""
_logger = logging.getLogger(__name__)


@final
class ParquetLog:
    """Each file is whole as soon as it has its name, so a crash leaves no damaged file.

    `stem` makes the names of the files unique in the directory; `about` is put into each file's
    metadata, with what `totals` have grown by since the file before. Raises LatencyLogError if
    pyarrow is missing, or the directory cannot be made.
    """

    def __init__(
        self,
        directory: Path,
        kind: FileKind,
        stem: str,
        about: dict[str, Any] | None = None,
        totals: Callable[[], dict[str, int]] = dict,
    ) -> None:
        """`totals` is called in the log's thread."""
        self.kind = kind
        self.dropped = 0
        """Rows for which there was no memory or no disk."""
        self._directory = directory
        self._stem = stem
        self._about = about or {}
        self._arrow, self._parquet = _load("pyarrow"), _load("pyarrow.parquet")
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LatencyLogError(
                f"cannot make the directory {directory} of the latency log: {error}; choose another"
            ) from error
        self._width = len(kind.columns)
        self._pack = struct.Struct(f"{self._width}q").pack
        self._file_bytes = 8 * self._width * FILE_ROWS
        self._num_files = 0
        self._totals = totals
        self._told: dict[str, int] = {}  # totals, in the files so far
        self._filling = bytearray()
        self._full: bytearray | None = None
        self._is_closed = False
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._thread = threading.Thread(
            target=self._run, name=f"switchfold-{kind.name}", daemon=True
        )
        self._thread.start()

    def append(self, row: Sequence[int]) -> None:
        """Add a row, from any thread; it never waits for the disk."""
        packed = self._pack(*row)
        with self._lock:
            self._filling += packed
            if len(self._filling) < self._file_bytes:
                return
            if self._full is not None:  # the disk is too slow
                self.dropped += FILE_ROWS
            else:
                self._full = self._filling
                self._changed.notify()
            self._filling = bytearray()

    def extend(self, rows: NDArray[np.int64]) -> None:
        """Write rows of shape (any number, columns) now, in the caller's thread."""
        for first in range(0, len(rows), FILE_ROWS):
            self._write(rows[first : first + FILE_ROWS])

    def close(self) -> None:
        """Write what is there, and end the thread; a second call does nothing."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join()
        if self.dropped:
            _logger.warning(
                "the latency log in %s lacks %d rows of %s: the disk is too slow, or full",
                self._directory,
                self.dropped,
                self.kind.name,
            )

    def _run(self) -> None:
        is_closed = False
        while not is_closed:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed or self._full is not None, FLUSH_S)
                is_closed, full = self._is_closed, self._full
                buffers = [buffer for buffer in (full, self._filling) if buffer]
                if full is not None and not is_closed:
                    buffers = [full]  # what is filling can wait
                else:
                    self._filling = bytearray()
            for buffer in buffers:
                self._write(np.frombuffer(buffer, np.int64).reshape(-1, self._width))
            if is_closed and any(self._growth(self._totals()).values()):
                self._write(np.empty((0, self._width), np.int64))
            with self._changed:
                if self._full is full:  # otherwise the next one is full already
                    self._full = None

    def _write(self, rows: NDArray[np.int64]) -> None:
        self._num_files += 1
        path = self._directory / f"{self.kind.name}-{self._stem}-{self._num_files:06d}.parquet"
        unfinished = path.with_suffix(".unfinished")
        totals = {**self._totals(), "dropped": self.dropped}
        about = {"format": FORMAT, "kind": self.kind.name, **self._about, **self._growth(totals)}
        try:
            table = self._arrow.Table.from_arrays(
                [self._array(column, rows[:, i]) for i, column in enumerate(self.kind.columns)],
                names=[column.name for column in self.kind.columns],
            ).replace_schema_metadata({METADATA_KEY: json.dumps(about).encode()})
            repeating = [column.name for column in self.kind.columns if column.repeats]
            others = [column.name for column in self.kind.columns if not column.repeats]
            self._parquet.write_table(
                table,
                unfinished,
                compression="zstd",
                use_dictionary=repeating,
                column_encoding=dict.fromkeys(others, "DELTA_BINARY_PACKED"),
                write_page_checksum=True,
            )
            os.replace(unfinished, path)
        except Exception as error:  # pyarrow has errors of its own; the next file may succeed
            self.dropped += len(rows)
            trace = None if isinstance(error, OSError) else error
            _logger.error("lost %d rows of the latency log: %s", len(rows), error, exc_info=trace)
        else:
            self._told = totals

    def _growth(self, totals: dict[str, int]) -> dict[str, int]:
        """Return what no file tells yet."""
        return {name: total - self._told.get(name, 0) for name, total in totals.items()}

    def _array(self, column: Column, values: NDArray[np.int64]) -> Any:
        is_null = values == NO_VALUE
        found = np.where(is_null, 0, values).astype(column.dtype)
        valid = np.packbits(~is_null, bitorder="little") if is_null.any() else None
        made = self._made(self._arrow.from_numpy_dtype(found.dtype), found.size, valid, found)
        if not column.names:
            return made
        text = [name.encode() for name in column.names]
        offsets = np.cumsum([0, *map(len, text)], dtype=np.int32)
        names = self._made(self._arrow.string(), len(text), None, offsets, b"".join(text))
        return self._arrow.DictionaryArray.from_arrays(made, names)

    def _made(self, kind: Any, size: int, *buffers: Any) -> Any:
        """Return an array of buffers; `pyarrow.array` would import pandas, for 0.5 s."""
        wrap = self._arrow.py_buffer
        return self._arrow.Array.from_buffers(
            kind, size, [None if each is None else wrap(each) for each in buffers]
        )


def _load(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise LatencyLogError(
            f"a latency log needs the Python module {error.name}, which is missing; run pip"
            " install '.[latency]' in a checkout, or start without the log"
        ) from error
