# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The fabric as the network of transfers: capacities, routes, hosts and servers by name."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from controller_fixtures import run
from fake_station import stations, transfer_controller
from switchfold.controller.config import HostConfig, LinkConfig, SwitchConfig
from switchfold.controller.fabric.fabric import Fabric
from switchfold.controller.transfers.fabric_network import (
    host_places,
    hosts_without_rate,
    transfer_network,
)
from switchfold.controller.transfers.transfer_config import TransferConfig, switch_of

MBIT = 1_000_000
CONFIG = TransferConfig(default_rate_bits_per_s=40 * MBIT)


def host(name: str, port: int, rate_mbit: int | None, address: str) -> HostConfig:
    return HostConfig(
        name=name,
        port=port,
        address=address,
        mac=f"02:00:00:00:00:{port:02x}",
        rate_bits_per_s=None if rate_mbit is None else rate_mbit * MBIT,
    )


FABRIC = Fabric(
    switches={
        "s1": SwitchConfig(
            name="s1",
            address="127.0.0.1:1",
            hosts=(host("h1", 1, 100, "10.0.0.1"), host("h2", 2, None, "10.0.0.2")),
        ),
        "s2": SwitchConfig(
            name="s2",
            address="127.0.0.1:2",
            hosts=(host("h1", 1, 50, "10.0.1.1"), host("h3", 2, 10, "10.0.1.2")),
        ),
    },
    links=(LinkConfig(a="s1", a_port=9, b="s2", b_port=9, rate_bits_per_s=70 * MBIT),),
)


def rates(fabric: Fabric, sender: str, receiver: str, config: TransferConfig = CONFIG) -> list[int]:
    """The capacities along a route, in Mbit/s."""
    network = transfer_network(fabric, {"server 3": "h3", "server 1": "s1/h1"}, config)
    links = network.route(sender, receiver)
    return [network.capacities_bits_per_s[link] // MBIT for link in links]


def test_capacities_are_those_of_the_file():
    assert rates(FABRIC, "s1/h1", "server 3") == [100, 70, 10]
    assert rates(FABRIC, "h3", "server 1") == [10, 70, 100]
    assert rates(FABRIC, "h2", "server 1") == [40, 100], "the default"
    assert rates(FABRIC, "h2", "server 3") == [40, 70, 10]


def test_a_servers_switch_is_between_it_and_the_hosts_beside_it():
    network = transfer_network(FABRIC, {"server 3": "h3", "server 1": "s1/h1"}, CONFIG)
    leaf = switch_of("server 1")
    assert leaf in network.switches
    whole = network.route("h2", "server 1")
    assert network.route("h2", leaf) + network.route(leaf, "server 1") == whole
    assert len(whole) == 2
    assert not network.has_routes(["h3"], leaf), "at another switch"
    assert not network.has_routes(["s1/h1"], leaf), "the server's own host"
    assert not network.has_routes([leaf], "server 3"), "it adds up for its server alone"
    assert not network.has_routes(["h2"], switch_of("server 5")), "a server that is not there"


def test_directions_of_a_link_are_apart():
    network = transfer_network(FABRIC, {"server 3": "h3", "server 1": "s1/h1"}, CONFIG)
    forth, back = network.route("s1/h1", "server 3"), network.route("h3", "server 1")
    assert not set(forth) & set(back)


def test_share_of_payload():
    config = TransferConfig(default_rate_bits_per_s=40 * MBIT, payload_share=0.9)
    assert rates(FABRIC, "s1/h1", "server 3", config) == [90, 63, 9]


def test_own_host_is_reached_without_links():
    assert rates(FABRIC, "h3", "server 3") == []


def test_hosts_of_one_name_have_their_switch_before_it():
    assert set(host_places(FABRIC)) == {"s1/h1", "s2/h1", "h2", "h3"}
    assert hosts_without_rate(FABRIC) == ["h2"]


def test_no_route_over_a_link_that_is_down():
    down = FABRIC.without(links=["s1:9-s2:9"])
    network = transfer_network(down, {"server 3": "h3"}, CONFIG)
    assert not network.has_routes(["h2"], "server 3")
    assert network.has_routes(["s2/h1"], "server 3")


def test_servers_that_come_later_have_routes():
    servers: dict[str, str] = {}
    network = transfer_network(FABRIC, servers, CONFIG)
    servers["server 5"] = "h2"
    assert len(network.route("h3", "server 5")) == 3


def test_default_rate_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING)

    async def scenario() -> None:
        async with transfer_controller(tmp_path, (100, None, None)) as controller:
            for name in ("one", "other"):
                async with stations(controller.address, 1, job_name=name) as (_, (worker,)):
                    await worker.push(worker.first_id)
                    assert (await worker.granted()).spans[-1].end_s == pytest.approx(1.0)

    run(scenario())
    said = [record.getMessage() for record in caplog.records if "planned at" in record.getMessage()]
    assert len(said) == 1
    assert said[0].startswith("transfers of h2, h3 are planned at 1000000000 bit/s each direction")
