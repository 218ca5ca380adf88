# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The state machine of the tables beside a model of dicts, and its replay from any record on."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from switchfold.hostlib.errors import (
    ConfigurationError,
    HostlibError,
    NonFiniteGradientError,
    PeerProtocolError,
    RowTableFullError,
    StorageDamagedError,
)
from switchfold.hostlib.parameter_server.tables import TableDefinition
from switchfold.hostlib.parameter_server.tables.change import MAX_OPEN_REQUESTS, TableChange
from switchfold.hostlib.parameter_server.tables.state import TableState
from switchfold.hostlib.peers.frames import FrameKind

NUM_WORKERS, WIDTH = 3, 2
KEYS = np.arange(6)
DEFINITIONS = [
    TableDefinition(name="free", width=WIDTH),
    TableDefinition(name="stale", width=WIDTH, staleness=2),
    TableDefinition(name="sum", width=WIDTH, staleness=0),
    TableDefinition(name="mean", width=WIDTH, staleness=0, is_mean=True),
]
HUGE = 3e38
"""Two of them are beyond float32."""
Floats = NDArray[np.float32]
Record = tuple[TableChange, bytes]


def push_of(
    worker_id: int, number: int, definition: TableDefinition, keys: list[int], rows: list[float]
) -> Record:
    """Return a push of rows whose values are all alike."""
    gradients = np.repeat(np.array(rows, np.float32), definition.width)
    payload = np.array(keys, np.int64).tobytes() + gradients.tobytes()
    incarnation = worker_id + 1
    request = TableChange(
        FrameKind.PUSH, worker_id, incarnation, number, definition.number, len(keys)
    )
    return request, payload


def request_of(kind: FrameKind, worker_id: int, number: int, payload: bytes = b"") -> Record:
    return TableChange(kind, worker_id, worker_id + 1, number), payload


def enter_of(worker_id: int, incarnation: int) -> Record:
    return TableChange(FrameKind.ENTER, worker_id, incarnation, 0), b""


def begin(definitions: list[TableDefinition], num_workers: int = NUM_WORKERS) -> list[Record]:
    """Return the records of workers 0 to `num_workers` - 1 that enter and define tables."""
    records = [enter_of(w, w + 1) for w in range(num_workers)]
    for number, definition in enumerate(definitions, start=1):
        records += [
            request_of(FrameKind.DEFINE, w, number, definition.pack()) for w in range(num_workers)
        ]
    return records


def run(
    state: TableState, records: list[Record], first_lsn: int = 1, *, is_replay: bool = False
) -> list[int]:
    """Apply records; return the positions of those that were denied."""
    denied: list[int] = []
    for position, (request, payload) in enumerate(records):
        try:
            state.apply(request, memoryview(payload), lsn=first_lsn + position, is_replay=is_replay)
        except HostlibError:
            denied.append(position)
    return denied


@dataclass
class ModelWorker:
    incarnation: int = 0
    number: int = 0
    clock: int = 0
    pushes: list[tuple[int, int, int, list[int], list[float]]] = field(default_factory=list)
    """Number of the table, clock, number of the push, keys, values."""


class Model:
    """What the tables must hold, by the words of their definitions."""

    def __init__(self) -> None:
        self.workers = [ModelWorker() for _ in range(NUM_WORKERS)]
        self.values: list[dict[int, np.float32]] = [{} for _ in DEFINITIONS]
        self.updates: list[dict[int, int]] = [{} for _ in DEFINITIONS]
        self.num_denied = 0

    def add(self, table: int, keys: list[int], gradients: list[np.float32]) -> None:
        sums: dict[int, np.float32] = {}
        with np.errstate(over="ignore"):
            for key, gradient in zip(keys, gradients, strict=True):
                sums[key] = sums[key] + gradient if key in sums else gradient
        if not np.isfinite(list(sums.values())).all():
            self.num_denied += 1
            return
        for key, total in sums.items():
            with np.errstate(over="ignore"):
                self.values[table][key] = self.values[table].get(key, np.float32(0)) + total
            self.updates[table][key] = self.updates[table].get(key, 0) + 1

    def push(self, worker_id: int, table: int, keys: list[int], rows: list[float]) -> None:
        worker = self.workers[worker_id]
        if DEFINITIONS[table].staleness == 0:
            worker.pushes.append((table, worker.clock, worker.number, keys, rows))
        else:
            self.add(table, keys, [np.float32(row) for row in rows])

    def advance(self, worker_id: int) -> None:
        self.workers[worker_id].clock += 1
        ended = min(worker.clock for worker in self.workers) - 1
        if ended + 1 != self.workers[worker_id].clock:
            return
        denied = self.num_denied
        for table, definition in enumerate(DEFINITIONS):
            keys: list[int] = []
            gradients: list[np.float32] = []
            for worker in self.workers:
                for number, clock, _, own_keys, own_rows in worker.pushes:
                    if (number, clock) == (table, ended):
                        keys += own_keys
                        scale = np.float32(NUM_WORKERS if definition.is_mean else 1)
                        gradients += [np.float32(row) / scale for row in own_rows]
            if keys:
                self.add(table, keys, gradients)
        self.num_denied = min(self.num_denied, denied + 1)  # one ADVANCE

    def enter(self, worker_id: int, incarnation: int) -> None:
        worker = self.workers[worker_id]
        worker.incarnation, worker.number = incarnation, 0
        worker.pushes = [push for push in worker.pushes if push[1] != worker.clock]


Step = tuple[int, str, int, list[int], list[float]]
ROWS = st.one_of(
    st.floats(-100, 100, width=32), st.sampled_from([HUGE, -HUGE]), st.integers(-9, 9).map(float)
)


@st.composite
def steps(draw: st.DrawFn) -> list[Step]:
    kinds = st.sampled_from(["push"] * 6 + ["advance"] * 3 + ["twice", "late", "enter"])
    result: list[Step] = []
    for _ in range(draw(st.integers(0, 40))):
        keys = draw(st.lists(st.sampled_from(KEYS.tolist()), max_size=4))
        rows = draw(st.lists(ROWS, min_size=len(keys), max_size=len(keys)))
        worker_id, table = draw(st.integers(0, NUM_WORKERS - 1)), draw(st.integers(0, 3))
        result.append((worker_id, draw(kinds), table, keys, rows))
    return result


def simulate(model: Model, script: list[Step]) -> list[Record]:
    """Return the records of a script, whose effects the model takes."""
    records: list[Record] = []
    incarnations = list(range(1, NUM_WORKERS + 1))
    last: list[Record | None] = [None] * NUM_WORKERS

    def send(worker_id: int, record: Record) -> None:
        request, payload = record
        own = request._replace(incarnation=incarnations[worker_id])
        records.append((own, payload))
        last[worker_id] = records[-1]

    for w in range(NUM_WORKERS):
        records.append(enter_of(w, w + 1))
        model.enter(w, w + 1)
    for definition in DEFINITIONS:
        for w in range(NUM_WORKERS):
            model.workers[w].number += 1
            number = model.workers[w].number
            send(w, request_of(FrameKind.DEFINE, w, number, definition.pack()))
    for worker_id, kind, table, keys, rows in script:
        worker, definition = model.workers[worker_id], DEFINITIONS[table]
        match kind:
            case "push":
                worker.number += 1
                send(worker_id, push_of(worker_id, worker.number, definition, keys, rows))
                model.push(worker_id, table, keys, rows)
            case "advance":
                worker.number += 1
                send(worker_id, request_of(FrameKind.ADVANCE, worker_id, worker.number))
                model.advance(worker_id)
            case "twice":
                if (again := last[worker_id]) is not None:
                    records.append(again)
            case "late":
                request, payload = push_of(worker_id, 99, definition, keys, rows)
                records.append((request._replace(incarnation=99), payload))
            case _:
                incarnations[worker_id] += NUM_WORKERS
                last[worker_id] = None
                records.append(enter_of(worker_id, incarnations[worker_id]))
                model.enter(worker_id, incarnations[worker_id])
    return records


def contents(state: TableState) -> list[tuple[bytes, bytes]]:
    pulled = [state.pull(definition.number, KEYS) for definition in DEFINITIONS]
    return [(found.values.tobytes(), found.updates.tobytes()) for found in pulled]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(script=steps(), data=st.data())
def test_requests_of_three_workers(script: list[Step], data: st.DataObject) -> None:
    model, state = Model(), TableState(NUM_WORKERS)
    records = simulate(model, script)
    denied = run(state, records)
    assert len(denied) == model.num_denied
    for table, definition in enumerate(DEFINITIONS):
        found = state.pull(definition.number, KEYS)
        expected = [[model.values[table].get(key, 0)] * WIDTH for key in KEYS.tolist()]
        np.testing.assert_array_equal(found.values, np.array(expected, np.float32))
        assert found.updates.tolist() == [model.updates[table].get(k, 0) for k in KEYS.tolist()]
    assert [worker.clock for worker in state.workers] == [w.clock for w in model.workers]

    cut = data.draw(st.integers(0, len(records)))
    again = TableState(NUM_WORKERS)
    first = run(again, records[:cut], is_replay=True)
    second = run(again, records[cut:], cut + 1)
    assert [*first, *(cut + position for position in second)] == denied
    assert contents(again) == contents(state)
    assert again.workers == state.workers


def test_pulls_after_a_replay_leave_room_for_pushes_that_wait() -> None:
    definition = TableDefinition(name="w", width=1, max_rows=1, staleness=0)
    records = [*begin([definition], 1), push_of(0, 2, definition, [5], [1.0])]
    state = TableState(1)
    run(state, records, is_replay=True)
    with pytest.raises(RowTableFullError, match="table 'w': no room for key 6"):
        state.pull(definition.number, np.array([6]))
    assert run(state, [request_of(FrameKind.ADVANCE, 0, 3)], 9) == []
    assert state.pull(definition.number, np.array([5])).values.tolist() == [[1]]


def test_numbers_that_are_left_out_were_denied() -> None:
    definition = DEFINITIONS[0]
    state = TableState(1)
    run(state, begin([definition], 1))
    for number in (3, 7, 8):
        run(state, [push_of(0, number, definition, [1], [1.0])], 10 + number)
    run(state, [push_of(0, 9, definition, [1, 1], [HUGE, HUGE])], 30)
    assert [*state.workers[0].denied] == [2, 4, 5, 6, 9]
    run(state, [push_of(0, 1 << 60, definition, [1], [1.0])], 40)
    worker = state.workers[0]
    denied = worker.denied
    assert (len(denied), denied[-1]) == (MAX_OPEN_REQUESTS - 1, (1 << 60) - 1)
    run(state, [push_of(0, (1 << 60) + 2, definition, [1], [1.0])], 41)
    assert [worker.denied[0], worker.denied[-1]] == [
        (1 << 60) - MAX_OPEN_REQUESTS + 3,
        (1 << 60) + 1,
    ]
    run(state, [enter_of(0, 77)], 42)
    assert not worker.denied


def test_what_is_wrong_with_a_push_is_said_before_it_is_logged() -> None:
    definition = TableDefinition(name="w", width=2, max_rows=2)
    state = TableState(1)
    run(state, begin([definition], 1))

    def check(record: Record) -> None:
        state.check(record[0], memoryview(record[1]))

    with pytest.raises(
        NonFiniteGradientError, match="table 'w': gradients of key 8 at 1"
    ) as caught:
        check(push_of(0, 2, definition, [7, 8], [1.0, np.inf]))
    assert (caught.value.position, caught.value.key) == (1, 8)
    with pytest.raises(RowTableFullError, match="table 'w'"):
        check(push_of(0, 2, definition, [1, 2, 3], [1.0] * 3))
    with pytest.raises(ConfigurationError, match="has not been defined on this server"):
        check(push_of(0, 2, DEFINITIONS[0], [1], [1.0]))
    request, payload = push_of(0, 2, definition, [1], [1.0])
    with pytest.raises(PeerProtocolError, match="15 bytes of 1 keys with gradients of 2 values"):
        check((request, payload[:-1]))
    with pytest.raises(PeerProtocolError, match="malformed definition"):
        check(request_of(FrameKind.DEFINE, 0, 2, b"{}"))


def test_the_number_of_tables_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("switchfold.hostlib.parameter_server.tables.state.MAX_TABLES", 2)
    state = TableState(1)
    assert run(state, begin(DEFINITIONS[:3], 1)) == [3]
    assert len(state.tables) == 2


def test_records_of_requests() -> None:
    request = TableChange(FrameKind.PUSH, 7, (1 << 64) - 1, 1 << 63, 0xFFFFFFFF, 12)
    found, payload = TableChange.unpack(memoryview(request.pack() + b"abc"))
    assert (found, bytes(payload)) == (request, b"abc")
    for record in (request.pack()[:-1], b"\xff" + request.pack()[1:]):
        with pytest.raises(StorageDamagedError, match="another release, or of another program"):
            TableChange.unpack(memoryview(record))
