# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Conditions of a run: what the workers' links lose, in which direction, and beside which traffic.

A condition is written as WHAT[:up|:down][:traffic]. WHAT is a share of packets, such as 0.01, or
bursts such as burst75: a chain of Gilbert and Elliott, in whose bad state 75 % of packets are lost;
or pulses such as pulse75: 75 % are lost during 50 ms of every 500. A burst lasts for a number of
packets, so it lasts long for a sender that falls silent; a pulse lasts for a time.
`up` is what workers send, `down` is what their switches send to them; without either, both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

BURST_START: Final = 0.001
"""A burst begins after 1,000 packets on average."""
BURST_END: Final = 0.02
"""It lasts for 50 packets on average: 12 ms of a full link at 50 Mbit/s."""
_PULSE: Final = "script=450ms:0/50ms:{share:g}/repeat"
_LOSS: Final = "loss={share:g}"
_BURST: Final = f"burst_start={BURST_START},burst_end={BURST_END},burst_loss={{share:g}}"
_KINDS: Final = {"burst": _BURST, "pulse": _PULSE}
_KIND: Final = re.compile(r"(burst|pulse)([0-9]{1,3})")
_SIDES: Final = ("up", "down")
_TRAFFIC: Final = "traffic"


@dataclass(frozen=True, kw_only=True)
class LossCondition:
    """What the links of workers do to packets."""

    name: str
    settings: str
    """Of a direction that loses packets, as `switchfold testbed impair` takes them."""
    has_up: bool
    """Whether what workers send is lost."""
    has_down: bool
    """Whether what is sent to workers is lost."""
    has_traffic: bool
    """Whether other hosts send by TCP over the same uplinks meanwhile."""

    def settings_of(self, *, is_up: bool, seed: int) -> str:
        """Return the settings of one direction. Others get the same path without loss."""
        is_lossy = self.has_up if is_up else self.has_down
        return f"{self.settings},seed={seed}" if is_lossy else LOSSLESS.settings

    @property
    def is_lossless(self) -> bool:
        """Whether nothing is lost or else sent: the condition that others are compared with."""
        return self.settings == LOSSLESS.settings and not self.has_traffic


LOSSLESS: Final = LossCondition(
    name="0", settings="loss=0", has_up=False, has_down=False, has_traffic=False
)


def parse_condition(text: str) -> LossCondition:
    """Read a condition; ValueError says what is wrong with it."""
    what, *marks = text.split(":")
    unknown = [mark for mark in marks if mark not in (*_SIDES, _TRAFFIC)]
    if unknown or len(set(marks)) != len(marks) or set(_SIDES) <= set(marks):
        raise ValueError(
            f"condition {text!r}: write WHAT, then :up or :down for one direction, then :traffic"
        )
    kind = _KIND.fullmatch(what)
    try:
        share = int(kind[2]) / 100 if kind else float(what)
    except ValueError as exc:
        raise ValueError(
            f"condition {text!r}: {what!r} is neither a share of packets such as 0.01 nor bursts"
            " such as burst75 or pulse75"
        ) from exc
    if not 0 <= share < 1:
        raise ValueError(f"condition {text!r}: the share of lost packets is 0 or above, below 1")
    settings = (_KINDS[kind[1]] if kind else _LOSS).format(share=share)
    return LossCondition(
        name=text,
        settings=settings if share else LOSSLESS.settings,
        has_up="down" not in marks,
        has_down="up" not in marks,
        has_traffic=_TRAFFIC in marks,
    )


def parse_conditions(text: str) -> list[LossCondition]:
    """Read conditions that commas separate, the lossless one first; ValueError."""
    named = [parse_condition(each.strip()) for each in text.split(",")]
    names = [each.name for each in named]
    if len(set(names)) != len(names):
        raise ValueError(f"conditions {text!r}: one is there twice")
    return [LOSSLESS, *(each for each in named if not each.is_lossless)]
