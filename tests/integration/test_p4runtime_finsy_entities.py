# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""finsy and a real switch: each entity is written, read back, and seen in its effect on packets."""

import asyncio
import random
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import finsy
import numpy as np
import pytest
from finsy.p4entity import P4ValueSetMember

from switchfold.softswitch import compile_program
from switchfold.softswitch.p4runtime.service.serve import serve
from switchfold.softswitch.p4runtime.service.server import P4RuntimeServer
from switchfold.softswitch.switch.switch import Switch

PROGRAMS = Path(__file__).parents[1] / "pipeline" / "programs"
DEADLINE_S = 120.0
SECOND_NS = 1_000_000_000
IPV4 = bytes.fromhex("4500001400010000401100000a0000010a000002")
Scenario = Callable[[finsy.Switch, Switch], Coroutine[Any, Any, None]]


@pytest.fixture(autouse=True)
def _patient_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("finsy.p4client._DEFAULT_RPC_TIMEOUT", DEADLINE_S)


def _run(scenario: Scenario) -> None:
    async def with_finsy(server: P4RuntimeServer, switch: Switch) -> None:
        options = finsy.SwitchOptions(
            p4info=PROGRAMS / "control_plane.p4info.txtpb",
            p4blob=PROGRAMS / "control_plane.json",
        )
        async with finsy.Switch("s1", server.address, options) as client:
            await asyncio.wait_for(scenario(client, switch), DEADLINE_S)

    compile_program(PROGRAMS / "control_plane.json")  # takes longer than a client waits
    with Switch() as switch:
        for number in (1, 2, 3, 4):
            switch.ports.add(number, "mem")
        switch.start()
        with serve(switch, address="127.0.0.1:0") as server:
            asyncio.run(with_finsy(server, switch))


def _frame(
    source: int, ether_type: int = 0x1234, *, destination: int = 0, length: int = 64
) -> bytes:
    head = destination.to_bytes(6, "big") + source.to_bytes(6, "big")
    head += ether_type.to_bytes(2, "big")
    if ether_type == 0x0800:
        head += IPV4
    return head.ljust(length, b"\0")


async def _send(switch: Switch, frame: bytes, *, port: int = 1, count: int = 1) -> None:
    frames = np.tile(np.frombuffer(frame, dtype=np.uint8), (count, 1))
    lengths = np.full(count, len(frame), dtype=np.int32)
    assert switch.ports.mem_port(port).send(frames, lengths) == count


async def _receive(switch: Switch, port: int, timeout_s: float = DEADLINE_S) -> bytes | None:
    frames, lengths = np.zeros((1, 2048), np.uint8), np.zeros(1, np.int32)
    count = await asyncio.to_thread(switch.ports.mem_port(port).receive, frames, lengths, timeout_s)
    return bytes(frames[0, : lengths[0]]) if count else None


async def _read(client: finsy.Switch, query: Any) -> list[Any]:
    return [entity async for entity in client.read(query)]


async def _count(client: finsy.Switch) -> int:
    """Return on how many frames of ports the program has run."""
    cells = await _read(client, finsy.P4CounterEntry("kinds"))
    return sum(cell.data.packet_count for cell in cells)


async def _leave(client: finsy.Switch, switch: Switch, port: int, count: int) -> int:
    """Wait until the program has run on so many frames; return how many left by a port."""
    while await _count(client) < count:
        await asyncio.sleep(0.01)
    frames, lengths = np.zeros((count, 2048), np.uint8), np.zeros(count, np.int32)
    return switch.ports.mem_port(port).receive(frames, lengths, 0.0)


def _host(source: int, port: int, **fields: Any) -> finsy.P4TableEntry:
    return finsy.P4TableEntry(
        "host",
        match=finsy.P4TableMatch(src=source),
        action=finsy.P4TableAction("known", port=port),
        **fields,
    )


def _path(action: finsy.P4IndirectAction) -> finsy.P4TableEntry:
    return finsy.P4TableEntry("path", match=finsy.P4TableMatch(dst=9), action=action)


def test_members_and_groups_steer_packets() -> None:
    async def scenario(client: finsy.Switch, switch: Switch) -> None:
        forward = [finsy.P4TableAction("forward", port=port) for port in (2, 3)]
        members = [
            finsy.P4ActionProfileMember("paths", member_id=number, action=action)
            for number, action in enumerate(forward, 1)
        ]
        await client.write([+member for member in members])
        weights = [finsy.P4Member(member_id=1, weight=1), finsy.P4Member(member_id=2, weight=3)]
        group = finsy.P4ActionProfileGroup("paths", group_id=1, max_size=4, members=weights)
        await client.write([+group])
        await client.write([+_path(finsy.P4IndirectAction(member_id=2))])
        await _send(switch, _frame(1, destination=9))
        assert await _receive(switch, 3) == _frame(1, destination=9)
        await client.write([~_path(finsy.P4IndirectAction(group_id=1))])
        counts = {2: 0, 3: 0}
        rng = random.Random(1)
        for _ in range(40):
            frame = bytearray(_frame(1, 0x0800, destination=9))
            frame[26:34] = rng.randbytes(8)  # source and destination address
            await _send(switch, bytes(frame))
        for port in counts:
            counts[port] = await _leave(client, switch, port, 1 + 40)
        assert sum(counts.values()) == 40
        assert 0 < counts[2] < counts[3]
        assert await _read(client, finsy.P4ActionProfileGroup("paths")) == [group]
        assert len(await _read(client, finsy.P4ActionProfileMember())) == 2

        one_shot = finsy.P4IndirectAction(action_set=[(1, forward[0])])
        await client.delete([_path(one_shot), group, *members])
        await client.write([+_path(one_shot)])
        await _send(switch, _frame(1, destination=9))
        assert await _receive(switch, 2) == _frame(1, destination=9)
        (found,) = await _read(client, finsy.P4TableEntry("path"))
        assert found.action == one_shot

    _run(scenario)


def test_meters_drop_what_is_red() -> None:
    async def scenario(client: finsy.Switch, switch: Switch) -> None:
        await client.write([+_host(5, 2), +_host(6, 2)])
        tight = finsy.P4MeterConfig(cir=1, cburst=1, pir=1, pburst=5)
        await client.write([~finsy.P4MeterEntry("port_meter", index=1, config=tight)])
        began_s = time.monotonic()
        await _send(switch, _frame(5), count=20)
        received = await _leave(client, switch, 2, 20)
        # The burst, and what is due for the time that it has taken.
        assert 1 <= received <= 6 + (time.monotonic() - began_s)
        cells = await _read(client, finsy.P4MeterEntry("port_meter"))
        assert [cell.config for cell in cells] == [None, tight, None, None]
        await client.write([~finsy.P4MeterEntry("port_meter", index=1)])

        few_bytes = finsy.P4MeterConfig(cir=10, cburst=64, pir=10, pburst=128)
        await client.write([~_host(6, 2, meter_config=few_bytes)])
        began_s = time.monotonic()
        await _send(switch, _frame(6), count=20)
        received = await _leave(client, switch, 2, 40)
        assert 1 <= received <= 3 + 10 * (time.monotonic() - began_s) / 64
        query = finsy.P4TableEntry(
            "host",
            counter_data=finsy.P4CounterData(),
            meter_config=finsy.P4MeterConfig(cir=0, cburst=0, pir=0, pburst=0),
        )
        counted = {entry.match["src"]: entry for entry in await _read(client, query)}
        assert counted[6].counter_data == finsy.P4CounterData(packet_count=20, byte_count=20 * 64)
        assert counted[6].meter_config == few_bytes
        assert counted[5].meter_config is None

    _run(scenario)


def test_digests_come_once_until_they_are_acknowledged() -> None:
    async def scenario(client: finsy.Switch, switch: Switch) -> None:
        digest = finsy.P4DigestEntry(
            "learned_t", max_list_size=1, max_timeout_ns=0, ack_timeout_ns=3600 * SECOND_NS
        )
        await client.write([+digest])
        lists = client.read_digests("learned_t")
        await _send(switch, _frame(0x1122), port=3, count=3)
        first = await anext(lists)
        assert list(first) == [{"address": 0x1122, "port": 3, "kind": 1}]
        await _send(switch, _frame(0x1122), port=3)
        await _send(switch, _frame(0x1123), port=3)
        second = await anext(lists)
        assert [item["address"] for item in second] == [0x1123]
        await client.write([first.ack()])
        assert await _read(client, finsy.P4DigestEntry()) == [digest]

    _run(scenario)


def test_idle_entries_are_reported() -> None:
    async def scenario(client: finsy.Switch, switch: Switch) -> None:
        # A notification that comes before the wait is lost.
        waiting = asyncio.ensure_future(anext(client.read_idle_timeouts()))
        await asyncio.sleep(0)
        await client.write([+_host(5, 2, idle_timeout_ns=SECOND_NS // 5), +_host(6, 2)])
        notice = await waiting
        assert [entry.match["src"] for entry in notice] == [5]
        query = finsy.P4TableEntry("host", time_since_last_hit=0)
        found = {entry.match["src"]: entry for entry in await _read(client, query)}
        elapsed_ns = found[5].time_since_last_hit
        assert elapsed_ns is not None
        assert elapsed_ns >= SECOND_NS // 5
        assert found[5].idle_timeout_ns == SECOND_NS // 5

    _run(scenario)


def test_clone_sessions_copy_packets() -> None:
    async def scenario(client: finsy.Switch, switch: Switch) -> None:
        session = finsy.P4CloneSessionEntry(7, packet_length_bytes=32, replicas=[3])
        mirror = finsy.P4TableEntry(
            "special",
            match=finsy.P4TableMatch(ether_type=(0x1234, 0xFFFF)),
            priority=1,
            action=finsy.P4TableAction("mirror"),
        )
        await client.write([+session, +mirror, +_host(5, 2)])
        await _send(switch, _frame(5))
        assert await _receive(switch, 2) == _frame(5)
        assert await _receive(switch, 3) == _frame(5)[:32]
        (found,) = await _read(client, finsy.P4CloneSessionEntry())
        assert (found.session_id, found.packet_length_bytes) == (7, 32)
        await client.delete([session])
        await _send(switch, _frame(5))
        assert await _receive(switch, 2) == _frame(5)
        assert await _receive(switch, 3, 0.2) is None

    _run(scenario)


def test_value_sets_direct_the_parser_and_wide_metadata_comes_up() -> None:
    async def scenario(client: finsy.Switch, switch: Switch) -> None:
        punt = finsy.P4TableEntry(
            "special",
            match=finsy.P4TableMatch(tag=(5, 5)),
            priority=1,
            action=finsy.P4TableAction("punt"),
        )
        tagged = _frame(5, 0x8100)[:14] + bytes.fromhex("00051234") + bytes(40)
        values = finsy.P4ValueSetEntry("tag_types", members=[P4ValueSetMember(0x8100)])
        await client.write([+_host(5, 2), +punt])
        await _send(switch, tagged)
        assert await _receive(switch, 2) == tagged
        await client.write([~values])
        packets = client.read_packets()
        await _send(switch, tagged)
        packet = await anext(packets)
        assert packet.payload == tagged
        assert packet["ingress_port"] == 1
        assert packet["stamp"] == 0x0102030405060708090A0B0C0D0E0F10
        await client.write([finsy.P4PacketOut(tagged, egress_port=4, _pad=0)])
        assert await _receive(switch, 4) == tagged
        (cell,) = await _read(client, finsy.P4RegisterEntry("wide", index=0))
        assert cell.data == 5 << 24 | 1

    _run(scenario)
