# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a long command: says what it does and for how long, keeps its output in a file.

    python told.py TEXT LOG COMMAND...

In a terminal one line is renewed, with the step that the command is at. Elsewhere there is a line
at the beginning, one each 20 s, and one at the end. Where the command fails, the end of its output
follows, with the file that has all of it; the exit code is the command's.
"""

from __future__ import annotations

import queue
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Final

TICK_S: Final = 1.0
LINE_EACH_S: Final = 20.0
LAST_LINES: Final = 25
"""Of the output, where the command fails."""
STEPS: Final = (
    (re.compile(r"Collecting (?P<what>[\w.-]+)"), "looking up {what}"),
    (
        re.compile(r"Downloading (?P<what>[\w.]+?)-\d\S* \((?P<size>[^)]+)\)"),
        "downloading {what} ({size})",
    ),
    (re.compile(r"Building (?:editable|wheel) for (?P<what>[\w.-]+)"), "building {what}"),
    (re.compile(r"Installing collected packages: (?P<what>.+)"), "unpacking {number} packages"),
)
"""What lines of pip's output mean."""


def step_of(line: str) -> str | None:
    """Return what a line of the output says that is done now; None: nothing of the kind."""
    for pattern, text in STEPS:
        found = pattern.search(line)
        if found is not None:
            number = len(found["what"].split(", "))
            return text.format(number=number, **found.groupdict())
    return None


class Teller:
    """Shows on a stream what is being done."""

    def __init__(self, text: str, stream: IO[str]) -> None:
        self._text = text
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._began_s = time.monotonic()
        self._said_s = self._began_s
        self.step = ""
        if not self._is_terminal:
            self._say(f"{text} ...\n")

    def tick(self) -> None:
        """Renew the line, or add one if the last one is old."""
        now_s = time.monotonic()
        if self._is_terminal:
            line = f"{self._text} ... {self._seconds} {self.step}"
            self._say("\r\x1b[K" + line[: shutil.get_terminal_size().columns - 1])
        elif now_s - self._said_s >= LINE_EACH_S:
            self._said_s = now_s
            self._say(f"  {self._seconds}: {self.step or 'still at it'}\n")

    def end(self, outcome: str) -> None:
        """Say how it ended."""
        start = "\r\x1b[K" if self._is_terminal else ""
        self._say(f"{start}{self._text}: {outcome} after {self._seconds}\n")

    @property
    def _seconds(self) -> str:
        return f"{time.monotonic() - self._began_s:.0f} s"

    def _say(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def run(text: str, log: Path, command: list[str], stream: IO[str]) -> int:
    """Run a command; return its exit code."""
    log.parent.mkdir(parents=True, exist_ok=True)
    teller = Teller(text, stream)
    lines: queue.Queue[str | None] = queue.Queue()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    with process, log.open("w", encoding="utf-8") as kept:
        assert process.stdout is not None
        reader = threading.Thread(target=_read, args=(process.stdout, lines))
        reader.start()
        while (line := _next(lines)) is not None:
            if line:
                kept.write(line)
                kept.flush()
                teller.step = step_of(line) or teller.step
            teller.tick()
        reader.join()
    code = process.returncode
    teller.end("done" if code == 0 else f"failed (exit code {code})")
    if code != 0:
        last = log.read_text("utf-8").splitlines()[-LAST_LINES:]
        stream.write("".join(f"  {each}\n" for each in last))
        stream.write(f"all of its output: {log}\n")
    return code


def _next(lines: queue.Queue[str | None]) -> str | None:
    """Return the next line, "" when a second has passed without one, None at the end."""
    try:
        return lines.get(timeout=TICK_S)
    except queue.Empty:
        return ""


def _read(source: Iterable[str], lines: queue.Queue[str | None]) -> None:
    for line in source:
        lines.put(line)
    lines.put(None)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], Path(sys.argv[2]), sys.argv[3:], sys.stderr))
