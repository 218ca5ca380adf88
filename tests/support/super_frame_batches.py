# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames that reach a switch in one batch, and how many super-frames it joins them into."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from flow_frames import ACK, CWR, ECE, FIN, PSH, SYN, TAG, FlowFrame, burst

UDP = FlowFrame()
NUMBERED = replace(UDP, identification=0xFFFD, fragment=0)
TCP = FlowFrame(protocol=6, options=b"\1\1\1\0", identification=7)
OTHER = bytes([4, 2]) + bytes(10) + b"\x88\xb5" + bytes(80)


def encoded(*frames: FlowFrame | bytes) -> list[bytes]:
    return [frame if isinstance(frame, bytes) else frame.encode() for frame in frames]


def changed(frames: Sequence[FlowFrame], index: int, **fields: object) -> list[FlowFrame]:
    return [
        replace(frame, **fields) if number == index else frame
        for number, frame in enumerate(frames)
    ]


def tcp_burst(*sizes: int, last: int = 0, **fields: int) -> list[FlowFrame]:
    frames = burst(replace(TCP, **fields), sizes, numbered=True)
    return changed(frames, len(frames) - 1, flags=frames[-1].flags | last)


SIX = (700,) * 5 + (333,)
CASES: dict[str, tuple[list[bytes], int]] = {
    "without an identification": (encoded(*burst(UDP, SIX)), 1),
    "numbered, across the wrap": (encoded(*burst(NUMBERED, SIX, numbered=True)), 1),
    "one number for all": (encoded(*burst(replace(UDP, identification=3), SIX)), 0),
    "no number, may be fragmented": (encoded(*burst(replace(UDP, fragment=0), SIX)), 0),
    "fragments": (encoded(*burst(replace(UDP, fragment=0x2000), SIX)), 0),
    "the mark of one packet": (encoded(*changed(burst(UDP, SIX), 2, tos=3)), 2),
    "marks of all packets": (encoded(*burst(replace(UDP, tos=3), SIX)), 1),
    "another TTL": (encoded(*changed(burst(UDP, SIX), 3, ttl=63)), 2),
    "another port": (encoded(*changed(burst(UDP, SIX), 3, source_port=1)), 2),
    "another flow in between": (encoded(*burst(UDP, SIX)[:3], OTHER, *burst(UDP, SIX)[3:]), 2),
    "VLAN": (encoded(*burst(replace(UDP, tag=TAG), SIX)), 1),
    "VLAN and none": (encoded(*changed(burst(UDP, SIX), 3, tag=TAG)), 2),
    "growing packets": (encoded(*burst(UDP, range(600, 610))), 0),
    "shrinking packets": (encoded(*burst(UDP, range(610, 600, -1))), 5),
    "odd sizes": (encoded(*burst(UDP, (701, 701, 701, 1))), 1),
    "no UDP checksum": (encoded(*changed(burst(UDP, SIX), 2, checksum="none")), 2),
    "a wrong UDP checksum": (encoded(*changed(burst(UDP, SIX), 2, checksum="wrong")), 2),
    "a wrong first UDP checksum": (encoded(*changed(burst(UDP, SIX), 0, checksum="wrong")), 1),
    "a trailer": (encoded(*changed(burst(UDP, SIX), 2, trailer=bytes(3))), 2),
    "empty datagrams": (encoded(*burst(UDP, (0, 0, 0))), 0),
    "more than IP carries": (encoded(*burst(UDP, (1400,) * 60)), 2),
    "IPv6": (encoded(*burst(replace(UDP, version=6), SIX)), 1),
    "IPv6 with a tag": (encoded(*burst(replace(UDP, version=6, tag=TAG), SIX)), 1),
    "IPv6, another class": (encoded(*changed(burst(replace(UDP, version=6), SIX), 2, tos=1)), 2),
    "TCP": (encoded(*tcp_burst(*SIX, last=PSH | FIN)), 1),
    "TCP across the wrap": (encoded(*tcp_burst(*SIX, sequence=2**32 - 900)), 1),
    "TCP over IPv6": (encoded(*burst(replace(TCP, version=6), SIX)), 1),
    "TCP, one sends on after a push": (
        encoded(*changed(tcp_burst(*SIX), 2, flags=ACK | PSH)),
        2,
    ),
    "TCP, marks echoed": (encoded(*tcp_burst(*SIX, flags=ACK | ECE)), 1),
    "TCP, window reduced": (encoded(*changed(tcp_burst(*SIX), 0, flags=ACK | CWR)), 1),
    "TCP, a synchronization": (encoded(*changed(tcp_burst(*SIX), 0, flags=ACK | SYN)), 1),
    "TCP, a gap": (encoded(*tcp_burst(*SIX)[:3], *tcp_burst(*SIX)[4:]), 2),
    "TCP, twice the same": (encoded(*[tcp_burst(700)[0]] * 3), 0),
    "TCP, acknowledges more": (encoded(*changed(tcp_burst(*SIX), 3, acknowledged=6)), 2),
    "TCP, another window": (encoded(*changed(tcp_burst(*SIX), 3, window=1)), 2),
    "TCP, other options": (encoded(*changed(tcp_burst(*SIX), 3, options=b"\1\1\0\0")), 2),
    "TCP, one number for all": (encoded(*burst(TCP, SIX)), 0),
    "TCP, a wrong checksum": (encoded(*changed(tcp_burst(*SIX), 3, checksum="wrong")), 2),
    "TCP, acknowledgements": (encoded(*tcp_burst(0, 0, 0)), 0),
}
"""By name: a batch, and the number of super-frames in which it leaves."""


def mixture(seed: int) -> list[bytes]:
    """64 frames of a few flows that come in turns of a random length, with random changes."""
    chance = random.Random(seed)
    frames: list[bytes] = []
    sequence, number = chance.randrange(2**32), chance.randrange(2**16)
    while len(frames) < 64:
        base = chance.choice([UDP, NUMBERED, TCP, replace(UDP, version=6), replace(TCP, tag=TAG)])
        size = chance.choice([40, 701, 1352])
        sizes = [size] * chance.randrange(1, 12) + [chance.randrange(1, size)]
        first = replace(base, sequence=sequence, tos=chance.choice([2, 3]))
        is_numbered = base.protocol == 6 or base.fragment == 0
        if is_numbered:
            first = replace(first, identification=number)
        flow = burst(first, sizes, numbered=is_numbered)
        sequence, number = (sequence + sum(sizes)) % 2**32, (number + len(sizes)) % 2**16
        if chance.random() < 0.4:
            field = chance.choice(
                [{"tos": 1}, {"ttl": 9}, {"checksum": "wrong"}, {"flags": ACK | PSH}, {"tag": TAG}]
            )
            flow = changed(flow, chance.randrange(len(flow)), **field)
        frames += encoded(*flow)
    return frames[:64]


def damaged(frames: Sequence[bytes], seed: int) -> list[bytes]:
    """Change one byte of the headers of every fifth frame, but not its destination."""
    chance = random.Random(seed)
    result: list[bytes] = []
    for frame in frames:
        at = chance.randrange(6, min(len(frame), 80))
        byte = bytes([frame[at] ^ 1 << chance.randrange(8)])
        is_damaged = chance.random() < 0.2
        result.append(frame[:at] + byte + frame[at + 1 :] if is_damaged else frame)
    return result
