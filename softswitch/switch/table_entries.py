# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Table entries: what identifies one, what the data plane holds, how they cross the seam."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from ..errors import BadArgumentError
from .pipeline import (
    EXTRA_COUNTS,
    EXTRA_IDLE,
    INDIRECT_GROUP,
    INDIRECT_MEMBER,
    INDIRECT_NONE,
    TableEntry,
    TableLayout,
)


class Match(NamedTuple):
    """What identifies a table entry; byte strings hold all key fields in order, big-endian."""

    key: bytes
    mask: bytes = b""
    """Ternary masks, range highs; may be empty if the table has only exact and lpm fields."""
    prefix_len: int = 0
    """Bits of the lpm field that count."""
    priority: int = 0
    """Larger wins; 0 if the table has no priorities."""


class ProfileMember(NamedTuple):
    """The member of an action profile that an entry refers to."""

    id: int


class ProfileGroup(NamedTuple):
    """The group of an action selector that an entry refers to."""

    id: int


class HeldEntry(NamedTuple):
    """All that the data plane knows of an entry."""

    match: Match
    action: int
    """0 with `indirect`."""
    params: bytes
    indirect: ProfileMember | ProfileGroup | None = None
    idle_timeout_ns: int = 0
    counts: tuple[int, int] | None = None
    """Packets and bytes; None if the table has no direct counter."""
    idle_ns: int | None = None
    """Time since it was hit or written; None if the table has no timeouts."""


ExactEntry = tuple[bytes, int, bytes]
"""Key, action and parameters, for tables whose fields are all exact."""


def decode_records(layout: TableLayout, steps: list[bytes]) -> Iterator[HeldEntry]:
    """Return entries from copies of the table's records; takes them out of `steps`."""
    has_counts, has_idle = layout.extras & EXTRA_COUNTS, layout.extras & EXTRA_IDLE
    key, params = layout.key_bytes, layout.params_bytes
    numbers = ("QQ" if has_counts else "") + ("QQ" if has_idle else "")
    record = struct.Struct(f"=IIiiIII{numbers}{key}s{key}s{params}s")
    steps.reverse()
    while steps:  # each copy is freed as the iterator advances
        for item in record.iter_unpack(steps.pop()):
            _, action, prefix_len, priority, kind, number, used, *extras, held, mask, data = item
            is_exact = prefix_len < 0
            match = Match(held) if is_exact else Match(held, mask, prefix_len, priority)
            indirect = None
            if kind != INDIRECT_NONE:
                indirect = (
                    ProfileMember(number) if kind == INDIRECT_MEMBER else ProfileGroup(number)
                )
            counts = (extras[0], extras[1]) if has_counts else None
            timeout_ns, idle_ns = (extras[-2], extras[-1] * 1000) if has_idle else (0, None)
            yield HeldEntry(match, action, data[:used], indirect, timeout_ns, counts, idle_ns)


def seam_entry(
    match: Match,
    action: int = 0,
    params: bytes = b"",
    indirect: ProfileMember | ProfileGroup | None = None,
    idle_timeout_ns: int = 0,
) -> TableEntry:
    """Return an entry in the seam's form."""
    # ctypes keeps the byte strings alive as long as the structure.
    mask = match.mask or bytes(len(match.key))
    if len(mask) != len(match.key):
        raise BadArgumentError(f"a mask of {len(mask)} bytes for a key of {len(match.key)}")
    kind, number = INDIRECT_NONE, 0
    if indirect is not None:
        kind = INDIRECT_MEMBER if isinstance(indirect, ProfileMember) else INDIRECT_GROUP
        number = indirect.id
    return TableEntry(
        match.key,
        mask,
        match.prefix_len,
        match.priority,
        action,
        params,
        len(params),
        kind,
        number,
        idle_timeout_ns,
        key_bytes=len(match.key),
    )
