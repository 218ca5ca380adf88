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
    part: str
    method: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]


class _Part:
    """A part of the data plane that records the calls of the methods named."""

    def __init__(self, calls: list[_Call], name: str, methods: Iterable[str] = ()) -> None:
        self._calls = calls
        self._name = name
        self._methods = frozenset(methods)

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name not in self._methods:
            raise AttributeError(name)

        def record(*arguments: object, **options: object) -> None:
            self._record(name, *arguments, **options)

        return record

    def _record(self, method: str, *arguments: object, **options: object) -> None:
        self._calls.append(_Call(self._name, method, arguments, options))


class _Tables(_Part):
    """Tables of a program that is not loaded: its declared entries, and what was written."""

    def __init__(self, calls: list[_Call], tables: Iterable[Table]) -> None:
        super().__init__(calls, "tables", ("set_default", "write_meter"))
        self._sizes: dict[int, int] = {}
        self._held: dict[int, dict[Match, HeldEntry]] = {}
        self._counts: dict[tuple[int, Match | None], tuple[int, int]] = {}
        for table in tables:
            entries = initial_entries(table)
            self._sizes[table.position] = max(table.max_size, len(entries), 1)
            self._held[table.position] = entries

    def insert(self, table: int, match: Match, action: int, params: bytes, **options: Any) -> None:
        """Record an insertion; a full table refuses it now, not at COMMIT."""
        held = self._held[table]
        if match in held:
            raise EntryExistsError("an entry with this match exists")
        if len(held) >= self._sizes[table]:
            raise TableFullError("the table is full")
        held[match] = HeldEntry(match, action, params, **options)
        self._record("insert", table, match, action, params, **options)

    def insert_many(
        self,
        table: int,
        entries: Sequence[tuple[bytes, int, bytes]],
        *,
        stop_at_failure: bool = False,
    ) -> tuple[int, dict[int, SoftswitchError]]:
        """Record the insertions one by one."""
        errors: dict[int, SoftswitchError] = {}
        for at, (key, action, params) in enumerate(entries):
            try:
                self.insert(table, Match(key), action, params)
            except SoftswitchError as exc:
                errors[at] = exc
                if stop_at_failure:
                    return at + 1, errors
        return len(entries), errors

    def modify(self, table: int, match: Match, action: int, params: bytes, **options: Any) -> None:
        """Record."""
        self._held[table][match] = HeldEntry(match, action, params, **options)
        self._record("modify", table, match, action, params, **options)

    def delete(self, table: int, match: Match) -> None:
        """Record."""
        del self._held[table][match]
        self._counts.pop((table, match), None)
        self._record("delete", table, match)

    def get(self, table: int, match: Match) -> HeldEntry | None:
        """Return an entry that was written or declared; None if there is none."""
        held = self._held[table].get(match)
        return None if held is None else self._with_counts(table, held)

    def entries(self, table: int) -> Iterator[HeldEntry]:
        """Return the entries that were written or declared."""
        return iter([self._with_counts(table, held) for held in self._held[table].values()])

    def size(self, table: int) -> int:
        """Return how many entries there are."""
        return len(self._held[table])

    def idle_ns(self, table: int, match: Match) -> int:
        """Return 0: time starts with COMMIT."""
        del table, match
        return 0

    def read_counter(self, table: int, match: Match | None) -> tuple[int, int]:
        """Return what was written, or zeros."""
        return self._counts.get((table, match), (0, 0))

    def write_counter(self, table: int, match: Match | None, packets: int, octets: int) -> None:
        """Record."""
        self._counts[table, match] = packets, octets
        self._record("write_counter", table, match, packets, octets)

    def _with_counts(self, table: int, held: HeldEntry) -> HeldEntry:
        return held._replace(counts=self.read_counter(table, held.match), idle_ns=0)


class _Arrays(_Part):
    """Counters and registers that hold what was written, or zeros."""

    def __init__(self, calls: list[_Call]) -> None:
        super().__init__(calls, "arrays", ("write_meter", "write_value_set"))
        self._counters: dict[tuple[int, int], tuple[int, int]] = {}
        self._registers: dict[tuple[int, int], bytes] = {}

    def read_counter(self, array: int, index: int) -> tuple[int, int]:
        """Return what was written, or zeros."""
        return self._counters.get((array, index), (0, 0))

    def write_counter(self, array: int, index: int, packets: int, octets: int) -> None:
        """Record."""
        self._counters[array, index] = packets, octets
        self._record("write_counter", array, index, packets, octets)

    def read_register(self, array: int, index: int) -> bytes:
        """Return what was written, or zero."""
        return self._registers.get((array, index), b"\0")

    def write_register(self, array: int, index: int, value: bytes) -> None:
        """Record."""
        self._registers[array, index] = value
        self._record("write_register", array, index, value)


class RecordingDataPlane:
    """Takes writes for a saved configuration and replays them at COMMIT.

    Reads return what was written; nothing else has changed, as no packet has passed.
    """

    def __init__(self, tables: Iterable[Table]) -> None:
        self._calls: list[_Call] = []
        self.tables = _Tables(self._calls, tables)
        self.profiles = _Part(self._calls, "profiles", _PROFILES)
        self.arrays = _Arrays(self._calls)
        self.replication = _Part(self._calls, "replication", _REPLICATION)

    @property
    def has_writes(self) -> bool:
        """Whether anything is recorded."""
        return bool(self._calls)

    def replay(self, target: DataPlane) -> None:
        """Carry out every recorded write, in order."""
        for call in self._calls:
            getattr(getattr(target, call.part), call.method)(*call.arguments, **call.options)

    def atomically(self) -> AbstractContextManager[None]:
        """Return a context without effect: no packet passes."""
        return contextlib.nullcontext()


_PROFILES = ("add_member", "modify_member", "delete_member", "set_group", "delete_group")
_REPLICATION = (
    "set_multicast_group",
    "delete_multicast_group",
    "set_clone_session",
    "delete_clone_session",
)
