# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Parser value sets (section 9.6)."""

from collections.abc import Iterator

from finsy.proto import p4i, p4r, rpc_code

from ..p4info.schema import Schema, ValueSet, find, select
from ..p4info.values import prefix_mask
from ..service.status import RequestError
from ..writes.journal import Backend
from .arrays import check_modify
from .match_fields import decode_fields, encode_field

_Fields = tuple[tuple[bytes, bytes, int | None], ...]
"""Value, mask and prefix length of each field of one member."""


class ValueSetStore:
    """The members of each value set of one program. The caller serialises calls."""

    def __init__(self, schema: Schema, backend: Backend) -> None:
        self._sets = schema.value_sets
        self._backend = backend
        self._members: dict[int, list[_Fields]] = {item: [] for item in schema.value_sets}

    def write(self, update_type: int, entry: p4r.ValueSetEntry) -> None:
        """Replace the members of a set."""
        check_modify(update_type, "value_set_entry")
        value_set = find(self._sets, entry.value_set_id, "value_set_id")
        if len(entry.members) > value_set.size:
            raise RequestError(
                rpc_code.RESOURCE_EXHAUSTED,
                f"{value_set.label}: {len(entry.members)} members, {value_set.size} at most",
            )
        members = [tuple(decode_fields(value_set, item.match)) for item in entry.members]
        if len(set(members)) != len(members):
            raise RequestError(
                rpc_code.ALREADY_EXISTS, f"{value_set.label}: a member is given twice"
            )
        if any(field.match_type == p4i.MatchField.RANGE for field in value_set.fields):
            raise RequestError(
                rpc_code.UNIMPLEMENTED, f"{value_set.label}: ranges are not matched in parsers"
            )
        old = self._members[value_set.id]
        self._assign(value_set, members)
        self._backend.journal.note(lambda: self._assign(value_set, old))

    def read(self, query: p4r.ValueSetEntry) -> Iterator[p4r.Entity]:
        """Return the selected sets; id 0 selects all."""
        for value_set in select(self._sets, query.value_set_id, "value_set_id"):
            entry = p4r.ValueSetEntry(value_set_id=value_set.id)
            for fields in self._members[value_set.id]:
                match = entry.members.add().match
                for item, (key, mask, bits) in zip(value_set.fields, fields, strict=True):
                    encoded = encode_field(item, key, mask, bits or 0)
                    if encoded is not None:
                        match.append(encoded)
            yield p4r.Entity(value_set_entry=entry)

    def _assign(self, value_set: ValueSet, members: list[_Fields]) -> None:
        packed = [_pack(value_set, fields) for fields in members]
        self._backend.dataplane.arrays.write_value_set(value_set.position, packed)
        self._members[value_set.id] = members


def _pack(value_set: ValueSet, fields: _Fields) -> tuple[bytes, bytes]:
    """Return value and mask of a member, all fields one after the other."""
    masks = [
        prefix_mask(bits or 0, item.width) if item.match_type == p4i.MatchField.LPM else mask
        for item, (_, mask, bits) in zip(value_set.fields, fields, strict=True)
    ]
    return b"".join(key for key, _, _ in fields), b"".join(masks)
