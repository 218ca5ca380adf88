# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""softswitch with veth ports: super-frames in, and what leaves as frames.

What leaves port 1 and 3 comes uncut, and `super_frames.cut` cuts it; at ports 2 and 4 the kernel
does. The CPU port's frames come with the controller's header, as BMv2's do.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from finsy.proto import p4r

from differential.runtime_client import DEVICE_ID, RuntimeClient
from differential.super_frame_traffic import Burst
from differential.super_frames import NEEDS_CHECKSUM, OFFLOAD, UDP, Headers, cut
from packet_frames import CPU_PORT, ETHERTYPE_IPV4, SWITCH_MAC, ethernet
from packet_target import PORTS
from switchfold.bmv2_topos.network.links import turn_offloads_off
from switchfold.softswitch.p4runtime.service.serve import serve
from switchfold.softswitch.switch.switch import Switch
from time_bound import wait_until
from veth_pair import bring_up, ip, packet_socket

SOL_PACKET, PACKET_VNET_HDR = 263, 15
SO_RCVBUFFORCE = 33
BUFFER_BYTES = 1 << 23
MESSAGE_BYTES = 1 << 17
POLL_S = 0.001
LOSSES = ("rx_oversize", "rx_overflow", "tx_oversize", "tx_overflow", "tx_down", "port_errors")


def takes_udp_super_frames() -> bool:
    """Return whether the kernel takes them from packet sockets; needs root."""
    link = ethernet(SWITCH_MAC, 1, ETHERTYPE_IPV4)
    network = bytes([0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2])
    arrival = Headers(link, network, bytes([0, 9, 0, 9, 0, 0, 0, 0])).carry([bytes(50)] * 2)
    with contextlib.ExitStack() as stack:
        host = _veth_pair(stack, f"dt{os.getpid()}", f"du{os.getpid()}")
        try:
            host.send(arrival.offload + arrival.frame)
        except OSError as exc:
            if exc.errno != errno.EINVAL:
                raise
            return False
    return True


@contextlib.contextmanager
def _on_one_processor() -> Iterator[None]:
    """Keep this thread, and those that it starts, on one processor.

    Frames that two processors put into a veth pair may overtake each other.
    """
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(processors)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, processors)


def _veth_pair(stack: contextlib.ExitStack, near: str, far: str) -> socket.socket:
    """Make a pair that goes with the stack; return the host at its far end."""
    ip("link", "add", near, "type", "veth", "peer", "name", far)
    stack.callback(ip, "link", "del", near)
    bring_up(near, far)
    host = stack.enter_context(packet_socket(far))
    host.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    host.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
    return host


class VethSoftswitch:
    """A softswitch and the hosts' ends of its links; needs root."""

    def __init__(self, json: Path, p4info: Path) -> None:
        with contextlib.ExitStack() as stack:
            self._hosts: dict[int, socket.socket] = {}
            self.switch = stack.enter_context(Switch(device_id=DEVICE_ID))
            for port in PORTS:
                self._add_link(stack, port)
            server = stack.enter_context(serve(self.switch, address="127.0.0.1:0"))
            self._client = RuntimeClient(server.address)
            stack.callback(self._client.close)
            self._client.push(json, p4info)
            self.switch.set_packet_in(None)  # queued for `packet_in` instead
            self._resources = stack.pop_all()
        self._sent: dict[int, int] = dict.fromkeys(PORTS, 0)
        self.left: dict[int, list[bytes]] = {port: [] for port in (*PORTS, CPU_PORT)}
        """The frames that have left, in order, by port."""

    def _add_link(self, stack: contextlib.ExitStack, port: int) -> None:
        interface = f"ds{os.getpid()}p{port}"
        self._hosts[port] = _veth_pair(stack, interface, f"dh{os.getpid()}p{port}")
        if port % 2 == 0:
            turn_offloads_off(interface)
        self.switch.ports.add(port, f"veth:{interface}")

    def write(self, update: p4r.Update) -> str:
        """Send one update; return its code."""
        return self._client.write(update)

    def send(self, burst: Burst) -> None:
        """Send a burst, which waits at the port; start the switch and take all that leaves."""
        with _on_one_processor():
            for arrival in burst.arrivals:
                self._hosts[burst.port].send(arrival.offload + arrival.frame)
            self.switch.start()
        self._sent[burst.port] += len(burst.frames)
        # The switch counts what it received, and sends all answers, under one lock.
        wait_until(
            lambda: self.statistics(burst.port)["rx_packets"] >= self._sent[burst.port],
            lambda: (
                f"port {burst.port}: {self._sent[burst.port]} frames sent,"
                f" {self.statistics(burst.port)}"
            ),
            interval_s=POLL_S,
        )
        for port in self.left:
            while len(self.left[port]) < self.statistics(port)["tx_packets"]:
                self.left[port] += self._take(port)
        self.switch.stop()

    def _take(self, port: int) -> list[bytes]:
        if port == CPU_PORT:
            frame = self.switch.packet_in(60.0)
            assert frame is not None
            return [frame]
        try:
            message = self._hosts[port].recv(MESSAGE_BYTES)
        except TimeoutError as exc:
            counted = self.statistics(port)["tx_packets"]
            raise AssertionError(
                f"port {port}: {len(self.left[port])} of {counted} frames have come"
            ) from exc
        offload, frame = message[: OFFLOAD.size], message[OFFLOAD.size :]
        if offload[1] == 0:
            assert not offload[0] & NEEDS_CHECKSUM, f"port {port}: no checksum in {frame.hex()}"
        elif port % 2 == 0:
            raise AssertionError(f"port {port}: the kernel has not cut {frame.hex()}")
        return cut(offload, frame)

    def statistics(self, port: int) -> dict[str, int]:
        """Return a port's statistics."""
        return self.switch.ports.statistics(port)

    def counters(self) -> dict[str, tuple[int, int]]:
        """See RuntimeClient."""
        return self._client.counters()

    def close(self) -> None:
        """Close server, switch and links."""
        self._resources.close()
