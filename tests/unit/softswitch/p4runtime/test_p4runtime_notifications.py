# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Digest lists with their limits and acks, and notifications of entries that have expired."""

from finsy.proto import p4r, rpc_code

from fake_data_plane import FakeDataPlane
from p4runtime_control_plane import IDS, codes, host
from p4runtime_fixtures import (
    CONTROL_PLANE,
    PROGRAMS,
    BareClient,
    delete,
    insert,
    loaded,
    modify,
    serving,
)
from switchfold.softswitch.p4runtime.p4info.p4info import build_schema
from switchfold.softswitch.p4runtime.service.dataplane import Match
from switchfold.softswitch.p4runtime.service.digests import DigestStore
from switchfold.softswitch.p4runtime.writes.journal import Backend
from switchfold.softswitch.program.bmv2_json import read_program

LEARNED = IDS["learned_t"]
LIST = 1
HOST = 2
SECOND = 1_000_000_000


def _sample(address: int, port: int = 4) -> bytes:
    return address.to_bytes(6, "big") + port.to_bytes(2, "big") + b"\x01"


def _digest(max_timeout_ns: int = 0, max_list_size: int = 1, ack_ns: int = 0) -> p4r.DigestEntry:
    entry = p4r.DigestEntry(digest_id=LEARNED)
    entry.config.max_timeout_ns = max_timeout_ns
    entry.config.max_list_size = max_list_size
    entry.config.ack_timeout_ns = ack_ns
    return entry


def _addresses(digest: p4r.DigestList) -> list[int]:
    return [int.from_bytes(data.struct.members[0].bitstring, "big") for data in digest.data]


def _receive(client: BareClient) -> p4r.DigestList:
    response = client.receive()
    assert response.HasField("digest"), response
    return response.digest


def test_digests_are_switched_on_changed_and_off() -> None:
    with loaded(CONTROL_PLANE) as (client, dataplane):
        query = p4r.Entity(digest_entry=p4r.DigestEntry())
        dataplane.learn(LIST, _sample(1))  # no client has switched it on
        assert client.read(query) == []
        client.write(insert(_digest()))
        assert [item.digest_entry for item in client.read(query)] == [_digest()]
        dataplane.learn(LIST, _sample(2))
        digest = _receive(client)
        assert digest.digest_id == LEARNED
        assert digest.list_id == 1
        assert digest.timestamp > 0
        (data,) = digest.data
        members = data.struct.members
        assert [item.WhichOneof("data") for item in members] == [
            "bitstring",
            "bitstring",
            "enum_value",
        ]
        assert [members[0].bitstring, members[1].bitstring] == [b"\x02", b"\x04"]
        assert members[2].enum_value == b"\x01"
        assert codes(client, insert(_digest()), insert(p4r.DigestEntry(digest_id=3))) == [
            rpc_code.ALREADY_EXISTS,
            rpc_code.NOT_FOUND,
        ]
        client.write(modify(_digest(SECOND, 2)))
        client.write(delete(p4r.DigestEntry(digest_id=LEARNED)))
        assert codes(
            client, modify(_digest()), delete(_digest()), insert(_digest(max_list_size=-1))
        ) == [rpc_code.NOT_FOUND, rpc_code.NOT_FOUND, rpc_code.INVALID_ARGUMENT]


def test_lists_are_as_long_as_asked_and_hold_no_sample_twice() -> None:
    with loaded(CONTROL_PLANE) as (client, dataplane):
        client.write(insert(_digest(3600 * SECOND, 3)))
        for address in (1, 1, 2, 1, 3, 4, 5, 5, 6):
            dataplane.learn(LIST, _sample(address))
        first, second = _receive(client), _receive(client)
        assert [_addresses(first), _addresses(second)] == [[1, 2, 3], [4, 5, 6]]
        assert (first.list_id, second.list_id) == (1, 2)


def test_a_list_goes_out_when_its_time_is_over() -> None:
    with loaded(CONTROL_PLANE) as (client, dataplane):
        client.write(insert(_digest(SECOND // 20, 0)))
        dataplane.learn(LIST, _sample(1))
        dataplane.learn(LIST, _sample(2))
        found = _addresses(_receive(client))
        if found == [1]:  # a busy machine may send them one by one
            found += _addresses(_receive(client))
        assert found == [1, 2]


def test_shorter_limits_apply_at_once() -> None:
    with loaded(CONTROL_PLANE) as (client, dataplane):
        client.write(insert(_digest(3600 * SECOND, 3)))
        dataplane.learn(LIST, _sample(1))
        client.write(modify(_digest()))
        dataplane.learn(LIST, _sample(2))
        found = _addresses(_receive(client))
        if found == [1]:
            found += _addresses(_receive(client))
        assert found == [1, 2]


def test_unacknowledged_samples_are_not_repeated() -> None:
    with loaded(CONTROL_PLANE) as (client, dataplane):
        client.write(insert(_digest(ack_ns=3600 * SECOND)))
        for address in (1, 1, 2):
            dataplane.learn(LIST, _sample(address))
        first = _receive(client)
        assert _addresses(first) == [1]
        assert _addresses(_receive(client)) == [2]
        ack = p4r.DigestListAck(digest_id=LEARNED, list_id=first.list_id)
        client.send(p4r.StreamMessageRequest(digest_ack=ack))
        client.send(p4r.StreamMessageRequest())  # answered once the ack has been taken
        assert client.receive().HasField("error")
        for address in (2, 1):
            dataplane.learn(LIST, _sample(address))
        assert _addresses(_receive(client)) == [1]


def _store() -> tuple[DigestStore, list[int]]:
    now = [0]
    schema = build_schema(CONTROL_PLANE.p4info, read_program(PROGRAMS / "control_plane.json"))
    return DigestStore(schema, Backend(None), clock=lambda: now[0]), now


def test_samples_come_again_after_the_ack_timeout() -> None:
    store, now = _store()
    store.write(p4r.Update.INSERT, _digest(ack_ns=10))
    store.add(LIST, _sample(1))
    (sent,), deadline = store.take_lists()
    assert _addresses(sent) == [1]
    assert deadline == 10
    now[0] = 9
    store.add(LIST, _sample(1))
    assert store.take_lists() == ([], 10)
    now[0] = 10
    store.add(LIST, _sample(1))
    (sent,), _ = store.take_lists()
    assert sent.list_id == 2


def test_samples_of_unexpected_length_are_dropped() -> None:
    store, _ = _store()
    store.write(p4r.Update.INSERT, _digest())
    store.add(LIST, _sample(1) + b"\0")
    store.add(9, _sample(1))
    assert store.take_lists() == ([], None)
    assert store.dropped == 1


def test_only_the_primary_acknowledges() -> None:
    with serving() as (server, _), BareClient(server.port) as primary:
        primary.become_primary(5)
        primary.push(p4info=CONTROL_PLANE.p4info, blob=CONTROL_PLANE.json)
        with BareClient(server.port) as backup:
            backup.arbitrate(4)
            backup.status()
            ack = p4r.DigestListAck(digest_id=LEARNED, list_id=1)
            backup.send(p4r.StreamMessageRequest(digest_ack=ack))
            assert backup.receive().error.canonical_code == rpc_code.PERMISSION_DENIED


def _key(address: int) -> Match:
    return Match(address.to_bytes(6, "big"), bytes(6), 0, 0)  # as the switch may report it


def _expire(dataplane: FakeDataPlane, address: int, idle_ns: int) -> None:
    match = Match(address.to_bytes(6, "big"), b"", 0, 0)
    dataplane.idle_ns[HOST, match] = idle_ns
    dataplane.expire(HOST, _key(address), idle_ns)


def test_expired_entries_are_told_with_their_key_and_tags() -> None:
    entry = host(1, idle_timeout_ns=60 * SECOND)
    entry.metadata = b"tag"
    with loaded(CONTROL_PLANE) as (client, dataplane):
        client.write(insert(entry), insert(host(2)), insert(host(3, idle_timeout_ns=60 * SECOND)))
        _expire(dataplane, 2, 90 * SECOND)  # has no timeout
        _expire(dataplane, 9, 90 * SECOND)  # was deleted
        _expire(dataplane, 3, 10 * SECOND)  # was hit just now
        _expire(dataplane, 1, 61 * SECOND)
        notice = client.receive().idle_timeout_notification
        assert notice.timestamp > 0
        entry.ClearField("action")
        assert list(notice.table_entry) == [entry]


def test_an_entry_that_stays_idle_is_told_again() -> None:
    with loaded(CONTROL_PLANE) as (client, dataplane):
        client.write(insert(host(1, idle_timeout_ns=1)))
        _expire(dataplane, 1, 5)
        assert client.receive().HasField("idle_timeout_notification")
        assert client.receive().HasField("idle_timeout_notification")
        client.write(delete(host(1)))
        client.send(p4r.StreamMessageRequest())
        while client.receive().HasField("idle_timeout_notification"):
            pass  # sent before the entry went
