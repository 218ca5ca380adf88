# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Control operations on tables: entries, action profiles, meters, direct resources, idle time."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import byref, c_int32, c_uint32, c_uint64
from typing import NamedTuple

from ..compilation.runtime_library import SwitchHandle
from ..errors import BadArgumentError
from .idle_scan import IdleScan
from .pipeline import GroupMember, MeterRatesT
from .table_records import (
    Group,
    HeldEntry,
    Match,
    MatchLike,
    Member,
    TableRecords,
    seam_entry,
)

__all__ = ["Group", "HeldEntry", "Match", "MatchLike", "Member", "MeterRates", "TableControl"]

EXPIRED_PER_STEP = 4096
"""Entries that one step of a search for idle ones looks at, while packets wait."""
KEY_BYTES_MAX = 512
"""Of 64 words, the longest key that the generator accepts."""


class MeterRates(NamedTuple):
    """Two rates a second and their bursts, in packets or in bytes as the meter counts."""

    cir: int
    """Committed rate: packets beyond it are yellow."""
    cburst: int
    pir: int
    """Peak rate, at least the committed one: packets beyond it are red."""
    pburst: int


class TableControl(TableRecords):
    """The part of Control that is about tables."""

    def __init__(self, library: ctypes.CDLL, handle: SwitchHandle) -> None:
        super().__init__(library, handle)
        self._idle: IdleScan | None = None

    def table_insert(
        self,
        table: int,
        match: MatchLike,
        action: int,
        params: bytes = b"",
        *,
        indirect: Member | Group | None = None,
        idle_timeout_ns: int = 0,
    ) -> int:
        """Add an entry; returns its handle.

        In a table with an action profile, `indirect` takes the place of action and params. The
        timeout (0: none) needs a table with support_timeout.
        """
        handle = c_uint64()
        entry = seam_entry(match, action, params, indirect, idle_timeout_ns)
        self._control(
            f"insert into table {table}", "switch_table_insert", table, entry, byref(handle)
        )
        return handle.value

    def table_modify(
        self,
        table: int,
        match: MatchLike,
        action: int,
        params: bytes = b"",
        *,
        indirect: Member | Group | None = None,
        idle_timeout_ns: int = 0,
    ) -> None:
        """Give an entry another action and timeout, whose time begins now; found by its match."""
        entry = seam_entry(match, action, params, indirect, idle_timeout_ns)
        self._control(f"modify in table {table}", "switch_table_modify", table, entry)

    def table_delete(self, table: int, match: MatchLike) -> None:
        """Remove an entry."""
        self._control(f"delete in table {table}", "switch_table_delete", table, seam_entry(match))

    def table_find(self, table: int, match: MatchLike) -> int:
        """Return the handle of an entry."""
        handle = c_uint64()
        self._control(
            f"find in table {table}", "switch_table_find", table, seam_entry(match), byref(handle)
        )
        return handle.value

    def table_set_default(
        self,
        table: int,
        action: int,
        params: bytes = b"",
        *,
        indirect: Member | Group | None = None,
    ) -> None:
        """Change the default action; in a table with an action profile, None takes it away."""
        entry = seam_entry(Match(b""), action, params, indirect)
        self._control(f"default of table {table}", "switch_table_set_default", table, entry)

    def table_size(self, table: int) -> int:
        """Return how many entries the table holds."""
        size = c_uint32()
        self._control(f"size of table {table}", "switch_table_size", table, byref(size))
        return size.value

    def table_clear(self, table: int) -> None:
        """Remove all entries that are not const."""
        self._control(f"clear table {table}", "switch_table_clear", table)

    def direct_counter_read(self, table: int, match: MatchLike | None) -> tuple[int, int]:
        """Return packets and bytes of an entry; None is the default entry."""
        packets, octets = c_uint64(), c_uint64()
        entry = None if match is None else seam_entry(match)
        self._control(
            f"direct counter of table {table}",
            "switch_direct_counter_read",
            table,
            entry,
            byref(packets),
            byref(octets),
        )
        return packets.value, octets.value

    def direct_counter_write(
        self, table: int, match: MatchLike | None, packets: int, octets: int
    ) -> None:
        """Set the counter of an entry; None is the default entry."""
        self._control(
            f"direct counter of table {table}",
            "switch_direct_counter_write",
            table,
            None if match is None else seam_entry(match),
            packets,
            octets,
        )

    # ---- action profiles ----

    def profile_add_member(self, profile: int, member: int, action: int, params: bytes) -> None:
        """Add a member; `profile` counts the JSON's action_profiles, ingress first."""
        entry = seam_entry(Match(b""), action, params)
        self._control(
            f"member {member} of profile {profile}",
            "switch_profile_add_member",
            profile,
            member,
            entry,
        )

    def profile_modify_member(self, profile: int, member: int, action: int, params: bytes) -> None:
        """Give a member another action; entries that refer to it follow at once."""
        entry = seam_entry(Match(b""), action, params)
        self._control(
            f"member {member} of profile {profile}",
            "switch_profile_modify_member",
            profile,
            member,
            entry,
        )

    def profile_delete_member(self, profile: int, member: int) -> None:
        """Remove a member; InUseError while an entry or group refers to it."""
        self._control(
            f"member {member} of profile {profile}", "switch_profile_delete_member", profile, member
        )

    def profile_set_group(
        self, profile: int, group: int, members: Sequence[tuple[int, int]]
    ) -> None:
        """Create or replace a group of (member, weight) pairs; weights are at least 1."""
        array = (GroupMember * max(len(members), 1))(*members)
        self._control(
            f"group {group} of profile {profile}",
            "switch_profile_set_group",
            profile,
            group,
            array,
            len(members),
        )

    def profile_delete_group(self, profile: int, group: int) -> None:
        """Remove a group; InUseError while an entry refers to it."""
        self._control(
            f"group {group} of profile {profile}", "switch_profile_delete_group", profile, group
        )

    # ---- meters ----

    def meter_write(self, array: int, index: int, rates: MeterRates | None) -> None:
        """Configure a meter and fill its buckets; None: every packet is green."""
        self._control(f"meter {array}[{index}]", "switch_meter_write", array, index, _rates(rates))

    def meter_read(self, array: int, index: int) -> MeterRates | None:
        """Return how a meter is configured."""
        rates = MeterRatesT()
        self._control(f"meter {array}[{index}]", "switch_meter_read", array, index, byref(rates))
        return _meter_rates(rates)

    def direct_meter_write(
        self, table: int, match: MatchLike | None, rates: MeterRates | None
    ) -> None:
        """Configure the meter of an entry; None is the default entry."""
        self._control(
            f"direct meter of table {table}",
            "switch_direct_meter_write",
            table,
            None if match is None else seam_entry(match),
            _rates(rates),
        )

    def direct_meter_read(self, table: int, match: MatchLike | None) -> MeterRates | None:
        """Return how the meter of an entry is configured; None is the default entry."""
        rates = MeterRatesT()
        self._control(
            f"direct meter of table {table}",
            "switch_direct_meter_read",
            table,
            None if match is None else seam_entry(match),
            byref(rates),
        )
        return _meter_rates(rates)

    # ---- idle entries ----

    def table_idle_ns(self, table: int, match: MatchLike) -> int:
        """Return the time since an entry was last hit or written."""
        idle_us = c_uint64()
        self._control(
            f"idle time in table {table}",
            "switch_table_idle",
            table,
            seam_entry(match),
            byref(idle_us),
        )
        return idle_us.value * 1000

    def set_idle(self, callback: Callable[[int, Match], None] | None) -> None:
        """Call with (table, match) when an entry has been idle for its timeout; None: no more.

        Once until the entry is hit or written again, from a thread of its own, at the latest
        `IdleScan.INTERVAL_S` after the timeout. The callback may use this object.
        """
        if self._idle is not None:
            self._idle.close()
            self._idle = None
        if callback is not None:
            self._idle = IdleScan(lambda: self._tell_expired(callback))

    def _tell_expired(self, callback: Callable[[int, Match], None]) -> None:
        table, start = c_uint32(0), c_uint32(0)
        while True:
            try:
                found = self._expired(table, start)
            except BadArgumentError:  # there are no more tables with timeouts
                return
            for match in found:
                callback(table.value, match)
            if start.value == 0:
                table.value += 1

    def _expired(self, table: c_uint32, start: c_uint32) -> list[Match]:
        """Take a step in the first table from `table` on with timeouts; advance both to there."""
        handles = (c_uint64 * EXPIRED_PER_STEP)()
        with self.atomically():  # so that the handles still mean these entries
            count = self._control(
                "idle entries",
                "switch_table_expired",
                byref(table),
                byref(start),
                EXPIRED_PER_STEP,
                handles,
            )
            return [self._match_of(table.value, handles[index]) for index in range(count)]

    def _match_of(self, table: int, handle: int) -> Match:
        key = ctypes.create_string_buffer(KEY_BYTES_MAX)
        mask = ctypes.create_string_buffer(KEY_BYTES_MAX)
        prefix_len, priority = c_int32(), c_int32()
        size = self._control(
            f"entry of table {table}",
            "switch_table_match",
            table,
            handle,
            key,
            mask,
            byref(prefix_len),
            byref(priority),
        )
        if prefix_len.value < 0:
            return Match(key.raw[:size])
        return Match(key.raw[:size], mask.raw[:size], prefix_len.value, priority.value)


def _rates(rates: MeterRates | None) -> MeterRatesT:
    return MeterRatesT() if rates is None else MeterRatesT(*rates, 1)


def _meter_rates(rates: MeterRatesT) -> MeterRates | None:
    if not rates.is_configured:
        return None
    return MeterRates(rates.cir, rates.cburst, rates.pir, rates.pburst)
