# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The interface of a data plane that the P4Runtime server needs."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ...errors import SoftswitchError
from ...switch.arrays import MeterRates
from ...switch.table_entries import HeldEntry, Match, ProfileGroup, ProfileMember

__all__ = [
    "DataPlane",
    "HeldEntry",
    "Indirect",
    "Match",
    "MeterRates",
    "ProfileGroup",
    "ProfileMember",
    "Replicas",
]

Replicas = Sequence[tuple[int, int]]
"""(egress port, replica id) pairs."""
Indirect = ProfileMember | ProfileGroup | None


class TableOperations(Protocol):
    """Tables of the running program, as `Switch.tables`."""

    def insert(
        self,
        table: int,
        match: Match,
        action: int,
        params: bytes,
        *,
        indirect: Indirect = None,
        idle_timeout_ns: int = 0,
    ) -> object:
        """Add an entry; the result is not used."""
        ...

    def modify(
        self,
        table: int,
        match: Match,
        action: int,
        params: bytes,
        *,
        indirect: Indirect = None,
        idle_timeout_ns: int = 0,
    ) -> None:
        """Change the action of an entry."""
        ...

    def delete(self, table: int, match: Match) -> None:
        """Remove an entry."""
        ...

    def insert_many(
        self,
        table: int,
        entries: Sequence[tuple[bytes, int, bytes]],
        *,
        stop_at_failure: bool = False,
    ) -> tuple[int, dict[int, SoftswitchError]]:
        """Add (key, action, params) to an exact table; return the number tried, and the errors."""
        ...

    def get(self, table: int, match: Match) -> HeldEntry | None:
        """Return an entry; None if there is none."""
        ...

    def entries(self, table: int) -> Iterator[HeldEntry]:
        """Return the entries as they are now, with those that the program declares."""
        ...

    def size(self, table: int) -> int:
        """Return how many entries there are."""
        ...

    def open(self, table: int) -> None:
        """Make the entries that the program declares changeable."""
        ...

    def set_default(self, table: int, action: int, params: bytes) -> None:
        """Change the default action."""
        ...

    def idle_ns(self, table: int, match: Match) -> int:
        """Return the time since the entry was last hit or written."""
        ...

    def write_meter(self, table: int, match: Match | None, rates: MeterRates | None) -> None:
        """Configure the meter of an entry, or of the default one; None: green for all packets."""
        ...

    def read_counter(self, table: int, match: Match | None) -> tuple[int, int]:
        """Return packets and bytes of an entry; None is the default entry."""
        ...

    def write_counter(self, table: int, match: Match | None, packets: int, octets: int) -> None:
        """Set the counter of an entry."""
        ...


class ProfileOperations(Protocol):
    """Action profiles, as `Switch.profiles`."""

    def add_member(self, profile: int, member: int, action: int, params: bytes) -> None:
        """Add a member."""
        ...

    def modify_member(self, profile: int, member: int, action: int, params: bytes) -> None:
        """Change the action of a member."""
        ...

    def delete_member(self, profile: int, member: int) -> None:
        """Remove a member."""
        ...

    def set_group(self, profile: int, group: int, members: Sequence[tuple[int, int]]) -> None:
        """Create or replace a group of (member id, weight) pairs."""
        ...

    def delete_group(self, profile: int, group: int) -> None:
        """Remove a group."""
        ...


class ArrayOperations(Protocol):
    """Counters, registers, meters and value sets, as `Switch.arrays`."""

    def write_meter(self, array: int, index: int, rates: MeterRates | None) -> None:
        """Configure one meter; None: green for all packets."""
        ...

    def read_counter(self, array: int, index: int) -> tuple[int, int]:
        """Return packets and bytes."""
        ...

    def write_counter(self, array: int, index: int, packets: int, octets: int) -> None:
        """Set one counter."""
        ...

    def read_register(self, array: int, index: int) -> bytes:
        """Return one cell, big-endian."""
        ...

    def write_register(self, array: int, index: int, value: bytes) -> None:
        """Set one cell, big-endian."""
        ...

    def write_value_set(self, position: int, members: Sequence[tuple[bytes, bytes]]) -> None:
        """Replace the (value, mask) pairs of a parser value set."""
        ...


class ReplicationOperations(Protocol):
    """Multicast groups and clone sessions, as `Switch.replication`."""

    def set_multicast_group(self, group: int, replicas: Replicas) -> None:
        """Create or replace a multicast group."""
        ...

    def delete_multicast_group(self, group: int) -> None:
        """Remove a multicast group."""
        ...

    def set_clone_session(
        self, session_id: int, replicas: Replicas, *, packet_length_bytes: int = 0
    ) -> None:
        """Create or replace a clone session; 0 bytes: clones are not cut."""
        ...

    def delete_clone_session(self, session_id: int) -> None:
        """Remove a clone session."""
        ...


class DataPlane(Protocol):
    """What `softswitch.Switch` offers. Positions as in the JSON; methods raise SoftswitchError."""

    @property
    def tables(self) -> TableOperations:
        """Operations on what the running program declares."""
        ...

    @property
    def profiles(self) -> ProfileOperations:
        """Operations on what the running program declares."""
        ...

    @property
    def arrays(self) -> ArrayOperations:
        """Operations on what the running program declares."""
        ...

    @property
    def replication(self) -> ReplicationOperations:
        """Operations on the replication engine."""
        ...

    def load(self, program: Any) -> None:
        """Replace the program; tables, counters, registers, groups and sessions are reset.

        None: run without one.
        """
        ...

    def atomically(self) -> AbstractContextManager[None]:
        """Make this thread's calls within the block atomic: a packet sees all or none."""
        ...

    def set_idle(self, callback: Callable[[int, Match], None] | None) -> None:
        """Report an expired entry to `callback`, once until it is hit or written again."""
        ...

    def set_digest(self, callback: Callable[[int, bytes], None] | None) -> None:
        """Hand samples to `callback`: learn list id of the JSON, all fields big-endian."""
        ...

    def packet_out(self, frame: bytes) -> None:
        """Inject a frame, controller header included, at the CPU port."""
        ...

    def set_packet_in(self, callback: Callable[[bytes], None] | None) -> None:
        """Hand frames that leave by the CPU port to `callback`, from the data plane's thread."""
        ...
