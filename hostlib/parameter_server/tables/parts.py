# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A call of a client in parts, one for each server, and their answers as one future."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from ...errors import HostlibError, NonFiniteGradientError
from ..rows import PulledRows, partition
from .state import KEY_BYTES, VALUE_BYTES

_Result = TypeVar("_Result")


@final
class Gathering(Generic[_Result]):
    """A future that is done when all servers have answered, or the first has failed."""

    def __init__(self, num_parts: int, result: Callable[[], _Result]) -> None:
        self.future: Future[_Result] = Future()
        self.future.set_running_or_notify_cancel()  # sent frames cannot be cancelled
        self._remaining = num_parts
        self._error: HostlibError | None = None
        self._result = result
        if not num_parts:
            self.future.set_result(result())

    def take(self, error: HostlibError | None) -> None:
        """Take a server's answer, in the loop's thread."""
        self._remaining -= 1
        self._error = self._error or error
        if self._remaining:
            return
        if self._error is not None:
            self.future.set_exception(self._error)
        else:
            self.future.set_result(self._result())

    def fail(self, error: HostlibError) -> None:
        """Fail: nothing was sent."""
        if not self.future.done():
            self.future.set_exception(error)


def check_finite(name: str, keys: NDArray[np.int64], gradients: NDArray[np.float32]) -> None:
    """Raise NonFiniteGradientError that names the first bad position and its key."""
    is_finite = np.isfinite(gradients)
    if not is_finite.all():
        position = int(is_finite.all(axis=1).argmin())
        raise NonFiniteGradientError(
            f"gradients of key {keys[position]} of table {name!r}, at {position}: NaN or infinity;"
            " nothing was applied. Clip or scale the gradients before they are pushed",
            position,
            int(keys[position]),
        )


def split(
    keys: NDArray[np.int64], gradients: NDArray[np.float32], num_shards: int
) -> list[tuple[int, memoryview, int]]:
    """Return shard, payload and number of keys of each server that gets some."""
    parts: list[tuple[int, memoryview, int]] = []
    for shard, places in places_of(keys, num_shards):
        key_bytes = KEY_BYTES * places.size
        payload = np.empty(key_bytes + VALUE_BYTES * places.size * gradients.shape[1], np.uint8)
        own_keys = payload[:key_bytes].view(np.int64)
        own_gradients = payload[key_bytes:].view(np.float32).reshape(places.size, -1)
        if places.size == keys.size:
            own_keys[:], own_gradients[:] = keys, gradients
        else:
            # With mode "raise", numpy would first collect them in an array of its own.
            keys.take(places, out=own_keys, mode="clip")
            gradients.take(places, axis=0, out=own_gradients, mode="clip")
        parts.append((shard, payload.data, places.size))
    return parts


def places_of(keys: NDArray[np.int64], num_shards: int) -> list[tuple[int, NDArray[np.int64]]]:
    """Return each shard that has some of the keys, with their positions in rising order."""
    found = partition(keys, num_shards)
    parts = np.split(found.order, np.cumsum(found.counts)[:-1])
    return [(shard, places) for shard, places in enumerate(parts) if places.size]


@final
class GatheredRows:
    """Rows of a pull, as servers answer."""

    def __init__(
        self, parts: list[tuple[int, NDArray[np.int64]]], num_keys: int, width: int, num_shards: int
    ) -> None:
        self._places = dict(parts)
        self._num_keys = num_keys
        self._width = width
        self._versions = np.zeros(num_shards, np.uint64)
        self._commits = np.zeros(num_shards, np.uint64)
        self._rows: PulledRows | None = None

    def add(self, shard: int, rows: PulledRows) -> None:
        """Take the rows of a server."""
        places = self._places[shard]
        self._versions[shard] = rows.versions.sum()  # of one, or of none
        self._commits[shard] = rows.commits.sum()
        if places.size == self._num_keys:
            # All come from one server, in the keys' order.
            self._rows = rows._replace(versions=self._versions, commits=self._commits)
            return
        result = self.result()
        result.values[places], result.updates[places] = rows.values, rows.updates

    def result(self) -> PulledRows:
        """Return all rows."""
        if self._rows is None:
            values = np.empty((self._num_keys, self._width), np.float32)
            updates = np.empty(self._num_keys, np.uint32)
            self._rows = PulledRows(values, updates, self._versions, self._commits)
        return self._rows
