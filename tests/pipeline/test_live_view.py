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
from switchfold.softswitch.live import Sample, Sampler
from switchfold.softswitch.live.sampler import EntryRates, PortRates, TableRates
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


def test_numbers_are_whole_and_nothing_is_cut_at_80_columns() -> None:
    rates = {"rx_pps": 123_456.0, "rx_bps": 9.99e9, "tx_pps": 234_567.0, "tx_bps": 8.88e9}
    drops = {"dropped_by_program": 123_456_789, "tx_queue_full": 23_456_789}
    name, total = "SwitchfoldIngress." + "Q" * 70, 987_654_321_012
    sample = Sample(
        program="switchfold_wide",
        cpu=0.5,
        ports=(PortRates(number=12, spec="interface:enp129s0f0np0", drops=drops, **rates),),
        tables=(
            TableRates(
                name=name, entries=1_048_576, hits=total, misses=total,
                hits_pps=345_678.0, misses_pps=456_789.0,
            ),
        ),
        entries=(
            EntryRates(table=name, match="W" * 60, pps=567_890.0, packets=total, octets=total),
        ),
        parser_errors={"PacketTooShort": 1},
    )  # fmt: skip
    out = StringIO()
    Console(file=out, width=80).print(render(sample))
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    assert (text.count("Q"), text.count("W")) == (2 * 70, 60)
    assert text.count(f"{total:,}") == 4
    whole = ("12", "123.46 k", "9.99 G", "234.57 k", "8.88 G", "1,048,576", "345.68 k", "456.79 k")
    lines = ("port 12: dropped_by_program 123,456,789, tx_queue_full 23,456,789", "567.89 k")
    assert [each for each in (*whole, *lines) if each not in text] == []
