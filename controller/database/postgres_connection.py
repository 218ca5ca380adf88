# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A blocking connection to PostgreSQL that gives up in time; psycopg's errors become ours here."""

from __future__ import annotations

import enum
import functools
import ipaddress
import re
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg import conninfo

from ..errors import DatabaseError, UncertainWriteError
from .postgres_url import PostgresUrl
from .schema import Execute

CONNECT_S: Final = 2
"""To connect; libpq takes no less."""
TRANSACTION_S: Final = 2.0
"""All of a transaction: so long a controller's loop stands still at most."""
IDLE_S: Final = 5.0
"""How long the server keeps a transaction, and its locks, of a controller that says no more."""
_LONGEST_S: Final = 60.0
"""Beyond a transaction there is nothing to wait for."""
_TYPES: Final = {"INTEGER": "BIGINT", "REAL": "DOUBLE PRECISION", "BLOB": "BYTEA"}
_TYPE = re.compile(rf"\b({'|'.join(_TYPES)})\b")


class _Connection(psycopg.Connection[tuple[Any, ...]]):
    """Waits for answers until a deadline; the server's own limits do not help if it is cut off."""

    deadline_s = float("inf")
    """By time.monotonic()."""

    def wait(self, gen: Any, interval: float = 0.0, timeout: float | None = None) -> Any:
        """Run one of psycopg's operations; the connection is closed if the deadline passes."""
        left_s = max(0.0, self.deadline_s - time.monotonic())
        started_s = time.monotonic()
        try:
            return super().wait(gen, timeout=min(left_s, _LONGEST_S))
        except psycopg.Error as exc:
            if not self.closed and time.monotonic() - started_s >= left_s:
                self.pgconn.finish()
                raise psycopg.OperationalError("the server does not answer in time") from exc
            raise


class PostgresConnection:
    """One connection; whoever uses it must be the only one at that time."""

    def __init__(self, url: PostgresUrl) -> None:
        """Connect; DatabaseError if that fails."""
        self._name = str(url)
        try:
            options: dict[str, Any] = conninfo.conninfo_to_dict(url.text)
            options |= {
                "connect_timeout": CONNECT_S,
                "tcp_user_timeout": round(1000 * TRANSACTION_S),
                "application_name": "switchfold controller",
            }
            self._connection = _Connection.connect(**options, autocommit=True)
            for name, limit_s in (
                ("statement_timeout", TRANSACTION_S),
                ("idle_in_transaction_session_timeout", IDLE_S),
            ):
                limit = str(round(1000 * limit_s))
                self._connection.execute("SELECT set_config(%s, %s, false)", (name, limit))
        except psycopg.Error as exc:
            raise _database_error(self._name, exc) from exc

    @property
    def is_open(self) -> bool:
        """Whether the connection may still be used."""
        return not self._connection.closed

    @property
    def is_readable_on_the_network(self) -> bool:
        """Whether statements cross a network without TLS."""
        return not _is_local(self._connection.info.host) and not (
            self._connection.pgconn.ssl_in_use
        )

    @contextmanager
    def transaction(self, limit_s: float = TRANSACTION_S) -> Generator[Execute]:
        """Commit what is executed within, or leave the database as it was before.

        Raises DatabaseError, or UncertainWriteError when the connection broke at the commit.
        """
        connection = self._connection
        connection.deadline_s = time.monotonic() + limit_s
        is_committing = False
        try:
            connection.execute("BEGIN")
            yield self._execute
            is_committing = True
            connection.execute("COMMIT")
        except BaseException as exc:
            self._roll_back()
            if isinstance(exc, psycopg.Error):
                is_uncertain = is_committing and connection.closed
                kind = UncertainWriteError if is_uncertain else DatabaseError
                raise _database_error(self._name, exc, kind) from exc
            raise

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _execute(self, statement: str, parameters: Sequence[Any]) -> list[Any]:
        cursor = self._connection.execute(
            _translated(statement), [_plain(value) for value in parameters]
        )
        return cursor.fetchall() if cursor.description is not None else []

    def _roll_back(self) -> None:
        if self._connection.closed:
            return
        try:
            self._connection.execute("ROLLBACK")
        except psycopg.Error:
            self._connection.close()  # the server rolls back by itself


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.startswith("/") or host in ("", "localhost")


@functools.lru_cache(maxsize=256)
def _translated(statement: str) -> Any:
    """Return a statement in SQLite's dialect in that of PostgreSQL and psycopg."""
    if statement.lstrip().startswith("CREATE"):
        return _TYPE.sub(lambda found: _TYPES[found[1]], statement)
    return statement.replace("%", "%%").replace("?", "%s")


def _plain(value: object) -> object:
    """Return a member of an enumeration as the value that SQLite would store."""
    return value.value if isinstance(value, enum.Enum) else value


def _database_error(
    name: str, exc: psycopg.Error, kind: Callable[[str], DatabaseError] = DatabaseError
) -> DatabaseError:
    reason = " ".join(str(exc).split())
    return kind(f"database {name}: {reason}; check its address, the server and our rights there")
