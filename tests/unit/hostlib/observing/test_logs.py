# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Logs of processes: text or JSON, by option or variable, one line for each record."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
from typing import Any

import pytest

from switchfold.hostlib.errors import ConfigurationError
from switchfold.hostlib.observing.logs import VARIABLE, JsonFormatter, set_up_logs

SET_UP = "import logging; from switchfold.hostlib.observing.logs import *; "
RECORDS = (
    "logging.getLogger('switchfold.part').info('told %d', 1); "
    "logging.getLogger('foreign').info('foreign'); "
    "logging.getLogger('foreign').warning('two\\nlines \\x1b[2J')"
)
TEXT_LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (\w+) (\S+): (.*)")


def logged(set_up: str, *, variable: str | None = None) -> list[str]:
    """Return the lines of a program that sets up its log, and logs."""
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    if variable is not None:
        environment[VARIABLE] = variable
    done = subprocess.run(
        [sys.executable, "-c", f"{SET_UP}{set_up}; {RECORDS}"],
        check=True, capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert not done.stdout
    return done.stderr.splitlines()


def formatted(record: logging.LogRecord) -> dict[str, Any]:
    line = JsonFormatter().format(record)
    assert "\n" not in line
    assert line.isascii()
    return json.loads(line)


@pytest.mark.parametrize(
    ("chosen", "variable"), [("None", None), ("None", ""), ("None", "text"), ("'text'", "json")]
)
def test_text_has_time_level_logger_and_escaped_message(chosen: str, variable: str | None) -> None:
    lines = logged(f"set_up_logs({chosen})", variable=variable)
    found = [TEXT_LINE.fullmatch(line) for line in lines]
    assert [line.groups() for line in found if line is not None] == [
        ("INFO", "switchfold.part", "told 1"),
        ("INFO", "foreign", "foreign"),
        ("WARNING", "foreign", r"two\nlines \x1b[2J"),
    ]


@pytest.mark.parametrize(("chosen", "variable"), [("'json'", None), ("None", "json")])
def test_json_has_the_same_in_an_object(chosen: str, variable: str | None) -> None:
    lines = [json.loads(line) for line in logged(f"set_up_logs({chosen})", variable=variable)]
    assert [(line["level"], line["logger"], line["message"]) for line in lines] == [
        ("INFO", "switchfold.part", "told 1"),
        ("INFO", "foreign", "foreign"),
        ("WARNING", "foreign", "two\nlines \x1b[2J"),
    ]
    assert all(set(line) == {"time", "level", "logger", "message", "pid"} for line in lines)


def test_json_has_time_in_utc_and_traceback() -> None:
    try:
        raise ValueError("\x1b[2J\n")
    except ValueError:
        record = logging.LogRecord(
            "part", logging.ERROR, __file__, 1, "failed: %s", ("a",), sys.exc_info()
        )
    record.created = 1_000_000_000.25
    line = formatted(record)
    assert line["time"] == "2001-09-09T01:46:40.250000Z"
    assert line["message"] == "failed: a"
    assert line["exception"].startswith("Traceback")
    assert line["exception"].endswith("ValueError: \x1b[2J\n")
    assert line["pid"] == os.getpid()


def test_level_and_filters_are_those_that_were_given() -> None:
    refuse = "lambda record: record.name != 'foreign'"
    assert logged(f"set_up_logs(filters=[{refuse}])")[0].endswith("told 1")
    assert len(logged(f"set_up_logs(filters=[{refuse}])")) == 1
    assert len(logged("set_up_logs(level=logging.WARNING)")) == 1


def test_worker_logs_only_if_the_variable_asks_for_it() -> None:
    unset = logged("set_up_worker_logs()")
    assert unset == [r"two", "lines \x1b[2J"]  # as Python does without any log
    lines = [json.loads(line) for line in logged("set_up_worker_logs()", variable="json")]
    assert [line["message"] for line in lines] == ["told 1", "two\nlines \x1b[2J"]


def test_program_with_a_log_keeps_it() -> None:
    own = "logging.basicConfig(format='own %(message)s', level=logging.INFO); set_up_worker_logs()"
    assert logged(own, variable="json")[0] == "own told 1"


@pytest.mark.parametrize(
    ("chosen", "variable", "where"),
    [
        ("xml", "json", "the log format is 'xml'"),
        (None, "xml", f"environment variable {VARIABLE} is 'xml'"),
    ],
)
def test_unknown_format_is_refused(
    monkeypatch: pytest.MonkeyPatch, chosen: str | None, variable: str, where: str
) -> None:
    monkeypatch.setenv(VARIABLE, variable)
    with pytest.raises(ConfigurationError, match=f"{where}; choose text, json"):
        set_up_logs(chosen)
