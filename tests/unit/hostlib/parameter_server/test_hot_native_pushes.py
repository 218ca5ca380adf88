# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The C library's pushes, reads and packets of hot rows, against simple models."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hot_push_model import FLUSH_S, PushModel
from hot_world import World
from switchfold.hostlib.errors import HostlibError, PeerProtocolError
from switchfold.hostlib.hot_rows import EMPTY, LaneLayout, RowShape
from switchfold.hostlib.hot_rows.hot_cells import KeyedGradients
from switchfold.hostlib.hot_rows.row_packets import RowPackets
from switchfold.hostlib.native.hot_row_library import hot_library
from switchfold.hostlib.native.library import address
from switchfold.hostlib.parameter_server.hot_worker.open_calls import OpenCalls
from switchfold.hostlib.parameter_server.hot_worker.packet_room import PacketRoom
from switchfold.hostlib.parameter_server.hot_worker.pushes import MOST_LANE, HotPushes
from switchfold.hostlib.parameter_server.hot_worker.reads import HotReads
from switchfold.hostlib.parameter_server.hot_worker.row_map import RowMap
from switchfold.hostlib.peers.frames import (
    DECISION_DTYPE,
    HOT_ROW_DTYPE,
    HotRowsState,
    TableRows,
)
from switchfold.hostlib.slots.wire import Flag, Operation, view_datagrams
from worker_packets import push_packets, read_packets

LANES, TABLE, FIRST_NUMBER, EPOCH, BIT, JOB, GENERATION = 8, 4, 10, 64, 2, 7, 3
Floats = NDArray[np.float32]
Sent = tuple[Operation, int, int, int, tuple[float, ...]]


class Bench:
    """Hot rows of one table without a server: what they send, ask and push by TCP is kept."""

    def __init__(self, keys: NDArray[np.int64], width: int, exponent: int = 0) -> None:
        shape = RowShape(num_lanes=LANES, width=width)
        num_rows = shape.num_rows(keys.size)
        cells = np.full(num_rows // shape.rows_per_key * shape.keys_per_row, EMPTY)
        cells[: keys.size] = keys
        self.layout = LaneLayout(shape, cells, np.ones(num_rows, np.uint32))
        records = np.zeros(num_rows, HOT_ROW_DTYPE)
        records["row"] = np.arange(num_rows) + FIRST_NUMBER
        records["table"], records["epoch"], records["next"] = TABLE, EPOCH, 1
        records["exponent"] = exponent
        state = HotRowsState(
            generation=GENERATION,
            job_id=JOB,
            switch_address="10.0.0.1",
            switch_udp_port=1,
            worker_id=1,
            worker_bitmap=BIT,
            num_workers=5,
            values_per_packet=LANES,
            flush_us=int(1e6 * FLUSH_S),
            rows=records,
            tables=(TableRows(TABLE, self.layout.pack()),),
        )
        self.map = RowMap(state)
        self.packets = RowPackets(
            job_id=JOB,
            generation=GENERATION,
            worker_id=1,
            worker_bitmap=BIT,
            num_workers=5,
            values_per_packet=LANES,
        )
        self.calls = OpenCalls()
        self.pushes, self.reads = HotPushes(self, self.calls), HotReads(self)
        room = PacketRoom(num_rows, self.packets)
        self.reads.adopt(self.map, room)
        self.pushes.adopt(self.map, room, 0.0)
        self.table = self.map.tables[TABLE]
        self.by_tcp: list[Callable[[], None]] = []
        self.ended: list[int] = []
        self.clear()

    def clear(self) -> None:
        self.datagrams: list[NDArray[np.uint8]] = []
        self.asked: list[tuple[int, int]] = []
        self.cold: list[KeyedGradients] = []
        self.ended.clear()

    def send(self, datagrams: NDArray[np.uint8]) -> None:
        self.datagrams.append(datagrams.copy())

    def decide(self, generation: int, rounds: NDArray[np.void]) -> None:
        assert generation == GENERATION
        self.asked += [(int(row) - FIRST_NUMBER, int(round_)) for row, round_ in rounds]

    def push_cold(
        self, part: KeyedGradients, done: Callable[[HostlibError | None], None], calls: Any = None
    ) -> None:
        self.cold.append(part)
        self.by_tcp.append(lambda: done(None))

    def add(self, keys: NDArray[np.int64], gradients: Floats, now_s: float) -> int:
        payload = np.frombuffer(keys.tobytes() + gradients.astype(np.float32).tobytes(), np.uint8)
        split = self.pushes.split(self.table, payload[: keys.nbytes].view(np.int64), now_s)
        call = self.calls.open(lambda error: self.ended.append(call))
        self.pushes.add(self.table, split, call, now_s)
        self.calls.settle_one(call)
        return call

    def decided(self, decisions: list[tuple[int, int, bool]], now_s: float) -> bool:
        records = np.zeros(len(decisions), DECISION_DTYPE)
        for record, (row, round_, is_counted) in zip(records, decisions, strict=True):
            record["row"], record["round"] = row + FIRST_NUMBER, round_
            record["bitmap"] = 0xF if is_counted else 0xF ^ BIT
        try:
            self.pushes.decide(GENERATION, memoryview(records.tobytes()), now_s)
        except PeerProtocolError:
            return False
        return True

    def take(self, packets: NDArray[np.void], now_s: float) -> None:
        raw = packets.view(np.uint8)
        hot_library.hot_rows_take(self.pushes.at, self.reads.at, address(raw), packets.size)
        self.reads.finish_take()
        self.pushes.finish_take(now_s)

    def answer(self, operation: Operation, row: int, round_: int, **fields: int) -> Any:
        """Return a packet of the switch."""
        number = np.array([row + FIRST_NUMBER], np.uint32)
        raw = read_packets(
            self.packets, number, np.full(1, EPOCH, np.uint32), np.full(1, round_, np.uint32)
        )
        packets = view_datagrams(raw, LANES)
        packets["header"]["operation"] = operation
        for name, value in fields.items():
            packets["header"][name] = value
        return packets

    def answer_by_tcp(self) -> None:
        waiting, self.by_tcp = self.by_tcp, []
        for done in waiting:
            done()

    @property
    def sent(self) -> list[Sent]:
        packets = [packet for raw in self.datagrams for packet in view_datagrams(raw, LANES)]
        return [
            (
                Operation(int(packet["header"]["operation"])),
                int(packet["header"]["slot_index"]) - FIRST_NUMBER,
                int(packet["header"]["round"]),
                int(packet["header"]["num_contributors"]),
                tuple(float(lane) for lane in packet["values"]),
            )
            for packet in packets
        ]


def lanes_of(bench: Bench, keys: list[int], gradients: Floats) -> dict[int, Floats]:
    """Return the rows of hot keys with their lanes."""
    places = bench.layout.places(np.array(keys, np.int64))
    lanes: dict[int, Floats] = {}
    for row, lane, values in zip(places.row.tolist(), places.lane.tolist(), gradients, strict=True):
        for part in range(bench.layout.shape.rows_per_key if row >= 0 else 0):
            own = values[part * LANES : (part + 1) * LANES]
            sums = lanes.setdefault(row + part, np.zeros(LANES, np.float32))
            sums[lane : lane + own.size] += own
    return lanes


class Run:
    """The same events for both; they must do the same."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.width = self.draw.choice([1, 3, 8, 20])
        self.keys = self.draw.sample(range(100), self.draw.randint(1, 12))
        self.bench = Bench(np.array(self.keys, np.int64), self.width)
        self.model = PushModel(self.bench.map.size, LANES)
        self.now_s = 0.5
        self.names: dict[int, int] = {}  # of open calls
        self.num_calls = 0
        self.happened: Counter[str] = Counter()

    def step(self) -> None:
        kinds = (self.add, self.decide, self.result, self.cold, self.time)
        kind = self.draw.choices(kinds, weights=(30, 30, 20, 1, 20))[0]
        self.bench.clear()
        self.model.clear()
        kind()
        self.bench.answer_by_tcp()
        self.happened[kind.__name__] += 1
        self.happened.update(sent[0].name for sent in self.model.sent)
        self.happened["cold_rows"] += len(self.model.cold)
        self.compare()

    def compare(self) -> None:
        bench, model = self.bench, self.model
        assert sorted(bench.sent) == sorted(model.sent)
        assert sorted(bench.asked) == sorted(model.asked)
        assert sorted(self.names[call] for call in bench.ended) == sorted(model.ended)
        pushed: Counter[tuple[int, int]] = Counter()
        for part in bench.cold:
            for row, lanes in lanes_of(bench, part.keys.tolist(), part.gradients).items():
                pushed.update({(row, lane): int(value) for lane, value in enumerate(lanes)})
        expected: Counter[tuple[int, int]] = Counter()
        for row, lanes in model.cold:
            expected.update({(row, lane): int(value) for lane, value in enumerate(lanes)})
        assert pushed == expected

    def row(self) -> int:
        return self.draw.randrange(self.bench.map.size)

    def add(self) -> None:
        hot = [key for key in self.keys if self.model.rows[self.first_row(key)].cold_until_s == 0]
        if not hot:
            return
        keys = self.draw.choices(hot, k=self.draw.randint(1, 6))
        gradients = np.array(
            [[self.draw.randint(-9, 9) for _ in range(self.width)] for _ in keys], np.float32
        )
        name, self.num_calls = self.num_calls, self.num_calls + 1
        call = self.bench.add(np.array(keys, np.int64), gradients, self.now_s)
        self.names[call] = name
        self.model.add(lanes_of(self.bench, keys, gradients), name, self.now_s)

    def first_row(self, key: int) -> int:
        return int(self.bench.layout.places(np.array([key])).row[0])

    def decide(self) -> None:
        decisions: list[tuple[int, int, bool]] = []
        for _ in range(self.draw.randint(1, 5)):
            row = self.row()
            round_ = self.model.rows[row].next + self.draw.choice([-1, 0, 0, 0, 1])
            decisions.append((row, max(0, round_), self.draw.random() < 0.6))
        if self.draw.random() < 0.02:
            row = self.row()
            decisions.append((row, self.model.rows[row].next + 9, True))
        is_valid = self.bench.decided(decisions, self.now_s)
        assert is_valid == self.model.decide(decisions, self.now_s)

    def result(self) -> None:
        row, is_result, is_in = self.row(), self.draw.random() < 0.5, self.draw.random() < 0.5
        operation = Operation.RESULT if is_result else Operation.NOTICE
        round_ = self.model.rows[row].next + self.draw.randint(-1, 2)
        bitmap = BIT if is_in else 1
        packets = self.bench.answer(operation, row, max(0, round_), worker_bitmap=bitmap)
        self.bench.take(packets, self.now_s)
        self.model.take_result(row, max(0, round_), is_result=is_result, is_in=is_in)

    def cold(self) -> None:
        row = self.row()
        flags = int(Flag.TO_SERVER | Flag.COLD)
        packets = self.bench.answer(Operation.NOTICE, row, 1, flags=flags, expected=5)
        self.bench.take(packets, self.now_s)
        self.model.take_cold(row, self.now_s)

    def time(self) -> None:
        self.now_s += self.draw.choice([0.001, 0.005, 0.01, 0.02, 0.2])
        for row in self.model.rows:
            if row.cold_until_s <= self.now_s:
                row.cold_until_s = 0.0
        self.bench.pushes.tick(self.now_s)
        self.model.tick(self.now_s)
        due_s = min(place.due_s for row in self.model.rows for place in row.pushes)
        assert self.bench.pushes.next_s == due_s


def test_pushes_do_what_the_model_does() -> None:
    happened: Counter[str] = Counter()

    @settings(max_examples=100, deadline=None)
    @given(st.integers(0, 1 << 32))
    def check(seed: int) -> None:
        run = Run(seed)
        for _ in range(120):
            run.step()
        happened.update(run.happened)

    check()
    assert min(happened[name] for name in ("cold_rows", "AGGREGATE_ADD", "FLUSH", "result")) > 100


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_lanes_are_rounded_to_even_and_what_does_not_fit_goes_by_tcp(data: st.DataObject) -> None:
    exponent = data.draw(st.integers(-127, 127))
    unit = np.ldexp(np.float32(1), exponent)
    near = st.floats(-(2.0**26), 2.0**26, width=32).map(lambda lanes: np.float32(lanes) * unit)
    halves = st.integers(-99, 99).map(lambda twice: np.float32(twice / 2) * unit)
    with np.errstate(over="ignore"):
        values = data.draw(st.lists(st.one_of(near, halves, st.floats(width=32)), min_size=1))
    keys = np.arange(len(values), dtype=np.int64) * 1000
    gradients = np.array(values, np.float32).reshape(-1, 1)
    bench = Bench(keys, 1, exponent)
    bench.add(keys, gradients, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        lanes = np.rint(gradients[:, 0] * bench.map.scales[0])
    fits = (np.abs(lanes) <= MOST_LANE) | (gradients[:, 0] == 0)
    expected = np.where(fits, np.nan_to_num(lanes), 0)
    sent = {row: lanes for _, row, _, _, lanes in bench.sent}
    assert sorted(sent) == list(range(bench.map.size))
    flat = [lane for row in sorted(sent) for lane in sent[row]]
    assert flat == [*expected.tolist(), *[0.0] * (len(flat) - len(values))]
    by_tcp = {
        key: np.float32(value).tobytes()
        for part in bench.cold
        for key, value in zip(part.keys.tolist(), part.gradients[:, 0], strict=True)
    }
    large = zip(keys[~fits].tolist(), gradients[~fits, 0], strict=True)
    assert by_tcp == {key: np.float32(value).tobytes() for key, value in large}


def test_packets_have_the_fields_of_pushes_and_flushes() -> None:
    bench = Bench(np.arange(20), 1)
    gradients = np.arange(20, dtype=np.float32).reshape(-1, 1)
    bench.add(np.arange(20), gradients, 1.0)
    bench.pushes.tick(1.0 + FLUSH_S)
    numbers = np.arange(3, dtype=np.uint32) + FIRST_NUMBER
    epochs, rounds = np.full(3, EPOCH, np.uint32), np.ones(3, np.uint32)
    lanes = np.zeros((3, LANES), np.int32)
    lanes.ravel()[:20] = np.arange(20)
    pushes, flushes = bench.datagrams
    assert np.array_equal(pushes, push_packets(bench.packets, numbers, epochs, rounds, lanes))
    assert np.array_equal(flushes, bench.packets.flush(numbers, epochs, rounds, level=0))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_keys_are_split_by_their_rows(data: st.DataObject) -> None:
    any_key = st.one_of(st.integers(0, 30), st.integers(0, 2**63 - 1))
    hot = data.draw(st.lists(any_key, min_size=1, max_size=60, unique=True))
    width = data.draw(st.sampled_from([1, 3, 20]))
    bench = Bench(np.array(hot, np.int64), width)
    others = st.one_of(any_key, st.integers(-(2**63), -1), st.sampled_from(hot))
    keys = np.array(data.draw(st.lists(others)), np.int64)
    cold_until_s = np.array(data.draw(st.lists(st.sampled_from([0.0, 2.0]), min_size=99)))
    split = bench.table.split(keys, address(cold_until_s), 1.0)
    places = bench.layout.places(keys)
    is_hot = (places.row >= 0) & (cold_until_s[places.row] <= 1.0)
    assert split.hot.tolist() == np.flatnonzero(is_hot).tolist()
    assert split.cold.tolist() == np.flatnonzero(~is_hot).tolist()
    assert np.array_equal(bench.layout.keys[split.cells], keys[is_hot])
    gradients = np.arange(keys.size * width, dtype=np.float32).reshape(keys.size, width)
    payload = np.frombuffer(b"\0" + keys.tobytes() + gradients.tobytes(), np.uint8)[1:]
    split = bench.table.split(payload[: keys.nbytes].view(np.int64), address(cold_until_s), 1.0)
    rest = bytes(bench.table.gather_cold(split))
    assert rest == keys[~is_hot].tobytes() + gradients[~is_hot].tobytes()


@pytest.mark.parametrize("seed", range(20))
def test_no_packet_makes_a_push_count_twice(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Packets of any bytes, and such as the switch might send."""
    rng, draw = np.random.default_rng(seed), random.Random(seed)
    world = World(monkeypatch, 2)
    world.server.set_rows(range(12), generation=5, first_row=3)
    world.server.install()
    world.settle()
    size = world.sockets[0].datagram_bytes
    epochs = [row.epoch for row in world.server.rows.values()]
    calls = []
    for _ in range(60):
        for worker in world.workers:
            keys = draw.sample(range(16), 3)
            calls.append(worker.push(keys, world.gradients(rng.integers(-9, 9, (3, world.width)))))
            worker.pull_rows(keys)
        for _ in range(draw.randrange(12)):
            if world.packets:
                world.deliver(draw.randrange(len(world.packets)))
        raw = rng.integers(0, 256, (draw.randint(1, 20), size), np.uint8)
        header = view_datagrams(raw, (size - 44) // 4)["header"]
        is_likely = rng.random(len(raw)) < 0.9
        likely: dict[str, Any] = {
            "version": 2,
            "operation": rng.integers(1, 11, len(raw)),
            "flags": int(Flag.TO_SERVER) + int(Flag.COLD) * rng.integers(0, 2, len(raw)),
            "job_id": 7,
            "generation": 5,
            "slot_index": rng.integers(0, 8, len(raw)),
            "tensor_id": rng.choice(epochs, len(raw)),
            "round": rng.integers(0, 30, len(raw)),
            "expected": rng.integers(0, 2, len(raw)),
        }
        for name, values in likely.items():
            header[name] = np.where(is_likely, values, header[name])
        world.sockets[draw.randrange(2)].take(raw)
        world.loop.pass_by(draw.uniform(0, 0.01))
        for worker in world.workers:
            while worker.from_server and draw.random() < 0.7:
                worker.take_frame()
    world.run_until(calls)
    world.check_sums()
