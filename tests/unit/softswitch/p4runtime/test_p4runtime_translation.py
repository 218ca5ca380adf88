# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Types that controllers write as strings or as wider numbers: @p4runtime_translation."""

from collections.abc import Iterator

import grpc
import pytest
from finsy.proto import p4r, rpc_code

from p4runtime_fixtures import (
    DEADLINE_S,
    DEVICE_ID,
    PROGRAMS,
    BareClient,
    Sample,
    delete,
    insert,
    loaded,
    update_errors,
)
from switchfold.softswitch import Switch
from switchfold.softswitch.p4runtime.service.serve import serve

PROGRAM = Sample(PROGRAMS, "translated_names")
IDS = PROGRAM.ids
Served = tuple[Switch, BareClient]


@pytest.fixture
def served() -> Iterator[Served]:
    with Switch(device_id=DEVICE_ID) as switch:
        for port in (1, 2, 3):
            switch.ports.add(port, "mem")
        server = serve(switch, address="127.0.0.1:0")
        with server, BareClient(int(server.address.rsplit(":", 1)[1])) as client:
            client.become_primary()
            client.push(p4info=PROGRAM.p4info, blob=PROGRAM.json)
            yield switch, client


def instance(port: bytes, name: bytes) -> p4r.TableEntry:
    entry = p4r.TableEntry(table_id=IDS["instances"], priority=1)
    entry.match.add(field_id=1).optional.value = port
    entry.action.action.CopyFrom(PROGRAM.action("set_instance", name))
    return entry


def route(name: bytes, address: int, next_hop: bytes) -> p4r.TableEntry:
    entry = p4r.TableEntry(table_id=IDS["routes"])
    entry.match.add(field_id=1).exact.value = name
    lpm = entry.match.add(field_id=2).lpm
    lpm.value, lpm.prefix_len = bytes([address]), 8
    entry.action.action.CopyFrom(PROGRAM.action("set_next_hop", next_hop))
    return entry


def next_hop(number: bytes, port: bytes) -> p4r.TableEntry:
    entry = p4r.TableEntry(table_id=IDS["next_hops"])
    entry.match.add(field_id=1).exact.value = number
    entry.action.action.CopyFrom(PROGRAM.action("send", port))
    return entry


def test_packets_follow_entries_with_strings(served: Served) -> None:
    switch, client = served
    entries = [
        instance(b"1", b"red"),
        instance(b"2", b"blue"),
        route(b"red", 7, b"\x01"),
        route(b"blue", 7, b"\x02"),
        route(b"", 7, b"\x03"),
        *(next_hop(bytes([hop]), b"%d" % port) for hop, port in ((1, 2), (2, 3), (3, 1))),
    ]
    client.write(*map(insert, entries))
    assert [switch.process(port, b"\x07") for port in (1, 2, 3)] == [
        [(2, b"\x07")],
        [(3, b"\x07")],
        [(1, b"\x07")],
    ]
    for table in ("instances", "routes", "next_hops"):
        found = client.read_tables(p4r.TableEntry(table_id=IDS[table]))
        wanted = [entry for entry in entries if entry.table_id == IDS[table]]
        assert sorted(map(str, found)) == sorted(map(str, wanted))
    client.write(delete(instance(b"1", b"red")))
    assert switch.process(1, b"\x07") == [(1, b"\x07")]


def test_strings_beyond_the_numbers_of_a_type_are_refused(served: Served) -> None:
    _, client = served
    names = [b"a", b"b", b"c", b"d", b"e", b"f", b"0"]  # all ones stays free
    client.write(*(insert(instance(b"%d" % port, name)) for port, name in enumerate(names)))
    with pytest.raises(grpc.RpcError) as caught:
        client.write(insert(instance(b"9", b"one more")))
    ((code, text),) = update_errors(caught.value)
    assert code == rpc_code.RESOURCE_EXHAUSTED
    assert "instance_name_t" in text


def test_a_wide_number_must_fit_the_switch(served: Served) -> None:
    _, client = served
    client.write(insert(next_hop(b"\x0f\xff", b"1")))
    with pytest.raises(grpc.RpcError) as caught:
        client.write(insert(next_hop(b"\x10\x00", b"1")))
    assert [code for code, _ in update_errors(caught.value)] == [rpc_code.OUT_OF_RANGE]


def test_packets_of_the_controller_name_their_port() -> None:
    with loaded(PROGRAM) as (client, dataplane):
        packet = p4r.PacketOut(payload=b"\x07")
        packet.metadata.add(metadata_id=1, value=b"3")
        packet.metadata.add(metadata_id=2, value=b"\0")
        client.send(p4r.StreamMessageRequest(packet=packet))
        assert dataplane.packets_out.get(timeout=DEADLINE_S) == b"\x01\x80\x07"
        dataplane.punt(b"\x01\x00\x07")
        assert client.receive().packet.metadata[0].value == b"2"
