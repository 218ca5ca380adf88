# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The lease by which one of several controllers leads: a row of their PostgreSQL database.

The database's clock decides when it ends. Its holder counts by a clock of its own, from before each
renewal, and stops earlier. Each new holder takes a higher term, and every transaction checks the
term: a holder that stood still and wakes up too late changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..database.postgres import PostgresDatabase, connect
from ..database.postgres_url import PostgresUrl
from ..database.schema import Execute
from ..errors import DatabaseError, NotLeaderError
from .leader import Leader

if TYPE_CHECKING:
    from ..database.postgres_connection import PostgresConnection

_LOGGER = logging.getLogger(__name__)
_MARGIN: Final = 0.2
"""Share of the lease that its holder does not use: its clock may run slower, its calls last."""
RENEWALS_PER_LEASE: Final = 5
_FORGET_S: Final = 3600.0
"""Controllers that have not been seen for so long are forgotten."""
_PREFERRED_S: Final = 3.0
"""A leader makes room after another controller has reached more switches for so long."""


@dataclass(frozen=True, kw_only=True)
class KnownController:
    """A controller of the same database."""

    address: str
    reached: int
    """How many switches it reaches."""
    is_alive: bool
    """Whether it has been seen within the time of a lease."""


class LeaderLease(Leader):
    """This controller's part in the lease; its methods that block may run in other threads."""

    def __init__(self, url: PostgresUrl, *, lease_s: float, least_term: int) -> None:
        self.term = 0
        self.address = ""
        """Where others reach this controller."""
        self.leader_address = ""
        """Of the controller that leads, "" if none does."""
        self._url = url
        self._lease_s = lease_s
        self._least_term = least_term
        self._holder = secrets.token_hex(8)
        self._connection: PostgresConnection | None = None
        self._turn = asyncio.Lock()  # one thread at a time has the connection
        self._until_s = float("-inf")
        self._may_take = True
        self._outdone_since_s: float | None = None
        self._candidates: tuple[KnownController, ...] = ()
        self._database: PostgresDatabase | None = None

    @property
    def is_leader(self) -> bool:
        """Whether this controller may still change anything."""
        return self.left_s > 0

    @property
    def left_s(self) -> float:
        """Seconds until this controller must stop to lead; 0 if it does not lead."""
        return max(0.0, self._until_s - _now_s())

    @property
    def controllers(self) -> tuple[str, ...]:
        """Addresses of all controllers of this database, the living ones first."""
        ordered = sorted(self._candidates, key=lambda each: (not each.is_alive, each.address))
        return tuple(each.address for each in ordered)

    def open_database(self) -> PostgresDatabase:
        """Return the state, for changes in this term alone. It blocks."""
        self._database = PostgresDatabase(self._url, self._fence)
        return self._database

    async def tend(self, reached: int) -> None:
        """Renew the lease, or take it if it is free; DatabaseError if the database fails.

        `reached` is the number of switches that this controller reaches. It does not take the
        lease, and gives it back, while a living controller reaches more.
        """
        async with self._turn:
            await asyncio.to_thread(self._tend, reached)

    async def outbid(self, election_id: int) -> None:
        """Begin a term above the election id that a switch remembers from others."""
        async with self._turn:
            if election_id >= self.term:
                await asyncio.to_thread(self._raise_term, election_id + 1)

    async def resign(self) -> None:
        """Give the lease back, so that another controller leads at once; and forget this one."""
        self._until_s = float("-inf")
        async with self._turn:
            await asyncio.to_thread(self._resign)

    def close(self) -> None:
        """Close the connection, and leave the lease to end."""
        if self._connection is not None:
            self._connection.close()

    def stand_by(self) -> None:
        """Let `tend` take the lease once it is free.

        Whoever has led must have put away all that he knew before: others may have led meanwhile.
        """
        self._until_s = float("-inf")
        self._may_take = True

    def _tend(self, reached: int) -> None:
        started_s = _now_s()
        try:
            if self._connection is None or not self._connection.is_open:
                self._connection = connect(self._url)
            with self._connection.transaction() as execute:
                row = execute(
                    "SELECT holder, address, term, until > clock_timestamp() FROM leader "
                    "FOR UPDATE",
                    (),
                )[0]
                self._candidates = self._register(execute, reached)
                is_ours = self._decide(execute, row, reached)
            if is_ours:
                self._until_s = started_s + (1 - _MARGIN) * self._lease_s
                if self._database is not None:
                    self._database.reconnect()
        except DatabaseError:
            if self._connection is not None:
                self._connection.close()
            raise

    def _register(self, execute: Execute, reached: int) -> tuple[KnownController, ...]:
        """Note that this controller lives, and return all."""
        execute(
            "INSERT INTO controllers VALUES (?, ?, clock_timestamp()) ON CONFLICT (address) "
            "DO UPDATE SET reached = excluded.reached, seen = excluded.seen",
            (self.address, reached),
        )
        execute(
            "DELETE FROM controllers WHERE seen < clock_timestamp() - make_interval(secs => ?)",
            (_FORGET_S,),
        )
        rows = execute(
            "SELECT address, reached, seen > clock_timestamp() - make_interval(secs => ?) "
            "FROM controllers",
            (self._lease_s,),
        )
        return tuple(
            KnownController(address=row[0], reached=row[1], is_alive=row[2]) for row in rows
        )

    def _decide(self, execute: Execute, row: tuple[Any, ...], reached: int) -> bool:
        """Take, renew, give back or leave the lease; return whether it is ours."""
        holder, self.leader_address, term, is_current = row
        is_ours = holder == self._holder and term == self.term and is_current
        is_ours = is_ours and self.is_leader  # what has ended for us is not renewed
        if self._is_outdone(reached, is_ours=is_ours):
            if is_ours:
                self._until_s = float("-inf")
                execute("UPDATE leader SET until = clock_timestamp(), address = ''", ())
                _LOGGER.warning("another controller reaches more switches: it may lead")
            if is_ours or not is_current:
                self.leader_address = ""
            return False
        if is_ours:
            self._extend(execute, term)
            return True
        if not self._may_take or (is_current and holder != self._holder):
            return False
        self._may_take = False
        self.term = max(term + 1, self._least_term)
        self.leader_address = self.address
        self._extend(execute, self.term)
        return True

    def _extend(self, execute: Execute, term: int) -> None:
        execute(
            "UPDATE leader SET holder = ?, address = ?, term = ?, "
            "until = clock_timestamp() + make_interval(secs => ?)",
            (self._holder, self.address, term, self._lease_s),
        )

    def _is_outdone(self, reached: int, *, is_ours: bool) -> bool:
        """Return whether another living controller reaches more switches, and shall lead."""
        others = (
            each.reached
            for each in self._candidates
            if each.is_alive and each.address != self.address
        )
        now_s = _now_s()
        if max(others, default=0) <= reached:
            self._outdone_since_s = None
            return False
        if self._outdone_since_s is None:
            self._outdone_since_s = now_s
        return not is_ours or now_s - self._outdone_since_s >= _PREFERRED_S

    def _raise_term(self, least: int) -> None:
        connection = self._connection
        if connection is None or not connection.is_open:
            raise DatabaseError(f"database {self._url}: no connection to raise the term")
        with connection.transaction() as execute:
            self._fence(execute)
            execute("UPDATE leader SET term = ?", (least,))
        self.term = least

    def _resign(self) -> None:
        connection = self._connection
        if connection is None or not connection.is_open:
            return
        with connection.transaction() as execute:
            execute(
                "UPDATE leader SET until = clock_timestamp(), address = '' WHERE holder = ?",
                (self._holder,),
            )
            execute("DELETE FROM controllers WHERE address = ?", (self.address,))
        connection.close()

    def _fence(self, execute: Execute) -> None:
        """Refuse a transaction when another controller leads; none can begin to before it ends."""
        if not self.is_leader:
            raise NotLeaderError("this controller's lease has ended: another one may lead")
        row = execute("SELECT holder, term FROM leader FOR SHARE", ())[0]
        if row != (self._holder, self.term):
            raise NotLeaderError(
                f"this controller led in term {self.term}, and term {row[1]} has begun: another "
                "one leads"
            )


def _now_s() -> float:
    """Return a time that nobody sets, and that goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
