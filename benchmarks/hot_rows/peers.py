# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Counts who sends something to this host, in a process in the host's namespace.

`python -m benchmarks.hot_rows.peers SOCKET READY_FD`. Each line on the Unix socket is `start` or
`stop`; the answer to `stop` is a JSON list of `[protocol, address, port, packets]`.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

from switchfold.hostlib.peers.frames import HEADER_BYTES, FrameKind

TCP: Final = 6
UDP: Final = 17
_IPV4: Final = 0x0800
_SO_RCVBUFFORCE: Final = 33
_ROOM_BYTES: Final = 64 << 20
_ETHERNET_BYTES: Final = 14
_HEARTBEAT: Final = bytes([FrameKind.HEARTBEAT])
_HEAD_BYTES: Final = 128
Peer = tuple[str, str, int]


def peer_of(frame: bytes) -> Peer | None:
    """Return who sent an Ethernet frame; None without a payload of TCP or UDP over IPv4.

    Heartbeats of a connection are no payload. `frame`: its first bytes suffice; lengths come from
    the headers.
    """
    packet = frame[_ETHERNET_BYTES:]
    if len(packet) < 20 or packet[0] >> 4 != 4:
        return None
    head_bytes, total = 4 * (packet[0] & 15), struct.unpack_from("!H", packet, 2)[0]
    protocol, address = packet[9], socket.inet_ntoa(packet[12:16])
    segment = packet[head_bytes:]
    if protocol == TCP and len(segment) >= 20:
        name, own_bytes = "tcp", 4 * (segment[12] >> 4)
    elif protocol == UDP and len(segment) >= 8:
        name, own_bytes = "udp", 8
    else:
        return None
    payload_bytes = total - head_bytes - own_bytes
    is_beat = payload_bytes == HEADER_BYTES and segment[own_bytes + 3 :][:1] == _HEARTBEAT
    if payload_bytes <= 0 or is_beat:
        return None
    return name, address, struct.unpack_from("!H", segment)[0]


def ask(path: Path, request: str) -> list[list[Any]]:
    """Let the process at a Unix socket start or stop; return what it has counted."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(str(path))
        connection.sendall(f"{request}\n".encode())
        with connection.makefile() as answer:
            return json.loads(answer.readline())


def _peers(capture: socket.socket) -> list[list[Any]]:
    """Return the different senders of what was captured, and how many packets of each."""
    found: Counter[Peer] = Counter()
    while True:
        try:
            frame, place = capture.recvfrom(_HEAD_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return [[*peer, count] for peer, count in sorted(found.items())]
        peer = peer_of(frame) if place[2] != socket.PACKET_OUTGOING else None
        if peer is not None:
            found[peer] += 1


def main(arguments: list[str]) -> None:
    """Answer until SIGTERM."""
    path, ready = arguments
    capture: socket.socket | None = None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        listener.listen()
        os.write(int(ready), b"\n")
        while True:
            connection, _ = listener.accept()
            with connection, connection.makefile("rw") as lines:
                peers: list[list[Any]] = []
                if lines.readline() == "start\n":
                    capture = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_IPV4))
                    capture.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _ROOM_BYTES)
                elif capture is not None:
                    peers = _peers(capture)
                    capture.close()
                lines.write(json.dumps(peers) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
