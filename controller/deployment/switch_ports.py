# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Who is behind which port of a P4Runtime switch: the switch sends ARP probes, and what comes back.

Every switch can tell that runs our program, which passes frames that are not IPv4 to its controller
with their port.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from finsy import P4ClientError, Switch, SwitchOptions

from ..config import SwitchConfig
from ..errors import SwitchError, WrongProgramError
from ..switches.packet_io import packet_out
from ..switches.program import AggregationProgram, wrong_program_text
from ..switches.switch_call import (
    PROGRAM_TIMEOUT_S,
    fetch_pipeline,
    refusal,
    switch_credentials,
    unreachable_error,
)
from .arp_sweep import ArpSweep, Sighting, arp_probe

_ELECTION_ID: Final = 1
"""Below that of any controller: a running one keeps its switch, and a later one takes it."""


async def sweep_switch(
    config: SwitchConfig,
    program: AggregationProgram,
    addresses: Iterable[str],
    ports: Sequence[int],
) -> dict[str, set[Sighting]]:
    """Return by address who answers for it, by which of a switch's ports; none: nobody.

    Loads the program if the switch has none. Raises SwitchError.
    """
    running = await fetch_pipeline(config)
    if running is not None and not program.matches(running):
        raise WrongProgramError(
            f"switch {config.name} at {config.address} "
            f"{wrong_program_text(running.p4info, program.p4info)}"
        )
    options = SwitchOptions(
        p4info=program.p4info_path,
        p4blob=None if running else program.p4blob_path,
        p4force=running is None,
        device_id=config.device_id,
        initial_election_id=_ELECTION_ID,
        channel_credentials=switch_credentials(config),
    )
    try:
        async with (
            asyncio.timeout(PROGRAM_TIMEOUT_S),
            Switch(config.name, config.address, options) as switch,
        ):
            if not switch.is_up:
                raise unreachable_error(config, "connection lost")
            if not switch.is_primary:
                raise SwitchError(
                    f"switch {config.name} at {config.address} has a controller, which alone may"
                    " send by it; stop that one while you run this, or give each host as"
                    " NAME=ADDRESS,MAC,PORT and --service-address"
                )
            return await _sweep(switch, config, addresses, ports)
    except P4ClientError as exc:
        raise refusal(config, "the handshake, the program or a packet-out", exc) from exc
    except TimeoutError as exc:
        raise unreachable_error(config, "the handshake got no answer") from exc


async def _sweep(
    switch: Switch, config: SwitchConfig, addresses: Iterable[str], ports: Sequence[int]
) -> dict[str, set[Sighting]]:
    sweep = ArpSweep(list(addresses))
    mac = bytes.fromhex(config.service_mac.replace(":", ""))

    async def listen() -> None:
        async for packet in switch.read_packets(queue_size=1024):
            sweep.hear(int(packet["ingress_port"]), packet.payload)

    listening = asyncio.create_task(listen())
    try:
        while not sweep.is_over:
            probes = [arp_probe(address, mac) for address in sweep.to_ask()]
            if probes:
                frames = [packet_out(switch, port, each) for each in probes for port in ports]
                await switch.write(frames)
            await asyncio.wait((listening,), timeout=sweep.wait_s)
            if listening.done():
                listening.result()
                raise unreachable_error(config, "connection lost while hosts were looked for")
    finally:
        listening.cancel()
    return sweep.found
