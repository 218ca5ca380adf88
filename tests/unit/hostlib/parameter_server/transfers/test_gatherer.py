# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""An aggregator's groups in simulated time: what is added, denied, and sent without the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from switchfold.hostlib.control.stations.station import (
    ExpectedMember,
    GatherExpected,
    GrantedSpan,
    UpdateGathered,
)
from switchfold.hostlib.errors import (
    ExchangeTimeoutError,
    HostlibError,
    PeerClosedError,
    PeerMismatchError,
)
from switchfold.hostlib.parameter_server.tables.change import UPDATE_BYTES
from switchfold.hostlib.parameter_server.transfers.gatherer import EARLY_WAIT_S, Gatherer
from switchfold.hostlib.parameter_server.transfers.outgoing import OutgoingUpdate, PartOutcome
from switchfold.hostlib.parameter_server.transfers.update_port import IncomingUpdate
from switchfold.hostlib.peers.frames import CommittedFrame, TransferFrame

KEYS = np.arange(4)
WIDTH = 5
INCARNATION = 9


class HandLoop:
    """Timers that fire when a test says so."""

    def __init__(self) -> None:
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Any:
        timer = delay_s, call
        self.timers.append(timer)

        class Timer:
            def cancel(_) -> None:  # noqa: N805
                if timer in self.timers:
                    self.timers.remove(timer)

        return Timer()

    def post(self, call: Callable[[], None]) -> None:
        call()

    def fire(self, delay_s: float) -> None:
        """Fire all timers of so many seconds."""
        due = [timer for timer in self.timers if timer[0] == delay_s]
        self.timers = [timer for timer in self.timers if timer[0] != delay_s]
        for _, call in due:
            call()


class MemberPort:
    """A member's connection that notes what the member is told."""

    def __init__(self) -> None:
        self.coming: dict[int, IncomingUpdate] = {}
        self.gatherer: Gatherer
        self.denied: dict[int, HostlibError] = {}
        self.committed: list[CommittedFrame] = []
        self.rooms = 0

    def on_denied(self, number: int, error: HostlibError) -> None:
        self.denied[number] = error
        coming = self.coming.pop(number, None)
        if coming is not None:
            self.gatherer.release(coming)

    def on_committed(self, committed: CommittedFrame) -> None:
        self.committed.append(committed)

    def on_room(self) -> None:
        self.rooms += 1

    def answer_enter(self, identity: int, version: int) -> None:
        assert (identity, version) == (0, 0)


class Rig:
    """A gatherer for one server, with a port for each of three members."""

    def __init__(self, **options: Any) -> None:
        self.loop = HandLoop()
        self.sent: list[OutgoingUpdate] = []
        self.told: list[UpdateGathered] = []
        self.ports = [MemberPort() for _ in range(3)]
        loop: Any = self.loop
        self.gatherer = Gatherer(
            loop, 1, forward=self.sent.append, report=self.told.append, **options
        )
        for port in self.ports:
            entered: Any = port
            port.gatherer = self.gatherer
            self.gatherer.enter(entered, INCARNATION)

    def expect(self, *workers: int, gather_s: float = 3.0, **changes: Any) -> None:
        """Tell of a group: transfer 10 + id of each worker."""
        told = GatherExpected(
            group_id=4,
            server_id=0,
            members=tuple(ExpectedMember(number, 10 + number) for number in workers),
            spans=(GrantedSpan(0.0, 1.0, 8_000_000),),
            gather_s=gather_s,
        )
        self.gatherer.on_expected(told._replace(**changes))

    def begin(self, number: int, keys: Any = KEYS, **changes: Any) -> IncomingUpdate:
        """Let the first bytes of a member's update come; all its values are 1 + its id."""
        values = np.full((len(keys), WIDTH), 1 + number, np.float32)
        content = np.asarray(keys, np.int64).tobytes() + values.tobytes()
        head = TransferFrame(
            number=20 + number,
            open_from=20,
            transfer_id=10 + number,
            version=7 + number,
            sequence=100 - number,
            factor=1.0,
            table=1,
            num_keys=len(keys),
            num_bytes=len(content),
            is_granted=True,
        )._replace(**changes)
        port: Any = self.ports[number]
        update = IncomingUpdate(number, INCARNATION, head, 0.0, False, port)
        assert self.gatherer.reserve(update)
        update.payload = memoryview(bytearray(UPDATE_BYTES) + content)
        self.ports[number].coming[head.number] = update
        return update

    def come(self, *numbers: int, keys: Any = KEYS, **changes: Any) -> None:
        for number in numbers:
            update = self.begin(number, keys, **changes)
            del self.ports[number].coming[update.head.number]
            self.gatherer.arrive(update)

    def check_sum(self, members: Sequence[int]) -> OutgoingUpdate:
        """Check the one sum that was sent; return it."""
        (total,) = self.sent
        values = np.frombuffer(total.payload, np.float32, offset=8 * total.num_keys)
        assert (values == sum(1 + number for number in members)).all()
        assert np.frombuffer(total.payload, np.int64, total.num_keys).tolist() == KEYS.tolist()
        ordered = sorted(members, reverse=True)  # places fall with the id
        assert [member.worker_id for member in total.summed] == ordered
        assert [member.number for member in total.summed] == [20 + n for n in ordered]
        assert {member.open_from for member in total.summed} == {20}
        assert total.version == 7 + min(members)
        assert (total.shard, total.table) == (0, 1)
        return total

    def check_empty(self) -> None:
        """Check that nothing is kept in memory."""
        own = self.gatherer
        assert own._held_bytes == 0
        assert [len(each) for each in (own._groups, own._early, own._coming)] == [0, 0, 0]


@pytest.mark.parametrize("is_early", [False, True])
def test_a_complete_group_is_sent_and_members_learn_of_its_end(is_early: bool) -> None:
    rig = Rig()
    steps = [lambda: rig.expect(0, 1, 2), lambda: rig.come(1, 0)]
    for step in reversed(steps) if is_early else steps:
        step()
    assert not rig.sent
    rig.come(2)
    total = rig.check_sum([0, 1, 2])
    assert total.rate is not None
    assert {told.worker_id for told in rig.told} == {0, 1, 2}
    assert {told.group_id for told in rig.told} == {4}
    assert not [timer for timer in rig.loop.timers if timer[0] == 3.0]
    total.done(PartOutcome(shard=0, version=33))
    assert [[each.number for each in port.committed] for port in rig.ports] == [[20], [21], [22]]
    rig.check_empty()


def test_a_sum_that_fails_is_denied_to_all_members() -> None:
    rig = Rig()
    rig.expect(0, 1)
    rig.come(0, 1)
    error = PeerClosedError("closed")
    rig.check_sum([0, 1]).done(error)
    assert [port.denied for port in rig.ports] == [{20: error}, {21: error}, {}]
    rig.check_empty()


def test_a_sum_leaves_without_what_is_missing() -> None:
    """A member that is under way, and one that comes later, are denied."""
    rig = Rig()
    rig.expect(0, 1, 2)
    rig.come(0)
    rig.begin(1)
    rig.loop.fire(3.0)
    rig.check_sum([0])
    assert isinstance(rig.ports[1].denied[21], ExchangeTimeoutError)
    rig.come(2)
    assert isinstance(rig.ports[2].denied[22], ExchangeTimeoutError)
    assert rig.gatherer.counters["partial_sums"] == 1
    rig.sent[0].done(PartOutcome(shard=0, version=1))
    rig.check_empty()


def test_a_group_to_which_nobody_comes_sends_nothing() -> None:
    rig = Rig()
    rig.expect(0, 1)
    rig.loop.fire(3.0)
    assert not rig.sent
    assert rig.gatherer.counters["partial_sums"] == 0
    rig.check_empty()


def test_an_update_of_an_unknown_group_is_denied_after_a_while() -> None:
    rig = Rig()
    rig.come(0)
    assert not rig.ports[0].denied
    rig.loop.fire(EARLY_WAIT_S)
    assert isinstance(rig.ports[0].denied[20], ExchangeTimeoutError)
    rig.check_empty()


def test_the_wait_of_an_early_update_ends_with_its_group() -> None:
    rig = Rig()
    rig.come(0)
    rig.expect(0, 1)
    rig.loop.fire(EARLY_WAIT_S)
    assert not rig.ports[0].denied
    rig.come(1)
    rig.check_sum([0, 1])


@pytest.mark.parametrize(
    "changes",
    [
        {"table": 2},
        {"num_keys": 2},
        {"num_keys": 0},
        {"num_keys": 1000},
        {"keys": KEYS[::-1]},
        {"keys": [5, 6, 6, 7]},
    ],
    ids=["table", "width", "no keys", "too many keys", "falling keys", "equal keys"],
)
def test_what_cannot_be_added_is_denied(changes: dict[str, Any]) -> None:
    rig = Rig()
    rig.expect(0, 1, 2)
    rig.come(0)
    rig.come(1, **changes)
    assert isinstance(rig.ports[1].denied[21], PeerMismatchError)
    rig.come(2)
    rig.check_sum([0, 2])


@pytest.mark.parametrize("num_keys", [0, 1000])
def test_a_first_update_that_is_none_is_denied(num_keys: int) -> None:
    rig = Rig()
    rig.expect(0, 1, 2)
    rig.come(0, num_keys=num_keys)
    assert isinstance(rig.ports[0].denied[20], PeerMismatchError)
    rig.come(1, 2)
    rig.check_sum([1, 2]).done(PartOutcome(shard=0, version=2))
    rig.check_empty()


def test_updates_of_different_keys_are_added_by_key() -> None:
    rig = Rig()
    rig.expect(0, 1, 2)
    for number, keys in enumerate(([1, 3], [2, 3, 9], [1, 9])):
        rig.come(number, keys=keys)
    (total,) = rig.sent
    keys = np.frombuffer(total.payload, np.int64, total.num_keys)
    values = np.frombuffer(total.payload, np.float32, offset=8 * total.num_keys)
    assert keys.tolist() == [1, 2, 3, 9]
    expected = np.repeat(np.float32([1 + 3, 2, 1 + 2, 2 + 3]), WIDTH)
    assert values.tolist() == expected.tolist()
    assert rig.gatherer._held_bytes == total.payload.nbytes, "members' memory is free"
    total.done(PartOutcome(shard=0, version=3))
    assert [len(port.committed) for port in rig.ports] == [1, 1, 1]
    rig.check_empty()


def test_sums_that_no_update_may_have_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 5 * (8 + 4 * WIDTH)
    module = "switchfold.hostlib.parameter_server.transfers.gathered_sum"
    monkeypatch.setattr(f"{module}.MAX_BATCH_BYTES", most)
    rig = Rig()
    rig.expect(0, 1, 2)
    rig.come(0)
    rig.come(1, keys=KEYS + 2)
    assert isinstance(rig.ports[1].denied[21], PeerMismatchError)
    rig.come(2, keys=KEYS + 1)
    (total,) = rig.sent
    assert total.payload.nbytes == most


def test_a_second_word_of_a_group_changes_nothing() -> None:
    rig = Rig()
    rig.expect(0, 1)
    rig.expect(0, 1)
    rig.come(0, 1)
    rig.expect(0, 1)
    rig.check_sum([0, 1])
    rig.come(0)
    assert 20 in rig.ports[0].denied, "it has come before"


def test_a_group_for_no_server_is_not_gathered() -> None:
    rig = Rig()
    rig.expect(0, 1, server_id=1)
    rig.come(0, 1)
    rig.loop.fire(EARLY_WAIT_S)
    assert not rig.sent
    assert [len(port.denied) for port in rig.ports] == [1, 1, 0]


def test_memory_is_bounded_and_freed() -> None:
    rig = Rig(most_bytes=200)
    rig.expect(0, 1)
    first = rig.begin(0)
    port: Any = rig.ports[1]
    second = IncomingUpdate(1, INCARNATION, first.head, 0.0, False, port)
    assert not rig.gatherer.reserve(second)
    rig.gatherer.release(first)
    assert rig.ports[1].rooms == 1
    assert rig.gatherer.reserve(second)
