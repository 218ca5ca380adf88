# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Indirect counters and registers (sections 9.3 and 9.7)."""

from collections.abc import Iterator

from finsy.proto import p4r, rpc_code

from ..p4info.schema import Array, Schema, find, select
from ..service.status import RequestError
from ..writes.journal import Backend


def check_modify(update_type: int, kind: str) -> None:
    """Raise INVALID_ARGUMENT unless the update of an object that always exists is MODIFY."""
    if update_type != p4r.Update.MODIFY:
        raise RequestError(
            rpc_code.INVALID_ARGUMENT, f"{kind}: always exists, only MODIFY is valid"
        )


def selected_indexes(
    label: str, size: int, entry: p4r.CounterEntry | p4r.RegisterEntry | p4r.MeterEntry
) -> range:
    """Return the indexes that an entry selects; an unset index selects all."""
    if not entry.HasField("index"):
        return range(size)
    index = entry.index.index
    if index < 0:
        raise RequestError(rpc_code.INVALID_ARGUMENT, f"{label}: index {index}")
    if index >= size:
        raise RequestError(rpc_code.OUT_OF_RANGE, f"{label}: index {index}, size is {size}")
    return range(index, index + 1)


def counts_of(label: str, data: p4r.CounterData) -> tuple[int, int]:
    """Return packets and bytes to set a counter to."""
    if data.packet_count < 0 or data.byte_count < 0:
        raise RequestError(rpc_code.INVALID_ARGUMENT, f"{label}: data: must not be negative")
    return data.packet_count, data.byte_count


class ArrayStore:
    """Reads and writes the arrays, which the data plane holds. The caller serialises calls.

    Values are read at once and encoded as the answer is sent.
    """

    def __init__(self, schema: Schema, backend: Backend) -> None:
        self._schema = schema
        self._backend = backend

    def write_counter(self, update_type: int, entry: p4r.CounterEntry) -> None:
        """Set one counter or, without an index, all; unset data changes nothing."""
        check_modify(update_type, "counter_entry")
        array = find(self._schema.counters, entry.counter_id, "counter_id")
        label = f"counter {array.name}"
        indexes = selected_indexes(label, array.size, entry)
        if not entry.HasField("data"):
            return
        counts = counts_of(label, entry.data)
        for index in indexes:
            self._set_counter(array, index, counts)

    def write_register(self, update_type: int, entry: p4r.RegisterEntry) -> None:
        """Set one cell or, without an index, all."""
        check_modify(update_type, "register_entry")
        array = find(self._schema.registers, entry.register_id, "register_id")
        assert array.data is not None
        label = f"register {array.name}"
        (value,) = array.data.decode(entry.data, label)
        for index in selected_indexes(label, array.size, entry):
            self._set_register(array, index, value)

    def read_counters(self, query: p4r.CounterEntry) -> Iterator[p4r.Entity]:
        """Return the selected counters; id 0 selects those of all arrays."""
        found = [
            (array.id, index, self._backend.dataplane.arrays.read_counter(array.position, index))
            for array in select(self._schema.counters, query.counter_id, "counter_id")
            for index in selected_indexes(f"counter {array.name}", array.size, query)
        ]
        return (_encode_counter(*row) for row in found)

    def read_registers(self, query: p4r.RegisterEntry) -> Iterator[p4r.Entity]:
        """Return the selected cells; id 0 selects those of all registers."""
        found = [
            (array, index, self._backend.dataplane.arrays.read_register(array.position, index))
            for array in select(self._schema.registers, query.register_id, "register_id")
            for index in selected_indexes(f"register {array.name}", array.size, query)
        ]
        return (_encode_register(*row) for row in found)

    def _set_counter(self, array: Array, index: int, counts: tuple[int, int]) -> None:
        dataplane = self._backend.dataplane
        if self._backend.journal.is_batch:
            old = dataplane.arrays.read_counter(array.position, index)
            self._backend.journal.note(
                lambda: dataplane.arrays.write_counter(array.position, index, *old)
            )
        dataplane.arrays.write_counter(array.position, index, *counts)

    def _set_register(self, array: Array, index: int, value: bytes) -> None:
        dataplane = self._backend.dataplane
        if self._backend.journal.is_batch:
            old = dataplane.arrays.read_register(array.position, index)
            self._backend.journal.note(
                lambda: dataplane.arrays.write_register(array.position, index, old)
            )
        dataplane.arrays.write_register(array.position, index, value)


def _encode_counter(counter_id: int, index: int, counts: tuple[int, int]) -> p4r.Entity:
    entry = p4r.CounterEntry(counter_id=counter_id)
    entry.index.index = index
    entry.data.packet_count, entry.data.byte_count = counts
    return p4r.Entity(counter_entry=entry)


def _encode_register(array: Array, index: int, value: bytes) -> p4r.Entity:
    assert array.data is not None
    entry = p4r.RegisterEntry(register_id=array.id, data=array.data.encode(iter((value,))))
    entry.index.index = index
    return p4r.Entity(register_entry=entry)
