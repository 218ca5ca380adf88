# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A `ping` for machines without one: one echo request, reported in the words that Mininet reads.

Usage: ping -c1 [-W SECONDS] ADDRESS
"""

from __future__ import annotations

import os
import socket
import sys
import time


def checksum(data: bytes) -> int:
    total = sum(int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def is_answered(address: str, timeout_s: float) -> bool:
    identity = os.getpid().to_bytes(4, "big")  # as identifier and sequence number
    request = b"\x08\0\0\0" + identity + b"switchfold"
    request = request[:2] + checksum(request).to_bytes(2, "big") + request[4:]
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as sender:
        sender.sendto(request, (address, 0))
        deadline = time.monotonic() + timeout_s
        while (left := deadline - time.monotonic()) > 0:
            sender.settimeout(left)
            try:
                packet, source = sender.recvfrom(2000)
            except TimeoutError:
                break
            answer = packet[(packet[0] & 15) * 4 :]
            if source[0] == address and answer[:1] == b"\0" and answer[4:8] == identity:
                return True
    return False


if __name__ == "__main__":
    *options, target = sys.argv[1:]
    wait_s = float(options[options.index("-W") + 1]) if "-W" in options else 5.0
    received = int(is_answered(target, wait_s))
    print(f"1 packets transmitted, {received} received, {100 - 100 * received}% packet loss")
    sys.exit(1 - received)
