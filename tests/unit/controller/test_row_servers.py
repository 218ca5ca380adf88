# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Row servers of a controller: they attach, get rows in views and set them, or are refused."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest
from grpc import StatusCode

from controller_fixtures import FakeWorker, join_all, run, running_controller
from fake_row_server import FakeRowServer
from row_server_state import close_all, groups_on, lease_of, rows_on
from switchfold.controller.tables.hot_row import RowKey, RowPlace
from switchfold.controller.views.view_change import Limits
from switchfold.hostlib.control.session_api import session_pb2 as pb
from time_bound import until

NARROW = 32
"""Values per packet of the fake program."""


def test_servers_are_told_of_all_controllers(tmp_path: Path):
    """Those that are attached at each sign of life, and others when they attach."""

    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            early = await FakeRowServer(server.address, 0).attach()
            await early.view()
            known = pb.Controllers(addresses=["10.0.1.1:1", "10.0.1.2:1"], beat_s=2.0)
            server.membership.show_life(lambda: known)
            assert (await early.receive()).controllers == known
            late = await FakeRowServer(server.address, 1).attach()
            assert (await late.receive()).controllers == known
            await late.view()
            await close_all(early, late)

    run(scenario())


def test_server_that_waits_gets_rows_when_its_job_starts(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, fake):
            rows = await FakeRowServer(server.address, 3, address="10.0.0.4").attach()
            waiting = await rows.view()
            assert (waiting.generation, waiting.num_rows) == (0, 0)
            assert waiting.reason == "the job does not run yet"
            workers = await join_all(server.address, 2)
            reply = await workers[0].join_reply()
            view = await rows.view()
            assert view.generation == reply.view.generation
            assert view.tree_id == reply.view.trees[0].tree_id
            assert (view.first_row, view.num_rows, view.reason) == (0, 8, "")
            assert (view.values_per_packet, view.worker_id, view.num_workers) == (NARROW, 35, 2)
            assert (view.switch_address, view.switch_udp_port) == (reply.view.switch_address, 21318)
            assert [(m.worker_id, m.child_id, m.worker_bitmap) for m in view.members] == [
                (0, 0, 1),
                (1, 1, 2),
            ]
            assert {m.switch_address for m in view.members} == {reply.view.switch_address}
            await rows.set_rows(view, 7, (2, 35, -10), (5, 67, 3))
            assert await rows.installed() == (view.generation, 7)
            (sums,) = [group for group in groups_on(fake) if group != view.tree_id][:1]
            assert groups_on(fake)[sums] == [(4, 36)]
            base = 1024 - 12
            copies = rows_on(server, fake)[RowKey(view.tree_id, 2)].copies_group_id
            assert groups_on(fake)[copies] == [(4, 36)]
            assert rows_on(server, fake) == {
                RowKey(view.tree_id, 2): RowPlace(
                    base + 2, 2 * (base + 8) + 2, 35, 118, sums, copies
                ),
                RowKey(view.tree_id, 5): RowPlace(
                    base + 5, 2 * (base + 8) + 5, 67, 131, sums, copies
                ),
            }
            await close_all(rows, *workers)

    run(scenario())


def test_server_that_comes_later_gets_a_view_with_rows(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, fake):
            workers = await join_all(server.address, 2)
            first = (await workers[0].join_reply()).view
            rows = await FakeRowServer(server.address).attach()
            told = await rows.view()
            assert (told.generation, told.num_rows) == (first.generation, 0)
            assert "with the next view" in told.reason
            view = await rows.view()
            assert view.generation > first.generation
            assert view.num_rows == 8
            other = await FakeRowServer(server.address, 1).attach()
            assert (await other.view()).num_rows == 0
            theirs, mine = await other.view(), await rows.view()
            assert theirs.generation == mine.generation > view.generation
            assert [theirs.tree_id, theirs.first_row, theirs.num_rows] == [mine.tree_id, 8, 8]
            assert mine.first_row == 0
            numbers = groups_on(fake)
            assert len(numbers) == len(set(numbers))
            assert max(numbers) < 1 << 15
            await close_all(rows, other, *workers)

    run(scenario())


def test_server_that_comes_back_during_its_change_asks_for_no_other(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            (worker,) = await join_all(server.address, 1, is_following=False)
            first = (await worker.join_reply()).view.generation
            manager = server.membership._manager  # pyright: ignore[reportPrivateUsage]
            ((changes, _),) = manager._changes.values()  # pyright: ignore[reportPrivateUsage]
            # However long it is away, the worker that has not answered is not to blame.
            with patch.object(changes, "_limits", Limits(graceful_answer_s=3600.0)):
                rows = await FakeRowServer(server.address).attach()
                proposal = (await worker.receive()).view_proposal
                await rows.close()
                lease = lease_of(server)
                await until(lambda: not lease.is_attached)
                rows = await FakeRowServer(server.address).attach()
                assert (await rows.view()).generation == first
                assert not changes._change_request.reasons  # pyright: ignore[reportPrivateUsage]
                await worker.send(view_ready=pb.ViewReady(generation=proposal.generation))
                assert (await worker.receive()).view_commit.view.generation == proposal.generation
                await worker.send(view_entered=pb.ViewEntered(generation=proposal.generation))
                assert (await rows.view()).generation == proposal.generation
                await close_all(rows, worker)

    run(scenario())


def test_switch_knows_a_server_that_is_no_configured_host(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, fake):
            rows = await FakeRowServer(
                server.address, address="10.0.7.7", mac="02:00:00:00:07:07", ingress_port=77
            ).attach()
            workers = await join_all(server.address, 2)
            view = await rows.place()
            link = server.links["s1"]
            assert link.find_mac("10.0.7.7", 1) == "02:00:00:00:07:07"
            assert link.find_mac("10.0.7.7", 77) is None, "it answers itself"
            assert 77 in await link.read_port_counts()
            assert [(77, 33)] in groups_on(fake).values()
            assert not await link.apply(), "what was written reads back the same"
            assert view.num_rows == 8
            await close_all(rows, *workers)

    run(scenario())


def test_sets_replace_each_other_and_end_with_the_view(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, fake):
            rows = await FakeRowServer(server.address).attach()
            workers = await join_all(server.address, 2)
            view = await rows.place()
            await rows.set_rows(view, 1, (0, 32, 0), (1, 64, 0), (2, 96, 0))
            assert await rows.installed() == (view.generation, 1)
            before = fake.num_writes
            await rows.set_rows(view, 2, (1, 64, 0), (2, 128, 5), (3, 160, 0))
            assert await rows.installed() == (view.generation, 2)
            assert fake.num_writes == before + 1, "one batch has all differences"
            assert {key.row: place.epoch for key, place in rows_on(server, fake).items()} == {
                1: 64, 2: 128, 3: 160
            }  # fmt: skip
            await workers[1].send(leave=pb.Leave(position=0))
            after = await rows.place()
            assert after.generation > view.generation
            await until(lambda: not rows_on(server, fake))
            await rows.set_rows(view, 3, (0, 192, 0))
            assert (await rows.view()).generation == after.generation, "the set is too old"
            await rows.set_rows(after, 4, (0, 224, 0))
            assert await rows.installed() == (after.generation, 4)
            assert [(k.job_id, p.epoch) for k, p in rows_on(server, fake).items()] == [
                (after.tree_id, 224)
            ]
            await rows.set_rows(after, 5)
            assert await rows.installed() == (after.generation, 5)
            assert not rows_on(server, fake)
            await close_all(rows, *workers)

    run(scenario())


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(8, 32, 0)], "row 8 is not in its range [0, 8)"),
        ([(0, 0, 0)], "epoch 0 is not its own"),
        ([(0, 33, 0)], "epoch 33 is not its own"),
        ([(0, 32, 0), (0, 64, 0)], "a row is named twice"),
        ([(0, 32, 128)], "SetRows.exponents is 128"),
    ],
)
def test_rows_that_are_not_its_own_are_refused(
    tmp_path: Path, rows: list[tuple[int, int, int]], said: str
):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, fake):
            sender = await FakeRowServer(server.address).attach()
            workers = await join_all(server.address, 2)
            view = await sender.place()
            await sender.set_rows(view, 1, *rows)
            code, text = await sender.refusal()
            assert code is StatusCode.INVALID_ARGUMENT
            assert said in text
            assert not rows_on(server, fake)
            await close_all(sender, *workers)

    run(scenario())


def test_lists_of_different_lengths_are_refused(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            sender = await FakeRowServer(server.address).attach()
            workers = await join_all(server.address, 2)
            view = await sender.place()
            await sender.send(set_rows=pb.SetRows(generation=view.generation, rows=[1]))
            code, text = await sender.refusal()
            assert (code, "1 rows with 0 epochs" in text) == (StatusCode.INVALID_ARGUMENT, True)
            await close_all(sender, *workers)

    run(scenario())


@pytest.mark.parametrize(
    ("fields", "code", "said"),
    [
        ({"identity": b"short"}, StatusCode.INVALID_ARGUMENT, "an identity of 5 bytes"),
        ({"wire_version": 1}, StatusCode.FAILED_PRECONDITION, "speaks wire version 1"),
        ({"values_per_packet": 352}, StatusCode.FAILED_PRECONDITION, "352 values per packet"),
        ({"server_id": 32}, StatusCode.INVALID_ARGUMENT, "AttachRowServer.server_id is 32"),
        ({"rows_wanted": 0}, StatusCode.INVALID_ARGUMENT, "AttachRowServer.rows_wanted is 0"),
        ({"switch_name": "s9"}, StatusCode.INVALID_ARGUMENT, "row server 0: no switch 's9'"),
        ({"udp_port": 21318}, StatusCode.INVALID_ARGUMENT, "row server 0: UDP port 21318"),
    ],
)
def test_attachment_is_refused(
    tmp_path: Path, fields: dict[str, object], code: StatusCode, said: str
):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            sender = FakeRowServer(server.address, **fields)
            await sender.attach()
            found, text = await sender.refusal()
            assert (found, said in text) == (code, True), text
            await sender.close()

    run(scenario())


def test_first_message_must_attach(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            sender = FakeRowServer(server.address)
            await sender.send(heartbeat=pb.Heartbeat())
            code, text = await sender.refusal()
            assert code is StatusCode.INVALID_ARGUMENT
            assert text == "the first message of a stream must be AttachRowServer"
            await sender.close()

    run(scenario())


def test_one_server_at_a_time_has_an_id(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, fake):
            first = await FakeRowServer(server.address).attach()
            workers = await join_all(server.address, 2)
            view = await first.place()
            await first.set_rows(view, 1, (0, 32, 0))
            await first.installed()
            stranger = await FakeRowServer(server.address, identity=b"s" * 16).attach()
            code, text = await stranger.refusal()
            assert code is StatusCode.ALREADY_EXISTS
            assert "give every server its own id" in text
            again = await FakeRowServer(server.address).attach()
            assert (await first.refusal())[0] is StatusCode.ALREADY_EXISTS
            assert (await again.view()).generation == view.generation
            assert len(rows_on(server, fake)) == 1, "the rows of the same server stay"
            await again.close()
            await until(lambda: not lease_of(server).is_attached)
            new = await FakeRowServer(server.address, identity=b"n" * 16).attach()
            assert (await new.view()).num_rows == 0
            assert (await new.place()).generation > view.generation
            await until(lambda: not rows_on(server, fake))
            await close_all(first, stranger, new, *workers)

    run(scenario())


def test_job_of_large_worker_ids_has_no_rows(tmp_path: Path):
    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            rows = await FakeRowServer(server.address).attach()
            await rows.view()
            workers = await join_all(server.address, 1)
            assert (await rows.view()).num_rows == 8
            late = await FakeWorker(
                server.address, 32, 1, address="10.0.0.2", is_joining=True
            ).join()
            view = await rows.view()
            assert (view.num_rows, view.reason) == (0, "the job has a worker id above 31")
            await close_all(rows, late, *workers)

    run(scenario())
