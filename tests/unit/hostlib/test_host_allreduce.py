# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Host allreduce: exact reductions by both algorithms, and typed errors when members fail."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopback import LOOPBACK
from peer_group import DOUBLING, GENERATION, HALVING, JOB, RING, Always, PeerGroup
from switchfold.hostlib.control.view import Member
from switchfold.hostlib.errors import (
    MemberLeftError,
    MemberLostError,
    PeerError,
    PeerMismatchError,
    PeerRefusedError,
)
from switchfold.hostlib.hosts import Algorithm, HostAllreduce, LinkCosts
from switchfold.hostlib.hosts.channel import Channel
from switchfold.hostlib.hosts.cost import doubling_steps
from switchfold.hostlib.hosts.values import SEGMENT_VALUES
from switchfold.hostlib.peers import PeerServer
from switchfold.hostlib.peers.frames import (
    HEADER_BYTES,
    NONCE_BYTES,
    Frame,
    FrameKind,
    Greeting,
    Purpose,
)
from switchfold.hostlib.slots.wire import Operation
from time_bound import wait_until

ADD, MAX = Operation.AGGREGATE_ADD, Operation.AGGREGATE_MAX
LOW, HIGH = -(2**31), 2**31 - 1


def check(group: PeerGroup, operation: Operation, inputs: list[np.ndarray]) -> None:
    """Reduce and compare with the exact result."""
    wide = np.stack(inputs).astype(np.int64)
    exact = wide.max(axis=0) if operation is MAX else wide.sum(axis=0)
    has_saturated = bool(((exact < LOW) | (exact > HIGH)).any())
    for reduction in group.reduce(operation, inputs):
        np.testing.assert_array_equal(reduction.values, np.clip(exact, LOW, HIGH))
        assert reduction.has_saturated == has_saturated


lengths = st.integers(0, 40) | st.integers(SEGMENT_VALUES - 1, SEGMENT_VALUES + 1)


@settings(max_examples=25, deadline=None)
@given(
    num_members=st.integers(1, 9),
    costs=st.sampled_from([RING, HALVING, DOUBLING]),
    tensors=st.lists(
        st.tuples(st.sampled_from([ADD, MAX]), lengths, st.sampled_from([2**10, 2**30, 2**31])),
        min_size=1,
        max_size=4,
    ),
    seed=st.integers(0, 2**32 - 1),
)
def test_reduce_is_exact(
    num_members: int, costs: LinkCosts, tensors: list[tuple[Operation, int, int]], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    with PeerGroup(num_members, costs) as group:
        for operation, length, bound in tensors:
            shape = (num_members, length)
            inputs = rng.integers(-bound, bound, shape, np.int64).astype(np.int32)
            check(group, operation, list(inputs))


@pytest.mark.parametrize("costs", [RING, HALVING, DOUBLING])
@pytest.mark.parametrize("num_members", [3, 4, 5])
def test_partial_sums_outside_int32_do_not_matter(num_members: int, costs: LinkCosts) -> None:
    inputs = [np.full(1000, value, np.int32) for value in (HIGH, 1, LOW, 7, -9)[:num_members]]
    with PeerGroup(num_members, costs) as group:
        check(group, ADD, inputs)


@pytest.mark.parametrize("costs", [RING, HALVING, DOUBLING])
def test_reduce_many_segments_and_tensors_at_once(costs: Always) -> None:
    rng = np.random.default_rng(3)
    with PeerGroup(3, costs) as group:
        inputs = rng.integers(-1000, 1000, (6, 3, 5 * SEGMENT_VALUES + 7)).astype(np.int32)
        # Each member submits all tensors before any other member submits one.
        submitted = [
            [group.submit(i, (ADD, MAX)[k % 2], inputs[k, i]) for k in range(6)] for i in range(3)
        ]
        for per_member in submitted:
            for k, reduction in enumerate(group.wait(per_member)):
                expected = inputs[k].max(axis=0) if k % 2 else inputs[k].sum(axis=0)
                np.testing.assert_array_equal(reduction.values, expected)
                assert reduction.algorithm is costs.algorithm


def test_slow_member_is_waited_for() -> None:
    """A member that does not submit for longer than the silence limit is alive all the same."""
    inputs = [np.full(3 * SEGMENT_VALUES, i, np.int32) for i in range(3)]
    with PeerGroup(3, RING, silence_s=0.7) as group:
        # More than the sockets' buffers hold waits for member 2.
        early = [
            [group.submit(i, ADD, np.full(2**21, i, np.int32)) for _ in range(2)] for i in range(2)
        ]
        assert not early[0][0][1].wait(1.5)
        late = [group.submit(2, ADD, np.full(2**21, 2, np.int32)) for _ in range(2)]
        for reduction in group.wait([*early[0], *early[1], *late]):
            assert (reduction.values == 3).all()
        check(group, ADD, inputs)
        assert group.failures == [None] * 3


@pytest.mark.parametrize("costs", [RING, HALVING, DOUBLING])
@pytest.mark.parametrize("is_under_way", [True, False])
def test_dead_member_is_named_by_all(costs: LinkCosts, is_under_way: bool) -> None:
    inputs = [np.full(SEGMENT_VALUES, i, np.int32) for i in range(5)]
    with PeerGroup(5, costs) as group:
        check(group, ADD, inputs)
        if is_under_way:
            for i in (0, 1, 2, 4):
                group.submit(i, ADD, inputs[i])
        group.servers[3].close()  # as the kernel does for a killed process
        for i in (0, 1, 2, 4):
            assert group.failed[i].wait(60)
        for i in (0, 1, 2, 4):
            failure = group.failures[i]
            assert isinstance(failure, MemberLostError)
            assert failure.worker_id == 6
            with pytest.raises(MemberLostError):
                group.paths[i].reduce(ADD, inputs[i], lambda _: None)


def test_member_that_gives_up_the_view_is_not_called_dead() -> None:
    inputs = [np.full(10, i, np.int32) for i in range(3)]
    with PeerGroup(3, RING) as group:
        check(group, ADD, inputs)
        submitted = [group.submit(i, ADD, inputs[i]) for i in (0, 1)]
        group.paths[2].close()
        assert group.failed[0].wait(60)
        failure = group.failures[0]
        assert isinstance(failure, MemberLeftError)
        assert failure.worker_id == 4
        assert not any(done.is_set() for _, done in submitted)


def test_close_after_the_last_reduction_harms_nobody() -> None:
    """Who is done first leaves first; the others still get all values."""
    rng = np.random.default_rng(1)
    for costs in (RING, HALVING, DOUBLING):
        inputs = list(rng.integers(-9, 9, (4, 3 * SEGMENT_VALUES)).astype(np.int32))
        with PeerGroup(4, costs) as group:
            submitted = [group.submit(i, ADD, inputs[i]) for i in range(4)]
            for (_, done), path in zip(submitted, group.paths, strict=True):
                assert done.wait(60)
                path.close()
            for reduction, _ in submitted:
                np.testing.assert_array_equal(reduction.values, np.sum(inputs, axis=0))
            assert group.failures == [None] * 4


def test_a_callback_that_fails_ends_the_host_allreduce() -> None:
    """Whoever waits for the reduction is told, and not left to its timeout."""

    def fail(_: object) -> None:
        raise KeyError("defect")

    with PeerGroup(2, RING) as group:
        group.paths[0].reduce(ADD, np.ones(20, np.int32), fail)
        _, done = group.submit(1, ADD, np.ones(20, np.int32))
        assert group.failed[0].wait(60)
        assert "KeyError('defect')" in str(group.failures[0])
        assert done.wait(60)
        with pytest.raises(PeerError, match="defect"):
            group.submit(0, ADD, np.ones(20, np.int32))


def test_close_ends_at_once_and_for_good() -> None:
    with PeerGroup(2, RING) as group:
        values = np.zeros(2**22, np.int32)
        _, done = group.submit(0, ADD, values)
        group.paths[0].close()
        group.paths[0].close()
        assert not done.wait(0.2)


def test_next_view_waits_for_members_that_enter_later() -> None:
    inputs = [np.full(10, i, np.int32) for i in range(3)]
    with PeerGroup(3, RING) as group:
        check(group, ADD, inputs)
        group.generation += 1
        for i in range(3):
            old = group.paths[i]
            group.paths[i] = group.open_path(i)
            if i == 2:
                group.wait([group.submit(k, ADD, inputs[k]) for k in range(3)])
            old.close()
        assert group.failures == [None] * 3


def test_stale_generation_and_foreign_worker_are_refused() -> None:
    with PeerGroup(2, RING) as group, PeerServer(LOOPBACK) as stranger:
        check(group, ADD, [np.zeros(3, np.int32)] * 2)
        stranger.enter_job(JOB, 6)
        own = Member(worker_id=6, peer_address=LOOPBACK, peer_port=stranger.port)
        for generation, counter in (
            (GENERATION - 1, "refused_generation"),
            (GENERATION, "refused_member"),
        ):
            errors: list[Exception] = []
            path = HostAllreduce(
                stranger,
                generation=generation,
                members=[own, group.members[0]],
                on_failure=errors.append,
                costs=RING,
            )
            wait_until(lambda errors=errors: errors, "the refusal")
            assert isinstance(errors[0], PeerRefusedError)
            assert group.servers[0].counters[counter] == 1
            path.close()
        check(group, ADD, [np.zeros(3, np.int32)] * 2)


@pytest.mark.parametrize(("length", "tag"), [(11, 0), (10, 1)])
def test_different_tensors_are_reported(length: int, tag: int) -> None:
    with PeerGroup(2, RING) as group:
        group.submit(0, ADD, np.zeros(10, np.int32))
        group.submit(1, ADD, np.zeros(length, np.int32), tag)
        wait_until(
            lambda: any(isinstance(failure, PeerMismatchError) for failure in group.failures),
            "the mismatch",
        )


@pytest.mark.parametrize("is_float_first", [False, True])
def test_integers_against_floats_are_reported(is_float_first: bool) -> None:
    """Only floats have a maximum first: each side would wait for a step of the other for ever."""
    with PeerGroup(2, RING) as group:
        check(group, MAX, [np.zeros(2, np.int32)] * 2)
        kinds = [(1, MAX), (0, ADD)] if is_float_first else [(0, ADD), (1, MAX)]
        for member, operation in kinds:
            purpose = Purpose.REDUCE_VALUES if operation is ADD else Purpose.REDUCE_EXPONENTS
            values = np.zeros(10, np.int32)
            tag = 1 << 31 | 7 << 16 | 10
            group.paths[member].reduce(
                operation,
                values,
                lambda _: None,
                tag=tag,
                is_plain=operation is ADD,
                purpose=purpose,
            )
            exponents = cast("Any", group.paths[0])._channels[Purpose.REDUCE_EXPONENTS]
            if operation is MAX and is_float_first:
                wait_until(lambda seen=exponents: seen.early_tags, "the other member's exponents")
        wait_until(lambda: isinstance(group.failures[0], PeerMismatchError), "the mismatch")
        assert "sums floats where this one reduces integers" in str(group.failures[0])


def test_costs_choose_by_size() -> None:
    costs = LinkCosts()
    assert costs.choose(8, 100) is Algorithm.DOUBLING
    assert costs.choose(8, 100_000_000) is Algorithm.RING
    assert costs.choose(2, 100_000_000) is Algorithm.RING
    assert costs.choose(33, 176_000) is Algorithm.HALVING
    assert costs.choose(8, 250_000) is Algorithm.HALVING  # 56 messages in a ring, here 8
    assert costs.choose(8, 1_000_000) is Algorithm.RING
    assert costs.choose(4, 250_000) is Algorithm.RING
    assert [doubling_steps(n) for n in (1, 2, 3, 4, 5, 8, 9)] == [0, 1, 3, 2, 4, 3, 5]


@pytest.mark.parametrize(
    ("costs", "num_members", "num_values"),
    [(RING, 4, 150_000), (HALVING, 4, 300_000), (HALVING, 8, 1000), (DOUBLING, 4, 90_000)],
)
def test_costs_count_the_messages_that_a_member_sends(
    costs: Always, num_members: int, num_values: int
) -> None:
    free = LinkCosts(latency_ns=0, message_ns=1_000_000_000, megabyte_us=0)
    predicted = {
        Algorithm.RING: free.ring_s,
        Algorithm.HALVING: free.halving_s,
        Algorithm.DOUBLING: free.doubling_s,
    }[costs.algorithm](num_members, num_values)
    sent: list[int] = []
    parts = [np.ones(num_values, np.int32) for _ in range(num_members)]
    with PeerGroup(num_members, costs) as group, pytest.MonkeyPatch.context() as patch:
        send = Channel._send

        def count(channel: Channel, position: int, *rest: Any) -> None:
            sent.append(position)
            send(channel, position, *rest)

        patch.setattr(Channel, "_send", count)
        check(group, ADD, parts)
    assert len(sent) == num_members * predicted


member_frames = st.builds(
    Frame,
    kind=st.sampled_from([FrameKind.LANES, FrameKind.PIECE, FrameKind.LOST, FrameKind.HEARTBEAT]),
    payload_bytes=st.sampled_from([0, 4, 40, 80, 400]),
    fields=st.tuples(  # of ValuesFrame
        st.integers(0, 3),
        st.integers(0, 3),
        st.integers(0, 3),
        st.sampled_from([0, 10, 20]),
        st.sampled_from([0, 1, 10, 20]),
        st.sampled_from([20, 21]),
        st.integers(0, 1),
    ),
)


@settings(max_examples=150, deadline=None)
@given(frames=st.lists(member_frames, max_size=6), costs=st.sampled_from([RING, HALVING, DOUBLING]))
def test_member_that_breaks_the_protocol_ends_the_host_allreduce(
    frames: list[Frame], costs: LinkCosts
) -> None:
    """A member with the secret may send wrong sums; it cannot crash or hang the others."""
    failed = threading.Event()
    errors: list[PeerError] = []

    def on_failure(error: PeerError) -> None:
        errors.append(error)
        failed.set()

    with PeerServer(LOOPBACK) as server, socket.create_server((LOOPBACK, 0)) as other:
        server.enter_job(JOB, 0)
        members = [
            Member(worker_id=0, peer_address=LOOPBACK, peer_port=server.port),
            Member(worker_id=1, peer_address=LOOPBACK, peer_port=other.getsockname()[1]),
        ]
        path = HostAllreduce(
            server, generation=GENERATION, members=members, on_failure=on_failure, costs=costs
        )
        done = threading.Event()
        path.reduce(ADD, np.ones(20, np.int32), lambda _: done.set())
        with socket.create_connection((server.address, server.port), 60) as sock:
            nonce = sock.recv(HEADER_BYTES + NONCE_BYTES, socket.MSG_WAITALL)[HEADER_BYTES:]
            proof = Greeting(JOB, GENERATION, 1, 0, Purpose.REDUCE_VALUES).pack("", nonce)
            sock.sendall(Frame(FrameKind.GREETING, payload_bytes=len(proof)).pack() + proof)
            with suppress(OSError):
                for frame in frames:
                    sock.sendall(frame.pack() + bytes(frame.payload_bytes))
        other.close()  # a member that is gone: the host allreduce must end
        assert failed.wait(60)
        assert len(errors) == 1
        assert not done.is_set() or isinstance(errors[0], MemberLostError)
        assert "taking a frame failed" not in str(errors[0])  # no defect of ours
        path.close()
