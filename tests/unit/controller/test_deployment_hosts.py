# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Hosts of a deployment: how they are named, found by ARP, and told apart."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from switchfold.controller.cli.deploy.checks import check_findings, check_machine
from switchfold.controller.cli.doctor.check import Status
from switchfold.controller.config import SwitchConfig
from switchfold.controller.deployment import plan
from switchfold.controller.deployment.arp_sweep import (
    ArpSweep,
    Sighting,
    arp_answer,
    arp_probe,
)
from switchfold.controller.deployment.card_ports import Card, OwnAddress
from switchfold.controller.deployment.hosts import (
    NamedHost,
    parse_named_host,
    place_host,
    same_macs,
    service_candidates,
)
from switchfold.controller.deployment.plan import DeploymentRequest, Findings, find
from switchfold.controller.deployment.units import Installation
from switchfold.controller.errors import ConfigError
from switchfold.controller.switches.packet_io import arp_reply

MAC = "02:00:00:00:00:07"
OTHER = "02:00:00:00:00:08"
H1 = NamedHost(name="h1", address="10.0.0.7")
CARD = Card(name="eno1", mac="02:00:00:00:00:10", mtu=1500, is_up=True)
REQUEST = DeploymentRequest(
    hosts=(H1, NamedHost(name="h2", address="10.0.0.8")),
    directory=Path("/nowhere"),
    cards={1: CARD, 2: replace(CARD, name="eno2")},
    switch=SwitchConfig(name="s1", address="127.0.0.1:9559"),
    listen="127.0.0.1:50551",
)


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("10.0.0.7", NamedHost(name="h4", address="10.0.0.7")),
        ("a=10.0.0.7", NamedHost(name="a", address="10.0.0.7")),
        ("a=10.0.0.7,02:00:00:00:00:0A", NamedHost(name="a", address="10.0.0.7",
                                                   mac="02:00:00:00:00:0a")),
        (f"10.0.0.7,{MAC},3", NamedHost(name="h4", address="10.0.0.7", mac=MAC, port=3)),
    ],
)  # fmt: skip
def test_hosts_as_they_are_named(text: str, host: NamedHost) -> None:
    assert parse_named_host(text, 4) == host
    assert host.is_complete is (host.port is not None)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("10.0.0", "not an IPv4 address"),
        ("a b=10.0.0.7", "is not a name"),
        ("10.0.0.7,zz", "not a MAC address"),
        (f"10.0.0.7,{MAC},x", "is not .*ADDRESS"),
        (f"10.0.0.7,{MAC},255", "255 is the CPU"),
        (f"10.0.0.7,{MAC},1,2", "is not .*ADDRESS"),
    ],
)
def test_hosts_that_cannot_be(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        parse_named_host(text, 1)


def test_a_probe_is_answered_as_kernels_and_controllers_do() -> None:
    probe = arp_probe("10.0.0.7", bytes.fromhex("020000000010"))
    assert len(probe) == 60
    assert arp_answer(probe) is None
    reply = arp_reply(probe, 1, lambda address, _: MAC if address == "10.0.0.7" else None)
    assert reply is not None
    assert arp_answer(reply) == ("10.0.0.7", MAC)
    assert reply[:6].hex(":") == "02:00:00:00:00:10"
    assert arp_answer(reply[:41]) is None
    assert arp_answer(reply.replace(b"\x08\x06", b"\x86\xdd", 1)) is None


def reply_of(address: str, mac: str) -> bytes:
    reply = arp_reply(arp_probe(address, bytes(6)), 1, lambda *_: mac)
    assert reply is not None
    return reply


def test_a_sweep_asks_again_for_what_is_silent_and_hears_all_ports() -> None:
    now_s = 100.0
    sweep = ArpSweep(["10.0.0.7", "10.0.0.8"], wait_s=2.0, clock=lambda: now_s)
    assert sweep.to_ask() == ["10.0.0.7", "10.0.0.8"]
    assert sweep.to_ask() == []
    assert sweep.wait_s == pytest.approx(0.5)
    sweep.hear(1, reply_of("10.0.0.7", MAC))
    sweep.hear(2, reply_of("10.0.0.7", OTHER))
    sweep.hear(2, reply_of("10.0.0.99", OTHER))
    assert sweep.found == {"10.0.0.7": {Sighting(1, MAC), Sighting(2, OTHER)}, "10.0.0.8": set()}
    now_s += 0.5
    assert sweep.to_ask() == ["10.0.0.8"]
    assert not sweep.is_over
    sweep.hear(2, reply_of("10.0.0.8", OTHER))
    assert sweep.wait_s == pytest.approx(0.3), "another port may follow"
    assert not sweep.is_over
    now_s += 0.31
    assert sweep.is_over


def test_a_sweep_ends_without_answers() -> None:
    now_s = 100.0
    sweep = ArpSweep(["10.0.0.7"], wait_s=2.0, clock=lambda: now_s)
    asked = 0
    while not sweep.is_over:
        asked += len(sweep.to_ask())
        assert sweep.wait_s > 0
        now_s += sweep.wait_s
    assert asked == 4
    assert now_s == pytest.approx(102.0)


def test_a_host_has_the_place_where_it_was_seen() -> None:
    found = place_host(H1, {Sighting(2, MAC)}, where="somewhere", rates={2: 10**9})
    assert found.host is not None
    assert (found.host.port, found.host.mac, found.host.rate_bits_per_s) == (2, MAC, 10**9)
    given = replace(H1, mac=MAC, port=9)
    found = place_host(given, set(), where="somewhere")
    assert found.host is not None
    assert (found.host.port, found.host.mac) == (9, MAC)


def test_a_host_that_is_nowhere_or_everywhere_is_told_apart() -> None:
    silent = place_host(H1, set(), where="behind eno1")
    assert silent.host is None
    assert "10.0.0.7 does not answer ARP behind eno1" in silent.problem
    seen = {Sighting(1, MAC), Sighting(2, OTHER)}
    double = place_host(H1, seen, where="behind eno1")
    assert double.host is None
    assert f"port 1 ({MAC}), port 2 ({OTHER})" in double.problem
    assert "arp_ignore" in double.remedy
    chosen = place_host(replace(H1, mac=OTHER), seen, where="behind eno1")
    assert chosen.host is not None
    assert chosen.host.port == 2


def test_hosts_behind_a_router_have_one_mac_address() -> None:
    found = [
        place_host(replace(H1, name=name, address=address), {Sighting(1, mac)}, where="")
        for name, address, mac in (
            ("a", "10.0.0.1", MAC), ("b", "10.0.0.2", OTHER), ("c", "10.0.0.3", MAC))
    ]  # fmt: skip
    hosts = [each.host for each in found if each.host is not None]
    assert [(a.name, b.name) for a, b in same_macs(hosts)] == [("a", "c")]


def test_service_addresses_that_could_be() -> None:
    hosts = [replace(H1, address=f"10.0.0.{n}") for n in (5, 12)]
    known = service_candidates(hosts, ipaddress.IPv4Network("10.0.0.0/28"))
    assert known == ["10.0.0.14", "10.0.0.13", "10.0.0.11", "10.0.0.10"]
    assert service_candidates(hosts, None)[:2] == ["10.0.0.13", "10.0.0.14"]
    assert service_candidates(hosts, ipaddress.IPv4Network("10.0.0.0/29")) == []
    last = [replace(H1, address="10.0.0.254")]
    assert service_candidates(last, None) == []


def sweep_as(monkeypatch: pytest.MonkeyPatch, seen: dict[str, set[Sighting]]) -> None:
    def sweep(request: DeploymentRequest, addresses: list[str]) -> dict[str, set[Sighting]]:
        del request
        return {address: seen.get(address, set()) for address in addresses}

    monkeypatch.setattr(plan, "_sweep", sweep)


def test_what_was_found_is_said_and_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    sweep_as(
        monkeypatch,
        {
            "10.0.0.7": {Sighting(1, MAC)},
            "10.0.0.8": {Sighting(2, OTHER)},
            "10.0.0.9": {Sighting(1, "02:00:00:00:00:99")},
        },
    )
    findings = find(REQUEST, [])
    assert findings.service_address == "10.0.0.10", "10.0.0.9 is somebody's"
    checks = check_findings(findings)
    assert [check.status for check in checks] == [Status.OK] * 3
    config = plan.controller_config(REQUEST, findings)
    assert [host.port for host in config.switches[0].hosts] == [1, 2]
    own = [OwnAddress("eno1", "10.0.0.10", 24)]
    assert find(REQUEST, own).service_address == "10.0.0.254"


def test_what_is_wrong_is_said_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    sweep_as(monkeypatch, {"10.0.0.7": {Sighting(1, MAC)}, "10.0.0.1": {Sighting(1, OTHER)}})
    asked = replace(REQUEST, service_address="10.0.0.1")
    checks = {check.name: check for check in check_findings(find(asked, []))}
    assert checks["host h1"].status is Status.OK
    assert "behind eno1, eno2" in checks["host h2"].text
    assert f"10.0.0.1 is taken by {OTHER}" in checks["service address"].text
    assert all(check.remedy for check in checks.values() if check.status is not Status.OK)
    far = replace(REQUEST, hosts=(H1, replace(H1, name="h2", address="10.9.0.8")))
    findings = find(far, [])
    assert "not in one network" in findings.service_problem


def test_one_mac_address_for_two_hosts_is_wrong() -> None:
    found = tuple(
        place_host(replace(H1, name=f"h{n}", address=f"10.0.0.{n}"), {Sighting(1, MAC)}, where="")
        for n in (1, 2)
    )
    checks = check_findings(Findings(hosts=found, service_address="10.0.0.9"))
    (wrong,) = [check for check in checks if check.status is Status.FAIL]
    assert f"10.0.0.2 and 10.0.0.1 both are {MAC}" in wrong.text


def test_machines_that_cannot_serve() -> None:
    def verdicts(request: DeploymentRequest, own: list[OwnAddress]) -> dict[str, Status]:
        checks = check_machine(request, own, Installation())
        assert all(check.remedy for check in checks if check.status is not Status.OK)
        return {check.name: check.status for check in checks}

    down = replace(CARD, is_up=False)
    small = replace(CARD, name="eno2", mtu=1400)
    request = replace(REQUEST, cards={1: down, 2: small}, listen="10.0.0.5:50551")
    found = verdicts(request, [OwnAddress("eno3", "10.0.0.7", 24)])
    assert found["interface eno1"] is found["interface eno2"] is Status.FAIL
    assert found["controller"] is Status.FAIL, "10.0.0.5 is not this machine's"
    assert found["host h1"] is Status.FAIL, "a worker on softswitch's machine"
    narrow = verdicts(replace(request, variant="narrow"), [])
    assert narrow["interface eno2"] is Status.OK
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        local = [OwnAddress("lo", "127.0.0.1", 8)]
        assert verdicts(replace(REQUEST, listen=listen), local)["controller"] is Status.WARN
