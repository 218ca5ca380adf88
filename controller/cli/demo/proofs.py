# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the demo proves: each claim with its bound and the measured figure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from rich.console import Console
from rich.text import Text

from ....hostlib.slots.wire import Outcome
from ..output import fitted_table
from .record import RunRecord

MIN_ACCURACY: Final = 0.92
MAX_LOSS_DEVIATION: Final = 1e-3
MAX_TRAINING_S: Final = 90.0
_UNICAST_REPLIES: Final = (Outcome.REPLAYED, Outcome.NOTIFIED)
_MULTICAST_REPLIES: Final = (Outcome.COMPLETED, Outcome.FLUSHED)


@dataclass(frozen=True, kw_only=True)
class Proof:
    """One claim, checked."""

    claim: str
    is_proved: bool
    measured: str


def check_proofs(run: RunRecord) -> list[Proof]:
    """Check every claim of the demo against a run."""
    return [
        _accuracy(run),
        _identical_replicas(run),
        _loss_curve(run),
        _packets_in(run),
        _packets_out(run),
        _training_time(run),
    ]


def print_proofs(proofs: Sequence[Proof], console: Console) -> None:
    """Print claims with their marks and what was measured."""
    rows = [
        (
            Text("proved", "bold green") if proof.is_proved else Text("FAILED", "bold red"),
            proof.claim,
            proof.measured,
        )
        for proof in proofs
    ]
    console.print(fitted_table("Proofs", ("", "claim", "measured"), rows, console.width))


def _accuracy(run: RunRecord) -> Proof:
    accuracy = float(run.workers[0].accuracies[-1])
    return Proof(
        claim=f"accuracy on 1,000 held-out digits is at least {MIN_ACCURACY}",
        is_proved=accuracy >= MIN_ACCURACY,
        measured=f"{accuracy:.3f}",
    )


def _identical_replicas(run: RunRecord) -> Proof:
    digests = {
        hashlib.sha256(worker.parameters.tobytes()).hexdigest()[:16] for worker in run.workers
    }
    return Proof(
        claim=f"final weights of all {len(run.workers)} workers are identical, bit by bit",
        is_proved=len(digests) == 1,
        measured=f"SHA-256 {', '.join(sorted(digests))}",
    )


def _loss_curve(run: RunRecord) -> Proof:
    reference = run.reference.losses
    deviation = float(np.max(np.abs(run.losses - reference) / reference))
    return Proof(
        claim="loss of every step is within 0.1 % of a single process on the same batches",
        is_proved=deviation <= MAX_LOSS_DEVIATION,
        measured=f"largest deviation {deviation * 100:.5f} %",
    )


def _packets_in(run: RunRecord) -> Proof:
    sent = sum(worker.packets_sent for worker in run.workers)
    outcomes = run.switch.outcomes
    counted = sum(outcomes.values())
    parts = ", ".join(
        f"{count} {outcome.name.lower()}" for outcome, count in outcomes.items() if count
    )
    return Proof(
        claim="the switch accounts for every packet that the workers sent",
        is_proved=0 <= sent - counted <= _under_way(run) and counted > 0,
        measured=f"{sent} sent, {counted} counted: {parts}{_late(run)}",
    )


def _packets_out(run: RunRecord) -> Proof:
    outcomes = run.switch.outcomes
    multicast = sum(outcomes[outcome] for outcome in _MULTICAST_REPLIES)
    unicast = sum(outcomes[outcome] for outcome in _UNICAST_REPLIES)
    emitted = multicast * len(run.workers) + unicast
    received = sum(worker.packets_received for worker in run.workers)
    return Proof(
        claim="the workers received every packet that the switch sent",
        is_proved=0 <= emitted - received <= _under_way(run) and received > 0,
        measured=(
            f"{multicast} results x {len(run.workers)} workers + {unicast} single replies"
            f" = {emitted} sent, {received} received{_late(run)}"
        ),
    )


def _under_way(run: RunRecord) -> int:
    return sum(worker.packets_under_way for worker in run.workers)


def _late(run: RunRecord) -> str:
    count = _under_way(run)
    return f"; {count} of the last sum, sent again, may still be under way" if count else ""


def _training_time(run: RunRecord) -> Proof:
    return Proof(
        claim=f"training ends in under {MAX_TRAINING_S:.0f} s",
        is_proved=run.training_s < MAX_TRAINING_S,
        measured=f"{run.training_s:.1f} s",
    )
