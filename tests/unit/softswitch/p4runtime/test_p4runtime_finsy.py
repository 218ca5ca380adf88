# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""finsy's Switch as a client of the server: handshake, push, write, read, packets, failover."""

import asyncio

import finsy
import pytest
from finsy import GRPCStatusCode, P4ClientError, p4client

from fake_data_plane import FakeDataPlane
from p4runtime_fixtures import DEADLINE_S, DEVICE_ID, SAMPLE, serving
from switchfold.softswitch.p4runtime.service.server import P4RuntimeServer

PAYLOAD = bytes(range(60))


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """finsy's own limit of a call is 10 s."""
    monkeypatch.setattr(p4client, "_DEFAULT_RPC_TIMEOUT", DEADLINE_S)


def _switch(server: P4RuntimeServer, *, election_id: int = 10) -> finsy.Switch:
    options = finsy.SwitchOptions(
        p4info=SAMPLE / "toy_forwarding.p4info.txtpb",
        p4blob=SAMPLE / "toy_forwarding.json",
        device_id=DEVICE_ID,
        initial_election_id=election_id,
    )
    return finsy.Switch("s1", f"127.0.0.1:{server.port}", options)


def _station(address: int, *, port: int = 2) -> finsy.P4TableEntry:
    return finsy.P4TableEntry(
        "station",
        match=finsy.P4TableMatch(dst_address=address, ingress_port=1),
        action=finsy.P4TableAction("forward", port=port, mac=0xAABBCCDDEEFF),
    )


def test_finsy_pushes_writes_and_reads_back() -> None:
    async def run(server: P4RuntimeServer, dataplane: FakeDataPlane) -> None:
        async with _switch(server) as switch:
            assert switch.is_primary
            assert dataplane.num_loads == 1
            group = finsy.P4MulticastGroupEntry(3, replicas=[(1, 1), (2, 2)])
            await switch.write([+_station(5), +_station(6), +group])
            stations = [entry async for entry in switch.read(finsy.P4TableEntry("station"))]
            assert [entry.match for entry in stations] == [
                {"dst_address": 5, "ingress_port": 1},
                {"dst_address": 6, "ingress_port": 1},
            ]
            (found,) = [entry async for entry in switch.read(finsy.P4MulticastGroupEntry())]
            assert [(item.port, item.instance) for item in found.replicas] == [(1, 1), (2, 2)]
            counters = [entry async for entry in switch.read(finsy.P4CounterEntry("ports"))]
            assert len(counters) == 4
            cells = [entry async for entry in switch.read(finsy.P4RegisterEntry("last_type"))]
            assert [cell.data for cell in cells] == [0, 0, 0, 0]
            direct = finsy.P4DirectCounterEntry("station_counter")
            assert len([entry async for entry in switch.read(direct)]) == 2
            await switch.delete([group])
            await switch.delete_all()
            assert not dataplane.entries
            assert not dataplane.groups

    with serving() as (server, dataplane):
        asyncio.run(run(server, dataplane))


def test_finsy_names_the_failed_update() -> None:
    async def run(server: P4RuntimeServer) -> None:
        async with _switch(server) as switch:
            await switch.write([+_station(5)])
            with pytest.raises(P4ClientError) as caught:
                await switch.write([+_station(4), +_station(5)])
            assert caught.value.code == GRPCStatusCode.UNKNOWN
            details = caught.value.details
            assert list(details) == [1]
            assert details[1].canonical_code == GRPCStatusCode.ALREADY_EXISTS
            await switch.delete([_station(9)], strict=False)

    with serving() as (server, _):
        asyncio.run(run(server))


def test_finsy_packet_io() -> None:
    async def run(server: P4RuntimeServer, dataplane: FakeDataPlane) -> None:
        async with _switch(server) as switch:
            await switch.write([finsy.P4PacketOut(PAYLOAD, egress_port=3, _pad=0)])
            frame = await asyncio.to_thread(dataplane.packets_out.get, timeout=DEADLINE_S)
            assert frame == b"\x01\x80" + PAYLOAD
            packets = switch.read_packets()
            waiting = asyncio.ensure_future(anext(packets))
            dataplane.punt(b"\x02\x00" + PAYLOAD)
            packet = await asyncio.wait_for(waiting, DEADLINE_S)
            assert packet.payload == PAYLOAD
            assert packet["ingress_port"] == 4

    with serving() as (server, dataplane):
        asyncio.run(run(server, dataplane))


def test_finsy_finds_its_pipeline_again_and_does_not_push_twice() -> None:
    async def run(server: P4RuntimeServer, dataplane: FakeDataPlane) -> None:
        async with _switch(server) as switch:
            await switch.write([+_station(5)])
        async with _switch(server) as switch:
            assert len([entry async for entry in switch.read(finsy.P4TableEntry("station"))]) == 1
        assert dataplane.num_loads == 1

    with serving() as (server, dataplane):
        asyncio.run(run(server, dataplane))


def test_finsy_backup_takes_over_when_the_primary_leaves() -> None:
    async def run(server: P4RuntimeServer) -> None:
        primary = _switch(server, election_id=20)
        ready, promoted = asyncio.Event(), asyncio.Event()
        backup = _switch(server, election_id=10)
        backup.ee.add_listener(finsy.SwitchEvent.BECOME_PRIMARY, lambda _switch: promoted.set())
        backup.ee.add_listener(finsy.SwitchEvent.CHANNEL_READY, lambda _switch: ready.set())
        async with primary:
            assert primary.is_primary
            controller = asyncio.ensure_future(backup.run())
            while not backup.is_up:
                await asyncio.sleep(0.01)
            assert not backup.is_primary
        await asyncio.wait_for(promoted.wait(), DEADLINE_S)
        await backup.write([+_station(5)])
        controller.cancel()
        await asyncio.wait([controller])

    with serving() as (server, _):
        asyncio.run(run(server))
