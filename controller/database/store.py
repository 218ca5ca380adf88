# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A SQLite file with a copy of it in memory, for a disk that may be full for a while.

Everything is read from the copy. A change goes to both. If the file cannot be written, the change
goes to neither, and the caller gets an error. A record, such as the end of a job, describes what
has happened already: it goes to the copy in any case, and the file is behind until it can be
written again. Then the whole copy is written to it first.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from ..errors import DatabaseError
from .schema import SCHEMA_VERSION, prepare

_LOGGER = logging.getLogger(__name__)
_PROBE_BYTES: Final = 32 << 10
"""Free room by which the file counts as writable: more than starting a job takes."""


class Statements:
    """The statements of one change: executed on the copy at once, and kept for the file."""

    def __init__(self, memory: sqlite3.Connection) -> None:
        self._memory = memory
        self._statements: list[tuple[str, Sequence[Any]]] = []

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Execute a statement."""
        self._statements.append((statement, parameters))
        return self._memory.execute(statement, parameters)

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Execute a statement for each row."""
        for row in rows:
            self.execute(statement, row)

    def repeat(self, connection: sqlite3.Connection) -> None:
        """Execute the same statements on the file."""
        for statement, parameters in self._statements:
            connection.execute(statement, parameters)


class Store:
    """The file, locked for this process, and its copy."""

    def __init__(self, path: Path) -> None:
        """Open or make the file; DatabaseError when it cannot be used."""
        self._path = path
        self._failure = ""
        self._is_behind = False
        try:
            self._file = sqlite3.connect(path, timeout=2.0, isolation_level=None)
        except sqlite3.Error as exc:
            raise _database_error(path, exc) from exc
        try:
            self._file.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._prepare()
            self._file.execute("PRAGMA foreign_keys = ON")
            self._memory = sqlite3.connect(":memory:", isolation_level=None)
            self._memory.row_factory = sqlite3.Row
            self._file.backup(self._memory)
            self._memory.execute("PRAGMA foreign_keys = ON")
        except sqlite3.Error as exc:
            self._file.close()
            raise _database_error(path, exc) from exc
        except DatabaseError:
            self._file.close()
            raise

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self._path

    @property
    def failure(self) -> str:
        """Why the file could not be written the last time; "" if it could."""
        return self._failure

    @property
    def is_behind(self) -> bool:
        """Whether records are missing in the file."""
        return self._is_behind

    def close(self) -> None:
        """Write the missing records if possible, and release the file."""
        if self._is_behind:
            self.check()
        self._file.close()
        self._memory.close()

    def select(self, query: str, parameters: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """Return rows of the copy."""
        return self._memory.execute(query, parameters).fetchall()

    @contextmanager
    def change(self, *, is_record: bool = False) -> Generator[Statements]:
        """Execute statements together; if that fails, raise DatabaseError and change nothing.

        With `is_record` the copy changes even if the file cannot be written.
        """
        if self._is_behind:
            self._try(self._catch_up, is_record=is_record)
        statements = Statements(self._memory)
        self._memory.execute("BEGIN")
        try:
            yield statements
            if not self._is_behind:
                self._try(lambda: self._write(statements), is_record=is_record)
        except BaseException as exc:
            self._memory.execute("ROLLBACK")
            if isinstance(exc, sqlite3.Error):
                raise _database_error(self._path, exc) from exc
            raise
        self._memory.execute("COMMIT")

    def check(self) -> None:
        """Test whether the file can be written, and write missing records; see `failure`."""
        try:
            if self._is_behind:
                self._catch_up()
            self._probe()
        except sqlite3.Error as exc:
            self._note(exc)

    def _try(self, write: Callable[[], None], *, is_record: bool) -> None:
        try:
            write()
        except sqlite3.Error as exc:
            error = self._note(exc)
            if not is_record:
                raise error from exc
            self._is_behind = True

    def _write(self, statements: Statements) -> None:
        with _transaction(self._file):
            statements.repeat(self._file)
        self._note(None)

    def _catch_up(self) -> None:
        """Write the whole copy to the file: all of it or nothing."""
        self._memory.backup(self._file)
        self._is_behind = False
        self._note(None)

    def _probe(self) -> None:
        """Take room in the file and give it back, for the next changes to use."""
        with _transaction(self._file):
            self._file.execute("DROP TABLE IF EXISTS probe")
            self._file.execute("CREATE TABLE probe (filler BLOB)")
            self._file.execute("INSERT INTO probe VALUES (zeroblob(?))", (_PROBE_BYTES,))
        with _transaction(self._file):
            self._file.execute("DROP TABLE probe")
        self._note(None)

    def _note(self, exc: sqlite3.Error | None) -> DatabaseError:
        """Keep whether the file can be written, and log each change of that once."""
        error = _database_error(self._path, exc) if exc is not None else DatabaseError("")
        if str(error) and not self._failure:
            _LOGGER.error("%s; running jobs continue, but no job can start or change", error)
        elif self._failure and not str(error):
            _LOGGER.warning("database %s can be written again", self._path)
        self._failure = str(error)
        return error

    def _prepare(self) -> None:
        with _transaction(self._file):
            version = prepare(self._file)
        if version > SCHEMA_VERSION:
            raise DatabaseError(
                f"database {self._path} has schema version {version}, this controller knows "
                f"{SCHEMA_VERSION}; use the controller that made it, or another --database"
            )


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Generator[None]:
    """Commit the statements within, or leave the database as it was before."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite may have rolled back by itself on a full disk
            connection.execute("ROLLBACK")
        raise


def _database_error(path: Path, exc: sqlite3.Error) -> DatabaseError:
    if "locked" in str(exc):
        return DatabaseError(
            f"database {path} is in use by another controller; stop that one or use --database"
        )
    return DatabaseError(f"database {path}: {exc}; check the path, its rights and the disk")
