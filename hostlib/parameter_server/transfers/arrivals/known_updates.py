# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which updates a server has, by name: alone, or as one of the updates in a sum."""

from __future__ import annotations

from typing import NamedTuple, final

from ....peers.frames import SummedUpdate
from ...summed_updates import is_open
from ...tables.service import TableService
from ..update_port import IncomingUpdate
from .place_order import UpdateKey


class UpdateName(NamedTuple):
    """What a server knows an update by."""

    worker_id: int
    incarnation: int
    number: int


class SubmittedUpdate(NamedTuple):
    """An update, or a sum, on its path through the log."""

    update: IncomingUpdate
    is_in_place: bool
    was_replaced: bool
    """At a replica: another process is its worker now, but the server has applied it."""


def name_of(update: IncomingUpdate) -> UpdateName:
    """Return the name of an update, or of a sum: it has one of its own."""
    return UpdateName(update.worker_id, update.incarnation, update.head.number)


def name_in(member: SummedUpdate) -> UpdateName:
    """Return the name of an update in a sum."""
    return UpdateName(*member[:3])


def key_of(member: SummedUpdate) -> UpdateKey:
    """Return what the scheduler knows an update by."""
    return UpdateKey(member.worker_id, member.transfer_id)


def key_of_first(update: IncomingUpdate) -> UpdateKey:
    """Return that of an update, or of the first one in a sum."""
    return key_of(update.members[0])


@final
class KnownUpdates:
    """Updates that wait at the server or are being logged, and those that the tables contain."""

    def __init__(self, tables: TableService) -> None:
        self._tables = tables
        self._here: dict[UpdateName, IncomingUpdate] = {}

    def add(self, update: IncomingUpdate) -> None:
        """Note what waits from now on."""
        for name in name_of(update), *map(name_in, update.members):
            self._here[name] = update

    def discard(self, update: IncomingUpdate) -> None:
        """Note what waits no longer."""
        for name in name_of(update), *map(name_in, update.members):
            if self._here.get(name) is update:
                del self._here[name]

    def is_known(self, name: UpdateName) -> bool:
        """Return whether an update waits, is being logged, or is applied."""
        return name in self._here or self.is_applied(name)

    def is_applied(self, name: UpdateName) -> bool:
        """Return whether an update has been applied, or is over since its worker has gone on."""
        workers = self._tables.state.workers
        if name.worker_id >= len(workers):
            return False
        worker = workers[name.worker_id]
        is_own = worker.incarnation == name.incarnation
        return is_own and not is_open(worker, name.number)

    def are_applied(self, update: IncomingUpdate) -> bool:
        """Return whether the tables contain an update, or all of those in a sum."""
        return all(self.is_applied(name_in(member)) for member in update.members)

    def are_current(self, update: IncomingUpdate) -> bool:
        """Return whether no worker's process has been replaced."""
        return all(
            member.worker_id < len(self._tables.state.workers)
            and self._tables.incarnation(member.worker_id) == member.incarnation
            for member in update.members
        )

    def are_new(self, update: IncomingUpdate) -> bool:
        """Return whether no update of a sum has come, and all are of present processes."""
        names = [name_in(member) for member in update.members]
        is_once = len(set(names)) == len(names)
        return is_once and self.are_current(update) and not any(map(self.is_known, names))
