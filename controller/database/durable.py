# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What keeps the state when the process ends: a SQLite file, or a PostgreSQL database."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from ..errors import DatabaseError
from .schema import SCHEMA_VERSION, TABLES, Execute, migrate

SqlStatement = tuple[str, Sequence[Any]]
"""A statement in SQLite's dialect, and its parameters (`?`)."""


class Durable(ABC):
    """Tables of the schema; every method raises DatabaseError if it fails, and then has changed
    nothing that `replace` does not set right.
    """

    name: str
    """For messages: without secrets."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Execute]:
        """Commit what is executed within, or leave the database as it was before."""

    @abstractmethod
    def version(self, execute: Execute) -> int:
        """Return the version of the schema, 0: there are no tables."""

    @abstractmethod
    def set_version(self, execute: Execute, version: int) -> None:
        """Store the version of the schema."""

    @abstractmethod
    def load(self, memory: sqlite3.Connection) -> None:
        """Copy all tables into an empty database in memory."""

    @abstractmethod
    def replace(self, memory: sqlite3.Connection) -> None:
        """Take all tables from the copy in memory: all of them, or nothing."""

    @abstractmethod
    def probe(self) -> None:
        """Test whether the next changes will succeed."""

    @abstractmethod
    def close(self) -> None:
        """Release the file or the connection."""

    def write(self, statements: Sequence[SqlStatement]) -> None:
        """Execute the statements of a change in one transaction."""
        with self.transaction() as execute:
            for statement, parameters in statements:
                execute(statement, parameters)

    def migrate(self, target: int = SCHEMA_VERSION) -> int:
        """Make or migrate the tables; return the version found before, 0: none."""
        with self.transaction() as execute:
            version = self.version(execute)
            if version > SCHEMA_VERSION:
                raise DatabaseError(
                    f"database {self.name} has schema version {version}, this release knows "
                    f"{SCHEMA_VERSION}; use the release that made it, or another --database"
                )
            if version != target:
                migrate(execute, version, target)
                self.set_version(execute, target)
        return version


def make_tables(memory: sqlite3.Connection) -> None:
    """Make empty tables of the newest version in memory."""
    migrate(lambda statement, parameters: memory.execute(statement, parameters).fetchall(), 0)
    for table in TABLES:
        memory.execute(f"DELETE FROM {table}")  # noqa: S608
    memory.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
