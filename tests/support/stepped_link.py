# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A stage of the runtime's impairments whose clock the test steps, from stepped_link.c."""

from __future__ import annotations

import ctypes
import subprocess
from ctypes import POINTER, byref, c_int64, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Self

from switchfold.softswitch.compilation.compiler import (
    INCLUDES,
    RUNTIME,
    environment_flags,
    find_compiler,
)
from switchfold.softswitch.compilation.runtime_library import ImpairmentsT

NEVER = (1 << 64) - 1
LOST, DUPLICATED, CORRUPTED, REORDERED, DELAYED, OVERRUN, BURST_LOST, SCRIPT_LOST = range(8)
"""Counters, in the order of impairments.h."""
_SOURCES = ("ports/impairments.c", "ports/packets.c")


def compile_stepped_link(folder: Path) -> ctypes.CDLL:
    """Build the library into `folder`."""
    library = folder / "stepped_link.so"
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", *INCLUDES]
    sources = [Path(__file__).with_suffix(".c"), *(RUNTIME / name for name in _SOURCES)]
    command = [*find_compiler(), *flags, *environment_flags(), "-o", str(library)]
    subprocess.run([*command, *map(str, sources)], check=True)
    loaded = ctypes.CDLL(str(library))
    u32, u64, link = c_uint32, c_uint64, c_void_p
    settings = POINTER(ImpairmentsT)
    for name, arguments, result in (
        ("link_create", [u32, settings], link),
        ("link_destroy", [link], None),
        ("link_set", [link, settings], None),
        ("link_push", [link, u32, u32, u32, u64], None),
        ("link_advance", [link, u64], None),
        ("link_pop", [link], c_int64),
        ("link_queued", [link, u32, u64], u32),
        ("link_deadline", [link], u64),
        ("link_counter", [link, u32], u64),
    ):
        function = getattr(loaded, name)
        function.argtypes, function.restype = arguments, result
    return loaded


class SteppedLink:
    """A link with priority queues; times in ns."""

    def __init__(self, library: ctypes.CDLL, queues: int, settings: ImpairmentsT) -> None:
        self._library = library
        self._link = library.link_create(queues, byref(settings))
        assert self._link

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._library.link_destroy(self._link)

    def set(self, settings: ImpairmentsT) -> list[int]:
        """Change the settings; return what leaves."""
        self._library.link_set(self._link, byref(settings))
        return self._left()

    def push(self, serial: int, size: int, priority: int, now_ns: int) -> list[int]:
        """Let a packet arrive; return the numbers of those that leave."""
        self._library.link_push(self._link, serial, size, priority, now_ns)
        return self._left()

    def advance(self, now_ns: int) -> list[int]:
        """Step the clock; return the numbers of the packets that leave."""
        self._library.link_advance(self._link, now_ns)
        return self._left()

    def queued(self, priority: int, now_ns: int) -> int:
        """Return the depth of a queue."""
        return self._library.link_queued(self._link, priority, now_ns)

    @property
    def deadline_ns(self) -> int:
        """When the next packet leaves; NEVER if none waits."""
        return self._library.link_deadline(self._link)

    def counter(self, index: int) -> int:
        """Return a counter of the stage."""
        return self._library.link_counter(self._link, index)

    def _left(self) -> list[int]:
        return list(iter(lambda: self._library.link_pop(self._link), -1))
