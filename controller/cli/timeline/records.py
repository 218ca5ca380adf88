# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The transfers of a recorded job: what a timeline tells of each one.

All times are seconds since the job's first event.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from ...transfers.rates.link_tracking import LATE, SLACK_S


def _is_late(behind_s: float, planned_s: float) -> bool:
    return behind_s > LATE * planned_s + SLACK_S


class TransferEnd(enum.StrEnum):
    """What became of a transfer."""

    OPEN = "no end recorded"
    """It waits or is under way at the end of the recording, or its controller was killed."""
    ASKED_AGAIN = "asked for again"
    """No end is recorded, and its worker or server has asked another controller for it."""
    DONE = "done"
    """An update that its server has applied, or a model that is at its worker."""
    DROPPED = "dropped"
    WITHDRAWN = "withdrawn"
    REFUSED = "refused"
    """An update that its server does not apply."""
    UNGRANTED = "ungranted"
    """It went without a grant."""


class TransferPath(enum.StrEnum):
    """Where a granted transfer goes."""

    DIRECT = "direct"
    HOST_GROUP = "group at a host"
    SWITCH_GROUP = "group at a switch"
    RELAY = "relayed by a worker"


@dataclass(kw_only=True, slots=True)
class RecordedTransfer:
    """An update on its path to a server, or a model on its path to a worker."""

    is_model: bool
    worker: int
    server: int
    number: int
    """The transfer's id: an update's is a worker's own, a model's a server's."""
    size_bytes: int | None = None
    """None: nobody asked for it."""
    requested_s: float | None = None
    granted_s: float | None = None
    """When it was decided."""
    begins_s: float | None = None
    """First byte by plan; None without a grant, and on one host."""
    ends_s: float | None = None
    """Last byte by plan."""
    gathered_s: float | None = None
    """When it was at its aggregator."""
    delivered_s: float | None = None
    """When it was at its server, or at its worker if it is a model."""
    committed_s: float | None = None
    over_s: float | None = None
    """When it was dropped, withdrawn, refused, or seen to go without a grant."""
    end: TransferEnd = TransferEnd.OPEN
    is_withdrawn: bool = False
    """It was withdrawn; it may have come without a grant after that."""
    delay: int | None = None
    """Of a grant: by plan. Of a drop: the least that was possible."""
    reason: str = ""
    """Of a drop."""
    group: int | None = None
    aggregator: int | None = None
    has_left: bool = False
    """It was granted for a group, and its worker sent it to the server."""
    relayed_by: int | None = None
    limit: str = ""
    """What its sender has seen to limit it: grant, worker or network."""

    @property
    def path(self) -> TransferPath:
        """Where its grant sends it."""
        if self.relayed_by is not None:
            return TransferPath.RELAY
        if self.group is None:
            return TransferPath.DIRECT
        is_host = self.aggregator is not None
        return TransferPath.HOST_GROUP if is_host else TransferPath.SWITCH_GROUP

    @property
    def arrived_s(self) -> float | None:
        """When its last byte was where its plan ends: of a group at a host, at the aggregator."""
        if self.aggregator is not None and self.gathered_s is not None and not self.has_left:
            return self.gathered_s
        return self.delivered_s

    @property
    def behind_s(self) -> float | None:
        """How much later than planned it arrived; negative if earlier, None if it has no plan."""
        if self.ends_s is None or self.arrived_s is None:
            return None
        return self.arrived_s - self.ends_s

    @property
    def is_late(self) -> bool:
        """Whether it took longer than planned, by what the controller calls late."""
        if self.behind_s is None or self.ends_s is None or self.begins_s is None:
            return False
        return _is_late(self.behind_s, self.ends_s - self.begins_s)

    @property
    def first_s(self) -> float:
        """Its earliest time."""
        return min(self._times, default=0.0)

    @property
    def last_s(self) -> float:
        """Its latest event. A plan's end is none: the recording may be over before."""
        return max(self._times, default=0.0)

    @property
    def _times(self) -> list[float]:
        found = (
            self.requested_s,
            self.granted_s,
            self.gathered_s,
            self.delivered_s,
            self.committed_s,
            self.over_s,
        )
        return [each for each in found if each is not None]


@dataclass(kw_only=True, slots=True)
class RecordedAllreduce:
    """A sum of all members' vectors."""

    number: int
    members: int
    size_bytes: int
    granted_s: float
    planned_s: float | None
    """How long it takes by plan."""
    ended_s: float | None = None

    @property
    def is_late(self) -> bool:
        """Whether it took longer than planned, by what is late for updates."""
        if self.ended_s is None or self.planned_s is None:
            return False
        return _is_late(self.ended_s - self.granted_s - self.planned_s, self.planned_s)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplicaBacklog:
    """How far a server is ahead of its replica, at a moment."""

    time_s: float
    server: int
    missing: int
    """Updates that the server has applied and the replica has not."""
    distance: float
    """The most by which their models differ."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplicaPromotion:
    """A replica took its server's place."""

    time_s: float
    server: int
    lost: int
    """Updates that the replica lacked."""


@dataclass(kw_only=True)
class TransferTimeline:
    """All that is recorded of a job."""

    job: str
    began_s: float
    """Its first event, in seconds since 1970."""
    length_s: float
    """From its first event to its last one."""
    num_events: int
    updates: list[RecordedTransfer]
    """In the order of their first events."""
    models: list[RecordedTransfer]
    allreduces: list[RecordedAllreduce] = field(default_factory=list[RecordedAllreduce])
    failed: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    """Allreduces without a sum: when, and why."""
    replicas: list[ReplicaBacklog] = field(default_factory=list[ReplicaBacklog])
    promotions: list[ReplicaPromotion] = field(default_factory=list[ReplicaPromotion])
    unknown: dict[str, int] = field(default_factory=dict[str, int])
    """Events that this release does not know: how often each."""
    num_turned_back: int = 0
    """Events that are earlier than the one before: somebody has set the clock."""

    @property
    def transfers(self) -> list[RecordedTransfer]:
        """Updates and models by their first times."""
        return sorted([*self.updates, *self.models], key=lambda each: each.first_s)

    @property
    def workers(self) -> list[int]:
        """Ids of all workers that had a transfer, in order."""
        return sorted({each.worker for each in (*self.updates, *self.models)})
