# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A packet socket with a receive ring in shared memory (TPACKET_V2), read as a numpy array."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import socket
import struct
from typing import final

import numpy as np
from numpy.typing import NDArray

from hostlib.errors import (
    InterfaceMissingError,
    TransportError,
    TransportPermissionError,
)

SOL_PACKET = 263
PACKET_RX_RING = 5
PACKET_VERSION = 10
PACKET_IGNORE_OUTGOING = 23
TPACKET_V2 = 1
TP_STATUS_KERNEL = 0
TP_STATUS_USER = 1
ETH_P_IP = 0x0800
SO_ATTACH_FILTER = 26
SIOCGIFADDR = 0x8915
SIOCGIFHWADDR = 0x8927

FRAME_BYTES = 2048
NUM_FRAMES = 2048
BLOCK_BYTES = 1 << 16

_SLOT_DTYPE = np.dtype(
    {
        "names": ["status", "length", "captured", "mac_offset"],
        "formats": ["<u4", "<u4", "<u4", "<u2"],
        "offsets": [0, 4, 8, 12],
        "itemsize": FRAME_BYTES,
    }
)
"""Start of struct tpacket2_hdr, one per ring slot."""

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


def open_packet_socket(interface: str) -> socket.socket:
    """Return an unbound packet socket; raises TransportPermissionError without CAP_NET_RAW."""
    try:
        return socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, 0)
    except PermissionError as error:
        raise TransportPermissionError(
            f"packet sockets on {interface} need root or CAP_NET_RAW; run as root, or use the udp"
            " transport, which needs no privileges"
        ) from error


def interface_addresses(sock: socket.socket, interface: str) -> tuple[str, str]:
    """Return (MAC address, IPv4 address) of an interface; raises InterfaceMissingError."""
    request = struct.pack("256s", interface.encode()[:15])
    try:
        mac = fcntl.ioctl(sock.fileno(), SIOCGIFHWADDR, request)[18:24]
    except OSError as error:
        raise _interface_error(error, interface) from error
    try:
        address = fcntl.ioctl(sock.fileno(), SIOCGIFADDR, request)[20:24]
    except OSError as error:
        raise InterfaceMissingError(
            f"interface {interface} has no IPv4 address; give it one"
        ) from error
    return ":".join(f"{byte:02x}" for byte in mac), socket.inet_ntoa(address)


def _interface_error(error: OSError, interface: str) -> TransportError:
    if error.errno in (errno.ENODEV, errno.ENXIO):
        return InterfaceMissingError(
            f"no network interface {interface!r} in this network namespace; see 'ip link'"
        )
    return TransportError(f"interface {interface}: {error.strerror}")


@final
class PacketRing:
    """The receive ring of a packet socket; frames are read where the kernel wrote them."""

    def __init__(self, sock: socket.socket, interface: str) -> None:
        size = FRAME_BYTES * NUM_FRAMES
        request = struct.pack("IIII", BLOCK_BYTES, size // BLOCK_BYTES, FRAME_BYTES, NUM_FRAMES)
        try:
            sock.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
            sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
            sock.setsockopt(SOL_PACKET, PACKET_RX_RING, request)
            sock.bind((interface, ETH_P_IP))
        except OSError as error:
            raise _interface_error(error, interface) from error
        self._memory = mmap.mmap(sock.fileno(), size)
        self._bytes: NDArray[np.uint8] = np.frombuffer(self._memory, np.uint8).reshape(
            NUM_FRAMES, FRAME_BYTES
        )
        self._slots = self._bytes.reshape(-1).view(_SLOT_DTYPE)
        self._status = self._slots["status"]
        self._head = 0
        self._ready = 0

    def peek(self, most: int) -> tuple[NDArray[np.uint8], NDArray[np.int32]] | None:
        """Return (frames, lengths) of what has arrived, at most `most`, or None.

        The rows are the kernel's again after `release`, which must follow.
        """
        head = self._head
        is_ready = self._status[head : min(head + most, NUM_FRAMES)] & TP_STATUS_USER != 0
        count = len(is_ready)
        if not is_ready.all():
            count = int(is_ready.argmin())
        if not count:
            return None
        self._ready = count
        slots = self._slots[head : head + count]
        offset = int(slots["mac_offset"][0])
        frames = self._bytes[head : head + count, offset:]
        return frames, slots["length"].astype(np.int32)

    def release(self) -> None:
        """Give the rows of the last `peek` back to the kernel."""
        self._status[self._head : self._head + self._ready] = TP_STATUS_KERNEL
        self._head = (self._head + self._ready) % NUM_FRAMES
        self._ready = 0

    def close(self) -> None:
        """Unmap the ring."""
        self._bytes = np.empty((0, FRAME_BYTES), np.uint8)
        self._slots = np.empty(0, _SLOT_DTYPE)
        self._status = self._slots["status"]
        self._memory.close()
