# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Rows for switch groups are used only in rounds that no packet from before can be of."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from group_rows import FIRST_ROW, GroupRowLink
from loopback import LOOPBACK
from row_switch import RowSwitch
from switchfold.hostlib.control.row_server_link import MAX_ROW_SERVERS, RowServerRequest
from switchfold.hostlib.hot_rows.row_packets import RowPackets
from switchfold.hostlib.parameter_server.switch_groups.lease import GroupLease, newest_round
from switchfold.hostlib.peers.event_loop import EventLoop
from switchfold.hostlib.peers.frames import GroupLeaseFrame
from switchfold.hostlib.slots.wire import Operation, Outcome, view_datagrams
from time_bound import wait_until

SERVER_ID = 31
NUM_ROWS = 4


@pytest.fixture
def switch() -> Generator[RowSwitch]:
    with RowSwitch(num_workers=3) as switch:
        yield switch


class Scene:
    """A lease on a loop of its own."""

    def __init__(self, switch: RowSwitch) -> None:
        self.loop = EventLoop("lease")
        self.link = GroupRowLink(switch, NUM_ROWS)
        self.changes: list[bool] = []
        self.packets: list[NDArray[np.void]] = []

        def make() -> None:
            self.lease = GroupLease(
                self.loop,
                (LOOPBACK, 0),
                SERVER_ID,
                on_change=lambda: self.changes.append(self.lease.is_ready),
                on_packets=lambda packets: self.packets.append(packets.copy()),
            )
            request = RowServerRequest(
                job="job",
                server_id=SERVER_ID,
                identity=bytes(16),
                local=self.lease.local,
                rows_wanted=NUM_ROWS,
            )
            self.link.make(
                "none",
                request,
                on_view=self.lease.on_view,
                on_installed=self.lease.on_installed,
            )
            self.lease.start(self.link)
            self.link.start()

        self.loop.run(make)

    def do(self, call: Any, *arguments: Any) -> Any:
        """Call something in the loop's thread; return its result."""
        results: list[Any] = []
        self.loop.run(lambda: results.append(call(*arguments)))
        return results[0]

    def wait(self) -> None:
        wait_until(lambda: self.lease.is_ready, "no rows")

    def take_all(self) -> None:
        """Wait until the lease has every answer: what was asked again has several."""
        switch = self.link.switch
        switch.drain()
        wait_until(
            lambda: self.lease.counters["hot_received"] == switch.passed["to_servers"], "answers"
        )

    def close(self) -> None:
        self.loop.stop(self.lease.close)


@pytest.fixture
def scene(switch: RowSwitch) -> Generator[Scene]:
    scene = Scene(switch)
    yield scene
    scene.close()


def push(switch: RowSwitch, lease: GroupLeaseFrame, row: int, round_: int, worker: int = 0) -> None:
    """Have a worker contribute to a round for two workers, as a group's member does."""
    packets = RowPackets(
        job_id=switch.job_id,
        generation=switch.generation,
        worker_id=worker,
        worker_bitmap=1 << worker,
        num_workers=2,
        values_per_packet=32,
    )
    numbers = [np.array([each], np.uint32) for each in (row, lease.epoch, round_)]
    packet = view_datagrams(packets.probe(*numbers), 32)[0]
    header = packet["header"]
    header["operation"], header["expected"] = Operation.AGGREGATE_ADD, 2
    with switch.changed:
        switch._pass(packet, None)


def test_rows_are_usable_when_all_copies_have_answered(scene: Scene) -> None:
    scene.wait()
    switch = scene.link.switch
    assert switch.passed["probe"] >= 2 * NUM_ROWS  # what waits long is asked again
    rows = scene.link.sets[0]
    assert rows["row"].tolist() == [FIRST_ROW + n for n in range(NUM_ROWS)]
    assert len(set(rows["epoch"].tolist())) == 1
    assert rows["epoch"][0] >= MAX_ROW_SERVERS
    assert rows["epoch"][0] % MAX_ROW_SERVERS == SERVER_ID
    assert scene.do(scene.lease.frame, 2) == GroupLeaseFrame(
        generation=switch.generation,
        tree_id=switch.job_id,
        switch_address=switch.endpoint.address,
        switch_udp_port=switch.endpoint.udp_port,
        child_id=2,
        worker_bitmap=4,
        values_per_packet=32,
        first_row=FIRST_ROW,
        num_rows=NUM_ROWS,
        epoch=int(rows["epoch"][0]),
        first_round=1,
    )
    assert scene.do(scene.lease.frame, 3) == GroupLeaseFrame()


def test_questions_and_answers_may_be_lost(switch: RowSwitch) -> None:
    switch.loss = 0.5
    scene = Scene(switch)
    scene.wait()
    assert switch.passed["probe"] > 2 * NUM_ROWS
    scene.close()


def test_groups_follow_each_other_in_the_stream(scene: Scene) -> None:
    scene.wait()
    places = [scene.do(scene.lease.take, count, 2) for count in (3, 10, 1)]
    assert [place.first for place in places] == [0, 3, 13]


def test_another_process_begins_above_all_rounds_that_the_switch_has_seen(scene: Scene) -> None:
    scene.wait()
    first = scene.do(scene.lease.frame, 0)
    push(scene.link.switch, first, FIRST_ROW + 1, 40)
    push(scene.link.switch, first, FIRST_ROW + 2, 39)
    other = Scene(scene.link.switch)  # its link puts its own rows in place of the others
    other.wait()
    second = other.do(other.lease.frame, 0)
    assert second.first_round == 41
    assert second.epoch != first.epoch
    cold = scene.link.switch.outcomes[Outcome.COLD]
    push(scene.link.switch, first, FIRST_ROW + 1, 50)  # of the process before
    assert scene.link.switch.outcomes[Outcome.COLD] == cold + 1
    other.close()


def test_a_silent_switch_is_asked_again_and_its_rounds_are_used_no_more(scene: Scene) -> None:
    scene.wait()
    scene.do(scene.lease.take, 5 * NUM_ROWS + 1, 2)  # rounds 1 to 6
    switch = scene.link.switch
    scene.take_all()
    switch.stop()
    scene.do(scene.lease.check)
    assert scene.changes == [True, False]
    assert scene.do(scene.lease.frame, 0) == GroupLeaseFrame()
    switch.restart()  # with no memory of the rounds
    scene.wait()
    assert scene.do(scene.lease.frame, 0).first_round == 7
    assert scene.do(scene.lease.take, 1, 2).first == 0


def test_a_new_view_has_rows_of_its_own(scene: Scene) -> None:
    scene.wait()
    first = scene.do(scene.lease.frame, 0)
    scene.do(scene.lease.take, 100, 2)
    scene.do(scene.link.begin_view)
    wait_until(lambda: scene.changes == [True, False, True], "no rows in the new view")
    second = scene.do(scene.lease.frame, 0)
    assert (second.generation, second.first_round) == (first.generation + 1, 1)
    assert second.epoch != first.epoch
    scene.do(scene.link.on_view, scene.link.view())  # the same one again
    assert scene.do(scene.lease.frame, 0) == second


def test_workers_at_other_switches_and_views_without_rows_have_no_groups(scene: Scene) -> None:
    scene.wait()
    scene.link.elsewhere = {1}
    scene.do(scene.link.begin_view)
    wait_until(lambda: len(scene.changes) == 3, "no rows in the new view")
    assert set(scene.do(lambda: scene.lease.members)) == {0, 2}
    scene.link.num_rows = 0
    scene.do(scene.link.begin_view)
    assert scene.changes[-1] is False
    assert len(scene.link.sets) == 2


def test_the_end_gives_the_rows_back(switch: RowSwitch) -> None:
    scene = Scene(switch)
    scene.wait()
    assert switch.rows
    scene.close()
    assert not switch.rows


def test_packets_other_than_answers_are_passed_on(scene: Scene) -> None:
    scene.wait()
    lease = scene.do(scene.lease.frame, 0)
    for worker in range(2):
        push(scene.link.switch, lease, FIRST_ROW, 1, worker)

    def sums() -> list[NDArray[np.void]]:
        headers = [header for packets in scene.packets for header in packets["header"]]
        return [header for header in headers if header["operation"] == Operation.RESULT]

    wait_until(sums, "no sum")
    assert sums()[0]["worker_bitmap"] == 3


@pytest.mark.parametrize(
    ("rounds", "newest"),
    [([3, 1, 2], 3), ([0, 0], 0), ([(1 << 32) - 1, 2, 0], 2), ([7], 7), ([1 << 31, 5], 1 << 31)],
)
def test_newest_of_rounds_that_wrap_around(rounds: list[int], newest: int) -> None:
    assert newest_round(np.array(rounds, np.uint32)) == newest
