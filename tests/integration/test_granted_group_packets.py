# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""At the interfaces: no packet of a switch group's member leaves before its granted time."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Sequence
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest

from fabric_process import update_of
from fake_transfers import (
    FakeTransfers,
    dropped,
    expected,
    granted,
    say_nothing,
    server,
    switch_group,
    worker,
)
from frames_to import FramesTo
from group_training import LIMIT_S, GroupTraining
from switchfold.bmv2_topos import Testbed, single_switch, state
from switchfold.hostlib.control.transfers_api import transfers_pb2 as api
from switchfold.hostlib.parameter_server import ParameterServer, ServerOptions
from switchfold.hostlib.parameter_server.switch_groups.options import SwitchGroupOptions
from switchfold.hostlib.parameter_server.transfers import PushOutcome, TransferOptions
from switchfold.hostlib.parameter_server.transfers.update_link import LOOK_S
from time_bound import wait_until

NUM_WORKERS = 3
MEMBERS = (0, 1)
OTHER = 2
"""A worker at the same switch, and in no group."""
NUM_VALUES = 1 << 18
UPDATE_BYTES = 4 * NUM_VALUES
SMALL_BYTES = UPDATE_BYTES // 20
"""More than all control frames of a test, and a small part of an update."""
RATE = 100_000_000
SOON_S = 4.0
HOUR_S = 3600.0
GIVE_UP_S = 60.0
SEED = 5

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
pytestmark = [pytest.mark.root, needs_root, pytest.mark.timeout(900)]


@pytest.fixture
def testbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Testbed]:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    topology = single_switch(NUM_WORKERS + 1, rate_bits_per_s=RATE)
    options = ("--no-route", "600", "--lease", "60")
    with Testbed(
        topology, name=f"test-grouped-{os.getpid()}", controller_options=options
    ) as testbed:
        yield testbed


class Scene(GroupTraining):
    """Rows come from the testbed's controller, and grants from the test."""

    def __init__(self, testbed: Testbed, folder: Path, fake: FakeTransfers) -> None:
        self.fake = fake
        super().__init__(testbed, folder, NUM_VALUES)

    def _serve(self) -> None:
        (address, port), token = self.server_address, self._testbed.endpoint(self._place).token
        credentials = self._testbed.server_credentials
        groups = SwitchGroupOptions(
            controller=self._testbed.controller_address,
            job=self.job.name,
            token=token,
            credentials=str(credentials.folder),
            give_up_s=GIVE_UP_S,
        )
        options = ServerOptions(
            num_workers=NUM_WORKERS,
            switch_groups=groups,
            transfers=self._transfers(self._place),
        )
        self.server = self._fabric.at(
            self._place,
            lambda: ParameterServer(
                options, address=address, port=port, token=token, credentials=credentials
            ),
        )
        self._stack.callback(self.server.close)

    def _transfers(self, number: int) -> TransferOptions:
        return TransferOptions(
            controller=self.fake.address,
            job=self.job.name,
            host=self._testbed.topology.hosts[number].name,
            grant_wait_s=LIMIT_S,
        )

    def watch(self) -> None:
        """Wait until all workers know the switch's rows, and count what they send from now on."""
        wait_until(self._has_rows, "rows of the switch", LIMIT_S)
        self._frames = [self._frames_of(number) for number in range(NUM_WORKERS)]
        server = self.server_address[0]
        self._streams = [self._frames_to(server, number) for number in range(NUM_WORKERS)]
        self._before = [self.sent(number) for number in range(NUM_WORKERS)]

    def _has_rows(self) -> bool:
        told = self.fake.said(server(), "switch_members")
        groups = [each._links[0]._groups for each in self.workers]
        return (
            bool(told)
            and len(told[-1].worker_ids) == NUM_WORKERS
            and all(each.is_offered for each in groups)
            and len({each._lease.generation for each in groups}) == 1
        )

    def _frames_of(self, number: int) -> FramesTo:
        switch = self.workers[number]._links[0]._groups._lease.switch_address
        return self._frames_to(switch, number)

    def _frames_to(self, address: str, number: int) -> FramesTo:
        interface = self._testbed.topology.hosts[number].interface
        made = self._fabric.at(number, lambda: FramesTo(interface, address))
        self._stack.callback(made.close)
        return made

    def to_switch(self, number: int) -> int:
        """Return the bytes of the frames that a worker has sent to the switch, or some of them."""
        return self._frames[number].num_bytes

    def sent_since(self, number: int) -> int:
        """Return how many bytes of all kinds a worker's interface has sent."""
        return self.sent(number) - self._before[number]

    def ask(self) -> list[Future[PushOutcome]]:
        """Push an update of each worker, and wait until all have asked for grants."""
        futures = self.push(SEED)
        for number in range(NUM_WORKERS):
            self.fake.wait_for(worker(number), "requested")
        return futures

    def grant(self, *spans: tuple[float, float, int], start_s: float) -> None:
        """Grant the members a group, which the server begins `start_s` after it hears of it."""
        asked = {
            number: self.fake.said(worker(number), "requested")[0].transfer_id for number in MEMBERS
        }
        hop = api.GroupHop(kind=api.GroupHop.SWITCH, group_id=1, num_members=len(MEMBERS))
        for sequence, (number, transfer) in enumerate(asked.items()):
            self.fake.tell(server(), expected(sequence, number, transfer))
        group = switch_group(1, asked, start_s=start_s, gather_s=start_s + LIMIT_S)
        self.fake.tell(server(), group)
        for sequence, (number, transfer) in enumerate(asked.items()):
            self.fake.tell(worker(number), granted(transfer, sequence, *spans, hop=hop))

    def await_members(self, *, has_begun: bool) -> None:
        """Wait until the members have their grants, and the server begins or waits for the time."""

        def are_there() -> bool:
            if not has_begun:
                return self.server.groups.groups._planned.num_joined == len(MEMBERS)
            joining = [self.workers[number]._links[0]._groups._joining for number in MEMBERS]
            return all(each is not None and each.chunks is not None for each in joining)

        wait_until(are_there, "the members of a group", LIMIT_S)

    def await_heartbeats(self, count: int) -> None:
        """Wait until each worker has said so many more."""
        beats = [len(self.fake.said(worker(n), "heartbeat")) for n in range(NUM_WORKERS)]
        for number, before in enumerate(beats):
            self.fake.wait_for(worker(number), "heartbeat", before + count)

    def expect_answers_in(self, timeout_s: float) -> None:
        """Let workers take the server for lost that says nothing for so long."""
        for number in MEMBERS:
            self.workers[number]._links[0]._timeout_s = timeout_s

    def await_looks(self, count: int) -> None:
        """Wait until each member has looked so many times whether its server is lost."""
        for number in MEMBERS:
            link = self.workers[number]._links[0]
            for _ in range(count):
                timer = link._look_timer
                wait_until(lambda link=link, timer=timer: link._look_timer is not timer, "a look")

    def check_silence(self, numbers: Sequence[int] = range(NUM_WORKERS)) -> None:
        """Check that workers have sent no packet to the switch, and no update to the server."""
        assert [self.to_switch(number) for number in numbers] == [0] * len(numbers)
        # Receipts of models, which have no payload, may be as many bytes as SMALL_BYTES.
        assert max(self._streams[number].num_payload_bytes for number in numbers) < SMALL_BYTES

    def check_sum(self, futures: Sequence[Future[PushOutcome]]) -> None:
        """Check that the members' updates come in a sum of the switch, which is the model."""
        for number in MEMBERS:
            (part,) = futures[number].result(LIMIT_S).parts
            assert part.is_granted
            assert part.is_summed
            assert self.to_switch(number) > 0
            assert self.sent_since(number) >= UPDATE_BYTES
        total = sum(update_of(SEED, number, NUM_VALUES) for number in MEMBERS)
        assert np.array_equal(self.workers[OTHER].get().result(LIMIT_S), total)
        assert self._streams[OTHER].num_payload_bytes > 0, "that request is counted"


@pytest.fixture
def scene(testbed: Testbed, tmp_path: Path) -> Generator[Scene]:
    fake = FakeTransfers(say_nothing, f"unix:{tmp_path}/scheduler")
    with Scene(testbed, tmp_path, fake) as made:
        made.watch()
        yield made
    fake.stop()


def test_no_packet_leaves_before_the_grant_and_none_of_a_dropped_update(scene: Scene) -> None:
    futures = scene.ask()
    scene.await_heartbeats(2)
    scene.check_silence()
    scene.fake.tell(worker(OTHER), dropped(1, "too old"))
    assert futures[OTHER].result(LIMIT_S).drop_reasons == ("too old",)
    scene.check_silence()
    scene.grant((0.0, 1.0, RATE), start_s=0.0)
    scene.check_sum(futures)
    scene.check_silence([OTHER])


@pytest.mark.parametrize("has_begun", [False, True], ids=["server_waits", "server_begins"])
def test_no_packet_leaves_before_the_granted_time(scene: Scene, has_begun: bool) -> None:
    """Even if the server begins the group at once: each member keeps to its grant."""
    scene.expect_answers_in(LOOK_S / 2)
    futures = scene.ask()
    scene.grant((HOUR_S, HOUR_S + 1, RATE), start_s=0.0 if has_begun else HOUR_S)
    scene.await_members(has_begun=has_begun)
    scene.await_heartbeats(2)
    scene.await_looks(3)
    scene.check_silence()
    assert not any(future.done() for future in futures)


@pytest.mark.parametrize("start_s", [0.0, SOON_S], ids=["server_begins", "server_waits"])
def test_packets_leave_when_the_granted_time_has_come(scene: Scene, start_s: float) -> None:
    """What a look finds has left before it, so a slow machine cannot make it seem too early."""
    futures = scene.ask()
    granted_s = time.monotonic()
    scene.grant((SOON_S, SOON_S + 1, RATE), start_s=start_s)
    wait_until(lambda: any(map(scene.to_switch, MEMBERS)), "packets", interval_s=0.001)
    assert time.monotonic() - granted_s >= SOON_S
    scene.check_sum(futures)


def test_no_packet_leaves_between_two_spans(scene: Scene) -> None:
    """The second span is an hour away. The first one allows half of the update."""
    first_s = 8.0
    rate = round(UPDATE_BYTES * 8 / first_s / 2)
    futures = scene.ask()
    spans = (0.0, first_s, rate), (HOUR_S, HOUR_S + 1, RATE)
    scene.grant(*spans, start_s=0.0)
    wait_until(
        lambda: all(scene.sent_since(number) > SMALL_BYTES for number in MEMBERS), "first spans"
    )
    seen = [[-1, -2] for _ in MEMBERS]

    def is_still() -> bool:
        """Return whether three looks a heartbeat apart have seen no packet between them."""
        scene.await_heartbeats(1)
        for number in MEMBERS:
            seen[number].append(scene.to_switch(number))
        return all(len(set(each[-3:])) == 1 for each in seen)

    wait_until(is_still, "packets leave all the time")
    for number in MEMBERS:
        assert SMALL_BYTES < scene.sent_since(number) < UPDATE_BYTES * 3 // 4
    assert not any(future.done() for future in futures)
