# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The systems that train: by parameter servers or sums among workers, scheduled or not."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from switchfold.hostlib.parameter_server.transfers import TransferOptions


@dataclass(frozen=True, kw_only=True)
class FabricContender:
    """One way to train."""

    name: str
    title: str
    is_served: bool = True
    """Whether a parameter server has the model; else workers sum among themselves, in step."""
    is_scheduled: bool = False
    """Whether the controller's scheduler plans when updates travel, or sums among workers."""
    is_stepwise: bool = False
    """Whether workers are in step: each version of the model has one more update of all of them."""
    is_grouping: bool = False
    """Whether idle workers add up updates of others."""
    is_switched: bool = False
    """Whether the server's switch adds up updates that wait at the same time."""
    is_relaying: bool = False
    """Whether workers send models on to others."""
    is_chained: bool = False
    """Whether the server passes each update on to a replica before it applies it."""
    learning_rate: float = 0.05
    """Of the perceptron in the runs. Rates around it are tried along the measured times."""

    @property
    def missing(self) -> str:
        """Why this installation cannot run it; "": it can."""
        if self.is_grouping and "aggregate" not in {
            field.name for field in fields(TransferOptions)
        }:
            return f"{self.title}: left out, workers here add up no updates of others"
        return ""


ALLREDUCE: Final = "allreduce"
BASELINE: Final = "plain"
CHAIN: Final = "chain"
RING: Final = "ring"
SYNCHRONOUS: Final = "synchronous"
SYNCHRONOUS_PS: Final = "plain-synchronous"
SCHEDULED: Final = "scheduled"
CONTENDERS: Final = {
    each.name: each
    for each in (
        FabricContender(name=BASELINE, title="asynchronous PS"),
        FabricContender(name=CHAIN, title="PS, chain replication", is_chained=True),
        FabricContender(name=SCHEDULED, title="scheduled", is_scheduled=True),
        FabricContender(
            name="groups", title="scheduled, groups", is_scheduled=True, is_grouping=True
        ),
        FabricContender(
            name="switches", title="scheduled, switch adds", is_scheduled=True, is_switched=True
        ),
        FabricContender(
            name="switches-relays",
            title="scheduled, switch adds, relays",
            is_scheduled=True,
            is_switched=True,
            is_relaying=True,
        ),
        FabricContender(
            name=SYNCHRONOUS_PS, title="synchronous PS", is_stepwise=True, learning_rate=0.4
        ),
        FabricContender(
            name=SYNCHRONOUS,
            title="scheduled, synchronous",
            is_scheduled=True,
            is_stepwise=True,
            learning_rate=0.4,
        ),
        FabricContender(
            name=RING,
            title="TCP ring, synchronous",
            is_served=False,
            is_stepwise=True,
            learning_rate=0.4,
        ),
        FabricContender(
            name=ALLREDUCE,
            title="scheduled allreduce, synchronous",
            is_served=False,
            is_scheduled=True,
            is_stepwise=True,
            learning_rate=0.4,
        ),
    )
}


def chosen_contenders(text: str) -> list[FabricContender]:
    """Return the contenders that commas separate, the baseline first; "" for all that can run.

    Raises ValueError that names the choices.
    """
    names = [name.strip() for name in text.split(",")] if text else list(CONTENDERS)
    if unknown := [name for name in names if name not in CONTENDERS]:
        raise ValueError(f"no contender {', '.join(unknown)}; choose from {', '.join(CONTENDERS)}")
    chosen = [each for each in CONTENDERS.values() if each.name in {BASELINE, *names}]
    if text and (reasons := [each.missing for each in chosen if each.missing]):
        raise ValueError("; ".join(reasons))
    return [each for each in chosen if not each.missing]
