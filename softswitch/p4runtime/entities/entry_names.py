# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Describes the table entries that packets hit, by the data plane's handles."""

from collections.abc import Callable, Iterable
from typing import Any

from finsy.proto import p4r

from ...errors import SoftswitchError
from ..service.device import Device
from ..service.pipeline_config import Pipeline
from ..service.status import RequestError
from .match_fields import decode_match

ENTRIES_MAX = 20_000
"""Tables with more entries are not searched."""


Reader = Callable[[p4r.Entity], Iterable[p4r.Entity]]
"""Answers one query of a ReadRequest."""


def device_reader(device: Device) -> Reader:
    """Return a reader under a device's lock; it returns nothing for a refused query."""

    def read(query: p4r.Entity) -> Iterable[p4r.Entity]:
        result = device.read(p4r.ReadRequest(device_id=device.device_id, entities=[query]))[0]
        return [] if isinstance(result, RequestError) else result

    return read


class EntryNames:
    """Entries by table position and handle; an unknown handle makes it read the table again."""

    def __init__(
        self,
        switch: Any,
        pipeline: Callable[[], Pipeline | None],
        read: Reader,
    ) -> None:
        self._switch = switch
        self._pipeline = pipeline
        self._read_entities = read
        self._known: dict[int, dict[int, str]] = {}
        self._of: Pipeline | None = None

    def describe(self, position: int, handle: int) -> str | None:
        """Return an entry's match and priority; None if it cannot be found."""
        pipeline = self._pipeline()
        if pipeline is None:
            return None
        if pipeline is not self._of:
            self._of, self._known = pipeline, {}
        if handle not in self._known.get(position, {}):
            self._known[position] = self._read(pipeline, position)
        return self._known[position].get(handle)

    def _read(self, pipeline: Pipeline, position: int) -> dict[int, str]:
        table = next((t for t in pipeline.schema.tables.values() if t.position == position), None)
        if table is None or self._switch.tables.size(position) > ENTRIES_MAX:
            return {}
        found: dict[int, str] = {}
        query = p4r.Entity(table_entry=p4r.TableEntry(table_id=table.id))
        for entity in self._read_entities(query):
            entry = entity.table_entry
            if entry.is_default_action:
                continue
            try:
                handle = self._switch.tables.find(position, decode_match(table, entry))
            except SoftswitchError:  # removed meanwhile
                continue
            found[handle] = describe_entry(entry)
        return found


def describe_entry(entry: p4r.TableEntry) -> str:
    """Return an entry's match and priority as text."""
    parts = [_match(field) for field in entry.match]
    if entry.priority:
        parts.append(f"priority {entry.priority}")
    return ", ".join(parts)


def _match(field: p4r.FieldMatch) -> str:
    match field.WhichOneof("field_match_type"):
        case "exact":
            return f"0x{field.exact.value.hex()}"
        case "lpm":
            return f"0x{field.lpm.value.hex()}/{field.lpm.prefix_len}"
        case "ternary":
            return f"0x{field.ternary.value.hex()}&&&0x{field.ternary.mask.hex()}"
        case "range":
            return f"0x{field.range.low.hex()}->0x{field.range.high.hex()}"
        case "optional":
            return f"0x{field.optional.value.hex()}"
        case _:
            return "?"
