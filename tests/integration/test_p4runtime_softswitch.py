# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The whole path: finsy pushes the aggregation program into a real softswitch and works with it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import finsy
import numpy as np
import pytest

from switchfold import p4src
from switchfold.softswitch import compile_program
from switchfold.softswitch.p4runtime.service.serve import serve
from switchfold.softswitch.p4runtime.service.server import P4RuntimeServer
from switchfold.softswitch.switch.switch import Switch

DEADLINE_S = 120.0
MAC = "02:00:00:00:00:01"
ARP = bytes.fromhex("ffffffffffff0200000000010806") + bytes(46)
Scenario = Callable[[finsy.Switch, Switch], Coroutine[Any, Any, None]]


@pytest.fixture(autouse=True)
def _patient_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("finsy.p4client._DEFAULT_RPC_TIMEOUT", DEADLINE_S)


def _run(scenario: Scenario) -> None:
    """Run a scenario on an empty switch that finsy has filled with the narrow program."""

    async def with_finsy(server: P4RuntimeServer, switch: Switch) -> None:
        made = p4src.artefacts("narrow")
        options = finsy.SwitchOptions(p4info=made.p4info, p4blob=made.json)
        async with finsy.Switch("s1", server.address, options) as client:
            await asyncio.wait_for(scenario(client, switch), DEADLINE_S)

    compile_program(p4src.artefacts("narrow").json)  # takes longer than a client waits
    with Switch() as switch:
        for number in (1, 2):
            switch.ports.add(number, "mem")
        switch.start()
        with serve(switch, address="127.0.0.1:0") as server:
            asyncio.run(with_finsy(server, switch))


def _entries() -> list[finsy.P4TableEntry]:
    return [
        finsy.P4TableEntry(
            "job",
            match=finsy.P4TableMatch(job_id=9),
            action=finsy.P4TableAction(
                "admit_root",
                generation=77,
                slot_base=64,
                slot_count=8,
                children_bitmap=3,
                quorum=2,
                num_workers=2,
                multicast_group_id=9,
                allow_partial=1,
                level=0,
                max_priority=0,
            ),
        ),
        finsy.P4TableEntry(
            "worker",
            match=finsy.P4TableMatch(
                job_id=9, worker_id=0, ingress_port=1, source_address="10.0.0.1"
            ),
            action=finsy.P4TableAction(
                "admit_worker", worker_bit=1, contributor_mask=1, max_contributors=1
            ),
        ),
        finsy.P4TableEntry(
            "worker_address",
            match=finsy.P4TableMatch(job_id=9, replica_id=1),
            action=finsy.P4TableAction(
                "set_worker_address", mac=MAC, address="10.0.0.1", udp_port=4000
            ),
        ),
        finsy.P4TableEntry(
            "hot_row",
            match=finsy.P4TableMatch(job_id=9, row=3),
            action=finsy.P4TableAction(
                "place_row",
                slot=7,
                value_copy=16,
                epoch=1,
                exponent=128,
                server_group_id=10,
                copies_group_id=11,
            ),
        ),
        finsy.P4TableEntry(
            "ipv4_forward",
            match=finsy.P4TableMatch(dst_address="10.0.0.0/24"),
            action=finsy.P4TableAction("forward", port=2, mac=MAC),
        ),
        finsy.P4TableEntry(
            "outcome",
            match=finsy.P4TableMatch(job_id=9, outcome=1),
            action=finsy.P4TableAction("count_outcome"),
        ),
    ]


async def _read(client: finsy.Switch, query: Any) -> list[Any]:
    return [entity async for entity in client.read(query)]  # pyright: ignore


def test_every_table_takes_entries_and_gives_them_back() -> None:
    async def scenario(client: finsy.Switch, switch: Switch) -> None:
        del switch
        entries = _entries()
        group = finsy.P4MulticastGroupEntry(9, replicas=[(1, 1), (2, 2)])
        await client.write([+entry for entry in entries] + [+group])
        found = await _read(client, finsy.P4TableEntry())
        assert len(found) == len(entries)
        names = {entry.table_id for entry in found}
        assert len(names) == len(entries)
        counted = finsy.P4TableEntry("outcome", counter_data=finsy.P4CounterData())
        (outcome,) = await _read(client, counted)
        assert outcome.counter_data == finsy.P4CounterData(byte_count=0, packet_count=0)
        (read_group,) = await _read(client, finsy.P4MulticastGroupEntry())
        assert [(item.port, item.instance) for item in read_group.replicas] == [(1, 1), (2, 2)]
        assert len(await _read(client, finsy.P4CounterEntry("outcomes"))) == 64
        await client.delete([group])
        await client.delete_all()
        assert await _read(client, finsy.P4TableEntry()) == []

    _run(scenario)


def test_packets_pass_between_controller_and_ports() -> None:
    async def scenario(client: finsy.Switch, switch: Switch) -> None:
        frames = np.zeros((1, 128), dtype=np.uint8)
        lengths = np.zeros(1, dtype=np.int32)
        await client.write([finsy.P4PacketOut(ARP, egress_port=2, _pad=0)])
        count = await asyncio.to_thread(
            switch.ports.mem_port(2).receive, frames, lengths, DEADLINE_S
        )
        assert count == 1
        assert bytes(frames[0, : lengths[0]]) == ARP
        packets = client.read_packets()
        waiting = asyncio.ensure_future(anext(packets))
        frames[0, : len(ARP)] = np.frombuffer(ARP, dtype=np.uint8)
        lengths[0] = len(ARP)
        assert switch.ports.mem_port(1).send(frames, lengths) == 1
        packet = await waiting
        assert packet.payload == ARP
        assert packet["ingress_port"] == 1
        (port_in,) = await _read(client, finsy.P4CounterEntry("port_in", index=1))
        assert port_in.data.packet_count == 1

    _run(scenario)


def test_a_full_table_says_so() -> None:
    async def scenario(client: finsy.Switch, switch: Switch) -> None:
        del switch
        size = client.p4info.tables["job"].size
        entries: list[Any] = []
        for number in range(size + 1):
            entry = _entries()[0]
            entry.match = finsy.P4TableMatch(job_id=number + 1)
            entries.append(+entry)
        with pytest.raises(finsy.P4ClientError) as caught:
            await client.write(entries)
        details = caught.value.details
        assert list(details) == [size]
        assert details[size].canonical_code == finsy.GRPCStatusCode.RESOURCE_EXHAUSTED

    _run(scenario)
