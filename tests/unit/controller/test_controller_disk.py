# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A full disk: no change is half done, no slot stays in use, and no restart is needed after it."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode

from controller_fixtures import (
    FakeWorker,
    fake_switch,
    join_all,
    make_config,
    run,
    running_controller,
)
from fake_member import FakeMember
from fake_row_server import FakeRowServer
from faulty_disk import FaultyDisk
from switchfold.bmv2_topos.config import source_root
from switchfold.controller.__main__ import run as run_command
from switchfold.controller.database.database import Database
from switchfold.controller.errors import DatabaseError
from switchfold.controller.jobs.job import JobState
from switchfold.controller.jobs.job_request import JobRequest
from switchfold.controller.server import ControllerServer
from switchfold.hostlib.control.session_api import session_pb2 as pb

NUM_TRANSACTIONS = 40
"""More than the scene below takes when all is well."""


async def until(is_so: Callable[[], Any], what: str) -> None:
    """Wait for a condition that no message reports."""
    try:
        async with asyncio.timeout(60):
            while not is_so():
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"not within 60 s: {what}") from None


async def play(server: ControllerServer) -> list[str]:
    """Start a job, let a worker join and another leave; return the errors of those that failed."""
    members = [await mute_member(server, number, slots_wanted=128) for number in (0, 1)]
    for member in members:
        await member.until(lambda member=member: member.reply or member.ended)
    if all(member.reply for member in members):
        members.append(await mute_member(server, 2, is_joining=True))
        await members[2].until(lambda: members[2].reply or members[2].ended)
        for member in members[:2]:
            await member.send(barrier=pb.Barrier(name="b", use=1))
        await members[1].send(leave=pb.Leave(position=0))
        await members[1].until(lambda: members[1].ended)
    told = [member.ended for member in members if member.ended and not member.reply]
    for member in members:
        await member.close()
    return told


async def mute_member(server: ControllerServer, worker_id: int, **fields: Any) -> FakeMember:
    """Start a member without heartbeats."""
    member = await FakeMember(server.address, worker_id, 2, **fields).join()
    member.hold_heart()
    return member


def check_nothing_is_left(server: ControllerServer, database: Database) -> None:
    """Check that the job has left no trace but its record."""
    assert server.membership.live_job("train") is None
    assert database.jobs(is_live_only=True) == []
    assert database.live_views() == []


def database_of(server: ControllerServer) -> Database:
    return server._database  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("at_commit", [False, True], ids=["statement", "commit"])
def test_row_server_that_comes_while_the_disk_is_full_gets_its_rows_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_commit: bool
):
    disk = FaultyDisk(monkeypatch, at_commit=at_commit)

    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            workers = await join_all(server.address, 2)
            first = (await workers[0].join_reply()).view
            disk.fill()
            rows = await FakeRowServer(server.address).attach()
            assert (await rows.view()).generation == first.generation
            await until(lambda: disk.num_failed >= 2, "another try")
            disk.mend()
            view = await rows.view()
            assert view.generation > first.generation
            assert view.num_rows == 8
            await rows.close()
            for worker in workers:
                await worker.close()

    run(scenario())


@pytest.mark.parametrize("at_commit", [False, True], ids=["statement", "commit"])
def test_disk_that_is_full_from_any_write_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_commit: bool
):
    disk = FaultyDisk(monkeypatch, at_commit=at_commit)
    monkeypatch.setattr("switchfold.controller.server._DATABASE_RETRY_S", 0.05)

    async def scenario(folder: Path, good: int) -> int:
        """Play with `good` transactions that succeed; return how many failed."""
        folder.mkdir()
        async with running_controller(folder, lease_s=60.0, reconnect_grace_s=0.1) as (server, _):
            database, disk.num_failed = database_of(server), 0
            disk.good = disk.num_transactions + good
            told = await play(server)
            for text in told:
                assert text.startswith(str(StatusCode.RESOURCE_EXHAUSTED)), text
                assert "database or disk is full; check the path" in text
            num_failed = disk.num_failed
            disk.mend()
            await until(lambda: server.membership.live_job("train") is None, "end of the job")
            await server.membership.settled()
            check_nothing_is_left(server, database)
            await until(lambda: not database.failure, "the next try to write")
            assert not database.is_behind
            (worker,) = await join_all(server.address, 1, slots_wanted=1024)
            assert (await worker.join_reply()).view.trees[0].slot_count == 1024
            await worker.close()
            await until(lambda: server.membership.live_job("train") is None, "end of the next job")
            await server.membership.settled()
        again = Database(folder / "controller.sqlite3")
        assert again.live_views() == []
        assert {job.state for job in again.jobs()} <= {JobState.ENDED}
        again.close()
        return num_failed

    for good in range(NUM_TRANSACTIONS):
        if not run(scenario(tmp_path / str(good), good)):
            assert good > 8, "the scene writes more often than that"
            return
    raise AssertionError("the scene has more transactions than were tried")


def test_job_that_ends_while_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    disk = FaultyDisk(monkeypatch)

    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, fake):
            database = database_of(server)
            entries = sum(fake.tables().values())
            workers = await join_all(server.address, 2, slots_wanted=128)
            for worker in workers:
                await worker.join_reply()
            disk.fill()
            assert (await command(capsys, server, "job", "stop", "train"))[0] == 0
            check_nothing_is_left(server, database)
            assert database.is_behind
            assert sum(fake.tables().values()) == entries, "it has left the switch"
            assert json.loads((await command(capsys, server, "job", "list", "--json"))[1]) == []
            refused = await FakeWorker(server.address, 0, 1, job_name="next").knock()
            code, details = await refused.refusal()
            assert (code, "disk is full" in details) == (StatusCode.RESOURCE_EXHAUSTED, True)
            assert [job.name for job in database.jobs()] == ["train"]
            code, out = await command(capsys, server, "doctor", "--json")
            (check,) = [c for c in json.loads(out)["checks"] if c["name"] == "database"]
            assert (code, check["status"]) == (1, "fail")
            assert "in memory only" in check["text"]
            assert "make room" in check["remedy"]
            disk.mend()
            await until(lambda: not database.failure, "the next try to write")
            code, out = await command(capsys, server, "doctor", "--json")
            (check,) = [c for c in json.loads(out)["checks"] if c["name"] == "database"]
            assert check["status"] == "ok"
            for worker in (*workers, refused):
                await worker.close()

    run(scenario())
    again = Database(tmp_path / "controller.sqlite3")
    assert [(job.name, job.reason) for job in again.jobs()] == [
        ("train", "stopped by the operator")
    ]
    again.close()


def test_job_goes_on_without_a_lost_worker_once_that_can_be_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    disk = FaultyDisk(monkeypatch)

    async def scenario() -> None:
        limits_s = {"lease_s": 60.0, "reconnect_grace_s": 0.1, "no_route_s": 60.0}
        async with running_controller(tmp_path, **limits_s) as (server, _):
            members = [await mute_member(server, number) for number in (0, 1)]
            for member in members:
                await member.until(lambda member=member: member.reply)
            disk.fill()
            await members[1].close()
            live = server.membership.live_job("train")
            assert live is not None
            await until(lambda: 1 not in live.leases and disk.num_failed > 2, "tries to go on")
            assert members[0].commits == []
            disk.mend()
            await members[0].until_members(0)
            assert not database_of(server).is_behind
            await members[0].close()

    run(scenario())
    again = Database(tmp_path / "controller.sqlite3")
    *_, view = again.live_views()  # the previous view may still be there
    assert [member.worker_id for member in view.members] == [0]
    again.close()


async def command(
    capsys: pytest.CaptureFixture[str], server: ControllerServer, *arguments: str
) -> tuple[int, str]:
    """Run a command line on the controller; return exit code and output."""
    capsys.readouterr()
    words = [*arguments, "--controller", server.address]
    code = await asyncio.to_thread(run_command, words)
    return code, capsys.readouterr().out


def test_operator_hears_that_a_link_could_not_be_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    disk = FaultyDisk(monkeypatch)

    async def scenario() -> None:
        async with running_controller(tmp_path) as (server, _):
            disk.fill()
            words = ["link", "set", "s1", "down", "--switch", "--controller", server.address]
            code = await asyncio.to_thread(run_command, words)
            err = capsys.readouterr().err
            assert (code, err.startswith("error: database ")) == (1, True), err
            assert "disk is full; check the path" in err
            assert "s1" in server.fabric_state.fabric.switches, "nothing has changed"

    run(scenario())


def test_database_that_cannot_be_written_keeps_its_promises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    disk = FaultyDisk(monkeypatch)
    database = Database(tmp_path / "state.sqlite3")
    job = database.create_job(JobRequest(name="kept", num_workers=1))
    disk.fill()
    for write in (
        database.allocate_generation,
        lambda: database.allocate_tree_id(()),
        lambda: database.create_job(JobRequest(name="lost", num_workers=1)),
        lambda: database.start_job(job.job_number, {0: b"x"}),
        lambda: database.store_resume_digest(job.job_number, 0, b"x"),
        lambda: database.set_down("s1", is_down=True),
    ):
        with pytest.raises(DatabaseError, match="disk is full"):
            write()
    assert [each.name for each in database.jobs()] == ["kept"]
    assert (database.down(), database.resume_digests(job.job_number)) == ([], {})
    assert (database.job(job.job_number).state, database.is_behind) == (JobState.WAITING, False)
    database.release_barrier(job.job_number, "b", 3)
    assert database.is_behind
    assert database.end_job(job.job_number, "enough").state is JobState.ENDED
    with pytest.raises(DatabaseError, match="disk is full"):
        database.create_job(JobRequest(name="after what the file lacks", num_workers=1))
    disk.mend()
    assert (
        database.create_job(JobRequest(name="next", num_workers=1)).job_number == job.job_number + 1
    )
    assert not database.is_behind
    database.close()
    again = Database(tmp_path / "state.sqlite3")
    assert [(each.name, str(each.state)) for each in again.jobs()] == [
        ("kept", "ended"),
        ("next", "waiting"),
    ]
    again.close()


def test_file_that_must_not_grow(tmp_path: Path):
    """The same on a real file: the kernel refuses every write of the controller's process."""

    async def scenario() -> None:
        async with fake_switch() as fake:
            config = make_config(tmp_path, fake)
            listen = f"unix:{tmp_path}/c.sock"
            (tmp_path / "controller.toml").write_text(
                f'listen = "{listen}"\ndatabase = "{config.database}"\n'
                f'program_dir = "{config.program_dir}"\n'
                "lease_s = 60.0\nconnect_timeout_s = 60.0\n"
                f'[[switch]]\nname = "s1"\naddress = "{fake.address}"\n'
            )
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "switchfold.controller", "controller", "run",
                "--config", str(tmp_path / "controller.toml"), "--insecure",
                cwd=source_root(),
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
            assert process.stdout is not None
            assert (await process.stdout.readline()).startswith(b"ready")
            place = {"ingress_port": 1, "mac": "02:00:00:00:00:01"}
            unlimited = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, unlimited[1]))
            refused = await FakeWorker(listen, 0, 1, **place).knock()
            code, details = await refused.refusal()
            assert code is StatusCode.RESOURCE_EXHAUSTED, details
            assert "check the path, its rights and the disk" in details
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, unlimited)
            worker = await FakeWorker(listen, 0, 1, slots_wanted=1024, **place).join()
            assert (await worker.join_reply()).view.trees[0].slot_count == 1024
            for each in (refused, worker):
                await each.close()
            process.terminate()
            assert await process.wait() == 0

    run(scenario())
