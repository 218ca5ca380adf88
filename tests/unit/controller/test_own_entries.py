# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A user's entries on a running switch: written beside another primary, refused where not his."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from finsy import P4Client
from finsy.proto import U128, p4i, p4r

from p4runtime_control_plane import IDS, host
from p4runtime_fixtures import CONTROL_PLANE, PROGRAMS
from switchfold.controller.__main__ import run
from switchfold.controller.config import SwitchConfig
from switchfold.controller.errors import (
    ReservedEntryError,
    SwitchUnreachableError,
    SwitchUpdateError,
    UnknownNameError,
)
from switchfold.controller.switches import own_entries, switch_call
from switchfold.controller.switches.own_entries import (
    PlacedUpdate,
    WrittenEntries,
    check_own,
    deletion,
    running_program,
    write_own,
)
from switchfold.controller.switches.program import load_program
from switchfold.controller.switches.table_read import read_table
from switchfold.softswitch.compilation.compiler import compile_program
from switchfold.softswitch.p4runtime.service.serve import serve
from switchfold.softswitch.switch.switch import Switch

JSON = PROGRAMS / "control_plane.json"
P4INFO = PROGRAMS / "control_plane.p4info.txtpb"
CONTROLLERS_TERM = 12
OWN_TABLE = 77


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switch_call, "_FETCH_TIMEOUT_S", 60.0)
    monkeypatch.setattr(own_entries, "_TIMEOUT_S", 60.0)


@contextmanager
def running(folder: Path) -> Generator[SwitchConfig]:
    address = f"unix:{folder}/s1.sock"
    with Switch(compile_program(JSON)) as switch, serve(switch, P4INFO, address):
        yield SwitchConfig(name="s1", address=address)


def inserts(*entries: p4r.TableEntry) -> list[PlacedUpdate]:
    return [
        (f"line {number}", p4r.Update(type=p4r.Update.INSERT, entity=p4r.Entity(table_entry=entry)))
        for number, entry in enumerate(entries, 1)
    ]


def hosts(config: SwitchConfig) -> list[tuple[str, str]]:
    found = asyncio.run(read_table(config, CONTROL_PLANE.p4info, "host"))
    return sorted((entry.match["src"], entry.action) for entry in found.entries)


def arbitration(role: str, election_id: int) -> p4r.StreamMessageRequest:
    return p4r.StreamMessageRequest(
        arbitration=p4r.MasterArbitrationUpdate(
            device_id=1, role=p4r.Role(name=role), election_id=U128.encode(election_id)
        )
    )


def test_entries_are_inserted_then_modified_then_deleted(tmp_path: Path) -> None:
    with running(tmp_path) as config:
        first = asyncio.run(write_own(config, inserts(host(1, 2), host(2, 2))))
        assert first == WrittenEntries(inserted=2, modified=0, deleted=0, has_displaced=False)
        second = asyncio.run(write_own(config, inserts(host(2, 3), host(3, 3))))
        # The switch may not have seen the end of the first stream: then this one has displaced it.
        assert (second.inserted, second.modified, second.deleted) == (1, 1, 0)
        written = hosts(config)
        assert [action for _, action in written] == [
            f"known(port={port})" for port in ("0x2", "0x3", "0x3")
        ]
        gone = [(where, deletion(update)) for where, update in inserts(host(1), host(3))]
        assert asyncio.run(write_own(config, gone)).deleted == 2
        assert hosts(config) == written[1:2]


def test_places_of_refused_entries_are_told_and_the_rest_is_written(tmp_path: Path) -> None:
    with running(tmp_path) as config:
        absent = deletion(inserts(host(9))[0][1])
        with pytest.raises(SwitchUpdateError, match="line 7: ") as refused:
            asyncio.run(write_own(config, [("line 7", absent), *inserts(host(1))]))
        assert "line 1" not in str(refused.value)
        assert len(hosts(config)) == 1


def test_primary_of_another_role_notices_nothing(tmp_path: Path) -> None:
    async def write_beside(config: SwitchConfig) -> tuple[WrittenEntries, p4r.WriteRequest]:
        async with P4Client(config.address) as controller:
            await controller.send(arbitration("", CONTROLLERS_TERM))
            assert (await controller.receive()).arbitration.status.code == 0
            written = await write_own(config, inserts(host(1)))
            request = p4r.WriteRequest(
                device_id=1,
                election_id=U128.encode(CONTROLLERS_TERM),
                updates=[update for _, update in inserts(host(2))],
            )
            await controller.request(request)
            return written, request

    with running(tmp_path) as config:
        written, _ = asyncio.run(write_beside(config))
        assert not written.has_displaced
        assert len(hosts(config)) == 2


@pytest.mark.parametrize("others", [1, 5])
def test_another_user_is_displaced(tmp_path: Path, others: int) -> None:
    async def write_over(config: SwitchConfig) -> WrittenEntries:
        async with P4Client(config.address) as other:
            await other.send(arbitration("users", others))
            assert (await other.receive()).arbitration.status.code == 0
            return await write_own(config, inserts(host(1)))

    with running(tmp_path) as config:
        assert asyncio.run(write_over(config)).has_displaced
        assert len(hosts(config)) == 1


def aggregation_with_a_table() -> p4i.P4Info:
    info = p4i.P4Info()
    info.CopyFrom(load_program("narrow").p4info)
    info.tables.add(preamble=p4i.Preamble(id=OWN_TABLE, name="SwitchfoldIngress.sender.sender"))
    return info


def entry_of(table_id: int) -> p4r.Entity:
    return p4r.Entity(table_entry=p4r.TableEntry(table_id=table_id))


def group(number: int) -> p4r.Entity:
    entity = p4r.Entity()
    entity.packet_replication_engine_entry.multicast_group_entry.multicast_group_id = number
    return entity


def test_what_the_controller_keeps_is_refused() -> None:
    info = aggregation_with_a_table()
    of_table = {table.preamble.alias: table.preamble.id for table in info.tables}
    register = p4r.Entity(
        register_entry=p4r.RegisterEntry(register_id=info.registers[0].preamble.id)
    )
    for entity in (entry_of(of_table["job"]), entry_of(of_table["hot_row"]), register):
        with pytest.raises(ReservedEntryError, match=r"line 3: Switchfold\w+\..* is the controll"):
            check_own(info, [("line 3", p4r.Update(entity=entity))])
    for number in (1, 24575):
        with pytest.raises(ReservedEntryError, match=r"line 3: .* 24576"):
            check_own(info, [("line 3", p4r.Update(entity=group(number)))])


def test_what_is_the_users_is_accepted() -> None:
    session = p4r.Entity()
    session.packet_replication_engine_entry.clone_session_entry.session_id = 5
    updates = [
        ("line 1", p4r.Update(entity=entity))
        for entity in (entry_of(OWN_TABLE), group(24576), session)
    ]
    check_own(aggregation_with_a_table(), updates)
    # A program that no controller drives is the user's as a whole.
    info = p4i.P4Info(pkg_info=p4i.PkgInfo(name="router"))
    check_own(info, [("line 1", p4r.Update(entity=group(1)))])


def test_deletion_of_a_default_action_brings_the_programs_own() -> None:
    entry = host(1)
    entry.is_default_action = True
    undone = deletion(inserts(entry)[0][1])
    assert undone.type == p4r.Update.MODIFY
    assert not undone.entity.table_entry.HasField("action")
    assert entry.HasField("action"), "the given one is untouched"
    with pytest.raises(ValueError, match="meter entry"):
        deletion(p4r.Update(entity=p4r.Entity(meter_entry=p4r.MeterEntry(meter_id=IDS["kinds"]))))


def test_switch_out_of_reach_or_without_program(tmp_path: Path) -> None:
    config = SwitchConfig(name="s3", address=f"unix:{tmp_path}/s3.sock")
    with (
        Switch() as switch,
        serve(switch, address=config.address),
        pytest.raises(SwitchUpdateError, match="s3 has no program"),
    ):
        asyncio.run(running_program(config))
    with pytest.raises(SwitchUnreachableError):
        asyncio.run(write_own(config, inserts(host(1))))


def test_unknown_table_is_told_with_those_that_exist(tmp_path: Path) -> None:
    config = SwitchConfig(name="s1", address=f"unix:{tmp_path}/s1.sock")
    with pytest.raises(UnknownNameError, match=r"no table sender; it has .*next_hop"):
        asyncio.run(read_table(config, CONTROL_PLANE.p4info, "sender"))


def test_commands_write_show_and_delete(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "hosts.txt"
    file.write_text("table_add host known 1 => 2\ntable_add host known 3 => 2\n")
    with running(tmp_path) as config:
        place = ["--address", config.address]
        assert run(["switch", "write", "s1", str(file), *place]) == 0
        assert capsys.readouterr().out == "switch s1: 2 inserted\n"
        assert run(["switch", "table", "s1", "host", *place, "--json"]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert [(entry["action"], entry["packets"]) for entry in shown] == [
            ("known(port=0x2)", 0),
            ("known(port=0x2)", 0),
        ]
        assert run(["switch", "table", "s1", "host", *place]) == 0
        text = capsys.readouterr().out
        assert all(word in text for word in ("Table host on switch s1", "src", "packets"))
        assert run(["switch", "write", "s1", str(file), "--delete", *place]) == 0
        assert capsys.readouterr().out == "switch s1: 2 deleted\n"
        assert run(["switch", "table", "s1", "host", *place]) == 0
        assert "has no entries" in capsys.readouterr().out
        file.write_text("table_add host known 1 => 2\ntable_add host mistake 1 => 2\n")
        assert run(["switch", "write", "s1", str(file), *place]) == 1
        assert "line 2" in capsys.readouterr().err
        assert hosts(config) == [], "a file is read to its end before anything is written"
