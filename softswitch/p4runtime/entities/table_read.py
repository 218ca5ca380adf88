# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Reads of table entries and direct resources, with the filters of section 9.1.4."""

# pyright: reportDeprecated=false
# controller_metadata is deprecated, and clients in use send it.

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from finsy.proto import p4r, rpc_code

from ..p4info.schema import Table
from ..service.dataplane import Match
from ..service.status import RequestError
from .direct_resources import check_counter, check_meter, check_queried
from .match_fields import decode_match
from .meters import refuse_counters
from .table_entry import encode_entry
from .table_store import Row, TableStore


class TableReader:
    """Copies entries and their counters at once; encodes them as the answer is sent."""

    def __init__(self, store: TableStore) -> None:
        self._store = store

    def read(self, query: p4r.TableEntry) -> Iterator[p4r.Entity]:
        """Return the entries that a TableEntry of a ReadRequest selects."""
        if query.table_id in self._store.schema.removed:
            return iter(())
        if query.table_id:
            check_queried(self._store.schema.table(query.table_id), query)
        wants = _Wants(
            query.HasField("counter_data"),
            query.HasField("meter_config"),
            query.HasField("time_since_last_hit"),
        )
        return (self._encode(row, wants) for row in self._select(query))

    def read_all(self, table: Table) -> Iterator[tuple[Row, p4r.Entity]]:
        """Return every entry of a table with its counter and its meter's configuration."""
        wants = _Wants(counts=True, meter=True, idle=False)
        return ((row, self._encode(row, wants)) for row in self._store.rows(table))

    def read_direct_counters(self, query: p4r.DirectCounterEntry) -> Iterator[p4r.Entity]:
        """Return the direct counters of the selected entries.

        Raises NOT_FOUND for a query with a match that no entry has.
        """
        if query.table_entry.table_id in self._store.schema.removed:
            return iter(())
        if query.table_entry.table_id:
            check_counter(self._store.schema.table(query.table_entry.table_id))
        rows = self._select_direct(query.table_entry)
        return (self._encode_counter(row) for row in rows if row.table.has_counter)

    def read_direct_meters(self, query: p4r.DirectMeterEntry) -> Iterator[p4r.Entity]:
        """Return the direct meters of the selected entries; raises errors as for counters."""
        if query.table_entry.table_id in self._store.schema.removed:
            return iter(())
        if query.table_entry.table_id:
            check_meter(self._store.schema.table(query.table_entry.table_id))
        if query.HasField("counter_data"):
            raise refuse_counters("direct_meter_entry: counter_data")
        rows = self._select_direct(query.table_entry)
        return (self._encode_meter(row) for row in rows if row.table.meter is not None)

    def _encode_counter(self, row: Row) -> p4r.Entity:
        data = p4r.CounterData()
        if row.counts is not None:
            data.packet_count, data.byte_count = row.counts
        counter = p4r.DirectCounterEntry(table_entry=self._encode_key(row), data=data)
        return p4r.Entity(direct_counter_entry=counter)

    def _encode_meter(self, row: Row) -> p4r.Entity:
        entry = p4r.DirectMeterEntry(table_entry=self._encode_key(row))
        if row.stored.meter is not None:
            entry.config.CopyFrom(row.stored.meter)
        return p4r.Entity(direct_meter_entry=entry)

    def _encode_key(self, row: Row) -> p4r.TableEntry:
        entry = encode_entry(self._store.schema, row.table, row.match, row.stored)
        entry.ClearField("action")
        return entry

    def _encode(self, row: Row, wants: "_Wants") -> p4r.Entity:
        entity = p4r.Entity()
        entry = entity.table_entry
        encode_entry(self._store.schema, row.table, row.match, row.stored, entry)
        if wants.counts and row.table.has_counter and row.counts is not None:
            entry.counter_data.packet_count, entry.counter_data.byte_count = row.counts
        if wants.idle and row.table.has_idle_timeout and row.idle_ns is not None:
            entry.time_since_last_hit.elapsed_ns = row.idle_ns
        if wants.meter and row.stored.meter is not None:
            entry.meter_config.CopyFrom(row.stored.meter)
        return entity

    def _select_direct(self, query: p4r.TableEntry) -> Iterator[Row]:
        if query.table_id and query.match and not query.is_default_action:
            self._store.find_entry(query)
        return self._select(query)

    def _select(self, query: p4r.TableEntry) -> Iterator[Row]:
        """Copy what the query selects now; it is decoded as the iterator is used."""
        if query.table_id == 0:
            if query.match or query.HasField("action"):
                raise RequestError(
                    rpc_code.INVALID_ARGUMENT,
                    "table_id 0 selects all tables: neither match nor action can filter them",
                )
            tables = self._store.schema.tables.values()
            return chain.from_iterable([self._select_in(table, query) for table in tables])
        return self._select_in(self._store.schema.table(query.table_id), query)

    def _select_in(self, table: Table, query: p4r.TableEntry) -> Iterator[Row]:
        if query.is_default_action:
            return iter([self._store.default_row(table)])
        if query.match:
            wanted = decode_match(table, query, is_query=True)
            if query.priority or not table.needs_priority:
                row = self._store.row(table, wanted)
                return iter([] if row is None else [row])
            return (row for row in self._store.rows(table) if _same_fields(row.match, wanted))
        rows = self._store.rows(table)
        if not _has_filter(query):
            return rows
        return (row for row in rows if _is_wanted(query, row))


class _Wants(NamedTuple):
    """What a read asks for besides the entries."""

    counts: bool
    meter: bool
    idle: bool


def _same_fields(match: Match | None, wanted: Match) -> bool:
    return match is not None and match[:3] == wanted[:3]


def _has_filter(query: p4r.TableEntry) -> bool:
    return bool(
        query.priority or query.HasField("action") or query.controller_metadata or query.metadata
    )


def _is_wanted(query: p4r.TableEntry, row: Row) -> bool:
    stored = row.stored
    if query.priority and (row.match is None or row.match.priority != query.priority):
        return False
    if query.HasField("action"):
        action = row.table.actions.get(query.action.action.action_id)
        if action is None or stored.choice is not None or stored.action != action.position:
            return False
    if query.controller_metadata and stored.controller_metadata != query.controller_metadata:
        return False
    return not query.metadata or stored.metadata == query.metadata
