# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A StragglerTimeout by which a busy machine makes no worker of a test late.

If the test's process stood still, one worker would close its rounds as soon as it runs again,
before other workers of the process have sent their part.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray

from switchfold.hostlib.engine.engine import Engine
from switchfold.hostlib.engine.straggler_timeout import StragglerTimeout
from switchfold.hostlib.slots import switch_reducer

AGAIN_S = 0.02
TICKS = 2
"""Ticks that each worker must have run; the first may have begun before the timeout."""


def install_even_straggler_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no worker of this process close rounds before all have run since the timeout."""
    ticks: Counter[Engine] = Counter()
    tick = Engine._tick  # pyright: ignore[reportPrivateUsage]

    def counted(engine: Engine) -> None:
        ticks[engine] += 1
        try:
            tick(engine)
        except BaseException:
            del ticks[engine]
            raise

    class Even(StragglerTimeout):
        _since: dict[Engine, int] | None = None

        def due(self, now_s: float) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
            if self._since is None:
                self._since = {each: n for each, n in list(ticks.items()) if _is_waiting(each)}
            if all(
                ticks[each] >= count + TICKS for each, count in self._since.items() if each in ticks
            ):
                self._since = None
                return super().due(now_s)
            self.next_s = now_s + AGAIN_S
            return np.zeros(0, np.int64), np.zeros(0, np.uint32)

    monkeypatch.setattr(Engine, "_tick", counted)
    monkeypatch.setattr(switch_reducer, "StragglerTimeout", Even)


def _is_waiting(engine: Engine) -> bool:
    """Return whether this worker waits for results: one that has nothing to do seldom runs."""
    reducer = engine._runner._reducer  # pyright: ignore[reportPrivateUsage]
    return reducer is not None and reducer.is_waiting
