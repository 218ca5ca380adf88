# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""TableEntry messages to and from the packed keys and parameters of the pipeline."""

from dataclasses import dataclass

from finsy.proto import p4i, p4r, rpc_code

from softswitch.p4runtime.dataplane import Match
from softswitch.p4runtime.p4info import Action, MatchField, Schema, Table
from softswitch.p4runtime.status import RequestError
from softswitch.p4runtime.values import (
    covers,
    decode,
    encode,
    field_bytes,
    full_mask,
    prefix_mask,
    split,
)


@dataclass(slots=True)
class StoredEntry:
    """An entry as the store keeps it."""

    action: int
    """Position in the JSON's actions."""
    params: bytes
    metadata: bytes = b""
    controller_metadata: int = 0
    is_const: bool = False


def decode_match(table: Table, entry: p4r.TableEntry) -> Match:
    """Pack the match of an entry; RequestError names the field that is wrong."""
    _check_priority(table, entry.priority)
    if table.is_all_exact:
        key = b"".join(_exact_values(table, entry))
        return Match(key, b"", 0, 0)
    by_id = {item.field_id: item for item in entry.match}
    if len(by_id) != len(entry.match):
        raise _bad(table, "match", "the same field_id twice")
    keys: list[bytes] = []
    masks: list[bytes] = []
    prefix_len = 0
    for item in table.fields:
        given = by_id.pop(item.id, None)
        key, mask, bits = _decode_field(table, item, given)
        keys.append(key)
        masks.append(mask)
        if bits is not None:
            prefix_len = bits
    if by_id:
        raise _bad(table, "match", f"no match field has id {min(by_id)}")
    return Match(b"".join(keys), b"".join(masks), prefix_len, entry.priority)


def _exact_values(table: Table, entry: p4r.TableEntry) -> list[bytes]:
    match = entry.match
    fields = table.fields
    if len(match) != len(fields):
        known = {item.field_id for item in match}
        missing = [item.name for item in fields if item.id not in known]
        raise _bad(table, "match", f"missing or surplus fields; missing: {missing or 'none'}")
    values: list[bytes] = []
    for item, given in zip(fields, match, strict=True):
        if given.field_id != item.id:  # any order is allowed, the usual one is fast
            return _exact_values_unordered(table, entry)
        if not given.HasField("exact"):
            raise _bad(table, item.name, "an exact match is expected")
        values.append(decode(given.exact.value, item.width, item.name))
    return values


def _exact_values_unordered(table: Table, entry: p4r.TableEntry) -> list[bytes]:
    by_id = {item.field_id: item for item in entry.match}
    values: list[bytes] = []
    for item in table.fields:
        given = by_id.get(item.id)
        if given is None:
            raise _bad(table, item.name, "exact match field is missing")
        if not given.HasField("exact"):
            raise _bad(table, item.name, "an exact match is expected")
        values.append(decode(given.exact.value, item.width, item.name))
    return values


def _check_priority(table: Table, priority: int) -> None:
    if table.needs_priority:
        if priority <= 0:
            raise _bad(table, "priority", f"{priority}: must be positive in this table")
    elif priority:
        raise _bad(table, "priority", f"{priority}: must be 0 in this table")


def _decode_field(
    table: Table, item: MatchField, given: p4r.FieldMatch | None
) -> tuple[bytes, bytes, int | None]:
    """Return value, mask and, for lpm, the prefix length."""
    width = item.width
    zero = bytes(field_bytes(width))
    kind = given.WhichOneof("field_match_type") if given is not None else None
    expected = _KINDS.get(item.match_type)
    if given is not None and kind != expected:
        raise _bad(table, item.name, f"{expected} match expected, not {kind}")
    if given is None:
        if item.match_type == p4i.MatchField.EXACT:
            raise _bad(table, item.name, "exact match field is missing")
        if item.match_type == p4i.MatchField.RANGE:
            return zero, full_mask(width), None
        if item.match_type == p4i.MatchField.LPM:
            return zero, full_mask(width), 0
        return zero, zero, None
    if kind == "exact":
        return decode(given.exact.value, width, item.name), full_mask(width), None
    if kind == "lpm":
        return _decode_lpm(table, item, given.lpm)
    if kind == "ternary":
        return _decode_ternary(table, item, given.ternary)
    if kind == "range":
        return _decode_range(table, item, given.range)
    return decode(given.optional.value, width, item.name), full_mask(width), None


_KINDS: dict[int, str] = {
    p4i.MatchField.EXACT: "exact",
    p4i.MatchField.LPM: "lpm",
    p4i.MatchField.TERNARY: "ternary",
    p4i.MatchField.RANGE: "range",
    p4i.MatchField.OPTIONAL: "optional",
}


def _decode_lpm(
    table: Table, item: MatchField, lpm: p4r.FieldMatch.LPM
) -> tuple[bytes, bytes, int]:
    if not 0 < lpm.prefix_len <= item.width:
        raise _bad(
            table, item.name, f"prefix_len {lpm.prefix_len}: 1 to {item.width}, or omit the field"
        )
    value = decode(lpm.value, item.width, item.name)
    if not covers(prefix_mask(lpm.prefix_len, item.width), value):
        raise _bad(table, item.name, f"bits set after the prefix of {lpm.prefix_len}")
    return value, full_mask(item.width), lpm.prefix_len


def _decode_ternary(
    table: Table, item: MatchField, ternary: p4r.FieldMatch.Ternary
) -> tuple[bytes, bytes, None]:
    value = decode(ternary.value, item.width, item.name)
    mask = decode(ternary.mask, item.width, f"{item.name} mask")
    if not any(mask):
        raise _bad(table, item.name, "mask is zero: omit a field that does not matter")
    if not covers(mask, value):
        raise _bad(table, item.name, "value has bits outside its mask")
    return value, mask, None


def _decode_range(
    table: Table, item: MatchField, given: p4r.FieldMatch.Range
) -> tuple[bytes, bytes, None]:
    low = decode(given.low, item.width, f"{item.name} low")
    high = decode(given.high, item.width, f"{item.name} high")
    if low > high:
        raise _bad(table, item.name, "low is above high")
    if not any(low) and high == full_mask(item.width):
        raise _bad(table, item.name, "covers every value: omit a field that does not matter")
    return low, high, None


def decode_action(table: Table, action: p4r.TableAction, *, is_default: bool) -> tuple[int, bytes]:
    """Return position and packed parameters of an entry's action."""
    kind = action.WhichOneof("type")
    if kind is None:
        raise _bad(table, "action", "is missing")
    if kind != "action":
        raise RequestError(
            rpc_code.UNIMPLEMENTED, f"table {table.name}: {kind}: action profiles are not supported"
        )
    given = action.action
    known = table.actions.get(given.action_id)
    if known is None:
        names = ", ".join(f"{item.name} ({item.id})" for item in table.actions.values())
        raise _bad(table, "action_id", f"{given.action_id} is not one of {names}")
    wrong_scope = p4i.ActionRef.TABLE_ONLY if is_default else p4i.ActionRef.DEFAULT_ONLY
    if known.scope == wrong_scope:
        raise RequestError(
            rpc_code.PERMISSION_DENIED,
            f"table {table.name}: action {known.name} is "
            f"{'for entries only' if is_default else 'for the default entry only'}",
        )
    return known.position, _decode_params(table, known, given)


def _decode_params(table: Table, known: Action, given: p4r.Action) -> bytes:
    if len(given.params) != len(known.params):
        raise _bad(
            table,
            known.name,
            f"{len(given.params)} parameters given, takes {[item.name for item in known.params]}",
        )
    by_id = {item.param_id: item.value for item in given.params}
    values: list[bytes] = []
    for item in known.params:
        value = by_id.get(item.id)
        if value is None:
            raise _bad(table, known.name, f"parameter {item.name} (id {item.id}) is missing")
        values.append(decode(value, item.width, item.name))
    return b"".join(values)


def encode_entry(
    schema: Schema, table: Table, match: Match | None, stored: StoredEntry
) -> p4r.TableEntry:
    """Return the canonical message of an entry; `match` None is the default entry."""
    entry = p4r.TableEntry(
        table_id=table.id,
        metadata=stored.metadata,
        controller_metadata=stored.controller_metadata,
        is_const=stored.is_const,
    )
    if match is None:
        entry.is_default_action = True
    else:
        entry.priority = match.priority
        _encode_match(table, match, entry)
    action = table.actions_by_position.get(stored.action)
    if action is not None:
        encoded = entry.action.action
        encoded.action_id = action.id
        values = split(stored.params, schema.action_widths[action.position])
        for item, value in zip(action.params, values, strict=True):
            encoded.params.add(param_id=item.id, value=encode(value))
    return entry


def _encode_match(table: Table, match: Match, entry: p4r.TableEntry) -> None:
    keys = split(match.key, table.widths)
    masks = split(match.mask, table.widths)
    for item, key, mask in zip(table.fields, keys, masks, strict=True):
        if item.match_type == p4i.MatchField.EXACT:
            entry.match.add(field_id=item.id).exact.value = encode(key)
        elif item.match_type == p4i.MatchField.RANGE:
            if any(key) or mask != full_mask(item.width):
                given = entry.match.add(field_id=item.id).range
                given.low, given.high = encode(key), encode(mask)
        elif item.match_type == p4i.MatchField.LPM:
            if match.prefix_len:
                lpm = entry.match.add(field_id=item.id).lpm
                lpm.value, lpm.prefix_len = encode(key), match.prefix_len
        elif not any(mask):
            continue
        elif item.match_type == p4i.MatchField.TERNARY:
            ternary = entry.match.add(field_id=item.id).ternary
            ternary.value, ternary.mask = encode(key), encode(mask)
        else:
            entry.match.add(field_id=item.id).optional.value = encode(key)


def initial_entries(table: Table) -> dict[Match, StoredEntry]:
    """Return the entries that the program itself holds."""
    entries: dict[Match, StoredEntry] = {}
    for entry in table.program.entries:
        match = Match(entry.key, b"", 0, 0)
        if not table.is_all_exact:
            priority = entry.priority if table.needs_priority else 0
            match = Match(entry.key, entry.mask, entry.prefix_len, priority)
        entries[match] = StoredEntry(entry.action, entry.params, is_const=table.is_const)
    return entries


def _bad(table: Table, field: str, reason: str) -> RequestError:
    return RequestError(rpc_code.INVALID_ARGUMENT, f"table {table.name}: {field}: {reason}")
