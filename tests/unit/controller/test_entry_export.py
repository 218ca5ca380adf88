# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Entries of a running switch as a WriteRequest that makes them again elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from finsy.proto import p4d, p4r
from google.protobuf import text_format

from p4runtime_control_plane import (
    IDS,
    hop_member,
    host,
    next_hop,
    path,
    path_group,
    path_member,
)
from p4runtime_fixtures import CONTROL_PLANE, PROGRAMS
from switchfold.controller.__main__ import run
from switchfold.controller.config import SwitchConfig
from switchfold.controller.errors import SwitchUnreachableError, SwitchUpdateError
from switchfold.controller.switches import switch_call
from switchfold.controller.switches.entry_export import ExportedEntries, export_entries
from switchfold.softswitch.compilation.compiler import compile_program
from switchfold.softswitch.p4runtime.entities.entries import load_entries
from switchfold.softswitch.p4runtime.service.serve import serve
from switchfold.softswitch.p4runtime.service.server import P4RuntimeServer
from switchfold.softswitch.p4runtime.writes.write import write_updates
from switchfold.softswitch.switch.switch import Switch

STARTED = (0x9100, 0x9200)
"""What the program's table `started` has from the start."""
JSON = PROGRAMS / "control_plane.json"
P4INFO = PROGRAMS / "control_plane.p4info.txtpb"


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switch_call, "_FETCH_TIMEOUT_S", 60.0)


@contextmanager
def running(folder: Path, name: str) -> Iterator[tuple[P4RuntimeServer, SwitchConfig]]:
    address = f"unix:{folder}/{name}.sock"
    with Switch(compile_program(JSON)) as switch, serve(switch, P4INFO, address) as server:
        yield server, SwitchConfig(name=name, address=address)


def exported(config: SwitchConfig) -> ExportedEntries:
    return asyncio.run(export_entries(config, has_registers=True))


def some_of_each() -> list[p4r.Entity]:
    group, session = p4r.PacketReplicationEngineEntry(), p4r.PacketReplicationEngineEntry()
    group.multicast_group_entry.multicast_group_id = 30000
    group.multicast_group_entry.replicas.add(port=b"\x02", instance=3)
    session.clone_session_entry.session_id = 5
    session.clone_session_entry.replicas.add(port=b"\x01", instance=1)
    config = p4r.MeterConfig(cir=1, cburst=1, pir=2, pburst=2)
    meter = p4r.MeterEntry(meter_id=IDS["port_meter"], index=p4r.Index(index=1), config=config)
    default = p4r.TableEntry(table_id=IDS["host"], is_default_action=True)
    default.action.action.CopyFrom(CONTROL_PLANE.action("known", b"\x03"))
    cell = p4r.RegisterEntry(
        register_id=IDS["wide"], index=p4r.Index(index=2), data=p4d.P4Data(bitstring=b"\x0f\x01")
    )
    return [
        p4r.Entity(action_profile_member=hop_member(1)),
        p4r.Entity(action_profile_member=path_member(7)),
        p4r.Entity(action_profile_group=path_group(2, (7, 1), max_size=4)),
        p4r.Entity(packet_replication_engine_entry=group),
        p4r.Entity(packet_replication_engine_entry=session),
        p4r.Entity(table_entry=host(1, 2)),
        p4r.Entity(table_entry=next_hop(b"\x0a", 32, action_profile_member_id=1)),
        p4r.Entity(table_entry=path(1, action_profile_group_id=2)),
        p4r.Entity(table_entry=default),
        p4r.Entity(meter_entry=meter),
        p4r.Entity(register_entry=cell),
    ]


def write(server: P4RuntimeServer, entities: list[p4r.Entity]) -> None:
    request = p4r.WriteRequest()
    changes = {"meter_entry", "register_entry"}
    for entity in entities:
        is_change = entity.WhichOneof("entity") in changes or entity.table_entry.is_default_action
        kind = p4r.Update.MODIFY if is_change else p4r.Update.INSERT
        request.updates.add(type=kind, entity=entity)
    results = write_updates(server.device.config.current(), request)
    assert results == [None] * len(entities)


def test_what_was_written_is_exported_and_makes_an_equal_switch(tmp_path: Path) -> None:
    with running(tmp_path, "s1") as (server, config):
        fresh = exported(config)
        assert fresh.counts["entries"] == len(STARTED), "none of const tables"
        write(server, some_of_each())
        found = exported(config)
        assert found.unreadable == ()
        new = found.counts - fresh.counts
        assert new == {
            "members": 2,
            "member groups": 1,
            "multicast groups": 1,
            "clone sessions": 1,
            "entries": 3,
            "meters": 1,
            "register cells": 1,
        }
        without = asyncio.run(export_entries(config))
        assert found.counts - without.counts == {"register cells": 1}
    file = tmp_path / "entries.txtpb"
    file.write_text(found.text())
    with running(tmp_path, "s2") as (server, config):
        assert load_entries(server.device.config.current(), file) == found.counts.total()
        again = exported(config)
        assert text_format.MessageToString(again.request) == text_format.MessageToString(
            found.request
        )


def test_command_writes_a_file_that_a_trace_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "s1.txtpb"
    with running(tmp_path, "s1") as (server, config):
        write(server, some_of_each())
        words = ["switch", "entries", "--address", config.address, "--out", str(file)]
        assert run(words) == 0
        shown = capsys.readouterr()
        assert f"{3 + len(STARTED)} entries" in shown.err
        assert not shown.out
        assert run(["switch", "entries", "--address", config.address]) == 0
        assert capsys.readouterr().out == file.read_text()
    request = text_format.Parse(file.read_text(), p4r.WriteRequest())
    assert request.updates


def test_a_switch_that_has_nothing_or_is_away_says_so(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/s3.sock"
    config = SwitchConfig(name="s3", address=address)
    with (
        Switch() as switch,
        serve(switch, address=address),
        pytest.raises(SwitchUpdateError, match="s3 has no program"),
    ):
        exported(config)
    with pytest.raises(SwitchUnreachableError):
        exported(config)


def test_command_wants_a_name_that_a_trace_understands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--address", f"unix:{tmp_path}/s1.sock", "--out", str(tmp_path / "s1.txt")]
    assert run(["switch", "entries", *words]) == 2
    assert ".txtpb" in capsys.readouterr().err
