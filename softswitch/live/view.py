# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Shows samples: as tables in place on a terminal, otherwise as one line per interval."""

import io
import logging
import os
import select
import signal
import sys
import termios
import threading
import tty
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from .sampler import Sample, Sampler

INTERVAL_S = 1.0
FILE_COLUMNS = 80
"""Width of the tables in a file: a terminal that shows it has as many."""
logger = logging.getLogger(__name__)


class LiveView:
    """Refreshes once a second from a thread, until it is closed; q asks the process to end."""

    def __init__(self, sampler: Sampler, console: Console | None = None) -> None:
        self._sampler = sampler
        self._console = console if console is not None else Console()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="softswitch-live", daemon=True)

    def start(self) -> None:
        """Begin to show."""
        self._thread.start()

    def close(self) -> None:
        """Stop, and restore the terminal."""
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        if not self._console.is_terminal:
            while not self._is_over.wait(INTERVAL_S):
                self._console.print(
                    summary(self._sampler.sample()), highlight=False, soft_wrap=True
                )
            return
        keys = sys.stdin.fileno() if sys.stdin.isatty() else None
        saved = termios.tcgetattr(keys) if keys is not None else None
        try:
            if keys is not None:
                tty.setcbreak(keys)
            first = render(self._sampler.sample())
            with Live(first, console=self._console, screen=True, auto_refresh=False) as live:
                while not self._is_asked_to_end(keys):
                    live.update(render(self._sampler.sample()), refresh=True)
        finally:
            if keys is not None and saved is not None:
                termios.tcsetattr(keys, termios.TCSADRAIN, saved)

    def _is_asked_to_end(self, keys: int | None) -> bool:
        """Wait for one interval; on q, send SIGTERM to the process, whose end closes this view."""
        if keys is None:
            return self._is_over.wait(INTERVAL_S)
        ready, _, _ = select.select([keys], [], [], INTERVAL_S)
        if ready and os.read(keys, 64).lower().startswith(b"q"):
            os.kill(os.getpid(), signal.SIGTERM)
            return True
        return self._is_over.is_set()


class LiveFile:
    """Writes the tables into a file once a second, whole or not at all, until it is closed."""

    def __init__(self, sampler: Sampler, path: Path) -> None:
        """Write the first tables at once; raises OSError when that is not possible."""
        self._sampler = sampler
        self._path = path
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="softswitch-live", daemon=True)
        self._write()

    def start(self) -> None:
        """Begin to renew the file."""
        self._thread.start()

    def close(self) -> None:
        """Stop; the last tables stay."""
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(INTERVAL_S):
            try:
                self._write()
            except OSError as exc:  # such as a full disk: the switch goes on
                logger.warning("cannot write the live view to %s: %s", self._path, exc)
                return

    def _write(self) -> None:
        text = io.StringIO()
        Console(file=text, width=FILE_COLUMNS).print(render(self._sampler.sample(), ends=""))
        partial = self._path.with_name(f"{self._path.name}.partial")
        partial.write_text(text.getvalue(), encoding="utf-8")
        partial.rename(self._path)


def si(value: float) -> str:
    """Return a rate with a prefix: 1.25 M."""
    for prefix, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.2f} {prefix}"
    return f"{value:.0f}"


def summary(sample: Sample) -> str:
    """Return a sample as one line."""
    rx, tx = (sum(getattr(port, name) for port in sample.ports) for name in ("rx_pps", "tx_pps"))
    drops = sum(n for port in sample.ports for name, n in port.drops.items() if "drop" in name)
    hits = sum(table.hits_pps for table in sample.tables)
    return (
        f"{sample.program}: in {si(rx)} packets/s, out {si(tx)} packets/s, {drops} dropped, "
        f"{si(hits)} hits/s, CPU {sample.cpu:.0%}"
    )


def render(sample: Sample, *, ends: str = "   q ends") -> Group:
    """Return a sample as tables; `ends` says how to end the view."""
    head = Text(f"{sample.program}   CPU {sample.cpu:.0%} of a core{ends}", style="bold")
    errors = ", ".join(f"{name} {count}" for name, count in sample.parser_errors.items())
    parts: list[Text | Table] = [head, _ports(sample), _drops(sample)]
    if sample.tables:
        parts.append(_tables(sample))
    if sample.entries:
        parts.append(_entries(sample))
    parts.append(Text(f"parser errors: {errors or 'none'}"))
    return Group(*parts)


def _grid(title: str, left: tuple[str, ...], right: tuple[str, ...]) -> Table:
    """Return a table whose numbers are whole in any terminal of 80 columns: names are folded."""
    grid = Table(title=title, title_justify="left", box=None, expand=False, pad_edge=False)
    for name in left:
        grid.add_column(name, overflow="fold")
    for name in right:
        grid.add_column(name, justify="right", no_wrap=True)
    return grid


def _ports(sample: Sample) -> Table:
    grid = _grid("ports", ("port", ""), ("in pkt/s", "in bit/s", "out pkt/s", "out bit/s"))
    for port in sample.ports:
        rates = (si(value) for value in (port.rx_pps, port.rx_bps, port.tx_pps, port.tx_bps))
        grid.add_row(str(port.number), port.spec, *rates)
    return grid


def _drops(sample: Sample) -> Text:
    """Return a line for each port that has dropped or impaired packets."""
    lines = [
        f"  port {port.number}: "
        + ", ".join(f"{name} {count:,}" for name, count in port.drops.items())
        for port in sample.ports
        if port.drops
    ]
    return Text("\n".join(("drops, impairments (total)", *(lines or ["  none"]))))


def _tables(sample: Sample) -> Table:
    numbers = ("entries", "hits/s", "misses/s", "hits", "misses")
    grid = _grid("tables", ("table",), numbers)
    for table in sample.tables:
        totals = f"{table.hits:,}", f"{table.misses:,}"
        grid.add_row(
            table.name, f"{table.entries:,}", si(table.hits_pps), si(table.misses_pps), *totals
        )
    return grid


def _entries(sample: Sample) -> Table:
    grid = _grid("busiest entries", ("table", "match"), ("pkt/s", "packets", "bytes"))
    for entry in sample.entries:
        totals = f"{entry.packets:,}", f"{entry.octets:,}"
        grid.add_row(entry.table, entry.match or "default", si(entry.pps), *totals)
    return grid
