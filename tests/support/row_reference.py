# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a sparse table is to do, with dictionaries and numpy: the oracle of its tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from switchfold.hostlib.parameter_server.rows import (
    Adagrad,
    Adam,
    Ftrl,
    GradientSum,
    Initialiser,
    Normal,
    Optimiser,
    RowTable,
    Sgd,
    Uniform,
)

Values = NDArray[np.float32]
HEADER_BYTES = 40
"""Of a chunk of rows; as in row_chunks.h."""
ROW_HEAD = np.dtype([("key", "<i8"), ("lsn", "<u8"), ("updates", "<u4"), ("unused", "<u4")])
OPTIMISERS: tuple[Optimiser, ...] = (
    GradientSum(),
    Sgd(learning_rate=0.1),
    Sgd(learning_rate=0.1, momentum=0.9),
    Adagrad(learning_rate=0.1),
    Adam(learning_rate=0.01),
    Ftrl(alpha=0.1, l1=0.5, l2=0.1),
)
_MASK = (1 << 64) - 1


def mix(bits: int) -> int:
    """Return the output function of splitmix64."""
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & _MASK
    return bits ^ bits >> 31


def draw(start: int, number: int) -> int:
    """Return an output of splitmix64."""
    return mix(start + (number + 1) * 0x9E3779B97F4A7C15 & _MASK)


def _normal(start: int) -> float:
    for number in range(1000):
        bits = draw(start, number)
        x, y = ((half ^ 1 << 31) / 2**31 - 1 for half in (bits >> 32, bits & (1 << 32) - 1))
        square = x * x + y * y
        if 0 < square < 1:
            return x * math.sqrt(-2 * math.log(square) / square)
    raise AssertionError("a thousand points outside of the circle")


def initial_values(initialiser: Initialiser, seed: int, key: int, width: int) -> Values:
    """Return the values of a new row; normal ones may differ in the last bit."""
    start = mix(draw(seed, 0) ^ draw(key & _MASK, 1))
    draws = [draw(start, position) for position in range(width)]
    match initialiser:
        case Uniform(low=low, high=high):
            units = np.array([bits >> 40 for bits in draws], np.float32) * np.float32(2**-24)
            return np.float32(low) + (np.float32(high) - np.float32(low)) * units
        case Normal(deviation=deviation):
            numbers = [float(np.float32(deviation)) * _normal(bits) for bits in draws]
            return np.array(numbers).astype(np.float32)
        case _:
            return np.zeros(width, np.float32)


def _power(base: float, exponent: int) -> float:
    """Return a power as the C code makes it, to the bit."""
    result = 1.0
    while exponent:
        if exponent & 1:
            result *= base
        exponent >>= 1
        base *= base
    return result


def apply(optimiser: Optimiser, values: Values, state: Values, gradient: Values, step: int) -> None:
    """Apply a gradient in place, with the roundings of optimisers.h; `state` has shape (k, n)."""
    numbers = [np.float32(number) for number in optimiser.numbers]
    match optimiser:
        case GradientSum():
            values += gradient
        case Sgd(momentum=momentum):
            if momentum:
                state[0] = numbers[1] * state[0] + gradient
                gradient = state[0]
            values -= numbers[0] * gradient
        case Adagrad():
            state[0] += gradient * gradient
            values -= numbers[0] * gradient / (np.sqrt(state[0]) + numbers[1])
        case Adam(learning_rate=rate, beta1=beta1, beta2=beta2):
            state[0] += np.float32(1 - beta1) * (gradient - state[0])
            state[1] = numbers[2] * state[1] + np.float32(1 - beta2) * (gradient * gradient)
            root = np.float32(math.sqrt(1 - _power(beta2, step)))
            unbiased = np.float32(rate / (1 - _power(beta1, step)))
            values -= unbiased * state[0] / (np.sqrt(state[1]) / root + numbers[3])
        case Ftrl():
            alpha, beta, l1, l2 = numbers
            squares = state[1] + gradient * gradient
            state[0] += gradient - (np.sqrt(squares) - np.sqrt(state[1])) / alpha * values
            state[1] = squares
            beyond = np.maximum(np.abs(state[0]) - l1, np.float32(0))
            values[:] = np.copysign(beyond, -state[0]) / ((beta + np.sqrt(squares)) / alpha + l2)
        case _:
            raise AssertionError(optimiser)


@dataclass
class ReferenceRow:
    """A row, with its state in shape (k, width)."""

    values: Values
    state: Values
    updates: int = 0
    lsn: int = 0


@dataclass
class RowReference:
    """A table without limits."""

    width: int
    optimiser: Optimiser
    initialiser: Initialiser
    seed: int
    rows: dict[int, ReferenceRow] = field(default_factory=dict)

    def row(self, key: int) -> ReferenceRow:
        """Return a key's row, a new one if it is missing."""
        if key not in self.rows:
            values = initial_values(self.initialiser, self.seed, key, self.width)
            state = np.zeros((self.optimiser.num_states, self.width), np.float32)
            self.rows[key] = ReferenceRow(values, state)
        return self.rows[key]

    def pull(self, keys: Sequence[int]) -> tuple[Values, list[int]]:
        """Return values and numbers of updates."""
        rows = [self.row(key) for key in keys]
        values = np.array([row.values for row in rows], np.float32)
        return values.reshape(-1, self.width), [row.updates for row in rows]

    def push(
        self, keys: Sequence[int], gradients: Values, *, lsn: int = 0, is_replay: bool = False
    ) -> None:
        """Add the gradients of each key, then apply the sums."""
        sums: dict[int, Values] = {}
        for key, gradient in zip(keys, gradients, strict=True):
            sums[key] = sums[key] + gradient if key in sums else gradient
        for key, gradient in sums.items():
            row = self.row(key)
            if is_replay and row.lsn >= lsn:
                continue
            row.updates += 1
            row.lsn = lsn or row.lsn
            apply(self.optimiser, row.values, row.state, gradient, row.updates)

    def stored_rows(self) -> dict[int, bytes]:
        """Return the bytes of each row in a chunk."""
        stored: dict[int, bytes] = {}
        for key, row in self.rows.items():
            head = np.array((key, row.lsn, row.updates, 0), ROW_HEAD).tobytes()
            content = head + row.values.tobytes() + row.state.tobytes()
            stored[key] = content + bytes(-len(content) % 8)
        return stored


def stored_rows(table: RowTable, max_rows: int = 4096) -> dict[int, bytes]:
    """Return the bytes of each row that a table exports, by key."""
    stored: dict[int, bytes] = {}
    cursor: int | None = 0
    while cursor is not None:
        chunk = table.export(cursor, max_rows)
        stored.update(rows_of_chunk(chunk.data, table))
        cursor = chunk.next_cursor
    return stored


def rows_of_chunk(data: NDArray[np.uint8], table: RowTable) -> dict[int, bytes]:
    """Return the bytes of each row of a chunk, by key."""
    row_bytes = ROW_HEAD.itemsize + 4 * table.width * (1 + table.optimiser.num_states)
    row_bytes += -row_bytes % 8
    rows = data[HEADER_BYTES:].reshape(-1, row_bytes)
    return {int(row[:8].view(np.int64)[0]): row.tobytes() for row in rows}
