# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Random changes of hot rows on a server's state, beside plain dicts that say what comes out."""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

from switchfold.hostlib.hot_rows import EMPTY, LaneLayout, RowShape
from switchfold.hostlib.parameter_server.hot_server.changes import (
    HotChange,
    HotFence,
    HotLayout,
    is_hot,
    unpack,
)
from switchfold.hostlib.parameter_server.hot_server.rounds import RowsOfRounds
from switchfold.hostlib.parameter_server.hot_server.served_rows import SERVED_DTYPE, ServedRows
from switchfold.hostlib.parameter_server.hot_server.state import ArrivedSums
from switchfold.hostlib.parameter_server.tables import TableDefinition
from switchfold.hostlib.parameter_server.tables.change import TableChange
from switchfold.hostlib.parameter_server.tables.snapshot import capture, restore, row_chunks
from switchfold.hostlib.parameter_server.tables.state import TableState
from switchfold.hostlib.peers.frames import FrameKind

NUM_WORKERS, NUM_LANES = 4, 8
NARROW = TableDefinition(name="narrow", width=3, hot_keys=8)
WIDE = TableDefinition(name="wide", width=11, hot_keys=2)
ALL_KEYS = np.arange(40)
Logged = tuple[int, bytes | TableChange]


def u32(*numbers: int) -> NDArray[np.uint32]:
    return np.array(numbers, np.uint32)


def one(row: int, number: int) -> RowsOfRounds:
    return RowsOfRounds(u32(row), u32(number))


class DictRounds:
    """The rounds by plain rules: what is decided, and what each key's sum must be."""

    def __init__(self) -> None:
        self.generation = 0
        self.decided: dict[tuple[int, int, int], int] = {}
        self.sums: dict[tuple[str, int], NDArray[np.float64]] = {}
        self.history: dict[tuple[int, int], list[tuple[int, int]]] = {}

    def lowest(self, row: int) -> int:
        number = 1
        while (self.generation, row, number) in self.decided:
            number += 1
        return number

    def is_open(self, row: int, number: int) -> bool:
        lowest = self.lowest(row)
        return number in (lowest, lowest + 1) and (
            (self.generation, row, number) not in self.decided
        )

    def fence(self, row: int, number: int) -> None:
        self.decided[self.generation, row, number] = 0

    def fence_open(self, row: int) -> None:
        lowest = self.lowest(row)
        for number in (lowest, lowest + 1):
            self.decided.setdefault((self.generation, row, number), 0)

    def add(self, served: ServedRows, row: int, number: int, bitmap: int, lanes: list[int]) -> None:
        self.decided[self.generation, row, number] = bitmap
        for worker in range(NUM_WORKERS):
            if bitmap >> worker & 1:
                self.history.setdefault((row, worker), []).append((self.generation, number))
        (index,) = np.flatnonzero(served.rows["row"] == row)
        exponent = int(served.rows["exponent"][index])
        table = int(served.rows["table"][index])
        part = next(part for part in served.parts if part.table == table)
        place = int(index) - part.first
        if table == NARROW.number:
            for cell in range(2):
                key = int(part.layout.keys[2 * place + cell])
                if key != EMPTY:
                    self._add("narrow", key, 0, lanes[3 * cell : 3 * cell + 3], exponent)
        else:
            key = int(part.layout.keys[place // 2])
            width = 8 if place % 2 == 0 else 3
            if key != EMPTY:
                self._add("wide", key, 8 * (place % 2), lanes[:width], exponent)

    def _add(self, name: str, key: int, first: int, lanes: list[int], exponent: int) -> None:
        width = NARROW.width if name == "narrow" else WIDE.width
        held = self.sums.setdefault((name, key), np.zeros(width))
        held[first : first + len(lanes)] += np.array(lanes) * 2.0**exponent


class Schedule:
    """Random events on a TableState, whose records become durable later, in order, or never."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.state, self.model = TableState(NUM_WORKERS), DictRounds()
        self.log: list[Logged] = []
        self.waiting: list[HotChange | TableChange] = []
        self.lost: list[RowsOfRounds] = []
        self.lsn = self.epoch = self.incarnation = 0
        self.digests: dict[int, int] = {}
        """By lsn: of the state when this record was applied."""
        self.snapshot: tuple[int, list[tuple[str, bytes]]] = (0, [])
        for definition in (NARROW, WIDE):
            self.log_request(definition)

    def log_request(self, definition: TableDefinition) -> None:
        if not self.incarnation:
            self.enter(0)
            self.settle()
        number = self.state.workers[0].number + 1
        change = TableChange(FrameKind.DEFINE, 0, self.state.workers[0].incarnation, number)
        self.lsn += 1
        self.state.apply(change, memoryview(definition.pack()), lsn=self.lsn)
        self.log.append((self.lsn, change.pack() + definition.pack()))

    def enter(self, worker: int) -> None:
        self.incarnation += 1
        self.state.hot.claim_all()
        self.waiting.append(TableChange(FrameKind.ENTER, worker, self.incarnation, 0))

    def layout(self, *, is_new_view: bool) -> None:
        old = self.state.hot.served
        generation = self.state.hot.generation + is_new_view
        if any(isinstance(change, HotLayout) for change in self.waiting):
            return  # one at a time, as the server does it
        rows = np.zeros(4, SERVED_DTYPE)
        rows["row"] = 5 + np.arange(4) + 4 * int(self.rng.integers(0, 2)) * is_new_view
        rows["table"] = [NARROW.number] * 2 + [WIDE.number] * 2
        narrow = np.append(self.rng.permutation(ALL_KEYS)[:3], EMPTY)
        wide = self.rng.permutation(ALL_KEYS)[:1]
        is_kept = np.zeros(4, bool)
        if old.rows.size and not is_new_view:
            rows["row"] = old.rows["row"]
            is_kept[:] = [self.rng.random() < 0.5] * 2 + [self.rng.random() < 0.5] * 2
            for first, keys, layout in ((0, narrow, old.layouts[0]), (2, wide, old.layouts[1])):
                if is_kept[first]:
                    keys[:] = layout[1].keys
        self.epoch += 4
        rows["epoch"] = np.arange(self.epoch, self.epoch + 4) * 32
        rows["exponent"] = self.rng.integers(-9, 3, 4)
        rows[is_kept] = old.rows[is_kept] if is_kept.any() else rows[is_kept]
        shapes = [RowShape(num_lanes=NUM_LANES, width=each.width) for each in (NARROW, WIDE)]
        layouts = tuple(
            (each.number, LaneLayout(shape, keys, np.ones(2, np.uint32)))
            for each, shape, keys in zip((NARROW, WIDE), shapes, (narrow, wide), strict=True)
        )
        change = HotLayout(ServedRows(generation, rows, layouts, number=old.number + 1))
        self.state.hot.claim_layout(change)
        self.waiting.append(change)

    def sums(self) -> None:
        served, count = self.state.hot.served, int(self.rng.integers(1, 9))
        if not served.rows.size:
            return
        at = self.rng.integers(0, served.rows.size, count)
        rows = served.rows["row"][at].astype(np.uint32)
        lowest = self.state.hot.rounds.next[rows]
        rounds = (lowest + self.rng.integers(-2, 4, count)).astype(np.uint32)
        epochs = served.rows["epoch"][at].copy()
        epochs[self.rng.random(count) < 0.1] += 32
        rows[self.rng.random(count) < 0.05] = 3000
        bitmaps = self.rng.integers(1, 1 << NUM_WORKERS, count).astype(np.uint32)
        lanes = self.rng.integers(-99, 99, (count, NUM_LANES)).astype(np.int32)
        lanes[self.rng.random((count, NUM_LANES)) < 0.3] = 0
        arrived = ArrivedSums(RowsOfRounds(rows, rounds), epochs, bitmaps, lanes)
        change = self.state.hot.claim_sums(arrived)
        if self.rng.random() < 0.2:
            self.lost.append(change.decided)
        else:
            self.waiting.append(change)

    def fence(self) -> None:
        served = self.state.hot.served
        if not served.rows.size:
            return
        row = int(self.rng.choice(served.rows["row"]))
        number = int(self.state.hot.rounds.next[row] + self.rng.integers(-1, 3))
        self.waiting.append(self.state.hot.claim_fence(one(row, number)))

    def fence_lost(self) -> None:
        """The log takes records again: rounds whose sums it refused count no worker."""
        for decided in self.lost:
            self.waiting.append(HotFence(self.state.hot.generation, decided))
        self.lost.clear()

    def settle(self, count: int = 1 << 30) -> None:
        """Make some records durable; check what they decide."""
        for change in self.waiting[:count]:
            self.lsn += 1
            if isinstance(change, TableChange):
                self.state.apply(change, memoryview(b""), lsn=self.lsn)
                self.log.append((self.lsn, change.pack()))
                for row in self.state.hot.served.rows["row"].tolist():
                    self.model.fence_open(row)
                self.model.history = {
                    place: rounds
                    for place, rounds in self.model.history.items()
                    if place[1] != change.worker_id
                }
                continue
            self.log.append((self.lsn, b"".join(change.pack())))
            self._expect(change)
            self.state.apply_hot(change, lsn=self.lsn)
            self.digests[self.lsn] = digest(self.state)
        del self.waiting[:count]
        self.check()

    def _expect(self, change: HotChange) -> None:
        model, served = self.model, self.state.hot.served
        if isinstance(change, HotLayout):
            is_new_view = change.served.generation != model.generation
            before = dict(zip(served.rows["row"].tolist(), served.rows["epoch"], strict=True))
            after = dict(
                zip(change.served.rows["row"].tolist(), change.served.rows["epoch"], strict=True)
            )
            for row, epoch in before.items():
                if is_new_view or after.get(row) != epoch:
                    model.fence_open(row)
            model.generation = change.served.generation
            return
        for at, (row, number) in enumerate(zip(*change.decided, strict=True)):
            if change.generation != model.generation or not model.is_open(int(row), int(number)):
                continue
            if isinstance(change, HotFence):
                model.fence(int(row), int(number))
            else:
                bitmap, lanes = int(change.bitmaps[at]), change.lanes[at].tolist()
                model.add(served, int(row), int(number), bitmap, lanes)

    def check(self) -> None:
        rounds, model = self.state.hot.rounds, self.model
        for row in self.state.hot.served.rows["row"].tolist():
            lowest = model.lowest(row)
            assert rounds.next[row] == lowest
            is_ahead = (model.generation, row, lowest + 1) in model.decided
            assert rounds.is_ahead[row] == is_ahead
        for (row, worker), history in model.history.items():
            last = sorted(history)[-2:]
            wanted = [generation << 32 | number for generation, number in last]
            assert rounds.counted[row, worker].tolist() == [0] * (2 - len(wanted)) + wanted
        for definition in (NARROW, WIDE):
            if definition.number not in self.state.tables:
                continue
            values = self.state.pull(definition.number, ALL_KEYS).values
            for key in ALL_KEYS.tolist():
                wanted = model.sums.get((definition.name, key), np.zeros(definition.width))
                np.testing.assert_array_equal(values[key], wanted)

    def keep_snapshot(self) -> None:
        chunks = [*capture(self.state), *row_chunks([*self.state.tables.items()])]
        self.snapshot = self.lsn, [(name, bytes(data)) for name, data in chunks]

    def replay(self, *, has_snapshot: bool) -> TableState:
        """Return the state that the log makes, after the last snapshot or by itself.

        It is the same after each record, so a server may be killed after any.
        """
        state = TableState(NUM_WORKERS)
        lsn, chunks = self.snapshot if has_snapshot else (0, [])
        if chunks:
            restore(state, chunks)
        for number, record in self.log:
            if number <= lsn:
                continue
            assert isinstance(record, bytes)
            if is_hot(memoryview(record)):
                state.apply_hot(unpack(memoryview(record)), lsn=number, is_replay=True)
                assert has_snapshot or digest(state) == self.digests[number]
            else:
                request, payload = TableChange.unpack(memoryview(record))
                state.apply(request, payload, lsn=number, is_replay=True)
        return state


def digest(state: TableState) -> int:
    """Return a checksum of hot rows and values."""
    found = zlib.crc32(b"".join(data for _, data in state.hot.pack()))
    for number in sorted(state.tables):
        rows = state.tables[number].pull(ALL_KEYS)
        found = zlib.crc32(rows.values.tobytes() + rows.updates.tobytes(), found)
    return found
