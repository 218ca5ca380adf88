# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The stores of one loaded program, and the choice of the store for an entity."""

from collections.abc import Iterator

from finsy.proto import p4r, rpc_code

from ..p4info.schema import Schema
from ..service.digests import DigestStore
from ..service.status import RequestError
from ..writes.insert_run import InsertRun, insert_plans
from ..writes.journal import Backend
from .arrays import ArrayStore
from .meters import MeterStore
from .profile_store import ProfileStore
from .replication import ReplicationStore
from .table_read import TableReader
from .table_store import TableStore
from .value_sets import ValueSetStore

_TYPES = {p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE}


class Stores:
    """All forwarding state that controllers have written. The caller serialises calls."""

    def __init__(self, schema: Schema, backend: Backend) -> None:
        self.profiles = ProfileStore(schema, backend)
        self.tables = TableStore(schema, backend, self.profiles)
        self.reader = TableReader(self.tables)
        self._plans = insert_plans(schema)
        self.arrays = ArrayStore(schema, backend)
        self.meters = MeterStore(schema, backend)
        self.replication = ReplicationStore(backend)
        self.value_sets = ValueSetStore(schema, backend)
        self.digests = DigestStore(schema, backend)

    def start_run(self) -> InsertRun:
        """Return an empty run of plain insertions, for one batch."""
        return InsertRun(self._plans, self.tables)

    def write(self, update: p4r.Update) -> None:  # noqa: PLR0912 - one case per entity
        """Carry out one update; if it fails halfway, the caller undoes it with the journal."""
        if update.type not in _TYPES:
            raise RequestError(
                rpc_code.INVALID_ARGUMENT, f"type {update.type}: INSERT, MODIFY, DELETE"
            )
        entity = update.entity
        match entity.WhichOneof("entity"):
            case "table_entry":
                if update.type == p4r.Update.INSERT:
                    self.tables.insert(entity.table_entry)
                elif update.type == p4r.Update.MODIFY:
                    self.tables.modify(entity.table_entry)
                else:
                    self.tables.delete(entity.table_entry)
            case "direct_counter_entry":
                self.tables.write_direct_counter(update.type, entity.direct_counter_entry)
            case "direct_meter_entry":
                self.tables.write_direct_meter(update.type, entity.direct_meter_entry)
            case "counter_entry":
                self.arrays.write_counter(update.type, entity.counter_entry)
            case "register_entry":
                self.arrays.write_register(update.type, entity.register_entry)
            case "meter_entry":
                self.meters.write(update.type, entity.meter_entry)
            case "action_profile_member":
                self.profiles.write_member(update.type, entity.action_profile_member)
            case "action_profile_group":
                self.profiles.write_group(update.type, entity.action_profile_group)
            case "packet_replication_engine_entry":
                self.replication.write(update.type, entity.packet_replication_engine_entry)
            case "value_set_entry":
                self.value_sets.write(update.type, entity.value_set_entry)
            case "digest_entry":
                self.digests.write(update.type, entity.digest_entry)
            case "extern_entry":
                raise _extern(entity.extern_entry)
            case None:
                raise RequestError(rpc_code.INVALID_ARGUMENT, "entity: is not set")

    def read(self, query: p4r.Entity) -> Iterator[p4r.Entity]:
        """Read what the query selects now; much of it is encoded as the iterator is used."""
        match query.WhichOneof("entity"):
            case "table_entry":
                return self.reader.read(query.table_entry)
            case "direct_counter_entry":
                return self.reader.read_direct_counters(query.direct_counter_entry)
            case "counter_entry":
                return self.arrays.read_counters(query.counter_entry)
            case "register_entry":
                return self.arrays.read_registers(query.register_entry)
            case _:
                # Few entities, so encoded at once: a refusal must come before the first answer.
                return iter(list(self._read(query)))

    def _read(self, query: p4r.Entity) -> Iterator[p4r.Entity]:  # noqa: PLR0911 - one case per entity
        match query.WhichOneof("entity"):
            case "direct_meter_entry":
                return self.reader.read_direct_meters(query.direct_meter_entry)
            case "meter_entry":
                return self.meters.read(query.meter_entry)
            case "action_profile_member":
                return self.profiles.read_members(query.action_profile_member)
            case "action_profile_group":
                return self.profiles.read_groups(query.action_profile_group)
            case "packet_replication_engine_entry":
                return self.replication.read(query.packet_replication_engine_entry)
            case "value_set_entry":
                return self.value_sets.read(query.value_set_entry)
            case "digest_entry":
                return self.digests.read(query.digest_entry)
            case "extern_entry":
                if query.extern_entry.extern_type_id:
                    raise _extern(query.extern_entry)
                return iter(())
            case _:
                raise RequestError(rpc_code.INVALID_ARGUMENT, "entities: entity is not set")


def _extern(entry: p4r.ExternEntry) -> RequestError:
    return RequestError(
        rpc_code.UNIMPLEMENTED,
        f"extern_entry: extern_type_id {entry.extern_type_id}: v1model's externs have entities of "
        "their own",
    )
