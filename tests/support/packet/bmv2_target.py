# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""simple_switch_grpc as a packet test's target: veth pairs for ports, P4Runtime for control.

BMv2 has one ingress thread. So a sentinel frame that follows a test's frame, from the same port to
every port, leaves each port after all frames that the test's frame caused. No wait depends on time.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyroute2 import IPRoute

from bmv2_options import BINARY, free_tcp_port, thrift_options
from p4runtime_control import DEADLINE_S, P4RuntimeControl
from packet_frames import CPU_PORT, ETHERTYPE_IPV4, SWITCH_MAC, ethernet, ipv4, udp
from packet_target import PORTS, SENTINEL_NETWORK, Entry
from switchfold import p4src
from switchfold.bmv2_topos.processes.daemons import NUM_PRIORITIES
from switchfold.hostlib.slots.wire import VALUES_PER_PACKET_NARROW, VALUES_PER_PACKET_WIDE

ETH_P_ALL = 3
CLI = "simple_switch_CLI"
SENTINEL_ETHERTYPE = 0x88B5
"""IEEE 802 local experimental: not IPv4, hence a packet-in."""
SENTINEL_SOURCE = 0xC612_FFFF
ECN_CAPABLE = 2
"""ECN field of sentinels: otherwise a long queue would drop them."""
SENTINEL_PREFIX = b"switchfold sentinel"
_targets = itertools.count()
_marks = itertools.count()


def missing_reason() -> str | None:
    """Return why BMv2 cannot run here, or None."""
    if shutil.which(BINARY) is None:
        return f"{BINARY} is not on the PATH"
    if os.geteuid() != 0:
        return "veth pairs need root"
    return None


class _Link:
    """A veth pair; the test holds one end as a packet socket."""

    def __init__(self, ipr: Any, name: str) -> None:
        self.name, self.peer = name, f"{name}h"
        ipr.link("add", ifname=self.name, kind="veth", peer={"ifname": self.peer})
        for end in (self.name, self.peer):
            Path(f"/proc/sys/net/ipv6/conf/{end}/disable_ipv6").write_text("1", encoding="ascii")
            index = ipr.link_lookup(ifname=end)[0]
            ipr.link("set", index=index, state="up", mtu=9000)
        # Protocol 0 receives nothing before the socket is bound to its interface.
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.socket.bind((self.peer, ETH_P_ALL))

    def send(self, frame: bytes) -> None:
        self.socket.send(frame)

    def receive_until(self, sentinel: bytes) -> list[bytes]:
        """Return the frames before the sentinel; it is recognised by its payload."""
        frames: list[bytes] = []
        deadline = time.monotonic() + DEADLINE_S
        while True:
            ready, _, _ = select.select([self.socket], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError(f"no sentinel on {self.name}; received {frames!r}")
            frame, address = self.socket.recvfrom(65536)
            if address[2] == socket.PACKET_OUTGOING:
                continue
            if frame.endswith(sentinel):
                return frames
            frames.append(frame)

    def close(self, ipr: Any) -> None:
        self.socket.close()
        ipr.link("del", index=ipr.link_lookup(ifname=self.name)[0])


class Bmv2Target:
    """One simple_switch_grpc process with its veth pairs."""

    is_fast = False

    def __init__(self, variant: p4src.Variant) -> None:
        self.values_per_packet = {
            "narrow": VALUES_PER_PACKET_NARROW,
            "wide": VALUES_PER_PACKET_WIDE,
        }[variant]
        self._own_frames: dict[tuple[str, int], int] = {}
        with contextlib.ExitStack() as stack:
            ipr = stack.enter_context(IPRoute())
            prefix = f"sfb{os.getpid() % 100000}x{next(_targets)}"
            self._links: dict[int, _Link] = {}
            for port in PORTS:
                self._links[port] = _Link(ipr, f"{prefix}p{port}")
                stack.callback(self._links[port].close, ipr)
            self._log = stack.enter_context(tempfile.TemporaryFile())
            grpc_port = free_tcp_port()
            self._process = self._start_switch(grpc_port)
            stack.callback(self._stop_switch)
            self._await_server(grpc_port)
            self._control = P4RuntimeControl(variant, f"127.0.0.1:{grpc_port}", self._said)
            stack.callback(self._control.close)
            self.insert = self._control.insert
            self.delete = self._control.delete
            self.set_multicast_group = self._control.set_multicast_group
            self.direct_counter = self._control.direct_counter
            for port in PORTS:
                self._insert_sentinel_route(port)
            self._resources = stack.pop_all()

    def _start_switch(self, grpc_port: int) -> subprocess.Popen[bytes]:
        interfaces = [f"--interface={port}@{link.name}" for port, link in self._links.items()]
        thrift = thrift_options()
        self._thrift_port = thrift[-1] if thrift else None
        options = [f"--grpc-server-addr=127.0.0.1:{grpc_port}", f"--cpu-port={CPU_PORT}"]
        options += [f"--priority-queues={NUM_PRIORITIES}"]
        command = [
            BINARY,
            "--no-p4",
            "--device-id=1",
            *thrift,
            *interfaces,
            "--",
            *options,
        ]
        return subprocess.Popen(command, stdout=self._log, stderr=self._log)

    def _stop_switch(self) -> None:
        self._process.terminate()
        self._process.wait(DEADLINE_S)

    def _await_server(self, grpc_port: int) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", grpc_port)) == 0:
                    return
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.02)
                break
        raise TimeoutError(f"{BINARY} does not listen; {self._said()}")

    def _said(self) -> str:
        self._log.seek(0)
        text = self._log.read()[-2000:].decode(errors="replace")
        return f"exit {self._process.poll()}, it said: {text}"

    def _insert_sentinel_route(self, port: int) -> None:
        address = (SENTINEL_NETWORK + port, 32)
        params = {"port": port, "mac": port}
        self.insert(
            Entry(
                table="ipv4_forward",
                match={"dst_address": address},
                action="forward",
                params=params,
            )
        )

    def exchange(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        """See Target."""
        self._links[port].send(frame)
        return sorted(self._collect(port))

    def exchange_all(self, port: int, frames: Sequence[bytes]) -> list[tuple[int, bytes]]:
        """Send frames one after the other; return all that leaves, for each port in order."""
        self.send(port, frames)
        return self._collect(port)

    def send(self, port: int, frames: Sequence[bytes]) -> None:
        """Send frames one after the other."""
        for frame in frames:
            self._links[port].send(frame)

    def set_queue_rate(self, port: int, rate_pps: int) -> None:
        """Limit the packets that leave a port, by BMv2's own tool (CLI)."""
        assert self._thrift_port is not None
        said = subprocess.run(
            [CLI, "--thrift-port", self._thrift_port],
            input=f"set_queue_rate {rate_pps} {port}\n",
            capture_output=True,
            text=True,
            check=True,
            timeout=DEADLINE_S,
        )
        assert "Error" not in said.stdout + said.stderr, said.stdout + said.stderr

    @property
    def thrift_port(self) -> int | None:
        """Where Thrift calls are taken; None: this BMv2 has no Thrift."""
        return None if self._thrift_port is None else int(self._thrift_port)

    def receive_until(self, port: int, end: bytes) -> list[bytes]:
        """Return what leaves a port before a frame that ends so."""
        return self._links[port].receive_until(end)

    @property
    def has_queue_rate(self) -> bool:
        """Whether set_queue_rate works here."""
        return self._thrift_port is not None and shutil.which(CLI) is not None

    def _collect(self, port: int) -> list[tuple[int, bytes]]:
        mark = SENTINEL_PREFIX + next(_marks).to_bytes(8, "big")
        for out_port in PORTS:
            address = SENTINEL_NETWORK + out_port
            segment = udp(SENTINEL_SOURCE, address, 9, 9, mark)
            packet = ipv4(SENTINEL_SOURCE, address, segment, tos=ECN_CAPABLE)
            self._links[port].send(ethernet(SWITCH_MAC, 1, ETHERTYPE_IPV4) + packet)
            self._own("ordinary_outcomes", 0)
            self._own("port_in", port)
            self._own("port_out", out_port)
        self._links[port].send(ethernet(SWITCH_MAC, 1, SENTINEL_ETHERTYPE) + mark)
        self._own("ordinary_outcomes", 4)
        self._own("port_in", port)
        self._own("port_out", CPU_PORT)
        received = [
            (out_port, answer)
            for out_port, link in self._links.items()
            for answer in link.receive_until(mark)
        ]
        received += [(CPU_PORT, frame) for frame in self._control.packet_ins_until(mark)]
        return received

    def _own(self, counter: str, index: int) -> None:
        self._own_frames[counter, index] = self._own_frames.get((counter, index), 0) + 1

    def packet_out(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        """See Target; the frame must differ from all others, since its arrival is awaited."""
        self._control.packet_out(port, frame)
        answer = self._links[port].receive_until(frame)
        return sorted([(port, other) for other in answer] + [(port, frame)])

    def counters(self, name: str) -> list[int]:
        """See Target."""
        return [
            packets - self._own_frames.get((name, index), 0)
            for index, packets in enumerate(self._control.counters(name))
        ]

    def host_interface(self, port: int) -> str:
        """Return the other end of a port's veth pair."""
        return self._links[port].peer

    def close(self) -> None:
        """See Target."""
        self._resources.close()
