# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Memory of large arrays, used again once nobody holds the array.

A tensor's sums and its result are two arrays as large as the tensor. From the system, each page of
them is cleared first, which costs more than to write the values; on a virtual machine, whose host
may have to find the page, several times as much.
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
"""Most memory that waits for a new use; an array that is larger is none of the pool's."""

_Memory = NDArray[np.uint8]


class _Lease:
    """What arrays over a piece of memory refer to, so that its end is that of the last of them."""

    def __init__(self, memory: _Memory, returned: deque[_Memory]) -> None:
        self.__array_interface__ = memory.__array_interface__
        self._memory = memory
        self._returned = returned

    def __del__(self) -> None:
        # In whatever thread, perhaps amid a collection of garbage: nothing here may wait.
        self._returned.append(self._memory)


class ArrayPool:
    """Makes arrays like numpy.empty; one thread asks for them, any thread may drop them."""

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._returned: deque[_Memory] = deque()
        self._free: OrderedDict[int, list[_Memory]] = OrderedDict()  # by size, last used last
        self.idle_bytes = 0
        """Memory that waits for a new use, but for what was dropped since the last one began."""

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
        """Take in what was dropped; let go of the sizes that were not asked for the longest."""
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
