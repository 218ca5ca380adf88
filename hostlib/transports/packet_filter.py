# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Socket filters: programs by which the kernel drops what a socket does not want."""

from __future__ import annotations

import ctypes
import socket
import struct

SO_ATTACH_FILTER = 26
SO_DETACH_FILTER = 27
ETH_P_IP = 0x0800

Instruction = tuple[int, int, int, int]
"""Classic BPF: (code, jump if true, jump if false, constant)."""


def results_filter(source_port: int, destination_port: int) -> list[Instruction]:
    """Return the filter that passes unfragmented IPv4 UDP with these ports."""
    return [
        (0x28, 0, 0, 12),  # ldh ethertype
        (0x15, 0, 10, ETH_P_IP),
        (0x30, 0, 0, 23),  # ldb protocol
        (0x15, 0, 8, socket.IPPROTO_UDP),
        (0x28, 0, 0, 20),  # ldh fragment offset
        (0x45, 6, 0, 0x1FFF),
        (0xB1, 0, 0, 14),  # ldx IPv4 header length
        (0x48, 0, 0, 14),  # ldh source port
        (0x15, 0, 3, source_port),
        (0x48, 0, 0, 16),  # ldh destination port
        (0x15, 0, 1, destination_port),
        (0x06, 0, 0, 0xFFFFFFFF),  # pass
        (0x06, 0, 0, 0),  # drop
    ]


DROP_ALL: list[Instruction] = [(0x06, 0, 0, 0)]


def attach_filter(sock: socket.socket, program: list[Instruction]) -> None:
    """Let the kernel drop what the program does not pass."""
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code)
    fprog = struct.pack("HL", len(program), ctypes.addressof(buffer))
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, fprog)


def detach_filter(sock: socket.socket) -> None:
    """Let a socket take everything again."""
    sock.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)
