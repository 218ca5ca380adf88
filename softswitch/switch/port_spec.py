# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Port descriptions and the errors of opening them.

Forms: `mem`, `interface:IFNAME` (also `veth:IFNAME`), `udp:HOST:PORT[-PEERHOST:PEERPORT]`.
"""

from __future__ import annotations

import errno
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..errors import (
    CaptureError,
    InterfaceNotFoundError,
    PortError,
    PortExistsError,
    PortInUseError,
    PortNotFoundError,
    PortPermissionError,
    PortSpecError,
)

_INTERFACE_KINDS: Final = ("interface", "veth")
"""A network card is an interface, too; for the switch it is no other port than a veth link."""


@dataclass(frozen=True, kw_only=True)
class PortSpec:
    """A parsed port description; addresses are numeric."""

    text: str
    kind: str
    """`mem`, `veth` (a network interface of any kind) or `udp`."""
    interface: str = ""
    local: tuple[str, int] = ("", 0)
    peer: tuple[str, int] | None = None


def parse_port_spec(text: str) -> PortSpec:
    """Read a port description; raises PortSpecError. Host names are resolved."""
    kind, _, rest = text.partition(":")
    if kind == "mem" and not rest:
        return PortSpec(text=text, kind="mem")
    if kind in _INTERFACE_KINDS and rest:
        return PortSpec(text=text, kind="veth", interface=rest)
    if kind == "udp" and rest:
        # A host name may contain a dash: the peer begins after a dash that follows a number.
        local, dash, peer = rest, "", ""
        for index, character in enumerate(rest):
            if character == "-" and rest[:index].rpartition(":")[2].isdigit():
                local, dash, peer = rest[:index], "-", rest[index + 1 :]
                break
        return PortSpec(
            text=text,
            kind="udp",
            local=_resolve(text, local),
            peer=_resolve(text, peer) if dash else None,
        )
    hint = "" if ":" in text else f"; the interface {text} is interface:{text}"
    raise PortSpecError(
        f"port {text!r}: expected mem, interface:IFNAME, veth:IFNAME, udp:HOST:PORT "
        f"or udp:HOST:PORT-PEERHOST:PEERPORT{hint}"
    )


def _resolve(text: str, address: str) -> tuple[str, int]:
    host, _, number = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not number.isdigit() or int(number) > 65535:
        raise PortSpecError(f"port {text!r}: {address!r} is not HOST:PORT with a port below 65536")
    try:
        found = socket.getaddrinfo(host, int(number), type=socket.SOCK_DGRAM)
    except OSError as exc:
        raise PortSpecError(f"port {text!r}: host {host!r} cannot be resolved: {exc}") from exc
    return str(found[0][4][0]), int(number)


def open_error(number: int, spec: PortSpec, code: int) -> PortError:  # noqa: PLR0911 - one error per errno
    """Translate the negative errno of opening a port."""
    error = -code
    what = f"port {number} ({spec.text})"
    if error == errno.EEXIST:
        return PortExistsError(f"{what}: the switch has a port {number}; remove it first")
    if error in (errno.ENODEV, errno.ENXIO) and spec.kind == "veth":
        return InterfaceNotFoundError(
            f"{what}: there is no interface {spec.interface!r} in this network namespace; "
            "create it first, `ip link` lists what there is"
        )
    if error in (errno.EPERM, errno.EACCES):
        return PortPermissionError(
            f"{what}: not permitted; run as root (packet sockets need CAP_NET_RAW), or use "
            "udp ports above 1023"
        )
    if error == errno.EADDRINUSE:
        holder = "another switch" if spec.kind == "veth" else "another socket"
        return PortInUseError(f"{what}: {holder} holds it; stop that one or choose another")
    if error == errno.EADDRNOTAVAIL:
        return PortError(
            f"{what}: {spec.local[0]} is not an address of this machine; choose one that is"
        )
    if error == errno.EINVAL:
        return PortSpecError(f"{what}: port numbers are 0 to 510 (511 means drop)")
    return PortError(f"{what}: cannot be opened: {os.strerror(error)}")


def capture_error(number: int, capture: Path, error: int) -> CaptureError:
    """Build the error for a capture file that cannot be opened."""
    return CaptureError(
        f"port {number}: capture file {capture} cannot be written: {os.strerror(error)}; "
        "choose another place, or leave the capture out"
    )


def port_not_found(number: int) -> PortNotFoundError:
    """Build the error for a port that does not exist or is of another kind."""
    return PortNotFoundError(f"the switch has no such port {number}; add it first with ports.add")
