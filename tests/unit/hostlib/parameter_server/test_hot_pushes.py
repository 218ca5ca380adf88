# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's pushes to hot rows: each counts exactly once, whatever is lost."""

from __future__ import annotations

import numpy as np
import pytest

from hot_world import Call, World
from hot_world_server import FLUSH_S, LANES, Floats
from switchfold.hostlib.errors import ServerLostError
from switchfold.hostlib.parameter_server.hot_worker.pushes import MOST_RENAMES
from switchfold.hostlib.slots.wire import Operation

GENERATION = 5


def hot_world(
    monkeypatch: pytest.MonkeyPatch, num_workers: int = 2, num_keys: int = 8, width: int = 8
) -> World:
    """Return a world with hot keys 0 to `num_keys` - 1."""
    world = World(monkeypatch, num_workers, width)
    world.server.set_rows(range(num_keys), generation=GENERATION, first_row=3)
    world.server.install()
    world.settle()
    return world


def ones(world: World, count: int, value: int = 1) -> Floats:
    return world.gradients(np.full((count, world.width), value))


def test_the_switch_adds_pushes_up(monkeypatch: pytest.MonkeyPatch) -> None:
    world = hot_world(monkeypatch)
    calls = [worker.push([0, 5, 1], ones(world, 3)) for worker in world.workers]
    assert len(world.packets) == 4  # two rows each
    world.settle()
    assert all(call.is_done for call in calls)
    assert world.passed["AGGREGATE_ADD"] == 4
    assert world.passed["FLUSH"] == 0
    world.check_sums()


def test_cold_keys_go_by_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    world = hot_world(monkeypatch, num_workers=1)
    worker = world.workers[0]
    call = worker.push([0, 100, -3], ones(world, 3))
    assert [keys.tolist() for keys, _, _ in worker.changes] == [[100, -3]]
    while world.packets:
        world.deliver()
    worker.take_frame()
    assert not call.is_done
    worker.take_change()
    assert call.is_done
    world.check_sums()


def test_keys_that_repeat_are_added_first(monkeypatch: pytest.MonkeyPatch) -> None:
    world = hot_world(monkeypatch, num_workers=1)
    gradients = world.gradients(np.arange(5 * world.width).reshape(5, -1))
    call = world.workers[0].push([2, 0, 2, 7, 2], gradients)
    world.settle()
    assert call.is_done
    assert world.passed["AGGREGATE_ADD"] == 2
    world.check_sums()


def test_a_worker_that_is_alone_flushes(monkeypatch: pytest.MonkeyPatch) -> None:
    world = hot_world(monkeypatch)
    call = world.workers[1].push([0], ones(world, 1))
    world.settle()
    assert not call.is_done
    world.loop.pass_by(FLUSH_S)
    world.settle()
    assert call.is_done
    world.check_sums()


def test_gradients_are_combined_while_two_pushes_are_undecided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = hot_world(monkeypatch)
    worker = world.workers[0]
    calls = [worker.push([0], ones(world, 1, value)) for value in (1, 2, 4, 8)]
    assert len(world.packets) == 2
    world.settle()
    assert not any(call.is_done for call in calls)
    world.loop.pass_by(FLUSH_S)
    world.settle()
    assert [call.is_done for call in calls] == [True, True, False, False]
    world.loop.pass_by(FLUSH_S)
    world.settle()
    assert all(call.is_done for call in calls)
    assert world.passed["AGGREGATE_ADD"] == 3
    world.check_sums()


def test_a_lost_push_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = hot_world(monkeypatch)
    calls = [worker.push([0], ones(world, 1)) for worker in world.workers]
    del world.packets[0]
    world.run_until(calls)
    world.check_sums()


def let_worker_1_be_in_time(world: World, round_: int) -> None:
    """Decide a round of row 3 without the push of worker 0, which comes after that."""
    first, second = world.workers
    (held,) = world.packets
    assert held[2]["header"]["round"] == round_
    world.packets.clear()
    prompt = second.push([0], ones(world, 1))
    world.settle()
    world.loop.pass_by(FLUSH_S)
    while world.packets:
        world.deliver()
    second.take_frame()
    assert prompt.is_done
    world.packets.append(held)
    world.deliver()  # the switch replays the sum, which is no receipt
    world.deliver()
    first.take_frame()


def test_a_push_that_came_too_late_is_pushed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = hot_world(monkeypatch)
    first, second = world.workers
    late = first.push([0, 1], ones(world, 2))
    let_worker_1_be_in_time(world, 1)
    assert not late.is_done
    assert not first.changes
    ((_, sender, packet),) = world.packets
    assert (sender, packet["header"]["round"]) == (0, 2)
    other = second.push([0, 1], ones(world, 2))
    world.settle()
    assert late.is_done
    assert other.is_done
    world.check_sums()


def test_pushes_that_came_too_late_are_combined(monkeypatch: pytest.MonkeyPatch) -> None:
    world = hot_world(monkeypatch)
    worker = world.workers[0]
    calls = [worker.push([0], ones(world, 1, value)) for value in (1, 2, 4)]
    world.packets.clear()
    world.server._fence_all([3])
    worker.take_frame()
    assert not worker.changes
    assert [int(packet["header"]["round"]) for *_, packet in world.packets] == [3]
    assert world.packets[0][2]["values"][0] == 7
    world.run_until(calls)
    world.check_sums()


def test_a_push_that_came_too_late_again_and_again_goes_by_tcp(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = hot_world(monkeypatch)
    worker = world.workers[0]
    late = worker.push([0, 1], ones(world, 2))
    for round_ in range(1, MOST_RENAMES + 2):
        assert not worker.changes
        let_worker_1_be_in_time(world, round_)
    assert [sorted(keys.tolist()) for keys, _, _ in worker.changes] == [[0, 1]]
    assert not late.is_done
    worker.take_change()
    assert late.is_done
    world.check_sums()


def test_a_push_that_came_too_late_at_a_cold_row_goes_by_tcp(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = hot_world(monkeypatch)
    worker = world.workers[0]
    world.evict(3)
    late = worker.push([0], ones(world, 1))
    while world.packets:
        world.deliver()
    world.server._fence_all([3])
    worker.take_frame()
    assert [keys.tolist() for keys, _, _ in worker.changes] == [[0]]
    world.run_until([late])
    world.check_sums()


def test_a_lost_sum_is_brought_by_the_servers_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    world = hot_world(monkeypatch, num_workers=1)
    worker = world.workers[0]
    call = worker.push([0], ones(world, 1))
    world.deliver()
    world.packets.clear()
    world.loop.pass_by(16 * FLUSH_S)
    world.packets.clear()
    assert worker.decides
    worker.take_decide()
    world.settle()
    assert call.is_done
    assert not worker.changes
    world.check_sums()


def test_a_switch_without_registers_is_asked_for_by_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    world = hot_world(monkeypatch)
    calls = [worker.push([0], ones(world, 1)) for worker in world.workers]
    world.packets.pop()
    world.deliver()
    world.workers[0].push([0], ones(world, 1))
    world.restart_switch()
    world.packets.clear()
    world.run_until(calls)
    world.check_sums()


def test_cold_rows_are_decided_and_go_by_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    world = hot_world(monkeypatch, num_workers=1)
    worker = world.workers[0]
    world.evict(3)
    call = worker.push([0, 4], ones(world, 2))
    while world.packets:
        world.deliver()
    asked = np.concatenate([rounds for _, rounds in worker.decides])
    assert asked.tolist() == [(3, 1)]
    again = worker.push([0, 4], ones(world, 2))
    assert [keys.tolist() for keys, _, _ in worker.changes] == [[0]]
    world.run_until([call, again])
    world.check_sums()


def test_gradients_that_wait_for_a_cold_row_go_by_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    world = hot_world(monkeypatch, num_workers=1)
    worker = world.workers[0]
    world.evict(3)
    calls = [worker.push([0], ones(world, 1, value)) for value in (1, 2, 4, 8)]
    assert not worker.changes
    while world.packets:
        world.deliver()
    ((keys, gradients, _),) = worker.changes
    assert keys.tolist() == [0]
    assert (16 * gradients == 12).all()
    world.run_until(calls)
    world.check_sums()


def test_gradients_that_do_not_fit_go_by_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    world = hot_world(monkeypatch, num_workers=1)
    worker = world.workers[0]
    gradients = ones(world, 3)
    gradients[1] *= 1 << 26
    call = worker.push([0, 1, 2], gradients)
    assert [keys.tolist() for keys, _, _ in worker.changes] == [[1]]
    world.run_until([call])
    world.check_sums()


@pytest.mark.parametrize("width", [1, 5, 32, 40, 100])
def test_all_widths(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    world = hot_world(monkeypatch, num_workers=2, num_keys=7, width=width)
    rng = np.random.default_rng(width)
    calls: list[Call] = []
    for worker in world.workers:
        keys = rng.permutation(9)[:6].tolist()
        calls.append(worker.push(keys, world.gradients(rng.integers(-99, 99, (6, width)))))
    del world.packets[::3]
    world.run_until(calls)
    world.check_sums()


def test_outstanding_pushes_are_answered_after_the_connection_broke(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = hot_world(monkeypatch)
    calls = [worker.push([0, 4], ones(world, 2)) for worker in world.workers]
    while world.packets:
        world.deliver()
    for worker in world.workers:
        assert worker.from_server
        worker.cut()
        worker.take_frame()
    assert all(call.is_done for call in calls)
    world.check_sums()


def test_a_refused_round_shows_after_the_connection_broke(monkeypatch: pytest.MonkeyPatch) -> None:
    world = hot_world(monkeypatch)
    worker = world.workers[0]
    call = worker.push([0], ones(world, 1))
    world.packets.clear()
    world.server._fence_all([3])
    worker.cut()
    worker.take_frame()
    assert not call.is_done
    assert not worker.changes
    assert [int(packet["header"]["round"]) for *_, packet in world.packets] == [3]
    world.run_until([call])
    world.check_sums()


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_new_generation_answers_all(monkeypatch: pytest.MonkeyPatch, is_cut: bool) -> None:
    world = hot_world(monkeypatch)
    counted = [worker.push([0], ones(world, 1)) for worker in world.workers]
    while world.packets:
        world.deliver()
    lost = [worker.push([0, 4], ones(world, 2)) for worker in world.workers]
    waiting = [worker.push([0, 4], ones(world, 2)) for worker in world.workers]
    world.packets.clear()
    world.server.set_rows([9, 4, 0], generation=GENERATION + 1)
    world.server.install()
    if is_cut:
        for worker in world.workers:
            worker.cut()
    world.settle()
    assert all(call.is_done for call in counted + lost + waiting)
    more = [worker.push([0, 4], ones(world, 2)) for worker in world.workers]
    world.run_until(more)
    world.check_sums()


def test_rows_that_change_send_what_they_hold_by_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    world = hot_world(monkeypatch)
    worker = world.workers[0]
    world.server.set_rows([0, 1, 2, 3, 44], generation=GENERATION)
    while worker.from_server:  # the fences, but not the new rows
        worker.take_frame()
    call = worker.push([0, 4], ones(world, 2))  # 4 with the epoch that is over
    world.server.install()
    while world.packets:
        world.deliver()
    worker.take_frame()
    assert [keys.tolist() for keys, _, _ in worker.changes] == [[4]]
    assert worker.decides[-1][1].tolist() == [(4, 3)]  # whose name is used
    world.run_until([call])
    again = worker.push([44], ones(world, 1))
    world.run_until([again])
    assert world.passed["AGGREGATE_ADD"] >= 3
    world.check_sums()


def test_nothing_is_hot_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    world = hot_world(monkeypatch)
    worker = world.workers[0]
    call = worker.push([0], ones(world, 1))
    world.packets.clear()
    world.server._fence_all(list(world.server.rows))
    world.server.layout = None
    world.server.generation = 0
    world.server.tell_rows(worker)
    while worker.from_server:
        worker.take_frame()
    worker.take_change()
    assert call.is_done
    world.packets.clear()
    worker.push([0], ones(world, 1))
    assert worker.changes
    assert not world.packets


def test_names_stay_used_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    world = hot_world(monkeypatch)
    worker = world.workers[0]
    call = worker.push([0], ones(world, 1))
    error = ServerLostError("gone", 0)
    worker.rows.fail(error)
    assert call.error is error
    worker.cut()
    worker.take_frame()
    world.packets.clear()
    again = worker.push([0], ones(world, 1, 4))
    rounds = [int(packet["header"]["round"]) for _, _, packet in world.packets]
    assert rounds == [2]
    world.run_until([again])
    assert world.server.sums[0, 0] == 4  # the first push, whose fate was unknown, was lost


def test_operations_of_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """First a flush; later the push again, then a flush of the next level."""
    world = hot_world(monkeypatch)
    world.workers[0].push([0], ones(world, 1))
    sent: list[tuple[Operation, int]] = []
    for _ in range(7):
        for _, _, packet in world.packets:
            header = packet["header"]
            operation = Operation(int(header["operation"]))
            sent.append((operation, int(header["num_contributors"])))
        world.packets.clear()
        world.loop.pass_by(FLUSH_S)
    add, flush = Operation.AGGREGATE_ADD, Operation.FLUSH
    assert sent == [(add, 1), (flush, 0), (add, 1), (flush, 1)]
    assert not world.workers[0].decides


def test_a_round_that_is_over_at_the_switch_is_not_flushed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = hot_world(monkeypatch, num_workers=1)
    worker = world.workers[0]
    call = worker.push([0], ones(world, 1))
    world.deliver()
    world.packets.clear()  # the sum is lost
    world.loop.pass_by(FLUSH_S)
    world.deliver()
    world.deliver()  # the answer to the flush is the sum
    world.loop.pass_by(10 * FLUSH_S)
    assert not world.packets
    assert not worker.decides
    world.loop.pass_by(6 * FLUSH_S)
    assert not world.packets
    world.run_until([call])
    assert not worker.changes
    world.check_sums()


def test_sums_of_a_whole_row_are_pushed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = hot_world(monkeypatch, num_workers=1, num_keys=4 * 50)
    call = world.workers[0].push(range(200), ones(world, 200))
    assert len(world.packets) == 200 * world.width // LANES
    world.settle()
    assert call.is_done
