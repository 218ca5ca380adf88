# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Write and Read of every supported entity, wildcards, and the error of each bad update."""

from typing import Any

import grpc
import pytest
from finsy.proto import p4r, rpc_code

from p4runtime_fixtures import (
    IDS,
    BareClient,
    action,
    delete,
    insert,
    loaded,
    modify,
    policy,
    prefix,
    station,
    update,
    update_errors,
)
from switchfold.softswitch.p4runtime.service.dataplane import Match


def _refused(client: BareClient, *updates: p4r.Update) -> list[tuple[int, str]]:
    with pytest.raises(grpc.RpcError) as caught:
        client.write(*updates)
    return update_errors(caught.value)


def test_entries_of_every_match_kind_come_back_canonical() -> None:
    entries = [
        station(b"\x00\x00\x0a", b"\x00\x01", out=b"\x00\x02"),
        prefix(b"\x0a\x00\x00\x00\x00\x00", 8),
        policy(5),
    ]
    with loaded() as (client, dataplane):
        client.write(*(insert(entry) for entry in entries))
        found = client.read_tables(p4r.TableEntry())
        wanted = [station(), *entries[1:]]
        assert [entry for entry in found if not entry.is_const] == wanted
        assert client.read_tables(p4r.TableEntry(table_id=IDS["station"])) == [station()]
        key = bytes.fromhex("00000000000a0001")
        params = bytes.fromhex("0002aabbccddeeff")
        assert dataplane.entries[2, Match(key, b"", 0, 0)] == (6, params)
        ternary = Match(
            bytes.fromhex("0806000100000000000a"), bytes.fromhex("ffff0008ffffffffffff"), 0, 5
        )
        assert dataplane.entries[4, ternary] == (9, b"")


def test_fields_that_do_not_matter_are_left_out() -> None:
    anything = p4r.TableEntry(table_id=IDS["policy"], priority=1, action=action("punt"))
    every_prefix = p4r.TableEntry(table_id=IDS["prefix"], action=action("drop_packet"))
    with loaded() as (client, _):
        client.write(insert(anything), insert(every_prefix))
        assert client.read_tables(p4r.TableEntry(table_id=IDS["policy"])) == [anything]
        assert client.read_tables(p4r.TableEntry(table_id=IDS["prefix"])) == [every_prefix]


def test_modify_and_delete_find_the_entry_by_match() -> None:
    with loaded() as (client, dataplane):
        client.write(insert(station()))
        client.write(modify(station(out=b"\x07")))
        assert client.read_tables(station()) == [station(out=b"\x07")]
        bare = station()
        bare.ClearField("action")
        client.write(delete(bare))
        assert client.read_tables(p4r.TableEntry(table_id=IDS["station"])) == []
        assert not dataplane.entries


def test_each_update_has_its_own_error_in_order() -> None:
    with loaded() as (client, _):
        errors = _refused(
            client,
            insert(station(b"\x01")),
            insert(station(b"\x01")),
            modify(station(b"\x02")),
            delete(station(b"\x03")),
            insert(station(b"\x02")),
        )
        assert [code for code, _ in errors] == [
            rpc_code.OK,
            rpc_code.ALREADY_EXISTS,
            rpc_code.NOT_FOUND,
            rpc_code.NOT_FOUND,
            rpc_code.OK,
        ]
        assert "ToyIngress.station" in errors[1][1]
        assert len(client.read_tables(p4r.TableEntry(table_id=IDS["station"]))) == 2


def test_full_table_is_exhausted_and_takes_again_after_delete() -> None:
    with loaded() as (client, _):
        client.write(*(insert(station(bytes([number + 1]))) for number in range(8)))
        ((code, text),) = _refused(client, insert(station(b"\x20")))
        assert code == rpc_code.RESOURCE_EXHAUSTED
        assert "8 entries of 8" in text
        client.write(delete(station(b"\x01")), insert(station(b"\x20")))


def _changed(entry: p4r.TableEntry, **changes: Any) -> p4r.TableEntry:
    for name, value in changes.items():
        setattr(entry, name, value)
    return entry


def _without(entry: p4r.TableEntry, index: int) -> p4r.TableEntry:
    del entry.match[index]
    return entry


def _with_action(entry: p4r.TableEntry, changed: p4r.TableAction) -> p4r.TableEntry:
    entry.action.CopyFrom(changed)
    return entry


INVALID = rpc_code.INVALID_ARGUMENT
BAD_INSERTS: list[tuple[p4r.TableEntry, int, str]] = [
    (p4r.TableEntry(table_id=5), rpc_code.NOT_FOUND, "table_id 5"),
    (station(b""), INVALID, "dst_address"),
    (station(b"\x01" + bytes(6)), rpc_code.OUT_OF_RANGE, "dst_address"),
    (station(port=b"\x02\x00"), rpc_code.OUT_OF_RANGE, "ingress_port"),
    (station(out=b"\xff\xff"), rpc_code.OUT_OF_RANGE, "port"),
    (_without(station(), 1), INVALID, "ingress_port"),
    (_changed(station(), priority=3), INVALID, "priority"),
    (_changed(policy(1), priority=0), INVALID, "priority"),
    (prefix(b"\x0a", 49), INVALID, "prefix_len 49"),
    (prefix(b"\x0a", 8), INVALID, "after the prefix"),
    (_with_action(station(), action("punt")), INVALID, "action_id"),
    (_with_action(station(), action("forward", b"\x01")), INVALID, "1 parameters"),
    (_with_action(station(), p4r.TableAction()), INVALID, "action: is missing"),
    (
        _with_action(station(), p4r.TableAction(action_profile_member_id=1)),
        INVALID,
        "action_profile_member_id",
    ),
    (_changed(station(), idle_timeout_ns=1), INVALID, "idle_timeout_ns"),
    (_changed(station(), is_const=True), INVALID, "is_const"),
    (_changed(station(), is_default_action=True), INVALID, "use MODIFY"),
]


@pytest.mark.parametrize(("entry", "code", "text"), BAD_INSERTS)
def test_bad_insert_names_the_field(entry: p4r.TableEntry, code: int, text: str) -> None:
    with loaded() as (client, dataplane):
        ((found, message),) = _refused(client, insert(entry))
        assert found == code, message
        assert text in message
        assert not dataplane.entries


def test_const_tables_are_read_and_not_written() -> None:
    entry = p4r.TableEntry(table_id=IDS["known_type"], action=action("punt"))
    entry.match.add(field_id=1).exact.value = b"\x08\x06"
    with loaded() as (client, _):
        found = client.read_tables(p4r.TableEntry(table_id=IDS["known_type"]))
        assert [item.match[0].exact.value for item in found] == [b"\x08\x06", b"\x88\xcc"]
        assert all(item.is_const for item in found)
        assert found[0].action == action("punt")
        errors = _refused(client, insert(entry), modify(entry), delete(entry))
        assert {code for code, _ in errors} == {rpc_code.PERMISSION_DENIED}


def test_default_entry_is_read_modified_and_reset() -> None:
    query = p4r.TableEntry(table_id=IDS["station"], is_default_action=True)
    changed = p4r.TableEntry(table_id=IDS["station"], is_default_action=True)
    changed.action.CopyFrom(action("replicate", b"\x05"))
    with loaded() as (client, dataplane):
        (found,) = client.read_tables(query)
        assert found.action == action("drop_packet")
        client.write(modify(changed))
        assert dataplane.defaults[2] == (8, b"\0\x05")
        assert client.read_tables(query) == [changed]
        client.write(modify(query))
        (found,) = client.read_tables(query)
        assert found.action == action("drop_packet")
        assert len(client.read_tables(p4r.TableEntry(is_default_action=True))) == 4
        const = p4r.TableEntry(table_id=IDS["policy"], is_default_action=True)
        const.action.CopyFrom(action("punt"))
        ((code, _),) = _refused(client, modify(const))
        assert code == rpc_code.PERMISSION_DENIED


def test_direct_counters_with_entries_and_on_their_own() -> None:
    with loaded() as (client, _):
        entry = station()
        entry.counter_data.packet_count = 3
        entry.counter_data.byte_count = 300
        client.write(insert(entry))
        query = p4r.TableEntry(table_id=IDS["station"])
        (plain,) = client.read_tables(query)
        assert not plain.HasField("counter_data")
        query.counter_data.SetInParent()
        assert client.read_tables(query) == [entry]
        counter = p4r.DirectCounterEntry(table_entry=station())
        counter.data.packet_count = 8
        client.write(modify(counter))
        everything = p4r.Entity(direct_counter_entry=p4r.DirectCounterEntry())
        (found,) = client.read(everything)
        assert found.direct_counter_entry.data.packet_count == 8
        counter.table_entry.table_id = IDS["prefix"]
        ((code, text),) = _refused(client, modify(counter))
        assert code == rpc_code.INVALID_ARGUMENT
        assert "no direct counter" in text


def test_counters_and_registers_by_index_and_wildcard() -> None:
    counter = p4r.CounterEntry(counter_id=IDS["ports"], index=p4r.Index(index=2))
    counter.data.packet_count = 4
    register = p4r.RegisterEntry(register_id=IDS["last_type"], index=p4r.Index(index=1))
    register.data.bitstring = b"\x00\x08\x06"
    with loaded() as (client, dataplane):
        client.write(modify(counter), modify(register))
        assert dataplane.registers[0, 1] == b"\0\0\x08\x06"
        found = client.read(p4r.Entity(counter_entry=p4r.CounterEntry()))
        assert [item.counter_entry.data.packet_count for item in found] == [0, 0, 4, 0]
        found = client.read(p4r.Entity(register_entry=p4r.RegisterEntry()))
        cells = [item.register_entry.data.bitstring for item in found]
        assert cells == [b"\0", b"\x08\x06", b"\0", b"\0"]
        register.index.index = 4
        counter.counter_id = 1
        errors = _refused(client, modify(register), modify(counter), insert(register))
        codes = [code for code, _ in errors]
        assert codes == [rpc_code.OUT_OF_RANGE, rpc_code.NOT_FOUND, INVALID]


def _group(number: int, *replicas: tuple[bytes, int]) -> p4r.PacketReplicationEngineEntry:
    entry = p4r.PacketReplicationEngineEntry()
    entry.multicast_group_entry.multicast_group_id = number
    for port, instance in replicas:
        entry.multicast_group_entry.replicas.add(port=port, instance=instance)
    return entry


def test_multicast_groups() -> None:
    first = _group(1, (b"\x01", 1), (b"\x02", 2))
    with loaded() as (client, dataplane):
        client.write(insert(first), insert(_group(2, (b"\x00\x03", 9))))
        assert dataplane.groups == {1: [(1, 1), (2, 2)], 2: [(3, 9)]}
        query = p4r.Entity(packet_replication_engine_entry=_group(0))
        found = [item.packet_replication_engine_entry for item in client.read(query)]
        assert found == [first, _group(2, (b"\x03", 9))]
        errors = _refused(
            client,
            insert(first),
            modify(_group(9)),
            insert(_group(0)),
            insert(_group(3, (b"\x01", 1), (b"\x01", 1))),
            delete(_group(2)),
        )
        codes = [code for code, _ in errors]
        assert codes == [rpc_code.ALREADY_EXISTS, rpc_code.NOT_FOUND, INVALID, INVALID, 0]
        assert list(dataplane.groups) == [1]


def _session(number: int, *replicas: tuple[int, int]) -> p4r.PacketReplicationEngineEntry:
    entry = p4r.PacketReplicationEngineEntry()
    entry.clone_session_entry.session_id = number
    for port, instance in replicas:
        entry.clone_session_entry.replicas.add(port=port.to_bytes(2, "big"), instance=instance)
    return entry


def test_clone_sessions() -> None:
    cut = _session(5, (255, 1))
    cut.clone_session_entry.packet_length_bytes = 64
    cut.clone_session_entry.class_of_service = 3
    bad_class = _session(6)
    bad_class.clone_session_entry.class_of_service = 8
    negative = _session(6)
    negative.clone_session_entry.packet_length_bytes = -1
    with loaded() as (client, dataplane):
        client.write(insert(_group(1)), insert(_session(4, (1, 2), (2, 2))), insert(cut))
        assert dataplane.sessions == {4: ([(1, 2), (2, 2)], 0), 5: ([(255, 1)], 64)}
        query = p4r.Entity(packet_replication_engine_entry=_session(0))
        found = [item.packet_replication_engine_entry for item in client.read(query)]
        cut.clone_session_entry.replicas[0].port = b"\xff"
        assert [item.clone_session_entry.session_id for item in found] == [4, 5]
        assert found[1] == cut
        query = p4r.Entity(packet_replication_engine_entry=_session(5))
        assert [item.packet_replication_engine_entry for item in client.read(query)] == [cut]
        everything = p4r.Entity(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry())
        assert len(client.read(everything)) == 3
        errors = _refused(
            client,
            insert(_session(4)),
            modify(_session(9)),
            insert(_session(0)),
            insert(_session(0x8000)),
            insert(_session(6, (511, 0), (511, 0))),
            insert(_session(6, (512, 0))),
            insert(bad_class),
            insert(negative),
            modify(_session(5)),
            delete(_session(4)),
        )
        assert [code for code, _ in errors] == [
            rpc_code.ALREADY_EXISTS,
            rpc_code.NOT_FOUND,
            INVALID,
            INVALID,
            INVALID,
            rpc_code.OUT_OF_RANGE,
            INVALID,
            INVALID,
            0,
            0,
        ]
        assert dataplane.sessions == {5: ([], 0)}


def test_entities_that_the_program_lacks_are_not_found() -> None:
    extern = p4r.ExternEntry(extern_type_id=0x81, extern_id=1)
    with loaded() as (client, _):
        errors = _refused(
            client,
            modify(p4r.MeterEntry(meter_id=1)),
            insert(p4r.DigestEntry(digest_id=1)),
            insert(p4r.ActionProfileMember(action_profile_id=1, member_id=1)),
            insert(p4r.ActionProfileGroup(action_profile_id=1, group_id=1)),
            modify(p4r.ValueSetEntry(value_set_id=1)),
            modify(extern),
            p4r.Update(type=p4r.Update.INSERT),
            p4r.Update(entity=p4r.Entity(table_entry=station())),
        )
        codes = [code for code, _ in errors]
        assert codes == [rpc_code.NOT_FOUND] * 5 + [rpc_code.UNIMPLEMENTED, INVALID, INVALID]
        with pytest.raises(grpc.RpcError, match="meter_id 1") as caught:
            client.read(p4r.Entity(meter_entry=p4r.MeterEntry(meter_id=1)))
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        with pytest.raises(grpc.RpcError, match="not set") as caught:
            client.read(p4r.Entity())
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_wildcards_over_what_the_program_lacks_find_nothing() -> None:
    with loaded() as (client, _):
        assert client.read(p4r.Entity(meter_entry=p4r.MeterEntry())) == []
        for field in p4r.Entity.DESCRIPTOR.fields:
            if field.name not in {"table_entry", "counter_entry", "register_entry"}:
                query = p4r.Entity()
                getattr(query, field.name).SetInParent()
                assert client.read(query) == []


def test_request_errors_come_before_updates() -> None:
    with loaded() as (client, dataplane):
        with pytest.raises(grpc.RpcError) as caught:
            client.write(insert(station()), device_id=8)
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        with pytest.raises(grpc.RpcError) as caught:
            client.read(p4r.Entity(), device_id=8)
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        client.election_id = 2
        with pytest.raises(grpc.RpcError) as caught:
            client.write(insert(station()))
        assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
        assert not dataplane.entries


def test_reads_filter_by_priority_action_and_metadata() -> None:
    tagged = policy(7, ether_type=b"\x86\xdd")
    tagged.metadata = b"tag"
    with loaded() as (client, _):
        client.write(insert(policy(5)), insert(tagged))
        table = IDS["policy"]
        assert client.read_tables(p4r.TableEntry(table_id=table, priority=7)) == [tagged]
        assert client.read_tables(p4r.TableEntry(table_id=table, metadata=b"tag")) == [tagged]
        by_action = p4r.TableEntry(table_id=table, action=action("drop_packet"))
        assert client.read_tables(by_action) == []
        assert client.read_tables(policy(6)) == []


def test_many_failed_updates_still_answer_within_metadata_limits() -> None:
    with loaded() as (client, _):
        errors = _refused(client, *(modify(station(bytes([1, n]))) for n in range(1, 251)))
        assert [code for code, _ in errors] == [rpc_code.NOT_FOUND] * 250
        assert errors[0][1]
        with pytest.raises(grpc.RpcError, match="batches of 1,000") as caught:
            client.write(
                *(modify(station(n.to_bytes(2, "big"))) for n in range(1, 4001)),
            )
        assert caught.value.code() is grpc.StatusCode.UNKNOWN


def test_twenty_thousand_entries_in_one_write() -> None:
    count = 20_000
    with loaded() as (client, dataplane):
        # The fake's capacity check is quadratic: write through its dictionary instead.
        dataplane.tables.insert = (  # pyright: ignore[reportAttributeAccessIssue]
            lambda table, match, number, params: dataplane.entries.__setitem__(
                (table, match), (number, params)
            )
        )
        updates = [insert(station(n.to_bytes(3, "big"))) for n in range(1, count + 1)]
        client.write(*updates)
        assert len(dataplane.entries) == count
        found = client.read_tables(p4r.TableEntry(table_id=IDS["station"]))
        assert found == [station(n.to_bytes(3, "big").lstrip(b"\0")) for n in range(1, count + 1)]


def test_type_unset_is_refused() -> None:
    with loaded() as (client, _):
        ((code, text),) = _refused(client, update(p4r.Update.UNSPECIFIED, station()))
        assert code == INVALID
        assert "type" in text
