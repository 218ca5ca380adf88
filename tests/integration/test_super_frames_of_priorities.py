# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Super-frames hold what leaves one after the other, not what came one after the other."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from first_byte import HandWrittenProgram
from flow_frames import burst
from priority_frames import stop_port
from super_frame_batches import NUMBERED, encoded
from switchfold.bmv2_topos.network.links import turn_offloads_off
from switchfold.softswitch import Impairments, Switch
from test_super_frames import (
    as_forwarded,
    host_of,
    program,
    receive_raw,
    send_batch,
)
from test_veth_ports import interfaces
from time_bound import wait_until

__all__ = ["interfaces", "program"]  # fixtures

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="veth ports need root"),
]
LOW, HIGH = 1, 6
SIZES = (700,) * 11 + (333,)


def flow(priority: int) -> list[bytes]:
    """Return frames to port 2 that fit one super-frame."""
    to_port_2 = bytes([6, 2, 0, 0, priority, 7])
    return encoded(*burst(replace(NUMBERED, mac=to_port_2), SIZES, numbered=True))


def through(
    program: HandWrittenProgram, between: tuple[str, str], *, waits: bool
) -> tuple[list[bytes], int]:
    """Send two flows in turns; return the frames that leave and the number of super-frames."""
    frames = [frame for pair in zip(flow(LOW), flow(HIGH), strict=True) for frame in pair]
    turn_offloads_off(between[0])
    with Switch(program, priority_queues=8) as switch, host_of(between[1]) as host:
        switch.ports.add(1, "mem")
        switch.ports.add(2, f"veth:{between[0]}")
        if waits:
            stop_port(switch, 2)
        send_batch(switch, frames)
        switch.start()
        if waits:
            wait_until(
                lambda: switch.ports.statistics(2)["impaired_out_delayed"] == len(frames),
                lambda: f"{len(frames)} frames wait, {switch.ports.statistics(2)}",
            )
            switch.ports.set_impairments(2, Impairments(), direction="out")
        found = [receive_raw(host) for _ in frames]
        return found, switch.ports.statistics(2)["tx_super_frames"]


def test_each_priority_leaves_in_super_frames_of_its_own(
    program: HandWrittenProgram, interfaces: tuple[str, str]
) -> None:
    low, high = ([as_forwarded(frame) for frame in flow(priority)] for priority in (LOW, HIGH))
    # The first of the low ones is on its way when the others come.
    found, super_frames = through(program, interfaces, waits=True)
    assert found == [low[0], *high, *low[1:]]
    assert super_frames == 2


def test_frames_that_do_not_wait_leave_in_turns(
    program: HandWrittenProgram, interfaces: tuple[str, str]
) -> None:
    low, high = ([as_forwarded(frame) for frame in flow(priority)] for priority in (LOW, HIGH))
    found, super_frames = through(program, interfaces, waits=False)
    assert found == [frame for pair in zip(low, high, strict=True) for frame in pair]
    assert super_frames == 0
