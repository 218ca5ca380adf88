# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Control operations on tables: their entries, defaults, direct counters and direct meters."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator, Sequence
from ctypes import byref, c_int32, c_uint32, c_uint64

from ..errors import BadArgumentError, EntryNotFoundError, SoftswitchError, SwitchStateError
from .arrays import MeterRates, meter_rates, seam_rates
from .native import NativeSwitch, control_error
from .pipeline import MeterRatesT, TableLayout
from .table_entries import (
    ExactEntry,
    HeldEntry,
    Match,
    ProfileGroup,
    ProfileMember,
    decode_records,
    seam_entry,
)

RECORDS_PER_STEP = 1024
"""Entries that are copied at once while packets wait."""
_CALL = struct.Struct("=II")


class Tables:
    """The tables of a switch, by their positions in the program's JSON.

    Each call is atomic between packets. Raises ControlError subclasses, and NoProgramError without
    a program.
    """

    def __init__(self, native: NativeSwitch) -> None:
        self._native = native

    def insert(
        self,
        table: int,
        match: Match,
        action: int,
        params: bytes = b"",
        *,
        indirect: ProfileMember | ProfileGroup | None = None,
        idle_timeout_ns: int = 0,
    ) -> int:
        """Add an entry; returns its handle.

        In a table with an action profile, `indirect` takes the place of action and params. The
        timeout (0: none) needs a table with support_timeout.
        """
        handle = c_uint64()
        entry = seam_entry(match, action, params, indirect, idle_timeout_ns)
        self._native.control(
            f"insert into table {table}", "switch_table_insert", table, entry, byref(handle)
        )
        return handle.value

    def insert_many(
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
        tried = self._native.control(
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

    def modify(
        self,
        table: int,
        match: Match,
        action: int,
        params: bytes = b"",
        *,
        indirect: ProfileMember | ProfileGroup | None = None,
        idle_timeout_ns: int = 0,
    ) -> None:
        """Give the entry of this match another action and timeout; the timeout begins now."""
        entry = seam_entry(match, action, params, indirect, idle_timeout_ns)
        self._native.control(f"modify in table {table}", "switch_table_modify", table, entry)

    def delete(self, table: int, match: Match) -> None:
        """Remove an entry."""
        self._native.control(
            f"delete in table {table}", "switch_table_delete", table, seam_entry(match)
        )

    def get(self, table: int, match: Match) -> HeldEntry | None:
        """Return an entry; None if there is none."""
        entry = seam_entry(match)
        with self._native.atomically():  # the program cannot change after the layout is read
            layout = self._layout(table)
            record = ctypes.create_string_buffer(layout.record_bytes)
            try:
                self._native.control(
                    f"entry of table {table}", "switch_table_get", table, entry, record
                )
            except EntryNotFoundError:
                return None
        return next(decode_records(layout, [record.raw]))

    def find(self, table: int, match: Match) -> int:
        """Return the handle of an entry."""
        handle = c_uint64()
        self._native.control(
            f"find in table {table}", "switch_table_find", table, seam_entry(match), byref(handle)
        )
        return handle.value

    def set_default(
        self,
        table: int,
        action: int,
        params: bytes = b"",
        *,
        indirect: ProfileMember | ProfileGroup | None = None,
    ) -> None:
        """Change the default action; in a table with an action profile, None removes it."""
        entry = seam_entry(Match(b""), action, params, indirect)
        self._native.control(f"default of table {table}", "switch_table_set_default", table, entry)

    def size(self, table: int) -> int:
        """Return how many entries the table holds."""
        size = c_uint32()
        self._native.control(f"size of table {table}", "switch_table_size", table, byref(size))
        return size.value

    def clear(self, table: int) -> None:
        """Remove all entries that are not const."""
        self._native.control(f"clear table {table}", "switch_table_clear", table)

    def entries(self, table: int) -> Iterator[HeldEntry]:
        """Copy all entries of a table now, by rising handle; they are decoded as they are used.

        Packets pass meanwhile. Other control operations should wait: entries may be missed while
        others are inserted or deleted.
        """
        layout = self._layout(table)
        start = c_uint32(0)
        steps: list[bytes] = []
        buffer = ctypes.create_string_buffer(RECORDS_PER_STEP * layout.record_bytes)
        while True:
            with self._native.atomically():
                if bytes(self._layout(table)) != bytes(layout):  # the buffer does not fit it
                    raise SwitchStateError(f"entries of table {table}: the program was replaced")
                count = self._native.control(
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
        return decode_records(layout, steps)

    def open(self, table: int) -> None:
        """Make the entries that the program declares changeable; they are const until then."""
        self._native.control(f"open table {table}", "switch_table_open", table)

    def idle_ns(self, table: int, match: Match) -> int:
        """Return the time since an entry was last hit or written."""
        idle_us = c_uint64()
        self._native.control(
            f"idle time in table {table}",
            "switch_table_idle",
            table,
            seam_entry(match),
            byref(idle_us),
        )
        return idle_us.value * 1000

    def read_counter(self, table: int, match: Match | None) -> tuple[int, int]:
        """Return packets and bytes of an entry; None is the default entry."""
        packets, octets = c_uint64(), c_uint64()
        entry = None if match is None else seam_entry(match)
        self._native.control(
            f"direct counter of table {table}",
            "switch_direct_counter_read",
            table,
            entry,
            byref(packets),
            byref(octets),
        )
        return packets.value, octets.value

    def write_counter(self, table: int, match: Match | None, packets: int, octets: int) -> None:
        """Set the counter of an entry; None is the default entry."""
        self._native.control(
            f"direct counter of table {table}",
            "switch_direct_counter_write",
            table,
            None if match is None else seam_entry(match),
            packets,
            octets,
        )

    def read_meter(self, table: int, match: Match | None) -> MeterRates | None:
        """Return the rates of an entry's meter; match None is the default entry."""
        rates = MeterRatesT()
        self._native.control(
            f"direct meter of table {table}",
            "switch_direct_meter_read",
            table,
            None if match is None else seam_entry(match),
            byref(rates),
        )
        return meter_rates(rates)

    def write_meter(self, table: int, match: Match | None, rates: MeterRates | None) -> None:
        """Configure the meter of an entry; None is the default entry."""
        self._native.control(
            f"direct meter of table {table}",
            "switch_direct_meter_write",
            table,
            None if match is None else seam_entry(match),
            seam_rates(rates),
        )

    def _layout(self, table: int) -> TableLayout:
        layout = TableLayout()
        self._native.control(
            f"layout of table {table}", "switch_table_layout", table, byref(layout)
        )
        return layout
