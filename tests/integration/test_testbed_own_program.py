# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Testbeds whose switches run a user's own v1model program instead of the aggregation program."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sys
from pathlib import Path

import pytest

from switchfold import p4src
from switchfold.bmv2_topos import Testbed, state
from switchfold.bmv2_topos.errors import OwnProgramError, ProcessFailedError, TestbedError
from switchfold.bmv2_topos.processes.daemons import Target
from switchfold.bmv2_topos.processes.own_program import OwnProgram
from switchfold.bmv2_topos.processes.plain_switch import PlainSwitch
from switchfold.bmv2_topos.topology.topology import single_switch
from switchfold.controller.api.operator_client import OperatorClient
from switchfold.controller.config import SwitchConfig
from switchfold.controller.database.database import MAX_TREE_ID
from switchfold.controller.switches.entry_export import export_entries
from switchfold.p4src.own_program import program_files_in
from time_bound import wait_until

PROGRAMS = Path(__file__).parents[1] / "pipeline" / "programs"
EXAMPLE = Path(__file__).parents[2] / "examples" / "softswitch"
FORWARD = PROGRAMS / "forward.json"
ENTRIES = """
table_add station forward 02:00:00:00:00:01 => 1
table_add station forward 02:00:00:00:00:02 => 2
"""
needs_root = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
needs_bmv2 = [
    pytest.mark.bmv2,
    pytest.mark.skipif(
        shutil.which("simple_switch_grpc") is None, reason="simple_switch_grpc is not on the PATH"
    ),
]
TALK = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as talker:
    talker.bind((sys.argv[1], 7000))
    talker.settimeout(0.2)
    while True:
        talker.sendto(b"hello", (sys.argv[2], 7000))
        try:
            text, sender = talker.recvfrom(100)
        except TimeoutError:
            continue
        for _ in range(3):  # the other end may have missed the first
            talker.sendto(b"hello", (sys.argv[2], 7000))
        print(text.decode(), "from", sender[0])
        break
"""


@pytest.fixture(autouse=True)
def records(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep these tests' records apart; the path stays short enough for sockets."""
    root = tmp_path_factory.mktemp("r")
    monkeypatch.setattr(state, "records_directory", lambda: root)


@pytest.fixture
def forwarding(tmp_path: Path) -> OwnProgram:
    entries = tmp_path / "entries"
    entries.mkdir()
    (entries / "s1.txt").write_text(ENTRIES)
    return OwnProgram(files=program_files_in(FORWARD), entries=entries)


def passes(testbed: Testbed) -> bool:
    """Return whether a frame that h1 sends comes out at h2 (mode udp)."""
    ports = testbed._recorded().udp_ports
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other,
    ):
        one.bind(("127.0.0.1", ports["h1"][1]))
        other.bind(("127.0.0.1", ports["h2"][1]))
        other.settimeout(60)
        frame = bytes.fromhex("020000000002" + "020000000001" + "88b5") + bytes(50)
        one.sendto(frame, ("127.0.0.1", ports["h1"][0]))
        return other.recv(100) == frame


def test_softswitch_runs_it_with_its_entries_also_after_a_restart(forwarding: OwnProgram) -> None:
    with Testbed(single_switch(2), mode="udp", program=forwarding) as made:
        assert passes(made)
        status = made.status()
        assert [process for process, _, _ in status.processes] == ["s1"], "it has no controller"
        with pytest.raises(TestbedError, match="no controller drives"):
            made.start_controller()
        assert Testbed.attach(made.name).status().variant == "forward"
        made.restart_switch("s1")
        assert passes(made)


@pytest.mark.parametrize(
    "target",
    [
        pytest.param("softswitch", marks=needs_root),
        pytest.param("bmv2", marks=[*needs_root, *needs_bmv2]),
    ],
)
def test_hosts_reach_each_other_through_the_example(target: Target) -> None:
    router = OwnProgram(
        files=program_files_in(EXAMPLE / "router.json"), entries=EXAMPLE / "testbed_entries.txt"
    )
    with Testbed(single_switch(2), target=target, mode="veth", program=router) as made:
        addresses = [host.address for host in made.topology.hosts]
        results = made.run_workers(
            lambda endpoint: [
                *(sys.executable, "-c", TALK, addresses[endpoint.worker_id]),
                addresses[1 - endpoint.worker_id],
            ],
            timeout_s=300,
        )
        assert [result.output for result in results] == [
            "hello from 10.0.0.2\n",
            "hello from 10.0.0.1\n",
        ]


@pytest.mark.parametrize("target", [pytest.param("bmv2", marks=needs_bmv2), "softswitch"])
def test_plain_switch_has_program_and_entries(
    target: Target, forwarding: OwnProgram, tmp_path: Path
) -> None:
    switch = PlainSwitch(
        name="s1",
        device_id=1,
        interfaces={},
        program=forwarding,
        run_directory=tmp_path,
        target=target,
    )
    process = switch.start()
    try:
        config = SwitchConfig(name="s1", address=switch.address)
        found = asyncio.run(export_entries(config, has_registers=True))
    finally:
        process.stop()
    assert found.counts["entries"] == 2
    assert ("register cells" in str(found.unreadable)) == (target == "bmv2")


@pytest.mark.parametrize(
    "target", ["softswitch", pytest.param("bmv2", marks=[*needs_root, *needs_bmv2])]
)
def test_a_version_of_the_aggregation_program_gets_the_controller(
    target: Target, tmp_path: Path
) -> None:
    """The controller leaves the user's entries that the switch starts with."""
    ours = p4src.artefacts("narrow")
    for path, name in ((ours.json, "mine.json"), (ours.p4info, "mine.p4info.txtpb")):
        shutil.copy(path, tmp_path / name)
    entries = tmp_path / "entries.txt"
    entries.write_text(f"multicast_group {MAX_TREE_ID + 1} 1\n")
    program = OwnProgram(files=program_files_in(tmp_path), entries=entries)
    mode = "veth" if target == "bmv2" else "udp"
    with Testbed(single_switch(1), target=target, mode=mode, program=program) as made:
        processes = {process for process, _, _ in made.status().processes}
        assert processes == {"s1", "controller"}
        assert str(tmp_path) in (made.run_directory / "controller.toml").read_text()
        client = OperatorClient(made.controller_address)
        wait_until(lambda: client.show_switch("s1").state == "ready", "a switch that is ready")
        address = made.switch_addresses["s1"]
        folder = client.folder_for_switch(address, None)
        config = SwitchConfig(name="s1", address=address, credentials=folder)
        assert asyncio.run(export_entries(config)).counts["multicast groups"] == 1


def test_entries_that_do_not_fit_are_told(tmp_path: Path) -> None:
    entries = tmp_path / "all.txt"
    entries.write_text("table_add station forward 1 2 => 1\n")
    program = OwnProgram(files=program_files_in(FORWARD), entries=entries)
    with (
        pytest.raises(ProcessFailedError, match="line 1"),
        Testbed(single_switch(1), mode="udp", program=program),
    ):
        pass


@pytest.mark.root
@pytest.mark.bmv2
@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("simple_switch_grpc") is None, reason="needs root and BMv2"
)
def test_entries_that_do_not_fit_are_told_with_bmv2(tmp_path: Path) -> None:
    entries = tmp_path / "all.txt"
    entries.write_text("table_add station forward 1 2 => 1\n")
    program = OwnProgram(files=program_files_in(FORWARD), entries=entries)
    with (
        pytest.raises(OwnProgramError, match="line 1"),
        Testbed(single_switch(1), mode="veth", target="bmv2", program=program),
    ):
        pass
