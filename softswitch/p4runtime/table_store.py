# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The entries of one loaded program: what Write changes in the data plane and Read returns."""

# pyright: reportDeprecated=false
# controller_metadata is deprecated, and clients in use send it.

from collections.abc import Iterator
from typing import Any

from finsy.proto import p4r, rpc_code

from softswitch.errors import TableFullError
from softswitch.p4runtime.dataplane import Match
from softswitch.p4runtime.p4info import Schema, Table
from softswitch.p4runtime.status import RequestError
from softswitch.p4runtime.table_entry import (
    StoredEntry,
    decode_action,
    decode_match,
    encode_entry,
    initial_entries,
)


class TableStore:
    """Table entries and their direct counters. The caller serialises calls."""

    def __init__(self, schema: Schema, dataplane: Any) -> None:
        self._schema = schema
        self.dataplane = dataplane
        self._entries: dict[int, dict[Match, StoredEntry]] = {}
        self._defaults: dict[int, StoredEntry] = {}
        for table in schema.tables.values():
            self._entries[table.id] = initial_entries(table)
            self._defaults[table.id] = _initial_default(table)

    def insert(self, entry: p4r.TableEntry) -> None:
        """Add an entry; ALREADY_EXISTS, RESOURCE_EXHAUSTED and the codes of bad values."""
        table = self._schema.table(entry.table_id)
        if entry.is_default_action:
            raise _no_default(table, "INSERT")
        _check_features(table, entry)
        if table.is_const:
            raise _const_table(table)
        match = decode_match(table, entry)
        action, params = decode_action(table, entry.action, is_default=False)
        entries = self._entries[table.id]
        if match in entries:
            raise RequestError(
                rpc_code.ALREADY_EXISTS, f"table {table.name}: an entry with this match exists"
            )
        try:
            self.dataplane.table_insert(table.position, match, action, params)
        except TableFullError as exc:
            raise RequestError(
                rpc_code.RESOURCE_EXHAUSTED,
                f"table {table.name} is full: {len(entries)} entries of {table.max_size}",
            ) from exc
        entries[match] = StoredEntry(action, params, entry.metadata, entry.controller_metadata)
        if entry.HasField("counter_data"):
            self._write_counter(table, match, entry.counter_data)

    def modify(self, entry: p4r.TableEntry) -> None:
        """Change an entry or the default entry; NOT_FOUND where there is none."""
        table = self._schema.table(entry.table_id)
        _check_features(table, entry)
        if entry.is_default_action:
            self._modify_default(table, entry)
            return
        match = decode_match(table, entry)
        stored = self._find(table, match)
        if entry.HasField("action"):
            if stored.is_const:
                raise _const_table(table)
            action, params = decode_action(table, entry.action, is_default=False)
            self.dataplane.table_modify(table.position, match, action, params)
            self._entries[table.id][match] = StoredEntry(
                action, params, entry.metadata, entry.controller_metadata
            )
        elif not stored.is_const:
            raise RequestError(rpc_code.INVALID_ARGUMENT, f"table {table.name}: action: is missing")
        if entry.HasField("counter_data"):
            self._write_counter(table, match, entry.counter_data)

    def delete(self, entry: p4r.TableEntry) -> None:
        """Remove an entry; only its match and priority count."""
        table = self._schema.table(entry.table_id)
        if entry.is_default_action:
            raise _no_default(table, "DELETE")
        if table.is_const:
            raise _const_table(table)
        match = decode_match(table, entry)
        self._find(table, match)
        self.dataplane.table_delete(table.position, match)
        del self._entries[table.id][match]

    def write_direct_counter(self, entry: p4r.DirectCounterEntry) -> None:
        """Set the direct counter of an entry."""
        table = self._counted_table(entry.table_entry.table_id)
        match: Match | None = None
        if not entry.table_entry.is_default_action:
            match = decode_match(table, entry.table_entry)
            self._find(table, match)
        self._write_counter(table, match, entry.data)

    def read(self, query: p4r.TableEntry) -> list[p4r.Entity]:
        """Return the entries that a TableEntry of a ReadRequest selects."""
        found: list[p4r.Entity] = []
        with_counter = query.HasField("counter_data")
        for table, match, stored in self._select(query):
            entry = encode_entry(self._schema, table, match, stored)
            if with_counter and table.has_counter:
                packets, octets = self.dataplane.direct_counter_read(table.position, match)
                entry.counter_data.packet_count = packets
                entry.counter_data.byte_count = octets
            found.append(p4r.Entity(table_entry=entry))
        return found

    def read_direct_counters(self, query: p4r.DirectCounterEntry) -> list[p4r.Entity]:
        """Return the direct counters of the selected entries."""
        if query.table_entry.table_id:
            self._counted_table(query.table_entry.table_id)
        found: list[p4r.Entity] = []
        for table, match, stored in self._select(query.table_entry):
            if not table.has_counter:
                continue
            packets, octets = self.dataplane.direct_counter_read(table.position, match)
            entry = encode_entry(self._schema, table, match, stored)
            entry.ClearField("action")
            data = p4r.CounterData(packet_count=packets, byte_count=octets)
            counter = p4r.DirectCounterEntry(table_entry=entry, data=data)
            found.append(p4r.Entity(direct_counter_entry=counter))
        return found

    def _select(self, query: p4r.TableEntry) -> Iterator[tuple[Table, Match | None, StoredEntry]]:
        if query.table_id == 0:
            for table in self._schema.tables.values():
                yield from self._select_in(table, query, None)
            return
        table = self._schema.table(query.table_id)
        match: Match | None = None
        if query.match and not query.is_default_action:
            match = decode_match(table, query)
        yield from self._select_in(table, query, match)

    def _select_in(
        self, table: Table, query: p4r.TableEntry, match: Match | None
    ) -> Iterator[tuple[Table, Match | None, StoredEntry]]:
        if query.is_default_action:
            yield table, None, self._defaults[table.id]
            return
        entries = self._entries[table.id]
        if match is not None:
            stored = entries.get(match)
            if stored is not None:
                yield table, match, stored
            return
        wanted = table.actions.get(query.action.action.action_id)
        if query.HasField("action") and wanted is None:
            return
        for candidate, stored in entries.items():
            if query.priority and candidate.priority != query.priority:
                continue
            if wanted is not None and stored.action != wanted.position:
                continue
            if query.controller_metadata and (
                stored.controller_metadata != query.controller_metadata
            ):
                continue
            if query.metadata and stored.metadata != query.metadata:
                continue
            yield table, candidate, stored

    def _modify_default(self, table: Table, entry: p4r.TableEntry) -> None:
        if entry.match or entry.priority:
            raise RequestError(
                rpc_code.INVALID_ARGUMENT,
                f"table {table.name}: the default entry takes neither match nor priority",
            )
        if table.is_default_const:
            raise RequestError(
                rpc_code.PERMISSION_DENIED, f"table {table.name}: the default action is const"
            )
        if entry.HasField("action"):
            action, params = decode_action(table, entry.action, is_default=True)
            stored = StoredEntry(action, params, entry.metadata, entry.controller_metadata)
        else:
            stored = _initial_default(table)
        self.dataplane.table_set_default(table.position, stored.action, stored.params)
        self._defaults[table.id] = stored
        if entry.HasField("counter_data"):
            self._write_counter(table, None, entry.counter_data)

    def _find(self, table: Table, match: Match) -> StoredEntry:
        stored = self._entries[table.id].get(match)
        if stored is None:
            raise RequestError(
                rpc_code.NOT_FOUND, f"table {table.name}: no entry with this match and priority"
            )
        return stored

    def _counted_table(self, table_id: int) -> Table:
        table = self._schema.table(table_id)
        if not table.has_counter:
            raise RequestError(
                rpc_code.INVALID_ARGUMENT, f"table {table.name} has no direct counter"
            )
        return table

    def _write_counter(self, table: Table, match: Match | None, data: p4r.CounterData) -> None:
        self._counted_table(table.id)
        self.dataplane.direct_counter_write(
            table.position, match, data.packet_count, data.byte_count
        )


def _initial_default(table: Table) -> StoredEntry:
    action = table.program.default_action
    assert action is not None, "p4c gives every table a default action"
    return StoredEntry(action.position, table.program.default_params)


def _check_features(table: Table, entry: p4r.TableEntry) -> None:
    if entry.idle_timeout_ns:
        raise RequestError(
            rpc_code.UNIMPLEMENTED,
            f"table {table.name}: idle_timeout_ns: idle timeouts are not supported",
        )
    if entry.HasField("meter_config"):
        raise RequestError(
            rpc_code.UNIMPLEMENTED,
            f"table {table.name}: meter_config: direct meters are not supported",
        )
    if entry.HasField("counter_data") and not table.has_counter:
        raise RequestError(
            rpc_code.INVALID_ARGUMENT,
            f"table {table.name}: counter_data: the table has no direct counter",
        )


def _no_default(table: Table, verb: str) -> RequestError:
    return RequestError(
        rpc_code.INVALID_ARGUMENT,
        f"table {table.name}: {verb} of the default entry; it always exists, use MODIFY",
    )


def _const_table(table: Table) -> RequestError:
    return RequestError(
        rpc_code.PERMISSION_DENIED, f"table {table.name}: its entries are const in the program"
    )
