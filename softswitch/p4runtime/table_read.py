# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Reads of table entries and direct resources, with the filters of section 9.1.4."""

# pyright: reportDeprecated=false
# controller_metadata is deprecated, and clients in use send it.

from collections.abc import Iterator

from finsy.proto import p4r, rpc_code

from softswitch.p4runtime.dataplane import Match
from softswitch.p4runtime.direct_resources import check_counter, check_meter, check_queried
from softswitch.p4runtime.journal import Backend
from softswitch.p4runtime.match_fields import decode_match
from softswitch.p4runtime.meters import refuse_counters
from softswitch.p4runtime.schema import Table
from softswitch.p4runtime.status import RequestError
from softswitch.p4runtime.table_entry import StoredEntry, encode_entry
from softswitch.p4runtime.table_store import TableStore

_Row = tuple[Table, Match | None, StoredEntry]


class TableReader:
    """Selects entries and reads their counters at once; encodes them as the answer is sent."""

    def __init__(self, store: TableStore, backend: Backend) -> None:
        self._store = store
        self._backend = backend

    def read(self, query: p4r.TableEntry) -> Iterator[p4r.Entity]:
        """Return the entries that a TableEntry of a ReadRequest selects."""
        if query.table_id:
            check_queried(self._store.schema.table(query.table_id), query)
        rows = list(self._select(query))
        with_counter = query.HasField("counter_data")
        with_meter = query.HasField("meter_config")
        with_time = query.HasField("time_since_last_hit")
        counts = [self._counts(*row[:2]) if with_counter else None for row in rows]
        times = [self._idle_ns(*row[:2]) if with_time else None for row in rows]
        meters = [row[2].meter if with_meter else None for row in rows]
        return (self._encode(*row) for row in zip(rows, counts, times, meters, strict=True))

    def read_all(self, table: Table) -> Iterator[tuple[Match, p4r.Entity]]:
        """Return every entry of a table with its counter and its meter's configuration."""
        for match, stored in self._store.entries[table.id].items():
            row = table, match, stored
            yield match, self._encode(row, self._counts(table, match), None, stored.meter)

    def read_direct_counters(self, query: p4r.DirectCounterEntry) -> Iterator[p4r.Entity]:
        """Return the direct counters of the selected entries; NOT_FOUND for a single one."""
        if query.table_entry.table_id:
            check_counter(self._store.schema.table(query.table_entry.table_id))
        rows = [row for row in self._select_direct(query.table_entry) if row[0].has_counter]
        counts = [self._counts(*row[:2]) for row in rows]
        for row, count in zip(rows, counts, strict=True):
            data = p4r.CounterData()
            if count is not None:
                data.packet_count, data.byte_count = count
            counter = p4r.DirectCounterEntry(table_entry=self._encode_key(row), data=data)
            yield p4r.Entity(direct_counter_entry=counter)

    def read_direct_meters(self, query: p4r.DirectMeterEntry) -> Iterator[p4r.Entity]:
        """Return the direct meters of the selected entries; NOT_FOUND for a single one."""
        if query.table_entry.table_id:
            check_meter(self._store.schema.table(query.table_entry.table_id))
        if query.HasField("counter_data"):
            raise refuse_counters("direct_meter_entry: counter_data")
        for row in list(self._select_direct(query.table_entry)):
            if row[0].meter is None or row[1] is None:
                continue
            entry = p4r.DirectMeterEntry(table_entry=self._encode_key(row))
            if row[2].meter is not None:
                entry.config.CopyFrom(row[2].meter)
            yield p4r.Entity(direct_meter_entry=entry)

    def _encode_key(self, row: _Row) -> p4r.TableEntry:
        entry = encode_entry(self._store.schema, *row)
        entry.ClearField("action")
        return entry

    def _encode(
        self,
        row: _Row,
        counts: tuple[int, int] | None,
        idle_ns: int | None,
        meter: p4r.MeterConfig | None,
    ) -> p4r.Entity:
        entry = encode_entry(self._store.schema, *row)
        if counts is not None:
            entry.counter_data.packet_count, entry.counter_data.byte_count = counts
        if idle_ns is not None:
            entry.time_since_last_hit.elapsed_ns = idle_ns
        if meter is not None:
            entry.meter_config.CopyFrom(meter)
        return p4r.Entity(table_entry=entry)

    def _counts(self, table: Table, match: Match | None) -> tuple[int, int] | None:
        if not table.has_counter:
            return None
        return self._backend.dataplane.direct_counter_read(table.position, match)

    def _idle_ns(self, table: Table, match: Match | None) -> int | None:
        if not table.has_idle_timeout or match is None:
            return None
        return self._backend.dataplane.table_idle_ns(table.position, match)

    def _select_direct(self, query: p4r.TableEntry) -> Iterator[_Row]:
        if query.table_id and query.match and not query.is_default_action:
            self._store.find_entry(query)
        return self._select(query)

    def _select(self, query: p4r.TableEntry) -> Iterator[_Row]:
        if query.table_id == 0:
            if query.match or query.HasField("action"):
                raise RequestError(
                    rpc_code.INVALID_ARGUMENT,
                    "table_id 0 selects all tables: neither match nor action can filter them",
                )
            for table in self._store.schema.tables.values():
                yield from self._select_in(table, query)
            return
        yield from self._select_in(self._store.schema.table(query.table_id), query)

    def _select_in(self, table: Table, query: p4r.TableEntry) -> Iterator[_Row]:
        if query.is_default_action:
            yield table, None, self._store.defaults[table.id]
            return
        entries = self._store.entries[table.id]
        if query.match:
            wanted = decode_match(table, query, is_query=True)
            if query.priority or not table.needs_priority:
                if wanted in entries:
                    yield table, wanted, entries[wanted]
                return
            for match, stored in entries.items():
                if match[:3] == wanted[:3]:
                    yield table, match, stored
            return
        for match, stored in entries.items():
            if _is_wanted(table, query, match, stored):
                yield table, match, stored


def _is_wanted(table: Table, query: p4r.TableEntry, match: Match, stored: StoredEntry) -> bool:
    if query.priority and match.priority != query.priority:
        return False
    if query.HasField("action"):
        action = table.actions.get(query.action.action.action_id)
        if action is None or stored.choice is not None or stored.action != action.position:
            return False
    if query.controller_metadata and stored.controller_metadata != query.controller_metadata:
        return False
    return not query.metadata or stored.metadata == query.metadata
