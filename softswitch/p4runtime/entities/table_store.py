# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The entries of one loaded program: what Write changes in the data plane."""

# pyright: reportDeprecated=false
# controller_metadata is deprecated, and clients in use send it.

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from finsy.proto import p4r, rpc_code

from ...errors import EntryExistsError, SoftswitchError, TableFullError
from ..p4info.schema import Schema, Table
from ..service.dataplane import HeldEntry, Match
from ..service.status import RequestError, request_error
from ..writes.journal import Backend
from .arrays import check_modify, counts_of
from .direct_resources import (
    check_counter,
    check_meter,
    check_written,
)
from .match_fields import decode_match
from .meters import check_config, rates_of, refuse_counters
from .profile_store import ProfileStore
from .table_entry import (
    NO_ACTION,
    PLAIN,
    Annotation,
    StoredEntry,
    decode_action,
    initial_default,
    stored_entry,
)


class Row(NamedTuple):
    """An entry as a Read finds it."""

    table: Table
    match: Match | None
    """None: the default entry."""
    stored: StoredEntry
    counts: tuple[int, int] | None
    """None if the table has no direct counter."""
    idle_ns: int | None
    """None if the table has no timeouts."""


class TableStore:
    """Table entries and their direct resources. The caller serialises calls."""

    def __init__(self, schema: Schema, backend: Backend, profiles: ProfileStore) -> None:
        self.schema = schema
        self._backend = backend
        self._profiles = profiles
        self.defaults: dict[int, StoredEntry] = {}
        self._annotations: dict[int, dict[Match, Annotation]] = {}
        for table in schema.tables.values():
            self.defaults[table.id] = initial_default(table)
            self._annotations[table.id] = {}

    def get(self, table: Table, match: Match) -> StoredEntry | None:
        """Return an entry; None if there is none."""
        row = self.row(table, match)
        return None if row is None else row.stored

    def rows(self, table: Table) -> Iterator[Row]:
        """Return all entries as they are now."""
        held: Iterator[HeldEntry] = self._backend.dataplane.tables.entries(table.position)
        annotations = dict(self._annotations[table.id])
        return (
            Row(
                table,
                item.match,
                stored_entry(table, item, annotations.get(item.match, PLAIN)),
                item.counts,
                item.idle_ns,
            )
            for item in held
        )

    def row(self, table: Table, match: Match) -> Row | None:
        """Return one entry as it is now; None if there is none."""
        held: HeldEntry | None = self._backend.dataplane.tables.get(table.position, match)
        if held is None:
            return None
        stored = stored_entry(table, held, self._annotation(table, match))
        return Row(table, match, stored, held.counts, held.idle_ns)

    def default_row(self, table: Table) -> Row:
        """Return the default entry as it is now."""
        counts = None
        if table.has_counter:
            counts = self._backend.dataplane.tables.read_counter(table.position, None)
        return Row(table, None, self.defaults[table.id], counts, None)

    def insert(self, entry: p4r.TableEntry) -> None:
        """Add an entry; raises ALREADY_EXISTS, RESOURCE_EXHAUSTED or the code of a bad value."""
        table = self.schema.table(entry.table_id)
        if entry.is_default_action:
            raise _no_default(table, "INSERT")
        check_written(table, entry)
        if table.is_const:
            raise _const_table(table)
        if not table.fields:
            raise RequestError(
                rpc_code.INVALID_ARGUMENT,
                f"table {table.name}: has no key, and so no entries but the default one",
            )
        match = decode_match(table, entry)
        stored = self._decode(table, entry)
        try:
            self._insert(table, match, stored)
        except (EntryExistsError, TableFullError) as exc:
            raise self.insert_error(table, exc) from exc
        self._backend.journal.note(lambda: self._delete(table, match))
        self._retain(table, stored)
        if entry.HasField("meter_config"):
            self._set_meter(table, match, entry.meter_config)
        if entry.HasField("counter_data"):
            self._write_counter(table, match, entry.counter_data)

    def insert_plain(
        self,
        table: Table,
        entries: Sequence[tuple[bytes, int, bytes]],
        *,
        stop_at_failure: bool,
    ) -> list[RequestError | None]:
        """Add checked (key, action, params) to an exact table; return a result for each tried."""
        tried, errors = self._backend.dataplane.tables.insert_many(
            table.position, entries, stop_at_failure=stop_at_failure
        )
        results: list[RequestError | None] = [None] * tried
        for at, error in errors.items():
            results[at] = self.insert_error(table, error)
        if self._backend.journal.is_batch:
            added = [entries[at][0] for at in range(tried) if at not in errors]
            self._backend.journal.note(lambda: self._delete_plain(table, added))
        return results

    def _delete_plain(self, table: Table, keys: list[bytes]) -> None:
        for key in reversed(keys):
            self._delete(table, Match(key))

    def insert_error(self, table: Table, error: SoftswitchError) -> RequestError:
        """Return P4Runtime's error for an insertion that the data plane has refused."""
        if isinstance(error, EntryExistsError):
            return RequestError(
                rpc_code.ALREADY_EXISTS, f"table {table.name}: an entry with this match exists"
            )
        if isinstance(error, TableFullError):
            held = self._backend.dataplane.tables.size(table.position)
            return RequestError(
                rpc_code.RESOURCE_EXHAUSTED,
                f"table {table.name} is full: {held} entries of {table.max_size}",
            )
        return request_error(error)

    def modify(self, entry: p4r.TableEntry) -> None:
        """Change an entry or the default entry; raises NOT_FOUND if there is none.

        Without an action, the entry keeps its own, and only direct resources change.
        """
        table = self.schema.table(entry.table_id)
        check_written(table, entry)
        if entry.is_default_action:
            self._modify_default(table, entry)
            return
        match = decode_match(table, entry)
        old = self._find(table, match)
        if entry.HasField("action"):
            if old.is_const:
                raise _const_table(table)
            new = replace(self._decode(table, entry), meter=old.meter)
            self._modify(table, match, new)
            self._backend.journal.note(lambda: self._modify(table, match, old))
            self._retain(table, new)
            self._release(table, old)
        if table.meter is not None:
            has_meter = entry.HasField("meter_config")
            self._set_meter(table, match, entry.meter_config if has_meter else None)
        if entry.HasField("counter_data"):
            self._write_counter(table, match, entry.counter_data)

    def delete(self, entry: p4r.TableEntry) -> None:
        """Remove the entry with this match and priority; other fields are ignored."""
        table = self.schema.table(entry.table_id)
        if entry.is_default_action:
            raise _no_default(table, "DELETE")
        if table.is_const:
            raise _const_table(table)
        match = decode_match(table, entry)
        old = self._find(table, match)
        counts = self._counts(table, match)
        self._delete(table, match)
        self._backend.journal.note(lambda: self._restore(table, match, old, counts))
        self._release(table, old)

    def write_direct_counter(self, update_type: int, entry: p4r.DirectCounterEntry) -> None:
        """Set the direct counter of an entry; unset data changes nothing."""
        check_modify(update_type, "direct_counter_entry")
        check_counter(self.schema.table(entry.table_entry.table_id))
        table, match = self.find_entry(entry.table_entry)
        if entry.HasField("data"):
            self._write_counter(table, match, entry.data)

    def write_direct_meter(self, update_type: int, entry: p4r.DirectMeterEntry) -> None:
        """Configure the direct meter of an entry; without a config, all packets are green."""
        check_modify(update_type, "direct_meter_entry")
        meter = check_meter(self.schema.table(entry.table_entry.table_id))
        table, match = self.find_entry(entry.table_entry)
        if entry.HasField("counter_data"):
            raise refuse_counters(f"table {table.name}: counter_data")
        if entry.HasField("config"):
            check_config(meter, entry.config)
        self._set_meter(table, match, entry.config if entry.HasField("config") else None)

    def find_entry(self, entry: p4r.TableEntry) -> tuple[Table, Match | None]:
        """Return the entry that a direct resource belongs to; None is the default entry."""
        table = self.schema.table(entry.table_id)
        if entry.is_default_action:
            _check_no_key(table, entry)
            return table, None
        match = decode_match(table, entry)
        self._find(table, match)
        return table, match

    def _decode(self, table: Table, entry: p4r.TableEntry) -> StoredEntry:
        if table.profile is None or not entry.HasField("action"):
            action, params = decode_action(table, entry.action, is_default=False)
            choice = None
        else:
            action, params = NO_ACTION, b""
            choice = self._profiles.resolve(table.profile, entry.action)
        return StoredEntry(
            action,
            params,
            entry.metadata,
            entry.controller_metadata,
            choice=choice,
            idle_timeout_ns=entry.idle_timeout_ns,
        )

    def _insert(self, table: Table, match: Match, stored: StoredEntry) -> None:
        self._backend.dataplane.tables.insert(
            table.position, match, stored.action, stored.params, **_options(stored)
        )
        self._annotate(table, match, stored.annotation)
        if stored.meter is not None:
            self._backend.dataplane.tables.write_meter(
                table.position, match, rates_of(stored.meter)
            )

    def _modify(self, table: Table, match: Match, stored: StoredEntry) -> None:
        self._backend.dataplane.tables.modify(
            table.position, match, stored.action, stored.params, **_options(stored)
        )
        self._annotate(table, match, stored.annotation)

    def _delete(self, table: Table, match: Match) -> None:
        self._backend.dataplane.tables.delete(table.position, match)
        self._annotations[table.id].pop(match, None)

    def _annotate(self, table: Table, match: Match, annotation: Annotation) -> None:
        if annotation == PLAIN:
            self._annotations[table.id].pop(match, None)
        else:
            self._annotations[table.id][match] = annotation

    def _restore(
        self, table: Table, match: Match, stored: StoredEntry, counts: tuple[int, int] | None
    ) -> None:
        self._insert(table, match, stored)
        if counts is not None:
            self._backend.dataplane.tables.write_counter(table.position, match, *counts)

    def _counts(self, table: Table, match: Match | None) -> tuple[int, int] | None:
        """Read the counter of an entry if it may have to be restored."""
        if not table.has_counter or not self._backend.journal.is_batch:
            return None
        return self._backend.dataplane.tables.read_counter(table.position, match)

    def _retain(self, table: Table, stored: StoredEntry) -> None:
        if stored.choice is not None and table.profile is not None:
            self._profiles.retain(table.profile, stored.choice)

    def _release(self, table: Table, stored: StoredEntry) -> None:
        if stored.choice is not None and table.profile is not None:
            self._profiles.release(table.profile, stored.choice)

    def _set_meter(self, table: Table, match: Match | None, config: p4r.MeterConfig | None) -> None:
        kept: p4r.MeterConfig | None = None
        if config is not None:
            kept = p4r.MeterConfig()
            kept.CopyFrom(config)
        old = (
            self.defaults[table.id].meter if match is None else self._annotation(table, match).meter
        )
        if kept == old:
            return
        self._assign_meter(table, match, kept)
        self._backend.journal.note(lambda: self._assign_meter(table, match, old))

    def _assign_meter(
        self, table: Table, match: Match | None, config: p4r.MeterConfig | None
    ) -> None:
        self._backend.dataplane.tables.write_meter(table.position, match, rates_of(config))
        if match is None:
            self.defaults[table.id] = replace(self.defaults[table.id], meter=config)
        else:
            annotation = self._annotation(table, match)
            self._annotate(table, match, annotation._replace(meter=config))

    def _annotation(self, table: Table, match: Match) -> Annotation:
        return self._annotations[table.id].get(match, PLAIN)

    def _write_counter(self, table: Table, match: Match | None, data: p4r.CounterData) -> None:
        counts = counts_of(f"table {table.name}", data)
        dataplane = self._backend.dataplane
        old = self._counts(table, match)
        dataplane.tables.write_counter(table.position, match, *counts)
        if old is not None:
            self._backend.journal.note(
                lambda: dataplane.tables.write_counter(table.position, match, *old)
            )

    def _modify_default(self, table: Table, entry: p4r.TableEntry) -> None:
        _check_no_key(table, entry)
        if table.is_default_const:
            has_resources = entry.HasField("counter_data") or entry.HasField("meter_config")
            if entry.HasField("action") or not has_resources:
                raise RequestError(
                    rpc_code.PERMISSION_DENIED, f"table {table.name}: the default action is const"
                )
        else:
            stored = initial_default(table)
            if entry.HasField("action"):
                action, params = decode_action(table, entry.action, is_default=True)
                stored = StoredEntry(action, params, entry.metadata, entry.controller_metadata)
            old = self.defaults[table.id]
            stored = replace(stored, meter=old.meter)
            self._set_default(table, stored)
            self._backend.journal.note(lambda: self._set_default(table, old))
        if table.meter is not None:
            has_meter = entry.HasField("meter_config")
            self._set_meter(table, None, entry.meter_config if has_meter else None)
        if entry.HasField("counter_data"):
            self._write_counter(table, None, entry.counter_data)

    def _set_default(self, table: Table, stored: StoredEntry) -> None:
        self._backend.dataplane.tables.set_default(table.position, stored.action, stored.params)
        self.defaults[table.id] = stored

    def _find(self, table: Table, match: Match) -> StoredEntry:
        stored = self.get(table, match)
        if stored is None:
            raise RequestError(
                rpc_code.NOT_FOUND, f"table {table.name}: no entry with this match and priority"
            )
        return stored


def _options(stored: StoredEntry) -> dict[str, Any]:
    """Return the options that the data plane gets only for entries that have them."""
    options: dict[str, Any] = {}
    if stored.choice is not None:
        options["indirect"] = stored.indirect
    if stored.idle_timeout_ns:
        options["idle_timeout_ns"] = stored.idle_timeout_ns
    return options


def _check_no_key(table: Table, entry: p4r.TableEntry) -> None:
    if entry.match or entry.priority:
        raise RequestError(
            rpc_code.INVALID_ARGUMENT,
            f"table {table.name}: the default entry takes neither match nor priority",
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
