# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Control operations on the running pipeline: tables, counters, registers, multicast groups."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Generator, Sequence
from ctypes import byref, c_uint32, c_uint64
from typing import NamedTuple, Protocol

from softswitch.errors import (
    BadArgumentError,
    ControlError,
    EntryExistsError,
    EntryNotFoundError,
    NoProgramError,
    SwitchStateError,
    TableFullError,
    UnsupportedControlError,
)
from softswitch.pipeline import (
    P_BAD_ARGUMENT,
    P_EXISTS,
    P_FULL,
    P_NOT_FOUND,
    P_UNSUPPORTED,
    TableEntry,
)
from softswitch.runtime_library import NO_PROGRAM, ReplicaT, SwitchHandle

_ERRORS: dict[int, tuple[type[ControlError], str]] = {
    P_NOT_FOUND: (EntryNotFoundError, "there is no such entry; insert it first"),
    P_EXISTS: (EntryExistsError, "an entry with this match exists; modify or delete it"),
    P_FULL: (TableFullError, "there is no room for another entry; delete one first"),
    P_BAD_ARGUMENT: (BadArgumentError, "a position, width or value does not fit the program"),
    P_UNSUPPORTED: (UnsupportedControlError, "the program's object does not do this"),
}


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


class Control:
    """The control half of a Switch; positions as in the program's JSON, each call atomic between
    packets.

    Raises ControlError subclasses, NoProgramError without a program.
    """

    def __init__(self, library: ctypes.CDLL, handle: SwitchHandle) -> None:
        self._library = library
        self._open_handle: SwitchHandle | None = handle

    @property
    def _handle(self) -> SwitchHandle:
        if self._open_handle is None:
            raise SwitchStateError("the switch is closed; make a new one")
        return self._open_handle

    def _control(self, what: str, function: str, *arguments: object) -> int:
        code: int = getattr(self._library, function)(self._handle, *arguments)
        if code >= 0:
            return code
        if code == NO_PROGRAM:
            raise NoProgramError(f"{what}: no program is loaded; load one first")
        kind, advice = _ERRORS[code]
        raise kind(f"{what}: {advice}")

    @contextlib.contextmanager
    def atomically(self) -> Generator[None]:
        """Make the operations of this thread within the block one: packets see all or none.

        Packets wait meanwhile, and so do other threads' operations. Blocks may nest.
        """
        handle = self._handle
        self._library.switch_lock(handle)
        try:
            yield
        finally:
            self._library.switch_unlock(handle)

    def table_insert(self, table: int, match: MatchLike, action: int, params: bytes = b"") -> int:
        """Add an entry; returns its handle."""
        handle = c_uint64()
        entry = _entry(match, action, params)
        self._control(
            f"insert into table {table}", "switch_table_insert", table, entry, byref(handle)
        )
        return handle.value

    def table_modify(self, table: int, match: MatchLike, action: int, params: bytes = b"") -> None:
        """Give an entry another action; found by its match."""
        entry = _entry(match, action, params)
        self._control(f"modify in table {table}", "switch_table_modify", table, entry)

    def table_delete(self, table: int, match: MatchLike) -> None:
        """Remove an entry."""
        self._control(f"delete in table {table}", "switch_table_delete", table, _entry(match))

    def table_find(self, table: int, match: MatchLike) -> int:
        """Return the handle of an entry."""
        handle = c_uint64()
        self._control(
            f"find in table {table}", "switch_table_find", table, _entry(match), byref(handle)
        )
        return handle.value

    def table_set_default(self, table: int, action: int, params: bytes = b"") -> None:
        """Change the default action."""
        self._control(
            f"default of table {table}",
            "switch_table_set_default",
            table,
            action,
            params,
            len(params),
        )

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
        entry = None if match is None else _entry(match)
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
            None if match is None else _entry(match),
            packets,
            octets,
        )

    def counter_read(self, array: int, index: int) -> tuple[int, int]:
        """Return packets and bytes of one counter."""
        packets, octets = c_uint64(), c_uint64()
        self._control(
            f"counter {array}[{index}]",
            "switch_counter_read",
            array,
            index,
            byref(packets),
            byref(octets),
        )
        return packets.value, octets.value

    def counter_write(self, array: int, index: int, packets: int, octets: int) -> None:
        """Set one counter."""
        self._control(
            f"counter {array}[{index}]", "switch_counter_write", array, index, packets, octets
        )

    def register_read(self, array: int, index: int) -> bytes:
        """Return one cell, big-endian, `(width + 7) // 8` bytes."""
        cell = ctypes.create_string_buffer(256)
        length = self._control(
            f"register {array}[{index}]", "switch_register_read", array, index, cell, len(cell)
        )
        return cell.raw[:length]

    def register_write(self, array: int, index: int, value: bytes) -> None:
        """Set one cell, big-endian."""
        self._control(
            f"register {array}[{index}]", "switch_register_write", array, index, value, len(value)
        )

    def value_set_write(self, position: int, members: Sequence[tuple[bytes, bytes]]) -> None:
        """Replace the members of a parser's value set: value and mask of each.

        Both hold the fields of the select's key, big-endian, `(width + 7) // 8` bytes each.
        """
        if any(len(value) != len(mask) for value, mask in members):
            raise BadArgumentError(f"value set {position}: a mask is not as long as its value")
        data = b"".join(value + mask for value, mask in members)
        self._control(
            f"value set {position}",
            "switch_value_set_write",
            position,
            data,
            len(data),
            len(members),
        )

    def set_multicast_group(self, group: int, replicas: Sequence[tuple[int, int]]) -> None:
        """Create or replace a multicast group of (egress port, replica id) pairs."""
        array = (ReplicaT * len(replicas))(*replicas)
        self._control(
            f"multicast group {group}", "switch_set_multicast_group", group, array, len(replicas)
        )

    def delete_multicast_group(self, group: int) -> None:
        """Remove a multicast group."""
        self._control(f"multicast group {group}", "switch_delete_multicast_group", group)

    def set_clone_session(
        self,
        session_id: int,
        replicas: Sequence[tuple[int, int]],
        *,
        packet_length_bytes: int = 0,
    ) -> None:
        """Create or replace a clone session of (egress port, instance) pairs; ids 0 to 32767.

        Copies are cut to `packet_length_bytes` when they leave; 0 leaves them whole.
        """
        array = (ReplicaT * len(replicas))(*replicas)
        self._control(
            f"clone session {session_id}",
            "switch_set_clone_session",
            session_id,
            array,
            len(replicas),
            packet_length_bytes,
        )

    def delete_clone_session(self, session_id: int) -> None:
        """Remove a clone session."""
        self._control(f"clone session {session_id}", "switch_delete_clone_session", session_id)


def _entry(match: MatchLike, action: int = 0, params: bytes = b"") -> TableEntry:
    # ctypes keeps the byte strings alive as long as the structure.
    mask = match.mask or bytes(len(match.key))
    return TableEntry(
        match.key, mask, match.prefix_len, match.priority, action, params, len(params)
    )
