# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A durable database with a copy of it in memory, for a disk or a server that fails for a while.

Everything is read from the copy. A change goes to both. If the database cannot be written, the
change goes to neither, and the caller gets an error. A record, such as the end of a job, describes
what has happened already: it goes to the copy in any case, and the database is behind until it can
be written again. Then the whole copy is written to it first.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any

from ..errors import DatabaseError, UncertainWriteError
from .durable import Durable, SqlStatement

_LOGGER = logging.getLogger(__name__)


class Statements:
    """The statements of one change: executed on the copy at once, and kept for the database."""

    def __init__(self, memory: sqlite3.Connection) -> None:
        self._memory = memory
        self.writes: list[SqlStatement] = []
        """What changes something, in its order."""

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Execute a statement."""
        if not statement.startswith("SELECT"):
            self.writes.append((statement, parameters))
        return self._memory.execute(statement, parameters)

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Execute a statement for each row."""
        for row in rows:
            self.execute(statement, row)


class Store:
    """The database that lasts, and its copy."""

    def __init__(self, durable: Durable) -> None:
        """Make or migrate its tables and read them; DatabaseError when it cannot be used.

        The store closes the database, also if it cannot be used.
        """
        self._durable = durable
        self._failure = ""
        self._is_behind = False
        try:
            durable.migrate()
            self._memory = sqlite3.connect(":memory:", isolation_level=None)
            self._memory.row_factory = sqlite3.Row
            durable.load(self._memory)
            self._memory.execute("PRAGMA foreign_keys = ON")
        except DatabaseError:
            durable.close()
            raise

    @property
    def name(self) -> str:
        """The database's path or address, without secrets."""
        return self._durable.name

    @property
    def failure(self) -> str:
        """Why the database could not be written the last time; "" if it could."""
        return self._failure

    @property
    def is_behind(self) -> bool:
        """Whether the database must be set right: it has no records of what has happened."""
        return self._is_behind

    def close(self) -> None:
        """Write the missing records if possible, and release the database."""
        if self._is_behind:
            self.check()
        self._durable.close()
        self._memory.close()

    def select(self, query: str, parameters: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """Return rows of the copy."""
        return self._memory.execute(query, parameters).fetchall()

    @contextmanager
    def change(self, *, is_record: bool = False) -> Generator[Statements]:
        """Execute statements together; if that fails, raise DatabaseError and change nothing.

        With `is_record` the copy changes even if the database cannot be written.
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
                raise DatabaseError(
                    f"database {self.name}: the change breaks a rule: {exc}"
                ) from exc
            raise
        self._memory.execute("COMMIT")

    def check(self) -> None:
        """Test whether the database can be written, write missing records; see `failure`."""
        try:
            if self._is_behind:
                self._catch_up()
            self._durable.probe()
            self._note("")
        except DatabaseError as exc:
            self._note(str(exc))

    def _try(self, write: Callable[[], None], *, is_record: bool) -> None:
        try:
            write()
        except DatabaseError as exc:
            self._note(str(exc))
            # What may have been written must be taken back as soon as that is possible.
            self._is_behind |= is_record or isinstance(exc, UncertainWriteError)
            if not is_record:
                raise

    def _write(self, statements: Statements) -> None:
        if statements.writes:
            self._durable.write(statements.writes)
        self._note("")

    def _catch_up(self) -> None:
        """Write the whole copy to the database: all of it or nothing."""
        self._durable.replace(self._memory)
        self._is_behind = False
        self._note("")

    def _note(self, failure: str) -> None:
        """Keep whether the database can be written, and log each change of that once."""
        if failure and not self._failure:
            _LOGGER.error("%s; running jobs continue, but no job can start or change", failure)
        elif self._failure and not failure:
            _LOGGER.warning("database %s can be written again", self.name)
        self._failure = failure
