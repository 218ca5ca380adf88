# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Packet-in and packet-out with the program's controller headers."""

import queue

import pytest
from finsy.proto import p4r, rpc_code

from p4runtime_fixtures import DEADLINE_S, BareClient, loaded, serving

PAYLOAD = bytes(range(60))


def _packet_out(*metadata: tuple[int, bytes]) -> p4r.StreamMessageRequest:
    packet = p4r.PacketOut(payload=PAYLOAD)
    for number, value in metadata:
        packet.metadata.add(metadata_id=number, value=value)
    return p4r.StreamMessageRequest(packet=packet)


def test_packet_out_gets_its_header_bits() -> None:
    with loaded() as (client, dataplane):
        client.send(_packet_out((1, b"\x01\x03"), (2, b"\0")))
        frame = dataplane.packets_out.get(timeout=DEADLINE_S)
        assert frame == bytes([0b10000001, 0b10000000]) + PAYLOAD


def test_padding_of_packet_out_may_be_left_out() -> None:
    with loaded() as (client, dataplane):
        client.send(_packet_out((1, b"\x01")))
        assert dataplane.packets_out.get(timeout=DEADLINE_S) == b"\x00\x80" + PAYLOAD


@pytest.mark.parametrize(
    ("metadata", "code", "text"),
    [
        ((), rpc_code.INVALID_ARGUMENT, "egress_port is missing"),
        (((1, b"\x01"), (7, b"\x01")), rpc_code.INVALID_ARGUMENT, "metadata_id 7"),
        (((1, b"\x01"), (1, b"\x01")), rpc_code.INVALID_ARGUMENT, "twice"),
        (((1, b"\x02\x00"),), rpc_code.OUT_OF_RANGE, "9 bits"),
    ],
)
def test_bad_packet_out_is_reported_on_the_stream(
    metadata: tuple[tuple[int, bytes], ...], code: int, text: str
) -> None:
    with loaded() as (client, dataplane):
        client.send(_packet_out(*metadata))
        error = client.receive().error
        assert error.canonical_code == code
        assert text in error.message
        assert error.packet_out.packet_out == _packet_out(*metadata).packet
        client.send(_packet_out((1, b"\x01")))  # the stream stays open
        assert dataplane.packets_out.get(timeout=DEADLINE_S)


def test_backup_may_not_send_packets() -> None:
    with serving() as (server, dataplane), BareClient(server.port) as primary:
        primary.become_primary(5)
        primary.push()
        with BareClient(server.port) as backup:
            backup.arbitrate(4)
            assert backup.status() == rpc_code.ALREADY_EXISTS
            backup.send(_packet_out((1, b"\x01")))
            assert backup.receive().error.canonical_code == rpc_code.PERMISSION_DENIED
            with pytest.raises(queue.Empty):
                dataplane.packets_out.get_nowait()


def test_packet_out_without_a_program_is_reported() -> None:
    with serving() as (server, _), BareClient(server.port) as client:
        client.become_primary()
        client.send(_packet_out())
        assert client.receive().error.canonical_code == rpc_code.FAILED_PRECONDITION


def test_packet_in_goes_to_the_primary_with_its_metadata() -> None:
    with loaded() as (client, dataplane):
        dataplane.punt(bytes([0b10000001, 0b10000000]) + PAYLOAD)
        packet = client.receive().packet
        assert packet.payload == PAYLOAD
        assert [(item.metadata_id, item.value) for item in packet.metadata] == [
            (1, b"\x01\x03"),
            (2, b"\0"),
        ]


def test_packet_in_that_cannot_be_delivered_is_counted() -> None:
    with serving() as (server, dataplane), BareClient(server.port) as client:
        client.become_primary()
        dataplane.punt(PAYLOAD)  # no program yet
        client.push()
        dataplane.punt(b"\x01")  # shorter than the header
        assert server.device.packets_in_dropped == 2
        dataplane.punt(b"\0\0" + PAYLOAD)
        assert client.receive().packet.payload == PAYLOAD


def test_acks_of_digests_that_the_program_lacks_are_refused_on_the_stream() -> None:
    with loaded() as (client, _):
        ack = p4r.DigestListAck(digest_id=1, list_id=5)
        client.send(p4r.StreamMessageRequest(digest_ack=ack))
        error = client.receive().error
        assert error.canonical_code == rpc_code.INVALID_ARGUMENT
        assert error.digest_list_ack.digest_list_ack == ack


def test_stream_messages_of_other_kinds_are_refused() -> None:
    with loaded() as (client, _):
        client.send(p4r.StreamMessageRequest())
        error = client.receive().error
        assert error.canonical_code == rpc_code.INVALID_ARGUMENT
        assert error.HasField("other")
        request = p4r.StreamMessageRequest()
        request.other.Pack(p4r.Index(index=3))
        client.send(request)
        error = client.receive().error
        assert error.canonical_code == rpc_code.UNIMPLEMENTED
        assert error.other.other == request.other
