# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A SQLite file under an exclusive lock, so that two controllers cannot share it by mistake."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ..errors import DatabaseError
from .durable import Durable
from .schema import Execute

_PROBE_BYTES: Final = 32 << 10
"""Free room by which the file counts as writable: more than starting a job takes."""


class SqliteFile(Durable):
    """The file, locked for this process."""

    def __init__(self, path: Path) -> None:
        """Open or make the file; DatabaseError when it cannot be used."""
        self.name = str(path.absolute())
        with self._typed_errors():
            self._file = sqlite3.connect(path, timeout=2.0, isolation_level=None)
        try:
            with self._typed_errors():
                self._file.execute("PRAGMA locking_mode = EXCLUSIVE")
                with self.transaction():
                    pass  # takes the lock
        except DatabaseError:
            self._file.close()
            raise

    @contextmanager
    def transaction(self) -> Generator[Execute]:
        """Commit what is executed within, or leave the file as it was before."""
        with self._typed_errors():
            self._file.execute("BEGIN IMMEDIATE")
            try:
                yield lambda statement, parameters: self._file.execute(
                    statement, parameters
                ).fetchall()
                self._file.execute("COMMIT")
            except BaseException:
                if self._file.in_transaction:  # a full disk may have made SQLite roll back
                    self._file.execute("ROLLBACK")
                raise

    def version(self, execute: Execute) -> int:
        """Return the version of the schema, 0: there are no tables."""
        return int(execute("PRAGMA user_version", ())[0][0])

    def set_version(self, execute: Execute, version: int) -> None:
        """Store the version of the schema."""
        execute(f"PRAGMA user_version = {version}", ())

    def load(self, memory: sqlite3.Connection) -> None:
        """Copy all tables into an empty database in memory."""
        with self._typed_errors():
            self._file.execute("PRAGMA foreign_keys = ON")
            self._file.backup(memory)

    def replace(self, memory: sqlite3.Connection) -> None:
        """Take all tables from the copy in memory."""
        with self._typed_errors():
            memory.backup(self._file)

    def probe(self) -> None:
        """Take room in the file and give it back, for the next changes to use."""
        with self.transaction() as execute:
            execute("DROP TABLE IF EXISTS probe", ())
            execute("CREATE TABLE probe (filler BLOB)", ())
            execute("INSERT INTO probe VALUES (zeroblob(?))", (_PROBE_BYTES,))
        with self.transaction() as execute:
            execute("DROP TABLE probe", ())

    def close(self) -> None:
        """Release the lock and the file."""
        self._file.close()

    @contextmanager
    def _typed_errors(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as exc:
            if "locked" in str(exc):
                raise DatabaseError(
                    f"database {self.name} is in use by another controller; stop that one or use "
                    "--database"
                ) from exc
            raise DatabaseError(
                f"database {self.name}: {exc}; check the path, its rights and the disk"
            ) from exc
