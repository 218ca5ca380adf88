# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Every update counts once: broken connections, restarted servers, workers that start again."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from cutting_proxy import CuttingProxy
from fake_transfers import (
    Caller,
    FakeTransfers,
    Policy,
    expected,
    grant_everything,
    granted,
    say_nothing,
    server,
    worker,
)
from loopback import LOOPBACK
from switchfold.hostlib.control.transfers_api import transfers_pb2 as api
from switchfold.hostlib.errors import PeerRefusedError, ServerRestartedError
from switchfold.hostlib.parameter_server.tables.change import (
    UPDATE_BYTES,
    ScheduledUpdate,
    TableChange,
)
from switchfold.hostlib.parameter_server.tables.snapshot import capture, restore, row_chunks
from switchfold.hostlib.parameter_server.tables.state import TableState
from switchfold.hostlib.peers.frames import FrameKind
from time_bound import wait_until
from transfer_scene import DEFINITION, WAIT_S, TransferScene, values, wait_briefly

NUM_WORKERS = 3
PUSHES = 12
FAST = (0.0, 1.0, 10_000_000_000)


def limits(seed: int, count: int) -> Iterator[int]:
    draw = random.Random(seed)
    return iter([draw.randint(1, draw.choice((300, 40_000))) for _ in range(count)])


def moody(seed: int) -> Policy:
    """Grant in a random order, or give no answer; a place in 8 gets no update at all."""
    chance, lock, places = random.Random(seed), threading.Lock(), iter(range(1 << 20))

    def answer(fake: FakeTransfers, caller: Caller, message: api.StationMessage) -> None:
        if not message.HasField("requested"):
            return
        asked = message.requested
        with lock:
            draw, place = chance.random(), next(places)
            if draw < 0.125:
                fake.tell(server(), expected(place, 77, 1 << 40))
                place = next(places)
            if draw > 0.8:
                return
            fake.tell(server(), expected(place, caller.station_id, asked.transfer_id))
            fake.tell(caller, granted(asked.transfer_id, place, FAST))

    return answer


@pytest.mark.parametrize("has_log", [False, True])
def test_cut_connections(tmp_path: Path, has_log: bool) -> None:
    """Workers push through proxies that cut; the scheduler forgets some, and some places stay."""
    folder = tmp_path if has_log else None
    with TransferScene(
        moody(1), NUM_WORKERS, folder=folder, grant_wait_s=0.2, place_wait_s=0.02
    ) as scene:
        port = scene.cluster.servers[0].port

        def work(worker_id: int) -> None:
            with CuttingProxy(port, limits(worker_id, 15)) as proxy:
                tensor = scene.tensor(worker_id, [(LOOPBACK, proxy.port)])
                with scene.worker(worker_id, tensor) as fabric:
                    futures = [fabric.push(values(100 * worker_id + n)) for n in range(PUSHES)]
                    assert all(future.result(WAIT_S).is_committed for future in futures)
                tensor.client.close()

        with ThreadPoolExecutor(NUM_WORKERS) as pool:
            for each in [pool.submit(work, worker_id) for worker_id in range(NUM_WORKERS)]:
                each.result()
        total = sum(values(100 * w + n) for w in range(NUM_WORKERS) for n in range(PUSHES))
        read = scene.tensor(0).read().result(WAIT_S)
        np.testing.assert_array_equal(read.values, total)
        assert read.commits.tolist() == [NUM_WORKERS * PUSHES]


def test_a_server_that_restarts_with_its_log_has_each_update_once(tmp_path: Path) -> None:
    with TransferScene(grant_everything(), folder=tmp_path) as scene:
        fabric, total = scene.worker(0), np.zeros_like(values(0))
        for restart in range(3):
            futures = [fabric.push(values(10 * restart + n)) for n in range(8)]
            total += sum(values(10 * restart + n) for n in range(8))
            futures[restart].result(WAIT_S)
            scene.cluster.restart(0)
            assert all(future.result(WAIT_S).is_committed for future in futures)
            registers = scene.fake.wait_for(server(), "register", restart + 2)
        np.testing.assert_array_equal(fabric.get().result(WAIT_S), total)
        assert fabric.commits.tolist() == [24]
        assert 0 < registers[1].version <= registers[2].version <= registers[3].version


def transfer(number: int, open_from: int, incarnation: int = 9) -> tuple[TableChange, memoryview]:
    definition = DEFINITION.table()
    keys = np.arange(definition.max_rows)
    payload = memoryview(bytearray(UPDATE_BYTES))
    gradients = np.full((keys.size, definition.width), number, np.float32)
    ScheduledUpdate(0.5, open_from).pack_into(payload)
    whole = memoryview(bytes(payload) + keys.tobytes() + gradients.tobytes())
    change = TableChange(FrameKind.TRANSFER, 0, incarnation, number, definition.number, keys.size)
    return change, whole


def test_a_snapshot_remembers_which_updates_it_has() -> None:
    state = TableState(1)
    state.apply(TableChange(FrameKind.ENTER, 0, 9, 0, 1), memoryview(b""), lsn=1)
    definition = DEFINITION.table()
    state.apply(TableChange(FrameKind.DEFINE, 0, 9, 1), memoryview(definition.pack()), lsn=2)
    for lsn, (number, open_from) in enumerate([(2, 1), (5, 2), (4, 4)], 3):
        state.apply(*transfer(number, open_from), lsn=lsn)
    restored = TableState(1)
    chunks = chain(capture(state), row_chunks([*state.tables.items()]))
    restore(restored, [(name, bytes(payload)) for name, payload in chunks])
    assert restored.workers == state.workers
    assert restored.num_commits == 3
    assert restored.workers[0].updates == [4, 5]
    for lsn, (number, open_from) in enumerate([(5, 2), (4, 4), (6, 4)], 6):
        restored.apply(*transfer(number, open_from), lsn=lsn)
    restored.apply(*transfer(7, 4, incarnation=8), lsn=9)  # of a process before
    assert restored.num_commits == 4
    kept = restored.pull(definition.number, np.arange(definition.max_rows))
    assert (kept.values == (2 + 5 + 4 + 6) / 2).all()
    restored.apply(TableChange(FrameKind.ENTER, 0, 10, 0, 1), memoryview(b""), lsn=10)
    assert (restored.workers[0].updates, restored.num_commits) == ([], 4)


def test_a_server_that_lost_its_tables_is_noticed() -> None:
    with TransferScene(say_nothing) as scene:
        fabric = scene.worker(0)
        future = fabric.push(values(1))
        asked = scene.fake.wait_for(worker(0), "requested")[0]
        scene.cluster.restart(0)
        scene.fake.wait_for(server(), "register", 2)
        scene.fake.tell(worker(0), granted(asked.transfer_id, 0, FAST))
        with pytest.raises(ServerRestartedError):
            future.result(WAIT_S)


def test_a_new_process_of_a_worker_replaces_the_old_one() -> None:
    with TransferScene(grant_everything()) as scene:
        old = scene.worker(0)
        old.push(values(1)).result(WAIT_S)
        new = scene.worker(0)
        updates = scene.cluster.servers[0].updates
        incarnation = new._tensor.client.incarnation
        wait_until(lambda: updates._incarnations[0] == incarnation, "it has not entered")
        # Its transfer has the same id as that of the old process, and is another one.
        new.push(values(2)).result(WAIT_S)
        assert scene.counter("granted_updates") == 2
        wait_briefly(old)  # the scheduler talks with the new process
        with pytest.raises(PeerRefusedError, match="another process is worker 0"):
            old.push(values(3)).result(WAIT_S)
        np.testing.assert_array_equal(new.get().result(WAIT_S), values(1) + values(2))


def test_what_waits_for_a_place_is_forgotten_with_its_process() -> None:
    """The old process never heard that its update was applied, so it does not count."""
    with TransferScene(say_nothing, place_wait_s=WAIT_S) as scene:
        old = scene.worker(0)
        held = old.push(values(1))
        scene.fake.wait_for(worker(0), "requested")
        scene.fake.tell(server(), expected(0, 1, 5), expected(1, 0, 1))
        scene.fake.tell(worker(0), granted(1, 1, FAST))
        scene.fake.wait_for(server(), "delivered")
        scene.fake.policy = grant_everything()
        scene.worker(0)
        with pytest.raises(PeerRefusedError):
            held.result(WAIT_S)
        scene.fake.tell(server(), api.SchedulerMessage(skipped=api.CommitSkipped(sequence=0)))
        scene.await_counter("forgotten_updates")
        read = scene.tensor(1).read().result(WAIT_S)
        assert not read.values.any()
        assert read.commits.tolist() == [0]


def test_held_updates_are_bounded_and_the_awaited_one_always_gets_room() -> None:
    with TransferScene(say_nothing, num_workers=3, place_wait_s=WAIT_S) as scene:
        updates = scene.cluster.servers[0].updates
        updates._most_held_bytes = 1
        order: list[int] = []
        updates.on_update = lambda update: order.append(update.worker_id)
        scene.fake.tell(server(), *(expected(place, place, 1) for place in range(3)))
        fabrics = [scene.worker(number) for number in range(3)]
        futures = [fabric.push(values(number)) for number, fabric in enumerate(fabrics)]
        for number in (2, 1, 0):
            scene.fake.wait_for(worker(number), "requested")
            scene.fake.tell(worker(number), granted(1, number, FAST))
            if number == 2:
                scene.fake.wait_for(server(), "delivered")
        assert [future.result(WAIT_S).parts[0].version for future in futures] == [1, 2, 3]
        wait_until(lambda: len(order) == 3, "an update is not told")
        assert order == [0, 1, 2]
        wait_until(lambda: updates._held_bytes == 0, "memory is not free again")
