# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Traces of changes of links' rates, which runs that are to be compared follow alike."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, cast

from ..errors import LinkRateError, TestbedError
from ..topology.topology import Topology
from .link_rates import LEAST_RATE_BITS_PER_S as LEAST
from .link_rates import LinkRates


@dataclass(frozen=True, kw_only=True)
class LinkRateChange:
    """A rate that a link gets at a time of a run."""

    time_s: float
    """Since the run began."""
    link: str
    """Its name, such as h1-s1."""
    rate_bits_per_s: int
    """Of both directions, as in a topology."""
    sender: str | None = None
    """Only of what this end of the link sends."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.time_s) and self.time_s >= 0):
            raise LinkRateError(f"a change at {self.time_s} s; give a time from 0 on")
        if self.rate_bits_per_s < LEAST:
            raise LinkRateError(
                f"{self.rate_bits_per_s} bit/s for {self.link}; the shapers need at least {LEAST}"
            )


def write_trace(path: Path, changes: Iterable[LinkRateChange]) -> None:
    """Write changes, one JSON object a line, in the order of their times."""
    ordered = sorted(changes, key=lambda change: change.time_s)
    lines = [
        json.dumps({name: value for name, value in asdict(change).items() if value is not None})
        for change in ordered
    ]
    path.write_text("".join(f"{line}\n" for line in lines))


def read_trace(path: Path, topology: Topology) -> list[LinkRateChange]:
    """Return the changes of a file; LinkRateError if it is no trace for the links of a topology."""
    known = {field.name for field in fields(LinkRateChange)}
    changes: list[LinkRateChange] = []
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as exc:
        raise LinkRateError(f"cannot read the trace {path}: {exc}") from exc
    for number, line in enumerate(lines, 1):
        where = f"{path}, line {number}"
        try:
            content: Any = json.loads(line)
            if not isinstance(content, dict) or not content.keys() <= known:
                raise LinkRateError(f"give an object with {', '.join(sorted(known))}")
            values = cast("dict[str, Any]", content)
            if type(values.get("rate_bits_per_s", 0)) is not int:
                raise LinkRateError("rate_bits_per_s is no whole number")
            change = LinkRateChange(**values)
            ends = topology.link_named(change.link).ends
        except (ValueError, TypeError, LinkRateError) as exc:
            raise LinkRateError(f"{where} is no change of a link's rate: {exc}") from exc
        if change.sender not in {None, *ends}:
            raise LinkRateError(f"{where}: {change.sender} is no end of the link {change.link}")
        if changes and change.time_s < changes[-1].time_s:
            raise LinkRateError(f"{where}: {change.time_s} s is before the line above; sort them")
        changes.append(change)
    return changes


def follow(
    rates: LinkRates,
    changes: Sequence[LinkRateChange],
    *,
    on_changed: Callable[[LinkRateChange], None] = lambda _: None,
    stop: threading.Event | None = None,
) -> None:
    """Make each change at its time, counted from now; return after the last one, or at `stop`.

    The last rates stay. Raises what `LinkRates.set` raises.
    """
    stop = stop or threading.Event()
    began_s = time.monotonic()
    for change in changes:
        if stop.wait(max(0.0, began_s + change.time_s - time.monotonic())):
            return
        link = rates.record.topology.link_named(change.link)
        rates.set(link, change.rate_bits_per_s, sender=change.sender)
        on_changed(change)


@contextmanager
def changing_rates(rates: LinkRates, changes: Sequence[LinkRateChange]) -> Generator[None]:
    """Follow a trace beside the body, and restore all links after it.

    An error that ended the trace is raised at the end, unless the body raises.
    """
    stop = threading.Event()
    errors: list[TestbedError | ValueError] = []

    def run() -> None:
        try:
            follow(rates, changes, stop=stop)
        except (TestbedError, ValueError) as exc:
            errors.append(exc)

    thread = threading.Thread(target=run, name="link-rates")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        rates.restore()
    if errors:
        raise errors[0]
