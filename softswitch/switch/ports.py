# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The ports of a switch: opened, impaired, counted, closed."""

from __future__ import annotations

import contextlib
import ctypes
import enum
import errno
import os
from ctypes import byref
from pathlib import Path
from typing import TYPE_CHECKING

from ..compilation.runtime_library import CAPTURE_FAILED, ImpairmentsT
from ..errors import PortError, PortPermissionError
from .impairments import Impairments, PortDirection
from .native import NativeSwitch
from .port_spec import PortSpec, capture_error, open_error, parse_port_spec, port_not_found

if TYPE_CHECKING:
    from .mem_port import MemPort


class SuperFrames(enum.Flag):
    """What a port carries in one piece; values of runtime/ports/ports.h."""

    RECEIVED = 1
    SENT_UDP = 2
    SENT_TCP = 4

    def describe(self) -> str:
        """Name what is in use, e.g. `received, sent UDP`."""
        names = [str(flag.name).lower().replace("_", " ") for flag in self]
        names = [name.replace("udp", "UDP").replace("tcp", "TCP") for name in names]
        return ", ".join(names) or "none"


class Ports:
    """The ports of a switch by number; they may change while it runs."""

    def __init__(self, native: NativeSwitch, cpu_port: int, *, super_frames: bool) -> None:
        self._native = native
        self._cpu_port = cpu_port
        self._super_frames = super_frames
        self._specs: dict[int, PortSpec] = {}

    @property
    def specs(self) -> dict[int, str]:
        """Port numbers and their descriptions, without the CPU port."""
        return {number: spec.text for number, spec in self._specs.items()}

    def add(
        self,
        number: int,
        spec: str,
        *,
        impairments_in: Impairments | None = None,
        impairments_out: Impairments | None = None,
        capture: Path | None = None,
    ) -> None:
        """Open a port: `mem`, `interface:IFNAME`, `udp:HOST:PORT[-PEERHOST:PEERPORT]`.

        `veth:IFNAME` is an interface, too. Works on a running switch. `capture` names a pcap file
        for both directions. Raises PortError subclasses.
        """
        parsed = parse_port_spec(spec)
        if not 0 <= number <= 510:
            raise open_error(number, parsed, -errno.EINVAL)
        path = None if capture is None else os.fsencode(capture)
        joins = int(self._super_frames)
        match parsed.kind:
            case "mem":
                code = self._native.call("switch_add_mem_port", number, path)
            case "veth":
                name = parsed.interface.encode()
                code = self._native.call("switch_add_veth_port", number, name, joins, path)
            case _:
                local = _encode_address(parsed.local)
                peer = _encode_address(parsed.peer) if parsed.peer else (None, None)
                code = self._native.call("switch_add_udp_port", number, *local, *peer, joins, path)
        if capture is not None and code <= CAPTURE_FAILED:
            raise capture_error(number, capture, CAPTURE_FAILED - code)
        if code < 0:
            raise open_error(number, parsed, code)
        self._specs[number] = parsed
        if impairments_in is not None:
            self.set_impairments(number, impairments_in, direction="in")
        if impairments_out is not None:
            self.set_impairments(number, impairments_out, direction="out")

    def remove(self, number: int) -> None:
        """Close a port.

        Raises PortNotFoundError if there is none, PortPermissionError for the CPU port.
        """
        code: int = self._native.call("switch_remove_port", number)
        if code == -errno.EPERM:
            raise PortPermissionError(f"port {number} is the CPU port and cannot be removed")
        if code < 0:
            raise port_not_found(number)
        self._specs.pop(number, None)

    def reopen(self, number: int) -> bool:
        """Reopen a veth port whose interface had vanished; False if the port is not down.

        Statistics, impairments and capture go on. Raises PortError subclasses as `add` does.
        """
        spec = self._specs.get(number)
        if spec is None:
            raise port_not_found(number)
        code: int = self._native.call("switch_reopen_port", number)
        if code < 0 and code != -errno.EALREADY:
            raise open_error(number, spec, code)
        return code == 0

    def udp_address(self, number: int) -> tuple[str, int]:
        """Return host and UDP port of a udp port, also if its description has port 0."""
        spec = self._specs.get(number)
        if spec is None or spec.kind != "udp":
            raise port_not_found(number)
        return spec.local[0], self._native.call("switch_udp_number", number)

    def super_frames(self, number: int) -> SuperFrames:
        """Return which super-frames the port uses; the kernel may have refused some."""
        bits: int = self._native.call("switch_port_super_frames", number)
        if bits < 0:
            raise port_not_found(number)
        return SuperFrames(bits)

    def set_impairments(
        self, number: int, impairments: Impairments, *, direction: PortDirection
    ) -> None:
        """Change a port's impairments; packets that the old settings hold go on at once."""
        settings = ImpairmentsT.of(impairments)
        is_out = int(direction == "out")
        code = self._native.call("switch_set_impairments", number, is_out, byref(settings))
        if code < 0:
            raise port_not_found(number)

    def statistics(self, number: int) -> dict[str, int]:
        """Return the port's counters by name: packets, bytes, drops by cause, impairments."""
        count = self._native.library.switch_statistics_count()
        values = (ctypes.c_uint64 * count)()
        if self._native.call("switch_port_statistics", number, values) < 0:
            raise port_not_found(number)
        names = [
            self._native.library.switch_statistic_name(index).decode() for index in range(count)
        ]
        return dict(zip(names, values, strict=True))

    def all_statistics(self) -> dict[int, dict[str, int]]:
        """Return the counters of every port, the CPU port too, by port number."""
        counters: dict[int, dict[str, int]] = {}
        for number in sorted({*self._specs, self._cpu_port}):
            with contextlib.suppress(PortError):  # removed meanwhile
                counters[number] = self.statistics(number)
        return counters

    def mem_port(self, number: int) -> MemPort:
        """Return the user's end of a mem port."""
        spec = self._specs.get(number)
        if spec is None or spec.kind != "mem":
            raise port_not_found(number)
        from .mem_port import MemPort  # noqa: PLC0415 - numpy only when it is needed

        return MemPort(self._native, number)


def _encode_address(address: tuple[str, int]) -> tuple[bytes, bytes]:
    return address[0].encode(), str(address[1]).encode()
