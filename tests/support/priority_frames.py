# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames of priorities.p4, and a port of softswitch that is stopped while they come."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from switchfold.softswitch import Impairments, Switch
from time_bound import wait_until

UNICAST, MULTICAST, CLONE, CLONE_IN_EGRESS, CLONED = 0, 1, 2, 3, 0xFF
GROUP, SESSION = 1, 5
_FORMAT = struct.Struct(">BBHHI")
SIZE = _FORMAT.size
STANDSTILL = 1e-3
"""In bits per second: the first frame takes a day."""


class Frame(NamedTuple):
    """The header of priorities.p4."""

    command: int
    priority: int
    port: int
    serial: int
    enq_qdepth: int = 0

    def pack(self) -> bytes:
        return _FORMAT.pack(*self)

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        return cls(*_FORMAT.unpack(data))


def stop_port(switch: Switch, port: int, queue_packets: int = 1000) -> None:
    """Let frames wait in the queues of a port."""
    settings = Impairments(rate_bits_per_s=STANDSTILL, queue_packets=queue_packets)
    switch.ports.set_impairments(port, settings, direction="out")


def send(switch: Switch, frames: Sequence[Frame]) -> None:
    """Send frames into port 1, and wait until the switch has taken all."""
    data = np.frombuffer(b"".join(frame.pack() for frame in frames), np.uint8)
    before = switch.ports.statistics(1)["rx_packets"]
    lengths = np.full(len(frames), SIZE, np.int32)
    assert switch.ports.mem_port(1).send(data.reshape(-1, SIZE), lengths) == len(frames)
    wait_until(
        lambda: switch.ports.statistics(1)["rx_packets"] == before + len(frames),
        lambda: f"{len(frames)} frames sent, {switch.ports.statistics(1)}",
    )


def release(switch: Switch, port: int) -> list[Frame]:
    """Lift the rate of a port; return what leaves, in order."""
    switch.ports.set_impairments(port, Impairments(), direction="out")
    data, lengths = np.zeros((64, SIZE), np.uint8), np.zeros(64, np.int32)
    left: list[Frame] = []
    while len(left) < switch.ports.statistics(port)["tx_packets"]:
        count = switch.ports.mem_port(port).receive(data, lengths, timeout_s=60)
        assert count > 0
        left += [Frame.unpack(row.tobytes()) for row in data[:count]]
    return left
