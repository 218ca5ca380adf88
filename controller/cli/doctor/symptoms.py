# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What counters say: each outcome that is a symptom, its likely cause and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ....hostlib.slots.wire import Outcome
from ...api.operator_api import operator_pb2 as pb
from ...tables.outcome import OrdinaryOutcome
from .check import Check, Status, ok


@dataclass(frozen=True)
class Symptom:
    """A group of outcomes with one cause."""

    name: str
    outcomes: tuple[Outcome, ...]
    cause: str
    remedy: str
    is_ratio: bool = False
    """Whether some are normal: then only more than one in a hundred packets get a remark."""


SYMPTOMS: Final = (
    Symptom(
        "loss",
        (Outcome.REPLAYED, Outcome.DUPLICATE),
        "packets came twice: contributions or results are lost, or timers are too short",
        "look at the links (drops, rate); lower the window",
        is_ratio=True,
    ),
    Symptom(
        "stale",
        (Outcome.STALE,),
        "packets of an older round or generation: reordering, or a left-over worker",
        "look for a second process of an old job; expect some after a restart",
        is_ratio=True,
    ),
    Symptom(
        "foreign",
        (Outcome.FOREIGN_JOB, Outcome.FOREIGN_WORKER, Outcome.FOREIGN_RESULT),
        "packets of a job that is not admitted, or from a wrong port or address",
        "end processes of ended jobs; compare addresses and ports with 'switchfold job show'",
    ),
    Symptom(
        "version",
        (Outcome.BAD_VERSION,),
        "packets of another wire version",
        "install the same release on all hosts and for the controller",
    ),
    Symptom(
        "malformed",
        (
            Outcome.BAD_LENGTH,
            Outcome.BAD_OPERATION,
            Outcome.BAD_RANGE,
            Outcome.OFF_GRID,
            Outcome.BAD_SLOT,
            Outcome.BAD_CONTRIBUTION,
            Outcome.MISMATCH,
            Outcome.MULTICAST_REFUSED,
            Outcome.WRITE_REFUSED,
        ),
        "packets that no healthy worker sends",
        "check that workers use the same values per packet; find the sender with a capture",
    ),
    Symptom(
        "checksum",
        (Outcome.BAD_CHECKSUM,),
        "packets were damaged on the path, or checksum offload left them unfinished",
        "turn offload off (ethtool -K IFACE tx off); look at the link",
    ),
    Symptom(
        "generation",
        (Outcome.BAD_GENERATION,),
        "packets of an earlier view of the job",
        "end left-over worker processes",
    ),
)


def check_spoofed(subject: str, counts: Iterable[pb.OutcomeCount]) -> list[Check]:
    """Return a remark when a switch received frames that pretend to be results."""
    spoofed = sum(c.packets for c in counts if c.outcome == OrdinaryOutcome.SPOOFED.name.lower())
    if not spoofed:
        return []
    text = f"{spoofed} frames so far pretended to be results of a switch; all were dropped"
    remedy = "a host behind one of its ports attacks workers: find the sender with a capture"
    return [Check(f"{subject} spoofed", Status.WARN, text, remedy)]


def check_counts(subject: str, counts: Iterable[pb.OutcomeCount]) -> list[Check]:
    """Return remarks on counters, or one passed check when there is nothing to say."""
    known = Outcome.__members__  # a controller of another release may know others
    total = sum(count.packets for count in counts)
    packets = {
        known[name]: count.packets for count in counts if (name := count.outcome.upper()) in known
    }
    checks: list[Check] = []
    for symptom in SYMPTOMS:
        found = {o: packets[o] for o in symptom.outcomes if packets.get(o)}
        number = sum(found.values())
        if not number or (symptom.is_ratio and number * 100 < total):
            continue
        detail = ", ".join(f"{outcome.name.lower()} {count}" for outcome, count in found.items())
        checks.append(
            Check(
                f"{subject} {symptom.name}",
                Status.WARN,
                f"{number} of {total} packets so far ({detail}): {symptom.cause}",
                symptom.remedy,
            )
        )
    return checks or [ok(f"{subject} packets", f"{total} packets, none of them a symptom")]
