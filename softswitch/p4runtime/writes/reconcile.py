# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""RECONCILE_AND_COMMIT: the state of one program as writes to another."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

from finsy.proto import p4i, p4r

from ...errors import SoftswitchError
from ..entities.stores import Stores
from ..entities.table_entry import (
    PLAIN,
    StoredEntry,
    encode_key,
    initial_default,
    initial_entries,
    stored_entry,
)
from ..entities.table_store import Row
from ..p4info.schema import Schema, Table
from ..service.status import PipelineConfigError
from .journal import Journal

ALWAYS_THERE = {"counter_entry", "register_entry", "meter_entry", "value_set_entry"}
"""Objects that a program starts with. Only those that differ from their start are written."""
_WILDCARDS = (
    p4r.Entity(action_profile_member=p4r.ActionProfileMember()),
    p4r.Entity(action_profile_group=p4r.ActionProfileGroup()),
    p4r.Entity(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry()),
    p4r.Entity(digest_entry=p4r.DigestEntry()),
    p4r.Entity(value_set_entry=p4r.ValueSetEntry()),
    p4r.Entity(meter_entry=p4r.MeterEntry()),
    p4r.Entity(counter_entry=p4r.CounterEntry()),
    p4r.Entity(register_entry=p4r.RegisterEntry()),
)


def carry_over(
    old: Stores, new: Stores, journal: Journal, old_info: p4i.P4Info, new_info: p4i.P4Info
) -> None:
    """Write the state of a program into another; PipelineConfigError if it does not fit there."""
    _compare_names(old_info, new_info)
    try:
        write_all(snapshot(old, new.tables.schema), new, journal)
    except SoftswitchError as exc:
        raise PipelineConfigError(
            f"RECONCILE_AND_COMMIT: the state cannot be kept: {exc}; use VERIFY_AND_COMMIT"
        ) from exc


def snapshot(old: Stores, schema: Schema) -> Iterator[p4r.Update]:
    """Copy the state of a program now, as writes for a fresh program of the given schema."""
    parts = [_entities(query, old.read(query)) for query in _WILDCARDS]
    removed = list(_initial_entries_removed(old, schema))
    tables = [
        _entries(table, schema, old.reader.read_all(table))
        for table in old.tables.schema.tables.values()
    ]
    defaults = list(_defaults(old))
    return chain(*parts, removed, *tables, defaults)


def write_all(updates: Iterable[p4r.Update], stores: Stores, journal: Journal) -> None:
    """Carry out writes for good; stop at the first that fails."""
    for update in updates:
        stores.write(update)
        journal.forget()


def _compare_names(old_info: p4i.P4Info, new_info: p4i.P4Info) -> None:
    old, new = _names(old_info), _names(new_info)
    problems = [
        f"id {number} was {name} and is {new[number]} now"
        for number, name in old.items()
        if new.get(number, name) != name
    ]
    if problems:
        raise PipelineConfigError("RECONCILE_AND_COMMIT: the state cannot be kept", problems)


def _names(info: p4i.P4Info) -> dict[int, str]:
    lists = (
        [item.preamble for item in info.tables],
        [item.preamble for item in info.actions],
        [item.preamble for item in info.action_profiles],
        [item.preamble for item in info.counters],
        [item.preamble for item in info.meters],
        [item.preamble for item in info.registers],
        [item.preamble for item in info.digests],
        [item.preamble for item in info.value_sets],
    )
    return {preamble.id: preamble.name for preambles in lists for preamble in preambles}


def _entities(query: p4r.Entity, found: Iterable[p4r.Entity]) -> Iterator[p4r.Update]:
    is_always_there = query.WhichOneof("entity") in ALWAYS_THERE
    for entity in found:
        if not is_always_there:
            yield p4r.Update(type=p4r.Update.INSERT, entity=entity)
        elif not _is_initial(entity):
            yield p4r.Update(type=p4r.Update.MODIFY, entity=entity)


def _is_initial(entity: p4r.Entity) -> bool:
    match entity.WhichOneof("entity"):
        case "counter_entry":
            return not entity.counter_entry.data.ListFields()
        case "register_entry":
            data = entity.register_entry.data
            return not any(data.bitstring) and not data.bool and not any(data.enum_value)
        case "meter_entry":
            return not entity.meter_entry.HasField("config")
        case _:
            return not entity.value_set_entry.members


def _initial_entries_removed(old: Stores, schema: Schema) -> Iterator[p4r.Update]:
    for table in schema.tables.values():
        was = old.tables.schema.tables.get(table.id)
        if was is None or table.is_const:
            continue
        for match in initial_entries(table):
            if old.tables.get(was, match) is None:
                entry = encode_key(table, match, StoredEntry(0, b""))
                yield p4r.Update(type=p4r.Update.DELETE, entity=p4r.Entity(table_entry=entry))


def _entries(
    table: Table, schema: Schema, rows: Iterable[tuple[Row, p4r.Entity]]
) -> Iterator[p4r.Update]:
    theirs = schema.tables.get(table.id)
    known = {} if theirs is None else initial_entries(theirs)
    for row, entity in rows:
        match, entry = row.match, entity.table_entry
        theirs_now = known.get(match) if match is not None else None
        is_initial = theirs_now is not None and row.stored == stored_entry(table, theirs_now, PLAIN)
        if entry.is_const or is_initial:  # only its counter and meter may have changed
            entry.is_const = False
            entry.ClearField("action")
            if not entry.HasField("meter_config") and not entry.counter_data.ListFields():
                continue
        kind = p4r.Update.MODIFY if match in known else p4r.Update.INSERT
        yield p4r.Update(type=kind, entity=entity)


def _defaults(old: Stores) -> Iterator[p4r.Update]:
    for table in old.tables.schema.tables.values():
        query = p4r.TableEntry(table_id=table.id, is_default_action=True)
        stored = old.tables.defaults[table.id]
        if replace(stored, meter=None) != initial_default(table):
            for entity in old.read(p4r.Entity(table_entry=query)):
                yield p4r.Update(type=p4r.Update.MODIFY, entity=entity)
        if stored.meter is not None:
            meter = p4r.DirectMeterEntry(table_entry=query, config=stored.meter)
            entity = p4r.Entity(direct_meter_entry=meter)
            yield p4r.Update(type=p4r.Update.MODIFY, entity=entity)
        if table.has_counter:
            counter = p4r.DirectCounterEntry(table_entry=query)
            for entity in old.read(p4r.Entity(direct_counter_entry=counter)):
                if entity.direct_counter_entry.data.ListFields():
                    yield p4r.Update(type=p4r.Update.MODIFY, entity=entity)
