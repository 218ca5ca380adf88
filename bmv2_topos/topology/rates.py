# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Rates as people write them: 100M, 2.5G, 40 Mbit/s."""

from __future__ import annotations

from typing import Final

_UNITS: Final = {"": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000}


def parse_rate(text: str) -> int:
    """Return bits per second; ValueError when a text is no rate."""
    short = text.lower().removesuffix("bit/s").removesuffix("bit").strip()
    unit = short[-1:] if short[-1:] in {"k", "m", "g"} else ""
    try:
        return round(float(short.removesuffix(unit)) * _UNITS[unit])
    except (ValueError, OverflowError) as exc:
        raise ValueError(f"{text!r} is not a rate such as 100M or 2.5G") from exc
