# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A packet socket with a receive ring in shared memory (TPACKET_V2), read as a numpy array."""

from __future__ import annotations

import errno
import fcntl
import mmap
import socket
import struct
from typing import final

import numpy as np
from numpy.typing import NDArray

from ..errors import (
    InterfaceMissingError,
    TransportError,
    TransportPermissionError,
)
from .packet_filter import ETH_P_IP

SOL_PACKET = 263
PACKET_RX_RING = 5
PACKET_STATISTICS = 6
PACKET_VERSION = 10
PACKET_IGNORE_OUTGOING = 23
TPACKET_V2 = 1
TP_STATUS_KERNEL = 0
TP_STATUS_USER = 1
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
_STATISTICS = struct.Struct("II")
"""struct tpacket_stats: packets, drops."""


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
        self._socket = sock
        self._overflow = 0

    @property
    def overflow(self) -> int:
        """Frames so far that found no room in the ring."""
        if self._socket.fileno() >= 0:
            answer = self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, _STATISTICS.size)
            self._overflow += _STATISTICS.unpack(answer)[1]  # the kernel begins at 0 again
        return self._overflow

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
        self._overflow = self.overflow
        self._bytes = np.empty((0, FRAME_BYTES), np.uint8)
        self._slots = np.empty(0, _SLOT_DTYPE)
        self._status = self._slots["status"]
        self._memory.close()
