# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What operators do with a database that no controller uses: migrate it, and copy it."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from ..errors import DatabaseError
from .durable import Durable
from .postgres import PostgresDatabase, refuse_in_use
from .postgres_url import PostgresUrl
from .sqlite_file import SqliteFile


def migrate_database(where: Path | PostgresUrl, target: int) -> int:
    """Make schema version `target` out of the present one; return the version before.

    Raises DatabaseError where that is not possible, or while a controller uses the database.
    """
    if isinstance(where, Path) and not where.exists():
        raise DatabaseError(f"database {where} does not exist: there is nothing to migrate")
    with contextlib.closing(_open(where)) as durable:
        with durable.transaction() as execute:
            if durable.version(execute) == 0:
                raise DatabaseError(f"database {durable.name} is empty: nothing to migrate")
        return durable.migrate(target)


def copy_database(source: Path | PostgresUrl, target: Path | PostgresUrl) -> int:
    """Copy all tables into an empty database, and return the number of jobs.

    An older schema is migrated at the source first.
    """
    if isinstance(source, Path) and not source.exists():
        raise DatabaseError(f"database {source} does not exist: there is nothing to copy")
    with (
        contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as memory,
        contextlib.closing(_open(source)) as before,
    ):
        before.migrate()
        before.load(memory)
        with contextlib.closing(_open(target)) as after:
            with after.transaction() as execute:
                if after.version(execute) != 0:
                    raise DatabaseError(f"database {after.name} is not empty; choose another one")
            after.migrate()
            after.replace(memory)
        return int(memory.execute("SELECT COUNT(*) FROM jobs").fetchone()[0])


def _open(where: Path | PostgresUrl) -> Durable:
    if isinstance(where, Path):
        return SqliteFile(where)
    return PostgresDatabase(where, refuse_in_use)
