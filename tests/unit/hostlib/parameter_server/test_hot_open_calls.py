# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Calls end when all their parts have, whatever the order."""

from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np
import pytest

from switchfold.hostlib.errors import HostlibError
from switchfold.hostlib.parameter_server.hot_worker.open_calls import OpenCalls

NUM_PLACES = 40


class Oracle:
    """The parts of each call, one by one."""

    def __init__(self) -> None:
        self.places: list[list[int]] = [[] for _ in range(NUM_PLACES)]
        self.parts: Counter[int] = Counter()
        self.errors: dict[int, HostlibError] = {}
        self.ended: dict[int, HostlibError | None] = {}

    def detach(self, places: list[int]) -> Counter[int]:
        shares: Counter[int] = Counter()
        for place in places:
            shares.update(self.places[place])
            self.places[place] = []
        return shares

    def settle(self, shares: Counter[int], error: HostlibError | None) -> None:
        for name, count in shares.items():
            self.parts[name] -= count
            if error is not None:
                self.errors.setdefault(name, error)
            if not self.parts[name]:
                self.ended[name] = self.errors.get(name)


@pytest.mark.parametrize("seed", range(10))
def test_parts_are_counted(seed: int) -> None:
    rng = np.random.default_rng(seed)
    calls, oracle = OpenCalls(NUM_PLACES), Oracle()
    ended: dict[int, HostlibError | None] = {}
    later = []
    num_names = 0

    def draw_places() -> np.ndarray:
        return np.flatnonzero(rng.random(NUM_PLACES) < rng.choice([0.02, 0.2]))

    for _ in range(500):
        match rng.integers(8):
            case 0 | 1:  # a call for some places
                name, num_names = num_names, num_names + 1
                call = calls.open(partial(ended.__setitem__, name))
                oracle.parts[name] += 1
                for _ in range(rng.integers(1, 3)):
                    places = draw_places()
                    calls.attach(places, call)
                    oracle.parts[name] += places.size
                    for place in places.tolist():
                        oracle.places[place].append(name)
                calls.settle_one(call)
                oracle.settle(Counter({name: 1}), None)
            case 2 | 3:  # parts that end at once, or later
                places = draw_places()
                shares, expected = calls.detach(places), oracle.detach(places.tolist())
                assert sorted(shares.counts.tolist()) == sorted(expected.values())
                later.append((shares, expected))
            case 4 | 5 | 6 if later:
                shares, expected = later.pop(int(rng.integers(len(later))))
                error = HostlibError("lost") if rng.random() < 0.2 else None
                calls.settle(shares, error)
                oracle.settle(expected, error)
            case _:  # further parts of the calls of places; gradients that move
                places = draw_places()
                more = Counter(n for place in places.tolist() for n in oracle.places[place])
                later.append((calls.share(places), more))
                oracle.parts.update(more)
                count = int(rng.integers(1, 8))
                old, new = np.split(rng.permutation(NUM_PLACES)[: 2 * count], 2)
                calls.move(old, new)
                for one, other in zip(old.tolist(), new.tolist(), strict=True):
                    oracle.places[other] += oracle.places[one]
                    oracle.places[one] = []
        assert ended == oracle.ended
    assert len(ended) > 50
    assert calls.num_open == num_names - len(ended)


def test_places_that_change_keep_their_calls() -> None:
    calls = OpenCalls(4)
    ended: list[HostlibError | None] = []
    call = calls.open(ended.append)
    calls.attach(np.array([1, 3]), call)
    calls.settle_one(call)
    calls.replace(2, np.array([1, 3]), np.array([1, 0]))
    calls.settle(calls.detach(np.array([0])))
    assert not ended
    calls.settle(calls.detach(np.array([1])))
    assert ended == [None]
