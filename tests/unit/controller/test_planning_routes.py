# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""IPv4 routes over the fabric, and what operators take out of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from planning_fabrics import MBIT, build, leaf_spine
from switchfold.controller.config import ControllerConfig, HostConfig, SwitchConfig
from switchfold.controller.database.database import Database
from switchfold.controller.errors import ConfigError
from switchfold.controller.fabric.fabric import Fabric
from switchfold.controller.fabric.fabric_state import Condition, FabricState
from switchfold.controller.fabric.routes import routes_at


def walk(fabric: Fabric, switch: str, address: str) -> list[str]:
    """Follow the routes for an address; the last element is the MAC that is reached."""
    path = [switch]
    while len(path) < 10:
        route = next(r for r in routes_at(fabric, path[-1]) if r.address == address)
        hop = next((hop for hop in fabric.hops[path[-1]] if hop.port == route.port), None)
        if hop is None:
            return [*path, route.mac]
        assert route.mac == fabric.switches[hop.switch].service_mac
        path.append(hop.switch)
    raise AssertionError(f"a loop: {path}")


def hosts(config: ControllerConfig):
    return [(switch.name, host) for switch in config.switches for host in switch.hosts]


def test_every_host_is_reached_from_every_switch_by_a_shortest_path():
    config = leaf_spine(3, 2, 2)
    fabric = Fabric.of(config)
    for switch in fabric.switches:
        for home, host in hosts(config):
            *path, mac = walk(fabric, switch, host.address)
            assert mac == host.mac
            is_spine = switch in {"s4", "s5"}
            assert len(path) == (1 if switch == home else 2 if is_spine else 3)


def test_equal_paths_are_shared_among_hosts():
    config = leaf_spine(2, 2, 4)
    fabric = Fabric.of(config)
    spines = Counter(
        walk(fabric, "s1", host.address)[1] for home, host in hosts(config) if home == "s2"
    )
    assert spines == {"s3": 2, "s4": 2}


def test_routes_avoid_what_is_down():
    config = leaf_spine(2, 2, 2)
    fabric = Fabric.of(config)
    cut = fabric.without(links={fabric.find_link("s1-s3").key})
    for home, host in hosts(config):
        if home == "s2":
            assert walk(cut, "s1", host.address)[1] == "s4"
    alone = fabric.without(switches={"s3", "s4"})
    assert {route.address for route in routes_at(alone, "s1")} == {
        host.address for home, host in hosts(config) if home == "s1"
    }


def test_plain_switches_forward_too():
    config = build(
        {"s1": 1, "s2": 0, "s3": 1}, [("s1", "s2", MBIT), ("s2", "s3", MBIT)], plain={"s2"}
    )
    assert walk(Fabric.of(config), "s1", config.switches[2].hosts[0].address)[:-1] == [
        "s1",
        "s2",
        "s3",
    ]


def test_what_operators_take_down_is_kept(tmp_path: Path):
    config = leaf_spine(2, 2, 1)
    database = Database(tmp_path / "state.sqlite3")
    state = FabricState(config, database)
    reasons: list[str] = []
    state.on_change(lambda fabric, reason: reasons.append(reason))
    state.set_link("s3-s1", is_up=False)
    state.set_link("s1-s3", is_up=False)
    state.set_switch("s4", is_up=False)
    assert reasons == ["link s1-s3 is down", "switch s4 is down"]
    assert state.fabric.hops == {
        "s1": (),
        "s2": state.fabric.hops["s2"],
        "s3": state.fabric.hops["s3"],
    }
    database.close()

    database = Database(tmp_path / "state.sqlite3")
    state = FabricState(config, database)
    assert state.condition(config.links[0]) is Condition.DOWN
    assert state.fabric.down_switches == {"s4"}
    state.set_switch("s4", is_up=True)
    state.set_link("s1-s3", is_up=True)
    assert state.fabric.hops == Fabric.of(config).hops
    with pytest.raises(ConfigError, match="no switch 's9'"):
        state.set_switch("s9", is_up=False)
    database.close()


def test_dead_link_comes_back_by_frames_or_by_the_operator(tmp_path: Path):
    config = leaf_spine(2, 1, 1)
    database = Database(tmp_path / "state.sqlite3")
    state = FabricState(config, database)
    link = config.links[0]
    state.mark_dead(link)
    assert state.condition(link) is Condition.DEAD
    assert link.key in state.fabric.down_links
    state.mark_alive(link)
    assert state.condition(link) is Condition.UP
    state.mark_dead(link)
    state.set_link("s1-s3", is_up=True)
    assert state.condition(link) is Condition.UP
    database.close()


def test_hosts_behind_one_port_reach_each_other_without_the_switch():
    macs = [f"02:00:00:00:00:0{n}" for n in (1, 2)]
    shared, apart = (
        SwitchConfig(
            name="s1",
            address="127.0.0.1:1",
            hosts=tuple(
                HostConfig(name=f"h{n}", port=port, address=f"10.0.0.{n}", mac=macs[n - 1])
                for n, port in enumerate(ports, 1)
            ),
        )
        for ports in ((1, 1), (1, 2))
    )
    assert routes_at(Fabric(switches={"s1": shared}), "s1") == []
    assert [route.mac for route in routes_at(Fabric(switches={"s1": apart}), "s1")] == macs
