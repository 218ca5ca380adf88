# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""softswitch with super-frames against BMv2, which takes the same datagrams frame by frame.

Both run the aggregation programs. What leaves is compared byte for byte and for each port in order,
with one exception: frames that must not be fragmented and have no IPv4 identification may be
numbered. All counters of the program are compared, and softswitch's statistics with what BMv2 took
and sent.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing

import pytest
from finsy import P4Schema
from finsy.proto import p4r

from differential import bmv2_switch
from differential.bmv2_switch import Bmv2Switch
from differential.campaign import Found
from differential.case import Packet, Write
from differential.runtime_client import DEADLINE_S
from differential.super_frame_traffic import UDP_CHECKSUM_AT, Burst, Traffic
from differential.veth_switch import (
    LOSSES,
    VethSoftswitch,
    takes_udp_super_frames,
)
from packet_frames import CPU_PORT, describe, internet_checksum
from packet_target import PORTS
from switchfold.hostlib.slots.wire import ETHERNET_BYTES, IPV4_BYTES, UDP_PORT, Outcome
from switchfold.p4src import VARIANTS, Variant, artefacts

SEED = 5
DATAGRAMS = 1700
IPV4, NO_NUMBER = b"\x08\x00", b"\0\0\x40\0"
"""Ethertype; identification 0 and the flag DF."""
OUTCOMES = {
    Outcome.ABSORBED,
    Outcome.COMPLETED,
    Outcome.REPLAYED,
    Outcome.DUPLICATE,
    Outcome.STALE,
    Outcome.NOTIFIED,
    Outcome.FLUSHED,
    Outcome.BAD_LENGTH,
    Outcome.BAD_CHECKSUM,
    Outcome.BAD_GENERATION,
    Outcome.MISMATCH,
    Outcome.MULTICAST,
}
"""What the traffic must contain, among others."""


def missing_reason() -> str | None:
    """Return why this comparison cannot run here, or None."""
    if os.geteuid() != 0:
        return "veth ports need root"
    return bmv2_switch.missing_reason()


_reason = missing_reason()
pytestmark = [
    pytest.mark.root,
    pytest.mark.bmv2,
    pytest.mark.skipif(_reason is not None, reason=str(_reason)),
]


@pytest.fixture(scope="module", autouse=True)
def needs_udp_super_frames() -> None:
    if not takes_udp_super_frames():
        pytest.skip("this kernel takes no UDP super-frames from packet sockets (Linux 6.2)")


Step = p4r.Update | Burst
Frames = dict[int, list[bytes]]
"""By port, in order."""


def through_bmv2(
    program: Found, steps: Sequence[Step]
) -> tuple[Frames, dict[str, tuple[int, int]]]:
    """Send each datagram as a frame; return what left, and the counters."""
    left: Frames = {port: [] for port in (*PORTS, CPU_PORT)}
    with closing(Bmv2Switch(program.json, program.p4info, endless_s=DEADLINE_S)) as switch:
        for step in steps:
            if not isinstance(step, Burst):
                assert switch.take(Write(step)) == "OK", step
                continue
            for frame in step.frames:
                answers = switch.take(Packet(step.port, frame))
                assert isinstance(answers, list)
                sent: Sequence[tuple[int, bytes]] = answers
                for port, answer in sent:
                    left[port].append(answer)
        return left, switch.counters()


def numbered(wanted: bytes, found: bytes) -> bytes:
    """Return the wanted frame with the found one's identification, if it has none (RFC 6864)."""
    if wanted[12:14] != IPV4 or wanted[18:22] != NO_NUMBER:
        return wanted
    header = bytearray(wanted[ETHERNET_BYTES : ETHERNET_BYTES + IPV4_BYTES])
    header[4:6], header[10:12] = found[18:20], bytes(2)
    header[10:12] = internet_checksum(bytes(header)).to_bytes(2, "big")
    return wanted[:ETHERNET_BYTES] + header + wanted[ETHERNET_BYTES + IPV4_BYTES :]


def check_frames(port: int, found: Sequence[bytes], wanted: Sequence[bytes]) -> None:
    """Compare what left a port, byte for byte but for the numbers of frames that have none."""
    before = 0
    for index, (frame, expected) in enumerate(zip(found, wanted, strict=False)):
        same = expected if port == CPU_PORT else numbered(expected, frame)
        assert frame == same, (
            f"port {port}, frame {index}:\n  softswitch: {describe(frame)}\n"
            f"  bmv2:       {describe(expected)}"
        )
        identification = int.from_bytes(frame[18:20], "big")
        if same != expected:  # numbered as a super-frame's frames are, from 0 on
            assert identification == before + 1, f"port {port}, frame {index}: {describe(frame)}"
        before = identification
    assert len(found) == len(wanted), f"port {port}"


def check_statistics(switch: VethSoftswitch, steps: Sequence[Step], wanted: Frames) -> None:
    """Compare what each port counts with the frames that BMv2 took and sent."""
    bursts = [step for step in steps if isinstance(step, Burst)]
    for port in PORTS:
        arrivals = [item for burst in bursts if burst.port == port for item in burst.arrivals]
        sent = [frame for arrival in arrivals for frame in arrival.frames]
        expected = {
            "rx_packets": len(sent),
            "rx_bytes": sum(map(len, sent)),
            "rx_super_frames": sum(arrival.is_super_frame for arrival in arrivals),
            "tx_packets": len(wanted[port]),
            "tx_bytes": sum(map(len, wanted[port])),
            **dict.fromkeys(LOSSES, 0),
        }
        counted = switch.statistics(port)
        assert {name: counted[name] for name in expected} == expected, f"port {port}"
        assert counted["rx_super_frames"] > 0
        assert counted["tx_super_frames"] > 0


def check_traffic(program: Found, wanted: Frames, counters: dict[str, tuple[int, int]]) -> None:
    """Check that the cases which the comparison is for have occurred."""
    counter_id = P4Schema(program.p4info).counters["outcomes"].id
    counted = {item for item in Outcome if f"counter {counter_id}[{item.value}]" in counters}
    assert counted >= OUTCOMES, f"none of {OUTCOMES - counted}"
    assert wanted[CPU_PORT]
    frames = [frame for port in PORTS for frame in wanted[port]]
    ours = [frame for frame in frames if frame[34:36] == UDP_PORT.to_bytes(2, "big")]
    others = [frame for frame in frames if frame[23] == 17 and frame[34:36] != ours[0][34:36]]
    checksum = slice(UDP_CHECKSUM_AT, UDP_CHECKSUM_AT + 2)
    assert any(frame[checksum] == b"\0\0" for frame in ours)
    assert any(frame[checksum] == b"\xff\xff" for frame in others)


@pytest.mark.parametrize("variant", VARIANTS)
def test_super_frames_leave_as_bmv2_sends_frame_by_frame(variant: Variant) -> None:
    program = Found.of(artefacts(variant).json)
    traffic = Traffic(program, SEED)
    steps: list[Step] = [*traffic.tables(), *traffic.steps(DATAGRAMS)]
    wanted, counters = through_bmv2(program, steps)
    check_traffic(program, wanted, counters)
    with closing(VethSoftswitch(program.json, program.p4info)) as switch:
        for step in steps:
            if isinstance(step, Burst):
                switch.send(step)
            else:
                assert switch.write(step) == "OK", step
        for port in (*PORTS, CPU_PORT):
            check_frames(port, switch.left[port], wanted[port])
        assert switch.counters() == counters
        check_statistics(switch, steps, wanted)
