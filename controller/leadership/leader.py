# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a controller must know of its leadership: the term, and whether it still leads."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ..database.database import Database


class Leader(ABC):
    """A controller's right to act. The term is its election id at switches."""

    term: int
    """Above the terms of all leaders before."""

    @property
    @abstractmethod
    def is_leader(self) -> bool:
        """Whether this controller may still change anything."""

    @abstractmethod
    async def outbid(self, election_id: int) -> None:
        """Begin a term above the election id that a switch remembers from others.

        Raises DatabaseError when that cannot be stored, or when another controller leads.
        """

    @property
    def controllers(self) -> tuple[str, ...]:
        """Addresses of all controllers of this database, if there are several."""
        return ()


class FileLeader(Leader):
    """Leads as long as it has the SQLite file, which is locked."""

    def __init__(self, database: Database, least_term: int) -> None:
        """Begin a new term."""
        self._database = database
        self.term = database.raise_term(least_term)

    @property
    def is_leader(self) -> bool:
        """Whether this controller may still change anything."""
        return True

    async def outbid(self, election_id: int) -> None:
        """Begin a term above the election id that a switch remembers from others."""
        if election_id >= self.term:
            self.term = self._database.raise_term(election_id + 1)
