# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The lease: one leader at a time, by the database's clock; terms only rise; who is deposed."""

from __future__ import annotations

import asyncio
import importlib
import itertools
from collections.abc import Generator
from pathlib import Path

import pytest

from postgres_server import PostgresServer, postgres_server
from switchfold.controller.database.database import Database
from switchfold.controller.database.postgres_url import PostgresUrl
from switchfold.controller.errors import DatabaseError, NotLeaderError
from switchfold.controller.jobs.job_request import JobRequest
from switchfold.controller.leadership import leader_lease
from switchfold.controller.leadership.leader import FileLeader
from switchfold.controller.leadership.leader_lease import LeaderLease

LONG_S = 600.0
"""A lease that does not end during a test unless the test ends it."""
_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def server() -> Generator[PostgresServer]:
    with postgres_server() as made:
        yield made


@pytest.fixture(autouse=True)
def patience(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for the database as long as it takes."""
    connections = importlib.import_module("switchfold.controller.database.postgres_connection")
    for name in ("CONNECT_S", "TRANSACTION_S"):
        monkeypatch.setattr(connections, name, 60)
    transaction = connections.PostgresConnection.transaction.__wrapped__
    monkeypatch.setattr(transaction, "__defaults__", (60.0,))


class Scene:
    """Controllers of one new database."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._name = f"lease{next(_NUMBERS)}"
        self._url = PostgresUrl(server.make_database(self._name))
        self._open: list[LeaderLease | Database] = []

    def controller(self, address: str, least_term: int = 10) -> LeaderLease:
        lease = LeaderLease(self._url, lease_s=LONG_S, least_term=least_term)
        lease.address = address
        self._open.append(lease)
        return lease

    def database(self, lease: LeaderLease) -> Database:
        """Return the state as a controller changes it."""
        database = Database(lease.open_database())
        self._open.append(database)
        return database

    def close(self) -> None:
        for each in self._open:
            each.close()

    def end_lease(self) -> None:
        """Let the lease end by the database's clock, as if nobody had renewed it."""
        self._server.execute("UPDATE leader SET until = now() - interval '1 s'", self._name)

    def jobs(self) -> list[object]:
        return [row[0] for row in self._server.execute("SELECT name FROM jobs", self._name)]


@pytest.fixture
def scene(server: PostgresServer) -> Generator[Scene]:
    scene = Scene(server)
    yield scene
    scene.close()


def test_first_leads_and_the_second_knows_it(scene: Scene):
    async def play() -> None:
        one, other = scene.controller("one:1"), scene.controller("other:1")
        for lease in (one, other, one):
            await lease.tend(1)
        assert (one.is_leader, one.term, one.leader_address) == (True, 10, "one:1")
        assert (other.is_leader, other.leader_address) == (False, "one:1")
        assert one.controllers == other.controllers == ("one:1", "other:1")
        await one.resign()
        assert not one.is_leader
        await other.tend(1)
        assert (other.is_leader, other.term) == (True, 11)

    asyncio.run(play())


def test_least_term_is_a_floor_and_terms_only_rise(scene: Scene):
    async def play() -> None:
        terms: list[int] = []
        for least_term in (10, 50, 10):
            lease = scene.controller("one:1", least_term)
            await lease.tend(1)
            terms.append(lease.term)
            await lease.resign()
        assert terms == [10, 50, 51]

    asyncio.run(play())


def test_deposed_holder_changes_nothing(scene: Scene):
    """It stood still, does not know that its lease has ended, and goes on."""

    async def play() -> None:
        one, other = scene.controller("one:1"), scene.controller("other:1")
        await one.tend(1)
        database = scene.database(one)
        database.create_job(JobRequest(name="before", num_workers=1))
        scene.end_lease()
        await other.tend(1)
        assert one.is_leader, "as far as it knows"
        with pytest.raises(NotLeaderError, match="term 11 has begun"):
            database.create_job(JobRequest(name="too late", num_workers=1))
        with pytest.raises(NotLeaderError, match="term 11 has begun"):
            await one.outbid(1000)
        await one.tend(1)
        assert scene.jobs() == ["before"]
        successor = scene.database(other)
        assert [job.name for job in successor.jobs()] == ["before"]

    asyncio.run(play())


def test_holder_stops_before_its_lease_ends(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    async def play() -> None:
        now_s = 1000.0
        monkeypatch.setattr(leader_lease, "_now_s", lambda: now_s)
        lease = scene.controller("one:1")
        await lease.tend(1)
        database = scene.database(lease)
        now_s += 0.8 * LONG_S - 1
        assert lease.left_s == pytest.approx(1.0)
        now_s += 1.5
        assert not lease.is_leader
        with pytest.raises(NotLeaderError, match="lease has ended"):
            database.create_job(JobRequest(name="too late", num_workers=1))
        await lease.tend(1)
        assert not lease.is_leader, "while it has not put its state away"
        lease.stand_by()
        await lease.tend(1)
        assert (lease.is_leader, lease.term) == (True, 11), "not renewed, but taken again"

    asyncio.run(play())


def test_who_reaches_more_switches_leads(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    async def play() -> None:
        now_s = 1000.0
        monkeypatch.setattr(leader_lease, "_now_s", lambda: now_s)
        one, other = scene.controller("one:1"), scene.controller("other:1")
        await one.tend(2)
        await other.tend(2)
        await one.tend(1)
        now_s += 2.9
        await one.tend(1)
        assert one.is_leader, "for a moment, that changes nothing"
        now_s += 0.2
        await one.tend(1)
        assert not one.is_leader
        await one.tend(1)
        assert not one.is_leader, "while the other one reaches more"
        await other.tend(2)
        assert other.is_leader
        await one.tend(2)
        assert not one.is_leader, "as many are no reason"

    asyncio.run(play())


def test_outbid_begins_a_higher_term(scene: Scene, tmp_path: Path):
    async def play() -> None:
        lease = scene.controller("one:1")
        await lease.tend(1)
        database = scene.database(lease)
        await lease.outbid(5)
        assert lease.term == 10, "no reason"
        await lease.outbid(500)
        assert lease.term == 501
        database.create_job(JobRequest(name="in the new term", num_workers=1))
        file = Database(tmp_path / "state.sqlite3")
        leader = FileLeader(file, 10)
        await leader.outbid(500)
        assert (leader.is_leader, leader.term, file.term) == (True, 501, 501)
        file.close()
        again = Database(tmp_path / "state.sqlite3")
        assert FileLeader(again, 10).term == 502, "each start begins a term"
        again.close()

    asyncio.run(play())


def test_server_that_is_away_is_an_error(server: PostgresServer):
    lease = LeaderLease(PostgresUrl(server.url(name="absent")), lease_s=LONG_S, least_term=10)
    with pytest.raises(DatabaseError, match="does not exist"):
        asyncio.run(lease.tend(1))
