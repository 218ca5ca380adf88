# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Where workers are attached, ARP answers, and what doctor makes of counters."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from finsy.proto import p4r

from controller_fixtures import HOSTS
from switchfold.controller.api.operator_api import operator_pb2
from switchfold.controller.cli.doctor import machine
from switchfold.controller.cli.doctor.check import Status
from switchfold.controller.cli.doctor.machine import (
    check_compiler,
    check_interface,
    check_offloads,
    check_packages,
)
from switchfold.controller.cli.doctor.symptoms import check_counts
from switchfold.controller.cli.doctor.system import check_program
from switchfold.controller.config import SwitchConfig
from switchfold.controller.errors import InvalidJobError, ProgramMissingError
from switchfold.controller.jobs.attachment import attached_switch, attached_worker
from switchfold.controller.switches.packet_io import arp_reply
from switchfold.controller.switches.program import load_program
from switchfold.hostlib.control.session_api import session_pb2 as pb

WIDE_FOR_NARROW = (
    "runs switchfold 2.352 (wide: 352 values per packet) instead of switchfold 2.32 (narrow: 32"
)
S1 = SwitchConfig(name="s1", address="127.0.0.1:1", hosts=HOSTS)
S2 = SwitchConfig(name="s2", address="127.0.0.1:2")


def join_request(**fields: object) -> pb.JoinRequest:
    return pb.JoinRequest(**({"address": "10.0.0.2", "udp_port": 5000, "worker_id": 1} | fields))


def test_attachment_from_the_configuration():
    worker = attached_worker(join_request(), attached_switch(join_request(), [S2, S1]))
    assert (worker.port, worker.mac) == (2, "02:00:00:00:00:02")


def test_attachment_from_the_worker():
    message = join_request(address="10.9.9.9", mac="02:AA:00:00:00:00", ingress_port_name="s2-eth7")
    worker = attached_worker(message, attached_switch(message, [S1, S2]))
    assert (worker.port, worker.mac) == (7, "02:aa:00:00:00:00")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"switch_name": "s9"}, "no switch 's9'; there is s1, s2"),
        ({"address": "10.9.9.9"}, "deploy init.*name its switch .*SWITCHFOLD_INGRESS_PORT"),
        ({"address": "10.9.9.9", "switch_name": "s1", "mac": "02:00:00:00:00:07"},
         "deploy init.*give the switch port .*SWITCHFOLD_INGRESS_PORT=SWITCH-ethN"),
        ({"address": "10.9.9.9", "ingress_port_name": "s1-eth9"}, "no MAC .*SWITCHFOLD_MAC"),
        ({"ingress_port": 3}, "h2 .* is at port 2"),
        ({"mac": "02:00:00:00:00:99"}, "h2 .* has 02:00:00:00:00:02"),
        ({"ingress_port_name": "eth1"}, "not SWITCH-ethN"),
        ({"address": "nonsense", "switch_name": "s1", "ingress_port": 1}, "not an IPv4 address"),
        ({"udp_port": 0}, "UDP port 0"),
        ({"address": "10.9.9.9", "switch_name": "s2", "ingress_port": 255,
          "mac": "02:00:00:00:00:07"}, "255 is the CPU"),
    ],
)  # fmt: skip
def test_attachment_refuses(fields: dict[str, object], text: str):
    message = join_request(**fields)
    with pytest.raises(InvalidJobError, match=text):
        attached_worker(message, attached_switch(message, [S1, S2]))


def arp_request(target: str = "0a000002", sender: str = "0a000001") -> bytes:
    return bytes.fromhex(
        "ffffffffffff 020000000001 0806 0001 0800 06 04 0001"
        f"020000000001 {sender} 000000000000 {target}"
    ) + bytes(18)


def known_mac(address: str, port: int) -> str | None:
    """As of h2, behind port 2."""
    return "02:00:00:00:00:02" if address == "10.0.0.2" and port != 2 else None


def test_arp_reply_for_a_known_address():
    reply = arp_reply(arp_request(), 1, known_mac)
    assert reply == bytes.fromhex(
        "020000000001 020000000002 0806 0001 0800 06 04 0002"
        "020000000002 0a000002 020000000001 0a000001"
    )


def test_arp_no_reply():
    reply = arp_request().replace(b"\x08\x06\x00\x01", b"\x08\x06\x00\x02")
    assert arp_reply(arp_request("0a000009"), 1, known_mac) is None
    assert arp_reply(arp_request(sender="0a000002"), 1, known_mac) is None, "gratuitous"
    assert arp_reply(arp_request()[:41], 1, known_mac) is None
    assert arp_reply(reply, 1, known_mac) is None
    assert arp_reply(arp_request(), 2, known_mac) is None, "h2 is there and answers itself"


def counts(**packets: int) -> list[operator_pb2.OutcomeCount]:
    return [operator_pb2.OutcomeCount(outcome=name, packets=n) for name, n in packets.items()]


def test_doctor_counts_healthy():
    (check,) = check_counts("job a", counts(absorbed=300, completed=100, replayed=3))
    assert check.status is Status.OK


def test_doctor_counts_of_a_later_release():
    (check,) = check_counts("job a", counts(absorbed=300, unheard_of=10))
    assert (check.status, check.text.split()[0]) == (Status.OK, "310")


@pytest.mark.parametrize(
    ("found", "symptom"),
    [
        ({"replayed": 30, "duplicate": 1}, "loss"),
        ({"stale": 20}, "stale"),
        ({"foreign_job": 1}, "foreign"),
        ({"foreign_worker": 1}, "foreign"),
        ({"bad_version": 1}, "version"),
        ({"bad_length": 1}, "malformed"),
        ({"off_grid": 1}, "malformed"),
        ({"bad_range": 1}, "malformed"),
        ({"multicast_refused": 1}, "malformed"),
        ({"write_refused": 1}, "malformed"),
        ({"bad_checksum": 1}, "checksum"),
        ({"bad_generation": 1}, "generation"),
    ],
)
def test_doctor_counts_symptom(found: dict[str, int], symptom: str):
    (check,) = check_counts("job a", counts(absorbed=300, completed=100, **found))
    assert check.name == f"job a {symptom}"
    assert check.status is Status.WARN
    assert check.remedy


def test_doctor_machine():
    assert check_packages(("numpy",)).status is Status.OK
    assert check_packages(("numpy", "no-such-package")).status is Status.FAIL
    assert check_interface("lo").status is Status.OK
    assert "does not exist" in check_interface("no-such-if0").text


def test_doctor_without_a_compiler(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    check = check_compiler(("no-such-compiler",))
    assert check.status is Status.FAIL
    assert "gcc" in check.remedy


def test_doctor_names_offloads_that_the_kernel_lacks(monkeypatch: pytest.MonkeyPatch):
    udp = (socket.AF_INET, socket.SOCK_DGRAM)
    options = (
        ("LISTEN", *udp, socket.SOL_SOCKET, socket.SO_REUSEADDR, 1),
        ("NEVER", *udp, socket.SOL_SOCKET, 9999, 1),
    )
    monkeypatch.setattr(machine, "_OFFLOADS", options[:1])
    assert check_offloads().status is Status.OK
    monkeypatch.setattr(machine, "_OFFLOADS", options)
    check = check_offloads()
    assert check.status is Status.WARN
    assert "lacks NEVER" in check.text


@pytest.mark.parametrize(
    ("running", "wanted", "status", "text"),
    [
        (("switchfold", "2.32"), "", Status.OK, "like this host"),
        (("switchfold", "2.352"), "switchfold 2.352", Status.OK, "like this host"),
        (
            ("switchfold", "2.352"),
            "switchfold 2.32",
            Status.FAIL,
            WIDE_FOR_NARROW,
        ),
        (("switchfold", "1.32"), "", Status.FAIL, "wire version 1, this host speaks 2"),
        (("acme", "2.32"), "", Status.FAIL, "runs acme 2.32"),
        (("", ""), "", Status.FAIL, "a program without name"),
    ],
)
def test_doctor_program(running: tuple[str, str], wanted: str, status: Status, text: str):
    pipeline = p4r.ForwardingPipelineConfig()
    pipeline.p4info.pkg_info.name, pipeline.p4info.pkg_info.version = running
    check = check_program("switch s1", pipeline, wanted)
    assert (check.name, check.status) == ("switch s1 program", status)
    assert text in check.text
    assert check_program("switch s1", None).status is Status.FAIL


def test_program_missing(tmp_path: Path):
    with pytest.raises(ProgramMissingError, match="switchfold p4 compile"):
        load_program("narrow", tmp_path)
