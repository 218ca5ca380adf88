# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A host whose cable to a softswitch carries frames in UDP datagrams; it sends by hand."""

from __future__ import annotations

import socket
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchfold.bmv2_topos.processes.free_ports import free_port
from switchfold.controller.config import HostConfig
from switchfold.hostlib.control.view import Endpoint
from switchfold.hostlib.slots.wire import (
    UDP_PORT,
    WIRE_VERSION,
    Flag,
    Operation,
    datagram_dtype,
)

_HEADERS_BYTES = 42
"""Ethernet, IPv4 and UDP."""


class CabledHost:
    """One host at a switch port."""

    def __init__(self, host: HostConfig, udp_port: int) -> None:
        self.host = host
        self.udp_port = udp_port
        self._sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._sock.bind(("127.0.0.1", 0))
        self._sock.settimeout(60)
        self._peer = ("127.0.0.1", free_port(socket.SOCK_DGRAM))
        local = self._sock.getsockname()[1]
        self.spec = f"{host.port}=udp:127.0.0.1:{self._peer[1]}-127.0.0.1:{local}"

    def send(self, switch: Endpoint, datagram: NDArray[np.void]) -> None:
        """Send a datagram to the service address of a switch."""
        payload = datagram.tobytes()
        frame = bytes.fromhex((switch.mac + self.host.mac).replace(":", "")) + b"\x08\x00"
        ip = bytearray.fromhex("4500 0000 0000 4000 4011 0000")
        ip[2:4] = (28 + len(payload)).to_bytes(2, "big")
        ip += socket.inet_aton(self.host.address) + socket.inet_aton(switch.address)
        total = sum(int.from_bytes(ip[i : i + 2], "big") for i in range(0, 20, 2))
        ip[10:12] = (0xFFFF - (total & 0xFFFF) - (total >> 16)).to_bytes(2, "big")
        ports = (self.udp_port, UDP_PORT, 8 + len(payload), 0)
        udp = b"".join(field.to_bytes(2, "big") for field in ports)
        self._sock.sendto(frame + ip + udp + payload, self._peer)

    def receive(self) -> NDArray[np.void]:
        """Return the next datagram for this host."""
        frame = self._sock.recv(4096)
        values = (len(frame) - _HEADERS_BYTES - datagram_dtype(0)["header"].itemsize) // 4
        return np.frombuffer(frame[_HEADERS_BYTES:], datagram_dtype(values))[0]

    def close(self) -> None:
        self._sock.close()


def row_packet(
    operation: Operation, values_per_packet: int, row: int, values: Any = 0, **fields: int
) -> NDArray[np.void]:
    """Return a packet about a hot row."""
    packet = np.zeros((), datagram_dtype(values_per_packet))
    defaults = {
        "version": WIRE_VERSION,
        "operation": operation,
        "flags": Flag.TO_SERVER,
        "slot_index": row,
        "chunk_index": row,
        "range_start": row * values_per_packet,
        "range_end": (row + 1) * values_per_packet,
    }
    for name, value in (defaults | fields).items():
        packet["header"][name] = value
    packet["values"] = values
    return packet
