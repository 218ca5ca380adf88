# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Members add vectors up: by grants, without a scheduler, and between the two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fake_transfers import Caller, FakeTransfers, say_nothing, worker
from granted_sums import SumPolicy
from member_scene import (
    BRIEF_S,
    WAIT_S,
    MemberScene,
    check_sums,
    error_of,
    reduce_all,
    sum_in_order,
    vectors_of,
)
from switchfold.hostlib.control.transfers_api import transfers_pb2 as api
from switchfold.hostlib.errors import (
    ConfigurationError,
    EmptyTensorError,
    PeerClosedError,
    TensorError,
    TensorTooLargeError,
    UnsupportedDtypeError,
)
from switchfold.hostlib.parameter_server import ClientOptions
from switchfold.hostlib.parameter_server.transfers import FabricMember, TransferOptions
from switchfold.hostlib.parameter_server.transfers.allreduces.member_message import MemberKind
from switchfold.hostlib.parameter_server.transfers.outgoing import OutgoingUpdate
from time_bound import wait_until

VALUES = 5003


def counted(member: FabricMember, name: str) -> int:
    return member.counters[f"{name}_allreduces"]


def is_noted_or_begun(member: FabricMember) -> bool:
    """Return whether a call waits for other members, or does not ask any longer."""
    pending, running = member._allreduces._pending, member._allreduces._running
    is_begun = running is not None and running.is_begun
    return is_begun or (pending is not None and pending.is_noted) or call_is_over(member)


def call_is_over(member: FabricMember) -> bool:
    return member.counters["allreduces"] > 0 and member._allreduces._running is None


@pytest.mark.parametrize("count", [2, 3, 5])
def test_granted_sums_have_the_bytes_of_the_sum_in_order(count: int) -> None:
    with MemberScene(SumPolicy(count), count) as scene:
        members = scene.all()
        calls = [vectors_of(count, VALUES, seed) for seed in range(3)]
        made = [reduce_all(members, vectors) for vectors in calls]
        for futures, vectors in zip(made, calls, strict=True):
            check_sums(futures, vectors)
        for number, member in enumerate(members):
            assert (member.counters["allreduces"], counted(member, "granted")) == (3, 3)
            assert not counted(member, "ungranted") + counted(member, "failed")
            ended = scene.fake.wait_for(worker(number), "allreduce_ended", 3)
            asked = scene.fake.said(worker(number), "allreduce_requested")
            assert [each.transfer_id for each in ended] == [each.transfer_id for each in asked]
            assert [(each.number, each.size_bytes) for each in asked] == [
                (call, 4 * VALUES) for call in (1, 2, 3)
            ]
            assert {each.num_members for each in asked} == {count}


@pytest.mark.parametrize("num_values", [1, 2, 7, VALUES])
def test_members_go_on_without_a_scheduler(num_values: int) -> None:
    """Short vectors have fewer values than there are members."""
    with MemberScene(None, 3) as scene:
        members = scene.all()
        for seed in range(2):
            vectors = vectors_of(3, num_values, seed)
            check_sums(reduce_all(members, vectors), vectors)
        assert [counted(member, "ungranted") for member in members] == [2, 2, 2]


def test_members_go_on_if_the_scheduler_says_nothing() -> None:
    with MemberScene(say_nothing, 2, grant_wait_s=BRIEF_S) as scene:
        members = scene.all()
        vectors = vectors_of(2, VALUES)
        check_sums(reduce_all(members, vectors), vectors)
        assert sum(counted(member, "ungranted") for member in members) == 2

        def withdrawn() -> list[api.TransferWithdrawn]:
            said = [scene.fake.said(worker(number), "withdrawn") for number in range(2)]
            return [each for own in said for each in own]

        wait_until(lambda: any(each.is_sent_ungranted for each in withdrawn()), "no report")
        for number in range(2):
            said = scene.fake.said(worker(number), "allreduce_requested")
            # It asks unless it has heard of the other one before.
            scene.fake.wait_for(worker(number), "withdrawn", len(said))


def test_a_member_that_is_noted_waits_for_the_others() -> None:
    """The scheduler is alive, so its answer may take longer than the bound."""
    with MemberScene(SumPolicy(2), 2) as scene:
        first, second = scene.all()
        vectors = vectors_of(2, VALUES)
        early = first.all_reduce(vectors[0])
        allreduces = first._allreduces
        wait_until(lambda: allreduces._pending and allreduces._pending.is_noted, "not noted")
        pending = allreduces._pending
        assert pending is not None
        for _ in range(3):
            first._peers.loop.run(lambda: allreduces._requests._expire(pending))
        check_sums([early, second.all_reduce(vectors[1])], vectors)
        assert (counted(first, "granted"), counted(second, "granted")) == (1, 1)


def test_all_follow_a_member_that_goes_on_without_a_grant() -> None:
    with MemberScene(SumPolicy(3), 3) as scene:
        lonely = scene.scheduler(say_nothing, BRIEF_S)
        members = [scene.member(0), scene.member(1), scene.member(2, lonely)]
        vectors = vectors_of(3, VALUES)
        check_sums(reduce_all(members, vectors), vectors)
        assert [counted(member, "ungranted") for member in members] == [1, 1, 1]
        for number in 0, 1:
            said = scene.fake.said(worker(number), "allreduce_requested")
            # It asks unless it has heard of the other one before.
            scene.fake.wait_for(worker(number), "withdrawn", len(said))


def test_granted_members_begin_again_with_one_that_has_no_grant() -> None:
    policy = SumPolicy(3)
    policy.needed = 2
    with MemberScene(policy, 3) as scene:
        lonely = scene.scheduler(say_nothing, BRIEF_S)
        members = [scene.member(0), scene.member(1), scene.member(2, lonely)]
        vectors = vectors_of(3, VALUES)
        futures = reduce_all(members[:2], vectors[:2])
        wait_until(lambda: all(counted(each, "granted") for each in members[:2]), "no grants")
        futures.append(members[2].all_reduce(vectors[2]))
        check_sums(futures, vectors)
        assert [counted(member, "ungranted") for member in members] == [1, 1, 1]
        for number in 0, 1:
            scene.fake.wait_for(worker(number), "allreduce_ended")


def test_a_scheduler_that_is_killed_meanwhile_is_no_harm() -> None:
    policy = SumPolicy(2)
    with MemberScene(policy, 2) as scene:
        members = scene.all()
        for member in members:
            requests = member._allreduces._requests
            wait_until(lambda requests=requests: requests._is_registered, "no registration")
            requests._grant_wait_s = BRIEF_S
        vectors = vectors_of(2, VALUES)
        early = members[0].all_reduce(vectors[0])
        scene.fake.wait_for(worker(0), "allreduce_requested")
        scene.fake.stop()
        check_sums([early, members[1].all_reduce(vectors[1])], vectors)
        assert sum(counted(member, "ungranted") for member in members) == 2


def test_members_do_not_wait_for_grants_of_an_earlier_scheduler() -> None:
    """The one after it notes the requests, and never has those of all members."""
    policy = SumPolicy(2)
    policy.needed = 3
    with MemberScene(policy, 2, grant_wait_s=BRIEF_S) as scene:
        members = scene.all()
        vectors = vectors_of(2, VALUES)
        futures = reduce_all(members, vectors)
        for member in members:
            wait_until(lambda member=member: is_noted_or_begun(member), "no request")
        scene.fake.break_streams()
        check_sums(futures, vectors)
        assert [counted(member, "ungranted") for member in members] == [1, 1]


def drop_a_leg(granted: api.AllreduceGranted) -> None:
    del granted.legs[0]


def cut_a_value(granted: api.AllreduceGranted) -> None:
    granted.pieces[0].stop_byte -= 2
    granted.pieces[1].start_byte -= 2


def leave_a_gap(granted: api.AllreduceGranted) -> None:
    granted.pieces[0].stop_byte -= 4


def end_early(granted: api.AllreduceGranted) -> None:
    granted.pieces[-1].stop_byte -= 4


def name_a_stranger(granted: api.AllreduceGranted) -> None:
    granted.pieces[0].root_id = 9


def give_no_rate(granted: api.AllreduceGranted) -> None:
    granted.legs[0].spans[0].rate_bits_per_s = 0


def give_no_time(granted: api.AllreduceGranted) -> None:
    granted.legs[0].spans[0].end_s = float("nan")


@pytest.mark.parametrize(
    "spoil",
    [
        drop_a_leg,
        cut_a_value,
        leave_a_gap,
        end_early,
        name_a_stranger,
        give_no_rate,
        give_no_time,
    ],
)
def test_a_grant_that_makes_no_sense_is_not_followed(spoil: Any) -> None:
    class Spoilt(SumPolicy):
        def grant(self, worker_id: int, asked: api.AllreduceRequested) -> api.AllreduceGranted:
            granted = super().grant(worker_id, asked)
            if worker_id == 0:
                spoil(granted)
            return granted

    with MemberScene(None, 2) as scene:
        fake = scene.scheduler(Spoilt(2))
        members = [scene.member(number, fake) for number in range(2)]
        vectors = vectors_of(2, VALUES)
        check_sums(reduce_all(members, vectors), vectors)
        assert [counted(member, "ungranted") for member in members] == [1, 1]


def test_nothing_leaves_before_its_granted_time() -> None:
    """The spans begin in an hour; then another member goes on without a grant."""
    policy = SumPolicy(2)
    policy.span = (3600.0, 3601.0)
    with MemberScene(policy, 2) as scene:
        members = scene.all()
        vectors = vectors_of(2, VALUES)
        futures = reduce_all(members, vectors)
        wait_until(lambda: all(counted(each, "granted") for each in members), "no grants")
        for member in members:
            updates: list[OutgoingUpdate | None] = []
            links = member._allreduces._links
            # The grant was counted, and its parts made, before it.
            member._allreduces._loop.run(
                lambda updates=updates, links=links: updates.extend(
                    update for _, update in links._open.values()
                )
            )
            assert updates
            assert all(update is not None and not update.is_begun for update in updates)
            # No sum could be made meanwhile: these are the parts.
            assert {update.table for update in updates if update} == {MemberKind.PART}
        members[0]._peers.loop.run(members[0]._allreduces._go_directly)
        check_sums(futures, vectors)


def test_repeated_grants_and_grants_of_nothing_change_nothing() -> None:
    class Twice(SumPolicy):
        def __call__(
            self, fake: FakeTransfers, caller: Caller, message: api.StationMessage
        ) -> None:
            super().__call__(fake, caller, message)
            if message.HasField("allreduce_ended"):
                ended = api.AllreduceRequested(
                    transfer_id=message.allreduce_ended.transfer_id, size_bytes=4 * VALUES
                )
                stale = self.grant(caller.station_id, ended)
                fake.tell(caller, api.SchedulerMessage(allreduce_granted=stale))
                stale.transfer_id += 100
                fake.tell(caller, api.SchedulerMessage(allreduce_granted=stale))

    with MemberScene(Twice(2), 2) as scene:
        members = scene.all()
        for seed in range(3):
            vectors = vectors_of(2, VALUES, seed)
            check_sums(reduce_all(members, vectors), vectors)
        back = scene.fake.wait_for(worker(0), "withdrawn")
        assert all(each.is_sent_ungranted for each in back)


def test_nan_and_infinity_are_added_as_floats_are() -> None:
    vectors = [np.ones(8, np.float32) for _ in range(2)]
    vectors[0][0], vectors[0][1], vectors[1][1] = np.nan, np.inf, -np.inf
    with MemberScene(SumPolicy(2), 2) as scene:
        futures = reduce_all(scene.all(), vectors)
        for future in futures:
            found = future.result(WAIT_S)
            assert np.isnan(found[:2]).all()
            assert (found[2:] == 2).all()


def test_the_array_may_change_after_the_call() -> None:
    with MemberScene(SumPolicy(2), 2) as scene:
        members = scene.all()
        vectors = vectors_of(2, VALUES)
        wanted = sum_in_order(vectors)
        first = members[0].all_reduce(vectors[0])
        vectors[0][:] = 0
        second = members[1].all_reduce(vectors[1][::1])
        for future in first, second:
            assert future.result(WAIT_S).tobytes() == wanted.tobytes()


def test_values_beyond_the_memory_wait_and_all_are_added() -> None:
    """Only what is added at once gets memory, so it takes turns by member."""
    with MemberScene(SumPolicy(4), 4) as scene:
        members = scene.all()
        for member in members:
            member._allreduces.receiver._most_bytes = 1
        for seed in range(3):
            vectors = vectors_of(4, VALUES, seed)
            check_sums(reduce_all(members, vectors), vectors)
        assert [member._allreduces.receiver._held_bytes for member in members] == [0] * 4


def test_what_makes_no_sense_is_refused_at_once() -> None:
    with MemberScene(SumPolicy(2), 2) as scene:
        member = scene.member(0)
        for wrong, error in (
            (np.ones(3, np.float64), UnsupportedDtypeError),
            (np.ones(3, ">f4"), UnsupportedDtypeError),
            (np.ones((2, 2), np.float32), TensorError),
            (np.ones(0, np.float32), EmptyTensorError),
            (np.broadcast_to(np.float32(1), (1 << 26) + 1), TensorTooLargeError),
        ):
            with pytest.raises(error):
                member.all_reduce(wrong)  # type: ignore[arg-type]
        assert not member.counters["allreduces"]
        options = TransferOptions(controller="127.0.0.1:1", job="sums", host="h0")
        for members, worker_id in ((scene.members[:1], 0), (scene.members, 2)):
            with pytest.raises(ConfigurationError, match="members"):
                FabricMember(members, options, ClientOptions(worker_id=worker_id, insecure=True))
        gathering = TransferOptions(controller="127.0.0.1:1", job="sums", host="h0", aggregate=True)
        with pytest.raises(ConfigurationError, match="aggregate"):
            FabricMember(scene.members, gathering, ClientOptions(worker_id=0, insecure=True))


def test_a_member_that_is_closed_fails_its_calls() -> None:
    with MemberScene(SumPolicy(2), 2) as scene:
        member = scene.member(0)
        vectors = vectors_of(3, VALUES)
        futures = [member.all_reduce(vector) for vector in vectors]
        member.close()
        member.close()
        assert all(isinstance(error_of(future), PeerClosedError) for future in futures)
        assert counted(member, "failed") == 3
        with pytest.raises(PeerClosedError):
            member.all_reduce(vectors[0])
