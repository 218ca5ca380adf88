# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The state in a PostgreSQL database, which several controllers may have, one at a time."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ..errors import DatabaseError, ToolError
from .durable import Durable, make_tables
from .postgres_url import PostgresUrl
from .schema import TABLES, Execute

if TYPE_CHECKING:
    from .postgres_connection import PostgresConnection

_LOGGER = logging.getLogger(__name__)
_COPY_S: Final = 10.0
"""To read or write all tables: at the start, and once after a break."""
_OWN_TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS leader (only_one INTEGER PRIMARY KEY, holder TEXT NOT NULL, "
    "address TEXT NOT NULL, term INTEGER NOT NULL, until TIMESTAMP WITH TIME ZONE NOT NULL)",
    "CREATE TABLE IF NOT EXISTS controllers (address TEXT PRIMARY KEY, reached INTEGER NOT NULL, "
    "seen TIMESTAMP WITH TIME ZONE NOT NULL)",
    "INSERT INTO leader VALUES (1, '', '', 0, to_timestamp(0)) ON CONFLICT DO NOTHING",
)
_MAKING_LOCK: Final = 0x53774C65
"""Key of the lock under which tables are made: two controllers may start at once."""


def connect(url: PostgresUrl) -> PostgresConnection:
    """Connect, and make the tables of leadership if they are absent.

    Raises DatabaseError, and ToolError without the library.
    """
    try:
        from .postgres_connection import PostgresConnection  # noqa: PLC0415 - an extra
    except ImportError as exc:
        raise ToolError(
            f"database {url}: the library psycopg is not installed or cannot be loaded ({exc}); "
            "install it with pip install 'psycopg[binary]'"
        ) from exc
    connection = PostgresConnection(url)
    try:
        with connection.transaction() as execute:
            execute("SELECT pg_advisory_xact_lock(?)", (_MAKING_LOCK,))
            if not execute("SELECT to_regclass('leader')", ())[0][0]:
                for statement in _OWN_TABLES:
                    execute(statement, ())
    except DatabaseError:
        connection.close()
        raise
    return connection


def refuse_in_use(execute: Execute) -> None:
    """The fence of a command that must be alone: DatabaseError while a controller leads."""
    rows = execute("SELECT address, until > clock_timestamp() FROM leader FOR UPDATE", ())
    if rows[0][1]:
        raise DatabaseError(f"the controller at {rows[0][0]} leads with this database; stop it")


class PostgresDatabase(Durable):
    """The tables, for the holder of the lease; `fence` refuses a transaction of any other."""

    def __init__(self, url: PostgresUrl, fence: Callable[[Execute], None] | None = None) -> None:
        """Connect; DatabaseError if that fails, ToolError without the library."""
        self.name = str(url)
        self._url = url
        self._fence = fence
        self._connection: PostgresConnection | None = connect(url)
        if self._connection.is_readable_on_the_network:
            _LOGGER.warning(
                "INSECURE: the connection to %s is not encrypted; give the URL "
                "sslmode=verify-full and sslrootcert",
                self.name,
            )

    def reconnect(self) -> None:
        """Connect again if the connection broke; from any thread. DatabaseError if that fails.

        Until then, changes fail at once: a controller's loop does not wait for a server that does
        not answer.
        """
        if self._connection is None:
            self._connection = connect(self._url)

    @contextmanager
    def transaction(self, limit_s: float | None = None) -> Generator[Execute]:
        """Commit what is executed within, or leave the database as it was before."""
        connection = self._connection
        if connection is None:
            raise DatabaseError(
                f"database {self.name}: the connection broke, and none stands again yet; check the "
                "server and the network to it"
            )
        limits = () if limit_s is None else (limit_s,)
        try:
            with connection.transaction(*limits) as execute:
                if self._fence is not None:
                    self._fence(execute)
                yield execute
        finally:
            if not connection.is_open:
                self._connection = None

    def version(self, execute: Execute) -> int:
        """Return the version of the schema, 0: there are no tables."""
        rows = execute("SELECT version FROM schema_version", ())
        return int(rows[0][0]) if rows else 0

    def set_version(self, execute: Execute, version: int) -> None:
        """Store the version of the schema."""
        execute("DELETE FROM schema_version", ())
        execute("INSERT INTO schema_version VALUES (?)", (version,))

    def load(self, memory: sqlite3.Connection) -> None:
        """Copy all tables into an empty database in memory."""
        make_tables(memory)
        with self.transaction(_COPY_S) as execute:
            for table in TABLES:
                rows = execute(f"SELECT * FROM {table}", ())  # noqa: S608
                if rows:
                    marks = ", ".join("?" * len(rows[0]))
                    memory.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608

    def replace(self, memory: sqlite3.Connection) -> None:
        """Take all tables from the copy in memory."""
        with self.transaction(_COPY_S) as execute:
            for table in reversed(TABLES):
                execute(f"DELETE FROM {table}", ())  # noqa: S608
            for table in TABLES:
                for row in memory.execute(f"SELECT * FROM {table}"):  # noqa: S608
                    marks = ", ".join("?" * len(row))
                    execute(f"INSERT INTO {table} VALUES ({marks})", tuple(row))  # noqa: S608
            # Of a copied database: the next leader's term is higher.
            execute(
                "UPDATE leader SET term = greatest(term, value) FROM meta WHERE key = 'term'",
                (),
            )

    def probe(self) -> None:
        """Test whether the server answers the holder of the lease."""
        with self.transaction():
            pass

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
