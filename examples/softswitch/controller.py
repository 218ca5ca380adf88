# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A controller that uses finsy: it adds a route to the running router and reads its counters."""

import asyncio
from ipaddress import IPv4Address
from pathlib import Path

import finsy as fy

P4INFO = Path(__file__).parent / "router.p4info.txtpb"


async def main() -> None:
    options = fy.SwitchOptions(p4info=P4INFO)
    async with fy.Switch("router", "127.0.0.1:9559", options) as switch:
        route = fy.P4TableEntry(
            "routes",
            match=fy.P4TableMatch(dst_addr="10.0.3.0/24"),
            action=fy.P4TableAction("set_next_hop", next_hop=2),
        )
        await switch.write([-route, +route] if await known(switch, route) else [+route])
        counters = fy.P4TableEntry("routes", counter_data=fy.P4CounterData())
        async for entry in switch.read([counters]):
            if isinstance(entry, fy.P4TableEntry) and entry.match and entry.counter_data:
                address, bits = entry.match["dst_addr"]
                count = entry.counter_data.packet_count
                print(f"{IPv4Address(address)}/{bits}: {count} packets")
        async for drop in switch.read([fy.P4CounterEntry("drops")]):
            if isinstance(drop, fy.P4CounterEntry) and drop.packet_count:
                print(f"dropped for reason {drop.index}: {drop.packet_count}")


async def known(switch: fy.Switch, route: fy.P4TableEntry) -> bool:
    return bool([entry async for entry in switch.read([route])])


if __name__ == "__main__":
    asyncio.run(main())
