# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Options that all ranks must have alike: what each has, in texts, and where they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..errors import ConfigurationError
from ..loss_tolerance import LossTolerance
from ..summation.hadamard import RandomizedHadamard

BY_PARAMETER = "by parameter"


def require_equal_replicas(*tolerances: object) -> None:
    """Raise ConfigurationError if a tolerance lets workers keep old values."""
    for tolerance in tolerances:
        if isinstance(tolerance, LossTolerance) and tolerance.stale:
            raise ConfigurationError(
                f"stale is {tolerance.stale}: ranks that do without results have other gradients"
                " than the others, and their models would drift apart; train with loss=..., or use"
                " Session.allreduce(previous=...) for values that may be stale"
            )


def tolerance_text(tolerance: object) -> str:
    """Return the text of what sums may lack; tolerances by parameter are compared by bucket."""
    if tolerance is None:
        return "none"
    if not isinstance(tolerance, LossTolerance):
        return BY_PARAMETER
    return f"loss {tolerance.loss!r} with worker_floor {tolerance.least_of_worker!r}"


def dispersal_text(dispersal: RandomizedHadamard | None) -> str:
    """Return the text of how gradients are spread over packets."""
    if dispersal is None:
        return "none"
    return f"seed {dispersal.seed} with log2_spread {dispersal.log2_spread}"


def differences(said: Sequence[Mapping[str, str]]) -> str:
    """Return which options differ, and which ranks have which; empty if all are alike.

    `said`: the options of each rank, by name.
    """
    found: list[str] = []
    for name in dict.fromkeys(name for options in said for name in options):
        ranks_by_text: dict[str, list[int]] = {}
        for rank, options in enumerate(said):
            ranks_by_text.setdefault(options.get(name, "none"), []).append(rank)
        if len(ranks_by_text) > 1:
            texts = (f"{text} on ranks {ranks}" for text, ranks in ranks_by_text.items())
            found.append(f"{name} is {', '.join(texts)}")
    return "; ".join(found)
