# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's pulls of hot keys: from the switch, or else from the server."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from hot_world import Call, World
from hot_world_server import LANES, Floats
from switchfold.hostlib.errors import ServerLostError
from switchfold.hostlib.parameter_server.hot_worker import UNKNOWN_UPDATES
from switchfold.hostlib.parameter_server.hot_worker.reads import TRY_S
from switchfold.hostlib.peers.event_loop import Timer
from switchfold.hostlib.slots.wire import Operation

GENERATION, FIRST_ROW = 5, 3


def hot_world(
    monkeypatch: pytest.MonkeyPatch, num_workers: int = 1, num_keys: int = 8, width: int = 8
) -> World:
    """Return a world with hot keys 0 to `num_keys` - 1; key k has values k + 1, in lanes."""
    world = World(monkeypatch, num_workers, width)
    server = world.server
    server.set_rows(range(num_keys), generation=GENERATION, first_row=FIRST_ROW)
    server.install()
    for key in range(100):
        for position in range(width):
            server.sums[key, position] = key + 1
    world.settle()
    write_all(world)
    return world


def write_all(world: World) -> None:
    assert world.server.layout is not None
    world.server.write(range(FIRST_ROW, FIRST_ROW + world.server.layout.num_rows))
    world.settle()


def expected(world: World, keys: list[int]) -> list[list[float]]:
    return [[(key + 1) / 16] * world.width for key in keys]


def operations(world: World) -> list[str]:
    return [Operation(int(packet["header"]["operation"])).name for _, _, packet in world.packets]


def test_hot_keys_come_from_the_switch_and_cold_ones_from_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = hot_world(monkeypatch)
    worker = world.workers[0]
    keys = [40, 7, 0, 41, 0, 2]
    call = worker.pull_rows(keys)
    assert [wanted.tolist() for wanted, _ in worker.pulls] == [[40, 41]]
    assert operations(world) == ["READ", "READ"]
    world.settle()
    assert call.rows is not None
    assert call.rows.values.tolist() == expected(world, keys)
    hot = UNKNOWN_UPDATES
    assert call.rows.updates.tolist() == [0, hot, hot, 0, hot, hot]


@pytest.mark.parametrize("width", [1, 5, 32, 40, 100])
def test_all_widths(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    world = hot_world(monkeypatch, num_keys=7, width=width)
    call = world.workers[0].pull_rows([6, 3, 99, 0])
    world.settle()
    assert call.rows is not None
    assert call.rows.values.tolist() == expected(world, [6, 3, 99, 0])
    assert (call.rows.updates == UNKNOWN_UPDATES).tolist() == [True, True, False, True]


def test_pulls_of_a_row_share_one_read(monkeypatch: pytest.MonkeyPatch) -> None:
    world = hot_world(monkeypatch)
    worker = world.workers[0]
    calls = [worker.pull_rows(keys) for keys in ([0, 1], [1, 5], [6])]
    assert operations(world) == ["READ", "READ"]
    world.settle()
    for call, keys in zip(calls, ([0, 1], [1, 5], [6]), strict=True):
        assert call.rows is not None
        assert call.rows.values.tolist() == expected(world, keys)


def test_packets_leave_the_timer_of_the_next_try_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    world = hot_world(monkeypatch)
    world.loop.pass_by(1.0)
    call_later, timers = world.loop.call_later, []

    def note(delay_s: float, call: Callable[[], None]) -> Timer:
        timers.append(call_later(delay_s + 1e-6, call))  # a real loop reads its clock later
        return timers[-1]

    monkeypatch.setattr(world.loop, "call_later", note)
    world.workers[0].pull_rows([0, 5])
    while world.packets:
        world.deliver()
    assert len(timers) == 1


def test_the_server_is_asked_for_evicted_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    world = hot_world(monkeypatch)
    worker = world.workers[0]
    world.evict(FIRST_ROW)
    call = worker.pull_rows([0, 7, 1])
    while world.packets:
        world.deliver()
    assert [wanted.tolist() for wanted, _ in worker.pulls] == [[0, 1]]
    worker.take_pull()
    assert call.rows is not None
    assert call.rows.values.tolist() == expected(world, [0, 7, 1])
    assert call.rows.updates.tolist() == [0, UNKNOWN_UPDATES, 0]


def test_a_cold_answer_to_a_read_is_none_to_a_push(monkeypatch: pytest.MonkeyPatch) -> None:
    world = hot_world(monkeypatch)
    worker = world.workers[0]
    world.restart_switch()
    worker.pull_rows([0])
    world.loop.pass_by(TRY_S)
    assert operations(world) == ["READ"] * 2
    worker.push([0], world.gradients(np.ones((1, world.width))))
    while world.packets:
        world.deliver()
    assert not worker.decides
    worker.push([0], world.gradients(np.ones((1, world.width))))
    assert operations(world) == ["AGGREGATE_ADD"]


def test_the_server_is_asked_if_the_switch_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    world = hot_world(monkeypatch)
    worker = world.workers[0]
    call = worker.pull_rows([0, 7])
    for _ in range(2):
        assert operations(world) == ["READ"] * 2
        world.packets.clear()
        assert not worker.pulls
        world.loop.pass_by(TRY_S)
    assert not world.packets
    assert [wanted.tolist() for wanted, _ in worker.pulls] == [[0, 7]]
    world.settle()
    assert call.rows is not None
    assert call.rows.values.tolist() == expected(world, [0, 7])


def test_a_lost_read_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = hot_world(monkeypatch)
    call = world.workers[0].pull_rows([0, 7])
    world.packets.pop()
    world.settle()
    assert not call.is_done
    world.loop.pass_by(TRY_S)
    assert operations(world) == ["READ"]
    world.settle()
    assert call.rows is not None
    assert (call.rows.updates == UNKNOWN_UPDATES).all()


def test_versions_never_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    world = hot_world(monkeypatch)
    worker = world.workers[0]
    first = worker.pull_rows([0])
    world.deliver()
    late = world.packets[0]  # an answer that comes twice
    world.settle()
    world.server.sums[0, 0] = 160
    world.server.version += 1
    write_all(world)
    worker.pull_rows([0])
    world.settle()
    third = worker.pull_rows([0])
    world.packets.insert(0, late)
    world.deliver()
    assert not third.is_done
    world.settle()
    assert first.rows is not None
    assert third.rows is not None
    assert [first.rows.values[0, 0], third.rows.values[0, 0]] == [1 / 16, 10]


def test_a_switch_that_lost_its_values_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    world = hot_world(monkeypatch)
    worker = world.workers[0]
    worker.pull_rows([0])
    world.settle()
    newer = world.server.version
    world.restart_switch()
    world.server.version = newer - 1
    write_all(world)
    call = worker.pull_rows([0])
    world.settle()
    assert call.rows is not None
    assert call.rows.updates.tolist() == [0]


def test_rows_that_change_while_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    world = hot_world(monkeypatch)
    worker = world.workers[0]
    call = worker.pull_rows([0, 50, 7])
    while len(world.packets) > 1:
        world.deliver(1 if len(world.packets) > 2 else 0)
    world.server.set_rows([7, 3], generation=GENERATION, first_row=FIRST_ROW)
    world.server.install()
    worker.take_frame()
    world.settle()
    assert call.rows is not None
    assert call.rows.values.tolist() == expected(world, [0, 50, 7])
    again = worker.pull_rows([0, 3, 7])
    world.settle()
    assert again.rows is not None
    assert again.rows.values.tolist() == expected(world, [0, 3, 7])


def test_a_lost_server_fails_pulls(monkeypatch: pytest.MonkeyPatch) -> None:
    world = hot_world(monkeypatch)
    worker = world.workers[0]
    call = worker.pull_rows([0])
    error = ServerLostError("gone", 0)
    worker.rows.fail(error)
    assert call.error is error
    world.settle()
    again = worker.pull_rows([0])
    world.settle()
    assert again.error is None
    assert again.rows is not None


def test_a_pull_without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    world = hot_world(monkeypatch)
    worker = world.workers[0]
    call = worker.pull_rows([])
    worker.take_pull()
    assert call.rows is not None
    assert call.rows.values.shape == (0, world.width)


def check_growth(keys: list[int], pull: Call, seen: Floats) -> int:
    """Check values from the switch, and note them; return how many keys have such."""
    assert pull.rows is not None
    hot = np.flatnonzero(pull.rows.updates == UNKNOWN_UPDATES)
    places = np.array(keys)[hot]
    assert (pull.rows.values[hot] >= seen[places]).all()
    seen[places] = pull.rows.values[hot]
    return hot.size


@pytest.mark.parametrize("seed", range(15))
def test_values_from_the_switch_only_grow(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Pushes of positive gradients, and pulls, with losses, copies and another order."""
    draw = random.Random(seed)
    world = hot_world(monkeypatch, num_workers=2, num_keys=3 * LANES // 8)
    seen = [np.zeros((12, 8), np.float32) for _ in world.workers]
    open_pulls = []
    from_switch = 0
    calls = []
    for _ in range(500):
        worker = draw.choice(world.workers)
        what = draw.random()
        if what < 0.06:
            keys = draw.sample(range(12), 3)
            calls.append(worker.push(keys, world.gradients(np.ones((3, 8)))))
        elif what < 0.12:
            keys = draw.sample(range(14), 5)
            open_pulls.append((worker, keys, worker.pull_rows(keys)))
        elif what < 0.7 and world.packets:
            index = draw.randrange(min(8, len(world.packets)))
            if draw.random() < 0.05:
                del world.packets[index]
            else:
                world.deliver(index, is_kept=draw.random() < 0.05)
        elif what < 0.9:
            for waiting, take in (
                (worker.from_server, worker.take_frame),
                (worker.changes, worker.take_change),
                (worker.decides, worker.take_decide),
                (worker.pulls, worker.take_pull),
            ):
                if waiting:
                    take()
        elif what < 0.95:
            world.server.write([draw.randrange(FIRST_ROW, FIRST_ROW + 3)])
        else:
            world.loop.pass_by(draw.uniform(0, 0.004))
        for reader, keys, pull in [each for each in open_pulls if each[2].is_done]:
            from_switch += check_growth(keys, pull, seen[reader.worker_id])
        open_pulls = [each for each in open_pulls if not each[2].is_done]
    assert from_switch > 10
    world.run_until(calls + [pull for _, _, pull in open_pulls])
