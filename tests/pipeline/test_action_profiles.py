# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Members, groups, weights, the hashes that select members, and tables that share a profile."""

import zlib
from collections.abc import Iterator

import pytest

from pipeline_driver import PROGRAMS
from switchfold.softswitch import Match, Switch, compile_program
from switchfold.softswitch.errors import (
    BadArgumentError,
    EntryExistsError,
    EntryNotFoundError,
    InUseError,
    UnsupportedControlError,
)
from switchfold.softswitch.switch.table_entries import ProfileGroup, ProfileMember

MEMBERS_ONLY, CRC16, CRC32, IDENTITY, SUM = range(5)
KINDS = {"profile": 1, "profile_twin": 2, "crc16": 3, "crc32": 4, "identity": 5, "sum": 6}


class Profiles:
    """A switch with the program, by names."""

    def __init__(self) -> None:
        self.program = compile_program(PROGRAMS / "action_profiles.json", cflags=("-Werror",))
        self.switch = Switch(self.program)
        self.switch.ports.add(1, "mem")

    def table(self, name: str) -> int:
        tables = self.program.model.tables
        return next(t.position for t in tables if t.name == f"TheIngress.{name}")

    def action(self, name: str, table: str) -> int:
        actions = self.program.model.tables[self.table(table)].actions
        return next(a.position for a in actions if a.name.split(".")[-1] == name)

    def add(self, profile: int, member: int, value: int, table: str) -> None:
        action = self.action("set_value", table)
        self.switch.profiles.add_member(profile, member, action, value.to_bytes(2, "big"))

    def insert(
        self, table: str, key: bytes, indirect: ProfileMember | ProfileGroup, **rest: int
    ) -> None:
        match = Match(key, b"\xff" * len(key), rest.get("prefix_len", 0), rest.get("priority", 0))
        self.switch.tables.insert(self.table(table), match, 0, indirect=indirect)

    def send(  # noqa: PLR0917 - the packet's fields
        self, kind: str, key: int = 0, c: int = 0, e: int = 0, f: int | None = None, seed: int = 0
    ) -> tuple[int, int, int, int]:
        """Return hit, ran, value and shared of what comes back."""
        d = 0 if f is None else 1
        frame = bytes((KINDS[kind], key)) + (c << 7 | d).to_bytes(2, "big") + e.to_bytes(4, "big")
        frame += bytes(2) + seed.to_bytes(2, "big") + bytes(2)
        frame += b"" if f is None else f.to_bytes(6, "big")
        [(_, back)] = self.switch.process(1, frame)
        return (
            back[8],
            back[9],
            int.from_bytes(back[10:12], "big"),
            int.from_bytes(back[12:14], "big"),
        )


@pytest.fixture
def profiles() -> Iterator[Profiles]:
    held = Profiles()
    yield held
    held.switch.close()


def crc16(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xA001 if crc & 1 else 0)
    return crc


def pack_bits(*fields: tuple[int, int]) -> bytes:
    """Return the bytes of (value, width) fields, padded with zeros at the end."""
    value = width = 0
    for field, bits in fields:
        value, width = value << bits | field, width + bits
    return (value << -width % 8).to_bytes((width + 7) // 8, "big")


def test_members_run_their_actions_in_both_tables(profiles: Profiles) -> None:
    switch = profiles.switch
    profiles.add(MEMBERS_ONLY, 7, 0x1234, "profile")
    both = profiles.action("both", "profile_twin")
    switch.profiles.add_member(MEMBERS_ONLY, 8, both, bytes.fromhex("aaaabbbb"))
    profiles.insert("profile", b"\x05", ProfileMember(7))
    profiles.insert("profile", b"\x06", ProfileMember(8))
    profiles.insert("profile_twin", bytes(4), ProfileMember(7), prefix_len=8)
    profiles.insert("profile_twin", b"\x09\0\0\0", ProfileMember(8), prefix_len=8)
    assert profiles.send("profile", 5) == (1, 0, 0x1234, 0)
    assert profiles.send("profile", 6) == (1, 0, 0xAAAA, 0xBBBB)
    assert profiles.send("profile", 9) == (0, 0, 0, 0)
    assert profiles.send("profile_twin", e=7) == (1, 0, 0x1234, 0)
    assert profiles.send("profile_twin", e=0x09112233) == (1, 0, 0xAAAA, 0xBBBB)
    # A changed member takes effect in all of its entries at once.
    switch.profiles.modify_member(MEMBERS_ONLY, 7, both, bytes.fromhex("00010002"))
    assert profiles.send("profile", 5) == (1, 0, 1, 2)
    assert profiles.send("profile_twin", e=7) == (1, 0, 1, 2)


def test_default_member_and_taking_it_away(profiles: Profiles) -> None:
    profiles.add(MEMBERS_ONLY, 1, 3, "profile")
    table = profiles.table("profile")
    assert profiles.send("profile")[2] == 0
    profiles.switch.tables.set_default(table, 0, indirect=ProfileMember(1))
    assert profiles.send("profile")[2] == 3
    with pytest.raises(InUseError):
        profiles.switch.profiles.delete_member(MEMBERS_ONLY, 1)
    profiles.switch.tables.set_default(table, 0)
    assert profiles.send("profile")[2] == 0
    profiles.switch.profiles.delete_member(MEMBERS_ONLY, 1)


def test_references_and_errors(profiles: Profiles) -> None:
    switch, table = profiles.switch, profiles.table("crc16")
    profiles.add(CRC16, 1, 10, "crc16")
    with pytest.raises(EntryExistsError):
        profiles.add(CRC16, 1, 10, "crc16")
    with pytest.raises(EntryNotFoundError):
        switch.profiles.set_group(CRC16, 5, [(1, 1), (2, 1)])
    with pytest.raises(BadArgumentError):
        switch.profiles.set_group(CRC16, 5, [(1, 0)])
    with pytest.raises(BadArgumentError):
        switch.profiles.set_group(CRC16, 5, [(1, 1), (1, 1)])
    with pytest.raises(UnsupportedControlError):
        switch.profiles.set_group(MEMBERS_ONLY, 5, [])
    with pytest.raises(BadArgumentError):
        switch.profiles.add_member(CRC16, 9, profiles.action("NoAction", "crc32"), b"")
    with pytest.raises(BadArgumentError):
        switch.tables.insert(table, Match(b"\1"), profiles.action("set_value", "crc16"), b"\0\0")
    with pytest.raises(EntryNotFoundError):
        profiles.insert("crc16", b"\1", ProfileMember(2))
    with pytest.raises(EntryNotFoundError):
        profiles.insert("crc16", b"\1", ProfileGroup(5))
    switch.profiles.set_group(CRC16, 5, [(1, 1)])
    profiles.insert("crc16", b"\1", ProfileGroup(5))
    for attempt in (
        lambda: switch.profiles.delete_group(CRC16, 5),
        lambda: switch.profiles.delete_member(CRC16, 1),
    ):
        with pytest.raises(InUseError):
            attempt()
    switch.tables.modify(table, Match(b"\1"), 0, indirect=ProfileMember(1))
    switch.profiles.delete_group(CRC16, 5)
    switch.tables.clear(table)
    switch.profiles.delete_member(CRC16, 1)
    with pytest.raises(EntryNotFoundError):
        switch.profiles.delete_member(CRC16, 1)


def test_the_action_that_ran_is_the_member_s(profiles: Profiles) -> None:
    profiles.add(CRC16, 1, 10, "crc16")
    both = profiles.action("both", "crc16")
    profiles.switch.profiles.add_member(CRC16, 2, both, bytes.fromhex("00010002"))
    profiles.insert("crc16", b"\1", ProfileMember(1))
    profiles.insert("crc16", b"\2", ProfileMember(2))
    assert profiles.send("crc16", 1) == (0, 1, 10, 0)
    assert profiles.send("crc16", 2) == (0, 2, 1, 2)


def test_empty_group_hits_and_does_nothing(profiles: Profiles) -> None:
    profiles.switch.profiles.set_group(IDENTITY, 1, [])
    profiles.insert("identity", b"\1", ProfileGroup(1))
    assert profiles.send("identity", 1, e=5) == (1, 0, 0, 0)
    assert profiles.send("identity", 2, e=5) == (2, 0, 0, 0)


def test_members_of_a_group_are_chosen_in_the_order_of_their_handles(profiles: Profiles) -> None:
    switch = profiles.switch
    for member, value in ((9, 90), (3, 30), (7, 70)):  # handles 0, 1, 2
        profiles.add(IDENTITY, member, value, "identity")
    switch.profiles.set_group(IDENTITY, 1, [(3, 1), (7, 1), (9, 1)])
    profiles.insert("identity", b"\1", ProfileGroup(1))
    assert [profiles.send("identity", 1, e=e)[2] for e in range(4)] == [90, 30, 70, 90]
    # Weight 2: member 7 gets handle 3 for its second unit; a smaller group drops it again.
    switch.profiles.set_group(IDENTITY, 1, [(7, 2), (3, 1)])
    assert [profiles.send("identity", 1, e=e)[2] for e in range(4)] == [30, 70, 70, 30]
    switch.profiles.set_group(IDENTITY, 2, [(9, 3), (7, 2)])  # 9: 0, 4, 5; 7: 2, 3
    profiles.insert("identity", b"\2", ProfileGroup(2))
    assert [profiles.send("identity", 2, e=e)[2] for e in range(5)] == [90, 70, 70, 90, 90]
    switch.profiles.set_group(IDENTITY, 1, [])
    switch.profiles.delete_member(IDENTITY, 3)
    profiles.add(IDENTITY, 4, 40, "identity")  # handle 1 again
    switch.profiles.set_group(IDENTITY, 1, [(4, 1), (9, 1), (7, 1)])
    assert [profiles.send("identity", 1, e=e)[2] for e in range(3)] == [90, 40, 70]


@pytest.mark.parametrize("e", [0, 1, 0xDEADBEEF, 0x12345678])
def test_hashes_are_those_of_simple_switch(profiles: Profiles, e: int) -> None:
    switch = profiles.switch
    for profile, table in ((CRC16, "crc16"), (CRC32, "crc32"), (SUM, "sum")):
        for member in range(7):
            profiles.add(profile, member, member + 1, table)
        switch.profiles.set_group(profile, 1, [(member, 1) for member in range(7)])
    profiles.insert("crc16", b"\1", ProfileGroup(1))
    profiles.insert("crc32", b"\1", ProfileGroup(1), priority=1)
    profiles.insert("sum", b"\1", ProfileGroup(1))
    hashed = crc16(pack_bits((0x155, 9), (e, 32), (0, 7)))
    assert profiles.send("crc16", 1, c=0x155, e=e)[2] == hashed % 7 + 1
    # Fields of an invalid header are left out, and the rest is padded at its end.
    hashed = zlib.crc32(pack_bits((0x155, 9), (e, 32)))
    assert profiles.send("crc32", 1, c=0x155, e=e)[2] == hashed % 7 + 1
    hashed = zlib.crc32(pack_bits((0x155, 9), (e, 32), (0xA1B2C3D4E5F6, 48)))
    assert profiles.send("crc32", 1, c=0x155, e=e, f=0xA1B2C3D4E5F6)[2] == hashed % 7 + 1
    total = (e >> 16) + (e & 0xFFFF) + 0x777
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    assert profiles.send("sum", 1, e=e, seed=0x777)[2] == (0xFFFF ^ total) % 7 + 1


def test_random_changes_of_groups_agree_with_a_model_of_the_handles(profiles: Profiles) -> None:
    import random  # noqa: PLC0415 - only here

    rng = random.Random(5)
    switch = profiles.switch
    handles: dict[int, list[int]] = {}
    groups: dict[int, dict[int, int]] = {}

    def lowest() -> int:
        taken = {handle for held in handles.values() for handle in held}
        return next(handle for handle in range(1000) if handle not in taken)

    def shrink(members: list[int]) -> None:
        for member in sorted(members):
            needed = max([1, *(group.get(member, 0) for group in groups.values())])
            del handles[member][needed:]

    for number in range(1, 7):
        switch.profiles.set_group(IDENTITY, number, [])
        profiles.insert("identity", bytes((number,)), ProfileGroup(number))
        groups[number] = {}
    for _ in range(400):
        action = rng.random()
        used = {member for group in groups.values() for member in group}
        if action < 0.3 and len(handles) < 20:
            member = next(m for m in rng.sample(range(1, 60), 59) if m not in handles)
            profiles.add(IDENTITY, member, member, "identity")
            handles[member] = []
            handles[member].append(lowest())
        elif action < 0.4 and set(handles) - used:
            member = rng.choice(sorted(set(handles) - used))
            switch.profiles.delete_member(IDENTITY, member)
            del handles[member]
        else:
            number = rng.randrange(1, 7)
            chosen = rng.sample(sorted(handles), rng.randrange(len(handles) + 1))
            wanted = {member: rng.randrange(1, 4) for member in chosen}
            before = groups[number]
            switch.profiles.set_group(IDENTITY, number, list(wanted.items()))
            for member in sorted(wanted):
                while len(handles[member]) < wanted[member]:
                    handles[member].append(lowest())
            groups[number] = wanted
            shrink(list(before))
        number = rng.randrange(1, 7)
        order = sorted(
            (handle, member)
            for member, weight in groups[number].items()
            for handle in handles[member][:weight]
        )
        e = rng.randrange(1 << 32)
        wanted_value = order[e % len(order)][1] if order else 0
        assert profiles.send("identity", number, e=e)[2] == wanted_value
