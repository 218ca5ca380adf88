# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The Read RPC: entities selected by id, match or wildcard (P4Runtime 1.4 section 13)."""

from finsy.proto import p4r, rpc_code

from softswitch.p4runtime.p4info import Array
from softswitch.p4runtime.pipeline_config import Pipeline
from softswitch.p4runtime.status import RequestError
from softswitch.p4runtime.values import encode
from softswitch.p4runtime.write import cells, find_array


def read_entities(pipeline: Pipeline, request: p4r.ReadRequest) -> list[p4r.Entity]:
    """Return every entity that the request selects, in its order."""
    found: list[p4r.Entity] = []
    for query in request.entities:
        found.extend(_read_entity(pipeline, query))
    return found


def _read_entity(pipeline: Pipeline, query: p4r.Entity) -> list[p4r.Entity]:
    kind = query.WhichOneof("entity")
    if kind == "table_entry":
        return pipeline.tables.read(query.table_entry)
    if kind == "direct_counter_entry":
        return pipeline.tables.read_direct_counters(query.direct_counter_entry)
    if kind == "packet_replication_engine_entry":
        return pipeline.replication.read(query.packet_replication_engine_entry)
    if kind == "counter_entry":
        return _read_counters(pipeline, query.counter_entry)
    if kind == "register_entry":
        return _read_registers(pipeline, query.register_entry)
    if kind is None:
        raise RequestError(rpc_code.INVALID_ARGUMENT, "entities: entity is not set")
    return _read_absent(pipeline, query, kind)


_ABSENT = {
    "action_profile_member": ("action_profile_id", "action_profiles"),
    "action_profile_group": ("action_profile_id", "action_profiles"),
    "meter_entry": ("meter_id", "meters"),
    "direct_meter_entry": ("table_entry", "direct_meters"),
    "value_set_entry": ("value_set_id", "value_sets"),
    "digest_entry": ("digest_id", "digests"),
}
"""Entities without support: the field that selects one, the P4Info list that declares them."""


def _read_absent(pipeline: Pipeline, query: p4r.Entity, kind: str) -> list[p4r.Entity]:
    """Return nothing for a wildcard over objects that the program does not have."""
    selector, declared = _ABSENT.get(kind, ("", ""))
    if not declared or getattr(pipeline.config.p4info, declared):
        raise RequestError(rpc_code.UNIMPLEMENTED, f"entities: {kind} is not supported")
    entry = getattr(query, kind)
    if getattr(entry, selector) and selector != "table_entry":
        raise RequestError(
            rpc_code.NOT_FOUND, f"entities: {kind}: the program has no {declared.replace('_', ' ')}"
        )
    return []


def _arrays(arrays: dict[int, Array], array_id: int, field: str) -> list[Array]:
    if array_id == 0:
        return list(arrays.values())
    return [find_array(arrays, array_id, field)]


def _read_counters(pipeline: Pipeline, query: p4r.CounterEntry) -> list[p4r.Entity]:
    found: list[p4r.Entity] = []
    for array in _arrays(pipeline.schema.counters, query.counter_id, "counter_id"):
        for index in cells(array, query, "counter"):
            packets, octets = pipeline.dataplane.counter_read(array.position, index)
            entry = p4r.CounterEntry(
                counter_id=array.id,
                index=p4r.Index(index=index),
                data=p4r.CounterData(packet_count=packets, byte_count=octets),
            )
            found.append(p4r.Entity(counter_entry=entry))
    return found


def _read_registers(pipeline: Pipeline, query: p4r.RegisterEntry) -> list[p4r.Entity]:
    found: list[p4r.Entity] = []
    for array in _arrays(pipeline.schema.registers, query.register_id, "register_id"):
        for index in cells(array, query, "register"):
            entry = p4r.RegisterEntry(register_id=array.id, index=p4r.Index(index=index))
            value = pipeline.dataplane.register_read(array.position, index)
            entry.data.bitstring = encode(value)
            found.append(p4r.Entity(register_entry=entry))
    return found
