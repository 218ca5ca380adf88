# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The frames that a host sends to one address, as the kernel sees them at its interface."""

from __future__ import annotations

import ctypes
import ipaddress
import socket
import struct
from typing import Final

_ALL_PROTOCOLS: Final = 0x0003
_ATTACH_FILTER: Final = 26
_LOAD_HALF, _LOAD_WORD, _JUMP_EQUAL, _RETURN = 0x28, 0x20, 0x15, 0x06
_ROOM: Final = 1 << 22


class FramesTo:
    """Counts IPv4 frames to an address; make it in the namespace that sends them.

    A filter in the kernel leaves all other frames out, so that none of these can push them out.
    """

    def __init__(self, interface: str, address: str) -> None:
        wanted = int(ipaddress.IPv4Address(address))
        program = b"".join(
            struct.pack("=HBBI", *instruction)
            for instruction in (
                (_LOAD_HALF, 0, 0, 12),
                (_JUMP_EQUAL, 0, 3, 0x0800),
                (_LOAD_WORD, 0, 0, 30),
                (_JUMP_EQUAL, 0, 1, wanted),
                (_RETURN, 0, 0, 0xFFFF),
                (_RETURN, 0, 0, 0),
            )
        )
        kept = ctypes.create_string_buffer(program)
        attached = struct.pack("=HxxxxxxQ", len(program) // 8, ctypes.addressof(kept))
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        self._socket.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, attached)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _ROOM)
        self._socket.setblocking(False)
        self._socket.bind((interface, _ALL_PROTOCOLS))
        self._bytes = self._payload_bytes = 0

    @property
    def num_bytes(self) -> int:
        """Bytes of the frames so far; fewer if the socket had no room, but not 0 then."""
        self._read()
        return self._bytes

    @property
    def num_payload_bytes(self) -> int:
        """Likewise of what TCP carried: acknowledgements have none."""
        self._read()
        return self._payload_bytes

    def _read(self) -> None:
        try:
            while True:
                frame = self._socket.recv(1 << 16)
                self._bytes += len(frame)
                self._payload_bytes += _tcp_payload_bytes(frame)
        except BlockingIOError:
            return

    def close(self) -> None:
        self._socket.close()


def _tcp_payload_bytes(frame: bytes) -> int:
    """Return how many bytes of a stream an Ethernet frame carries."""
    packet = frame[14:]
    if packet[9] != socket.IPPROTO_TCP:
        return 0
    header_bytes = 4 * (packet[0] & 0xF)
    return len(packet) - header_bytes - 4 * (packet[header_bytes + 12] >> 4)
