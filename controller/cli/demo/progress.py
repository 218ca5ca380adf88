# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a demo shows: which part of it runs; in training each worker's epoch, loss and accuracy."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from rich import progress as bars
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from ....bmv2_topos.processes.daemons import Variant, program_files
from ....softswitch.compilation.compiler import compile_program
from ....softswitch.compilation.runtime_library import build_runtime
from ...api.operator_api import operator_pb2 as pb
from ...api.operator_client import OperatorClient
from ...errors import ControllerError
from ..output import fitted_table
from .schedule import Schedule

_INTERVAL_S: Final = 0.5
_TAIL_BYTES: Final = 4096
_FIGURES: Final = ("epoch", "loss", "held-out accuracy", "MB to switch", "MB from switch")
_AGGREGATING: Final = frozenset({"absorbed", "completed"})


@contextmanager
def phase(console: Console, text: str) -> Generator[None]:
    """Say what this block does; in a terminal with the time so far. Then say how long it took."""
    began_s = time.monotonic()
    if console.is_terminal:
        columns = (bars.SpinnerColumn(), bars.TextColumn("{task.description} ..."))
        with bars.Progress(
            *columns, bars.TimeElapsedColumn(), console=console, transient=True
        ) as bar:
            bar.add_task(text, total=None)
            yield
    else:
        console.print(f"{text} ...", soft_wrap=True)
        yield
    seconds = time.monotonic() - began_s
    console.print(f"{text}: {seconds:.1f} s", soft_wrap=True, highlight=False)


def compile_once(console: Console, variant: Variant) -> None:
    """Compile the switch's program, unless the cache has it; the switch then starts at once.

    Raises the errors of `switchfold.softswitch.errors`, and TargetMissingError.
    """
    program, _ = program_files(variant)
    with phase(console, f"compiling {program.name} for this machine, once: a cache keeps it"):
        build_runtime()
        compile_program(program)


class Progress:
    """Reads the workers' logs and the switch's counters while training runs."""

    def __init__(
        self,
        schedule: Schedule,
        logs: list[Path],
        operator: OperatorClient,
        before: pb.Switch,
        console: Console,
    ) -> None:
        self._schedule = schedule
        self._logs = logs
        self._operator = operator
        self._before = before
        self._console = console
        self._now = before
        self._note = ""

    def show_until(self, thread: threading.Thread) -> None:
        """Refresh twice a second until the thread ends; without a terminal print per epoch."""
        if not self._console.is_terminal:
            self._print_epochs(thread)
            return
        with Live(self._view(), console=self._console, auto_refresh=False) as live:
            while thread.is_alive():
                thread.join(_INTERVAL_S)
                self._read_switch()
                live.update(self._view(), refresh=True)

    def _print_epochs(self, thread: threading.Thread) -> None:
        shown = 0
        while True:
            is_alive = thread.is_alive()
            state = last_progress(self._logs[0])
            epochs = int(state.get("epochs_done", 0))
            if epochs > shown:
                shown = epochs
                self._read_switch()
                self._console.print(
                    f"epoch {epochs}/{self._schedule.epochs}: loss {state['loss']:.4f}, "
                    f"held-out accuracy {state['accuracy']:.3f}, "
                    f"{self._aggregated():,} packets aggregated"
                )
            if not is_alive:
                return
            thread.join(_INTERVAL_S)

    def _read_switch(self) -> None:
        try:
            self._now = self._operator.show_switch(self._before.name)
            self._note = ""
        except ControllerError as exc:
            self._note = f"counters unavailable: {exc}"

    def _aggregated(self) -> int:
        now = sum(c.packets for c in self._now.counts if c.outcome in _AGGREGATING)
        return now - sum(c.packets for c in self._before.counts if c.outcome in _AGGREGATING)

    def _view(self) -> Group:
        rows: list[tuple[str, ...]] = []
        ports = zip(self._now.ports, self._before.ports, strict=True)
        links = {
            now.host: (now.bytes_in - old.bytes_in, now.bytes_out - old.bytes_out)
            for now, old in ports
        }
        for log in self._logs:
            host = log.stem.rpartition("-")[2]
            state = last_progress(log)
            up, down = links.get(host, (0, 0))
            rows.append(
                (
                    host,
                    f"{state['epoch'] + 1}" if state else "",
                    f"{state['loss']:.4f}" if state else "",
                    f"{state['accuracy']:.3f}" if "accuracy" in state else "",
                    f"{up / 1e6:.1f}",
                    f"{down / 1e6:.1f}",
                )
            )
        title = f"training, {self._schedule.epochs} epochs"
        width = self._console.width
        table = fitted_table(title, ("worker", *_FIGURES), rows, width, right=_FIGURES)
        note = self._note or f"{self._aggregated():,} packets aggregated in the switch"
        return Group(table, Text(note))


def last_progress(log: Path) -> dict[str, Any]:
    """Return the last progress object of a worker's log; empty before the first."""
    try:
        with log.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").split("\n")[:-1]
    except FileNotFoundError:
        return {}
    for line in reversed(lines):
        if line.startswith("{") and line.endswith("}"):
            return json.loads(line)
    return {}
