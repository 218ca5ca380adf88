# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How every process logs: one line for each record on standard error, as text or as JSON."""

from __future__ import annotations

import enum
import json
import logging
import os
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from ..errors import ConfigurationError

VARIABLE: Final = "SWITCHFOLD_LOG_FORMAT"
"""The format of all processes that have it, unless an option says otherwise."""
_TEXT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_OURS: Final = "switchfold"
RecordFilter = logging.Filter | Callable[[logging.LogRecord], bool]


class LogFormat(enum.StrEnum):
    """What a line looks like."""

    TEXT = "text"
    """Time of this machine, level, logger, message."""
    JSON = "json"
    """An object with time (RFC 3339, UTC), level, logger, message, pid; after an error, its
    traceback as exception."""


def escaped(text: str, keep: str = "") -> str:
    r"""Return the text with unprintable characters as \x1b or \u202e; those in `keep` stay."""
    if text.isprintable():
        return text
    return "".join(
        character
        if character.isprintable() or character in keep
        else character.encode("unicode_escape", "surrogatepass").decode()
        for character in text
    )


class EscapingFormatter(logging.Formatter):
    """Formats records so that each is one line, whatever names and texts are in it."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """Escape the message."""
        record.message = escaped(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802
        """Escape a traceback; it keeps its lines."""
        return escaped(super().formatException(ei), keep="\n")


class JsonFormatter(logging.Formatter):
    """Formats each record as a JSON object in one line of ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without a newline."""
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "time": f"{seconds}.{int(record.created % 1 * 1e6):06d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "pid": record.process,
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


def set_up_logs(
    chosen: str | None = None,
    *,
    level: int = logging.INFO,
    filters: Iterable[RecordFilter] = (),
) -> None:
    """Log to standard error from now on; a program that has a log keeps it.

    `chosen` is the value of an option, None to follow the variable. Raises ConfigurationError.
    """
    handler = logging.StreamHandler()
    is_json = _format(chosen) is LogFormat.JSON
    handler.setFormatter(JsonFormatter() if is_json else EscapingFormatter(_TEXT))
    for each in filters:
        handler.addFilter(each)
    logging.basicConfig(level=level, handlers=[handler])


def set_up_worker_logs() -> None:
    """Log what this package says, if the variable asks for it; else the program decides.

    Messages of other packages are shown from warnings on. Raises ConfigurationError.
    """
    if os.environ.get(VARIABLE):
        set_up_logs(level=logging.WARNING)
        logging.getLogger(_OURS).setLevel(logging.INFO)


def _format(chosen: str | None) -> LogFormat:
    value = os.environ.get(VARIABLE, "") if chosen is None else chosen
    try:
        return LogFormat(value or LogFormat.TEXT)
    except ValueError:
        where = f"environment variable {VARIABLE}" if chosen is None else "the log format"
        raise ConfigurationError(f"{where} is {value!r}; choose {', '.join(LogFormat)}") from None
