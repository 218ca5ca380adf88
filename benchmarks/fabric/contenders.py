# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The systems that train: parameter servers with and without the scheduler, and a ring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class FabricContender:
    """One way to train."""

    name: str
    title: str
    is_served: bool = True
    """Whether a parameter server has the model; else workers sum among themselves, in step."""
    is_scheduled: bool = False
    """Whether the controller's scheduler plans when updates travel."""
    learning_rate: float = 0.05
    """Of the perceptron in the runs. Rates around it are tried along the measured times."""


BASELINE: Final = "plain"
SCHEDULED: Final = "scheduled"
CONTENDERS: Final = {
    each.name: each
    for each in (
        FabricContender(name=BASELINE, title="asynchronous PS"),
        FabricContender(name=SCHEDULED, title="scheduled", is_scheduled=True),
        FabricContender(
            name="ring", title="TCP ring, synchronous", is_served=False, learning_rate=0.4
        ),
    )
}
MISSING: Final = {
    "chain": "chain replication is left out: parameter servers here have no replicas",
    "synchronous": "the scheduler's synchronous mode is left out: the controller does not run it",
}
"""What a full comparison would have, and why it is not here."""


def chosen_contenders(text: str) -> list[FabricContender]:
    """Return the contenders that commas separate, the baseline first; "" for all.

    Raises ValueError that names the choices.
    """
    names = [name.strip() for name in text.split(",")] if text else list(CONTENDERS)
    if unknown := [name for name in names if name not in CONTENDERS]:
        raise ValueError(f"no contender {', '.join(unknown)}; choose from {', '.join(CONTENDERS)}")
    return [each for each in CONTENDERS.values() if each.name in {BASELINE, *names}]
