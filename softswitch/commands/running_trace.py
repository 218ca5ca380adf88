# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The trace of a running switch: writes steps to a file while packets flow."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from ..compilation.compiler import TracedProgram
from ..switch.switch import Switch
from ..trace import Narrator, Recorder, write_json, write_text
from .run_options import RunOptions

INTERVAL_S = 0.1
logger = logging.getLogger(__name__)
EntryText = Callable[[int, int], "str | None"]


class RunningTrace:
    """Follows a switch that runs traced builds, also when its program changes."""

    def __init__(
        self,
        switch: Switch,
        target: str,
        options: RunOptions,
        entry_text: EntryText,
    ) -> None:
        self._switch = switch
        self._options = options
        self._entry_text = entry_text
        self._is_json = target.endswith((".json", ".jsonl"))
        self._out: TextIO = (
            sys.stdout if target == "-" else Path(target).open("w", encoding="utf-8")  # noqa: SIM115 - closed by close()
        )
        self._of: TracedProgram | None = None
        self._recorder: Recorder | None = None
        self._narrator: Narrator | None = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="softswitch-trace", daemon=True)

    def start(self) -> None:
        """Begin to record and to write."""
        self._follow()
        self._thread.start()

    def close(self) -> None:
        """Write the remaining steps, and stop."""
        self._is_over.set()
        self._thread.join()
        if self._recorder is not None:
            self._recorder.stop()
        if self._out is not sys.stdout:
            self._out.close()

    def _follow(self) -> None:
        program = self._switch.program
        if program is self._of or not isinstance(program, TracedProgram):
            return
        self._of = program
        self._recorder = Recorder(program)
        self._narrator = Narrator(
            program,
            self._recorder.layout,
            json_path=self._options.program,
            entry_text=self._entry_text,
            drop_port=self._options.drop_port,
        )
        self._recorder.start(port=self._options.trace_port, packets=self._options.trace_count)

    def _run(self) -> None:
        while not self._is_over.wait(INTERVAL_S):
            self._follow()
            self._write()
        self._write()

    def _write(self) -> None:
        if self._recorder is None or self._narrator is None:
            return
        lost = self._recorder.lost
        steps = [*self._narrator.tell(self._recorder.take())]
        # No record marks the end of a packet: it has ended if an interval brought no records.
        if not steps or self._is_over.is_set():
            steps += self._narrator.finish()
        if self._is_json:
            write_json(steps, self._out)
        else:
            write_text(steps, self._out, is_coloured=self._out.isatty())
        if self._recorder.lost > lost:
            logger.warning("%d steps of the trace were lost", self._recorder.lost - lost)
