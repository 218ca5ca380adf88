# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Row servers that are away for a while or for good, and rows while others are away."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from grpc import StatusCode

from controller_fixtures import (
    fake_switch,
    join_all,
    make_config,
    resume_all,
    run,
    running_controller,
    serving,
)
from fake_row_server import FakeRowServer
from row_server_state import close_all, lease_of, rows_on
from switchfold.controller.rows import row_lease, row_servers
from switchfold.controller.tables.hot_row import RowPlace
from switchfold.hostlib.control.session_api import session_pb2 as pb
from time_bound import until


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server is lost but by a test, however slow the machine is."""
    monkeypatch.setattr(row_lease, "ROW_LEASE_S", 3600.0)


def test_lost_server_keeps_its_rows_for_its_lease(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, fake):
            rows = await FakeRowServer(server.address).attach()
            workers = await join_all(server.address, 2)
            view = await rows.place()
            await rows.set_rows(view, 1, (0, 32, 0))
            await rows.installed()
            await rows.close()
            lease = lease_of(server)
            await until(lambda: not lease.is_attached)
            back = await FakeRowServer(server.address).attach()
            assert (await back.view()).generation == view.generation
            assert len(rows_on(server, fake)) == 1
            await back.close()
            await until(lambda: not lease.is_attached)
            lease._on_expired(lease)  # pyright: ignore[reportPrivateUsage]
            await until(lambda: not rows_on(server, fake))
            await workers[1].send(leave=pb.Leave(position=0))
            live = server.membership.live_job("train")
            assert live is not None
            await until(lambda: bool(live.view) and live.view.num_workers == 1)
            assert live.view is not None
            assert not live.view.row_servers
            await close_all(*workers)

    run(scenario())


def test_silent_server_is_told(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            rows = await FakeRowServer(server.address).attach()
            await rows.view()
            lease = lease_of(server)
            lease._on_expired(lease)  # pyright: ignore[reportPrivateUsage]
            code, text = await rows.refusal()
            assert code is StatusCode.ABORTED
            assert "was silent for 10 s" in text
            await rows.close()

    run(scenario())


def test_server_stays_for_the_next_job_of_its_name(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, fake):
            rows = await FakeRowServer(server.address).attach()
            workers = await join_all(server.address, 2)
            view = await rows.place()
            await rows.set_rows(view, 1, (0, 32, 0))
            await rows.installed()
            await server.membership.stop_job("train", "enough")
            assert (await rows.receive()).job_ended.reason == "enough"
            assert not rows_on(server, fake)
            more = await join_all(server.address, 2)
            after = await rows.view()
            assert after.generation > view.generation
            assert after.num_rows == 8
            await close_all(rows, *workers, *more)

    run(scenario())


def test_rows_stay_on_the_switch_while_a_controller_restarts(tmp_path: Path):
    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            fake = await stack.enter_async_context(fake_switch())
            config = make_config(tmp_path, fake, resume_grace_s=3600.0)
            async with serving(config) as server:
                rows = await FakeRowServer(server.address).attach()
                other = await FakeRowServer(server.address, 1).attach()
                workers = await join_all(server.address, 2)
                replies = [await worker.join_reply() for worker in workers]
                view, theirs = await rows.place(), await other.place()
                await rows.set_rows(view, 1, (0, 32, 0))
                await other.set_rows(theirs, 1, (9, 33, 0))
                await rows.installed()
                await other.installed()
            for end in (rows, other, *workers):
                await end.close()
            async with serving(config) as server:
                workers = await resume_all(server.address, replies)
                await server.links["s1"].apply()
                assert {key.row for key in rows_on(server, fake)} == {0, 9}
                rows = await FakeRowServer(server.address).attach()
                assert (await rows.view()).generation == view.generation
                await rows.set_rows(view, 2, (1, 64, 0))
                assert await rows.installed() == (view.generation, 2)
                assert {key.row for key in rows_on(server, fake)} == {1, 9}
                lease = lease_of(server, 1)
                lease._on_expired(lease)  # pyright: ignore[reportPrivateUsage]
                await until(lambda: {key.row for key in rows_on(server, fake)} == {1})
                await close_all(rows, *workers)

    run(scenario())


def test_rows_are_written_when_the_switch_takes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(row_servers, "_RETRY_S", 0.05)

    async def scenario() -> None:
        async with running_controller(tmp_path, reconcile_interval_s=60.0) as (server, fake):
            rows = await FakeRowServer(server.address).attach()
            workers = await join_all(server.address, 2)
            view = await rows.place()
            fake.refuse_writes = True
            before = fake.num_writes
            await rows.set_rows(view, 1, (0, 32, 0))
            await until(lambda: fake.num_writes > before)
            fake.refuse_writes = False
            assert await rows.installed() == (view.generation, 1)
            assert len(rows_on(server, fake)) == 1
            await close_all(rows, *workers)

    run(scenario())


def test_entries_that_are_not_ours_are_repaired(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, fake):
            rows = await FakeRowServer(server.address).attach()
            workers = await join_all(server.address, 2)
            view = await rows.place()
            await rows.set_rows(view, 1, *((row, 32 * (row + 1), 0) for row in range(8)))
            await rows.installed()
            wanted = dict(rows_on(server, fake))
            name = next(
                name
                for name, entity in fake.entities.items()
                if len(entity.table_entry.action.action.params) == len(RowPlace._fields)
            )
            del fake.entities[name]
            await until(lambda: rows_on(server, fake) == wanted)
            await close_all(rows, *workers)

    run(scenario())


def test_switch_that_was_restarted_gives_the_server_another_view(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, fake):
            rows = await FakeRowServer(server.address).attach()
            workers = await join_all(server.address, 2)
            view = await rows.place()
            await rows.set_rows(view, 1, (0, 32, 0))
            await rows.installed()
            fake.entities.clear()
            after = await rows.place()
            assert after.generation > view.generation
            await rows.set_rows(after, 2, (1, 64, 0))
            assert await rows.installed() == (after.generation, 2)
            await until(lambda: {key.row for key in rows_on(server, fake)} == {1})
            await close_all(rows, *workers)

    run(scenario())
