# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Routes for a testbed without a controller: shortest paths to every host, by P4Runtime."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

import finsy as fy

from switchfold.bmv2_topos import Testbed, Topology
from switchfold.bmv2_topos.processes.daemons import program_files
from switchfold.controller.config import SwitchConfig
from switchfold.controller.switches.switch_call import switch_credentials

DEADLINE_S = 60.0


def next_hops(topology: Topology, switch: str) -> dict[str, tuple[int, str]]:
    """Return port and MAC address of the next station towards each host, by host address."""
    to_go: dict[str, tuple[int, str]] = {}
    for host in topology.hosts:
        if topology.switch_of(host).name == switch:
            to_go[host.name] = topology.link_of(host).port, host.mac
    first: dict[str, tuple[int, str]] = {}
    waiting = deque([switch])
    seen = {switch}
    while waiting:
        here = waiting.popleft()
        for link in topology.switch_links:
            if here not in {link.a, link.b}:
                continue
            there = link.b if here == link.a else link.a
            if there in seen:
                continue
            seen.add(there)
            waiting.append(there)
            port = link.a_port if here == link.a else link.b_port
            first[there] = first.get(here) or (port, topology.switch_named(there).mac)
    for host in topology.hosts:
        if (name := topology.switch_of(host).name) != switch:
            to_go[host.name] = first[name]
    return {host.address: to_go[host.name] for host in topology.hosts}


def install_routes(testbed: Testbed, *names: str) -> None:
    """Load the program and write the routes of these switches, or of all."""
    asyncio.run(asyncio.wait_for(_install(testbed, names), DEADLINE_S))


def count_routes(testbed: Testbed, name: str) -> int:
    """Return how many routes a running switch has."""

    async def read() -> int:
        async with _client(testbed, name) as client:
            reading: Any = client.read([fy.P4TableEntry("ipv4_forward")])
            return len([entry async for entry in reading])

    return asyncio.run(asyncio.wait_for(read(), DEADLINE_S))


async def _install(testbed: Testbed, names: tuple[str, ...]) -> None:
    for switch in testbed.topology.switches:
        if names and switch.name not in names:
            continue
        hops = next_hops(testbed.topology, switch.name)
        async with _client(testbed, switch.name) as client:
            await client.delete_all()
            await client.write(
                [
                    +fy.P4TableEntry(
                        "ipv4_forward",
                        match=fy.P4TableMatch(dst_address=f"{address}/32"),
                        action=fy.P4TableAction("forward", port=port, mac=mac),
                    )
                    for address, (port, mac) in hops.items()
                ]
            )


def _client(testbed: Testbed, name: str) -> fy.Switch:
    switch = testbed.topology.switch_named(name)
    program, p4info = program_files(testbed.variant)
    config = SwitchConfig(
        name=name,
        address=testbed.address_of(switch),
        credentials=testbed.switch_operator.folder,
    )
    return fy.Switch(
        name,
        testbed.address_of(switch),
        fy.SwitchOptions(
            p4info=p4info,
            p4blob=program,
            device_id=switch.device_id,
            channel_credentials=switch_credentials(config),
        ),
    )
