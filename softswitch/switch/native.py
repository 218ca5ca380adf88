# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The switch of the C runtime; all parts of a Switch call it through one NativeSwitch."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from pathlib import Path
from typing import Final

from ..compilation.runtime_library import NO_PROGRAM, SwitchHandle, runtime_library
from ..errors import (
    BadArgumentError,
    ControlError,
    EntryExistsError,
    EntryNotFoundError,
    InUseError,
    NoProgramError,
    SoftswitchError,
    SwitchStateError,
    TableFullError,
    UnsupportedControlError,
)
from .pipeline import (
    P_BAD_ARGUMENT,
    P_EXISTS,
    P_FULL,
    P_IN_USE,
    P_NOT_FOUND,
    P_UNSUPPORTED,
)

POOL_PACKETS: Final = 32768
"""Packets that the switch may hold at once: in batches and in impairments."""

_ERRORS: dict[int, tuple[type[ControlError], str]] = {
    P_NOT_FOUND: (EntryNotFoundError, "there is no such entry; insert it first"),
    P_EXISTS: (EntryExistsError, "an entry with this match exists; modify or delete it"),
    P_FULL: (TableFullError, "there is no room for another entry; delete one first"),
    P_IN_USE: (InUseError, "something still refers to it; change that first"),
    P_BAD_ARGUMENT: (BadArgumentError, "a position, width or value does not fit the program"),
    P_UNSUPPORTED: (UnsupportedControlError, "the program's object does not support this"),
}


def control_error(what: str, code: int) -> ControlError | NoProgramError:
    """Return the error of a negative result of the runtime."""
    if code == NO_PROGRAM:
        return NoProgramError(f"{what}: no program is loaded; load one first")
    kind, advice = _ERRORS[code]
    return kind(f"{what}: {advice}")


class NativeSwitch:
    """A switch of the runtime. Its calls raise SwitchStateError once it is closed."""

    def __init__(
        self, *, cpu_port: int, drop_port: int, priority_queues: int, cache_dir: Path | None
    ) -> None:
        self.library = runtime_library(cache_dir)
        address = self.library.switch_create(cpu_port, drop_port, priority_queues, POOL_PACKETS)
        if not address:
            raise SoftswitchError("no memory or no file descriptors left for a switch")
        self._handle: SwitchHandle | None = SwitchHandle(self.library, address)

    @property
    def is_closed(self) -> bool:
        """Whether `close` has been called."""
        return self._handle is None

    @property
    def handle(self) -> SwitchHandle:
        """The first argument of the runtime's functions."""
        handle = self._handle  # read once: another thread may close the switch now
        if handle is None:
            raise SwitchStateError("the switch is closed; make a new one")
        return handle

    def close(self) -> None:
        """Close the switch; calls of other threads that are under way end with an error."""
        handle, self._handle = self.handle, None
        handle.close()

    def call(self, function: str, *arguments: object) -> int:
        """Call a function of the runtime on this switch, and return its result."""
        result: int = getattr(self.library, function)(self.handle, *arguments)
        return result

    def control(self, what: str, function: str, *arguments: object) -> int:
        """Carry out a control operation; `what` begins the text of its error."""
        code = self.call(function, *arguments)
        if code < 0:
            raise control_error(what, code)
        return code

    @contextlib.contextmanager
    def atomically(self) -> Generator[None]:
        """Make this thread's operations within the block atomic: a packet sees all or none.

        Packets and operations of other threads wait meanwhile. Blocks may nest.
        """
        handle = self.handle
        self.library.switch_lock(handle)
        try:
            yield
        finally:
            self.library.switch_unlock(handle)
