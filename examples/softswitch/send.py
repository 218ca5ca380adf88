# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sends an IPv4 packet to the router's udp port 1; prints the packet that leaves at port 2."""

import socket
import struct
import sys

PORT_1, PEER_OF_PORT_2 = ("127.0.0.1", 5101), ("127.0.0.1", 5202)
ADDRESSES = bytes.fromhex("020000000101 020000000102 0800")


def checksum(header: bytes) -> int:
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def packet(dst: str, dst_port: int, ttl: int = 64) -> bytes:
    udp = struct.pack(">4H", 4000, dst_port, 13, 0) + b"hello"
    ends = socket.inet_aton("10.0.1.2") + socket.inet_aton(dst)
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 1, 0, ttl, 17, 0) + ends
    head = head[:10] + checksum(head).to_bytes(2, "big") + head[12:]
    return ADDRESSES + head + udp


def main() -> None:
    dst, dst_port = sys.argv[1], int(sys.argv[2])
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as h1,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as h2,
    ):
        h2.bind(PEER_OF_PORT_2)
        h1.sendto(packet(dst, dst_port), PORT_1)
        h2.settimeout(5)
        try:
            frame = h2.recv(2048)
        except TimeoutError:
            print("nothing came")
            return
    print(f"to {frame[:6].hex(':')}, ttl {frame[22]}, payload {frame[42:].decode()}")


if __name__ == "__main__":
    main()
