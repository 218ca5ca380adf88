# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Exclusive use of a session: all ranks must submit the same sequence of tensors to it.

Syncers submit from threads during a backward pass. A collective of another caller would then have
another position in the sequence of each rank, and the session would sum tensors that do not belong
together.
"""

from __future__ import annotations

import threading
from typing import Any, final
from weakref import WeakKeyDictionary


@final
class SessionUse:
    """The use of one session by this package; safe from any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._owner = ""
        self._num_staged = 0

    @property
    def owner(self) -> str:
        """Description of the owner; empty while the session is not claimed."""
        with self._changed:
            return self._owner

    def claim(self, owner: str, timeout_s: float) -> str:
        """Claim the session after all staged collectives are submitted.

        Return the owner that already has it, or "" if the claim succeeded. Raise TimeoutError if
        staged collectives are not submitted within `timeout_s`.
        """
        with self._changed:
            if self._owner:
                return self._owner
            self._owner = owner
            if not self._changed.wait_for(lambda: not self._num_staged, timeout_s):
                self._owner = ""
                raise TimeoutError(f"earlier collectives were not submitted within {timeout_s:g} s")
        return ""

    def release(self) -> None:
        """End a claim."""
        with self._changed:
            self._owner = ""

    def stage(self) -> None:
        """Note a collective that is called now and submitted later."""
        with self._changed:
            self._num_staged += 1

    def submitted(self) -> None:
        """Note that a staged collective was submitted or failed."""
        with self._changed:
            self._num_staged -= 1
            self._changed.notify_all()


_uses: WeakKeyDictionary[Any, SessionUse] = WeakKeyDictionary()
_lock = threading.Lock()


def use_of(session: Any) -> SessionUse:
    """Return the one `SessionUse` of a session."""
    with _lock:
        return _uses.setdefault(session, SessionUse())
