# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Leaf-spine and fat-tree topologies: counts, ports, addresses, rates, and what they refuse."""

from __future__ import annotations

import tomllib
from collections import deque
from pathlib import Path

import pytest
from click.testing import CliRunner

from switchfold.bmv2_topos import Topology, fat_tree, leaf_spine, single_switch, state
from switchfold.bmv2_topos.commands import testbed as commands
from switchfold.bmv2_topos.processes.daemons import (
    Mode,
    Shaping,
    link_options,
    port_specs,
    write_controller_config,
)
from switchfold.bmv2_topos.testbed import Testbed
from switchfold.softswitch.switch.impairments import parse_impairments


def hops_from(topology: Topology, switch: str) -> dict[str, int]:
    """Return how many links lie between a switch and every other."""
    found, waiting = {switch: 0}, deque([switch])
    while waiting:
        here = waiting.popleft()
        for link in topology.switch_links:
            for one, other in ((link.a, link.b), (link.b, link.a)):
                if one == here and other not in found:
                    found[other] = found[here] + 1
                    waiting.append(other)
    return found


def test_leaf_spine_joins_every_leaf_with_every_spine() -> None:
    topology = leaf_spine(
        4, 2, 2, host_rate_bits_per_s=100_000_000, uplink_rate_bits_per_s=25_000_000
    )
    assert [switch.level for switch in topology.switches] == [0, 0, 0, 0, 1, 1]
    assert len(topology.hosts) == 8
    host = topology.host_of(2)
    assert (host.name, host.address, host.mac) == ("h3", "10.0.2.1", "02:00:00:00:02:01")
    assert topology.switch_of(host).address == "10.0.2.254"
    assert topology.link_of(host).port == 1
    for leaf in topology.switches[:4]:
        ends = topology.ports_of(leaf)
        assert [end.port for end in ends] == [1, 2, 3, 4]
        assert [end.link.rate_bits_per_s for end in ends] == [100_000_000] * 2 + [25_000_000] * 2
    spine = topology.switch_named("s6")
    assert [end.link.name for end in topology.ports_of(spine)] == [f"s{n}-s6" for n in range(1, 5)]
    assert all(
        end.is_b and end.interface == f"s6-eth{end.port}" for end in topology.ports_of(spine)
    )


@pytest.mark.parametrize("k", [2, 4, 6, 16])
def test_fat_tree_has_the_counts_and_distances_of_the_paper(k: int) -> None:
    topology = fat_tree(k)
    half = k // 2
    levels = [switch.level for switch in topology.switches]
    assert (levels.count(0), levels.count(1), levels.count(2)) == (k * half, k * half, half * half)
    assert len(topology.hosts) == k**3 // 4
    assert len(topology.switch_links) == 2 * k * half * half
    for switch in topology.switches[:: max(1, len(levels) // 20)]:
        assert [end.port for end in topology.ports_of(switch)] == list(range(1, k + 1))
    hops = hops_from(topology, "s1")
    edges = [hops[switch.name] for switch in topology.switches if switch.level == 0]
    assert edges == [0] + [2] * (half - 1) + [4] * (k * half - half)
    # Each core switch is joined to the first pod once.
    cores = {switch.name for switch in topology.switches if switch.level == 2}
    ups = [link.b for link in topology.switch_links if link.b in cores and link.b_port == 1]
    assert sorted(ups) == sorted(cores)


def test_names_of_interfaces_fit_the_kernel() -> None:
    topology = leaf_spine(254, 222, 32)
    ends = [link.b_interface for link in topology.switch_links]
    assert max(len(name) for name in ends) + len("-i") <= 15, "relays add two characters"
    assert len(topology.hosts) == 254 * 32


@pytest.mark.parametrize(
    ("numbers", "text"),
    [((0, 1, 1), "num_leaves"), ((1, 0, 1), "num_spines"), ((1, 1, 33), "1 to 32"),
     ((255, 1, 1), "1 to 254"), ((2, 223, 32), "1 to 222")],
)  # fmt: skip
def test_leaf_spine_refuses_what_ports_cannot_carry(
    numbers: tuple[int, int, int], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        leaf_spine(*numbers)


@pytest.mark.parametrize("k", [0, 3, 66])
def test_fat_tree_refuses_odd_and_impossible_numbers(k: int) -> None:
    with pytest.raises(ValueError, match="even k"):
        fat_tree(k)


def test_lookups_of_links_and_switches_name_what_is_missing() -> None:
    topology = leaf_spine(2, 1, 1)
    assert topology.link_between("s3", "s1").name == "s1-s3"
    assert topology.link_between("h2", "s2").name == "h2"
    with pytest.raises(ValueError, match="no link joins s1 and s2"):
        topology.link_between("s1", "s2")
    with pytest.raises(ValueError, match="there are s1, s2, s3"):
        topology.switch_named("s9")


def test_controller_config_names_links_with_rates(tmp_path: Path) -> None:
    topology = leaf_spine(2, 1, 1, uplink_rate_bits_per_s=25_000_000)
    path = tmp_path / "controller.toml"
    write_controller_config(
        path,
        topology,
        listen="unix:/run/c.sock",
        switch_addresses={switch.name: f"unix:/run/{switch.name}" for switch in topology.switches},
        variant="narrow",
    )
    content = tomllib.loads(path.read_text())
    assert [switch["service_address"] for switch in content["switch"]] == [
        "10.0.1.254",
        "10.0.2.254",
        "10.0.3.254",
    ]
    assert content["switch"][0]["host"][0]["rate_bits_per_s"] == 100_000_000
    assert content["link"] == [
        {"a": f"s{n}", "a_port": 2, "b": "s3", "b_port": n, "rate_bits_per_s": 25_000_000}
        for n in (1, 2)
    ]


def test_ports_of_both_ends_of_a_udp_link_meet() -> None:
    topology = leaf_spine(1, 1, 1)
    ports = {"h1": (4000, 4001), "s1-s2": (4002, 4003)}
    leaf, spine = (port_specs(topology, each, udp_ports=ports) for each in topology.switches)
    assert leaf == {
        1: "udp:127.0.0.1:4000-127.0.0.1:4001",
        2: "udp:127.0.0.1:4002-127.0.0.1:4003",
    }
    assert spine == {1: "udp:127.0.0.1:4003-127.0.0.1:4002"}


def link_words(mode: Mode, shaping: Shaping, impairments: str) -> list[str]:
    topology = leaf_spine(1, 1, 1, uplink_rate_bits_per_s=25_000_000)
    words = link_options(
        topology, topology.switches[0], mode=mode, shaping=shaping, impairments=impairments
    )
    assert words[::2] == ["--impair"] * (len(words) // 2)
    return words[1::2]


def test_switch_shapes_what_it_sends_and_without_a_kernel_what_hosts_send() -> None:
    assert link_words("veth", "links", "") == []
    assert [word.split(",")[0] for word in link_words("veth", "switch", "")] == [
        "1:out:rate_bits_per_s=100000000",
        "2:out:rate_bits_per_s=25000000",
    ]
    assert [word.split(":")[:2] for word in link_words("udp", "switch", "")] == [
        ["1", "in"],
        ["1", "out"],
        ["2", "out"],
    ]


def test_impairments_hit_each_direction_of_a_link_once() -> None:
    assert link_words("veth", "links", "loss=0.1") == [
        "1:in:loss=0.1,seed=1",
        "1:out:loss=0.1,seed=1",
        "2:in:loss=0.1,seed=1",  # the other switch impairs the other direction
    ]
    both = link_words("veth", "switch", "loss=0.1,seed=7")
    assert both[1] == "1:out:rate_bits_per_s=100000000,queue_packets=660,loss=0.1,seed=7"
    for word in both:
        parse_impairments(word)


def test_testbed_refuses_what_its_parts_cannot_do() -> None:
    for options, text in (
        ({"shaping": "switch", "target": "bmv2"}, "only a softswitch"),
        ({"mode": "udp", "tcp_ecn": True}, "no TCP of its own"),
        ({"impairments": "loss=0.1", "target": "bmv2"}, "only a softswitch"),
        ({"impairments": "lost=0.1"}, "no 'lost'"),
    ):
        with pytest.raises(ValueError, match=text):
            Testbed(single_switch(1), **options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="exactly one switch"):
        Testbed(leaf_spine(2, 1, 1), has_bridge=True)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--leaves", "2"], "--leaves does not go with --topology single"),
        (["--topology", "fat-tree", "--k", "3"], "even k"),
        (["--topology", "leaf-spine", "--core-rate", "1G"], "--core-rate does not go with"),
    ],
)
def test_up_command_refuses_options_of_other_topologies(arguments: list[str], text: str) -> None:
    result = CliRunner().invoke(commands.testbed, ["up", "--mode", "udp", *arguments])
    assert result.exit_code == 2
    assert text in result.output


def test_record_of_many_switches_round_trips(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path / "records")
    made = state.create_record("a", fat_tree(2), target="bmv2", mode="veth", variant="wide")
    made.cut_links.append("s1-s3")
    made.save()
    assert state.load_record("a") == made
