# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A server's place in its job: who has it, its version, and its commit sequence."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from .live_station import LiveStation
from .transfer_record import REMEMBERED, TransferRecord

SCHEDULED_VERSION: Final = 1 << 53
"""The scheduler's version of each server at the start: it may stand for any version of a server."""


@dataclass(kw_only=True)
class ServerPlace:
    """Translates between a server's numbers and those of the job's scheduler.

    The scheduler counts what it has granted. A server's version also counts what came without a
    grant, and its commit sequence may have begun at another controller.
    """

    server_id: int
    name: str
    """At the scheduler."""
    station: LiveStation | None = None
    """None: it is lost, or has never been there."""
    identity: bytes = b""
    host: str = ""
    version_shift: int = -SCHEDULED_VERSION
    """The server's version less the scheduler's."""
    highest_version: int = 0
    """That any process in this place has had, as far as it is known."""
    first_sequence: int = 0
    """The server's number for the first place of the scheduler's sequence."""
    num_granted: int = 0
    """Places that the scheduler has given."""
    granted: dict[int, TransferRecord] = field(default_factory=dict[int, TransferRecord])
    """By place, in order: granted updates that have not arrived."""
    arrived: set[int] = field(default_factory=set[int])
    """Places of updates that wait at the server for those before."""
    reported_version: int = -1
    """By the server's last report, -1 if a delivery has come since."""
    unknown: OrderedDict[tuple[int, int], None] = field(
        default_factory=OrderedDict[tuple[int, int], None]
    )
    """(worker, transfer) of reported deliveries that nobody has asked for."""

    @property
    def is_attached(self) -> bool:
        """Whether a stream carries the server's messages."""
        return self.station is not None and self.station.is_attached

    @property
    def next_sequence(self) -> int:
        """The place that the next grant gets."""
        return self.first_sequence + self.num_granted

    @property
    def open_sequence(self) -> int:
        """The first place for which something may still come."""
        return next(iter(self.granted), self.next_sequence)

    @property
    def num_ahead(self) -> int:
        """Grants that the server has not applied."""
        return len(self.granted) + len(self.arrived)

    def note_applied(self, scheduled: int, count: int = 1) -> None:
        """Note updates without a grant; the scheduler's version is `scheduled`."""
        self.version_shift += count
        self.note_highest(scheduled)

    def note_highest(self, scheduled: int) -> None:
        """Remember the version."""
        self.highest_version = max(self.highest_version, scheduled + self.version_shift)

    def report(self, version: int, scheduled: int) -> bool:
        """Take the server's word for a version above the known one; return whether it is above."""
        self.reported_version = version
        is_above = version > scheduled + self.version_shift
        if is_above:
            self.version_shift = version - scheduled
        self.note_highest(scheduled)
        return is_above

    def restart(self, version: int, scheduled: int, next_sequence: int) -> None:
        """Note another process, which knows places of the sequence below `next_sequence`."""
        self.version_shift = version - scheduled
        self.first_sequence = max(self.first_sequence, next_sequence - self.num_granted)
        self.reported_version = -1
        self.unknown.clear()
        self.note_highest(scheduled)

    def rest(self, scheduled: int) -> None:
        """Take the server's last word for its version, also a lower one, while nothing comes.

        A delivery that was repeated over a broken stream may have been counted twice.
        """
        if self.reported_version >= 0 and not self.num_ahead:
            self.version_shift = self.reported_version - scheduled

    def is_first_report(self, worker_id: int, transfer_id: int) -> bool:
        """Return whether a delivery that nobody has asked for is reported for the first time."""
        key = worker_id, transfer_id
        if key in self.unknown:
            return False
        self.unknown[key] = None
        if len(self.unknown) > REMEMBERED:
            self.unknown.popitem(last=False)
        return True
