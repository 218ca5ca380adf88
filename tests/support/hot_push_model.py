# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's pushes to hot rows, place by place: what `HotPushes` must send, ask and end."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from switchfold.hostlib.slots.wire import Operation

Floats = NDArray[np.float32]
FLUSH_S, COLD_S = 0.01, 1.0


@dataclass
class Place:
    """What one push, or what waits at a row."""

    held: Floats
    use: str = "free"
    round: int = 0
    ticks: int = 0
    renames: int = 0
    due_s: float = math.inf
    calls: list[int] = field(default_factory=list[int])


class Row:
    """Its pushes by the round's parity, and what waits."""

    def __init__(self, num_lanes: int) -> None:
        self.next, self.is_ahead = 1, False
        self.cold_until_s = 0.0
        zeros = np.zeros(num_lanes, np.float32)
        self.pushes = [Place(zeros), Place(zeros)]
        self.waiting = Place(zeros)

    def free_round(self) -> int | None:
        for round_ in (self.next, self.next + 1):
            if round_ > self.next and self.is_ahead:
                return None
            if self.pushes[round_ % 2].use == "free":
                return round_
        return None


class PushModel:
    """Rows by index. What happens in an event is in `sent`, `asked`, `cold` and `ended`."""

    def __init__(self, num_rows: int, num_lanes: int) -> None:
        self.rows = [Row(num_lanes) for _ in range(num_rows)]
        self.num_lanes = num_lanes
        self.parts: Counter[int] = Counter()
        self.clear()

    def clear(self) -> None:
        self.sent: list[tuple[Operation, int, int, int, tuple[float, ...]]] = []
        self.asked: list[tuple[int, int]] = []
        self.cold: list[tuple[int, tuple[float, ...]]] = []
        self.ended: list[int] = []

    def add(self, lanes: dict[int, Floats], call: int, now_s: float) -> None:
        """Push lanes of rows."""
        self.parts[call] += 1
        for row, values in lanes.items():
            self.parts[call] += 1
            round_ = self.rows[row].free_round()
            if round_ is None:
                waiting = self.rows[row].waiting
                waiting.use, waiting.held = "sent", waiting.held + values
                waiting.calls.append(call)
            else:
                self._push(row, round_, values, [call], 0, now_s)
        self._settle([call])

    def _push(  # noqa: PLR0917 - what a push is
        self, row: int, round_: int, held: Floats, calls: list[int], renames: int, now_s: float
    ) -> None:
        place = Place(held, "sent", round_, 0, renames, now_s + FLUSH_S, calls)
        self.rows[row].pushes[round_ % 2] = place
        self._send(Operation.AGGREGATE_ADD, row, place)

    def _send(self, operation: Operation, row: int, place: Place, level: int = 1) -> None:
        lanes = place.held if operation == Operation.AGGREGATE_ADD else np.zeros(self.num_lanes)
        self.sent.append((operation, row, place.round, level, tuple(lanes.tolist())))

    def _settle(self, calls: Iterable[int]) -> None:
        for call in calls:
            self.parts[call] -= 1
            if not self.parts[call]:
                self.ended.append(call)

    def _by_tcp(self, row: int, place: Place) -> None:
        """Send by TCP, which is answered at once."""
        if place.held.any():
            self.cold.append((row, tuple(place.held.tolist())))
        self._settle(place.calls)

    def decide(self, decisions: list[tuple[int, int, bool]], now_s: float) -> bool:
        """Take rows, rounds and whether they count this worker; return whether all are valid."""
        touched: list[int] = []
        is_valid = True
        for number, round_, is_counted in decisions:
            row = self.rows[number]
            if round_ > row.next + 1:
                is_valid = False
                break
            touched.append(number)
            if round_ == row.next:
                row.next, row.is_ahead = row.next + 1 + row.is_ahead, False
            elif round_ == row.next + 1:
                row.is_ahead = True
            place = row.pushes[round_ % 2]
            if place.use == "free" or place.round != round_:
                continue
            row.pushes[round_ % 2] = Place(np.zeros(self.num_lanes, np.float32))
            if is_counted:
                self._settle(place.calls)
            elif row.cold_until_s > now_s or place.renames == 2:
                self._by_tcp(number, place)
            else:
                waiting = row.waiting
                waiting.use, waiting.held = "sent", waiting.held + place.held
                waiting.renames = max(waiting.renames, place.renames + 1)
                waiting.calls = waiting.calls + place.calls
        for number in touched:
            self._push_waiting(number, now_s)
        return is_valid

    def _push_waiting(self, number: int, now_s: float) -> None:
        row = self.rows[number]
        waiting, round_ = row.waiting, row.free_round()
        if waiting.use != "free" and round_ is not None:
            row.waiting = Place(np.zeros(self.num_lanes, np.float32))
            self._push(number, round_, waiting.held, waiting.calls, waiting.renames, now_s)

    def take_result(self, number: int, round_: int, *, is_result: bool, is_in: bool) -> None:
        """Take RESULT or NOTICE."""
        place = self.rows[number].pushes[round_ % 2]
        if place.use not in ("sent", "quiet"):
            return
        if round_ == place.round and is_in:
            place.use = "quiet"
        if round_ > place.round or (round_ == place.round and is_result):
            place.use = "over"

    def take_cold(self, number: int, now_s: float) -> None:
        """Take NOTICE with COLD."""
        row = self.rows[number]
        if row.waiting.use != "free":
            self._by_tcp(number, row.waiting)
            row.waiting = Place(np.zeros(self.num_lanes, np.float32))
        is_new, row.cold_until_s = row.cold_until_s <= now_s, now_s + COLD_S
        for place in row.pushes:
            if is_new and place.use != "free":
                place.use = "quiet" if place.use == "sent" else place.use
                place.ticks = 3
                self.asked.append((number, place.round))

    def tick(self, now_s: float) -> None:
        """Do what is due."""
        for number, row in enumerate(self.rows):
            for place in row.pushes:
                if place.due_s > now_s:
                    continue
                is_hot = row.cold_until_s <= now_s
                if is_hot and place.ticks and place.use == "sent":
                    self._send(Operation.AGGREGATE_ADD, number, place)
                if is_hot and place.use in ("sent", "quiet"):
                    self._send(Operation.FLUSH, number, place, min(place.ticks, 8))
                if place.ticks >= 3:
                    self.asked.append((number, place.round))
                place.ticks = min(place.ticks + 1, 100)
                place.due_s = now_s + FLUSH_S * 2.0 ** min(place.ticks, 5)
