# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Members of allreduces that die, leave, are late, or make other calls: all others hear who."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fake_transfers import Caller, FakeTransfers, say_nothing, worker
from granted_sums import SumPolicy, failed
from member_process import MemberProcess
from member_scene import (
    BRIEF_S,
    WAIT_S,
    MemberScene,
    check_sums,
    error_of,
    reduce_all,
    vectors_of,
)
from switchfold.hostlib.control.transfers_api import transfers_pb2 as api
from switchfold.hostlib.errors import (
    ExchangeTimeoutError,
    HostlibError,
    JobRefusedError,
    MemberLostError,
    PeerMismatchError,
    PeerRefusedError,
    PeerUnreachableError,
    UpdateRefusedError,
)
from switchfold.hostlib.parameter_server.transfers import FabricMember
from switchfold.hostlib.parameter_server.transfers.allreduces.member_message import MemberKind
from switchfold.hostlib.parameter_server.transfers.allreduces.vector_pieces import PIECES
from time_bound import wait_until

VALUES = 50_000
SLOW_BITS_PER_S = 800
"""A piece takes more than two minutes."""


@pytest.mark.parametrize("killed", [0, 2])
def test_a_member_that_is_killed_while_vectors_travel_is_named(killed: int) -> None:
    """All members are roots of a piece."""
    policy = SumPolicy(3, rate_bits_per_s=SLOW_BITS_PER_S)
    with MemberScene(policy, 3) as scene:
        rest = [number for number in range(3) if number != killed]
        members = {number: scene.member(number) for number in rest}
        transfers = {"controller": scene.fake.address, "host": f"h{killed}"}
        made = {"members": scene.members, "worker_id": killed, "num_values": VALUES}
        with MemberProcess(transfers=transfers, **made) as process:
            futures = [
                member.all_reduce(np.ones(VALUES, np.float32)) for member in members.values()
            ]
            wait_until(
                lambda: all(each.counters["granted_allreduces"] for each in members.values()),
                "no grants",
            )
            process.kill()
            for future in futures:
                error = error_of(future)
                assert isinstance(error, MemberLostError), error
                assert error.worker_id == killed
                assert f"worker {killed}" in str(error)
        for number in rest:
            scene.fake.wait_for(worker(number), "allreduce_ended")


def test_a_member_that_is_killed_before_its_call_is_named() -> None:
    """There is no scheduler, and the others wait for its values."""
    with MemberScene(None, 3) as scene:
        members = [scene.member(number) for number in range(2)]
        transfers = {"controller": scene.fake.address, "host": "h2", "grant_wait_s": BRIEF_S}
        made = {"members": scene.members, "worker_id": 2, "num_values": 0}
        with MemberProcess(transfers=transfers, **made) as process:
            futures = [member.all_reduce(np.ones(VALUES, np.float32)) for member in members]
            for member in members:
                receiver = member._allreduces.receiver
                wait_until(lambda receiver=receiver: 2 in receiver._ports, "no connection")
                links = member._allreduces._links
                wait_until(lambda links=links: links._links[2]._has_entered, "no answer")
                wait_until(lambda member=member: has_sent_all(member), "values have not come")
            process.kill()
            for future in futures:
                error = error_of(future)
                assert isinstance(error, MemberLostError), error
                assert error.worker_id == 2


def test_a_member_that_leaves_is_named_and_others_may_go_on() -> None:
    with MemberScene(None, 2) as scene:
        first, second = scene.all()
        vectors = vectors_of(2, VALUES)
        check_sums(reduce_all([first, second], vectors), vectors)
        early = first.all_reduce(vectors[0])
        wait_until(lambda: first.counters["ungranted_allreduces"] == 2, "not begun")
        wait_until(lambda: has_sent_all(first), "not sent")
        second.close()
        error = error_of(early)
        assert isinstance(error, MemberLostError)
        assert error.worker_id == 1


def test_a_member_that_leaves_after_its_sum_harms_nobody() -> None:
    for _ in range(5):
        with MemberScene(SumPolicy(3), 3) as scene:
            members = scene.all()
            vectors = vectors_of(3, VALUES)
            futures = reduce_all(members, vectors)
            for future, member in zip(futures, members, strict=True):
                future.result(WAIT_S)
                member.close()
            check_sums(futures, vectors)


def in_loop(member: FabricMember, read: Callable[[], bool]) -> bool:
    """Return what a member's state is like, read in the thread that changes it."""
    found: list[bool] = []
    member._allreduces._loop.run(lambda: found.append(read()))
    return found[0]


def has_sent_all(member: FabricMember) -> bool:
    return in_loop(member, lambda: not member._allreduces._links.receivers)


def are_only_missing(member: FabricMember, worker_id: int) -> bool:
    """Return whether a member's own sums lack the values of one member alone."""

    def read() -> bool:
        running = member._allreduces._running
        if running is None or not running.is_begun or member._allreduces._links.receivers:
            return False
        return all(each.missing == {worker_id} for each in running._sums.values())

    return in_loop(member, read)


def cut(member: FabricMember, receiver: int) -> None:
    """End the connection by which a member sends to another one."""
    link = member._allreduces._links._links[receiver]._link
    assert link is not None
    connection = link._connection
    assert connection is not None
    broken = PeerUnreachableError("cut by the test")
    member._peers.loop.run(lambda: connection.close(broken))


def test_a_connection_that_breaks_fails_the_call_of_all_and_the_next_one_works() -> None:
    """Both members live, and one of them has nothing to send any more: it must hear of it."""
    with MemberScene(None, 3) as scene:
        members = scene.all()
        vectors = vectors_of(3, VALUES)
        futures = [
            member.all_reduce(vector) for member, vector in zip(members[:2], vectors, strict=False)
        ]
        for member in members[:2]:
            wait_until(lambda member=member: are_only_missing(member, 2), "not sent")
        cut(members[0], 1)
        futures.append(members[2].all_reduce(vectors[2]))
        for future in futures:
            error = error_of(future)
            assert isinstance(error, MemberLostError), error
            assert "worker 0 is lost, or its connection broke" in str(error)
            assert error.worker_id == 0
        check_sums(reduce_all(members, vectors), vectors)


def test_values_of_an_earlier_process_are_not_added() -> None:
    """It ended before the other member had made the call, and makes it again by other values."""
    with MemberScene(None, 2) as scene:
        first, second = scene.all()
        before, *vectors = vectors_of(3, VALUES)
        second.all_reduce(before)
        count = 1 + PIECES  # that it goes on without a grant, and its values
        wait_until(lambda: len(first._allreduces._early) == count, "values have not come")
        incarnation = first._allreduces._early[0].update.incarnation
        second.close()
        again = scene.member(1)
        future = again.all_reduce(vectors[1])

        def have_come() -> bool:
            found = [*first._allreduces._early]
            return sum(each.update.incarnation != incarnation for each in found) == count

        wait_until(have_come, "values have not come again")
        check_sums([first.all_reduce(vectors[0]), future], vectors)


def test_a_member_that_does_not_call_in_time_is_named() -> None:
    with MemberScene(None, 3) as scene:
        members = scene.all()
        for member in members:  # their connections may take longer
            member._allreduces._timeout_s = 1.0
        vectors = vectors_of(3, VALUES)
        errors = [error_of(future) for future in reduce_all(members[:2], vectors[:2])]
        for error in errors:
            assert isinstance(error, ExchangeTimeoutError), error
            assert 2 in error.worker_ids
            assert "workers 2" in str(error) or ", 2" in str(error)
        late = members[2]._allreduces
        wait_until(
            lambda: any(each.kind is MemberKind.FAILURE for each in list(late._early)), "no word"
        )
        # It learns that its call has failed as soon as it makes it.
        assert isinstance(error_of(members[2].all_reduce(vectors[2])), ExchangeTimeoutError)


def test_the_scheduler_names_whom_it_waits_for_in_vain() -> None:
    def answer(fake: FakeTransfers, caller: Caller, message: api.StationMessage) -> None:
        if message.HasField("allreduce_requested"):
            asked = message.allreduce_requested
            reason = list(wanted)[asked.number - 1]
            fake.tell(caller, failed(asked, reason, "a text", 2, 1))

    wanted: dict[api.AllreduceFailed.Reason, type[HostlibError]] = {
        api.AllreduceFailed.REFUSED: UpdateRefusedError,
        api.AllreduceFailed.MISMATCH: PeerMismatchError,
        api.AllreduceFailed.MISSING: ExchangeTimeoutError,
        api.AllreduceFailed.LOST: MemberLostError,
        api.AllreduceFailed.UNKNOWN: UpdateRefusedError,
    }
    with MemberScene(answer, 3) as scene:
        member = scene.member(0)
        for number, kind in enumerate(wanted.values(), 1):
            error = error_of(member.all_reduce(np.ones(4, np.float32)))
            assert type(error) is kind
            assert "a text" in str(error)
            assert member.counters["failed_allreduces"] == number
            if isinstance(error, ExchangeTimeoutError):
                assert error.worker_ids == [2, 1]
            if isinstance(error, MemberLostError):
                assert error.worker_id == 2
        assert member.counters["refused_allreduces"] == 2


def test_a_member_that_had_sent_everything_may_be_gone() -> None:
    """The scheduler's word of it ends no call that needs nothing more of it."""

    class Alarm(SumPolicy):
        def grant(self, worker_id: int, asked: api.AllreduceRequested) -> api.AllreduceGranted:
            self.asked[worker_id] = asked
            return super().grant(worker_id, asked)

        asked: dict[int, api.AllreduceRequested]

    policy = Alarm(2)
    policy.asked = {}
    with MemberScene(policy, 2) as scene:
        members = scene.all()
        vectors = vectors_of(2, VALUES)
        futures = reduce_all(members, vectors)
        check_sums(futures, vectors)
        lost = failed(policy.asked[0], api.AllreduceFailed.LOST, "gone", 1)
        scene.fake.tell(worker(0), lost)
        check_sums(reduce_all(members, vectors), vectors)
        assert not members[0].counters["failed_allreduces"]


def test_vectors_of_different_lengths_are_named_without_a_scheduler() -> None:
    with MemberScene(None, 3) as scene:
        members = scene.all()
        vectors = [np.ones(count, np.float32) for count in (300, 300, 301)]
        for future in reduce_all(members, vectors):
            error = error_of(future)
            assert isinstance(error, PeerMismatchError), error
            assert "worker 2" in str(error)
        equal = vectors_of(3, 300)
        check_sums(reduce_all(members, equal), equal)


def test_a_member_that_was_started_again_is_told_so() -> None:
    """Its calls have other numbers; the others wait for it, and name it."""
    with MemberScene(None, 2) as scene:
        first, second = scene.all()
        vectors = vectors_of(2, VALUES)
        for _ in range(2):
            check_sums(reduce_all([first, second], vectors), vectors)
        second.close()
        first._allreduces._timeout_s = 2.0
        again = scene.member(1)
        behind = error_of(again.all_reduce(vectors[1]))
        assert isinstance(behind, PeerMismatchError)
        assert "worker 1 makes allreduce 1, and worker 0 has made 2" in str(behind)
        alone = error_of(first.all_reduce(vectors[0]))
        assert isinstance(alone, ExchangeTimeoutError | MemberLostError), alone
        assert "1" in str(alone)


def test_a_worker_that_the_scheduler_refuses_fails_and_tells_the_others() -> None:
    import grpc  # noqa: PLC0415 - the status alone

    with MemberScene(SumPolicy(2), 2) as scene:
        strict = scene.scheduler(say_nothing)
        strict.refuse = (grpc.StatusCode.INVALID_ARGUMENT, "no such host")
        first, second = scene.member(0), scene.member(1, strict)
        vectors = vectors_of(2, VALUES)
        futures = reduce_all([first, second], vectors)
        refused = error_of(futures[1])
        assert isinstance(refused, JobRefusedError)
        later = error_of(second.all_reduce(vectors[1]))
        assert isinstance(later, JobRefusedError)
        # If the refusal came before the call, nobody tells the other member: it waits for calls.
        second.close()
        first.close()
        assert error_of(futures[0]) is not None


def test_strangers_are_refused() -> None:
    with MemberScene(None, 2) as scene:
        first = scene.member(0, token="one")
        second = scene.member(1, token="another")
        for future in reduce_all([first, second], vectors_of(2, VALUES)):
            assert isinstance(error_of(future), PeerRefusedError | MemberLostError)
