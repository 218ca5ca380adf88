# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Table entries in Python: what identifies one, what the data plane holds, many in one call."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator, Sequence
from ctypes import byref, c_int32, c_uint32
from typing import NamedTuple, Protocol

from ..errors import (
    BadArgumentError,
    EntryNotFoundError,
    SoftswitchError,
    SwitchStateError,
)
from .control_base import ControlBase, control_error
from .pipeline import (
    EXTRA_COUNTS,
    EXTRA_IDLE,
    INDIRECT_GROUP,
    INDIRECT_MEMBER,
    INDIRECT_NONE,
    TableEntry,
    TableLayout,
)

RECORDS_PER_STEP = 1024
"""Entries that are copied at once while packets wait."""


class Match(NamedTuple):
    """What identifies a table entry; byte strings hold all key fields in order, big-endian."""

    key: bytes
    mask: bytes = b""
    """Ternary masks, range highs; may be empty where the table has only exact and lpm fields."""
    prefix_len: int = 0
    """Bits of the lpm field that count."""
    priority: int = 0
    """Larger wins; 0 where the table takes none."""


class MatchLike(Protocol):
    """Anything with the members of Match."""

    @property
    def key(self) -> bytes: ...  # noqa: D102
    @property
    def mask(self) -> bytes: ...  # noqa: D102
    @property
    def prefix_len(self) -> int: ...  # noqa: D102
    @property
    def priority(self) -> int: ...  # noqa: D102


class Member(NamedTuple):
    """The member of an action profile that an entry refers to."""

    id: int


class Group(NamedTuple):
    """The group of an action selector that an entry refers to."""

    id: int


class HeldEntry(NamedTuple):
    """All that the data plane knows of an entry."""

    match: Match
    action: int
    """0 with `indirect`."""
    params: bytes
    indirect: Member | Group | None = None
    idle_timeout_ns: int = 0
    counts: tuple[int, int] | None = None
    """Packets and bytes; None where the table has no direct counter."""
    idle_ns: int | None = None
    """Time since it was hit or written; None where the table has no timeouts."""


ExactEntry = tuple[bytes, int, bytes]
"""Key, action and parameters, for tables whose fields are all exact."""


class TableRecords(ControlBase):
    """The part of Control that copies entries in and out."""

    def table_entries(self, table: int) -> Iterator[HeldEntry]:
        """Copy all entries of a table now, by rising handle; they are decoded as they are used.

        Packets pass meanwhile, other control operations should not: an entry that comes or goes
        may be missed.
        """
        layout = self._layout(table)
        start = c_uint32(0)
        steps: list[bytes] = []
        buffer = ctypes.create_string_buffer(RECORDS_PER_STEP * layout.record_bytes)
        while True:
            with self.atomically():
                if bytes(self._layout(table)) != bytes(layout):  # the buffer is not for it
                    raise SwitchStateError(f"entries of table {table}: the program was replaced")
                count = self._control(
                    f"entries of table {table}",
                    "switch_table_dump",
                    table,
                    byref(start),
                    RECORDS_PER_STEP,
                    buffer,
                )
            steps.append(ctypes.string_at(buffer, count * layout.record_bytes))
            if start.value == 0:
                break
        return _decode(layout, steps)

    def table_get(self, table: int, match: MatchLike) -> HeldEntry | None:
        """Return an entry; None where there is none."""
        entry = seam_entry(match)
        with self.atomically():  # the program stays that of the layout
            layout = self._layout(table)
            record = ctypes.create_string_buffer(layout.record_bytes)
            try:
                self._control(f"entry of table {table}", "switch_table_get", table, entry, record)
            except EntryNotFoundError:
                return None
        return next(_decode(layout, [record.raw]))

    def table_insert_many(
        self, table: int, entries: Sequence[ExactEntry], *, stop_at_failure: bool = False
    ) -> tuple[int, dict[int, SoftswitchError]]:
        """Add entries to a table whose fields are all exact, in one call and one after the other.

        Returns how many were tried, and the errors by position in `entries`.
        """
        if not entries:
            return 0, {}
        if len({len(key) for key, _, _ in entries}) > 1:
            raise BadArgumentError(f"insert into table {table}: keys differ in length")
        parts: list[bytes] = []
        for key, action, params in entries:
            parts += (_CALL.pack(action, len(params)), key, params)
        results = (c_int32 * len(entries))()
        what = f"insert into table {table}"
        tried = self._control(
            what,
            "switch_table_insert_many",
            table,
            len(entries[0][0]),
            b"".join(parts),
            len(entries),
            int(stop_at_failure),
            results,
        )
        codes = results[:tried]
        if not any(codes):
            return tried, {}
        return tried, {at: control_error(what, code) for at, code in enumerate(codes) if code}

    def table_open(self, table: int) -> None:
        """Let the entries that the program brings be changed; they are const until then."""
        self._control(f"open table {table}", "switch_table_open", table)

    def _layout(self, table: int) -> TableLayout:
        layout = TableLayout()
        self._control(f"layout of table {table}", "switch_table_layout", table, byref(layout))
        return layout


_CALL = struct.Struct("=II")


def _decode(layout: TableLayout, steps: list[bytes]) -> Iterator[HeldEntry]:
    has_counts, has_idle = layout.extras & EXTRA_COUNTS, layout.extras & EXTRA_IDLE
    key, params = layout.key_bytes, layout.params_bytes
    numbers = ("QQ" if has_counts else "") + ("QQ" if has_idle else "")
    record = struct.Struct(f"=IIiiIII{numbers}{key}s{key}s{params}s")
    steps.reverse()
    while steps:  # memory goes as the iterator comes on
        for item in record.iter_unpack(steps.pop()):
            _, action, prefix_len, priority, kind, number, used, *extras, held, mask, data = item
            is_exact = prefix_len < 0
            match = Match(held) if is_exact else Match(held, mask, prefix_len, priority)
            indirect = None
            if kind != INDIRECT_NONE:
                indirect = Member(number) if kind == INDIRECT_MEMBER else Group(number)
            counts = (extras[0], extras[1]) if has_counts else None
            timeout_ns, idle_ns = (extras[-2], extras[-1] * 1000) if has_idle else (0, None)
            yield HeldEntry(match, action, data[:used], indirect, timeout_ns, counts, idle_ns)


def seam_entry(
    match: MatchLike,
    action: int = 0,
    params: bytes = b"",
    indirect: Member | Group | None = None,
    idle_timeout_ns: int = 0,
) -> TableEntry:
    """Return an entry as the seam takes it."""
    # ctypes keeps the byte strings alive as long as the structure.
    mask = match.mask or bytes(len(match.key))
    if len(mask) != len(match.key):
        raise BadArgumentError(f"a mask of {len(mask)} bytes for a key of {len(match.key)}")
    kind, number = INDIRECT_NONE, 0
    if indirect is not None:
        kind = INDIRECT_MEMBER if isinstance(indirect, Member) else INDIRECT_GROUP
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
