# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Drills with two controllers: the leader is killed, frozen, or cut off while a job sums.

In each, the sums go on and stay exact, the other controller leads, workers that know the first
address alone find it, and the switch itself refuses what the old leader writes. How long that takes
is a benchmark's business.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from controller_pair import ControllerPair, ControllerProcess
from job_workers import WorkerProcess, Workers
from postgres_server import PostgresServer, postgres_server
from switchfold.controller.api.operator_client import OperatorClient
from time_bound import wait_until

_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def server() -> Generator[PostgresServer]:
    with postgres_server() as made:
        yield made


@pytest.fixture
def pair(tmp_path: Path, server: PostgresServer) -> Generator[ControllerPair]:
    with ControllerPair(tmp_path, server, f"pair{next(_NUMBERS)}") as made:
        yield made


@contextmanager
def summing(pair: ControllerPair) -> Generator[list[WorkerProcess]]:
    """Run a job of two workers on the pair's first two hosts; they know the first controller."""
    shown = OperatorClient(pair.first.address).show_controller
    wait_until(lambda: len(shown().controllers) == 2, "the leader knows of its standby")
    with Workers(pair, "train", 2) as workers:  # pyright: ignore[reportArgumentType]
        for worker in workers:
            worker.next()
        yield list(workers)


def check_leader(
    pair: ControllerPair, leader: ControllerProcess, workers: list[WorkerProcess], old_term: int
) -> None:
    """Check that the job goes on, that its workers are at the leader, and who may write."""
    for worker in workers:
        worker.next()
    assert leader.term > old_term
    code, text = pair.write(old_term)
    assert code is grpc.StatusCode.PERMISSION_DENIED
    assert f"election_id {old_term} is not the primary's" in text
    assert pair.write(leader.term)[0] is grpc.StatusCode.OK
    client = OperatorClient(leader.address)

    def are_attached() -> bool:
        shown = client.show_job("train").workers
        return len(shown) == 2 and all(worker.state == "joined" for worker in shown)

    wait_until(are_attached, lambda: f"both workers: {client.show_job('train').workers}")
    # A worker leaves: the change of view is planned, installed and told by the leader.
    workers[1].leave()
    workers[0].until_members(0)


def test_leader_killed(pair: ControllerPair):
    with summing(pair) as workers:
        before = pair.first.term
        pair.first.kill()
        pair.second.until_leader()
        check_leader(pair, pair.second, workers, before)
        # The one that comes back stands by, and a worker that knows it alone joins a new job.
        pair.start(pair.first)
        pair.first.until_standby()
        place = pair.endpoint(2).environment("next")
        place |= {"SWITCHFOLD_WORKER_ID": "0", "SWITCHFOLD_NUM_WORKERS": "1"}
        with Workers(pair, "next", 1, {0: place}) as others:  # pyright: ignore[reportArgumentType]
            for worker in others:
                worker.next()


def test_leader_frozen(pair: ControllerPair):
    with summing(pair) as workers:
        before = pair.first.term
        pair.first.freeze()
        pair.second.until_leader()
        check_leader(pair, pair.second, workers, before)
        pair.first.go_on()
        pair.first.until_standby()
        for worker in workers[:1]:
            worker.next()
        assert pair.second.stop() == 0
        pair.first.until_leader(2)
        assert pair.first.term > pair.second.term


def test_leader_cut_off_from_the_database(pair: ControllerPair):
    with summing(pair) as workers:
        before = pair.first.term
        pair.first.database.cut()
        pair.second.until_leader()
        pair.first.until_standby()
        check_leader(pair, pair.second, workers, before)
        pair.first.database.mend()
        assert pair.second.stop() == 0
        pair.first.until_leader(2)


def test_leader_cut_off_from_the_switch(pair: ControllerPair):
    with summing(pair) as workers:
        before = pair.first.term
        pair.first.switch.cut()
        pair.second.until_leader()
        check_leader(pair, pair.second, workers, before)
        pair.first.until_standby()


def test_database_gone_for_both(pair: ControllerPair, server: PostgresServer):
    with summing(pair) as workers:
        before = pair.first.term
        server.stop()
        pair.first.until_standby()
        for worker in workers:
            worker.next()
        server.start()
        wait_until(
            lambda: pair.second.times_ready == 1 or pair.first.times_ready == 2,
            lambda: f"a leader: {pair.first.said} {pair.second.said}",
        )
        leader = pair.second if pair.second.times_ready else pair.first
        check_leader(pair, leader, workers, before)


def test_controllers_do_not_call_each_other(pair: ControllerPair):
    """Being cut off from each other cannot hurt them: there is nothing to cut."""
    with summing(pair):
        ports = {
            int(controller.address.rpartition(":")[2]) for controller in (pair.first, pair.second)
        }
        for controller in (pair.first, pair.second):
            sockets = _established_to(controller.pid)
            assert sockets, "the database and the switch"
            assert not sockets & ports


def _established_to(pid: int) -> set[int]:
    """Return the remote ports of a process's TCP connections."""
    links = (os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd"))
    own = {link[8:-1] for link in links if link.startswith("socket:[")}
    ports: set[int] = set()
    for kind in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{kind}").read_text("ascii").splitlines()[1:]:
            fields = line.split()
            if fields[9] in own and fields[3] == "01":
                ports.add(int(fields[2].rpartition(":")[2], 16))
    return ports
