# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The relay of one direction of a link: takes frames off the link, impairs and sends them.

A program of the kernel at the sender's interface redirects its frames into a veth pair. At the
other end of the pair the relay receives them; softswitch/runtime/ports/relay.h shows the way back.
"""

from __future__ import annotations

import ctypes
import os
import socket
import threading
import time
from dataclasses import dataclass
from typing import Any, Final

from pyroute2.netlink.exceptions import NetlinkError

from ...softswitch.compilation.runtime_library import ImpairmentsT, runtime_library
from ...softswitch.switch.impairments import Impairments
from ..errors import KernelError
from ..network.link_counters import read_counters
from ..network.links import create_internal_pair, interface_index
from ..network.namespaces import call_in_namespace, call_with_route

COUNTERS: Final = (
    *("lost", "duplicated", "corrupted", "reordered", "delayed", "overrun"),
    *("burst_lost", "script_lost"),
    *("seen", "sent", "missed", "link_full", "refused"),
)
"""In the order of runtime/ports/impairments.h and relay.h."""
_MARK: Final = 0x51F01D
"""Of the frames that a relay sends."""
_CLSACT_EGRESS: Final = "ffff:fff3"
_ALL_PROTOCOLS: Final = 3  # linux/if_ether.h: ETH_P_ALL
_BUFFER_BYTES: Final = 16 << 20
"""Of each socket: more than the queue of a shaped link, so that the link's own queue decides."""
_SO_RCVBUFFORCE, _SO_SNDBUFFORCE = 33, 32
_SOL_PACKET, _PACKET_IGNORE_OUTGOING = 263, 23
_ARRIVAL_TIMEOUT_S: Final = 1.0


@dataclass(frozen=True, kw_only=True)
class LinkDirection:
    """The frames that one node of a link sends to the other."""

    sender: str
    receiver: str
    namespace: str
    """Of the sender."""
    interface: str
    """Of the sender, to this link."""
    stream: int
    """Tells its random numbers from those of other directions with the same seed."""

    @property
    def name(self) -> str:
        """How it is shown."""
        return f"{self.sender} to {self.receiver}"


def remove_left(direction: LinkDirection) -> None:
    """Remove what a relay made in the kernel, also if its process has been killed.

    Raises KernelError.
    """
    _let_pass(direction)

    def remove(route: Any) -> None:
        for index in route.link_lookup(ifname=_entry(direction)):
            route.link("del", index=index)

    try:
        call_with_route(direction.namespace, remove)
    except NetlinkError as exc:
        raise KernelError(f"cannot remove {_entry(direction)}: {exc}") from exc


def _let_pass(direction: LinkDirection) -> None:
    def delete(route: Any) -> None:
        index = interface_index(route, direction.interface)
        if any(queue.get("kind") == "clsact" for queue in route.get_qdiscs(index)):
            route.tc("del", "clsact", index)

    try:
        call_with_route(direction.namespace, delete)
    except NetlinkError as exc:
        raise KernelError(f"cannot let frames pass {direction.interface}: {exc}") from exc


def _entry(direction: LinkDirection) -> str:
    """Return the interface that frames of this direction are redirected to."""
    return f"{direction.interface}-i"


class Relay:
    """A relay with its own thread; frames go through it between `attach` and `close`."""

    def __init__(self, direction: LinkDirection, impairments: Impairments) -> None:
        """Make everything, but leave the frames where they are; KernelError undoes it all."""
        self.direction = direction
        self.impairments = impairments
        self._library = runtime_library()
        self._entry = _entry(direction)  # frames go in here and come out at the exit
        self._exit = f"{direction.interface}-o"
        self._is_attached = False
        self._sockets: list[socket.socket] = []
        create_internal_pair(self._entry, self._exit, namespace=direction.namespace)
        try:
            self._sockets = call_in_namespace(direction.namespace, self._open_sockets)
            numbers = [each.fileno() for each in self._sockets]
            address = self._library.relay_create(*numbers)
            if not address:
                raise KernelError(f"no memory for the relay of {direction.name}: free some")
        except BaseException:
            self._remove()
            raise
        self._relay = ctypes.c_void_p(address)
        self.set(impairments)
        self._error = 0
        self._thread = threading.Thread(target=self._run, name=direction.interface)
        self._thread.start()

    def attach(self) -> None:
        """Let the frames of this direction go through the relay from now on; raises KernelError."""

        def redirect(route: Any) -> None:
            descriptor: int = self._library.relay_program(
                _MARK, interface_index(route, self._entry)
            )
            if descriptor < 0:
                raise KernelError(
                    f"the kernel refuses the program that redirects {self.direction.name}:"
                    f" {os.strerror(-descriptor)}; it needs CONFIG_BPF_SYSCALL and CAP_BPF"
                )
            index = interface_index(route, self.direction.interface)
            try:
                route.tc("add", "clsact", index)
                self._is_attached = True
                route.tc(
                    *("add-filter", "bpf", index, ":1"),
                    fd=descriptor,
                    name="relay",
                    parent=_CLSACT_EGRESS,
                    protocol=_ALL_PROTOCOLS,
                    classid=1,
                    direct_action=True,
                )
            finally:
                os.close(descriptor)

        try:
            call_with_route(self.direction.namespace, redirect)
        except NetlinkError as exc:
            raise KernelError(
                f"cannot take frames off {self.direction.interface} in"
                f" {self.direction.namespace}: {exc}; the kernel needs clsact and cls_bpf"
            ) from exc

    def set(self, impairments: Impairments) -> None:
        """Change the impairments; what the relay holds is sent at once."""
        settings = ImpairmentsT.of(impairments)
        self._library.relay_set(self._relay, ctypes.byref(settings), self.direction.stream)
        self.impairments = impairments

    def counters(self) -> dict[str, int]:
        """Return what became of the frames since the relay was made; KernelError if it failed."""
        if self._error:
            raise KernelError(
                f"the relay of {self.direction.name} has failed ({os.strerror(-self._error)}): the"
                " link carries nothing until its impairments are cleared"
            )
        values = (ctypes.c_uint64 * len(COUNTERS))()
        self._library.relay_counters(self._relay, values)
        return dict(zip(COUNTERS, values, strict=True))

    def close(self) -> dict[str, int]:
        """Let frames pass directly again, send what is left, and return the last counters."""
        if self._is_attached:
            _let_pass(self.direction)
            self._await_arrivals()
        self._library.relay_stop(self._relay)
        self._thread.join()
        self._error = 0
        counted = self.counters()
        self._library.relay_destroy(self._relay)
        self._remove()
        return counted

    def _run(self) -> None:
        self._error = self._library.relay_run(self._relay)

    def _await_arrivals(self) -> None:
        """Wait until the relay has seen every frame that was redirected."""
        end_s = time.monotonic() + _ARRIVAL_TIMEOUT_S
        while not self._error and time.monotonic() < end_s:
            counted = self.counters()
            redirected = read_counters(self.direction.namespace)[self._entry]["tx_packets"]
            if counted["seen"] + counted["missed"] >= redirected:
                return
            time.sleep(0.001)

    def _open_sockets(self) -> list[socket.socket]:
        """Return the receiver, at the exit, and the sender, at the link's interface."""
        receiver = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        receiver.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
        receiver.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
        receiver.bind((self._exit, _ALL_PROTOCOLS))
        sender.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _BUFFER_BYTES)
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, _MARK)
        sender.bind((self.direction.interface, 0))
        return [receiver, sender]

    def _remove(self) -> None:
        for each in self._sockets:
            each.close()
        remove_left(self.direction)
