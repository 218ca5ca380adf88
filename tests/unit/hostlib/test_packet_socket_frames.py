# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames of several datagrams, as a packet socket exchanges them with the kernel.

A pair of local sockets keeps message boundaries like a packet socket. So the test is the kernel: it
reads what the C library sends, and sends whatever it likes.
"""

from __future__ import annotations

import random
import socket
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from switchfold.hostlib.control.view import Endpoint
from switchfold.hostlib.native.structures import PacketLinkStruct
from switchfold.hostlib.native.transports import Joining, SocketTransport
from switchfold.hostlib.slots.wire import datagram_bytes
from switchfold.hostlib.transports.base import Offloads
from switchfold.hostlib.transports.frames import frames_between

VALUES = 352
SIZE = datagram_bytes(VALUES)
MOST = 65507 // SIZE
NEEDS_CSUM, DATA_VALID = 1, 2
GSO_NONE, GSO_TCPV4, GSO_UDP, GSO_TCPV6, GSO_UDP_L4 = 0, 1, 3, 4, 5
OFFLOAD = struct.Struct("=BBHHHH")
LAYERS_BYTES = 42
WORKER = Endpoint(address="10.0.0.1", udp_port=4000, mac="02:00:00:00:00:01")
SWITCH = Endpoint(address="10.0.0.254", mac="02:00:00:00:01:00")
RANDOM = np.random.default_rng(5)


@dataclass(frozen=True, kw_only=True)
class Offload:
    """A virtio_net_hdr; without `gso_kind`, the frame holds one datagram."""

    flags: int = 0
    gso_kind: int = GSO_NONE
    gso_bytes: int = 0

    def packed(self) -> bytes:
        return OFFLOAD.pack(self.flags, self.gso_kind, LAYERS_BYTES, self.gso_bytes, 34, 6)


JOINED = Offload(flags=NEEDS_CSUM, gso_kind=GSO_UDP_L4, gso_bytes=SIZE)


@dataclass
class Bench:
    """A transport, and the kernel's end of its socket."""

    transport: SocketTransport
    kernel: socket.socket

    def open(self, joining: Joining, *, has_header: bool = True) -> None:
        link = PacketLinkStruct(interface=b"lo", has_offload_header=has_header, join=joining)
        self.transport.open_packets(frames_between(WORKER, SWITCH, SIZE), link)

    def give(self, message: bytes) -> None:
        self.kernel.send(message)

    def taken(self, capacity: int = 256) -> list[bytes]:
        """The datagrams that one call takes."""
        rows = np.empty((capacity, SIZE), np.uint8)
        count = self.transport.receive(rows, 0.0)
        assert count >= 0
        return [row.tobytes() for row in rows[:count]]

    def refused(self) -> int:
        counters = self.transport.counters
        assert set(counters) <= {"other_traffic", "length", "checksum"}
        return counters.total()


@pytest.fixture
def bench() -> Iterator[Bench]:
    near, kernel = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    near.setblocking(False)
    kernel.settimeout(60)
    bench = Bench(SocketTransport(near), kernel)
    bench.open(Joining.ALWAYS)
    yield bench
    bench.transport.close()
    kernel.close()


def payloads(count: int) -> list[bytes]:
    return [RANDOM.bytes(SIZE) for _ in range(count)]


def frame(payload: bytes, source: Endpoint = SWITCH, destination: Endpoint = WORKER) -> bytes:
    """A frame with correct lengths and checksums, by scapy."""
    return bytes(
        Ether(src=source.mac, dst=destination.mac)
        / IP(src=source.address, dst=destination.address, flags="DF")
        / UDP(sport=source.udp_port, dport=destination.udp_port)
        / Raw(payload)
    )


def test_sent_super_frame_is_what_the_kernel_cuts(bench: Bench) -> None:
    sent = payloads(MOST + 3)
    rows = np.frombuffer(b"".join(sent), np.uint8).reshape(-1, SIZE).copy()
    assert bench.transport.send(rows) == len(sent)
    for part in (sent[:MOST], sent[MOST:]):
        message = bench.kernel.recv(1 << 17)
        assert message[: OFFLOAD.size] == JOINED.packed()
        packet = Ether(message[OFFLOAD.size :])
        payload = b"".join(part)
        assert bytes(packet[UDP].payload) == payload
        whole = Ether(frame(payload, WORKER, SWITCH))
        whole[IP].tos, whole[IP].id, whole[IP].chksum = 2, 0, None
        # The sum of the pseudo header alone; the kernel goes on from it.
        pseudo = whole[IP].src.split(".") + whole[IP].dst.split(".")
        words = struct.unpack(">4H", bytes(int(byte) for byte in pseudo))
        total = sum(words) + 17 + len(payload) + 8
        total = (total & 0xFFFF) + (total >> 16)
        whole[UDP].chksum = total
        assert bytes(packet) == bytes(Ether(bytes(whole)))
    assert bench.transport.offloads == Offloads(
        sent_together=MOST, sent_together_later=MOST, are_received_together=True
    )


def test_one_datagram_leaves_its_checksum_to_the_kernel(bench: Bench) -> None:
    assert bench.transport.send(np.zeros((1, SIZE), np.uint8)) == 1
    message = bench.kernel.recv(1 << 17)
    assert message[: OFFLOAD.size] == Offload(flags=NEEDS_CSUM).packed()
    assert len(message) == OFFLOAD.size + LAYERS_BYTES + SIZE


@pytest.mark.parametrize("capacity", [1, 7, 256])
def test_received_super_frames_are_cut(bench: Bench, capacity: int) -> None:
    sent = payloads(40)
    for start, count in ((0, 1), (1, 30), (31, 9)):
        payload = b"".join(sent[start : start + count])
        bench.give(JOINED.packed() + frame(payload))
    received: list[bytes] = []
    while len(received) < len(sent):
        part = bench.taken(capacity)
        assert part
        received += part
    assert received == sent
    assert bench.taken() == []
    assert bench.refused() == 0


@pytest.mark.parametrize(
    ("flags", "is_taken"), [(0, False), (NEEDS_CSUM, True), (DATA_VALID, True)]
)
@pytest.mark.parametrize("count", [1, 5])
def test_checksum_is_verified_unless_the_kernel_answers_for_it(
    bench: Bench, flags: int, count: int, *, is_taken: bool
) -> None:
    sent = payloads(count)
    wrong = bytearray(frame(b"".join(sent)))
    wrong[40] ^= 1
    offload = replace(JOINED, flags=flags) if count > 1 else Offload(flags=flags)
    bench.give(offload.packed() + wrong)
    assert bench.taken() == (sent if is_taken else [])
    assert bench.transport.counters == (Counter() if is_taken else Counter(checksum=1))


@pytest.mark.parametrize("count", [1, 5])
def test_good_checksum_is_taken(bench: Bench, count: int) -> None:
    sent = payloads(count)
    offload = replace(JOINED, flags=0) if count > 1 else Offload()
    bench.give(offload.packed() + frame(b"".join(sent)))
    unchecked = bytearray(frame(b"".join(sent)))
    unchecked[40:42] = 0, 0
    bench.give(offload.packed() + unchecked)
    assert bench.taken() == sent + sent
    assert bench.refused() == 0


def test_short_last_segment_is_counted(bench: Bench) -> None:
    sent = payloads(4)
    bench.give(JOINED.packed() + frame(b"".join(sent)[:-1]))
    assert bench.taken() == sent[:3]
    assert bench.transport.counters == Counter(length=1)


@pytest.mark.parametrize("gso_bytes", [0, 1, SIZE - 1, SIZE + 1, 65535])
def test_segments_of_another_size_are_counted(bench: Bench, gso_bytes: int) -> None:
    bench.give(replace(JOINED, gso_bytes=gso_bytes).packed() + frame(b"".join(payloads(4))))
    assert bench.taken() == []
    segments = -(-4 * SIZE // gso_bytes) if gso_bytes else 1
    assert bench.transport.counters == Counter(length=segments)


@pytest.mark.parametrize("gso_kind", [GSO_TCPV4, GSO_UDP, GSO_TCPV6, 2, 0x85, 255])
def test_other_offloads_are_other_traffic(bench: Bench, gso_kind: int) -> None:
    bench.give(replace(JOINED, gso_kind=gso_kind).packed() + frame(b"".join(payloads(4))))
    assert bench.taken() == []
    assert bench.transport.counters == Counter(other_traffic=1)


@pytest.mark.parametrize(
    ("source", "destination"),
    [
        (replace(SWITCH, address="10.0.0.253"), WORKER),
        (replace(SWITCH, udp_port=9), WORKER),
        (SWITCH, replace(WORKER, address="10.0.0.2")),
        (SWITCH, replace(WORKER, udp_port=9)),
    ],
)
def test_frames_of_others_are_counted_and_teach_nothing(
    bench: Bench, source: Endpoint, destination: Endpoint
) -> None:
    bench.open(Joining.LIKE_PEER)
    bench.give(JOINED.packed() + frame(b"".join(payloads(4)), source, destination))
    bench.give(Offload(flags=NEEDS_CSUM).packed() + frame(payloads(1)[0], source, destination))
    assert bench.taken() == []
    assert bench.transport.counters == Counter(other_traffic=2)
    assert bench.transport.offloads.sent_together == 1


def test_every_length_of_one_frame_has_one_fate(bench: Bench) -> None:
    message = Offload().packed() + frame(payloads(1)[0])
    accepted = 0
    for length in range(len(message) + 8):
        bench.give((message + bytes(8))[:length])
        taken = bench.taken()
        accepted += len(taken)
        assert bool(taken) == (length == len(message))
        assert accepted + bench.refused() == length + 1
    assert bench.transport.counters["checksum"] == 0


def test_every_length_of_a_super_frame_has_one_fate(bench: Bench) -> None:
    message = JOINED.packed() + frame(b"".join(payloads(3)))
    for length in range(len(message) + 8):
        bench.give((message + bytes(8))[:length])
        assert len(bench.taken()) == (3 if length == len(message) else 0)
        assert bench.refused() == (length + 1 if length < len(message) else length)


def test_message_without_room_is_counted(bench: Bench) -> None:
    bench.give(JOINED.packed() + frame(payloads(1)[0]) + bytes(70_000))
    assert bench.taken() == []
    assert bench.transport.counters == Counter(length=1)


def test_random_damage_is_counted(bench: Bench) -> None:
    source = random.Random(7)
    whole = JOINED.packed() + frame(b"".join(payloads(3)))
    for _ in range(3000):
        message = bytearray(whole[: source.choice((len(whole), source.randrange(len(whole))))])
        for _ in range(source.randrange(1, 6)):
            if message:
                message[source.randrange(min(len(message), 60))] = source.randrange(256)
        before = bench.refused()
        bench.give(bytes(message))
        taken = bench.taken()
        assert len(taken) <= 3
        assert taken or bench.refused() > before
    bench.give(whole)
    assert len(bench.taken()) == 3


def test_super_frames_begin_when_the_switch_leaves_checksums_to_others(bench: Bench) -> None:
    bench.open(Joining.LIKE_PEER)
    sent = payloads(4)
    rows = np.frombuffer(b"".join(sent), np.uint8).reshape(-1, SIZE).copy()

    def sent_messages() -> list[bytes]:
        assert bench.transport.send(rows) == 4
        count = 1 if bench.transport.offloads.sent_together > 1 else 4
        return [bench.kernel.recv(1 << 17) for _ in range(count)]

    bench.give(Offload().packed() + frame(sent[0]))
    assert bench.taken() == sent[:1]
    for payload, message in zip(sent, sent_messages(), strict=True):
        expected = Ether(frame(payload, WORKER, SWITCH))
        expected[IP].tos, expected[IP].id, expected[IP].chksum = 2, 0, None
        assert message == bytes(10) + bytes(expected)
    assert "45 if the switch leaves checksums to this host" in str(bench.transport.offloads)

    bench.give(Offload(flags=NEEDS_CSUM).packed() + frame(sent[0]))
    assert bench.taken() == sent[:1]
    (message,) = sent_messages()
    assert message.startswith(JOINED.packed())

    bench.open(Joining.LIKE_PEER)  # to another switch, which has shown nothing
    assert len(sent_messages()) == 4


def test_frames_without_offload_header(bench: Bench) -> None:
    bench.open(Joining.NEVER, has_header=False)
    sent = payloads(3)
    rows = np.frombuffer(b"".join(sent), np.uint8).reshape(-1, SIZE).copy()
    assert bench.transport.send(rows) == 3
    for payload in sent:
        packet = Ether(bench.kernel.recv(1 << 17))
        assert bytes(packet[UDP].payload) == payload
        bench.give(frame(payload))
    assert bench.taken() == sent
    wrong = bytearray(frame(sent[0]))
    wrong[-1] ^= 1
    bench.give(bytes(wrong))
    bench.give(bytes(wrong[:-1]))
    assert bench.taken() == []
    assert bench.transport.counters == Counter(checksum=1, length=1)
    assert bench.transport.offloads == Offloads()
