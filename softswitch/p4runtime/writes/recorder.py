# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Stands in for the data plane while a configuration is saved and not yet committed."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from ...errors import EntryExistsError, SoftswitchError, TableFullError
from ..entities.table_entry import initial_entries
from ..p4info.schema import Table
from ..service.dataplane import DataPlane, HeldEntry, Match


class _Call(NamedTuple):
    method: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]


class RecordingDataPlane:
    """Takes writes for a saved configuration and replays them at COMMIT.

    Reads return what was written; nothing else has changed, as no packet has passed.
    """

    def __init__(self, tables: Iterable[Table]) -> None:
        self._sizes: dict[int, int] = {}
        self._held: dict[int, dict[Match, HeldEntry]] = {}
        for table in tables:
            entries = initial_entries(table)
            self._sizes[table.position] = max(table.max_size, len(entries), 1)
            self._held[table.position] = entries
        self._calls: list[_Call] = []
        self._written: dict[tuple[Any, ...], Any] = {}

    @property
    def has_writes(self) -> bool:
        """Whether anything is recorded."""
        return bool(self._calls)

    def replay(self, target: DataPlane) -> None:
        """Carry out every recorded write, in order."""
        for call in self._calls:
            getattr(target, call.method)(*call.arguments, **call.options)

    def atomically(self) -> AbstractContextManager[None]:
        """Nothing needs to be held: no packet passes."""
        return contextlib.nullcontext()

    def table_insert(
        self, table: int, match: Match, action: int, params: bytes, **options: Any
    ) -> None:
        """Record; a full table is refused now, not at COMMIT."""
        held = self._held[table]
        if match in held:
            raise EntryExistsError("an entry with this match exists")
        if len(held) >= self._sizes[table]:
            raise TableFullError("the table is full")
        held[match] = HeldEntry(match, action, params, **options)
        self._record("table_insert", table, match, action, params, **options)

    def table_insert_many(
        self,
        table: int,
        entries: Sequence[tuple[bytes, int, bytes]],
        *,
        stop_at_failure: bool = False,
    ) -> tuple[int, dict[int, SoftswitchError]]:
        """Record one by one."""
        errors: dict[int, SoftswitchError] = {}
        for at, (key, action, params) in enumerate(entries):
            try:
                self.table_insert(table, Match(key), action, params)
            except SoftswitchError as exc:
                errors[at] = exc
                if stop_at_failure:
                    return at + 1, errors
        return len(entries), errors

    def table_modify(
        self, table: int, match: Match, action: int, params: bytes, **options: Any
    ) -> None:
        """Record."""
        self._held[table][match] = HeldEntry(match, action, params, **options)
        self._record("table_modify", table, match, action, params, **options)

    def table_get(self, table: int, match: Match) -> HeldEntry | None:
        """Return what was written, or comes with the program."""
        held = self._held[table].get(match)
        return None if held is None else self._with_counts(table, held)

    def table_entries(self, table: int) -> Iterator[HeldEntry]:
        """Return what was written, and comes with the program."""
        return iter([self._with_counts(table, held) for held in self._held[table].values()])

    def table_size(self, table: int) -> int:
        """Return how many there are."""
        return len(self._held[table])

    def _with_counts(self, table: int, held: HeldEntry) -> HeldEntry:
        counts = self.direct_counter_read(table, held.match)
        return held._replace(counts=counts, idle_ns=0)

    def table_delete(self, table: int, match: Match) -> None:
        """Record."""
        del self._held[table][match]
        self._written.pop(("direct", table, match), None)
        self._record("table_delete", table, match)

    def table_idle_ns(self, table: int, match: Match) -> int:
        """Return 0: time starts with COMMIT."""
        del table, match
        return 0

    def direct_counter_read(self, table: int, match: Match | None) -> tuple[int, int]:
        """Return what was written, else zeros."""
        return self._written.get(("direct", table, match), (0, 0))

    def direct_counter_write(
        self, table: int, match: Match | None, packets: int, octets: int
    ) -> None:
        """Record."""
        self._written["direct", table, match] = packets, octets
        self._record("direct_counter_write", table, match, packets, octets)

    def counter_read(self, array: int, index: int) -> tuple[int, int]:
        """Return what was written, else zeros."""
        return self._written.get(("counter", array, index), (0, 0))

    def counter_write(self, array: int, index: int, packets: int, octets: int) -> None:
        """Record."""
        self._written["counter", array, index] = packets, octets
        self._record("counter_write", array, index, packets, octets)

    def register_read(self, array: int, index: int) -> bytes:
        """Return what was written, else zero."""
        return self._written.get(("register", array, index), b"\0")

    def register_write(self, array: int, index: int, value: bytes) -> None:
        """Record."""
        self._written["register", array, index] = value
        self._record("register_write", array, index, value)

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name not in _RECORDED:
            raise AttributeError(name)

        def record(*arguments: object, **options: object) -> None:
            self._record(name, *arguments, **options)

        return record

    def _record(self, method: str, *arguments: object, **options: object) -> None:
        self._calls.append(_Call(method, arguments, options))


_RECORDED = {
    "table_set_default",
    "profile_add_member",
    "profile_modify_member",
    "profile_delete_member",
    "profile_set_group",
    "profile_delete_group",
    "meter_write",
    "direct_meter_write",
    "value_set_write",
    "set_multicast_group",
    "delete_multicast_group",
    "set_clone_session",
    "delete_clone_session",
}
