# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a stream's controller tells of its life and of the others, and when it has been silent."""

from __future__ import annotations

import logging
import time
from typing import Any, Final, final

from .controller_addresses import ControllerAddresses

SILENT_BEATS: Final = 3
"""A controller that has not shown for so many beats that it lives is given up."""

_logger = logging.getLogger(__name__)


@final
class ControllerLife:
    """Of the controller at the other end of one stream; one thread hears, another may ask."""

    def __init__(self, controllers: ControllerAddresses) -> None:
        self._controllers = controllers
        self._heard_s = time.monotonic()
        self._beat_s = 0.0

    def hear(self, message: Any) -> None:
        """Note a message of the session API; learn from its `controllers`, if it has them."""
        self._heard_s = time.monotonic()
        if message.HasField("controllers"):
            self._controllers.learn(message.controllers.addresses)
            self._beat_s = message.controllers.beat_s

    def has_ended(self) -> bool:
        """Return whether it should have said something long ago; log it then.

        Never if it has promised nothing.
        """
        silent_s = time.monotonic() - self._heard_s
        if not silent_s > SILENT_BEATS * self._beat_s > 0:
            return False
        _logger.warning("controller at %s is silent for %.1f s", self._controllers, silent_s)
        return True
