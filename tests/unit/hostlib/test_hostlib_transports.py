# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import contextlib
import socket
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

import numpy as np
import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from hostlib_reflector import reflect_datagrams, reflect_frames, running
from loopback import LOOPBACK
from switchfold.hostlib import errors
from switchfold.hostlib.control.view import Endpoint, JobView
from switchfold.hostlib.native.transports import SocketTransport
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.session import Session
from switchfold.hostlib.slots.wire import datagram_bytes, frame_bytes
from switchfold.hostlib.transports.base import Offloads, Transport
from switchfold.hostlib.transports.frames import ECN_CAPABLE, FrameCodec
from switchfold.hostlib.transports.sockets import IP_MTU_DISCOVER, IP_PMTUDISC_PROBE, open_udp
from switchfold.hostlib.transports.tunnel import TunnelTransport
from switchfold.hostlib.transports.udp import UdpTransport
from time_bound import wait_until

VALUES = 352
SIZE = datagram_bytes(VALUES)
IP_RECVTOS = 13
WORKER = Endpoint(address="10.0.0.1", udp_port=4000, mac="02:00:00:00:00:01")
SWITCH = Endpoint(address="10.0.0.254", mac="02:00:00:00:01:00")


def job_view(switch: Endpoint) -> JobView:
    return JobView.on_one_switch(
        job=1,
        generation=2,
        worker_id=0,
        num_workers=1,
        slot_count=64,
        values_per_packet=VALUES,
        switch=switch,
    )


def assert_allreduce_works(switch: Endpoint, transport: Transport) -> None:
    array = np.random.default_rng(1).integers(-(2**31), 2**31 - 1, 50_000).astype(np.int32)
    options = SessionOptions(timeout_s=120.0, min_rto_s=0.05)
    with Session.direct(job_view(switch), transport, options) as session:
        for _ in range(2):
            np.testing.assert_array_equal(session.allreduce(array).result(60), array)
        assert session.statistics["value_packets_received"] == 2 * -(-50_000 // VALUES)


@contextmanager
def peer_socket() -> Generator[socket.socket]:
    with open_udp("127.0.0.1", 0) as sock:
        yield sock


def test_udp_allreduce(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "switchfold.hostlib.session")
    transport = UdpTransport("127.0.0.1")
    peer = open_udp("127.0.0.1", 0)
    peer.connect(("127.0.0.1", transport.local.udp_port))
    switch = Endpoint(address="127.0.0.1", udp_port=peer.getsockname()[1])
    with running(peer, SIZE, reflect_datagrams):
        assert_allreduce_works(switch, transport)
    assert "offloads: up to 45 datagrams" in caplog.text


def test_tunnel_allreduce() -> None:
    peer = open_udp("127.0.0.1", 0)
    transport = TunnelTransport(WORKER, port_address=peer.getsockname())
    peer.connect(transport.cable_address)
    with running(peer, frame_bytes(VALUES), reflect_frames):
        assert_allreduce_works(SWITCH, transport)


def test_udp_counts_datagrams_of_wrong_size() -> None:
    transport = UdpTransport("127.0.0.1")
    with peer_socket() as peer:
        transport.open(Endpoint(address="127.0.0.1", udp_port=peer.getsockname()[1]), SIZE)
        for size in (SIZE, 0, SIZE - 1, SIZE + 1, SIZE):
            peer.sendto(bytes(size), ("127.0.0.1", transport.local.udp_port))
        out = np.empty((16, SIZE), np.uint8)
        received = 0

        def are_all_accounted_for() -> bool:
            nonlocal received
            received += transport.receive(out, 0.0)
            return received + transport.counters["length"] == 5

        wait_until(are_all_accounted_for, "every datagram is received or counted")
        assert transport.counters == Counter(length=3)
    transport.close()


def test_one_receive_takes_all_that_is_there() -> None:
    """A pause between receives must not limit the rate."""
    with contextlib.closing(UdpTransport("127.0.0.1")) as transport, peer_socket() as peer:
        transport.open(Endpoint(address="127.0.0.1", udp_port=peer.getsockname()[1]), SIZE)
        out = np.empty((256, SIZE), np.uint8)

        def exchange(capacity: int) -> list[int]:
            """Send 200 datagrams; return how many each receive took."""
            for number in range(200):
                payload = number.to_bytes(2, "big") + bytes(SIZE - 2)
                peer.sendto(payload, ("127.0.0.1", transport.local.udp_port))
            counts: list[int] = []
            numbers: list[int] = []
            while len(numbers) < 200:
                counts.append(count := transport.receive(out[:capacity], 60.0))
                assert count, f"no more than {numbers}"
                numbers += [int.from_bytes(row[:2].tobytes(), "big") for row in out[:count]]
            assert numbers == list(range(200))
            return counts

        # The kernel of a busy machine may deliver some after the first receive: then once more.
        wait_until(lambda: exchange(256) == [200], "all in one receive")
        wait_until(lambda: exchange(150) == [150, 50], "as many as there is room for")


def test_udp_without_listener_counts_network_errors() -> None:
    with contextlib.closing(open_udp(LOOPBACK, 0)) as peer:
        port = peer.getsockname()[1]
    transport = UdpTransport("127.0.0.1")
    transport.open(Endpoint(address=LOOPBACK, udp_port=port), SIZE)
    rows = np.zeros((4, SIZE), np.uint8)

    def errors_at_send() -> int:
        transport.send(rows)
        return transport.counters["network_error"]

    wait_until(errors_at_send, "the kernel's word that nobody listens")
    transport.close()
    with pytest.raises(errors.TransportClosedError):
        transport.send(rows)


def test_path_mtu_is_not_learned_from_icmp() -> None:
    with contextlib.closing(open_udp("127.0.0.1", 0)) as sock:
        mode = sock.getsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER)
        assert mode == IP_PMTUDISC_PROBE


@pytest.mark.parametrize("kind", ["udp", "tunnel"])
def test_refusal_left_by_an_earlier_packet_fails_no_call(kind: str) -> None:
    """The kernel reports an ICMP error to a connected socket once, at its next call."""
    rows = np.zeros((3, SIZE), np.uint8)
    with contextlib.closing(open_udp(LOOPBACK, 0)) as peer:
        closed = LOOPBACK, peer.getsockname()[1]
    transport: UdpTransport | TunnelTransport
    if kind == "udp":
        transport = UdpTransport("127.0.0.1")
        remote = Endpoint(address=closed[0], udp_port=closed[1])
    else:
        transport, remote = TunnelTransport(WORKER, port_address=closed), SWITCH
    with contextlib.closing(transport):
        transport.open(remote, SIZE)

        def errors_at_receive() -> int:
            assert transport.receive(rows.copy(), 0.0) == 0
            return transport.counters["network_error"]

        assert transport.send(rows) == 3
        wait_until(lambda: errors_at_receive() > 0, "the error of the first batch")
        before = transport.counters["network_error"]
        for _ in range(3):
            assert transport.send(rows) == 3
        wait_until(lambda: errors_at_receive() > before, "the error of a later batch")
        assert "path_mtu_ignored" not in transport.counters


@pytest.mark.parametrize("kind", ["udp", "tunnel"])
def test_datagrams_of_strangers_are_counted(kind: str) -> None:
    transport: UdpTransport | TunnelTransport
    with peer_socket() as peer, peer_socket() as stranger:
        port = peer.getsockname()[1]
        if kind == "udp":
            transport = UdpTransport("127.0.0.1")
            remote = Endpoint(address="127.0.0.1", udp_port=port)
            local = "127.0.0.1", transport.local.udp_port
        else:
            transport = TunnelTransport(WORKER, port_address=("127.0.0.1", port))
            remote, local = SWITCH, transport.cable_address
        with contextlib.closing(transport):
            transport.open(remote, SIZE)
            transport.open(remote, SIZE)  # a view change
            for _ in range(5):
                stranger.sendto(bytes(SIZE), local)
            wait_until(lambda: transport.counters["stranger"] == 5, "five counted datagrams")
            assert transport.receive(np.empty((9, SIZE), np.uint8), 0.0) == 0
            with pytest.raises(errors.PortTakenError):
                UdpTransport(*local)
        assert transport.counters == Counter(stranger=5)


def test_datagrams_without_room_are_counted() -> None:
    with contextlib.closing(UdpTransport("127.0.0.1")) as transport, peer_socket() as peer:
        transport.open(Endpoint(address="127.0.0.1", udp_port=peer.getsockname()[1]), SIZE)
        peer.setblocking(True)
        sent = 0
        while not transport.counters["overflow"]:
            peer.sendto(bytes(SIZE), ("127.0.0.1", transport.local.udp_port))
            sent += 1
        out = np.empty((256, SIZE), np.uint8)
        received = 0

        def are_all_accounted_for() -> bool:
            nonlocal received
            received += transport.receive(out, 0.0)
            return received + transport.counters["overflow"] == sent

        wait_until(are_all_accounted_for, "every datagram is received or counted")


def test_udp_receive_returns_when_woken() -> None:
    transport = UdpTransport("127.0.0.1")
    transport.open(Endpoint(address="127.0.0.1", udp_port=9), SIZE)
    transport.wake()
    assert transport.receive(np.empty((1, SIZE), np.uint8), 60.0) == 0
    transport.close()
    transport.close()


def test_udp_port_taken() -> None:
    with (
        peer_socket() as peer,
        pytest.raises(errors.PortTakenError, match="choose another port"),
    ):
        UdpTransport("127.0.0.1", peer.getsockname()[1])


def test_udp_foreign_local_address() -> None:
    with pytest.raises(errors.AddressUnreachableError, match="no address of this host"):
        UdpTransport("192.0.2.1")


def test_udp_send_gives_back_what_the_kernel_does_not_take() -> None:
    receiver, sender = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    sender.setblocking(False)
    transport = SocketTransport(sender)
    transport.open(SIZE)
    sent = transport.send(np.zeros((5000, SIZE), np.uint8))
    assert 0 < sent < 5000
    assert transport.counters == Counter(send_busy=1)
    transport.close()
    assert transport.counters == Counter(send_busy=1)
    receiver.close()


@pytest.mark.parametrize("kind", ["udp", "tunnel"])
def test_closed_transport_reaches_no_file_of_its_old_number(kind: str) -> None:
    rows = np.zeros((1, SIZE), np.uint8)
    transport: UdpTransport | TunnelTransport
    with peer_socket() as peer:
        port = peer.getsockname()[1]
        if kind == "udp":
            transport, remote = UdpTransport("127.0.0.1"), Endpoint(address=LOOPBACK, udp_port=port)
        else:
            transport = TunnelTransport(WORKER, port_address=("127.0.0.1", port))
            remote = SWITCH
        transport.open(remote, SIZE)
        transport.close()
        one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        with one, other:
            one.setblocking(False)
            other.setblocking(False)
            with pytest.raises(errors.TransportClosedError, match=f"(?i){kind}.* was closed"):
                transport.send(rows)
            with pytest.raises(errors.TransportClosedError, match=f"(?i){kind}.* was closed"):
                transport.receive(rows, 0.0)
            for end in (one, other):
                with pytest.raises(BlockingIOError):
                    end.recv(1)
        transport.wake()


def test_offloads_name_what_the_kernel_does() -> None:
    with contextlib.closing(UdpTransport("127.0.0.1")) as transport, peer_socket() as peer:
        assert transport.offloads == Offloads()
        transport.open(Endpoint(address="127.0.0.1", udp_port=peer.getsockname()[1]), SIZE)
        assert transport.offloads == Offloads(
            sent_together=45, sent_together_later=45, are_received_together=True
        )
        assert str(transport.offloads) == (
            "offloads: up to 45 datagrams per message sent, several per message received"
        )


def test_frame_codec_agrees_with_scapy() -> None:
    rows = np.random.default_rng(3).integers(0, 256, (5, SIZE)).astype(np.uint8)
    frames = np.empty((5, frame_bytes(VALUES)), np.uint8)
    FrameCodec(WORKER, SWITCH, SIZE).wrap(rows, frames)
    for row, frame in zip(rows, frames, strict=True):
        packet = Ether(frame.tobytes())
        assert bytes(packet[UDP].payload) == row.tobytes()
        stated = packet[IP].chksum, packet[UDP].chksum
        del packet[IP].chksum, packet[UDP].chksum
        packet = Ether(bytes(packet))
        assert (packet[IP].chksum, packet[UDP].chksum) == stated
        assert (packet.src, packet.dst) == (WORKER.mac, SWITCH.mac)
        assert (packet[IP].src, packet[IP].dst) == (WORKER.address, SWITCH.address)
        assert packet[IP].flags == "DF"
        assert packet[IP].tos == ECN_CAPABLE


def test_udp_datagrams_are_ecn_capable() -> None:
    with contextlib.closing(UdpTransport("127.0.0.1")) as transport, peer_socket() as peer:
        peer.setsockopt(socket.IPPROTO_IP, IP_RECVTOS, 1)
        peer.settimeout(60)
        transport.open(Endpoint(address="127.0.0.1", udp_port=peer.getsockname()[1]), SIZE)
        assert transport.send(np.zeros((3, SIZE), np.uint8)) == 3
        for _ in range(3):
            _, ancillary, _, _ = peer.recvmsg(SIZE, socket.CMSG_SPACE(1))
            assert ancillary == [(socket.IPPROTO_IP, socket.IP_TOS, bytes([ECN_CAPABLE]))]


def test_frame_codec_refuses_by_cause() -> None:
    worker, switch = FrameCodec(WORKER, SWITCH, SIZE), FrameCodec(SWITCH, WORKER, SIZE)
    rows = np.random.default_rng(4).integers(0, 256, (6, SIZE)).astype(np.uint8)
    frames = np.empty((6, frame_bytes(VALUES)), np.uint8)
    switch.wrap(rows, frames)
    lengths = np.full(6, frame_bytes(VALUES), np.int32)
    frames[0, 12:14] = 8, 6  # ARP
    frames[1, 33] ^= 1  # to another host
    lengths[2] -= 1
    frames[3, 700] ^= 1  # corrupted
    frames[4, 40:42] = 0  # without checksum
    out = np.empty((6, SIZE), np.uint8)
    counters: Counter[str] = Counter()
    assert worker.unwrap(frames, lengths, out, counters) == 2
    np.testing.assert_array_equal(out[:2], rows[4:])
    assert counters == Counter(other_traffic=2, length=1, checksum=1)


@pytest.mark.parametrize("mac", ["", "02:00:00:00:00", "02:00:00:00:00:zz", "1:2:3:4:5:999"])
def test_frame_codec_refuses_mac(mac: str) -> None:
    with pytest.raises(errors.AddressUnreachableError, match="MAC"):
        FrameCodec(Endpoint(address="10.0.0.1", mac=mac), SWITCH, SIZE)


def test_frame_codec_refuses_address() -> None:
    with pytest.raises(errors.AddressUnreachableError, match="IPv4"):
        FrameCodec(Endpoint(address="switch.example"), SWITCH, SIZE)
