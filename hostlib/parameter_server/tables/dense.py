# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Dense tensors on parameter servers, by ranges: tables whose keys are numbers of blocks."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from ...errors import ConfigurationError, RowShapeError
from ..rows import GradientSum, Optimiser, PulledRows, Versions
from .client import TableClient
from .definition import TableDefinition
from .parts import check_finite, places_of, split
from .state import KEY_BYTES, VALUE_BYTES

BLOCK_VALUES: Final = 1024
Values = NDArray[np.float32]
Result = TypeVar("Result")


class ReadTensor(NamedTuple):
    """All values of a tensor."""

    values: Values
    commits: Versions
    """By server, how many scheduled updates its tables contained."""


class TensorPart(NamedTuple):
    """What one server gets of an update."""

    shard: int
    payload: memoryview
    """Keys, then values."""
    num_keys: int
    whole_bytes: int = 0
    """Of a sparse update: the payload's size if it had all blocks of the server."""


@final
@dataclass(frozen=True, kw_only=True)
class TensorDefinition:
    """A dense tensor of float32 values; all workers define it alike."""

    name: str
    num_values: int
    optimiser: Optimiser = field(default_factory=GradientSum)
    staleness: int | None = None
    """As of TableDefinition."""
    is_mean: bool = False
    block_values: int = BLOCK_VALUES
    """Values that are on one server together; ranges begin and end with blocks."""

    def __post_init__(self) -> None:
        if self.num_values < 1 or self.block_values < 1:
            raise ConfigurationError(
                f"tensor {self.name!r} of {self.num_values} values in blocks of"
                f" {self.block_values}; give positive numbers"
            )

    @property
    def num_blocks(self) -> int:
        """Number of blocks; the last one may be padded with zeros."""
        return -(-self.num_values // self.block_values)

    def table(self) -> TableDefinition:
        """Return the table of the blocks. Raises ConfigurationError."""
        return TableDefinition(
            name=self.name,
            width=self.block_values,
            max_rows=self.num_blocks,
            optimiser=self.optimiser,
            staleness=self.staleness,
            is_mean=self.is_mean,
        )


@final
class DenseTensor:
    """A tensor of a client; it begins with zeros, or with what the first `start` brings."""

    def __init__(self, client: TableClient, definition: TensorDefinition) -> None:
        """Define it, and wait for all servers. Raises what `TableClient.define` raises."""
        self.definition = definition
        self.client = client
        self._table = client.define(definition.table())

    def start(self, values: Values) -> Future[Versions]:
        """Give all values, unless a worker has done so or has pushed gradients before."""
        keys, rows = self._blocks(values, 0)
        if values.size != self.definition.num_values:
            raise self._range_error(0, values.size)
        return self._table.start(keys, rows)

    def push(self, gradient: Values, first: int = 0) -> Future[Versions]:
        """Send the gradient of a range, of any shape, from a value on; as `SparseTable.push`.

        The range begins and ends with a block, or ends with the tensor. Raises RowShapeError and
        what `SparseTable.push` raises.
        """
        return self._table.push(*self._blocks(gradient, first))

    def set_learning_rate(self, rate: float) -> Future[Versions]:
        """Set the learning rate; as `SparseTable.set_learning_rate`."""
        return self._table.set_learning_rate(rate)

    def read(self, *, is_model: bool = False) -> Future[ReadTensor]:
        """Ask for all values, and what the servers had applied then; errors as `SparseTable.pull`.

        The values are of one moment on each server. `is_model`: a server that is a station of the
        transfer scheduler sends them when the scheduler lets it.
        """
        keys = self._keys(0, self.definition.num_values)

        def read(rows: PulledRows) -> ReadTensor:
            return ReadTensor(self._values(rows, self.definition.num_values), rows.commits)

        return self._pull(keys, read, is_model=is_model)

    def parts(self, update: Values) -> list[TensorPart]:
        """Return an update of all values as servers get it.

        Raises RowShapeError and NonFiniteGradientError.
        """
        keys, rows = self._blocks(update, 0)
        if update.size != self.definition.num_values:
            raise self._range_error(0, update.size)
        check_finite(self.definition.name, keys, rows)
        return [TensorPart(*part) for part in split(keys, rows, self.client.num_shards)]

    def block_parts(self, blocks: NDArray[np.int64], values: Values) -> list[TensorPart]:
        """Return an update of some blocks as `parts` does, of the servers that have any of them.

        `blocks`: different numbers of blocks, [n]; `values`: [n, block_values]. What lies beyond
        the tensor's end is taken for zero. Raises RowShapeError and NonFiniteGradientError.
        """
        own = self.definition
        name, num_blocks, width = own.name, own.num_blocks, own.block_values
        if blocks.dtype != np.int64 or values.dtype != np.float32:
            raise RowShapeError(
                f"blocks of {blocks.dtype} with values of {values.dtype} for tensor {name!r};"
                " give int64 and float32"
            )
        if blocks.ndim != 1 or not blocks.size or values.shape != (blocks.size, width):
            raise RowShapeError(
                f"blocks of shape {blocks.shape} with values of shape {values.shape} for tensor"
                f" {name!r}; give n numbers, n at least 1, and n times {width} values"
            )
        order = np.argsort(blocks)
        keys, rows = blocks[order], values[order]
        if keys[0] < 0 or keys[-1] >= num_blocks or (keys[1:] == keys[:-1]).any():
            raise RowShapeError(
                f"blocks {keys[0]} to {keys[-1]} of tensor {name!r}: numbers must lie in"
                f" 0..{num_blocks - 1}, each once; add values of one block up before"
            )
        if keys[-1] == num_blocks - 1:
            rows[-1, own.num_values - width * (num_blocks - 1) :] = 0.0
        check_finite(name, keys, rows)
        parts = split(keys, rows, self.client.num_shards)
        return [TensorPart(*part, self._bytes_on[part[0]]) for part in parts]

    def keys_on(self, shard: int) -> NDArray[np.int64]:
        """Return the numbers of the blocks that a server has."""
        keys = self._keys(0, self.definition.num_values)
        places = dict(places_of(keys, self.client.num_shards)).get(shard)
        return keys[:0] if places is None else keys[places]

    @cached_property
    def _bytes_on(self) -> dict[int, int]:
        """By server, the size of an update of all of its blocks."""
        keys = self._keys(0, self.definition.num_values)
        row_bytes = KEY_BYTES + VALUE_BYTES * self.definition.block_values
        parts = places_of(keys, self.client.num_shards)
        return {shard: row_bytes * places.size for shard, places in parts}

    def pull(self, first: int = 0, num_values: int | None = None) -> Future[Values]:
        """Ask for a range, by default to the tensor's end; as `SparseTable.pull`."""
        end = self.definition.num_values if num_values is None else first + num_values
        return self._pull(
            self._keys(first, end - first), lambda rows: self._values(rows, end - first)
        )

    def _values(self, rows: PulledRows, num_values: int) -> Values:
        return rows.values.reshape(-1)[:num_values]

    def _pull(
        self,
        keys: NDArray[np.int64],
        read: Callable[[PulledRows], Result],
        *,
        is_model: bool = False,
    ) -> Future[Result]:
        future: Future[Result] = Future()
        future.set_running_or_notify_cancel()

        def take(pulled: Future[PulledRows]) -> None:
            error = pulled.exception()
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(read(pulled.result()))

        table = self._table
        self.client.pull(table.definition, keys, is_model=is_model).add_done_callback(take)
        return future

    def _blocks(self, values: Values, first: int) -> tuple[NDArray[np.int64], Values]:
        if values.dtype != np.float32:
            raise RowShapeError(
                f"values of {values.dtype} for tensor {self.definition.name!r}; give float32"
            )
        keys, width = self._keys(first, values.size), self.definition.block_values
        flat = np.ascontiguousarray(values).reshape(-1)
        if flat.size < keys.size * width:
            padded = np.zeros(keys.size * width, np.float32)
            padded[: flat.size] = flat
            flat = padded
        return keys, flat.reshape(keys.size, width)

    def _keys(self, first: int, num_values: int) -> NDArray[np.int64]:
        width, end = self.definition.block_values, first + num_values
        is_whole = end % width == 0 or end == self.definition.num_values
        is_inside = 0 <= first < end <= self.definition.num_values
        if not is_inside or first % width or not is_whole:
            raise self._range_error(first, num_values)
        return np.arange(first // width, -(-end // width), dtype=np.int64)

    def _range_error(self, first: int, num_values: int) -> RowShapeError:
        own = self.definition
        return RowShapeError(
            f"{num_values} values from {first} of tensor {own.name!r}, which has {own.num_values}"
            f" in blocks of {own.block_values}; give a range of whole blocks, or one up to the end"
        )
