# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames that the packet rate benchmark sends, and the exact answers that it expects."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packet_frames import (
    ETHERTYPE_IPV4,
    SWITCH_MAC,
    Job,
    change,
    contribution,
    ethernet,
    ipv4,
    to_switch,
    to_worker,
    udp,
)
from switchfold import p4src
from switchfold.hostlib.slots import wire

NUM_PORTS = 4
"""Ports of every switch, numbered from 1."""
VALUE_SETS = 8
VALUES = {"narrow": wire.VALUES_PER_PACKET_NARROW, "wide": wire.VALUES_PER_PACKET_WIDE}
_LAYERS_BYTES = wire.ETHERNET_BYTES + wire.IPV4_BYTES + wire.UDP_BYTES
_HEADER_OFFSETS: Any = wire.HEADER_DTYPE.fields
L3_FRAME_BYTES = wire.frame_bytes(wire.VALUES_PER_PACKET_NARROW)
L3_NETWORK = 0xC0A8_0000
"""192.168.port.0/24 lies behind each port."""


@dataclass(frozen=True, kw_only=True)
class TrafficPattern:
    """Frames by slot and port. A slot's next round starts when all its answers have arrived."""

    name: str
    frames: NDArray[np.uint8]
    """Frames to send in round 0, (slots, ports, bytes); the load generator raises the rounds."""
    answers: NDArray[np.uint8]
    """Expected answers, (slots, ports, bytes)."""
    sends: NDArray[np.uint64]
    """Bitmap per slot, (slots,): bit p is set if its frames enter at port p + 1."""
    receives: NDArray[np.uint64]
    """Bitmap per slot, (slots,): bit p is set if an answer leaves at port p + 1."""
    head_bytes: int
    """First bytes of a frame, which are the slot's own; slots share tail number slot % tails."""
    tails: int
    slot_offset: int
    round_offset: int
    checksum_offset: int
    """Offset of the UDP checksum; 0 if there is none."""
    any_offset: int
    """Offset of a byte with any value in answers, zero in `answers`; 0 if there is none."""

    @property
    def frame_bytes(self) -> int:
        """Size of every frame in bytes."""
        return self.frames.shape[2]


def job(variant: p4src.Variant, slots: int) -> Job:
    """Return the job of the aggregation, with one worker at each port."""
    return Job(
        job_id=7,
        generation=1000,
        values_per_packet=VALUES[variant],
        num_workers=NUM_PORTS,
        slot_base=0,
        slot_count=slots,
    )


def aggregation(variant: p4src.Variant, slots: int) -> TrafficPattern:
    """Return traffic in which every worker contributes to every slot and all get the sum."""
    of = job(variant, slots)
    generator = np.random.default_rng(1)
    shape = (VALUE_SETS, NUM_PORTS, of.values_per_packet)
    values = generator.integers(-(1 << 24), 1 << 24, shape)
    size = wire.frame_bytes(of.values_per_packet)
    frames = np.zeros((slots, NUM_PORTS, size), np.uint8)
    answers = np.zeros_like(frames)
    for slot in range(slots):
        chosen = values[slot % VALUE_SETS]
        sums = chosen.sum(axis=0)
        for worker in range(NUM_PORTS):
            sent = contribution(of, worker, chosen[worker], slot_index=slot, round=0)
            frames[slot, worker] = np.frombuffer(to_switch(of, worker, sent), np.uint8)
            result = change(
                sent,
                sums,
                operation=wire.Operation.RESULT,
                worker_id=0,
                worker_bitmap=(1 << NUM_PORTS) - 1,
                num_contributors=NUM_PORTS,
            )
            answers[slot, worker] = np.frombuffer(to_worker(of, worker, result), np.uint8)
    everywhere = np.full(slots, (1 << NUM_PORTS) - 1, np.uint64)
    return TrafficPattern(
        name=variant,
        frames=frames,
        answers=answers,
        sends=everywhere,
        receives=everywhere,
        head_bytes=_LAYERS_BYTES + wire.HEADER_BYTES,
        tails=VALUE_SETS,
        slot_offset=_LAYERS_BYTES + _HEADER_OFFSETS["slot_index"][1],
        round_offset=_LAYERS_BYTES + _HEADER_OFFSETS["round"][1],
        checksum_offset=_LAYERS_BYTES - 2,
        # A result keeps the last contributor's worker_id, and any worker may be the last.
        any_offset=_LAYERS_BYTES + _HEADER_OFFSETS["worker_id"][1],
    )


def l3_forwarding(slots: int) -> TrafficPattern:
    """Return traffic of one frame per slot, from its port to the next, with TTL decremented."""
    tail = np.random.default_rng(2).bytes(L3_FRAME_BYTES - _LAYERS_BYTES - 8)
    frames = np.zeros((slots, NUM_PORTS, L3_FRAME_BYTES), np.uint8)
    answers = np.zeros_like(frames)
    for slot in range(slots):
        payload = slot.to_bytes(4, "big") + bytes(4) + tail
        for port in range(1, NUM_PORTS + 1):
            to = port % NUM_PORTS + 1
            source, destination = L3_NETWORK + (port << 8) + 1, L3_NETWORK + (to << 8) + 1
            segment = udp(source, destination, 4000, 5000, payload, checksum=0)
            frames[slot, port - 1] = np.frombuffer(
                ethernet(SWITCH_MAC, l3_mac(port), ETHERTYPE_IPV4)
                + ipv4(source, destination, segment, ttl=64),
                np.uint8,
            )
            answers[slot, to - 1] = np.frombuffer(
                ethernet(l3_mac(to), SWITCH_MAC, ETHERTYPE_IPV4)
                + ipv4(source, destination, segment, ttl=63),
                np.uint8,
            )
    port = np.arange(slots) % NUM_PORTS
    return TrafficPattern(
        name="l3",
        frames=frames,
        answers=answers,
        sends=(1 << port).astype(np.uint64),
        receives=(1 << (port + 1) % NUM_PORTS).astype(np.uint64),
        head_bytes=_LAYERS_BYTES + 8,
        tails=1,
        slot_offset=_LAYERS_BYTES,
        round_offset=_LAYERS_BYTES + 4,
        checksum_offset=0,
        any_offset=0,
    )


def l3_mac(port: int) -> int:
    """Return the MAC address of the station behind a port."""
    return 0x0200_0000_0010 + port


def unchanged(traffic: TrafficPattern) -> TrafficPattern:
    """Return the same frames through a bare forwarder, which swaps ports 1 and 2, 3 and 4."""
    port = np.arange(NUM_PORTS)
    bits = np.zeros_like(traffic.sends)
    for each in port:
        bits |= (traffic.sends >> np.uint64(each) & np.uint64(1)) << np.uint64(each ^ 1)
    return dataclasses.replace(
        traffic, answers=traffic.frames[:, port ^ 1], receives=bits, any_offset=0
    )
