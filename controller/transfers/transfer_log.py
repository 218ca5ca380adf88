# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The timeline of all transfers, as JSON lines in a file."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..scheduler.residual_rate import RateSpan

_LOGGER = logging.getLogger(__name__)


class TransferLog:
    """Adds one line for each event. A file that can no longer be written is left, and that logged.

    Times are seconds since 1970, and advance with the monotonic clock.
    """

    def __init__(self, path: Path | None) -> None:
        """Open the file; ConfigError if that is not possible."""
        self._path = path
        self._began_s = time.time() - time.monotonic()
        self._file = None
        if path is None:
            return
        try:
            self._file = path.open("a", encoding="utf-8", buffering=1)
        except OSError as exc:
            raise ConfigError(
                f"cannot write the transfer log {path}: {exc.strerror}; choose another file with "
                "--transfer-log, or leave it out"
            ) from exc

    def note(self, event: str, **fields: Any) -> None:
        """Add an event; fields that are None are left out."""
        if self._file is None:
            return
        line = {"time": round(self._began_s + time.monotonic(), 6), "event": event}
        line |= {name: value for name, value in fields.items() if value is not None}
        try:
            self._file.write(json.dumps(line, separators=(",", ":")) + "\n")
        except OSError as exc:
            _LOGGER.error("the transfer log %s ends here: %s", self._path, exc.strerror)
            self._forget()

    def close(self) -> None:
        """Close the file."""
        self._forget()

    def _forget(self) -> None:
        file, self._file = self._file, None
        if file is None:
            return
        try:
            file.close()
        except OSError as exc:  # what was left in its buffer
            _LOGGER.warning("the transfer log %s lacks its last line: %s", self._path, exc.strerror)


def planned_times(spans: Sequence[RateSpan], now_s: float) -> dict[str, float]:
    """Return when a grant's first span begins and its last one ends, as fields of an event of now.

    Nothing of a grant that crosses no link.
    """
    if not spans:
        return {}
    return {
        "begins": round(spans[0].start_s - now_s, 3),
        "ends": round(spans[-1].end_s - now_s, 3),
    }
