# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A P4Runtime switch tells which hosts are behind which of its ports."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from finsy.proto import p4r

from controller_fixtures import fake_switch, make_config, run, serving
from fake_p4runtime import FakeP4Runtime
from fake_program import build_p4info, write_program
from switchfold.controller.config import SwitchConfig
from switchfold.controller.deployment import switch_ports
from switchfold.controller.deployment.arp_sweep import ArpSweep, Sighting
from switchfold.controller.deployment.switch_ports import sweep_switch
from switchfold.controller.errors import SwitchError, SwitchUnreachableError, WrongProgramError
from switchfold.controller.switches import switch_call
from switchfold.controller.switches.packet_io import arp_reply
from switchfold.controller.switches.program import AggregationProgram, load_program

MACS = {"10.0.0.7": (3, "02:00:00:00:00:07"), "10.0.0.8": (4, "02:00:00:00:00:08")}


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switch_call, "_FETCH_TIMEOUT_S", 60.0)


class PatientSweep(ArpSweep):
    """Its time is over once all hosts have answered, however slow the machine is."""

    def __init__(self, addresses: Sequence[str]) -> None:
        super().__init__(addresses, clock=lambda: 60.0 if self._is_answered() else 0.0)

    def _is_answered(self) -> bool:
        found = getattr(self, "found", {})
        return bool(found) and all(found[address] for address in found.keys() & MACS.keys())


async def answer(fake: FakeP4Runtime) -> None:
    """Be the hosts: each answers a probe that comes by its own port."""
    while True:
        packet = await fake.packet_outs.get()
        port = int.from_bytes(packet.metadata[0].value)

        def find(address: str, _: int, port: int = port) -> str | None:
            place, mac = MACS.get(address, (0, ""))
            return mac if place == port else None

        reply = arp_reply(packet.payload, port, find)
        if reply is not None:
            metadata = [
                p4r.PacketMetadata(metadata_id=1, value=bytes([port])),
                p4r.PacketMetadata(metadata_id=2, value=b"\0"),
            ]
            fake.send_packet_in(p4r.PacketIn(payload=reply, metadata=metadata))


@asynccontextmanager
async def switch_with_hosts() -> AsyncGenerator[tuple[FakeP4Runtime, SwitchConfig]]:
    async with fake_switch() as fake:
        hosts = asyncio.create_task(answer(fake))
        yield fake, SwitchConfig(name="s1", address=fake.address)
        hosts.cancel()


def program_in(folder: Path) -> AggregationProgram:
    return load_program("narrow", write_program(folder))


def test_hosts_are_found_behind_their_ports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = program_in(tmp_path)

    async def scenario() -> None:
        async with switch_with_hosts() as (fake, config):
            for num_pushes in (1, 1):  # the first time, it has no program
                with monkeypatch.context() as patient:
                    patient.setattr(switch_ports, "ArpSweep", PatientSweep)
                    found = await sweep_switch(
                        config, program, ["10.0.0.7", "10.0.0.8", "10.0.0.9"], range(1, 7)
                    )
                assert fake.num_pushes == num_pushes
                assert found == {
                    "10.0.0.7": {Sighting(*MACS["10.0.0.7"])},
                    "10.0.0.8": {Sighting(*MACS["10.0.0.8"])},
                    "10.0.0.9": set(),
                }
            found = await sweep_switch(config, program, ["10.0.0.7"], range(1, 3))
            assert found == {"10.0.0.7": set()}, "port 3 is not asked"

    run(scenario())


def test_a_switch_with_another_program_is_left_alone(tmp_path: Path) -> None:
    program = program_in(tmp_path)

    async def scenario() -> None:
        async with switch_with_hosts() as (fake, config):
            fake.config = p4r.ForwardingPipelineConfig(p4info=build_p4info("acme", "7"))
            with pytest.raises(WrongProgramError, match="runs acme 7"):
                await sweep_switch(config, program, ["10.0.0.7"], range(1, 7))
            assert fake.num_pushes == 0

    run(scenario())


def test_a_switch_with_a_controller_is_left_to_it(tmp_path: Path) -> None:
    program = program_in(tmp_path)

    async def scenario() -> None:
        async with fake_switch() as fake, serving(make_config(tmp_path, fake)) as server:
            config = SwitchConfig(name="s1", address=fake.address)
            with pytest.raises(SwitchError, match="has a controller, which alone may send"):
                await sweep_switch(config, program, ["10.0.0.7"], range(1, 7))
            assert server.links["s1"].config.address == fake.address

    run(scenario())


def test_a_switch_that_is_not_there(tmp_path: Path) -> None:
    config = SwitchConfig(name="s1", address="127.0.0.1:1")
    with pytest.raises(SwitchUnreachableError, match="not reachable"):
        run(sweep_switch(config, program_in(tmp_path), ["10.0.0.7"], range(1, 7)))
