# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Who may submit to a session: it takes the same sequence of tensors from all ranks.

Syncers submit from threads while a backward pass goes on. What anybody else submitted then would
come in another place of the sequence on each rank, and wrong tensors would be added up.
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
        """Who has claimed the session; empty for nobody."""
        with self._changed:
            return self._owner

    def claim(self, owner: str, timeout_s: float) -> str:
        """Claim the session once what others have staged is submitted; return who has it already.

        Empty: it is claimed. Raises TimeoutError where staging takes too long.
        """
        with self._changed:
            if self._owner:
                return self._owner
            self._owner = owner
            if not self._changed.wait_for(lambda: not self._num_staged, timeout_s):
                self._owner = ""
                raise TimeoutError(f"collectives before were not submitted in {timeout_s:g} s")
        return ""

    def release(self) -> None:
        """End a claim."""
        with self._changed:
            self._owner = ""

    def stage(self) -> None:
        """Note something called before a claim, and submitted later."""
        with self._changed:
            self._num_staged += 1

    def submitted(self) -> None:
        """Note that something staged is submitted, or has failed."""
        with self._changed:
            self._num_staged -= 1
            self._changed.notify_all()


_uses: WeakKeyDictionary[Any, SessionUse] = WeakKeyDictionary()
_lock = threading.Lock()


def use_of(session: Any) -> SessionUse:
    """Return the use of a session, the same for all who ask."""
    with _lock:
        return _uses.setdefault(session, SessionUse())
