# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Who has which IPv4 address, and at which port: ARP probes (RFC 5227), and the answers to them.

A probe names no address of its sender, so that it changes nobody's tables; kernels answer it
whatever their routes are.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ..switches.packet_io import ARP_FRAME_BYTES, ARP_HEADER, ARP_REPLY, ARP_REQUEST

SWEEP_S: Final = 2.0
"""How long addresses may take to answer; one that has not by then is free."""
_PAUSE_S: Final = 0.5
_SETTLED_S: Final = 0.3
"""An address may answer by several ports: so long after the last news is the end."""
_BROADCAST: Final = b"\xff" * 6
_UNKNOWN: Final = bytes(6)
_NO_ADDRESS: Final = bytes(4)


class Sighting(NamedTuple):
    """An answer: where an address is."""

    port: int
    mac: str


def arp_probe(address: str, sender_mac: bytes) -> bytes:
    """Return a frame of 60 bytes that asks who has an IPv4 address."""
    target = ipaddress.IPv4Address(address).packed
    parts = (_BROADCAST, sender_mac, ARP_HEADER, ARP_REQUEST, sender_mac, _NO_ADDRESS, _UNKNOWN)
    return b"".join((*parts, target)).ljust(60, b"\0")


def arp_answer(frame: bytes) -> tuple[str, str] | None:
    """Return the address and the MAC address that an ARP reply tells; None for other frames."""
    if len(frame) < ARP_FRAME_BYTES or frame[12:20] != ARP_HEADER or frame[20:22] != ARP_REPLY:
        return None
    return str(ipaddress.IPv4Address(frame[28:32])), frame[22:28].hex(":")


class ArpSweep:
    """Asks for addresses until all have answered, or `wait_s` is over. Its caller moves frames."""

    def __init__(
        self,
        addresses: Sequence[str],
        wait_s: float = SWEEP_S,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.found: dict[str, set[Sighting]] = {address: set() for address in addresses}
        self._clock = clock
        self._ask_s = self._news_s = clock()
        self._end_s = self._ask_s + wait_s

    def to_ask(self) -> list[str]:
        """Return the addresses to ask for now: those that have not answered, at intervals."""
        now_s = self._clock()
        if now_s < self._ask_s:
            return []
        self._ask_s = now_s + _PAUSE_S
        return [address for address, sightings in self.found.items() if not sightings]

    def hear(self, port: int, frame: bytes) -> None:
        """Take a frame that has come by a port."""
        answer = arp_answer(frame)
        if answer is not None and answer[0] in self.found:
            self.found[answer[0]].add(Sighting(port, answer[1]))
            self._news_s = self._clock()

    @property
    def wait_s(self) -> float:
        """How long to wait for frames before the next question; 0: the sweep is over."""
        now_s = self._clock()
        end_s = self._end_s
        if all(self.found.values()):
            end_s = min(end_s, self._news_s + _SETTLED_S)
        return max(0.0, min(end_s, self._ask_s if now_s < self._ask_s else end_s) - now_s)

    @property
    def is_over(self) -> bool:
        """Whether nothing more is awaited."""
        now_s = self._clock()
        is_settled = all(self.found.values()) and now_s >= self._news_s + _SETTLED_S
        return is_settled or now_s >= self._end_s
