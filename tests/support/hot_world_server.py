# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The server of `hot_world`: it decides rounds at once, and keeps exact sums of whole numbers."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from switchfold.hostlib.hot_rows import EMPTY, LaneLayout, RowShape
from switchfold.hostlib.hot_rows.row_packets import SERVER_ID_BASE
from switchfold.hostlib.parameter_server.rows import PulledRows
from switchfold.hostlib.peers.frames import (
    DECISION_DTYPE,
    HOT_ROW_DTYPE,
    Frame,
    FrameKind,
    HotRowsFrame,
    HotRowsState,
    RoundsFrame,
    TableRows,
)
from switchfold.hostlib.slots.wire import Flag

if TYPE_CHECKING:
    from hot_world import World, WorldWorker

LANES: Final = 32
TABLE: Final = 77
EXPONENT: Final = -4
"""A lane is worth 1/16; gradients are multiples of it."""
FLUSH_S: Final = 0.01
JOB: Final = 7
Keys = NDArray[np.int64]
Floats = NDArray[np.float32]


def gradients_of(lanes: Any) -> Floats:
    """Return gradients of whole numbers of lanes."""
    return np.ldexp(np.asarray(lanes, np.float32), EXPONENT)


@dataclass
class ServerRow:
    """A row at the server."""

    epoch: int
    next: int = 1
    is_ahead: bool = False
    counted: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    """By worker, the last two."""


class WorldServer:
    """Decides rounds at once, and keeps exact sums."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.generation = 0
        self.layout: LaneLayout | None = None
        self.first_row = 0
        self.rows: dict[int, ServerRow] = {}
        """By number; those that are not hot any more, too."""
        self.sums: Counter[tuple[int, int]] = Counter()
        """In units of a lane, by key and position."""
        self.version = 0
        self.asked: Counter[tuple[int, int]] = Counter()
        self.dropped = 0
        self._epochs = itertools.count(32, 32)

    def set_rows(self, keys: Sequence[int], *, generation: int, first_row: int = 0) -> None:
        """Serve these keys from now on, with new epochs for all rows that change."""
        shape = RowShape(num_lanes=LANES, width=self.world.width)
        cells = np.full(shape.num_rows(len(keys)) // shape.rows_per_key * shape.keys_per_row, EMPTY)
        cells[: len(keys)] = keys
        layout = LaneLayout(shape, cells, np.ones(shape.num_rows(len(keys)), np.uint32))
        old, self.layout = self.layout, layout
        if generation != self.generation:
            self._fence_all(self.rows)
            for row in self.rows.values():
                row.next, row.is_ahead = 1, False
            self.generation, self.first_row = generation, first_row
            changed = set(range(first_row, first_row + layout.num_rows))
        else:
            changed = self._changed(old, layout)
            self._fence_all(changed & set(self.rows))
        for number in changed:
            row = self.rows.setdefault(number, ServerRow(0))
            row.epoch = next(self._epochs)
        self.version += 1

    def _changed(self, old: LaneLayout | None, new: LaneLayout) -> set[int]:
        """Return the rows of either whose keys differ."""
        assert old is not None
        span, per_row = new.shape.rows_per_key, new.shape.keys_per_row
        before, after = (layout.keys.reshape(-1, per_row).tolist() for layout in (old, new))
        units = itertools.zip_longest(before, after)
        changed = [unit for unit, (was, now) in enumerate(units) if was != now]
        return {self.first_row + unit * span + part for unit in changed for part in range(span)}

    def install(self) -> None:
        """Have the switch know the rows, then tell the workers."""
        assert self.layout is not None
        numbers = range(self.first_row, self.first_row + self.layout.num_rows)
        epochs = {number: self.rows[number].epoch for number in numbers}
        self.world.install(self.generation, epochs)
        for worker in self.world.workers:
            self.tell_rows(worker)

    def tell_rows(self, worker: WorldWorker) -> None:
        layout = self.layout
        hot = 0 if layout is None else layout.num_rows
        numbers = list(range(self.first_row, self.first_row + hot))
        others = [
            number
            for number, row in self.rows.items()
            if number not in set(numbers) and worker.worker_id in row.counted
        ]
        records = np.zeros(len(numbers) + len(others), HOT_ROW_DTYPE)
        for record, number in zip(records, numbers + others, strict=True):
            row = self.rows[number]
            record["row"] = number
            record["epoch"] = row.epoch if number in set(numbers) else 0
            record["table"] = self.world.table if number in set(numbers) else 0
            record["next"], record["is_ahead"] = row.next, row.is_ahead
            record["exponent"] = EXPONENT
            counted = row.counted.get(worker.worker_id, [])
            record["counted"] = counted + [0] * (2 - len(counted))
        state = HotRowsState(
            self.generation,
            JOB,
            self.world.switch_address,
            self.world.switch_port,
            worker.worker_id,
            1 << worker.worker_id,
            self.world.num_workers,
            LANES,
            int(FLUSH_S * 1e6),
            records,
            () if layout is None else (TableRows(self.world.table, layout.pack()),),
        )
        payload = state.pack()
        worker.from_server.append((Frame.unpack(HotRowsFrame(len(payload)).pack()), payload))

    def take_result(self, packet: NDArray[np.void]) -> None:
        header = packet["header"]
        number, round_ = int(header["slot_index"]), int(header["round"])
        row = self.rows[number]
        is_ours = int(header["generation"]) == self.generation
        if not is_ours or row.epoch != int(header["tensor_id"]) or not self._is_open(row, round_):
            self.dropped += 1
            return
        if int(header["flags"]) & Flag.OVERFLOW:
            self._decide(number, round_, 0)
            return
        self._add(number, packet["values"])
        self._decide(number, round_, int(header["worker_bitmap"]))

    def take_decide(self, generation: int, rounds: NDArray[np.void]) -> None:
        """Flush a round when it is named for the first time; fence it at the second time."""
        if generation != self.generation:
            return
        for number, round_ in rounds.tolist():
            row = self.rows[number]
            if not self._is_open(row, round_):
                continue
            self.asked[number, round_] += 1
            if self.asked[number, round_] == 1:
                self.world.flush(number, row.epoch, round_)
            else:
                self._decide(number, round_, 0)

    def add_by_tcp(self, keys: Keys, gradients: Floats) -> None:
        for key, values in zip(keys.tolist(), gradients, strict=True):
            for position, value in enumerate(values.tolist()):
                units = math.ldexp(value, -EXPONENT)
                assert units == int(units)
                self.sums[key, position] += int(units)
        self.version += 1

    def rows_of(self, keys: Keys) -> PulledRows:
        return PulledRows(self.values_of(keys), np.zeros(keys.size, np.uint32))

    def values_of(self, keys: Keys) -> Floats:
        width = self.world.width
        units = [[self.sums[key, at] for at in range(width)] for key in keys.tolist()]
        return gradients_of(np.array(units, np.float32).reshape(keys.size, width))

    def write(self, numbers: Sequence[int]) -> None:
        """Send the values of rows to the switch."""
        assert self.layout is not None
        shape = self.layout.shape
        lanes = np.zeros((len(numbers), LANES), np.float32)
        for lane_row, number in zip(lanes, numbers, strict=True):
            unit, part = divmod(number - self.first_row, shape.rows_per_key)
            keys = self.layout.keys.reshape(-1, shape.keys_per_row)[unit]
            flat = np.zeros(shape.rows_per_key * LANES, np.float32)
            values = self.values_of(keys).ravel()
            flat[: values.size] = values
            lane_row[:] = flat[part * LANES : (part + 1) * LANES]
        names = np.array(numbers, np.uint32)
        epochs = np.array([self.rows[number].epoch for number in numbers], np.uint32)
        versions = np.full(names.size, self.version, np.uint32)
        packets = self.world.server_packets(self.generation)
        self.world.send_to_switch(
            SERVER_ID_BASE, packets.write(names, epochs, versions, lanes.view(np.int32))
        )

    def _add(self, number: int, lanes: NDArray[np.int32]) -> None:
        layout = self.layout
        assert layout is not None
        width, span = layout.shape.width, layout.shape.rows_per_key
        unit, part = divmod(number - self.first_row, span)
        keys = layout.keys.reshape(-1, layout.shape.keys_per_row)[unit]
        for cell, key in enumerate(keys.tolist()):
            for lane in range(cell * width, min(LANES, (cell + 1) * width)):
                position = lane - cell * width + part * LANES
                if position < width:
                    self.sums[key, position] += int(lanes[lane])

    @staticmethod
    def _is_open(row: ServerRow, round_: int) -> bool:
        return round_ == row.next or (round_ == row.next + 1 and not row.is_ahead)

    def _fence_all(self, numbers: Any) -> None:
        for number in list(numbers):
            row = self.rows[number]
            for round_ in (row.next, row.next + 1):
                if self._is_open(row, round_):
                    self._decide(number, round_, 0)

    def _decide(self, number: int, round_: int, bitmap: int) -> None:
        row = self.rows[number]
        assert self._is_open(row, round_)
        self.version += 1
        for worker_id in range(self.world.num_workers):
            if bitmap >> worker_id & 1:
                counted = row.counted.setdefault(worker_id, [])
                counted.append(self.generation << 32 | round_)
                del counted[:-2]
        if round_ == row.next:
            row.next += 1 + row.is_ahead
            row.is_ahead = False
        else:
            row.is_ahead = True
        self._tell(np.array([(number, round_, bitmap, self.version)], DECISION_DTYPE))

    def _tell(self, decisions: NDArray[np.void]) -> None:
        payload = decisions.tobytes()
        frame = RoundsFrame(FrameKind.DECISIONS, len(payload), self.generation)
        for worker in self.world.workers:
            last = worker.from_server[-1] if worker.from_server else None
            if last and (last[0].kind, last[0].fields[0]) == (frame.kind, frame.generation):
                joined = last[1] + payload
                longer = frame._replace(payload_bytes=len(joined))
                worker.from_server[-1] = (Frame.unpack(longer.pack()), joined)
            else:
                worker.from_server.append((Frame.unpack(frame.pack()), payload))
