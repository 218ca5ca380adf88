# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Drills with two controllers: the leader is killed, frozen, or cut off while a job sums.

In each, the sums go on and stay exact, the other controller leads, workers that joined with one
address find it, and the switch itself refuses what the old leader writes. How long that takes
is a benchmark's business.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import grpc
import pytest

from controller_pair import ControllerPair, ControllerProcess, leaves_and_root
from job_workers import WorkerProcess, Workers
from postgres_server import PostgresServer, postgres_server
from switchfold.controller.api.operator_api import operator_pb2 as pb
from switchfold.controller.api.operator_client import OperatorClient
from switchfold.controller.errors import ControllerUnreachableError
from time_bound import wait_until


@pytest.fixture(scope="module")
def server() -> Generator[PostgresServer]:
    with postgres_server() as made:
        yield made


@pytest.fixture(scope="module")
def started(
    tmp_path_factory: pytest.TempPathFactory, server: PostgresServer
) -> Generator[ControllerPair]:
    with ControllerPair(tmp_path_factory.mktemp("pair"), server, "pair") as made:
        yield made


@pytest.fixture
def pair(started: ControllerPair) -> ControllerPair:
    started.settle()
    return started


def roles(pair: ControllerPair) -> tuple[ControllerProcess, ControllerProcess, int]:
    """Return who leads now, who stands by, and the term.

    On a busy machine the leader that a test has begun with may have lost its lease since.
    """
    shown: list[pb.Controller] = []

    def is_known() -> bool:
        pair.until_one_leads()
        shown.append(pair.leader.shown())
        return shown[-1].role == "leader"

    wait_until(is_known, "a leader")
    return pair.leader, pair.standby, shown[-1].term


@contextmanager
def summing(pair: ControllerPair) -> Generator[list[WorkerProcess]]:
    """Run a job of two workers on the pair's first two hosts."""
    with Workers(pair, "train", 2) as workers:  # pyright: ignore[reportArgumentType]
        yield list(workers)


def check_takeover(
    pair: ControllerPair,
    candidates: Sequence[ControllerProcess],
    workers: list[WorkerProcess],
    old_term: int,
) -> None:
    """Check that the job goes on, that its workers are at the leader, and who may write.

    On a busy machine a leader may lose its lease again, and begin a later term: each condition is
    waited for, and only what no term allows is asserted.
    """

    def leads_in_a_later_term() -> bool:
        shown = [each.shown() for each in candidates]
        term = max(each.term if each.role == "leader" else 0 for each in shown)
        if term <= old_term:
            return False
        return all(has_passed_to(switch.name, term) for switch in pair.topology.switches)

    def has_passed_to(switch: str, term: int) -> bool:
        # The new leader may lead for a moment before it has reached the switch.
        code, text = pair.write(old_term, switch)
        is_denied = code is grpc.StatusCode.PERMISSION_DENIED
        is_refused = is_denied and f"election_id {old_term} is not the primary's" in text
        return is_refused and pair.write(term, switch)[0] is grpc.StatusCode.OK

    def said() -> str:
        return f"{[each.said for each in candidates]}"

    wait_until(leads_in_a_later_term, lambda: f"a leader that may write: {said()}")
    for worker in workers:
        worker.next()
    client = OperatorClient(",".join(each.address for each in candidates))

    def are_attached() -> bool:
        try:
            shown = client.show_job("train").workers
        except ControllerUnreachableError:
            return False  # none leads at the moment
        return len(shown) == 2 and all(worker.state == "joined" for worker in shown)

    wait_until(are_attached, lambda: f"both workers: {said()}")
    # A worker leaves: the change of view is planned, installed and told by the leader.
    workers[1].leave()
    workers[0].until_members(0)


def test_leader_killed(pair: ControllerPair):
    with summing(pair) as workers:
        old, new, term = roles(pair)
        old.kill()
        check_takeover(pair, (new,), workers, term)
        # The one that comes back stands by, and a worker that knows it alone joins a new job.
        pair.start(old)
        pair.until_one_leads()
        place = pair.endpoint(2).environment("next")
        place["SWITCHFOLD_CONTROLLER"] = pair.standby.address
        place |= {"SWITCHFOLD_WORKER_ID": "0", "SWITCHFOLD_NUM_WORKERS": "1"}
        with Workers(pair, "next", 1, {0: place}) as others:  # pyright: ignore[reportArgumentType]
            for worker in others:
                worker.next()


def test_leader_of_trees_killed(tmp_path: Path, server: PostgresServer):
    """The job sums on over leaves and a spine, and its views change under the new leader."""
    with ControllerPair(tmp_path, server, "trees", leaves_and_root()) as pair:
        pair.settle()
        job = Workers(pair, "train", 2)  # pyright: ignore[reportArgumentType]
        with job as workers:
            old, new, term = roles(pair)
            before = {"s1": {0}, "s2": {1}, "s3": set[int]()}
            wait_until(lambda: tree_of(old) == before, "the job's tree")
            old.kill()
            check_takeover(pair, (new,), workers, term)
            # The leaf of the worker that is left.
            wait_until(lambda: tree_of(new).keys() == {"s1"}, "a tree of one leaf")
            pair.leader, pair.standby = new, old  # whom the next worker is told of
            joined = job.join(1)
            for worker in (workers[0], joined):
                worker.until_members(0, 1)
            wait_until(lambda: tree_of(new) == before, "the tree of before")


def tree_of(leader: ControllerProcess) -> dict[str, set[int]]:
    """Return the switches of the job's tree, and the workers at each; nothing if none leads."""
    try:
        (view,) = OperatorClient(leader.address).show_job("train").views[-1:]
    except ControllerUnreachableError:
        return {}
    return {node.switch: set(node.workers) for tree in view.trees for node in tree.nodes}


def test_leader_killed_while_a_job_waits_for_workers(pair: ControllerPair):
    """The job ends with it; its workers, who know both addresses, join again by themselves."""
    both = f"{pair.leader.address},{pair.standby.address}"
    with ExitStack() as stack:

        def start(worker_id: int) -> WorkerProcess:
            extra = {"SWITCHFOLD_CONTROLLER": both}
            worker = WorkerProcess(pair, worker_id, 2, "late", **extra)  # pyright: ignore[reportArgumentType]
            stack.callback(worker.close)
            return worker

        early = start(0)

        def is_waiting() -> bool:
            try:
                return "late" in [job.name for job in OperatorClient(both).list_jobs()]
            except ControllerUnreachableError:
                return False  # none leads at the moment

        wait_until(is_waiting, "a job that waits")
        old, new, _ = roles(pair)
        old.kill()
        new.until("leader")
        late = start(1)
        assert early.next()["members"] == late.next()["members"] == [0, 1]


def test_leader_frozen(pair: ControllerPair):
    with summing(pair) as workers:
        old, new, term = roles(pair)
        old.freeze()
        check_takeover(pair, (new,), workers, term)
        old.go_on()
        pair.until_one_leads()
        workers[0].next()
        # Nothing that it did when it woke up has made it primary again.
        assert pair.write(term)[0] is grpc.StatusCode.PERMISSION_DENIED


def test_leader_cut_off_from_the_database(pair: ControllerPair):
    with summing(pair) as workers:
        old, new, term = roles(pair)
        old.database.cut()
        old.until("standby")
        check_takeover(pair, (new,), workers, term)
        # Its lease runs out by its own clock; that the database is silent takes longer to find.
        wait_until(lambda: "the lease cannot be looked at" in old.said, lambda: old.said)
        old.database.mend()


def test_leader_cut_off_from_the_switch(pair: ControllerPair):
    with summing(pair) as workers:
        old, new, term = roles(pair)
        old.switch.cut()
        check_takeover(pair, (new,), workers, term)
        old.until("standby")
        old.switch.mend()


def test_leader_stopped(pair: ControllerPair):
    """It gives its lease back, and the other one leads at once."""
    with summing(pair) as workers:
        old, new, term = roles(pair)
        assert old.stop() == 0
        check_takeover(pair, (new,), workers, term)


def test_database_gone_for_both(pair: ControllerPair, server: PostgresServer):
    with summing(pair) as workers:
        old, new, term = roles(pair)
        both = (old, new)
        server.stop()
        old.until("standby")
        for worker in workers:
            worker.next()
        server.start()
        check_takeover(pair, both, workers, term)


def test_controllers_do_not_call_each_other(pair: ControllerPair):
    """Being cut off from each other cannot hurt them: there is nothing to cut."""
    both = (pair.leader, pair.standby)
    ports = {int(controller.address.rpartition(":")[2]) for controller in both}
    for controller in both:
        known = {controller.database.port, controller.switch.port}
        wait_until(
            lambda pid=controller.pid, known=known: known <= _established_to(pid),
            "the controller is not connected to its database and its switch",
        )
        assert not _established_to(controller.pid) & ports


def _sockets_of(pid: int) -> set[str]:
    """Return the inodes of a process's sockets, but for those that it closes meanwhile."""
    inodes: set[str] = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):
            link = os.readlink(f"/proc/{pid}/fd/{name}")
            if link.startswith("socket:["):
                inodes.add(link[8:-1])
    return inodes


def _established_to(pid: int) -> set[int]:
    """Return the remote ports of a process's TCP connections."""
    own = _sockets_of(pid)
    ports: set[int] = set()
    for kind in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{kind}").read_text("ascii").splitlines()[1:]:
            fields = line.split()
            if fields[9] in own and fields[3] == "01":
                ports.add(int(fields[2].rpartition(":")[2], 16))
    return ports
