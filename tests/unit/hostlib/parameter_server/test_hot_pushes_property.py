# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Random schedules of packets, frames, failures and changes: the server's sums stay exact."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from hot_world import Call, World
from hot_world_server import FLUSH_S

NUM_KEYS, NUM_WORKERS, STEPS = 30, 3, 600


class Schedule:
    """Draws what happens next."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
        self.random = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        self.world = World(monkeypatch, NUM_WORKERS, self.random.choice([5, 8, 16, 40]))
        self.generation = 1
        self.calls: list[Call] = []
        self.happened: Counter[str] = Counter()
        self.world.server.set_rows(self.hot_keys(), generation=1, first_row=self.first_row())
        self.world.server.install()

    def hot_keys(self) -> list[int]:
        return self.random.sample(range(NUM_KEYS), self.random.randint(1, 12))

    def first_row(self) -> int:
        return self.random.randint(0, 3)

    def step(self) -> None:
        kinds = (self.push, self.packet, self.frame, self.time, self.choose, self.fault)
        self.random.choices(kinds, weights=(10, 60, 20, 8, 0.5, 2))[0]()

    def push(self) -> None:
        worker = self.random.choice(self.world.workers)
        keys = self.rng.integers(0, NUM_KEYS, self.random.randint(1, 8))
        lanes = self.rng.integers(-50, 51, (keys.size, self.world.width))
        self.calls.append(worker.push(keys.tolist(), self.world.gradients(lanes)))

    def packet(self) -> None:
        """Deliver one of the oldest packets, or lose or double it."""
        packets = self.world.packets
        if packets:
            index = self.random.randrange(min(len(packets), 12))
            fate = self.random.random()
            if fate < 0.05:
                del packets[index]
            else:
                self.world.deliver(index, is_kept=fate < 0.1)

    def frame(self) -> None:
        worker = self.random.choice(self.world.workers)
        queues = (
            (worker.from_server, worker.take_frame),
            (worker.changes, worker.take_change),
            (worker.decides, worker.take_decide),
        )
        for waiting, take in queues:
            if waiting and self.random.random() < 0.7:
                take()

    def time(self) -> None:
        self.world.loop.pass_by(self.random.uniform(0, 2 * FLUSH_S))

    def choose(self) -> None:
        """Let a worker go without hot rows for a while, or with them again."""
        choice = self.random.choice(self.world.workers).choice
        choice.uses_hot = not choice.uses_hot

    def fault(self) -> None:
        faults = (self.cut, self.restart, self.evict, self.change_rows, self.change_view)
        fault = self.random.choices(faults, weights=(3, 2, 3, 4, 1))[0]
        self.happened[fault.__name__] += 1
        fault()

    def cut(self) -> None:
        self.random.choice(self.world.workers).cut()

    def restart(self) -> None:
        self.world.restart_switch()

    def evict(self) -> None:
        self.world.evict(self.random.choice(list(self.world.server.rows)))

    def change_rows(self) -> None:
        """Change some rows; the switch and the workers hear of it a little later."""
        self.world.server.set_rows(self.hot_keys(), generation=self.generation)
        for _ in range(self.random.randrange(30)):
            self.random.choice((self.push, self.packet, self.frame))()
        self.world.server.install()

    def change_view(self) -> None:
        self.generation += 1
        self.world.server.set_rows(
            self.hot_keys(), generation=self.generation, first_row=self.first_row()
        )
        for _ in range(self.random.randrange(30)):
            self.random.choice((self.push, self.packet, self.frame))()
        self.world.server.install()


@pytest.mark.parametrize("seed", range(40))
def test_every_push_counts_exactly_once(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    schedule = Schedule(monkeypatch, seed)
    world = schedule.world
    for _ in range(STEPS):
        schedule.step()
    assert schedule.happened
    assert world.passed["AGGREGATE_ADD"]
    world.run_until(schedule.calls)
    assert not any(call.error for call in schedule.calls)
    world.check_sums()
