# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Twin of packet_io.p4: answers ARP requests that the switch sends to the CPU port."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable

from finsy import P4PacketOut, Switch

_LOGGER = logging.getLogger(__name__)
ARP_HEADER = bytes.fromhex("0806 0001 0800 06 04")
"""Ethertype, then Ethernet and IPv4 with their address lengths."""
ARP_REQUEST, ARP_REPLY = b"\x00\x01", b"\x00\x02"
ARP_FRAME_BYTES = 42

FindMac = Callable[[str, int], str | None]
"""IPv4 address and the port that asks to MAC address; None when unknown, or when the station is
behind that port, too, and answers itself."""


def arp_reply(frame: bytes, port: int, find_mac: FindMac) -> bytes | None:
    """Return the reply to an ARP request for a known address, None for anything else.

    `port`: that by which the request came.
    """
    if len(frame) < ARP_FRAME_BYTES or frame[12:20] != ARP_HEADER or frame[20:22] != ARP_REQUEST:
        return None
    sender_mac, sender_address, target = frame[22:28], frame[28:32], frame[38:42]
    mac_text = find_mac(str(ipaddress.IPv4Address(target)), port)
    if mac_text is None or sender_address == target:
        return None
    mac = bytes.fromhex(mac_text.replace(":", ""))
    return b"".join(
        (sender_mac, mac, ARP_HEADER, ARP_REPLY, mac, target, sender_mac, sender_address)
    )


async def answer_arp(switch: Switch, find_mac: FindMac) -> None:
    """Answer ARP requests until cancelled; other packets to the CPU are dropped."""
    async for packet in switch.read_packets(queue_size=256):
        reply = arp_reply(packet.payload, int(packet["ingress_port"]), find_mac)
        if reply is not None:
            await switch.write([packet_out(switch, int(packet["ingress_port"]), reply)])
        else:
            _LOGGER.debug("packet-in of %d bytes not answered", len(packet.payload))


def packet_out(switch: Switch, port: int, payload: bytes) -> P4PacketOut:
    """Return a frame that leaves by a port."""
    metadata = {
        field.name: 0 for field in switch.p4info.controller_packet_metadata["packet_out"].metadata
    }
    metadata["egress_port"] = port
    return P4PacketOut(payload, **metadata)
