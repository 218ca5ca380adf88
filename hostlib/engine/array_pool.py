# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Memory of large arrays, used again once no reference to the array is left.

A tensor's sums and its result are two arrays as large as the tensor. The system clears each page of
new memory first, which costs more than writing the values. On a virtual machine, whose host may
have to find the page, it costs several times as much.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

SMALLEST_BYTES: Final = 1 << 17
"""For smaller arrays the memory allocator keeps pages itself."""
LIMIT_BYTES: Final = 512 << 20
"""Most memory that waits for a new use; the pool does not keep a larger array."""

_Memory = NDArray[np.uint8]


class _Lease:
    """The base of all arrays over a piece of memory; it is freed with the last of them."""

    def __init__(self, memory: _Memory, returned: deque[_Memory]) -> None:
        self.__array_interface__ = memory.__array_interface__
        self._memory = memory
        self._returned = returned

    def __del__(self) -> None:
        # This runs in any thread, perhaps during a garbage collection: nothing here may wait.
        self._returned.append(self._memory)


class ArrayPool:
    """Makes arrays like numpy.empty; one thread asks for them, any thread may drop them."""

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._returned: deque[_Memory] = deque()
        self._free: OrderedDict[int, list[_Memory]] = OrderedDict()  # by size, last used last
        self.idle_bytes = 0
        """Memory that waits for a new use, as of the last call of `empty`."""

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return a new array of arbitrary contents."""
        num_bytes = math.prod(shape) * np.dtype(dtype).itemsize
        if not SMALLEST_BYTES <= num_bytes <= self._limit_bytes:
            return np.empty(shape, dtype)
        self._collect()
        memories = self._free.get(num_bytes)
        if memories:
            memory = memories.pop()
            self.idle_bytes -= num_bytes
            self._free.move_to_end(num_bytes)
        else:
            memory = np.empty(num_bytes, np.uint8)
        return np.asarray(_Lease(memory, self._returned)).view(dtype).reshape(shape)

    def _collect(self) -> None:
        """Take in what was dropped; free the sizes that were asked for the longest time ago."""
        while self._returned:
            memory = self._returned.popleft()
            self._free.setdefault(memory.nbytes, []).append(memory)
            self.idle_bytes += memory.nbytes
        while self.idle_bytes > self._limit_bytes:
            size, memories = next(iter(self._free.items()))
            if memories:
                memories.pop()
                self.idle_bytes -= size
            if not memories:
                del self._free[size]
