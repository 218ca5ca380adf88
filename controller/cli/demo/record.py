# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Records of a training run, per worker and as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ....hostlib.hosts import Algorithm
from ....hostlib.slots.wire import Outcome
from ...api.operator_api import operator_pb2 as pb
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
    packets_under_way: int
    """Packets of the last sum that were sent again: they, or their answers, may come later."""

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
            packets_under_way=self.packets_under_way,
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
                packets_under_way=int(raw["packets_under_way"]),
            )


@dataclass(frozen=True, kw_only=True)
class WorkerLinkBytes:
    """Bytes of one worker's link while the job ran, counted by the switch."""

    host: str
    to_switch: int
    from_switch: int


def link_bytes(before: pb.Switch, after: pb.Switch) -> list[WorkerLinkBytes]:
    """Return what a switch's ports counted between two readings, in the order of ports."""
    old = {port.port: port for port in before.ports}
    return [
        WorkerLinkBytes(
            host=port.host,
            to_switch=port.bytes_in - old[port.port].bytes_in,
            from_switch=port.bytes_out - old[port.port].bytes_out,
        )
        for port in after.ports
    ]


@dataclass(frozen=True, kw_only=True)
class SumsAlone:
    """Sums of gradients without training."""

    times_s: NDArray[np.float64]
    """Seconds of each worker's sums, (workers, sums)."""
    links: list[WorkerLinkBytes]
    """Bytes of one sum on each worker's link, all frames; empty if they do not pass the switch."""


@dataclass(frozen=True, kw_only=True)
class HostComparison:
    """Sums in the switch beside those of the same hosts among themselves."""

    switch: SumsAlone
    hosts: SumsAlone
    algorithm: Algorithm
    """What the hosts took for a gradient."""


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
    target: str
    """What ran the P4 program: softswitch or bmv2."""
    comparison: HostComparison | None
    """None if there is one worker."""

    @property
    def losses(self) -> NDArray[np.float64]:
        """Mean loss over the workers of every step, (steps,)."""
        return np.mean([worker.losses for worker in self.workers], axis=0)

    @property
    def training_s(self) -> float:
        """Time of the slowest worker."""
        return max(worker.training_s for worker in self.workers)
