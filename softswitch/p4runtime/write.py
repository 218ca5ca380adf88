# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The Write RPC: each update of a batch on its own, in order (P4Runtime 1.4 section 12)."""

from finsy.proto import p4r, rpc_code

from softswitch.errors import SoftswitchError
from softswitch.p4runtime.p4info import Array
from softswitch.p4runtime.pipeline_config import Pipeline
from softswitch.p4runtime.status import RequestError, request_error
from softswitch.p4runtime.values import decode


def write_updates(pipeline: Pipeline, request: p4r.WriteRequest) -> list[RequestError | None]:
    """Carry out all updates; returns one result per update, None for success."""
    if request.atomicity != p4r.WriteRequest.CONTINUE_ON_ERROR:
        raise RequestError(rpc_code.UNIMPLEMENTED, "atomicity: only CONTINUE_ON_ERROR is supported")
    results: list[RequestError | None] = []
    for update in request.updates:
        try:
            _write_update(pipeline, update)
        except SoftswitchError as exc:
            results.append(request_error(exc))
        else:
            results.append(None)
    return results


def _write_update(pipeline: Pipeline, update: p4r.Update) -> None:
    kind = update.entity.WhichOneof("entity")
    if update.type not in _TYPES:
        raise RequestError(rpc_code.INVALID_ARGUMENT, f"type {update.type}: INSERT, MODIFY, DELETE")
    if kind == "table_entry":
        entry = update.entity.table_entry
        if update.type == p4r.Update.INSERT:
            pipeline.tables.insert(entry)
        elif update.type == p4r.Update.MODIFY:
            pipeline.tables.modify(entry)
        else:
            pipeline.tables.delete(entry)
    elif kind == "packet_replication_engine_entry":
        pipeline.replication.write(update.type, update.entity.packet_replication_engine_entry)
    elif kind in {"counter_entry", "direct_counter_entry", "register_entry"}:
        _modify_state(pipeline, update, kind)
    elif kind is None:
        raise RequestError(rpc_code.INVALID_ARGUMENT, "entity: is not set")
    else:
        raise RequestError(rpc_code.UNIMPLEMENTED, f"entity: {kind} is not supported")


_TYPES = {p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE}


def _modify_state(pipeline: Pipeline, update: p4r.Update, kind: str) -> None:
    if update.type != p4r.Update.MODIFY:
        raise RequestError(
            rpc_code.INVALID_ARGUMENT, f"{kind}: always exists, only MODIFY is valid"
        )
    if kind == "direct_counter_entry":
        pipeline.tables.write_direct_counter(update.entity.direct_counter_entry)
    elif kind == "counter_entry":
        _write_counter(pipeline, update.entity.counter_entry)
    else:
        _write_register(pipeline, update.entity.register_entry)


def _write_counter(pipeline: Pipeline, entry: p4r.CounterEntry) -> None:
    array = find_array(pipeline.schema.counters, entry.counter_id, "counter_id")
    data = entry.data
    for index in cells(array, entry, "counter"):
        pipeline.dataplane.counter_write(array.position, index, data.packet_count, data.byte_count)


def _write_register(pipeline: Pipeline, entry: p4r.RegisterEntry) -> None:
    array = find_array(pipeline.schema.registers, entry.register_id, "register_id")
    if entry.data.WhichOneof("data") != "bitstring":
        raise RequestError(
            rpc_code.INVALID_ARGUMENT, f"register {array.name}: data: a bitstring is expected"
        )
    value = decode(entry.data.bitstring, array.width, f"register {array.name}")
    for index in cells(array, entry, "register"):
        pipeline.dataplane.register_write(array.position, index, value)


def find_array(arrays: dict[int, Array], array_id: int, field: str) -> Array:
    """Return a counter or register by id or raise NOT_FOUND."""
    array = arrays.get(array_id)
    if array is None:
        raise RequestError(rpc_code.NOT_FOUND, f"{field} {array_id} is not in the P4Info")
    return array


def cells(array: Array, entry: p4r.CounterEntry | p4r.RegisterEntry, kind: str) -> range:
    """Return the indexes that an entry selects; an unset index selects all."""
    if not entry.HasField("index"):
        return range(array.size)
    index = entry.index.index
    if index < 0:
        raise RequestError(rpc_code.INVALID_ARGUMENT, f"{kind} {array.name}: index {index}")
    if index >= array.size:
        raise RequestError(
            rpc_code.OUT_OF_RANGE, f"{kind} {array.name}: index {index}, size is {array.size}"
        )
    return range(index, index + 1)
