# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Entries read from the data plane are those that were written; P4Runtime keeps no others."""

import random
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from finsy.proto import p4i, p4r, rpc_code
from google.protobuf import text_format

from pipeline_driver import PROGRAMS
from switchfold.softswitch import Switch, compile_program
from switchfold.softswitch.errors import EntryExistsError, TableFullError, UnsupportedControlError
from switchfold.softswitch.p4runtime.service.device import Device
from switchfold.softswitch.p4runtime.service.pipeline_config import Pipeline
from switchfold.softswitch.p4runtime.writes.write import write_updates
from switchfold.softswitch.program.model import ProgramTable
from switchfold.softswitch.switch.table_entries import HeldEntry, Match, ProfileGroup, ProfileMember
from test_table_matching import random_part


@contextmanager
def _switch(name: str) -> Generator[tuple[Switch, dict[str, ProgramTable]]]:
    program = compile_program(PROGRAMS / f"{name}.json")
    with Switch(program) as switch:
        yield switch, {item.name.rpartition(".")[2]: item for item in program.model.tables}


def _random_match(table: ProgramTable, rng: random.Random) -> Match:
    keys: list[bytes] = []
    masks: list[bytes] = []
    prefix_len = 0
    for part in table.key:
        size, value = (part.width + 7) // 8, random_part(part, rng)
        bits = (1 << part.width) - 1
        if isinstance(value, tuple):
            value, mask = value
            if part.kind == "lpm":
                prefix_len = mask
            else:
                bits = mask
        keys.append(value.to_bytes(size, "big"))
        masks.append(bits.to_bytes(size, "big"))
    if table.kind == "exact":
        return Match(b"".join(keys))
    priority = rng.randrange(1, 100) if table.has_priorities else 0
    return Match(b"".join(keys), b"".join(masks), prefix_len, priority)


@pytest.mark.parametrize("name", ["exact_small", "prefixes", "masks", "ranges", "mixture"])
def test_entries_of_every_kind_come_back(name: str) -> None:
    rng = random.Random(name)
    with _switch("table_kinds") as (switch, tables):
        table = tables[name]
        action = next(item for item in table.actions if item.name.endswith("answer"))
        held: dict[Match, HeldEntry] = {}
        for _ in range(300):
            match = _random_match(table, rng)
            params = rng.randbytes(8)
            if match in held:
                with pytest.raises(EntryExistsError):
                    switch.tables.insert(table.position, match, action.position, params)
                if rng.random() < 0.5:
                    switch.tables.delete(table.position, match)
                    del held[match]
                continue
            try:
                switch.tables.insert(table.position, match, action.position, params)
            except TableFullError:
                assert len(held) == table.max_size
                continue
            held[match] = HeldEntry(match, action.position, params)
        found = {item.match: item for item in switch.tables.entries(table.position)}
        assert found == held
        assert switch.tables.size(table.position) == len(held)
        for match, item in held.items():
            assert switch.tables.get(table.position, match) == item
            switch.tables.delete(table.position, match)
            assert switch.tables.get(table.position, match) is None
        assert not list(switch.tables.entries(table.position))


def test_more_entries_than_one_step_and_errors_by_position() -> None:
    with _switch("table_kinds") as (switch, tables):
        table = tables["exact_large"]
        action = next(item for item in table.actions if item.name.endswith("answer")).position
        entries = [
            (number.to_bytes(6, "big"), action, number.to_bytes(8, "big")) for number in range(5000)
        ]
        assert switch.tables.insert_many(table.position, entries) == (5000, {})
        found = [(item.match.key, item.action, item.params) for item in switch.tables.entries(2)]
        assert found == entries
        more = [(b"new  1", action, bytes(8)), entries[7], (b"new  2", action, bytes(8))]
        tried, errors = switch.tables.insert_many(table.position, more, stop_at_failure=True)
        assert (tried, list(errors)) == (2, [1])
        tried, errors = switch.tables.insert_many(table.position, more)
        assert (tried, sorted(errors)) == (3, [0, 1])
        assert isinstance(errors[0], EntryExistsError)
        assert switch.tables.size(table.position) == 5002


@pytest.mark.parametrize("name", ["signed_parameters", "wide_storage", "tables"])
def test_parameters_of_any_width_come_back(name: str) -> None:
    rng = random.Random(name)
    compared = 0
    with _switch(name) as (switch, tables):
        for table in tables.values():
            if not table.key or table.action_profile is not None:
                continue
            if table.entries:
                found = [item[1:3] for item in switch.tables.entries(table.position)]
                assert found == [(entry.action, entry.params) for entry in table.entries]
                compared += len(found)
                continue
            for action in table.actions:
                match = _random_match(table, rng)
                if switch.tables.get(table.position, match) is not None:
                    continue
                widths = [item.width for item in action.parameters]
                numbers = [rng.randrange(1 << width) | 1 << (width - 1) for width in widths]
                params = b"".join(
                    number.to_bytes((width + 7) // 8, "big")
                    for number, width in zip(numbers, widths, strict=True)
                )
                switch.tables.insert(table.position, match, action.position, params)
                held = switch.tables.get(table.position, match)
                assert held is not None
                assert (held.action, held.params) == (action.position, params)
                compared += len(params)
    assert compared


def test_members_and_groups_come_back() -> None:
    with _switch("action_profiles") as (switch, tables):
        table = tables["crc16"]
        profile = table.action_profile
        assert profile is not None
        action = next(item for item in table.actions if item.name.endswith("set_value"))
        size = sum((item.width + 7) // 8 for item in action.parameters)
        switch.profiles.add_member(profile, 70, action.position, bytes(size))
        switch.profiles.set_group(profile, 5, [(70, 2)])
        key = sum((part.width + 7) // 8 for part in table.key if part.kind != "selector")
        switch.tables.insert(table.position, Match(bytes(key)), 0, b"", indirect=ProfileMember(70))
        other = Match(bytes(key - 1) + b"\1")
        switch.tables.insert(table.position, other, 0, b"", indirect=ProfileGroup(5))
        found = [item.indirect for item in switch.tables.entries(table.position)]
        assert found == [ProfileMember(70), ProfileGroup(5)]


@contextmanager
def _served(name: str) -> Generator[tuple[Switch, Pipeline, dict[str, int]]]:
    text = (PROGRAMS / f"{name}.p4info.txtpb").read_text()
    info = text_format.Parse(text, p4i.P4Info())
    program = compile_program(PROGRAMS / f"{name}.json")
    with Switch(program) as switch:
        device = Device(switch, 1, compile_program)
        config = p4r.ForwardingPipelineConfig(p4info=info)
        device.config.adopt(config, program.model, program)
        assert device.config.running is not None
        items = (*info.tables, *info.actions)
        yield (
            switch,
            device.config.running,
            {item.preamble.alias: item.preamble.id for item in items},
        )


def test_initial_entries_can_be_changed_where_the_table_is_not_const() -> None:
    with _served("control_plane") as (switch, pipeline, ids):
        query = p4r.Entity(table_entry=p4r.TableEntry(table_id=ids["started"]))
        first, second = [item.table_entry for item in pipeline.stores.read(query)]
        assert not first.is_const
        changed = p4r.TableEntry()
        changed.CopyFrom(first)
        changed.action.action.action_id = ids["NoAction"]
        third = p4r.TableEntry()
        third.CopyFrom(first)
        third.match[0].exact.value = b"\x77\x77"
        updates = [
            p4r.Update(type=kind, entity=p4r.Entity(table_entry=entry))
            for kind, entry in (
                (p4r.Update.MODIFY, changed),
                (p4r.Update.DELETE, second),
                (p4r.Update.INSERT, third),
            )
        ]
        assert write_updates(pipeline, p4r.WriteRequest(updates=updates)) == [None] * 3
        found = [item.table_entry for item in pipeline.stores.read(query)]
        assert found == [changed, third]
        table = pipeline.schema.table(ids["started"])
        keys = [item.match.key for item in switch.tables.entries(table.position)]
        assert keys == [b"\x91\x00", b"\x77\x77"]


def test_entries_of_const_tables_stay() -> None:
    with _served("control_plane") as (switch, pipeline, ids):
        query = p4r.Entity(table_entry=p4r.TableEntry(table_id=ids["fixed"]))
        found = [item.table_entry for item in pipeline.stores.read(query)]
        assert found
        assert all(item.is_const for item in found)
        found[0].is_const = False
        update = p4r.Update(type=p4r.Update.DELETE, entity=p4r.Entity(table_entry=found[0]))
        (error,) = write_updates(pipeline, p4r.WriteRequest(updates=[update]))
        assert error is not None
        assert error.code == rpc_code.PERMISSION_DENIED
        table = pipeline.schema.table(ids["fixed"])
        held = next(switch.tables.entries(table.position))
        with pytest.raises(UnsupportedControlError):
            switch.tables.delete(table.position, held.match)
