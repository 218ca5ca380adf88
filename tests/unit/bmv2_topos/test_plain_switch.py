# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One switch with a user's program: its command line, and the class that Mininet gets."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from switchfold.bmv2_topos import mininet_module, single_switch
from switchfold.bmv2_topos.errors import OwnProgramError, TargetMissingError
from switchfold.bmv2_topos.network import links, namespaces
from switchfold.bmv2_topos.processes.daemons import SwitchSoftware, Target, switch_command
from switchfold.bmv2_topos.processes.own_program import OwnProgram
from switchfold.bmv2_topos.processes.plain_switch import PlainSwitch
from switchfold.p4src.own_program import program_files_in

ROOT = Path(__file__).resolve().parents[3]
FORWARD = ROOT / "tests" / "pipeline" / "programs" / "forward.json"
CUSTOM = ROOT / "src" / "switchfold" / "bmv2_topos" / "mininet_custom.py"


@pytest.fixture
def own(tmp_path: Path) -> OwnProgram:
    entries = tmp_path / "entries"
    entries.mkdir()
    (entries / "s1.json").write_text("{}")
    return OwnProgram(files=program_files_in(FORWARD), entries=entries)


@pytest.fixture(autouse=True)
def bmv2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    binary = tmp_path / "bin" / "simple_switch_grpc"
    binary.parent.mkdir()
    binary.write_text("#!/bin/sh\n")
    binary.chmod(0o755)
    monkeypatch.setenv("PATH", str(binary.parent), prepend=os.pathsep)


def plain(own: OwnProgram, target: Target, name: str = "s1") -> PlainSwitch:
    return PlainSwitch(
        name=name,
        device_id=4,
        interfaces={1: "s1-eth1", 7: "s1-eth7"},
        program=own,
        run_directory=Path("/run/x"),
        target=target,
    )


def test_softswitch_starts_with_program_and_entries(own: OwnProgram, tmp_path: Path) -> None:
    words = plain(own, "softswitch").command()
    assert words[4] == str(FORWARD)
    assert words[words.index("7=veth:s1-eth7") - 1] == "--port"
    assert words[words.index("--entries") + 1] == str(tmp_path / "entries" / "s1.json")
    assert words[words.index("--device-id") + 1] == "4"
    assert "--entries" not in plain(own, "softswitch", "s2").command(), "s2 has no file"


def test_bmv2_starts_empty(own: OwnProgram) -> None:
    words = plain(own, "bmv2").command()
    assert "--no-p4" in words
    assert "7@s1-eth7" in words
    assert words.index("--") < words.index("unix:/run/x/s1.sock")


def test_testbed_gives_softswitch_the_users_program(own: OwnProgram, tmp_path: Path) -> None:
    entries = own.entries_of("s1")
    words = switch_command(
        SwitchSoftware(files=own.files, entries=entries),
        single_switch(1).switches[0],
        port_specs={},
        grpc_address="unix:/x",
        run_directory=tmp_path,
    )
    assert words[words.index("run") + 1] == str(FORWARD)
    assert words[words.index("--entries") + 1] == str(entries)


class FakeInterface:
    """An interface of a node, with a link to a host unless it is the loopback."""

    def __init__(self, name: str, node: object) -> None:
        self.name = name
        self.node = node
        self.link: SimpleNamespace | None = None
        if name != "lo":
            host = SimpleNamespace(name=f"host of {name}", node=node)
            self.link = SimpleNamespace(intf1=host, intf2=self)

    def __str__(self) -> str:
        return self.name


class FakeMininetSwitch:
    """What Mininet's Switch gives to its subclasses."""

    def __init__(self, name: str, **parameters: Any) -> None:
        self.name = name
        self.pid = os.getpid()
        self.inNamespace = bool(parameters.get("inNamespace"))
        names = ("lo", f"{name}-eth1", f"{name}-eth2")
        self.intfs = {port: FakeInterface(each, self) for port, each in enumerate(names)}
        self.is_stopped = False

    def stop(self, delete_interfaces: bool) -> None:
        self.is_stopped = delete_interfaces


@pytest.fixture
def without_offloads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of interfaces whose offloads have been turned off."""
    names: list[str] = []
    monkeypatch.setattr(links, "turn_offloads_off", names.append)
    monkeypatch.setattr(namespaces, "call_in_namespace", lambda _, function: function())
    return names


@pytest.fixture
def custom(without_offloads: list[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The file as `mn --custom` runs it, with a fake of Mininet."""
    node = ModuleType("mininet.node")
    node.__dict__["Switch"] = FakeMininetSwitch
    monkeypatch.setitem(sys.modules, "mininet", ModuleType("mininet"))
    monkeypatch.setitem(sys.modules, "mininet.node", node)
    return runpy.run_path(str(CUSTOM))


def test_mininet_class_starts_and_stops_a_switch_on_its_interfaces(
    custom: dict[str, Any], without_offloads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[PlainSwitch] = []
    stopped: list[str] = []

    def start(self: PlainSwitch, namespace: str | None = None) -> SimpleNamespace:
        assert namespace is None, "Mininet's switches share the root's namespace"
        assert self.run_directory.is_dir()
        assert len(without_offloads) == 4, "before it forwards"
        started.append(self)
        return SimpleNamespace(stop=lambda: stopped.append(self.name))

    monkeypatch.setattr(PlainSwitch, "start", start)
    switch = custom["switches"]["p4"]("s12", program=str(FORWARD), target="bmv2")
    switch.start([])
    (plain_switch,) = started
    assert plain_switch.interfaces == {1: "s12-eth1", 2: "s12-eth2"}
    assert (plain_switch.device_id, plain_switch.target) == (12, "bmv2")
    assert switch.p4runtime_address == f"unix:{plain_switch.run_directory}/s12.sock"
    switch.stop()
    assert stopped == ["s12"]
    assert switch.is_stopped
    assert not plain_switch.run_directory.exists(), "its folder vanishes with it"
    ports = ("s12-eth1", "s12-eth2")
    assert sorted(without_offloads) == sorted([*ports, *(f"host of {each}" for each in ports)])


def test_softswitch_in_mininet_leaves_offloads_on(
    custom: dict[str, Any], without_offloads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    running = SimpleNamespace(stop=lambda: None)
    monkeypatch.setattr(PlainSwitch, "start", lambda _, _namespace=None: running)
    switch = custom["switches"]["p4"]("s1", program=str(FORWARD))
    switch.start([])
    switch.stop()
    assert not without_offloads


def test_mininet_class_refuses_what_it_cannot_run(custom: dict[str, Any], tmp_path: Path) -> None:
    switch = custom["switches"]["p4"]
    with pytest.raises(OwnProgramError, match="switchfold p4 compile"):
        switch("s1", program=str(tmp_path))
    with pytest.raises(ValueError, match="neither softswitch nor bmv2"):
        switch("s1", program=str(FORWARD), target="tofino")


def test_mininet_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mininet_module, "DEBIAN_PACKAGES", "/nowhere")
    for name in [name for name in sys.modules if name.partition(".")[0] == "mininet"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(TargetMissingError, match="apt-get install mininet"):
        mininet_module.load_mininet("mininet.no_such_module")
    assert "/nowhere" not in sys.path
