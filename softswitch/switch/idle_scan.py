# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The thread that looks for idle table entries; packets only leave a time stamp at a hit."""

import contextlib
import threading
from collections.abc import Callable
from typing import Final

from ..errors import NoProgramError, SwitchStateError


class IdleScan:
    """Searches tables for entries that are idle for their timeout, until it is closed."""

    INTERVAL_S: Final = 0.1
    """Between two searches."""

    def __init__(self, search: Callable[[], None]) -> None:
        """Call `search` again and again."""
        self._search = search
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="softswitch-idle", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread; a callback that is under way ends first, unless this is called in it."""
        self._is_closed.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._is_closed.wait(self.INTERVAL_S):
            with contextlib.suppress(NoProgramError, SwitchStateError):  # none now, or closed
                self._search()
