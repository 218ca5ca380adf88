# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Every frame for a switch is counted: by the P4 program, or as a loss of the port."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from live_testbed import LiveTestbed
from switchfold.bmv2_topos import state
from time_bound import wait_until

ARP = bytes.fromhex("ffffffffffff020000000001") + b"\x08\x06" + bytes(28)
STRANGERS, SINGLE, JOINED = 7, 500, 20
OWN = SINGLE + JOINED
UDP_SEGMENT, IP_MTU_DISCOVER, IP_PMTUDISC_OMIT = 103, 10, 5


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveTestbed]:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    with LiveTestbed(2) as made:
        yield made


def losses(shown: dict[str, Any]) -> Counter[tuple[int, str]]:
    return Counter({(x["port"], x["cause"]): x["frames"] for x in shown["port_losses"]})


def counted(shown: dict[str, Any]) -> int:
    outcomes = (*shown["counts"].values(), *shown["ordinary_counts"].values())
    return sum(count["packets"] for count in outcomes)


def test_every_frame_is_counted_somewhere(live: LiveTestbed) -> None:
    place = live.made.endpoint(0)
    port = "127.0.0.1", place.switch_udp_port
    before = live.show("switch", "show", "s1")
    assert before["tells_port_losses"]
    assert not before["port_losses"]
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger,
    ):
        own.bind(("127.0.0.1", place.host_udp_port))
        for _ in range(STRANGERS):
            stranger.sendto(ARP, port)
        for _ in range(SINGLE):
            own.sendto(ARP, port)
        own.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_OMIT)
        own.setsockopt(socket.SOL_UDP, UDP_SEGMENT, len(ARP))
        own.sendto(ARP * JOINED, port)

    def are_all_counted() -> bool:
        shown = live.show("switch", "show", "s1")
        lost = losses(shown)
        received = counted(shown) - counted(before)
        return received + lost[1, "rx_overflow"] + lost[1, "rx_foreign"] == OWN + STRANGERS

    wait_until(are_all_counted, "every frame is counted")
    shown = live.show("switch", "show", "s1")
    assert losses(shown)[1, "rx_foreign"] == STRANGERS
    assert {cause for _, cause in losses(shown)} <= {"rx_foreign", "rx_overflow"}
    (at_port,) = (p for p in shown["ports"] if p["port"] == 1)
    assert sum(p["packets_in"] for p in shown["ports"]) == counted(shown)
    assert at_port["packets_in"] == OWN - losses(shown)[1, "rx_overflow"]
    code, text, _ = live.command("switch", "show", "s1")
    assert code == 0
    assert "Frames lost by port" in text
    assert "rx_foreign" in text
