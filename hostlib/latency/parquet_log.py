# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A log that is written as Parquet files by a thread, in bounded memory."""

from __future__ import annotations

import importlib
import json
import logging
import os
import threading
from array import array
from collections.abc import Sequence
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
    metadata. Raises LatencyLogError if pyarrow is missing, or the directory cannot be made.
    """

    def __init__(
        self, directory: Path, kind: FileKind, stem: str, about: dict[str, Any] | None = None
    ) -> None:
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
        self._num_files = 0
        self._dropped_before = 0
        self._filling: array[int] = array("q")
        self._full: array[int] | None = None
        self._is_closed = False
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._thread = threading.Thread(
            target=self._run, name=f"switchfold-{kind.name}", daemon=True
        )
        self._thread.start()

    def append(self, row: Sequence[int]) -> None:
        """Add a row, from any thread; it never waits for the disk."""
        with self._lock:
            self._filling.extend(row)
            if len(self._filling) < FILE_ROWS * self._width:
                return
            if self._full is not None:  # the disk is too slow
                self.dropped += FILE_ROWS
            else:
                self._full = self._filling
                self._changed.notify()
            self._filling = array("q")

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
                    self._filling = array("q")
            for buffer in buffers:
                self._write(np.frombuffer(buffer, np.int64).reshape(-1, self._width))
            with self._changed:
                if self._full is full:  # otherwise the next one is full already
                    self._full = None

    def _write(self, rows: NDArray[np.int64]) -> None:
        self._num_files += 1
        path = self._directory / f"{self.kind.name}-{self._stem}-{self._num_files:06d}.parquet"
        unfinished = path.with_suffix(".unfinished")
        about = {"format": FORMAT, "kind": self.kind.name, **self._about}
        about["dropped"] = self.dropped - self._dropped_before
        try:
            table = self._arrow.Table.from_arrays(
                [self._array(column, rows[:, i]) for i, column in enumerate(self.kind.columns)],
                names=[column.name for column in self.kind.columns],
            ).replace_schema_metadata({METADATA_KEY: json.dumps(about).encode()})
            repeating = [column.name for column in self.kind.columns if column.repeats]
            self._parquet.write_table(
                table,
                unfinished,
                compression="zstd",
                use_dictionary=repeating,
                write_page_checksum=True,
            )
            os.replace(unfinished, path)
        except OSError as error:
            self.dropped += len(rows)
            _logger.error("lost %d rows of the latency log: %s", len(rows), error)
        else:
            self._dropped_before += about["dropped"]

    def _array(self, column: Column, values: NDArray[np.int64]) -> Any:
        is_null = values == NO_VALUE
        found = np.where(is_null, 0, values).astype(column.dtype)
        made = self._arrow.array(found, mask=is_null if is_null.any() else None)
        if column.names:
            return self._arrow.DictionaryArray.from_arrays(made, list(column.names))
        return made


def _load(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise LatencyLogError(
            f"a latency log needs the Python module {error.name}, which is missing; run pip"
            " install '.[latency]' in a checkout, or start without the log"
        ) from error
