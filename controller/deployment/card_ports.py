# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The network cards of this machine: what they are, who is behind them, their addresses."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import pyroute2

from ..errors import DeploymentError
from .arp_sweep import ArpSweep, Sighting, arp_probe

_ETH_P_ARP: Final = 0x0806
_IFF_UP: Final = 1
_FRAME_BYTES: Final = 2048
_PYROUTE2: Final = cast(Any, pyroute2)  # only partly annotated


class OwnAddress(NamedTuple):
    """An IPv4 address of this machine."""

    interface: str
    address: str
    prefix_bits: int


@dataclass(frozen=True, kw_only=True)
class Card:
    """A network interface of this machine."""

    name: str
    mac: str
    mtu: int
    is_up: bool
    rate_bits_per_s: int | None = None
    """As the driver says; None: it does not."""


def own_addresses() -> list[OwnAddress]:
    """Return the IPv4 addresses of this network namespace, without loopback's."""
    with _PYROUTE2.IPRoute() as route:
        names = {link["index"]: link.get_attr("IFLA_IFNAME") for link in route.get_links()}
        return [
            OwnAddress(names[each["index"]], each.get_attr("IFA_ADDRESS"), each["prefixlen"])
            for each in route.get_addr(family=socket.AF_INET)
            if names[each["index"]] != "lo"
        ]


def find_cards() -> dict[str, Card]:
    """Return the interfaces of this network namespace by name, without loopback."""
    with _PYROUTE2.IPRoute() as route:
        links = list(route.get_links())
    cards = [
        Card(
            name=link.get_attr("IFLA_IFNAME"),
            mac=link.get_attr("IFLA_ADDRESS") or "",
            mtu=link.get_attr("IFLA_MTU"),
            is_up=bool(link["flags"] & _IFF_UP),
            rate_bits_per_s=_rate(link.get_attr("IFLA_IFNAME")),
        )
        for link in links
    ]
    return {card.name: card for card in cards if card.name != "lo"}


def sweep_cards(ports: Mapping[int, Card], addresses: Iterable[str]) -> dict[str, set[Sighting]]:
    """Return by address who answers for it, by which of these ports; none: nobody.

    Raises DeploymentError without CAP_NET_RAW.
    """
    sweep = ArpSweep(list(addresses))
    with contextlib.ExitStack() as stack:
        sockets = {
            stack.enter_context(_open(card)): (number, card) for number, card in ports.items()
        }
        while not sweep.is_over:
            for address in sweep.to_ask():
                for sock, (_, card) in sockets.items():
                    sock.send(arp_probe(address, bytes.fromhex(card.mac.replace(":", ""))))
            for sock in select.select(list(sockets), [], [], sweep.wait_s)[0]:
                sweep.hear(sockets[sock][0], sock.recv(_FRAME_BYTES))
    return sweep.found


def _open(card: Card) -> socket.socket:
    try:
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ARP))
    except PermissionError as exc:
        raise DeploymentError(
            f"hosts behind {card.name} are found by ARP, which needs root or CAP_NET_RAW; use sudo,"
            " or give each host as NAME=ADDRESS,MAC,PORT, and --service-address"
        ) from exc
    try:
        sock.bind((card.name, _ETH_P_ARP))
    except OSError as exc:
        sock.close()
        raise DeploymentError(f"interface {card.name} cannot be used: {exc.strerror}") from exc
    return sock


def _rate(name: str) -> int | None:
    """Return bits/s by /sys, None where the driver does not know, as those of virtual links."""
    try:
        megabits = int((Path("/sys/class/net") / name / "speed").read_text("ascii"))
    except (OSError, ValueError):
        return None
    return megabits * 1_000_000 if megabits > 0 else None
