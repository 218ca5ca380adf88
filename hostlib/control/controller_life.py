# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a stream's controller tells of its life and of the others, and when it has been silent."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, final

from .controller_addresses import ControllerAddresses

SILENT_BEATS: Final = 3
"""A controller that has not shown for so many beats that it lives is given up."""


@final
class ControllerLife:
    """Of the controller at the other end of one stream; one thread hears, another may ask."""

    def __init__(
        self, controllers: ControllerAddresses, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._controllers = controllers
        self._clock_s = clock_s
        self._heard_s = clock_s()
        self._beat_s = 0.0

    def hear(self, message: Any) -> None:
        """Note a message of the session API; learn from its `controllers`, if it has them."""
        self._heard_s = self._clock_s()
        if message.HasField("controllers"):
            self._controllers.learn(message.controllers.addresses)
            self._beat_s = message.controllers.beat_s

    @property
    def is_silent(self) -> bool:
        """Whether it should have said something long ago; never if it has promised nothing."""
        return self.silent_s > SILENT_BEATS * self._beat_s > 0

    @property
    def silent_s(self) -> float:
        """How long it has said nothing."""
        return self._clock_s() - self._heard_s
