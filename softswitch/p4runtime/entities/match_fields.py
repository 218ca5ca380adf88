# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The match of a TableEntry (section 9.1.1) to and from the packed key of the pipeline."""

from collections.abc import Sequence

from finsy.proto import p4i, p4r, rpc_code

from ..p4info.schema import MatchField, Table, ValueSet
from ..p4info.values import (
    covers,
    decode,
    encode,
    field_bytes,
    full_mask,
    prefix_mask,
    split,
)
from ..service.dataplane import Match
from ..service.status import RequestError


def decode_match(table: Table, entry: p4r.TableEntry, *, is_query: bool = False) -> Match:
    """Pack the match of an entry; the text of a RequestError names the wrong field.

    The priority of a query may be 0.
    """
    if not is_query or entry.priority:
        _check_priority(table, entry.priority)
    if table.is_all_exact:
        key = b"".join(_exact_values(table, entry))
        return Match(key, b"", 0, 0)
    keys: list[bytes] = []
    masks: list[bytes] = []
    prefix_len = 0
    for key, mask, bits in decode_fields(table, entry.match):
        keys.append(key)
        masks.append(mask)
        if bits is not None:
            prefix_len = bits
    return Match(b"".join(keys), b"".join(masks), prefix_len, entry.priority)


def decode_fields(
    owner: Table | ValueSet, given: Sequence[p4r.FieldMatch]
) -> list[tuple[bytes, bytes, int | None]]:
    """Return value, mask (high of a range) and prefix length of each field, in P4Info's order."""
    by_id = {item.field_id: item for item in given}
    if len(by_id) != len(given):
        raise _bad(owner, "match", "a field_id is given twice")
    found = [_decode_field(owner, item, by_id.pop(item.id, None)) for item in owner.fields]
    if by_id:
        raise _bad(owner, "match", f"no match field has id {min(by_id)}")
    return found


def _exact_values(table: Table, entry: p4r.TableEntry) -> list[bytes]:
    match = entry.match
    fields = table.fields
    if len(match) != len(fields):
        known = {item.field_id for item in match}
        missing = [item.name for item in fields if item.id not in known]
        raise _bad(table, "match", f"missing or surplus fields; missing: {missing or 'none'}")
    values: list[bytes] = []
    for item, given in zip(fields, match, strict=True):
        if given.field_id != item.id:  # any order is allowed; P4Info's order takes the fast path
            return _exact_values_unordered(table, entry)
        if not given.HasField("exact"):
            raise _bad(table, item.name, "an exact match is expected")
        values.append(_value(item, given.exact.value))
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
        values.append(_value(item, given.exact.value))
    return values


def _check_priority(table: Table, priority: int) -> None:
    if table.needs_priority:
        if priority <= 0:
            raise _bad(table, "priority", f"{priority}: must be positive in this table")
    elif priority:
        raise _bad(table, "priority", f"{priority}: must be 0 in this table")


def _decode_field(
    owner: Table | ValueSet, item: MatchField, given: p4r.FieldMatch | None
) -> tuple[bytes, bytes, int | None]:
    """Return value, mask and, for lpm, the prefix length."""
    width = item.width
    kind = given.WhichOneof("field_match_type") if given is not None else None
    expected = _KINDS.get(item.match_type)
    if given is not None and kind != expected:
        raise _bad(owner, item.name, f"{expected} match expected, not {kind}")
    if given is None:
        return _missing_field(owner, item)
    if kind == "exact":
        return _value(item, given.exact.value), full_mask(width), None
    if kind == "optional":
        return _value(item, given.optional.value), full_mask(width), None
    if item.strings is not None:
        raise _bad(owner, item.name, f"strings have no {kind} match")
    if kind == "lpm":
        return _decode_lpm(owner, item, given.lpm)
    if kind == "ternary":
        return _decode_ternary(owner, item, given.ternary)
    return _decode_range(owner, item, given.range)


def _missing_field(owner: Table | ValueSet, item: MatchField) -> tuple[bytes, bytes, int | None]:
    """Return the value and mask of an omitted field, which matches everything."""
    zero, all_ones = bytes(field_bytes(item.width)), full_mask(item.width)
    if item.match_type == p4i.MatchField.EXACT:
        raise _bad(owner, item.name, "exact match field is missing")
    if item.match_type == p4i.MatchField.RANGE:
        return zero, all_ones, None
    if item.match_type == p4i.MatchField.LPM:
        return zero, all_ones, 0
    return zero, zero, None


def _value(item: MatchField, value: bytes) -> bytes:
    if item.strings is not None:
        return item.strings.encode(value, item.width)
    return decode(value, item.width, item.name)


_KINDS: dict[int, str] = {
    p4i.MatchField.EXACT: "exact",
    p4i.MatchField.LPM: "lpm",
    p4i.MatchField.TERNARY: "ternary",
    p4i.MatchField.RANGE: "range",
    p4i.MatchField.OPTIONAL: "optional",
}


def _decode_lpm(
    owner: Table | ValueSet, item: MatchField, lpm: p4r.FieldMatch.LPM
) -> tuple[bytes, bytes, int]:
    if not 0 < lpm.prefix_len <= item.width:
        raise _bad(
            owner, item.name, f"prefix_len {lpm.prefix_len}: 1 to {item.width}, or omit the field"
        )
    value = decode(lpm.value, item.width, item.name)
    if not covers(prefix_mask(lpm.prefix_len, item.width), value):
        raise _bad(owner, item.name, f"bits set after the prefix of {lpm.prefix_len}")
    return value, full_mask(item.width), lpm.prefix_len


def _decode_ternary(
    owner: Table | ValueSet, item: MatchField, ternary: p4r.FieldMatch.Ternary
) -> tuple[bytes, bytes, None]:
    value = decode(ternary.value, item.width, item.name)
    mask = decode(ternary.mask, item.width, f"{item.name} mask")
    if not any(mask):
        raise _bad(owner, item.name, "mask is zero: omit a field that does not matter")
    if not covers(mask, value):
        raise _bad(owner, item.name, "value has bits outside its mask")
    return value, mask, None


def _decode_range(
    owner: Table | ValueSet, item: MatchField, given: p4r.FieldMatch.Range
) -> tuple[bytes, bytes, None]:
    low = decode(given.low, item.width, f"{item.name} low")
    high = decode(given.high, item.width, f"{item.name} high")
    if low > high:
        raise _bad(owner, item.name, "low is above high")
    if not any(low) and high == full_mask(item.width):
        raise _bad(owner, item.name, "covers every value: omit a field that does not matter")
    return low, high, None


def canonical_match(table: Table, key: bytes, mask: bytes, prefix_len: int, priority: int) -> Match:
    """Return a match as `decode_match` packs it.

    Values have no bits outside their masks, and exact and lpm fields have masks of ones.
    """
    keys: list[bytes] = []
    masks: list[bytes] = []
    for item, value, bits in zip(
        table.fields, split(key, table.widths), split(mask, table.widths), strict=True
    ):
        counted, packed = bits, bits
        if item.match_type == p4i.MatchField.LPM:
            counted, packed = prefix_mask(prefix_len, item.width), full_mask(item.width)
        elif item.match_type == p4i.MatchField.EXACT:
            packed = full_mask(item.width)
        if item.match_type in {p4i.MatchField.EXACT, p4i.MatchField.RANGE}:
            counted = full_mask(item.width)
        keys.append(bytes(one & other for one, other in zip(value, counted, strict=True)))
        masks.append(packed)
    return Match(b"".join(keys), b"".join(masks), prefix_len, priority)


def encode_match(table: Table, match: Match, entry: p4r.TableEntry) -> None:
    """Add the canonical match of an entry to its message."""
    keys = split(match.key, table.widths)
    if not match.mask:
        for item, key in zip(table.fields, keys, strict=True):
            entry.match.add(field_id=item.id).exact.value = _written(item, key)
        return
    masks = split(match.mask, table.widths)
    for item, key, mask in zip(table.fields, keys, masks, strict=True):
        encoded = encode_field(item, key, mask, match.prefix_len)
        if encoded is not None:
            entry.match.append(encoded)


def encode_field(
    item: MatchField, key: bytes, mask: bytes, prefix_len: int
) -> p4r.FieldMatch | None:
    """Return the canonical message of a field; None if it matches everything."""
    given = p4r.FieldMatch(field_id=item.id)
    if item.match_type == p4i.MatchField.EXACT:
        given.exact.value = _written(item, key)
    elif item.match_type == p4i.MatchField.RANGE:
        if not any(key) and mask == full_mask(item.width):
            return None
        given.range.low, given.range.high = encode(key), encode(mask)
    elif item.match_type == p4i.MatchField.LPM:
        if not prefix_len:
            return None
        given.lpm.value, given.lpm.prefix_len = encode(key), prefix_len
    elif not any(mask):
        return None
    elif item.match_type == p4i.MatchField.TERNARY:
        given.ternary.value, given.ternary.mask = encode(key), encode(mask)
    else:
        given.optional.value = _written(item, key)
    return given


def _written(item: MatchField, key: bytes) -> bytes:
    return encode(key) if item.strings is None else item.strings.decode(key)


def _bad(owner: Table | ValueSet, field: str, reason: str) -> RequestError:
    return RequestError(rpc_code.INVALID_ARGUMENT, f"{owner.label}: {field}: {reason}")
