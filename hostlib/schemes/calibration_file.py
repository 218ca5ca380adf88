# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The file of `switchfold calibrate`: what this machine can carry, as measured, with the spread.

JSON: {"format": "switchfold calibration", "version": 1, "machine": {...}, "links": ...,
"figures": {NAME: {"median": ..., "least": ..., "most": ..., "count": ...}}}. The names of figures
are those of `FIGURES`.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self, cast

from ..errors import CalibrationError
from .hardware import HostProfile, SwitchProfile

FORMAT: Final = "switchfold calibration"
VERSION: Final = 1
FIGURES: Final[Mapping[str, str]] = {
    "datagram_s": "a datagram sent and received, one core",
    "quantized_value_s": "a value quantised and dequantised, one core",
    "worker_chunk_s": "a chunk of a sum at a worker, sent and received",
    "switch_packet_s": "a packet of one worker in softswitch",
    "switch_round_s": "a round of one chunk, from worker to worker",
    "shared_chunk_s": "a chunk at worker and switch, all of the shared cores' time",
    "tcp_byte_s": "a byte of a ring, sent by TCP and received",
    "shared_tcp_byte_s": "a byte of a ring, all of the shared cores' time",
    "ring_step_s": "a step of a ring with few bytes",
}
"""Meaning of each figure in seconds, by name; the first two explain the third."""
_HOSTS: Final = ("worker_chunk_s", "tcp_byte_s", "ring_step_s")
_SWITCH: Final = ("switch_packet_s", "switch_round_s")
_SHARED: Final = ("shared_chunk_s", "shared_tcp_byte_s")
_WAITS: Final = ("ring_step_s", "switch_round_s")
_MAKE: Final = "`switchfold calibrate` writes such files"


@dataclass(frozen=True, kw_only=True)
class MeasuredFigure:
    """A figure in seconds, and its spread over the repeats."""

    median: float
    least: float
    most: float
    count: int

    def __post_init__(self) -> None:
        if not (0 <= self.least <= self.median <= self.most < math.inf and self.count >= 1):
            raise CalibrationError(f"{self} is no figure: 0 <= least <= median <= most")

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Self:
        """Return the figure of repeated measurements, at least one."""
        return cls(
            median=statistics.median(seconds),
            least=min(seconds),
            most=max(seconds),
            count=len(seconds),
        )


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Figures of one machine."""

    machine: Mapping[str, Any]
    """Facts for people: processor, cores, kernel, time, versions."""
    links: str
    """What the measurement went over: "veth", "veth with super-frames" or "loopback"."""
    figures: Mapping[str, MeasuredFigure]
    """By the names of FIGURES; those of the switch are missing if there was none, and those
    of shared cores if there were more cores than workers."""

    @property
    def _source(self) -> str:
        where = f"{self.machine.get('cpu', 'a processor')}, {self.machine.get('cores', '?')} cores"
        return f"measured {self.machine.get('time', 'once')} over {self.links}: {where}"

    def _counted(self, name: str) -> float:
        """Return the least time of a wait, to which other work only adds, else the median."""
        figure = self.figures[name]
        return figure.least if name in _WAITS else figure.median

    @property
    def hosts(self) -> HostProfile:
        """The hosts that were measured."""
        names = (*_HOSTS, *({_SHARED[1]} & set(self.figures)))
        found = {name: self._counted(name) for name in names}
        return HostProfile(name="calibrated", source=self._source, **found)

    @property
    def switch(self) -> SwitchProfile | None:
        """The softswitch that was measured; None if there was none."""
        if any(name not in self.figures for name in _SWITCH):
            return None
        names = (*_SWITCH, *({_SHARED[0]} & set(self.figures)))
        found = {name: self._counted(name) for name in names}
        return SwitchProfile(name="calibrated softswitch", source=self._source, **found)

    def as_dict(self) -> dict[str, Any]:
        """Return the content of the file."""
        figures = {name: asdict(figure) for name, figure in self.figures.items()}
        whole = {"machine": dict(self.machine), "links": self.links, "figures": figures}
        return {"format": FORMAT, "version": VERSION, **whole}

    @classmethod
    def from_dict(cls, read: object, where: str) -> Self:
        """Return what a file's content describes; CalibrationError says what is wrong with it."""
        content = cast("dict[str, Any]", read) if isinstance(read, dict) else {}
        if content.get("format") != FORMAT:
            raise CalibrationError(f"{where} is no calibration; {_MAKE}")
        if content.get("version") != VERSION:
            raise CalibrationError(
                f"{where} has version {content.get('version')!r} of the file of a calibration; this"
                f" release reads version {VERSION}: run `switchfold calibrate` again"
            )
        machine, links, figures = (content.get(key) for key in ("machine", "links", "figures"))
        if not (isinstance(machine, dict) and isinstance(links, str) and isinstance(figures, dict)):
            raise CalibrationError(f"{where} has no machine, links or figures; {_MAKE}")
        found = cast("dict[str, object]", figures)
        missing = sorted(set(_HOSTS) - set(found))
        if missing:
            raise CalibrationError(f"{where} has no figure {missing[0]}; {_MAKE}")
        return cls(
            machine=cast("dict[str, Any]", machine),
            links=links,
            figures={name: _figure(each, f"{where}: {name}") for name, each in found.items()},
        )


def _figure(read: object, where: str) -> MeasuredFigure:
    fields = cast("dict[str, Any]", read) if isinstance(read, dict) else {}
    names = ("median", "least", "most", "count")
    numbers = [fields.get(name) for name in names]
    if any(isinstance(each, bool) or not isinstance(each, int | float) for each in numbers):
        raise CalibrationError(f"{where} is {read!r}, and not {', '.join(names)}; {_MAKE}")
    try:
        return MeasuredFigure(**{name: fields[name] for name in names})
    except CalibrationError as exc:
        raise CalibrationError(f"{where}: {exc}; {_MAKE}") from exc


def load_calibration(path: Path) -> Calibration:
    """Return a file's calibration; CalibrationError names the file and what is wrong."""
    try:
        read: object = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as exc:
        raise CalibrationError(f"{path} is missing; {_MAKE}") from exc
    except (OSError, ValueError, RecursionError) as exc:
        raise CalibrationError(f"cannot read the calibration in {path}: {exc}; {_MAKE}") from exc
    return Calibration.from_dict(read, str(path))


def store_calibration(path: Path, calibration: Calibration) -> None:
    """Write a calibration; the file is as before until it is whole. Raises CalibrationError."""
    text = json.dumps(calibration.as_dict(), indent=1, allow_nan=False) + "\n"
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, "utf-8")
        part.replace(path)
    except OSError as exc:
        with contextlib.suppress(OSError):
            part.unlink()
        raise CalibrationError(f"cannot write {path}: {exc}; give another --out") from exc
