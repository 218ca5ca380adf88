# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A datagram socket with batched system calls (sendmmsg, recvmmsg) straight on numpy buffers.

The message headers are numpy arrays prepared once; addresses are computed for a whole batch, so
there is no Python work per packet. The two calls never block and keep the interpreter lock, as
giving it up and fighting for it again costs more than the call; waiting is done in poll.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import socket
import threading
from collections import Counter
from typing import final

import numpy as np
from numpy.typing import NDArray

MSG_DONTWAIT = 0x40
MSG_TRUNC = 0x20
MAX_BATCH = 256
"""Messages per system call; longer batches take several."""
SEND_WAIT_MS = 20
"""How long a send waits for room before it gives the rest back."""
ICMP_ERRORS = (
    errno.ECONNREFUSED,
    errno.EHOSTDOWN,
    errno.EHOSTUNREACH,
    errno.EMSGSIZE,
    errno.ENETUNREACH,
    errno.ENONET,
    errno.ENOPROTOOPT,
    errno.EOPNOTSUPP,
    errno.EPROTO,
)
"""What the kernel makes of ICMP messages about a connected socket. Each fails one call, and anybody
who knows or guesses the ports can forge them."""
SOFT_ERRORS = (*ICMP_ERRORS, errno.ENETDOWN, errno.EINTR)
"""Errors that an earlier packet or a link that is down left on the socket; the retransmission timer
deals with them."""
SOFT_ERROR_LIMIT = 3
BUSY_ERRORS = (errno.EAGAIN, errno.ENOBUFS, errno.ENOMEM)
SOL_UDP = 17
UDP_SEGMENT = 103
SEGMENTS = 8
"""Datagrams that the kernel cuts out of one message: one way down its stack for all of them, small
enough not to be a burst of their own on a shaped link."""
NO_SEGMENTATION_ERRORS = (errno.EIO, errno.EINVAL)
"""What kernels before 6.11 say where the interface computes no checksums."""

_IOVEC_DTYPE = np.dtype([("base", np.uint64), ("length", np.uint64)])
_MMSGHDR_DTYPE = np.dtype(
    [
        ("name", np.uint64),
        ("name_length", np.uint64),
        ("iov", np.uint64),
        ("iov_count", np.uint64),
        ("control", np.uint64),
        ("control_length", np.uint64),
        ("flags", np.uint64),
        ("length", np.uint32),
        ("padding", np.uint32),
    ]
)
"""struct mmsghdr of 64-bit Linux, in whole words."""

_libc = ctypes.PyDLL(None, use_errno=True)
_pointer = ctypes.c_void_p
_libc.sendmmsg.argtypes = [ctypes.c_int, _pointer, ctypes.c_uint, ctypes.c_int]
_libc.recvmmsg.argtypes = [ctypes.c_int, _pointer, ctypes.c_uint, ctypes.c_int, _pointer]


def address_of(rows: NDArray[np.uint8]) -> int:
    """Return the address of the first of some writable rows; a row is contiguous."""
    # A fifth of the time of __array_interface__, which builds a dict.
    return ctypes.addressof(ctypes.c_char.from_buffer(rows[0]))


class _Batch:
    """Message headers over the rows of any buffer."""

    def __init__(self) -> None:
        self._vectors = np.zeros(MAX_BATCH, _IOVEC_DTYPE)
        self.messages = np.zeros(MAX_BATCH, _MMSGHDR_DTYPE)
        vectors: int = self._vectors.ctypes.data
        rows = np.arange(MAX_BATCH, dtype=np.uint64)
        self.messages["iov"] = vectors + rows * np.uint64(_IOVEC_DTYPE.itemsize)
        self.messages["iov_count"] = 1
        self.address: int = self.messages.ctypes.data
        self._rows = rows
        self._bases = self._vectors["base"]
        self._lengths = self._vectors["length"]
        self._steps = rows
        self._base = -1
        self._stride: int = 0  # from message to message
        self._length: int = 0  # of each message but a shorter last one
        self._shorter = 0  # where that one was

    def point_at(self, rows: NDArray[np.uint8], group: int = 1) -> int:
        """Let message i hold `group` rows from row i * group on, the last what is left.

        Returns how many messages there are, at most MAX_BATCH. Groups need rows without gaps.
        """
        size: int = rows.shape[1]
        count = min(-(-len(rows) // group), MAX_BATCH)
        base = address_of(rows)
        stride: int = rows.strides[0] * group
        length: int = size * group
        if stride != self._stride or length != self._length:
            self._lengths[...] = length
            self._stride, self._length = stride, length
            self._steps = self._rows * np.uint64(stride)
            self._base = -1
        if base != self._base:
            self._base = base
            np.add(self._steps, np.uint64(base), out=self._bases)
        if group > 1:
            self._lengths[self._shorter] = length
            self._shorter = count - 1
            self._lengths[count - 1] = size * (min(len(rows), count * group) - (count - 1) * group)
        return count


@final
class BatchSocket:
    """Sends and receives rows of a buffer; one thread does both, any thread may wake it."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.soft_errors = 0
        """Errors reported for earlier packets (ICMP, no route)."""
        self.too_long_errors = 0
        """Those of them that said that a packet is too long for the path."""
        self.too_long_in_a_row = 0
        """How often in a row, without a packet sent in between, the kernel said so at a send."""
        self.busy = 0
        """Times that a send had to give rows back."""
        self._descriptor = sock.fileno()
        self._segments = 1
        self._lock = threading.Lock()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._out, self._in = _Batch(), _Batch()
        self._in_lengths = self._in.messages["length"]
        self._in_flags = self._in.messages["flags"]
        self._readable = select.poll()
        self._readable.register(self._descriptor, select.POLLIN)
        self._readable.register(self._wake, select.POLLIN)
        self._writable = select.poll()
        self._writable.register(self._descriptor, select.POLLOUT)

    def cut_messages(self, datagram_bytes: int) -> None:
        """Let the kernel cut messages of several rows into datagrams, where it can (UDP only)."""
        try:
            self.socket.setsockopt(SOL_UDP, UDP_SEGMENT, datagram_bytes)
        except OSError:
            return  # an older kernel: one message per datagram
        self._segments = SEGMENTS

    def _stop_cutting(self) -> None:
        self.socket.setsockopt(SOL_UDP, UDP_SEGMENT, 0)
        self._segments = 1

    def _send_some(self, rows: NDArray[np.uint8]) -> int:
        """Send what one call takes; return the rows sent, or -1 and errno."""
        group = self._segments
        if group > 1 and rows.strides[0] == rows.shape[1]:
            count = self._out.point_at(rows, group)
            sent: int = _libc.sendmmsg(self._descriptor, self._out.address, count, MSG_DONTWAIT)
            return min(sent * group, len(rows)) if sent >= 0 else sent
        count = self._out.point_at(rows)
        return _libc.sendmmsg(self._descriptor, self._out.address, count, MSG_DONTWAIT)

    def send(self, rows: NDArray[np.uint8]) -> int:
        """Send rows in order; return how many the kernel took."""
        done = 0
        soft_errors = 0
        has_waited = False
        while done < len(rows):
            sent = self._send_some(rows[done:])
            if sent >= 0:
                done += sent
                self.too_long_in_a_row = 0
                continue
            error = ctypes.get_errno()
            if error in NO_SEGMENTATION_ERRORS and self._segments > 1:
                self._stop_cutting()
            elif error in SOFT_ERRORS:
                # The first was left by an earlier packet; the next are this batch's own.
                self._count(error)
                self.too_long_in_a_row += error == errno.EMSGSIZE
                soft_errors += 1
                if soft_errors == SOFT_ERROR_LIMIT:
                    return done
            elif error in BUSY_ERRORS:
                if has_waited:
                    self.busy += 1
                    return done
                self._writable.poll(SEND_WAIT_MS)
                has_waited = True
            else:
                raise OSError(error, os.strerror(error))
        return done

    def receive(
        self, rows: NDArray[np.uint8], timeout_s: float
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint64]] | None:
        """Fill rows; return (lengths, message flags) of those filled, or None after waiting."""
        received = self._receive_now(rows)
        if received is None and timeout_s > 0 and self.wait(timeout_s):
            received = self._receive_now(rows)
        return received

    def wait(self, timeout_s: float) -> bool:
        """Wait for something to receive or a wake; return whether there may be something."""
        # Round up: a poll that ends just before a deadline would only spin.
        events = self._readable.poll(int(timeout_s * 1000) + 1)
        for descriptor, event in events:
            if descriptor == self._wake:
                self._drain_wake()
            elif event & select.POLLERR:
                # Whoever reads a ring never meets the error, and poll would not wait again.
                self._count(self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
        return bool(events)

    def _receive_now(
        self, rows: NDArray[np.uint8]
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint64]] | None:
        count = self._in.point_at(rows)
        while True:
            got = _libc.recvmmsg(self._descriptor, self._in.address, count, MSG_DONTWAIT, None)
            if got > 0:
                return self._in_lengths[:got], self._in_flags[:got]
            error = ctypes.get_errno()
            if error not in SOFT_ERRORS:
                break
            self._count(error)
        if got < 0 and error not in BUSY_ERRORS:
            raise OSError(error, os.strerror(error))
        return None

    def _count(self, error: int) -> None:
        self.soft_errors += 1
        self.too_long_errors += error == errno.EMSGSIZE

    @property
    def counters(self) -> Counter[str]:
        """What was held up or lost here, by cause."""
        return Counter(
            network_error=self.soft_errors,
            path_mtu_ignored=self.too_long_errors,
            send_busy=self.busy,
        )

    def _drain_wake(self) -> None:
        try:
            os.eventfd_read(self._wake)
        except BlockingIOError:
            return

    def wake(self) -> None:
        """Make a waiting `receive` return."""
        with self._lock:
            if self._wake >= 0:
                os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        """Close the socket; closing twice is fine."""
        self.socket.close()
        # The number may be that of another file the moment after.
        with self._lock:
            if self._wake >= 0:
                os.close(self._wake)
                self._wake = -1
