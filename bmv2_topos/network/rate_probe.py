# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Probe of a link's real rate: fill one direction and count what arrives at its other end."""

from __future__ import annotations

import errno
import socket
import threading
import time
from typing import Final

from ..testbed import Testbed
from ..topology.topology import Host
from .link_counters import read_counters
from .namespaces import call_in_namespace

FRAME_BYTES: Final = 1494
"""Size of a wide Switchfold packet as the shapers count it: without preamble and FCS."""
_ETHERTYPE: Final = b"\x88\xb5"  # for local experiments (IEEE 802): no stack answers it
_SETTLE_S: Final = 0.2
_BACKPRESSURE: Final = {errno.EAGAIN, errno.ENOBUFS}  # the queue is full, as intended


def probe_rate(testbed: Testbed, host: Host, *, duration_s: float) -> tuple[float, float]:
    """Return bits per second from the host and to it, counted as the shapers count.

    The testbed must be in mode veth and have no switch, which would answer the frames.
    """
    link = testbed.topology.link_of(host)
    ends = (
        (testbed.namespace_of(host), link.host_interface),
        (testbed.namespace_of(testbed.switch), link.switch_interface),
    )
    rates: list[float] = []
    for (sender, interface), (receiver, counted) in (ends, ends[::-1]):
        if sender is None or receiver is None:
            raise ValueError("mode udp has no shaped links to probe")
        rates.append(_fill(sender, interface, receiver, counted, duration_s))
    return rates[0], rates[1]


def _fill(sender: str, interface: str, receiver: str, counted: str, duration_s: float) -> float:
    stop = threading.Event()
    blast = threading.Thread(
        target=call_in_namespace, args=(sender, lambda: _send_until(stop, interface))
    )
    blast.start()
    try:
        time.sleep(_SETTLE_S)  # until the shaper's burst is spent and its queue holds frames
        first_bytes, first_s = read_counters(receiver)[counted]["rx_bytes"], time.monotonic()
        time.sleep(duration_s)
        last_bytes, last_s = read_counters(receiver)[counted]["rx_bytes"], time.monotonic()
    finally:
        stop.set()
        blast.join()
    return 8 * (last_bytes - first_bytes) / (last_s - first_s)


def _send_until(stop: threading.Event, interface: str) -> None:
    frame = b"\x02\x00\x00\x00\x02\x00" + b"\x02\x00\x00\x00\x02\x01" + _ETHERTYPE
    frame += bytes(FRAME_BYTES - len(frame))
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.settimeout(0.5)
        sender.bind((interface, 0))
        while not stop.is_set():
            try:
                sender.send(frame)
            except OSError as exc:
                if exc.errno not in _BACKPRESSURE:
                    raise
                stop.wait(0.001)
