# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A data plane without packets: it remembers control operations and is as strict as a real one."""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

from switchfold.softswitch.errors import (
    EntryExistsError,
    EntryNotFoundError,
    SoftswitchError,
    TableFullError,
)
from switchfold.softswitch.p4runtime.service.dataplane import (
    HeldEntry,
    Match,
    MeterRates,
    ProfileGroup,
    ProfileMember,
    Replicas,
)
from switchfold.softswitch.program.model import Program


class _Tables:
    def __init__(self, plane: FakeDataPlane) -> None:
        self._plane = plane

    def insert(self, table: int, match: Match, action: int, params: bytes, **options: Any) -> None:
        assert self._plane.program is not None
        if (table, match) in self._plane.entries or (table, match) in self._plane.initial:
            raise EntryExistsError("an entry with this match exists")
        held = self._plane.sizes.get(table, 0)
        if held >= self._plane.program.tables[table].max_size:
            raise TableFullError("the table is full")
        self._check_reference(table, options.get("indirect"))
        self._plane.sizes[table] = held + 1
        self._plane.entries[table, match] = (action, params)
        self._plane.options[table, match] = options

    def modify(self, table: int, match: Match, action: int, params: bytes, **options: Any) -> None:
        assert (table, match) in self._plane.entries or (table, match) in self._plane.initial
        self._check_reference(table, options.get("indirect"))
        self._check_open(table, match)
        self._plane.initial.pop((table, match), None)
        self._plane.entries[table, match] = (action, params)
        self._plane.options[table, match] = options

    def delete(self, table: int, match: Match) -> None:
        if (table, match) in self._plane.initial:
            self._check_open(table, match)
            del self._plane.initial[table, match]
            return
        del self._plane.entries[table, match]
        self._plane.sizes[table] = self._plane.sizes.get(table, 0) - 1
        del self._plane.options[table, match]
        self._plane.meters.pop((table, match), None)
        self._plane.counters.pop((table, match), None)

    def insert_many(
        self,
        table: int,
        entries: Sequence[tuple[bytes, int, bytes]],
        *,
        stop_at_failure: bool = False,
    ) -> tuple[int, dict[int, SoftswitchError]]:
        errors: dict[int, SoftswitchError] = {}
        for at, (key, action, params) in enumerate(entries):
            try:
                self.insert(table, Match(key), action, params)
            except SoftswitchError as exc:
                errors[at] = exc
                if stop_at_failure:
                    return at + 1, errors
        return len(entries), errors

    def get(self, table: int, match: Match) -> HeldEntry | None:
        return next((held for held in self.entries(table) if held.match == match), None)

    def entries(self, table: int) -> Iterator[HeldEntry]:
        found: list[HeldEntry] = []
        for (position, match), (action, params) in {
            **self._plane.initial,
            **self._plane.entries,
        }.items():
            if position == table:
                options = self._plane.options.get((table, match), {})
                counts = self.read_counter(table, match)
                idle_ns = self._plane.idle_ns.get((table, match), 0)
                held = HeldEntry(match, action, params, counts=counts, idle_ns=idle_ns)
                found.append(held._replace(**options))
        return iter(found)

    def size(self, table: int) -> int:
        return len(list(self.entries(table)))

    def open(self, table: int) -> None:
        self._plane.opened.add(table)

    def _check_open(self, table: int, match: Match) -> None:
        assert (table, match) not in self._plane.initial or table in self._plane.opened

    def _check_reference(self, table: int, indirect: ProfileMember | ProfileGroup | None) -> None:
        if isinstance(indirect, ProfileMember):
            assert (self._plane.profile_of(table), indirect.id) in self._plane.members
        elif isinstance(indirect, ProfileGroup):
            assert (self._plane.profile_of(table), indirect.id) in self._plane.selector_groups

    def set_default(self, table: int, action: int, params: bytes) -> None:
        self._plane.defaults[table] = (action, params)

    def idle_ns(self, table: int, match: Match) -> int:
        if (table, match) not in self._plane.entries:
            raise EntryNotFoundError("no such entry")
        return self._plane.idle_ns.get((table, match), 0)

    def write_meter(self, table: int, match: Match | None, rates: MeterRates | None) -> None:
        assert match is None or (table, match) in self._plane.entries
        self._plane.set_meter((table, match), rates)

    def read_counter(self, table: int, match: Match | None) -> tuple[int, int]:
        return self._plane.counters.get((table, match), (0, 0))

    def write_counter(self, table: int, match: Match | None, packets: int, octets: int) -> None:
        self._plane.set_counter((table, match), (packets, octets))


class _Profiles:
    def __init__(self, plane: FakeDataPlane) -> None:
        self._plane = plane

    def add_member(self, profile: int, member: int, action: int, params: bytes) -> None:
        assert (profile, member) not in self._plane.members
        self._plane.members[profile, member] = action, params

    def modify_member(self, profile: int, member: int, action: int, params: bytes) -> None:
        assert (profile, member) in self._plane.members
        self._plane.members[profile, member] = action, params

    def delete_member(self, profile: int, member: int) -> None:
        for (owner, _), members in self._plane.selector_groups.items():
            assert owner != profile or member not in dict(members)
        assert not self._plane.users(ProfileMember, profile, member)
        del self._plane.members[profile, member]

    def set_group(self, profile: int, group: int, members: Sequence[tuple[int, int]]) -> None:
        assert all((profile, member) in self._plane.members for member, _ in members)
        self._plane.selector_groups[profile, group] = list(members)

    def delete_group(self, profile: int, group: int) -> None:
        assert not self._plane.users(ProfileGroup, profile, group)
        del self._plane.selector_groups[profile, group]


class _Arrays:
    def __init__(self, plane: FakeDataPlane) -> None:
        self._plane = plane

    def write_meter(self, array: int, index: int, rates: MeterRates | None) -> None:
        self._plane.set_meter(("array", array, index), rates)

    def read_counter(self, array: int, index: int) -> tuple[int, int]:
        return self._plane.counters.get(("array", array, index), (0, 0))

    def write_counter(self, array: int, index: int, packets: int, octets: int) -> None:
        self._plane.set_counter(("array", array, index), (packets, octets))

    def read_register(self, array: int, index: int) -> bytes:
        assert self._plane.program is not None
        size = (self._plane.program.registers[array].width + 7) // 8
        return self._plane.registers.get((array, index), bytes(size))

    def write_register(self, array: int, index: int, value: bytes) -> None:
        self._plane.registers.pop((array, index), None)
        if any(value):
            self._plane.registers[array, index] = value

    def write_value_set(self, position: int, members: Sequence[tuple[bytes, bytes]]) -> None:
        self._plane.value_sets.pop(position, None)
        if members:
            self._plane.value_sets[position] = list(members)


class _Replication:
    def __init__(self, plane: FakeDataPlane) -> None:
        self._plane = plane

    def set_multicast_group(self, group: int, replicas: Replicas) -> None:
        self._plane.groups[group] = replicas

    def delete_multicast_group(self, group: int) -> None:
        del self._plane.groups[group]

    def set_clone_session(
        self, session_id: int, replicas: Replicas, *, packet_length_bytes: int = 0
    ) -> None:
        self._plane.sessions[session_id] = replicas, packet_length_bytes

    def delete_clone_session(self, session_id: int) -> None:
        del self._plane.sessions[session_id]


class FakeDataPlane:
    """Remembers control operations; `punt`, `learn` and `expire` play the packets' part."""

    def __init__(self) -> None:
        self.program: Program | None = None
        self.num_loads = 0
        self.holds = 0
        """Blocks of `atomically` so far."""
        self.is_held = False
        self.packets_out: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._packet_in: Callable[[bytes], None] | None = None
        self._digest: Callable[[int, bytes], None] | None = None
        self._idle: Callable[[int, Match], None] | None = None
        self.tables = _Tables(self)
        self.profiles = _Profiles(self)
        self.arrays = _Arrays(self)
        self.replication = _Replication(self)
        self._clear()

    def _clear(self) -> None:
        self.entries: dict[tuple[int, Match], tuple[int, bytes]] = {}
        self.options: dict[tuple[int, Match], dict[str, Any]] = {}
        self.defaults: dict[int, tuple[int, bytes]] = {}
        self.counters: dict[Any, tuple[int, int]] = {}
        self.registers: dict[tuple[int, int], bytes] = {}
        self.groups: dict[int, Replicas] = {}
        self.sessions: dict[int, tuple[Replicas, int]] = {}
        self.meters: dict[Any, MeterRates] = {}
        self.members: dict[tuple[int, int], tuple[int, bytes]] = {}
        self.selector_groups: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self.value_sets: dict[int, list[tuple[bytes, bytes]]] = {}
        self.idle_ns: dict[tuple[int, Match], int] = {}
        self.initial: dict[tuple[int, Match], tuple[int, bytes]] = {}
        """Entries that the program brings along and that are as they were."""
        self.opened: set[int] = set()
        """Tables whose entries of the program may be changed."""
        self.sizes: dict[int, int] = {}

    @property
    def state(self) -> dict[str, Any]:
        """All that writes have changed, to compare before and after."""
        names = (
            "entries",
            "options",
            "defaults",
            "counters",
            "registers",
            "groups",
            "sessions",
            "meters",
            "members",
            "selector_groups",
            "value_sets",
        )
        return {name: dict(getattr(self, name)) for name in names}

    def load(self, program: Any) -> None:
        self.program = program
        self.num_loads += 1
        self._clear()
        for table in () if program is None else program.tables:
            is_exact = table.kind == "exact"
            for entry in table.entries:
                mask = b"" if is_exact else entry.mask
                priority = entry.priority if table.has_priorities else 0
                match = Match(entry.key, mask, 0 if is_exact else entry.prefix_len, priority)
                self.initial[table.position, match] = entry.action, entry.params

    @contextlib.contextmanager
    def atomically(self) -> Generator[None]:
        self.holds += 1
        before, self.is_held = self.is_held, True
        yield
        self.is_held = before

    def profile_of(self, table: int) -> int:
        assert self.program is not None
        pipelines = self.program.json["pipelines"]
        tables = [item for pipeline in pipelines for item in pipeline["tables"]]
        profiles = [item["name"] for pipeline in pipelines for item in pipeline["action_profiles"]]
        return profiles.index(tables[table]["action_profile"])

    def users(
        self, kind: type[ProfileMember] | type[ProfileGroup], profile: int, number: int
    ) -> int:
        found = [
            table
            for (table, _), item in self.options.items()
            if isinstance(indirect := item.get("indirect"), kind) and indirect.id == number
        ]
        return sum(1 for table in found if self.profile_of(table) == profile)

    def set_idle(self, callback: Callable[[int, Match], None] | None) -> None:
        self._idle = callback

    def set_meter(self, key: Any, rates: MeterRates | None) -> None:
        self.meters.pop(key, None)
        if rates is not None:
            self.meters[key] = rates

    def set_counter(self, key: Any, counts: tuple[int, int]) -> None:
        self.counters.pop(key, None)
        if counts != (0, 0):
            self.counters[key] = counts

    def set_digest(self, callback: Callable[[int, bytes], None] | None) -> None:
        self._digest = callback

    def packet_out(self, frame: bytes) -> None:
        self.packets_out.put(frame)

    def set_packet_in(self, callback: Callable[[bytes], None] | None) -> None:
        self._packet_in = callback

    def punt(self, frame: bytes) -> None:
        """Let a frame leave by the CPU port."""
        assert self._packet_in is not None
        self._packet_in(frame)

    def learn(self, list_id: int, sample: bytes) -> None:
        """Let a packet make a digest sample."""
        assert self._digest is not None
        self._digest(list_id, sample)

    def expire(self, table: int, match: Match, idle_ns: int) -> None:
        """Let an entry expire."""
        self.idle_ns[table, match] = idle_ns
        assert self._idle is not None
        self._idle(table, match)
