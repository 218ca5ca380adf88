# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Records of a training run, per worker and as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ....hostlib.slots.wire import Outcome
from .reference import ReferenceRun
from .schedule import Schedule


@dataclass(frozen=True, kw_only=True)
class WorkerRecord:
    """One worker's run."""

    worker_id: int
    parameters: NDArray[np.float32]
    """Final parameters, (NUM_PARAMETERS,)."""
    losses: NDArray[np.float64]
    """Loss on the worker's share of every batch, (steps,)."""
    allreduce_s: NDArray[np.float64]
    """Time of every allreduce, (steps,)."""
    accuracies: NDArray[np.float64]
    """On the held-out digits after every epoch, (epochs,)."""
    training_s: float
    packets_sent: int
    """Switchfold packets, retransmissions and probes included."""
    packets_received: int
    """Switchfold packets that reached the session, refused ones included."""

    def write(self, path: Path) -> None:
        """Write the record as an .npz file."""
        np.savez(
            path,
            worker_id=self.worker_id,
            parameters=self.parameters,
            losses=self.losses,
            allreduce_s=self.allreduce_s,
            accuracies=self.accuracies,
            training_s=self.training_s,
            packets_sent=self.packets_sent,
            packets_received=self.packets_received,
        )

    @classmethod
    def read(cls, path: Path) -> WorkerRecord:
        """Read what `write` wrote."""
        with np.load(path) as raw:
            return cls(
                worker_id=int(raw["worker_id"]),
                parameters=raw["parameters"],
                losses=raw["losses"],
                allreduce_s=raw["allreduce_s"],
                accuracies=raw["accuracies"],
                training_s=float(raw["training_s"]),
                packets_sent=int(raw["packets_sent"]),
                packets_received=int(raw["packets_received"]),
            )


@dataclass(frozen=True, kw_only=True)
class WorkerLinkBytes:
    """Bytes of one worker's link while the job ran, counted by the switch."""

    host: str
    to_switch: int
    from_switch: int


@dataclass(frozen=True, kw_only=True)
class SwitchRecord:
    """The switch's own counters over the run: differences of the readings after and before."""

    outcomes: dict[Outcome, int]
    """Switchfold packets by what became of them."""
    links: list[WorkerLinkBytes]
    packets_in: int
    """Frames of all workers' ports."""
    packets_out: int


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """A whole run, ready to be judged and shown."""

    schedule: Schedule
    workers: list[WorkerRecord]
    reference: ReferenceRun
    switch: SwitchRecord
    mode: str
    """How the workers are attached: veth or udp."""
    values_per_packet: int
    rate_bits_per_s: float | None
    """Rate of every link in each direction; None if links are unshaped."""

    @property
    def losses(self) -> NDArray[np.float64]:
        """Mean loss over the workers of every step, (steps,)."""
        return np.mean([worker.losses for worker in self.workers], axis=0)

    @property
    def training_s(self) -> float:
        """Time of the slowest worker."""
        return max(worker.training_s for worker in self.workers)
