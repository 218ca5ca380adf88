# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The live view: rates of ports and tables from a switch's counters, and how they are shown."""

from __future__ import annotations

import socket
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from switchfold.softswitch import Switch, compile_program
from switchfold.softswitch.live import Sampler
from switchfold.softswitch.live.view import render, si, summary
from time_bound import wait_until

ROUTER = Path(__file__).resolve().parents[2] / "examples" / "softswitch" / "router.json"


def test_sample_has_rates_hits_drops_and_parser_errors() -> None:
    times = iter((0.0, 1.0, 3.0))
    frame = bytes(Ether() / IP(src="10.0.1.2", dst="10.0.2.2") / UDP(sport=1, dport=2))
    with Switch(compile_program(ROUTER, has_counts=True)) as switch:
        switch.ports.add(1, "mem")
        sampler = Sampler(switch, lambda _query: [], dict, clock=lambda: next(times))
        sampler.sample()
        for _ in range(10):
            switch.process(1, frame)
        switch.process(1, frame[:20])
        sample = sampler.sample()
    port = next(port for port in sample.ports if port.number == 1)
    assert port.rx_pps == pytest.approx(11 / 2)
    assert port.rx_bps == pytest.approx((10 * len(frame) + 20) * 8 / 2)
    assert port.drops["dropped_by_program"] == 11
    tables = {table.name: table for table in sample.tables}
    routes = tables["RouterIngress.routes"]
    assert (routes.hits, routes.misses, routes.misses_pps) == (0, 10, 5.0)
    assert sample.parser_errors == {"PacketTooShort": 1}
    out = StringIO()
    Console(file=out, width=120).print(render(sample))
    text = out.getvalue()
    assert "RouterIngress.routes" in text
    assert "dropped_by_program 11" in text
    assert "11 dropped" in summary(sample)


def test_super_frames_are_no_drops() -> None:
    frame = bytes(60)
    with (
        Switch(compile_program(ROUTER)) as switch,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as host,
    ):
        switch.ports.add(1, "udp:127.0.0.1:0")
        host.setsockopt(socket.IPPROTO_IP, 10, 5)  # IP_MTU_DISCOVER, IP_PMTUDISC_OMIT
        host.setsockopt(socket.SOL_UDP, 103, len(frame))  # UDP_SEGMENT
        switch.start()
        host.sendto(frame * 3, switch.ports.udp_address(1))
        wait_until(lambda: switch.ports.statistics(1)["rx_packets"] == 3, "three frames")
        assert switch.ports.statistics(1)["rx_super_frames"] == 1
        sample = Sampler(switch, lambda _query: [], dict).sample()
    port = next(port for port in sample.ports if port.number == 1)
    assert set(port.drops) == {"dropped_by_program"}


def test_build_without_counts_shows_no_tables() -> None:
    with Switch(compile_program(ROUTER)) as switch:
        assert Sampler(switch, lambda _query: [], dict).sample().tables == ()


def test_rates_have_prefixes() -> None:
    assert [si(value) for value in (12.0, 1500.0, 2.5e6, 1e10)] == [
        "12",
        "1.50 k",
        "2.50 M",
        "10.00 G",
    ]
