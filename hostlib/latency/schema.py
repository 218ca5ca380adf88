# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The files of a latency log: their columns, in order. docs/latency.md says what they mean."""

from __future__ import annotations

from typing import Final, NamedTuple

FORMAT: Final = 3
"""Version of the files; it is in their metadata, see METADATA_KEY."""
METADATA_KEY: Final = b"switchfold.latency"
"""Key of the JSON object with `format`, `kind`, `dropped` and what describes the writer."""
CALLS: Final = "calls"
"""In the object, of REQUESTS: pushes and pulls since the file before."""
RECORDED_CALLS: Final = "recorded_calls"
"""In the object, of REQUESTS: those of them whose requests have rows."""
NO_VALUE: Final = -(1 << 63)
"""A null, in rows that are not written yet."""


class Column(NamedTuple):
    """A column of integers, or of names."""

    name: str
    dtype: str
    """Of numpy."""
    names: tuple[str, ...] = ()
    """What the integers 0, 1 ... stand for; the file has these texts."""

    @property
    def repeats(self) -> bool:
        """Whether there are few different values."""
        return bool(self.names) or self.name in ("worker", "server", "table")


class FileKind(NamedTuple):
    """A kind of files."""

    name: str
    """File names begin with it."""
    columns: tuple[Column, ...]


OPERATIONS: Final = ("push", "pull")
PATHS: Final = ("server", "switch")
"""Who is asked: the server by TCP, or the switch about hot keys."""
OUTCOMES: Final = ("answered", "denied", "lost", "unmeasured")
"""`lost`: the session gave the request up. `unmeasured`: answered over another
connection than it was sent, or by the server instead of the switch."""

REQUESTS: Final = FileKind(
    "requests",
    (
        Column("worker", "uint32"),
        Column("server", "uint32"),
        Column("iteration", "int64"),
        Column("call", "int64"),
        Column("number", "int64"),
        Column("operation", "int8", OPERATIONS),
        Column("path", "int8", PATHS),
        Column("outcome", "int8", OUTCOMES),
        Column("sent_us", "int64"),
        Column("request_bytes", "int64"),
        Column("response_bytes", "int64"),
        Column("num_keys", "int64"),
        Column("rtt_us", "int64"),
        Column("n_tx_us", "int64"),
        Column("ps_queue_us", "int64"),
        Column("ps_proc_us", "int64"),
        Column("ps_wait_us", "int64"),
        Column("w_queue_us", "int64"),
        Column("w_proc_us", "int64"),
        Column("switch_wait_us", "int64"),
    ),
)
ARRIVALS: Final = FileKind(
    "arrivals",
    (
        Column("server", "uint32"),
        Column("worker", "uint32"),
        Column("connection", "int64"),
        Column("arrived_us", "int64"),
        Column("operation", "int8", OPERATIONS),
    ),
)
SAMPLES: Final = FileKind(
    "samples",
    (
        Column("server", "uint32"),
        Column("at_us", "int64"),
        Column("processor_us", "int64"),
        Column("resident_bytes", "int64"),
    ),
)
UPDATES: Final = FileKind(
    "updates",
    (
        Column("server", "uint32"),
        Column("table", "int64"),
        Column("key", "int64"),
        Column("updates", "int64"),
    ),
)
