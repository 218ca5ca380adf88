# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A server with hot rows on the reference switch: what it decides, tells and writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hot_bench import HOT_KEYS, TABLE, WAIT_S, HotBench, HotWorker, push_until_hot, wait_for
from loopback import LOOPBACK
from switchfold.hostlib.errors import JobRefusedError
from switchfold.hostlib.hot_rows import FrequencySketch
from switchfold.hostlib.hot_rows.row_packets import SERVER_ID_BASE, RowPackets
from switchfold.hostlib.parameter_server.hot_server import hot_row_server
from switchfold.hostlib.slots.wire import Operation
from switchfold.hostlib.transports.udp import UdpTransport
from worker_packets import read_packets


@contextmanager
def hot_scene(
    monkeypatch: pytest.MonkeyPatch, folder: Path | None = None, **options: Any
) -> Iterator[tuple[HotBench, list[HotWorker]]]:
    """Two workers whose table has hot rows."""
    with HotBench(monkeypatch, folder, **options) as bench:
        workers = [HotWorker(bench, worker_id).enter() for worker_id in range(2)]
        try:
            workers[0].define()
            bench.tell_view()
            workers[0].push_cold(np.array([99]), np.full((1, 4), 2.0**16, np.float32))
            workers[0].sketch()
            wait_for(lambda: all(worker.has_rows for worker in workers), *workers)
            yield bench, workers
        finally:
            for worker in workers:
                worker.close()


def lanes_of(*values: int) -> NDArray[np.int32]:
    lanes = np.zeros(32, np.int32)
    lanes[: len(values)] = values
    return lanes


def scaled(worker: HotWorker, row: int) -> float:
    return 2.0 ** worker.layouts[worker.state.generation, row][2]


def test_a_round_of_all_workers_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with hot_scene(monkeypatch, flush_s=1.0) as (bench, workers):
        # No flush closes the round before the second worker's push.
        bench.switch.drop = lambda packet, _: packet["header"]["operation"] == Operation.FLUSH
        first = workers[0]
        assert sorted(first.next) == [4, 5]
        assert [worker.state.worker_bitmap for worker in workers] == [1, 2]
        for worker in workers:
            worker.push(4, lanes_of(3, 4))
        wait_for(lambda: all(worker.num_hot == 1 for worker in workers), *workers)
        key = int(first.layouts[first.state.generation, 4][0].keys[0])
        assert bench.values(np.array([key])).tolist() == [
            [6 * scaled(first, 4), 8 * scaled(first, 4), 0, 0]
        ]
        ((bitmap, version),) = (one[2:] for one in first.decisions if one[:2] == (4, 1))
        assert bitmap == 3
        wait_for(lambda: first.read(4, version) is not None, *workers)
        found = first.read(4, version)
        assert found is not None
        assert found[0] >= version
        np.testing.assert_array_equal(found[1][:4], bench.values(np.array([key]))[0])
        assert bench.count("hot_pushes") == 2


def test_a_lonely_push_counts_by_a_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    with hot_scene(monkeypatch) as (bench, workers):
        push_until_hot(workers[1], 5, lanes_of(1), workers)
        assert bench.count("hot_pushes") == 1
        wait_for(lambda: workers[0].next[5] > 1, *workers)


def test_a_round_without_a_sum_is_fenced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The switch never answers with a sum: the server decides, and the push goes by TCP."""
    with hot_scene(monkeypatch) as (bench, workers):
        bench.switch.drop = lambda packet, _: (
            packet["header"]["operation"] in (Operation.AGGREGATE_ADD, Operation.RESULT)
        )
        workers[0].push(4, lanes_of(7))
        wait_for(lambda: not workers[0].pending, *workers)
        assert workers[0].num_cold == 2
        wait_for(lambda: bench.values().any(), *workers)
        # A worker that has asked hears of the decision before the other one.
        wait_for(lambda: workers[0].next[4] == workers[1].next[4] == 2, *workers)
        assert bench.count("hot_fences") >= 1
        assert bench.count("hot_decides") >= 1


def test_a_question_about_a_decided_round_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    with hot_scene(monkeypatch) as (_, workers):
        push_until_hot(workers[0], 4, lanes_of(1), workers)
        # A worker that has asked is told twice.
        (number,) = {one[1] for one in workers[0].decisions if one[2] == 1}
        for worker, bitmap in ((workers[0], 1), (workers[1], 0)):
            worker.disconnect()  # so that it hears answers alone
            worker.decisions.clear()
            worker.decide(worker.state.generation, 4, number)
            worker.decide(worker.state.generation - 1, 4, number)
            worker.decide(worker.state.generation, 4, number + 8)  # of no worker yet
            wait_for(lambda worker=worker: len(worker.decisions) == 2, worker)
            assert [one[:3] for one in worker.decisions] == [(4, number, bitmap), (4, number, 0)]


def test_cold_pushes_to_hot_keys_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    with hot_scene(monkeypatch) as (bench, workers):
        worker = workers[0]
        key = int(worker.layouts[worker.state.generation, 5][0].keys[8])

        def has_value(wanted: float) -> bool:
            found = worker.read(5, 1)
            return found is not None and bool((found[1][:4] == wanted).all())

        worker.push_cold(np.array([key, 77]), np.full((2, 4), 3.0, np.float32))
        wait_for(lambda: has_value(3.0), *workers)
        bench.switch.restart()
        wait_for(lambda: has_value(3.0), *workers)


def test_an_idle_server_looks_at_few_pushes(monkeypatch: pytest.MonkeyPatch) -> None:
    with hot_scene(monkeypatch) as (bench, workers):

        def wanted(table: int) -> list[bool]:
            found: list[bool] = []
            bench.loop.run(lambda: found.extend(bench.server.wants_batch(table) for _ in range(32)))
            return found

        wait_for(lambda: sum(wanted(TABLE.number)) == 2, *workers)
        assert wanted(TABLE.number) == wanted(TABLE.number)
        assert not any(wanted(TABLE.number + 1))

        def is_busy() -> bool:
            push_until_hot(workers[1], 5, lanes_of(1), workers)
            return all(wanted(TABLE.number))

        wait_for(is_busy, *workers)
        wait_for(lambda: sum(wanted(TABLE.number)) == 2, *workers)


def test_what_an_idle_server_writes_never_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    with hot_scene(monkeypatch) as (bench, workers):
        worker = workers[0]
        key = int(worker.layouts[worker.state.generation, 5][0].keys[8])
        seen = [(0, 0.0)]
        pushed = 0

        def has_all() -> bool:
            found = worker.read(5, seen[-1][0])
            if found is None:  # until the switch has the version that was asked for
                return False
            seen.append((found[0], float(found[1][0])))
            return seen[-1][1] == pushed

        for at in range(60):
            worker.push_cold(np.array([key]), np.ones((1, 4), np.float32))
            pushed += 1
            has_all()
            if at == 40:  # in an idle time: this sum changes another row
                worker.push(4, lanes_of(1))
        wait_for(has_all, *workers)
        assert seen == sorted(seen)
        assert len({value for _, value in seen}) <= len({version for version, _ in seen})
        assert bench.values(np.array([key]))[0, 0] == pushed


def test_a_changed_hot_set_ends_rounds_and_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    with hot_scene(monkeypatch) as (bench, workers):
        before, scale = workers[0].state, scaled(workers[0], 4)
        workers[0].push(4, lanes_of(1, 2))
        for _ in range(3):
            workers[0].sketch(HOT_KEYS + 8)

        def has_new_keys() -> bool:  # a refresh may come between two of the sketches
            layout = workers[0].layouts[workers[0].state.generation, 4][0]
            return set(layout.keys.tolist()) == set((HOT_KEYS + 8).tolist())

        wait_for(has_new_keys, *workers)
        rows = workers[0].state.rows
        hot = rows[rows["epoch"] > 0]
        assert (hot["epoch"] > before.rows["epoch"].max()).any()
        wait_for(lambda: not workers[0].pending, *workers)
        assert bench.values(np.arange(24)).sum() == 3 * scale


def test_a_new_view_begins_with_round_1(monkeypatch: pytest.MonkeyPatch) -> None:
    with hot_scene(monkeypatch) as (bench, workers):
        generation, total = workers[0].state.generation, scaled(workers[0], 4)
        workers[0].push(4, lanes_of(1))
        bench.begin_view()
        wait_for(lambda: all(w.state.generation > generation for w in workers), *workers)
        assert workers[0].next == {4: 1, 5: 1}
        wait_for(lambda: not workers[0].pending, *workers)
        scale = scaled(workers[1], 4)
        total += scale * push_until_hot(workers[1], 4, lanes_of(1), workers)
        wait_for(lambda: bench.values().sum() == total, *workers)


def test_a_view_without_place_makes_all_cold(monkeypatch: pytest.MonkeyPatch) -> None:
    with hot_scene(monkeypatch) as (bench, workers):
        scale = scaled(workers[0], 4)
        workers[0].push(4, lanes_of(1))
        bench.switch.begin_view(bench.switch.generation + 1, 2)
        bench.tell_view(num_rows=0, reason="no room")
        wait_for(lambda: not workers[0].has_rows and not workers[0].pending, *workers)
        wait_for(lambda: bench.values().sum() == scale, *workers)
        bench.begin_view()
        wait_for(lambda: all(worker.has_rows for worker in workers), *workers)


def test_a_silent_switch_makes_all_cold_until_it_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    with hot_scene(monkeypatch, silent_s=1.0) as (bench, workers):
        bench.switch.stop()
        workers[0].push(4, lanes_of(1))
        wait_for(lambda: not any(worker.has_rows for worker in workers), *workers)
        assert bench.count("hot_silences") >= 1
        wait_for(lambda: bench.values().any(), *workers)
        monkeypatch.setattr(hot_row_server, "SILENT_S", WAIT_S)
        bench.switch.restart()
        push_until_hot(workers[0], 4, lanes_of(1), workers)


def test_workers_learn_of_rows_when_they_are_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    with hot_scene(monkeypatch) as (bench, workers):
        bench.link.is_away = True
        num_states = len(workers[0].states)
        bench.switch.begin_view(bench.switch.generation + 1, 2)
        bench.tell_view()
        bench.loop.run(lambda: None)
        late = HotWorker(bench, 1, 55).enter()
        wait_for(lambda: bench.link.sets[-1][0] == bench.switch.generation, late, *workers)
        assert (len(workers[0].states), late.states) == (num_states, [])
        bench.link.install()
        wait_for(lambda: late.has_rows and workers[0].has_rows, late, *workers)
        assert late.state.generation == bench.switch.generation
        late.close()


def test_a_sum_that_saturated_counts_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    with hot_scene(monkeypatch) as (bench, workers):
        exponent = workers[0].layouts[workers[0].state.generation, 4][2]
        for worker in workers:
            worker.push(4, lanes_of(2**31 - 1))
        wait_for(lambda: all(worker.num_cold for worker in workers), *workers)
        wait_for(lambda: not any(worker.pending for worker in workers), *workers)
        generation = workers[0].state.generation
        wait_for(lambda: workers[0].layouts[generation, 4][2] > exponent, *workers)
        assert bench.count("hot_overflows") >= 1
        assert bench.count("hot_pushes") == 0


def test_strange_packets_and_questions_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    with hot_scene(monkeypatch) as (bench, workers):
        local = bench.server.local
        assert local is not None
        place = local.address, local.udp_port
        packets = workers[0].packets
        numbers = np.array([4], np.uint32)
        foreign = read_packets(packets, numbers, numbers, numbers)
        bench.switch._socket.sendto(b"too short", place)
        bench.switch._socket.sendto(bytes(foreign.shape[1] + 4), place)
        bench.switch._socket.sendto(bytes(foreign.shape[1]), place)
        bench.switch._socket.sendto(foreign.tobytes(), place)  # a READ has nothing to say
        before = dict(bench.service.state.hot.pack())
        for generation, row in ((bench.switch.generation, 7000), (3, 7000)):
            workers[0].decide(generation, row, 1)
        bench.loop.run(lambda: bench.server.add_sketch(12345, FrequencySketch(1)))
        wait_for(lambda: bench.count("hot_foreign") == 1, *workers)
        wait_for(lambda: bool(workers[0].decisions), *workers)
        assert dict(bench.service.state.hot.pack()) == before
        assert [one[:3] for one in workers[0].decisions] == [(7000, 1, 0)]
        push_until_hot(workers[0], 4, lanes_of(1), workers)


def test_a_server_that_the_controller_refuses_has_no_hot_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with hot_scene(monkeypatch) as (bench, workers):
        workers[0].push(4, lanes_of(1))
        bench.loop.run(lambda: bench.server.on_down(JobRefusedError("taken")))
        wait_for(lambda: not workers[0].has_rows and not workers[0].pending, *workers)
        assert bench.link.sets[-1][2].size == 0


def test_a_switch_with_newer_values_gets_newer_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    with hot_scene(monkeypatch) as (bench, workers):
        worker = workers[0]
        packets = RowPackets(
            job_id=bench.switch.job_id,
            generation=bench.switch.generation,
            worker_id=SERVER_ID_BASE + 1,
            worker_bitmap=0,
            num_workers=2,
            values_per_packet=32,
        )
        stranger = UdpTransport(LOOPBACK)
        stranger.open(bench.switch.endpoint, packets.datagram_bytes)
        row, epoch = np.array([4], np.uint32), np.array([worker.epoch(4)], np.uint32)
        stranger.send(packets.write(row, epoch, row * 100_000, np.ones((1, 32), np.int32)))
        stranger.close()
        key = int(worker.layouts[worker.state.generation, 4][0].keys[0])

        def has_own() -> bool:
            worker.push_cold(np.array([key]), np.ones((1, 4), np.float32))
            found = worker.read(4, 1)
            return found is not None and found[0] > 400_000 and float(found[1][0]) >= 1.0

        wait_for(has_own, *workers)


@pytest.mark.parametrize("seed", range(3))
def test_every_push_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """With loss, doubled and reordered packets, other hot keys, views, and restarts."""
    rng = np.random.default_rng(seed)
    impaired = {"loss": 0.05, "duplication": 0.05, "reordering": 0.1, "seed": seed}
    with hot_scene(monkeypatch, tmp_path, **impaired) as (bench, workers):
        total = 4 * 2**16

        def pushed() -> float:
            return float(bench.values(np.arange(128)).sum(dtype=np.float64))

        for step in range(240):
            worker = workers[int(rng.integers(0, 2))]
            wait_for(lambda worker=worker: any(map(worker.is_free, worker.next)), *workers)
            for row in filter(worker.is_free, worker.next):
                gradients = rng.integers(0, 200, 32)
                total += int(gradients.sum())
                worker.push(row, lanes_of(*(gradients / scaled(worker, row)).astype(int).tolist()))
            match step % 60:
                case 10:
                    workers[0].sketch(HOT_KEYS + int(rng.integers(0, 16)))
                case 25:
                    bench.restart()
                    for each in workers:
                        each.enter()
                case 40:
                    bench.switch.restart()
                case 50:
                    bench.crash(workers)
                    for each in workers:
                        each.enter()
                case 55:
                    bench.begin_view()
        wait_for(lambda: not any(worker.pending for worker in workers), *workers)
        wait_for(lambda: pushed() == total, *workers)
        assert sum(worker.num_hot for worker in workers) > 100
        assert sum(worker.num_cold for worker in workers) > 1
        assert bench.service.state.tables[TABLE.number].rows.lsn > 0
