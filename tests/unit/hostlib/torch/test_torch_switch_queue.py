# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""The queue between a process group and its session: order, callbacks that wait, and the end."""

from __future__ import annotations

import threading
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from time_bound import wait_until
from torch_ranks import load_torch, require_torch

require_torch()
torch, _ = load_torch()

from fake_side_stream import FakeStream  # noqa: E402
from switchfold.hostlib.errors import SessionClosedError  # noqa: E402
from switchfold.hostlib.future import AllreduceFuture  # noqa: E402
from switchfold.hostlib.straggler import WAIT_FOR_ALL  # noqa: E402
from switchfold.hostlib.torch.errors import GroupDestroyedError  # noqa: E402
from switchfold.hostlib.torch.process_group import switch_queue as switch_queue_module  # noqa: E402
from switchfold.hostlib.torch.process_group.memory_use import CopiesBack  # noqa: E402
from switchfold.hostlib.torch.process_group.switch_queue import QueuedTransfer, SwitchQueue  # noqa: E402
from switchfold.hostlib.torch.process_group.work import SwitchfoldWork  # noqa: E402
from switchfold.hostlib.torch.staging.device_staging import DeviceStaging  # noqa: E402
from switchfold.hostlib.torch.staging.staging import SumStaging  # noqa: E402

WAIT_S = 60.0


class FakeSession:
    """Takes tensors; tests say when they are done."""

    def __init__(self) -> None:
        self.view = SimpleNamespace(num_workers=2, straggler=WAIT_FOR_ALL)
        self.futures: list[AllreduceFuture] = []
        self.arrays: list[Any] = []
        self.entered, self.may_return = threading.Event(), threading.Event()
        self.may_return.set()

    def allreduce(self, array: Any, *_: Any, **_named: Any) -> AllreduceFuture:
        self.entered.set()
        assert self.may_return.wait(WAIT_S)
        future = AllreduceFuture(len(self.futures) + 1)
        self.arrays.append(array)
        self.futures.append(future)  # last: a test that sees it may finish it
        return future

    def finish(self, number: int) -> None:
        self.futures[number].set_result(self.arrays[number] * 2, 2, (0, 1))


@pytest.fixture
def session() -> FakeSession:
    return FakeSession()


def put(switch_queue: SwitchQueue, tensor: Any) -> SwitchfoldWork:
    staging = SumStaging([tensor])
    work = SwitchfoldWork("rank 0, all_reduce", [tensor], staging)
    switch_queue.put(QueuedTransfer(work, staging, "sum", 60.0))
    return work


def test_a_callback_may_wait_for_a_later_transfer(session: FakeSession) -> None:
    switch_queue = SwitchQueue(cast("Any", session), "test")
    tensors = [torch.full((3,), float(number)) for number in range(3)]
    works = [put(switch_queue, tensor) for tensor in tensors]
    futures = [work.get_future() for work in works]
    # As hooks do that compress in two rounds.
    inner = [
        futures[n].then(lambda _, later=futures[n + 1]: later.wait()[0].clone()) for n in range(2)
    ]
    is_done = threading.Event()
    inner[0].add_done_callback(lambda _: is_done.set())
    for number in range(3):
        session.finish(number)
    assert is_done.wait(WAIT_S)
    assert inner[0].value().tolist() == [2.0] * 3
    assert inner[1].wait().tolist() == [4.0] * 3
    switch_queue.close()


def test_a_transfer_that_is_submitted_while_the_queue_closes_fails(
    session: FakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(switch_queue_module, "JOIN_S", WAIT_S)
    switch_queue = SwitchQueue(cast("Any", session), "test")
    session.may_return.clear()
    work = put(switch_queue, torch.ones(3, dtype=torch.bfloat16))  # through the submit thread
    assert session.entered.wait(WAIT_S)
    closing = threading.Thread(target=switch_queue.close)
    closing.start()
    closing.join(0.1)  # long enough to end threads in the wrong order
    session.may_return.set()
    while not session.futures:
        closing.join(0.001)
    session.futures[0].set_exception(SessionClosedError("closed"))
    with pytest.raises(GroupDestroyedError, match="rank 0, all_reduce"):
        work.wait(timedelta(seconds=WAIT_S))
    closing.join(WAIT_S)
    assert not closing.is_alive()


def test_what_is_submitted_after_closing_ends(
    session: FakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(switch_queue_module, "JOIN_S", 0.0)
    switch_queue = SwitchQueue(cast("Any", session), "test")
    session.may_return.clear()
    works = [put(switch_queue, torch.ones(3, dtype=torch.bfloat16)) for _ in range(2)]
    assert session.entered.wait(WAIT_S)
    switch_queue.close()  # the submitter is held up for longer than it waits
    session.may_return.set()
    for number, work in enumerate(works):
        wait_until(lambda: len(session.futures) > number, "the submission")  # noqa: B023
        session.futures[number].set_exception(SessionClosedError("closed"))
        with pytest.raises(GroupDestroyedError, match="rank 0, all_reduce"):
            work.wait(timedelta(seconds=WAIT_S))


def test_memory_under_way_is_read_again_once_it_is_written(session: FakeSession) -> None:
    switch_queue = SwitchQueue(cast("Any", session), "test")
    base = torch.ones(12)
    works = [put(switch_queue, part) for part in (base[:6], base[::5], base[11:])]
    # The second shares a value with the first; the third keeps its place in the order.
    assert len(session.arrays) == 1
    session.finish(0)
    assert works[0].wait(timedelta(seconds=WAIT_S))
    wait_until(lambda: len(session.futures) == 3, "the transfers behind")
    assert session.arrays[1].tolist() == [2.0, 2.0, 1.0]
    session.finish(1)
    session.finish(2)
    switch_queue.settle([base])
    assert base.tolist() == [4.0, 2.0, 2.0, 2.0, 2.0, 4.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0]
    assert all(work.wait(timedelta(seconds=WAIT_S)) for work in works)
    switch_queue.close()


def test_the_caller_of_settle_waits_for_the_copies_to_the_device(
    session: FakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch_queue = SwitchQueue(cast("Any", session), "test")
    tensor, stream = torch.ones(3), FakeStream()
    work = put_on_device(switch_queue, tensor, stream)
    wait_until(lambda: session.futures, "the transfer's start")
    is_waiting, wait_for_end = threading.Event(), work.wait_for_end

    def wait() -> None:
        is_waiting.set()
        wait_for_end()

    monkeypatch.setattr(work, "wait_for_end", wait)
    settling = threading.Thread(target=switch_queue.settle, args=([tensor],))
    settling.start()
    assert is_waiting.wait(WAIT_S)
    session.finish(0)
    settling.join(WAIT_S)
    assert not settling.is_alive()
    # A collective by Gloo may follow, which knows the caller's stream alone.
    assert stream.log[-4:] == ["enter", "record 2", "exit", "caller waits for 2"]
    assert tensor.tolist() == [2.0] * 3
    switch_queue.close()


def put_on_device(switch_queue: SwitchQueue, tensor: Any, stream: FakeStream) -> SwitchfoldWork:
    staging = DeviceStaging([tensor], stream)
    work = SwitchfoldWork("rank 0, all_reduce", [tensor], staging)
    switch_queue.put(QueuedTransfer(work, staging, "sum", WAIT_S))
    return work


def test_a_copy_to_the_device_is_awaited_though_its_work_has_ended(session: FakeSession) -> None:
    switch_queue = SwitchQueue(cast("Any", session), "test")
    stream, base = FakeStream(), torch.ones(9)
    for number, start in enumerate((0, 3)):
        work = put_on_device(switch_queue, base[start : start + 3], stream)
        wait_until(lambda: len(session.futures) > number, "the transfer's start")  # noqa: B023
        session.finish(number)
        wait_until(work.is_completed, "the transfer's end")
    done = len(stream.log)
    switch_queue.settle([base[6:]])
    assert stream.log[done:] == []  # other memory: the caller's stream goes on
    switch_queue.settle([base[2:3]])
    assert stream.log[done:] == ["caller waits for 2"]
    switch_queue.settle([base])
    assert stream.log[done:] == ["caller waits for 2", "caller waits for 4"]
    switch_queue.close()


def test_copies_that_are_no_longer_remembered_are_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("switchfold.hostlib.torch.process_group.memory_use.NUM_COPIES", 2)
    copies, awaited = CopiesBack(), list[int]()
    tensors = list(torch.ones(12).split(3))
    assert copies.into(tensors) == []
    for number in range(4):
        strided = tensors[number][::2], tensors[number][1:2]
        copies.add(strided, lambda number=number: awaited.append(number))
    for used in ([tensors[0]], [tensors[1]], [tensors[2], tensors[0]], tensors, [torch.ones(1)]):
        for caller_waits in copies.into(used):
            caller_waits()
    assert awaited == [1, 1, 2, 3, 1]


def test_a_work_whose_memory_is_free_has_ended(
    session: FakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch_queue = SwitchQueue(cast("Any", session), "test")
    tensor = torch.ones(3)
    work = put(switch_queue, tensor)
    is_ending, may_end, end = threading.Event(), threading.Event(), work.end

    def end_late(error: Exception | None) -> bool:
        is_ending.set()
        assert may_end.wait(WAIT_S)
        return end(error)

    monkeypatch.setattr(work, "end", end_late)
    session.finish(0)
    assert is_ending.wait(WAIT_S)
    threading.Timer(0.05, may_end.set).start()
    switch_queue.settle([tensor])
    assert work.is_completed()
    switch_queue.close()


def test_a_transfer_that_is_refused_fails_in_its_turn(session: FakeSession) -> None:
    switch_queue = SwitchQueue(cast("Any", session), "test")
    first = put(switch_queue, torch.ones(3))
    session.allreduce = None  # type: ignore[method-assign,assignment]
    second = put(switch_queue, torch.ones(3))
    assert not second.is_completed()
    session.finish(0)
    assert first.wait(timedelta(seconds=WAIT_S))
    with pytest.raises(RuntimeError, match="rank 0, all_reduce"):
        second.wait(timedelta(seconds=WAIT_S))
    switch_queue.close()


def test_a_defect_of_a_thread_fails_its_transfer_and_not_the_thread(session: FakeSession) -> None:
    def add_transfer(_: object) -> None:
        raise MemoryError("planted")

    timeline: Any = SimpleNamespace(add_transfer=add_transfer)
    switch_queue = SwitchQueue(cast("Any", session), "test", timeline)
    for number in range(2):
        work = put(switch_queue, torch.ones(3))
        session.finish(number)
        said = r"the thread switchfold-finish-test failed: MemoryError\('planted'\)"
        with pytest.raises(RuntimeError, match=said):
            work.wait(timedelta(seconds=WAIT_S))
    switch_queue.close()
