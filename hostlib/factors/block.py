# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Factors of one worker in one array, and the gradient of all workers' factors."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigurationError, PeerProtocolError, UnsupportedDtypeError

Floats = NDArray[np.float32]
PREFIX_WORDS = 4
"""32-bit words before a multicast block: rows, M, N, and a check of key and iteration."""


class FactorPair(NamedTuple):
    """The update u^T v; u is [K, M] and v is [K, N], float32. K, the worker's batch, may be 0."""

    u: Floats
    v: Floats


@final
class FactorBlock:
    """u and v, one after the other."""

    def __init__(self, values: Floats, rows: int, columns: tuple[int, int]) -> None:
        self.values = values
        self.rows = rows
        self.columns = columns
        """M and N."""

    @classmethod
    def of(cls, u: Floats, v: Floats) -> FactorBlock:
        """Copy factors. Raises ConfigurationError and UnsupportedDtypeError."""
        if u.ndim != 2 or v.ndim != 2 or len(u) != len(v) or not (u.shape[1] and v.shape[1]):
            raise ConfigurationError(
                f"factors of shapes {u.shape} and {v.shape}; give [K, M] and [K, N]"
            )
        if u.dtype != np.float32 or v.dtype != np.float32:
            raise UnsupportedDtypeError(f"factors of {u.dtype} and {v.dtype}; give float32")
        joined = np.concatenate([u.reshape(-1), v.reshape(-1)])
        return cls(joined, len(u), (u.shape[1], v.shape[1]))

    def pair(self) -> FactorPair:
        """Return views of u and v."""
        middle = self.rows * self.columns[0]
        end = middle + self.rows * self.columns[1]
        return FactorPair(
            self.values[:middle].reshape(self.rows, self.columns[0]),
            self.values[middle:end].reshape(self.rows, self.columns[1]),
        )

    def with_prefix(self, key: str, iteration: int) -> NDArray[np.int32]:
        """Return shape and check, then the bits of u and v as int32."""
        prefix = np.array([self.rows, *self.columns, _check(key, iteration)], np.int32)
        return np.concatenate([prefix, self.values.view(np.int32)])

    @classmethod
    def of_prefixed(cls, words: NDArray[np.int32], key: str, iteration: int) -> FactorBlock:
        """Return the block of `with_prefix`; raise PeerProtocolError for another key's words."""
        rows, *columns, check = (int(word) for word in words[:PREFIX_WORDS])
        size = words.size - PREFIX_WORDS
        if check != _check(key, iteration) or rows < 0 or rows * sum(columns) != size:
            raise PeerProtocolError(
                f"no block of {key!r}, iteration {iteration}: do all workers exchange in the same"
                " order?"
            )
        values = np.ascontiguousarray(words[PREFIX_WORDS:]).view(np.float32)
        return cls(values, rows, (columns[0], columns[1]))


def _check(key: str, iteration: int) -> int:
    return zlib.crc32(f"{iteration} {key}".encode()) & 0x7FFFFFFF


@np.errstate(over="ignore", invalid="ignore")  # infinity and not-a-number are results
def rebuild(pairs: Sequence[FactorPair], out: Floats | None = None) -> Floats:
    """Return the sum [M, N] of all workers' u^T v, float32.

    It is one matrix product over all rows in the order of `pairs`. Workers get the same bytes if
    numpy, processor and number of threads of the linear algebra library are the same.
    """
    if not pairs:
        raise ConfigurationError("no factors to rebuild a gradient from")
    u = np.concatenate([pair[0] for pair in pairs])
    v = np.concatenate([pair[1] for pair in pairs])
    return np.matmul(u.T, v, out=out)
