# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The address of a PostgreSQL database, which may hold a password."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from ..errors import ConfigError

SCHEMES: Final = ("postgresql://", "postgres://")


@dataclass(frozen=True)
class PostgresUrl:
    """A URL as libpq takes it; printed without user, password and parameters."""

    text: str = field(repr=False)
    """postgresql://USER:PASSWORD@HOST:PORT/NAME?sslmode=verify-full, for libpq only."""

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.text)
            _ = parts.port
        except ValueError as exc:
            # The reason may quote the password.
            raise ConfigError(
                "database: not a URL such as postgresql://USER@HOST:5432/NAME; write special "
                "characters of a password in percent code"
            ) from exc
        if not self.text.startswith(SCHEMES) or not parts.path.strip("/"):
            raise ConfigError(
                "database: not a URL such as postgresql://USER@HOST:5432/NAME: it names no database"
            )

    def __str__(self) -> str:
        parts = urlsplit(self.text)
        place = parts.netloc.rpartition("@")[2]
        return f"postgresql://{place}{parts.path}"


def is_postgres(text: str) -> bool:
    """Return whether this names a PostgreSQL database rather than a file."""
    return text.startswith(SCHEMES)
