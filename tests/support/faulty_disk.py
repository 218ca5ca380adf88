# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""SQLite files on a disk that becomes full at a chosen moment."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

_WRITES = ("INSERT", "UPDATE", "DELETE", "CREATE", "DROP")


class FaultyDisk:
    """Counts transactions of files; those after the first `good` ones fail until `mend`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, at_commit: bool = False) -> None:
        self.good: int | None = None
        self.num_transactions = 0
        self.num_failed = 0
        self._at_commit = at_commit
        connect = sqlite3.connect
        disk = self

        class File(sqlite3.Connection):
            def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
                disk.look(sql)
                return super().execute(sql, parameters)

            def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
                disk.look(sql)
                return super().executemany(sql, parameters)

        class Memory(sqlite3.Connection):
            def backup(self, target: sqlite3.Connection, **options: Any) -> None:
                disk.num_transactions += 1
                disk.look("INSERT of everything")
                disk.look("COMMIT")
                super().backup(target, **options)

        def connect_faulty(path: str | Path, **options: Any) -> sqlite3.Connection:
            factory = Memory if path == ":memory:" else File
            return connect(path, factory=factory, **options)

        monkeypatch.setattr(sqlite3, "connect", connect_faulty)

    @property
    def is_full(self) -> bool:
        return self.good is not None and self.num_transactions > self.good

    def fill(self) -> None:
        self.good = self.num_transactions

    def mend(self) -> None:
        self.good = None

    def look(self, sql: str) -> None:
        if sql.startswith("BEGIN"):
            self.num_transactions += 1
        failing = sql == "COMMIT" if self._at_commit else sql.startswith(_WRITES)
        if failing and self.is_full:
            self.num_failed += 1
            raise sqlite3.OperationalError("database or disk is full")
