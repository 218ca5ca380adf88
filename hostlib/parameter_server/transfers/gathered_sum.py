# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Updates of one table, added up by key: of equal keys in place, of others into their union."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from ...peers.frames import MAX_BATCH_BYTES
from ..tables.state import KEY_BYTES, VALUE_BYTES
from .update_port import IncomingUpdate

_Keys = NDArray[np.int64]
_Values = NDArray[np.float32]


@final
class GatheredSum:
    """The sum of at least one update. It takes the memory of those that are added."""

    def __init__(self, first: IncomingUpdate) -> None:
        """`first` is usable: see `problem_of`."""
        self._table = first.head.table
        self._payload, first.payload = _payload_of(first), None
        self._num_keys = first.head.num_keys

    @property
    def table(self) -> int:
        """Number of the table."""
        return self._table

    @property
    def num_keys(self) -> int:
        """How many keys any of the updates has."""
        return self._num_keys

    @property
    def payload(self) -> memoryview:
        """Keys, then values, as of an update."""
        return self._payload

    @property
    def num_bytes(self) -> int:
        """Size of the payload."""
        return self._payload.nbytes

    def add(self, update: IncomingUpdate) -> str:
        """Add a usable update; return why it cannot be added, "" if it was."""
        head, width_bytes = update.head, self._payload.nbytes // self._num_keys
        if (head.table, head.num_bytes) != (self._table, head.num_keys * width_bytes):
            return f"updates of {self._payload.nbytes} and {head.num_bytes} bytes, or of two tables"
        more = _payload_of(update)
        keys, values = self._keys, self._values
        more_keys, more_values = _keys_of(more, head.num_keys), _values_of(more, head.num_keys)
        if np.array_equal(keys, more_keys):
            np.add(values, more_values, out=values)
        elif not (_is_rising(keys) and _is_rising(more_keys)):
            return "updates of different keys, which do not rise"
        else:
            union = np.union1d(keys, more_keys)
            if union.size * width_bytes > MAX_BATCH_BYTES:
                return f"updates of {union.size} keys together, which are too many for one"
            self._payload = memoryview(bytearray(union.size * width_bytes))
            self._num_keys = union.size
            self._keys[:] = union
            rows = self._values  # of zeros
            rows[np.searchsorted(union, keys)] = values
            rows[np.searchsorted(union, more_keys)] += more_values
        update.payload = None
        return ""

    @property
    def _keys(self) -> _Keys:
        return _keys_of(self._payload, self._num_keys)

    @property
    def _values(self) -> _Values:
        return _values_of(self._payload, self._num_keys)


def problem_of(update: IncomingUpdate) -> str:
    """Return why an update has no keys with values of one width, "" if it has."""
    num_keys, num_bytes = update.head.num_keys, update.head.num_bytes
    row_bytes, rest = divmod(num_bytes, num_keys) if num_keys else (0, 1)
    if rest or row_bytes <= KEY_BYTES or (row_bytes - KEY_BYTES) % VALUE_BYTES:
        return f"an update of {num_bytes} bytes with {num_keys} keys"
    return ""


def _is_rising(keys: _Keys) -> bool:
    return bool((keys[1:] > keys[:-1]).all())


def _payload_of(update: IncomingUpdate) -> memoryview:
    assert update.payload is not None, "the update is whole"
    return update.payload[update.head_bytes :]


def _keys_of(payload: memoryview, num_keys: int) -> _Keys:
    return np.frombuffer(payload, np.int64, num_keys)


def _values_of(payload: memoryview, num_keys: int) -> _Values:
    values = np.frombuffer(payload, np.float32, offset=KEY_BYTES * num_keys)
    return values.reshape(num_keys, -1)
