# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Priorities at the hosts: the bytes of packets, what is refused, and the order of tensors."""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import ExitStack
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from fake_switch import FakeSwitch
from slot_simulation import Simulation
from switchfold.hostlib.control.join_request import JoinRequest
from switchfold.hostlib.control.session_api import session_pb2 as api
from switchfold.hostlib.control.view import Endpoint, JobView
from switchfold.hostlib.control.view_message import decode_view
from switchfold.hostlib.errors import ConfigurationError, UnsupportedDtypeError
from switchfold.hostlib.loss_tolerance import LossTolerance
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.session import Session
from switchfold.hostlib.slots.slot_probe import SlotProbe
from switchfold.hostlib.slots.wire import HEADER_BYTES, HEADER_DTYPE, Operation, Outcome
from switchfold.hostlib.transports.base import Datagrams, Transport

MAX_PRIORITY = 5
OPTIONS = SessionOptions(
    timeout_s=120.0, min_rto_s=0.01, initial_rto_s=0.02, max_rto_s=0.1, coalesce_s=0,
    max_priority=MAX_PRIORITY,
)  # fmt: skip
POSITION = (1 << 20) - 1
"""Bits of a header's tensor id that count tensors."""


class WatchedSwitch(FakeSwitch):
    """Keeps the priorities that it sees, by operation and number of the tensor, from 1."""

    def __init__(self, num_workers: int, *, max_priority: int, **options: Any) -> None:
        super().__init__(num_workers, **options)
        self.max_priority = max_priority
        self.seen: defaultdict[tuple[Operation, int], set[int]] = defaultdict(set)
        self.first: list[int] = []
        """Tensors in the order of their first values at the switch."""

    def process(self, worker_id: int, packet: NDArray[np.void]) -> Outcome:
        header = packet["header"][0]
        operation = Operation(int(header["operation"]))
        tensor = int(header["tensor_id"]) & POSITION
        self.seen[operation, tensor].add(int(header["priority"]))
        if operation is Operation.AGGREGATE_ADD and tensor not in self.first:
            self.first.append(tensor)
        return super().process(worker_id, packet)

    def sessions(self, stack: ExitStack, options: SessionOptions = OPTIONS) -> list[Session]:
        return [
            stack.enter_context(Session.direct(self.view(i), self.transport(i), options))
            for i in range(self.num_workers)
        ]


def test_values_have_the_priority_of_their_tensor_and_exponents_the_highest() -> None:
    """Lost packets are sent again: their copies have it, too."""
    switch = WatchedSwitch(2, max_priority=MAX_PRIORITY, loss=0.1, slot_count=16)
    array = np.arange(64 * 32, dtype=np.float32)
    with ExitStack() as stack:
        workers = switch.sessions(stack)
        futures = [
            worker.allreduce(array, precision="block", priority=priority)
            for priority in (0, 4, 2)
            for worker in workers
        ]
        integers = [worker.allreduce(array.astype(np.int32), priority=3) for worker in workers]
        for future in (*futures, *integers):
            np.testing.assert_array_equal(future.result(60), 2 * array)
        assert sum(worker.statistics["value_packets_retransmitted"] for worker in workers) > 0
    for tensor, priority in ((1, 0), (2, 4), (3, 2), (4, 3)):
        assert switch.seen[Operation.AGGREGATE_ADD, tensor] == {priority}
    for tensor in (1, 2, 3):
        assert switch.seen[Operation.AGGREGATE_MAX, tensor] == {MAX_PRIORITY}


@pytest.mark.parametrize(("granted", "expected"), [(0, 0), (1, 0), (3, 2), (7, 4)])
def test_tensor_has_at_most_what_the_view_grants_below_control(granted: int, expected: int) -> None:
    switch = WatchedSwitch(1, max_priority=granted)
    with ExitStack() as stack:
        (worker,) = switch.sessions(stack)
        worker.allreduce(np.ones(64, np.float32), precision="block", priority=4).result(60)
    assert switch.seen[Operation.AGGREGATE_ADD, 1] == {expected}
    assert switch.seen[Operation.AGGREGATE_MAX, 1] == {granted}


@pytest.mark.parametrize(
    ("max_priority", "priority", "asked"),
    [(0, 1, "0 to 0"), (1, 1, "0 to 0"), (5, 5, "0 to 4"), (5, -1, "0 to 4")],
)
def test_priority_that_the_session_did_not_ask_for_is_refused(
    max_priority: int, priority: int, asked: str
) -> None:
    switch = WatchedSwitch(1, max_priority=7)
    with ExitStack() as stack:
        (worker,) = switch.sessions(stack, SessionOptions(max_priority=max_priority))
        with pytest.raises(ConfigurationError, match=f"{priority}; this session asked for {asked}"):
            worker.allreduce(np.ones(4, np.float32), priority=priority)
        # A refused tensor takes no place in the sequence.
        worker.allreduce(np.ones(4, np.int32)).result(60)
    assert switch.first == [1]


@pytest.mark.parametrize("max_priority", [-1, 8])
def test_a_port_has_eight_queues_at_most(max_priority: int) -> None:
    with pytest.raises(ConfigurationError, match="must be 0 to 7"):
        SessionOptions(max_priority=max_priority)
    with pytest.raises(ConfigurationError, match="must be 0 to 7"):
        one_worker(max_priority=max_priority)


def test_group_starts_with_the_highest_priority_on_all_workers() -> None:
    switch = WatchedSwitch(3, max_priority=MAX_PRIORITY, slot_count=8)
    arrays = [np.full(320, number, np.int32) for number in range(5)]
    with ExitStack() as stack:
        workers = switch.sessions(stack)
        groups = [worker.allreduce_group(arrays, priorities=[1, 4, 0, 4, 2]) for worker in workers]
        for futures in groups:
            assert [future.tensor_id for future in futures] == [4, 1, 5, 2, 3]
            for array, future in zip(arrays, futures, strict=True):
                np.testing.assert_array_equal(future.result(60), 3 * array)
    assert switch.first == [1, 2, 3, 4, 5]
    priorities = [switch.seen[Operation.AGGREGATE_ADD, number] for number in switch.first]
    assert priorities == [{4}, {4}, {2}, {1}, {0}]


def test_group_with_an_array_that_cannot_be_summed_queues_none() -> None:
    switch = WatchedSwitch(1, max_priority=MAX_PRIORITY)
    good, bad = np.ones(4, np.int32), np.ones(4, np.int8)
    with ExitStack() as stack:
        (worker,) = switch.sessions(stack)
        with pytest.raises(UnsupportedDtypeError, match="int8"):
            worker.allreduce_group([bad, good], priorities=[0, 1])
        with pytest.raises(ConfigurationError, match="2 arrays and 1 priorities"):
            worker.allreduce_group([good, good], priorities=[0])
        assert worker.allreduce(good).tensor_id == 1


def test_flushes_have_the_highest_priority() -> None:
    simulation = Simulation(3, loss=0.03, tolerance=LossTolerance(loss=0.2), max_priority=6)
    seen: Counter[tuple[Operation, int]] = Counter()
    lost = simulation.losses

    def losses(worker: int, to: int | None, row: NDArray[Any]) -> bool:
        header = row[:HEADER_BYTES].view(HEADER_DTYPE)[0]
        if to is None:
            seen[Operation(int(header["operation"])), int(header["priority"])] += 1
        return lost(worker, to, row)

    simulation.losses = losses
    simulation.sum(600)
    assert set(seen) == {(Operation.AGGREGATE_ADD, 0), (Operation.FLUSH, 6)}


def test_probes_have_the_highest_priority() -> None:
    sent: list[NDArray[np.uint8]] = []

    class Wire:
        def __init__(self) -> None:
            self.counters: Counter[str] = Counter()

        def send(self, datagrams: Datagrams) -> int:
            sent.extend(datagrams)
            return len(datagrams)

    probe = SlotProbe(one_worker(max_priority=3), cast(Transport, Wire()), Counter())
    probe.send(np.zeros(HEADER_BYTES, np.uint8), 0.0)
    (header,) = np.concatenate(sent).view(HEADER_DTYPE)
    assert (header["operation"], header["priority"]) == (Operation.PROBE, 3)


def test_workers_ask_for_priorities_and_learn_what_is_granted() -> None:
    request = JoinRequest(
        job="a", worker_id=0, num_workers=1, local=Endpoint(address="10.0.0.1"), options=OPTIONS
    )
    assert request.join_request(None).join_request.max_priority == MAX_PRIORITY
    message = api.View(
        generation=1,
        members=[api.Member(worker_id=0)],
        trees=[api.Tree(tree_id=7, slot_count=8)],
        worker_bitmap=1,
        max_priority=2,
    )
    view = decode_view(message, job=1, worker_id=0, values_per_packet=32)
    assert (view.control_priority, view.tensor_priority(4), view.tensor_priority(0)) == (2, 1, 0)


def one_worker(*, max_priority: int) -> JobView:
    return JobView.on_one_switch(
        job=1, generation=1, worker_id=0, num_workers=1, slot_count=8, values_per_packet=32,
        switch=Endpoint(address="10.0.0.254"), max_priority=max_priority,
    )  # fmt: skip
