# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How control operations reach the runtime, and their errors."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Generator

from ..compilation.runtime_library import NO_PROGRAM, SwitchHandle
from ..errors import (
    BadArgumentError,
    ControlError,
    EntryExistsError,
    EntryNotFoundError,
    InUseError,
    NoProgramError,
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

_ERRORS: dict[int, tuple[type[ControlError], str]] = {
    P_NOT_FOUND: (EntryNotFoundError, "there is no such entry; insert it first"),
    P_EXISTS: (EntryExistsError, "an entry with this match exists; modify or delete it"),
    P_FULL: (TableFullError, "there is no room for another entry; delete one first"),
    P_IN_USE: (InUseError, "something still refers to it; change that first"),
    P_BAD_ARGUMENT: (BadArgumentError, "a position, width or value does not fit the program"),
    P_UNSUPPORTED: (UnsupportedControlError, "the program's object does not do this"),
}


def control_error(what: str, code: int) -> ControlError | NoProgramError:
    """Return the error that a negative result of the runtime means."""
    if code == NO_PROGRAM:
        return NoProgramError(f"{what}: no program is loaded; load one first")
    kind, advice = _ERRORS[code]
    return kind(f"{what}: {advice}")


class ControlBase:
    """Carries out control operations on a switch."""

    def __init__(self, library: ctypes.CDLL, handle: SwitchHandle) -> None:
        self._library = library
        self._open_handle: SwitchHandle | None = handle

    @property
    def _handle(self) -> SwitchHandle:
        if self._open_handle is None:
            raise SwitchStateError("the switch is closed; make a new one")
        return self._open_handle

    def _control(self, what: str, function: str, *arguments: object) -> int:
        code: int = getattr(self._library, function)(self._handle, *arguments)
        if code < 0:
            raise control_error(what, code)
        return code

    @contextlib.contextmanager
    def atomically(self) -> Generator[None]:
        """Make the operations of this thread within the block one: packets see all or none.

        Packets wait meanwhile, and so do other threads' operations. Blocks may nest.
        """
        handle = self._handle
        self._library.switch_lock(handle)
        try:
            yield
        finally:
            self._library.switch_unlock(handle)
