# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the files of a run."""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....hostlib.latency.schema import (
    ARRIVALS,
    CALLS,
    FORMAT,
    METADATA_KEY,
    RECORDED_CALLS,
    REQUESTS,
    SAMPLES,
    UPDATES,
    Column,
    FileKind,
)
from ...errors import (
    LatencyRunDamagedError,
    LatencyRunEmptyError,
    LatencyRunFormatError,
    LatencyRunMissingError,
    ToolError,
)

Columns = dict[str, NDArray[Any]]
"""By name. Integers; floats with NaN where there are nulls; names as numbers, see `Column`."""
_FORMATS: Final = (2, FORMAT)
"""That can be read. Of format 2, all calls are recorded."""


class CallCounts(NamedTuple):
    """Pushes and pulls."""

    made: int
    recorded: int
    """Those whose requests have rows."""

    @property
    def share(self) -> float:
        """How many of them are recorded; 1 without any."""
        return self.recorded / self.made if self.made else 1.0


@dataclass(frozen=True)
class LatencyRun:
    """What the workers and servers of a run have logged."""

    name: str
    requests: Columns
    arrivals: Columns
    samples: Columns
    updates: Columns
    dropped: int
    """Rows that a disk was too slow for."""
    calls_by_worker: dict[int, CallCounts] = field(default_factory=dict[int, CallCounts])
    """Of workers whose files say it; the others have recorded all."""

    @property
    def calls(self) -> CallCounts:
        """Those of all workers."""
        counts = self.calls_by_worker.values()
        return CallCounts(sum(each.made for each in counts), sum(each.recorded for each in counts))

    @property
    def is_sample(self) -> bool:
        """Whether some calls are not recorded."""
        return self.calls.recorded < self.calls.made

    @property
    def answered(self) -> Columns:
        """The requests with all times."""
        is_measured = np.isfinite(self.requests["n_tx_us"]) & np.isfinite(
            self.requests["w_proc_us"]
        )
        return {name: values[is_measured] for name, values in self.requests.items()}

    @property
    def num_workers(self) -> int:
        """Workers that sent requests."""
        return np.unique(self.requests["worker"]).size

    @property
    def num_servers(self) -> int:
        """Servers that were asked."""
        return np.unique(self.requests["server"]).size


def load_run(directory: Path) -> LatencyRun:
    """Read all files below a directory. Raises LatencyRunError and ToolError."""
    if not directory.is_dir():
        raise LatencyRunMissingError(
            f"there is no directory {directory}; give the one of `latency_log`, into which all"
            " files of the run's workers and servers were copied"
        )
    reader = _Reader()
    requests, arrivals, samples, updates = (
        reader.read(directory, kind) for kind in (REQUESTS, ARRIVALS, SAMPLES, UPDATES)
    )
    if not requests["worker"].size:
        raise LatencyRunEmptyError(
            f"no requests in {directory}: workers write them with ClientOptions(latency_log=...),"
            " every 30 s and when their client is closed"
        )
    columns = requests, arrivals, samples, updates
    return LatencyRun(directory.name, *columns, reader.dropped, reader.calls)


class _Reader:
    """Reads files, and counts the rows and calls that they lack."""

    def __init__(self) -> None:
        self.dropped = 0
        self.calls: dict[int, CallCounts] = {}
        try:
            self._parquet: Any = importlib.import_module("pyarrow.parquet")
            self._arrow: Any = importlib.import_module("pyarrow")
            self._compute: Any = importlib.import_module("pyarrow.compute")
        except ModuleNotFoundError as error:
            raise ToolError(
                f"reading a latency log needs the Python module {error.name}, which is missing; run"
                " pip install '.[latency]' in a checkout"
            ) from error

    def read(self, directory: Path, kind: FileKind) -> Columns:
        """Return the columns of all files of a kind, in the order of the files' names."""
        parts = [
            self._read_file(path, kind)
            for path in sorted(directory.rglob(f"{kind.name}-*.parquet"))
        ]
        return {
            column.name: np.concatenate([part[column.name] for part in parts])
            if parts
            else np.empty(0, np.int64)
            for column in kind.columns
        }

    def _read_file(self, path: Path, kind: FileKind) -> Columns:
        try:
            table = self._parquet.read_table(path, page_checksum_verification=True)
            metadata: dict[bytes, bytes] = table.schema.metadata or {}
            names = table.column_names
        except (self._arrow.ArrowException, OSError, ValueError) as error:
            raise LatencyRunDamagedError(
                f"{path} cannot be read: {error}. Copy it once more, or delete it to do without"
                " its rows"
            ) from error
        about = _about(metadata.get(METADATA_KEY, b"{}"))
        is_known = about.get("format") in _FORMATS and about.get("kind") == kind.name
        if not is_known or any(one.name not in names for one in kind.columns):
            raise _is_other(path, about)
        try:
            self.dropped += int(about.get("dropped", 0))
            if CALLS in about:
                self._count(int(about["worker"]), int(about[CALLS]), int(about[RECORDED_CALLS]))
            return {one.name: self._values(table.column(one.name), one) for one in kind.columns}
        except (self._arrow.ArrowException, ValueError, TypeError, KeyError) as error:
            raise _is_other(path, about) from error

    def _count(self, worker: int, made: int, recorded: int) -> None:
        before = self.calls.get(worker, CallCounts(0, 0))
        self.calls[worker] = CallCounts(before.made + made, before.recorded + recorded)

    def _values(self, column: Any, kind: Column) -> NDArray[Any]:
        if kind.names:
            names = self._arrow.array(kind.names, self._arrow.string())
            column = self._compute.index_in(column.cast("string"), value_set=names)
            if column.null_count:
                raise ValueError(f"column {kind.name} has other names than {kind.names}")
        values = column.cast("float64" if column.null_count else "int64")
        return values.to_numpy()


def _about(text: bytes) -> dict[str, Any]:
    """Return what a file says of itself; nothing if it is no file of a latency log."""
    try:
        about = json.loads(text)
    except ValueError:
        return {}
    return about if isinstance(about, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _is_other(path: Path, about: dict[str, Any]) -> LatencyRunFormatError:
    if not about:
        return LatencyRunFormatError(
            f"{path} is no file of a latency log, or was written by another program; move it out of"
            " the run's directory"
        )
    return LatencyRunFormatError(
        f"{path} is of format {about.get('format')!r} and kind {about.get('kind')!r}; this release"
        f" reads formats {' and '.join(map(str, _FORMATS))}, with all of their columns: use the"
        " release that wrote it"
    )
