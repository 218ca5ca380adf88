# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Impairments of a link, from a seed: loss, bursts, scripts, duplication, reordering, rate..."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Final, Literal

PortDirection = Literal["in", "out"]
"""`in`: as the switch receives; `out`: as it transmits."""

MAX_INTERVALS: Final = 32
"""LOSS_INTERVALS_MAX of runtime/ports/impairments.h."""
_MIN_INTERVAL_S: Final = 1e-6
_MAX_DELAY_S: Final = 3600
_UNITS: Final = {"us": 1_000_000, "ms": 1000, "s": 1}
"""How many of each are a second."""
_INTERVAL: Final = re.compile(r"(?P<length>[0-9.]+)(?P<unit>p|us|ms|s):(?P<loss>[0-9.eE+-]+)")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LossInterval:
    """A part of a script: it lasts for a number of packets or for a time."""

    packets: int = 0
    seconds: float = 0.0
    loss: float
    """Probability that a packet of this interval is lost."""

    def __post_init__(self) -> None:
        is_by_time = _MIN_INTERVAL_S <= self.seconds <= _MAX_DELAY_S and not self.packets
        is_by_packets = 0 < self.packets < 1 << 63 and not self.seconds
        if not (is_by_time or is_by_packets):
            raise ValueError(
                "impairments: an interval of the script lasts 1 packet or more, or 1 us to 3600 s"
            )
        _check_probability("loss of an interval of the script", self.loss)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Impairments:
    """Impairments of one direction of a link or port; raises ValueError on impossible settings.

    With the same settings, place and direction, the same sequence of packets has the same fate.
    """

    loss: float = 0.0
    """Probability that a packet is lost."""
    burst_start: float = 0.0
    """Probability, per packet, that a burst begins. Bursts follow Gilbert and Elliott."""
    burst_end: float = 0.0
    """Probability, per packet, that it ends: it lasts for 1 / burst_end packets on average."""
    burst_loss: float = 1.0
    """Probability that a packet of a burst is lost; it replaces `loss` there."""
    script: tuple[LossInterval, ...] = ()
    """Intervals from the first packet on; while they last, they replace `loss` and bursts."""
    script_repeats: bool = False
    """Whether the script begins again after its end."""
    duplication: float = 0.0
    """Probability that a packet arrives twice; each copy has its own corruption and reordering."""
    corruption: float = 0.0
    """Probability that one random bit of a packet is flipped."""
    reordering: float = 0.0
    """Probability that a packet is held back while later ones pass."""
    reordering_delay_s: float = 0.0
    """A held packet goes on after this time (0: no time limit)."""
    reordering_packets: int = 0
    """A held packet goes on once this many later packets have arrived (0: no such limit)."""
    delay_s: float = 0.0
    """Every packet is delayed by this time. Synchronous `process` ignores it."""
    rate_bits_per_s: float = 0.0
    """Frames leave at this rate (0: unlimited). Synchronous `process` ignores it."""
    queue_packets: int = 1000
    """Packets of one priority that may wait for rate and delay; more are dropped as `overrun`."""
    seed: int = 1
    """Seed of the random numbers, below 2**64."""

    def __post_init__(self) -> None:
        for name in (
            *("loss", "burst_start", "burst_end", "burst_loss"),
            *("duplication", "corruption", "reordering"),
        ):
            _check_probability(name, getattr(self, name))
        for name in ("reordering_delay_s", "delay_s", "rate_bits_per_s", "reordering_packets"):
            if not 0 <= getattr(self, name) < 1e12:
                raise ValueError(
                    f"impairments: {name} is {getattr(self, name):g}; it must be 0 or more (and"
                    " finite)"
                )
        if self.delay_s > _MAX_DELAY_S or self.reordering_delay_s > _MAX_DELAY_S:
            raise ValueError("impairments: delays are at most 3600 s")
        self._check_bursts()
        if self.reordering > 0 and not (self.reordering_delay_s or self.reordering_packets):
            raise ValueError(
                "impairments: reordering needs reordering_delay_s or reordering_packets, "
                "otherwise a held packet would never go on"
            )
        if not 1 <= self.queue_packets < 1 << 31:
            raise ValueError("impairments: queue_packets must be 1 to 2**31 - 1")
        if not 0 <= self.seed < 1 << 64:
            raise ValueError("impairments: seed must be 0 to 2**64 - 1")

    def _check_bursts(self) -> None:
        if bool(self.burst_start) != bool(self.burst_end):
            raise ValueError(
                "impairments: bursts need burst_start and burst_end above 0; for loss without end"
                " set loss"
            )
        if len(self.script) > MAX_INTERVALS:
            raise ValueError(
                f"impairments: the script has {len(self.script)} intervals; {MAX_INTERVALS} is the"
                " most"
            )
        if self.script_repeats and not self.script:
            raise ValueError("impairments: a script without intervals cannot repeat")

    @property
    def mean_loss(self) -> float:
        """The share of packets that loss and bursts take in the long run, without the script."""
        if not self.burst_start:
            return self.loss
        in_burst = self.burst_start / (self.burst_start + self.burst_end)
        return (1 - in_burst) * self.loss + in_burst * self.burst_loss

    def describe(self) -> str:
        """Return what differs from a link without impairments, as `parse_settings` reads it."""
        parts: list[str] = []
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value == field.default or field.name in {"script", "script_repeats"}:
                continue
            parts.append(f"{field.name}={value!r}")
        if self.script:
            intervals = [_interval_text(interval) for interval in self.script]
            intervals += ["repeat"] if self.script_repeats else []
            parts.append(f"script={'/'.join(intervals)}")
        return ",".join(parts) or "loss=0"


def parse_settings(text: str) -> Impairments:
    """Read `NAME=VALUE,...`, the form of the command lines; ValueError says what is wrong.

    A script is `LENGTH:LOSS/LENGTH:LOSS/...`, with lengths such as 100p (packets), 50ms and 2s.
    `/repeat` at its end lets it begin again.

    Example: `loss=0.01,script=950ms:0/50ms:0.6/repeat,seed=7`.
    """
    readers: dict[str, Callable[[str], float]] = {
        field.name: int if field.type == "int" else float
        for field in dataclasses.fields(Impairments)
        if field.type in {"int", "float"}
    }
    values: dict[str, object] = {}
    for item in text.split(","):
        name, equals, value = item.partition("=")
        if name in values:
            raise ValueError(f"impairments {text!r}: {name} is there twice")
        if equals and name == "script":
            values["script"], values["script_repeats"] = _parse_script(value)
            continue
        if name not in readers:
            known = ", ".join([*readers, "script"])
            raise ValueError(f"impairments {text!r}: no {name!r}; there are {known}")
        try:
            values[name] = readers[name](value)
        except ValueError as exc:
            raise ValueError(f"impairments {text!r}: {name} is not a number: {value!r}") from exc
    return Impairments(**values)  # pyright: ignore[reportArgumentType]


def parse_impairments(text: str) -> tuple[int, PortDirection, Impairments]:
    """Read `PORT:in|out:NAME=VALUE,...`, the form of the switch's command line.

    Raises ValueError with what is wrong.

    Example: `1:in:loss=0.05,reordering=0.05,reordering_delay_s=0.02,seed=7`.
    """
    port, _, rest = text.partition(":")
    direction, _, settings = rest.partition(":")
    if not port.isdigit() or direction not in ("in", "out") or not settings:
        raise ValueError(f"impairments {text!r}: expected PORT:in|out:NAME=VALUE,NAME=VALUE...")
    return int(port), "in" if direction == "in" else "out", parse_settings(settings)


def _parse_script(text: str) -> tuple[tuple[LossInterval, ...], bool]:
    parts = text.split("/")
    repeats = parts[-1] == "repeat"
    intervals: list[LossInterval] = []
    for part in parts[: -1 if repeats else None]:
        found = _INTERVAL.fullmatch(part)
        try:
            if found is None:
                raise ValueError
            loss = float(found["loss"])
            if found["unit"] == "p":
                length = {"packets": int(found["length"])}
            else:
                length = {"seconds": float(found["length"]) / _UNITS[found["unit"]]}
        except ValueError as exc:
            raise ValueError(
                f"impairments: {part!r} in script={text} is not LENGTH:LOSS; a length is 100p"
                " (packets), 50ms, 20us or 2s"
            ) from exc
        intervals.append(LossInterval(loss=loss, **length))  # pyright: ignore[reportArgumentType]
    return tuple(intervals), repeats


def _interval_text(interval: LossInterval) -> str:
    if interval.packets:
        return f"{interval.packets}p:{interval.loss!r}"
    return f"{f'{interval.seconds:.9f}'.rstrip('0').rstrip('.')}s:{interval.loss!r}"


def _check_probability(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"impairments: {name} is {value:g}; it must be a probability, 0 to 1")
