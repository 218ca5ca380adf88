# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Entries that have expired (section 16.4): reported once, and again after each further timeout."""

import time
from collections.abc import Iterable

from finsy.proto import p4r

from ...errors import ControlError, SwitchStateError
from ..entities.table_entry import StoredEntry, encode_key
from ..p4info.values import field_bytes
from .dataplane import DataPlane, Match
from .pipeline_config import Pipeline

MIN_INTERVAL_NS = 100_000_000
"""Shortest time between two notifications of one entry."""


class IdleEntries:
    """Remembers which entries have been reported. The caller serialises calls."""

    def __init__(self, dataplane: DataPlane) -> None:
        self._dataplane = dataplane
        self._pipeline: Pipeline | None = None
        self._due: dict[tuple[int, Match], int] = {}
        """When to check a reported entry again (monotonic ns)."""

    @property
    def is_waiting(self) -> bool:
        """Whether reported entries must be checked again."""
        return bool(self._due)

    def collect(
        self, pipeline: Pipeline, expired: Iterable[tuple[int, Match]]
    ) -> tuple[p4r.IdleTimeoutNotification | None, int | None]:
        """Return a notification of all entries that are due, and when to call again.

        `expired` comes from the data plane: table position and match.
        """
        if pipeline is not self._pipeline:
            self._pipeline = pipeline
            self._due.clear()
        now = time.monotonic_ns()
        tables = {table.position: table for table in pipeline.schema.tables.values()}
        notice = p4r.IdleTimeoutNotification(timestamp=time.time_ns())
        wanted = dict.fromkeys(key for key, when in self._due.items() if when <= now)
        for position, match in expired:
            table = tables.get(position)
            # Packed keys of a program that was replaced meanwhile may have another length.
            if table is not None and len(match.key) == sum(map(field_bytes, table.widths)):
                mask = b"" if table.is_all_exact else match.mask
                wanted[position, Match(match.key, mask, match.prefix_len, match.priority)] = None
        for position, key in wanted:
            table = tables[position]
            stored = pipeline.stores.tables.get(table, key)
            self._due.pop((position, key), None)
            if stored is None or not self._is_idle(position, key, stored):
                continue
            notice.table_entry.append(encode_key(table, key, stored))
            self._due[position, key] = now + max(stored.idle_timeout_ns, MIN_INTERVAL_NS)
        again = min(self._due.values(), default=None)
        return (notice if notice.table_entry else None), again

    def _is_idle(self, table: int, match: Match, stored: StoredEntry) -> bool:
        if not stored.idle_timeout_ns:
            return False
        try:
            return self._dataplane.tables.idle_ns(table, match) >= stored.idle_timeout_ns
        except (ControlError, SwitchStateError):
            return False  # its program was replaced
