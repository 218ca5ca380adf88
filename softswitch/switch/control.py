# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Control operations on the running pipeline: counters, registers, multicast groups; and tables."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_uint64

from ..compilation.runtime_library import ReplicaT
from ..errors import BadArgumentError
from .table_control import (
    Group,
    Match,
    MatchLike,
    Member,
    MeterRates,
    TableControl,
)

__all__ = ["Control", "Group", "Match", "MatchLike", "Member", "MeterRates"]


class Control(TableControl):
    """The control half of a Switch; positions as in the program's JSON, each call atomic between
    packets.

    Raises ControlError subclasses, NoProgramError without a program.
    """

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
