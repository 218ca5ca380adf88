# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the P4Runtime server asks of a data plane, and the recorder that stands in before COMMIT."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from softswitch.errors import TableFullError


class Match(NamedTuple):
    """What identifies a table entry; byte strings hold all key fields in order, big-endian."""

    key: bytes
    mask: bytes
    """Ternary masks, range highs, ones for exact and lpm; empty where all fields are exact."""
    prefix_len: int
    """Of the lpm field, else 0."""
    priority: int
    """Larger wins; 0 where the table takes none."""


Replicas = Sequence[tuple[int, int]]
"""(egress port, replica id) pairs."""


class DataPlane(Protocol):
    """What `softswitch.Switch` offers. Positions as in the JSON; methods raise SoftswitchError."""

    def load(self, program: Any) -> None:
        """Replace the program; tables, counters, registers, groups and sessions start afresh."""
        ...

    def table_insert(self, table: int, match: Match, action: int, params: bytes) -> object:
        """Add an entry; what is returned does not matter."""
        ...

    def table_modify(self, table: int, match: Match, action: int, params: bytes) -> None:
        """Change the action of an entry."""
        ...

    def table_delete(self, table: int, match: Match) -> None:
        """Remove an entry."""
        ...

    def table_set_default(self, table: int, action: int, params: bytes) -> None:
        """Change the default action."""
        ...

    def direct_counter_read(self, table: int, match: Match | None) -> tuple[int, int]:
        """Return packets and bytes of an entry; None is the default entry."""
        ...

    def direct_counter_write(
        self, table: int, match: Match | None, packets: int, octets: int
    ) -> None:
        """Set the counter of an entry."""
        ...

    def counter_read(self, array: int, index: int) -> tuple[int, int]:
        """Return packets and bytes."""
        ...

    def counter_write(self, array: int, index: int, packets: int, octets: int) -> None:
        """Set one counter."""
        ...

    def register_read(self, array: int, index: int) -> bytes:
        """Return one cell, big-endian."""
        ...

    def register_write(self, array: int, index: int, value: bytes) -> None:
        """Set one cell, big-endian."""
        ...

    def set_multicast_group(self, group: int, replicas: Replicas) -> None:
        """Create or replace a multicast group."""
        ...

    def delete_multicast_group(self, group: int) -> None:
        """Remove a multicast group."""
        ...

    def packet_out(self, frame: bytes) -> None:
        """Inject a frame, controller header included, at the CPU port."""
        ...

    def set_packet_in(self, callback: Callable[[bytes], None] | None) -> None:
        """Hand frames that leave by the CPU port to `callback`, from the data plane's thread."""
        ...


@dataclass(frozen=True)
class _Call:
    method: str
    arguments: tuple[Any, ...]


class RecordingDataPlane:
    """Takes writes for a saved configuration and replays them at COMMIT."""

    def __init__(self, table_sizes: Sequence[int]) -> None:
        self._free = list(table_sizes)
        self._calls: list[_Call] = []

    def replay(self, target: DataPlane) -> None:
        """Carry out every recorded write, in order."""
        for call in self._calls:
            getattr(target, call.method)(*call.arguments)

    def table_insert(self, table: int, match: Match, action: int, params: bytes) -> None:
        """Record; a full table is refused now, not at COMMIT."""
        if self._free[table] <= 0:
            raise TableFullError("the table is full")
        self._free[table] -= 1
        self._record("table_insert", table, match, action, params)

    def table_delete(self, table: int, match: Match) -> None:
        """Record."""
        self._free[table] += 1
        self._record("table_delete", table, match)

    def direct_counter_read(self, table: int, match: Match | None) -> tuple[int, int]:
        """Return zeros: nothing has been counted yet."""
        del table, match
        return 0, 0

    def counter_read(self, array: int, index: int) -> tuple[int, int]:
        """Return zeros: nothing has been counted yet."""
        del array, index
        return 0, 0

    def register_read(self, array: int, index: int) -> bytes:
        """Return zero: the program has not run yet."""
        del array, index
        return b"\0"

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name not in _RECORDED:
            raise AttributeError(name)

        def record(*arguments: object) -> None:
            self._record(name, *arguments)

        return record

    def _record(self, method: str, *arguments: object) -> None:
        self._calls.append(_Call(method, arguments))


_RECORDED = {
    "table_modify",
    "table_set_default",
    "direct_counter_write",
    "counter_write",
    "register_write",
    "set_multicast_group",
    "delete_multicast_group",
}
