# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Brings hot rows onto a switch: writes the differences from what it was told before, in one batch.

The whole table is read when a connection is new, and again at each repair. Work on many rows is cut
into slices, so that the controller's loop has other work in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Final, TypeVar, cast

from finsy import P4ClientError, P4TableEntry, Switch
from finsy.proto import p4r

from ..tables.hot_row import TABLE, RowKey, RowPlace, RowPlacement, read_row, table_entry

_SLICE: Final = 64
"""Rows between two turns of the loop, a few milliseconds."""
_T = TypeVar("_T")


class RowReconciler:
    """Reconciles table `hot_row` of one connected switch."""

    def __init__(self, switch: Switch) -> None:
        self._switch = switch
        self._present: dict[RowKey, RowPlace] | None = None
        """What the switch has; None: it must be read."""

    def forget(self) -> None:
        """Read the switch again at the next reconciliation."""
        self._present = None

    async def reconcile(self, placements: Sequence[RowPlacement]) -> int:
        """Make the table hold these rows and no others; return how many rows were written."""
        if self._present is None:
            self._present = await self._read()
        present = self._present
        wanted: dict[RowKey, RowPlace] = {}
        for placement in placements:
            wanted.update(placement.entries())
        kept = [placement for placement in placements if placement.rows is None]
        gone = [
            key
            for key in present
            if key not in wanted and not any(placement.may_keep(key) for placement in kept)
        ]
        updates: list[p4r.Update] = []
        async for key in _in_slices(gone):
            updates.append(self._update(p4r.Update.DELETE, key, present[key]))
        async for key, place in _in_slices(wanted.items()):
            if key not in present:
                updates.append(self._update(p4r.Update.INSERT, key, place))
            elif present[key] != place:
                updates.append(self._update(p4r.Update.MODIFY, key, place))
        if not updates:
            return 0
        try:
            await self._switch.write(updates)
        except P4ClientError:
            self._present = None  # some of them may have been made
            raise
        for key in gone:
            del present[key]
        present.update(wanted)
        return len(updates)

    def _update(self, kind: Any, key: RowKey, place: RowPlace) -> p4r.Update:
        entity = table_entry(key, place).encode(self._switch.p4info)
        return p4r.Update(type=kind, entity=entity)

    async def _read(self) -> dict[RowKey, RowPlace]:
        entries = cast("Any", self._switch).read([P4TableEntry(TABLE)])
        present: dict[RowKey, RowPlace] = {}
        async for entry in _in_turns(cast("AsyncIterator[P4TableEntry]", entries)):
            if not entry.is_default_action:
                key, place = read_row(entry)
                present[key] = place
        return present


async def _in_slices(items: Iterable[_T]) -> AsyncIterator[_T]:
    """Yield the items, with a turn of the loop after each slice."""
    for number, item in enumerate(items, 1):
        yield item
        if number % _SLICE == 0:
            await asyncio.sleep(0)


async def _in_turns(items: AsyncIterator[_T]) -> AsyncIterator[_T]:
    """Yield what an iterator yields, with a turn of the loop after each slice."""
    number = 0
    async for item in items:
        yield item
        number += 1
        if number % _SLICE == 0:
            await asyncio.sleep(0)
