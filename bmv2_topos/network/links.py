# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Links as veth pairs: addresses, neighbours, offloads off, and a shaper for each direction."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import socket
import struct
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final, Literal

from pyroute2.netlink.exceptions import NetlinkError

from ..errors import KernelError, NameTakenError, ShaperMissingError
from ..topology.topology import (
    MTU_BYTES,
    SUBNET_PREFIX_LENGTH,
    Host,
    Link,
    Switch,
    SwitchLink,
    Topology,
)
from .namespaces import call_with_route, namespace_path

Shaper = Literal["tbf", "htb"]

QUEUE_BYTES: Final = 1_000_000
"""Queue of a shaped direction: holds two windows of 256 frames, so it delays but does not drop."""
CARRIER_TIMEOUT_S: Final = 60.0
_BURST_FRAMES: Final = 10
"""Frames that a shaper may send back to back: enough for late timers, too few to skew a rate."""
_SIOCETHTOOL: Final = 0x8946
# linux/ethtool.h: receive checksum, transmit checksum, TSO, GSO, GRO. Frames on a link must look as
# on a real wire: checksums present, never larger than the MTU.
_ETHTOOL_SGRO: Final = 0x2C
_ETHTOOL_OFF: Final = (0x15, 0x17, 0x1F, 0x24, _ETHTOOL_SGRO)
GRO_BYTES: Final = 1
"""Largest packet that GRO may build on our links: so small that GRO merges no frames."""
_NUD_PERMANENT: Final = 0x80
_TC_ROOT: Final = 0xFFFFFFFF
_CUT_ROOT: Final = 0x20000
_HTB_ROOT: Final = 0x10000
_HTB_CLASS: Final = 0x10001


@dataclass(frozen=True, kw_only=True)
class _End:
    """One end of a veth pair."""

    namespace: str
    interface: str
    mac: str
    address: str | None = None
    """Only a host's end has one. A switch's end has none, and does not answer ARP."""


def create_link(
    link: Link,
    host: Host,
    *,
    host_namespace: str,
    switch_namespace: str,
    has_offloads: bool = False,
) -> None:
    """Make the veth pair inside the two namespaces, with addresses and both ends up.

    With offloads, frames may be longer than the MTU and without checksum, as between a virtual
    machine and its host. Raises NameTakenError when an interface exists, KernelError for any other
    failure.
    """
    _create_pair(
        _End(
            namespace=host_namespace,
            interface=link.host_interface,
            mac=host.mac,
            address=host.address,
        ),
        _End(
            namespace=switch_namespace,
            interface=link.switch_interface,
            mac=_port_mac(link.port, side=1),
        ),
        has_offloads=has_offloads,
    )


def create_switch_link(
    link: SwitchLink, *, a_namespace: str, b_namespace: str, has_offloads: bool = False
) -> None:
    """Make the veth pair between two switches, without addresses; errors as in `create_link`."""
    _create_pair(
        _End(namespace=a_namespace, interface=link.a_interface, mac=_port_mac(link.a_port, side=1)),
        _End(namespace=b_namespace, interface=link.b_interface, mac=_port_mac(link.b_port, side=2)),
        has_offloads=has_offloads,
    )


def create_internal_pair(one: str, other: str, *, namespace: str) -> None:
    """Make a veth pair within a namespace, for frames that a program takes off a link.

    Errors as in `create_link`.
    """
    ends = (
        _End(namespace=namespace, interface=name, mac=_port_mac(0, side=side))
        for side, name in ((3, one), (4, other))
    )
    _create_pair(*ends, has_offloads=False)
    wait_for_carrier((one, other), namespace=namespace, timeout_s=CARRIER_TIMEOUT_S)


def cut_end(interface: str, *, namespace: str) -> None:
    """Drop every frame that is sent through this interface; the sender sees no error.

    The interface stays up: BMv2 never reads again from an interface that was down, and programs
    that handle a lost carrier are not what a silent link tests. Raises KernelError.
    """

    def replace(route: Any) -> None:
        route.tc("replace", "blackhole", interface_index(route, interface), handle=_CUT_ROOT)

    try:
        call_with_route(namespace, replace)
    except NetlinkError as exc:
        raise KernelError(f"cannot cut the link at {interface}: {exc}") from exc


def mend_end(interface: str, rate_bits_per_s: int | None, *, namespace: str) -> None:
    """Let frames leave again, at this rate; raises KernelError."""

    def delete(route: Any) -> None:
        index = interface_index(route, interface)
        if any(queue.get("kind") == "blackhole" for queue in route.get_qdiscs(index)):
            route.tc("del", index=index, parent=_TC_ROOT)

    try:
        call_with_route(namespace, delete)
    except NetlinkError as exc:
        raise KernelError(f"cannot mend the link at {interface}: {exc}") from exc
    if rate_bits_per_s is not None:
        shape(interface, rate_bits_per_s, namespace=namespace)


def _create_pair(one: _End, other: _End, *, has_offloads: bool) -> None:
    def make_pair(route: Any) -> None:
        route.link(
            "add",
            ifname=one.interface,
            kind="veth",
            address=one.mac,
            mtu=MTU_BYTES,
            peer={
                "ifname": other.interface,
                "address": other.mac,
                "mtu": MTU_BYTES,
                "net_ns_fd": str(namespace_path(other.namespace)),
            },
        )
        set_up(route, one)

    def set_up(route: Any, end: _End) -> None:
        index = interface_index(route, end.interface)
        if end.address is not None:
            route.addr("add", index=index, address=end.address, prefixlen=SUBNET_PREFIX_LENGTH)
        if not has_offloads:
            turn_offloads_off(end.interface)
        _keep_order(route, end.interface)
        route.link("set", index=index, state="up", arp=end.address is not None)
        route.link("set", index=interface_index(route, "lo"), state="up")

    try:
        call_with_route(one.namespace, make_pair)
        call_with_route(other.namespace, lambda route: set_up(route, other))
    except NetlinkError as exc:
        if exc.code == errno.EEXIST:
            raise NameTakenError(
                f"interface {one.interface} or {other.interface} exists in its "
                "namespace already: remove it or give the testbed another --name"
            ) from exc
        raise KernelError(
            f"cannot make the link {one.interface} to {other.interface}: {exc}"
        ) from exc


def _port_mac(port: int, *, side: int) -> str:
    """Return the MAC of a switch's end; no frame is sent to it, so the kernel there takes none."""
    return f"02:01:00:00:{side:02x}:{port:02x}"


def set_neighbours(host: Host, topology: Topology, *, namespace: str) -> None:
    """Enter all stations of the host's subnet as permanent neighbours, so that no link carries ARP.

    If there are several switches, the host's own one is the gateway to everything else.
    """
    switch = topology.switch_of(host)
    mates = {link.host for link in topology.links_of(switch)} - {host.name}
    others: list[Host | Switch] = [other for other in topology.hosts if other.name in mates]
    others.append(switch)

    def enter(route: Any) -> None:
        index = interface_index(route, host.interface)
        for other in others:
            route.neigh(
                "add", dst=other.address, lladdr=other.mac, ifindex=index, state=_NUD_PERMANENT
            )
        if len(topology.switches) > 1:
            route.route("add", dst="default", gateway=switch.address, oif=index)

    try:
        call_with_route(namespace, enter)
    except NetlinkError as exc:
        raise KernelError(f"cannot set the neighbours of {host.name}: {exc}") from exc


def shape(interface: str, rate_bits_per_s: int, *, namespace: str) -> Shaper:
    """Limit what an interface sends, by tbf or, if the kernel has no tbf, htb; return which.

    The kernel counts Ethernet frames without preamble, gap and FCS. Raises ShaperMissingError.
    """
    refusals: list[str] = []
    for shaper in ("tbf", "htb"):
        try:
            add_shaper(shaper, interface, rate_bits_per_s, namespace=namespace)
        except NetlinkError as exc:
            if exc.code not in {errno.ENOENT, errno.EOPNOTSUPP}:
                raise KernelError(f"cannot shape {interface} with {shaper}: {exc}") from exc
            refusals.append(f"{shaper}: {exc}")
        else:
            return shaper
    raise ShaperMissingError(
        f"this kernel cannot limit the rate of {interface} ({'; '.join(refusals)}): load "
        "the module sch_tbf or sch_htb, or run unshaped with --rate 0"
    )


def add_shaper(shaper: Shaper, interface: str, rate_bits_per_s: int, *, namespace: str) -> None:
    """Add one named shaper as the root queue; NetlinkError (ENOENT) if the kernel has none."""
    rate_bytes_per_s = rate_bits_per_s // 8
    burst_bytes = _burst_bytes(rate_bytes_per_s)

    def add_tbf(route: Any) -> None:
        index = interface_index(route, interface)
        route.tc("add", "tbf", index, rate=rate_bytes_per_s, burst=burst_bytes, limit=QUEUE_BYTES)

    def add_htb(route: Any) -> None:
        index = interface_index(route, interface)
        route.tc("add", "htb", index, handle=_HTB_ROOT, default=_HTB_CLASS)
        route.tc(
            "add-class",
            "htb",
            index,
            handle=_HTB_CLASS,
            parent=_HTB_ROOT,
            rate=rate_bytes_per_s,
            ceil=rate_bytes_per_s,
            burst=burst_bytes,
            cburst=burst_bytes,
        )
        # The class keeps the kernel's default queue of txqlen frames: 1000.

    call_with_route(namespace, add_tbf if shaper == "tbf" else add_htb)


def reshape(interface: str, rate_bits_per_s: int | None, *, namespace: str) -> None:
    """Give an interface another rate, None for none; what waits in its queue stays there.

    An interface whose link is cut stays cut. Raises KernelError and ShaperMissingError.
    """

    def change(route: Any) -> bool:
        """Return whether the interface has a shaper, or has been cut."""
        index = interface_index(route, interface)
        kinds = {queue.get("kind") for queue in route.get_qdiscs(index)}
        if "blackhole" in kinds:
            return True
        if not kinds & {"tbf", "htb"}:
            return False
        if rate_bits_per_s is None:
            route.tc("del", index=index, parent=_TC_ROOT)
            return True
        rate = rate_bits_per_s // 8
        burst = _burst_bytes(rate)
        if "tbf" in kinds:
            route.tc("change", "tbf", index, rate=rate, burst=burst, limit=QUEUE_BYTES)
        else:
            values = {"rate": rate, "ceil": rate, "burst": burst, "cburst": burst}
            route.tc("change-class", "htb", index, handle=_HTB_CLASS, parent=_HTB_ROOT, **values)
        return True

    try:
        is_done = call_with_route(namespace, change)
    except NetlinkError as exc:
        raise KernelError(f"cannot change the rate of {interface}: {exc}") from exc
    if not is_done and rate_bits_per_s is not None:
        shape(interface, rate_bits_per_s, namespace=namespace)


def _burst_bytes(rate_bytes_per_s: int) -> int:
    return max(_BURST_FRAMES * (MTU_BYTES + 14), rate_bytes_per_s // 1000)


def create_bridge(topology: Topology, switch: Switch, *, switch_namespace: str) -> None:
    """Join the switch's ends of its links by a learning bridge of the kernel, named `<switch>-br`.

    Call it once the ends have carrier: their bridge ports then forward at once. Raises KernelError.
    """
    name = f"{switch.name}-br"

    def make(route: Any) -> None:
        route.link("add", ifname=name, kind="bridge")
        bridge = interface_index(route, name)
        for link in topology.links_of(switch):
            route.link("set", index=interface_index(route, link.switch_interface), master=bridge)
        route.link("set", index=bridge, state="up")

    try:
        call_with_route(switch_namespace, make)
    except NetlinkError as exc:
        raise KernelError(
            f"cannot make the bridge {name} in namespace {switch_namespace}: {exc}; a kernel "
            "without bridges needs the module bridge"
        ) from exc


def wait_for_carrier(interfaces: Collection[str], *, namespace: str, timeout_s: float) -> None:
    """Wait until the kernel passes frames in both directions; KernelError if it does not.

    A fresh veth pair drops frames until its carrier event has been handled, up to a second later.
    """

    def not_ready(route: Any) -> list[str]:
        states = {link.get("ifname"): link.get("operstate") for link in route.get_links()}
        return [interface for interface in interfaces if states.get(interface) != "UP"]

    deadline = time.monotonic() + timeout_s
    while missing := call_with_route(namespace, not_ready):
        if time.monotonic() > deadline:
            raise KernelError(f"no carrier on {', '.join(missing)} after {timeout_s} s")
        time.sleep(0.01)


def interface_index(route: Any, interface: str) -> int:
    """Return the index of an interface in the namespace of `route`; KernelError without one."""
    indexes: list[int] = list(route.link_lookup(ifname=interface))
    if not indexes:
        raise KernelError(f"interface {interface} is missing from its namespace")
    return indexes[0]


def turn_offloads_off(interface: str) -> None:
    """Turn the checksum and segmentation offloads of an interface in the caller's namespace off."""
    for command in _ETHTOOL_OFF:
        _set_feature(interface, command, is_on=False)


def _keep_order(route: Any, interface: str) -> None:
    """Make frames arrive in the order in which they left, as on a cable.

    Without GRO, a veth puts each frame into the queue of the processor that sends it. If a sender
    moves between processors, frames overtake each other, and TCP retransmits what was not lost.
    With GRO, a veth has one queue, and the size limit keeps GRO from merging frames. Kernels before
    Linux 5.19 have no such limit: this function changes nothing there.
    """
    index = interface_index(route, interface)
    route.link("set", index=index, gro_max_size=GRO_BYTES)
    (found,) = route.get_links(index)
    if found.get("gro_max_size") == GRO_BYTES:
        _set_feature(interface, _ETHTOOL_SGRO, is_on=True)


def _set_feature(interface: str, command: int, *, is_on: bool) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        value = ctypes.create_string_buffer(struct.pack("=II", command, is_on))
        request = struct.pack("16sP16x", interface.encode(), ctypes.addressof(value))
        try:
            fcntl.ioctl(control, _SIOCETHTOOL, request)
        except OSError as exc:
            if exc.errno != errno.EOPNOTSUPP:  # not offered, so not on
                raise KernelError(f"cannot set the offloads of {interface}: {exc}") from exc
