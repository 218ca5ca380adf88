# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""docs/deployment.md with a cable from each host to the switch, and another network beside it."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deployed_lan import PAGE, SUM, run_on_all
from page_commands import marked_commands
from plain_lan import INTERFACE, PlainLan, ip
from switchfold.bmv2_topos.network.links import turn_offloads_off
from switchfold.bmv2_topos.network.namespaces import call_in_namespace
from switchfold.controller.config import load_config

CONTROLLER, SWITCH = "192.168.1.5", "192.168.1.9"
"""Addresses in the other network; where there are cards, the controller's machine has them."""
HOSTS = ("10.0.0.11", "10.0.0.12", "10.0.0.13")
BETWEEN_CARDS, P4RUNTIME_SWITCH = (
    marked_commands(PAGE, f"commands {name}")[0] for name in ("between cards", "of a switch")
)
NEXT = tuple(
    command.replace("192.168.7.", "10.0.0.") for command in marked_commands(PAGE, "commands")[1:]
)
"""What follows `deploy init`: "all else is as above"."""
WITHOUT_SWITCH = SUM.replace('path="switch"', 'path="host"')
CARDS = ("eno1", "eno2", "eno3")

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: network namespaces"),
]


@contextmanager
def lan_of_cables(*machines: str) -> Iterator[PlainLan]:
    """Hosts with a cable each to the first of `machines`, where a bridge is the other network."""
    first, *others = machines
    folder = Path(tempfile.mkdtemp(prefix="sf-"))  # paths of sockets are short
    with PlainLan(folder, (first, *HOSTS, *others), is_bridged=False) as made:
        here = made.namespace(first)
        ip("-n", here, "link", "add", "mgmt0", "type", "bridge")
        ip("-n", here, "addr", "add", f"{first}/24", "dev", "mgmt0")
        ip("-n", here, "link", "set", "mgmt0", "up")
        for number, host in enumerate(HOSTS, 1):
            there = made.namespace(host)
            ends = ("name", "eth1", "netns", there, "type", "veth", "peer", "name", f"m{number}")
            ip("link", "add", *ends, "netns", here)
            ip("-n", there, "addr", "add", f"192.168.1.{10 + number}/24", "dev", "eth1")
            ip("-n", there, "link", "set", "eth1", "up")
            ip("-n", here, "link", "set", f"m{number}", "master", "mgmt0", "up")
        for number, _ in enumerate(others, len(HOSTS) + 1):
            ip("-n", here, "link", "set", f"eno{number}", "master", "mgmt0")
        yield made


@pytest.fixture
def cards() -> Iterator[PlainLan]:
    with lan_of_cables(CONTROLLER) as made:
        yield made


@pytest.fixture
def remote_switch() -> Iterator[PlainLan]:
    with lan_of_cables(SWITCH, CONTROLLER) as made:
        yield made


def ports_of(lan: PlainLan) -> dict[str, int]:
    config = load_config(lan.home(CONTROLLER) / "switchfold-deployment" / "controller.toml")
    assert config.listen == f"{CONTROLLER}:50551"
    assert config.switches[0].service_address == "10.0.0.14"
    return {host.address: host.port for host in config.switches[0].hosts}


def follow_the_page_to_a_sum(lan: PlainLan) -> None:
    """Start the units, copy the hosts' folders, ask doctor, and sum on all hosts."""
    for command in NEXT:
        said = lan.run(CONTROLLER, command)
        if "doctor" in command:
            assert re.search(r"ok +switch s1 program", said), said
            assert not re.search(r"^fail", said, re.MULTILINE), said
    assert "doctor" in NEXT[-1]
    sum_on_hosts(lan, SUM)


def sum_on_hosts(lan: PlainLan, program: str) -> None:
    for host in HOSTS:
        (lan.home(host) / "sum.py").write_text(program)
    said = run_on_all(lan, f". ~/switchfold/worker.env && {sys.executable} sum.py", HOSTS)
    assert all("summed by the switch" in text for text in said)


def test_hosts_sum_between_the_cards_of_softswitch(cards: PlainLan) -> None:
    """Also without the switch's sums: it carries the hosts' other traffic."""
    cards.run(CONTROLLER, BETWEEN_CARDS)
    assert ports_of(cards) == {"10.0.0.11": 1, "10.0.0.12": 2, "10.0.0.13": 3}
    follow_the_page_to_a_sum(cards)
    sum_on_hosts(cards, WITHOUT_SWITCH)


def test_hosts_are_found_behind_the_cards_of_softswitch(cards: PlainLan) -> None:
    cards.run(
        CONTROLLER,
        f"switchfold deploy init {' '.join(reversed(HOSTS))} --softswitch eno2 --softswitch eno1"
        f" --softswitch 7=eno3 --listen {CONTROLLER}:50551",
    )
    assert ports_of(cards) == {"10.0.0.11": 2, "10.0.0.12": 1, "10.0.0.13": 7}


def test_a_host_without_a_cable_is_told_and_nothing_is_written(cards: PlainLan) -> None:
    process = cards.start(
        CONTROLLER,
        f"switchfold deploy init {' '.join(HOSTS)} --softswitch eno1 --softswitch eno2"
        f" --listen {CONTROLLER}:50551",
    )
    said, _ = process.communicate(timeout=240)
    assert process.returncode == 1
    words = " ".join(said.split())
    assert "10.0.0.13 does not answer ARP behind eno1, eno2" in words
    assert "do: look whether it is up" in words
    assert not (cards.home(CONTROLLER) / "switchfold-deployment" / "controller.toml").exists()


def test_hosts_sum_over_a_switch_that_got_its_certificate(remote_switch: PlainLan) -> None:
    """The first `deploy init` makes the certificate, the second finds the hosts by the switch."""
    process = remote_switch.start(CONTROLLER, P4RUNTIME_SWITCH)
    said, _ = process.communicate(timeout=240)
    assert process.returncode == 1, said
    assert "give this command again" in " ".join(said.split())
    (folder,) = re.findall(r"^switch: (\S+)$", said, re.MULTILINE)
    remote_switch.run(CONTROLLER, f"scp -r {folder} {SWITCH}:s1")
    ports = " ".join(
        f"--port {port}=interface:{card}" for port, card in zip((4, 9, 2), CARDS, strict=True)
    )
    switch = remote_switch.start(
        SWITCH, f"exec softswitch run --credentials s1 --grpc {SWITCH}:9559 {ports} 2>s1.log"
    )
    assert switch.stdout is not None
    assert switch.stdout.readline().startswith("ready")
    remote_switch.run(CONTROLLER, P4RUNTIME_SWITCH)
    assert ports_of(remote_switch) == {"10.0.0.11": 4, "10.0.0.12": 9, "10.0.0.13": 2}
    follow_the_page_to_a_sum(remote_switch)


@pytest.mark.bmv2
@pytest.mark.skipif(
    shutil.which("simple_switch_grpc") is None, reason="simple_switch_grpc is not on the PATH"
)
def test_hosts_sum_over_bmv2(remote_switch: PlainLan) -> None:
    """Its packet sockets take what a cable carries: finished checksums, frames of the MTU."""
    for host in HOSTS:
        call_in_namespace(remote_switch.namespace(host), lambda: turn_offloads_off(INTERFACE))
    ports = " ".join(f"-i {port}@{card}" for port, card in zip((4, 9, 2), CARDS, strict=True))
    remote_switch.start(
        SWITCH,
        f"exec simple_switch_grpc --no-p4 --device-id 1 {ports} --"
        f" --grpc-server-addr {SWITCH}:9559 --cpu-port 255 >s1.log 2>&1",
    )
    listens = f"import socket; socket.create_connection(({SWITCH!r}, 9559)).close()"
    remote_switch.run(
        SWITCH,
        f'until {sys.executable} -c "{listens}" 2>/dev/null; do sleep 0.1; done',
    )
    remote_switch.run(CONTROLLER, f"{P4RUNTIME_SWITCH} --insecure")
    assert ports_of(remote_switch) == {"10.0.0.11": 4, "10.0.0.12": 9, "10.0.0.13": 2}
    follow_the_page_to_a_sum(remote_switch)
