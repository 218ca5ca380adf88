# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Meters, direct meters, idle timeouts and value sets as Write and Read show them."""

import grpc
import pytest
from finsy.proto import p4r, rpc_code

from p4runtime_control_plane import IDS, codes, host, refused
from p4runtime_fixtures import CONTROL_PLANE, delete, insert, loaded, modify
from switchfold.softswitch.p4runtime.service.dataplane import Match, MeterRates

INVALID = rpc_code.INVALID_ARGUMENT
PORT_METER = 0
HOST = 2


def _config(cir: int = 10, cburst: int = 20, pir: int = 30, pburst: int = 40) -> p4r.MeterConfig:
    return p4r.MeterConfig(cir=cir, cburst=cburst, pir=pir, pburst=pburst)


def _key(address: int) -> Match:
    return Match(address.to_bytes(6, "big"), b"", 0, 0)


def _meter(index: int | None, config: p4r.MeterConfig | None = None) -> p4r.MeterEntry:
    entry = p4r.MeterEntry(meter_id=IDS["port_meter"], config=config)
    if index is not None:
        entry.index.index = index
    return entry


def test_meters_by_index_and_wildcard() -> None:
    with loaded(CONTROL_PLANE) as (client, dataplane):
        client.write(modify(_meter(1, _config())))
        assert dataplane.meters == {("array", PORT_METER, 1): MeterRates(10, 20, 30, 40)}
        query = p4r.Entity(meter_entry=p4r.MeterEntry())
        found = [item.meter_entry for item in client.read(query)]
        assert found == [_meter(0), _meter(1, _config()), _meter(2), _meter(3)]
        query.meter_entry.CopyFrom(_meter(1))
        assert [item.meter_entry for item in client.read(query)] == [_meter(1, _config())]
        client.write(modify(_meter(None, _config(1, 1, 1, 1))))
        assert len(dataplane.meters) == 4
        client.write(modify(_meter(2)))
        assert len(dataplane.meters) == 3
        assert codes(
            client,
            insert(_meter(0)),
            delete(_meter(0)),
            modify(_meter(-1)),
            modify(_meter(4)),
            modify(_meter(0, _config(cir=-1))),
            modify(_meter(0, _config(pir=9))),
            modify(_meter(0, p4r.MeterConfig(cir=1, pir=1, eburst=3))),
        ) == [INVALID, INVALID, INVALID, rpc_code.OUT_OF_RANGE, INVALID, INVALID, INVALID]


def test_counts_by_colour_are_refused() -> None:
    counted = _meter(0)
    counted.counter_data.SetInParent()
    entry = host(1)
    entry.meter_counter_data.SetInParent()
    with loaded(CONTROL_PLANE) as (client, _):
        assert codes(client, modify(counted), insert(entry)) == [rpc_code.UNIMPLEMENTED] * 2
        for query in (p4r.Entity(meter_entry=counted), p4r.Entity(table_entry=entry)):
            with pytest.raises(grpc.RpcError, match="colour") as caught:
                client.read(query)
            assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_direct_meters_with_entries_and_on_their_own() -> None:
    with_meter = host(1)
    with_meter.meter_config.CopyFrom(_config())
    with loaded(CONTROL_PLANE) as (client, dataplane):
        client.write(insert(with_meter), insert(host(2)))
        assert dataplane.meters == {(HOST, _key(1)): MeterRates(10, 20, 30, 40)}
        assert client.read_tables(p4r.TableEntry(table_id=IDS["host"])) == [host(1), host(2)]
        query = p4r.TableEntry(table_id=IDS["host"])
        query.meter_config.SetInParent()
        assert client.read_tables(query) == [with_meter, host(2)]

        direct = p4r.DirectMeterEntry(table_entry=host(2), config=_config(1, 2, 3, 4))
        client.write(modify(direct))
        assert dataplane.meters[HOST, _key(2)] == MeterRates(1, 2, 3, 4)
        direct.table_entry.ClearField("action")
        found = client.read(p4r.Entity(direct_meter_entry=p4r.DirectMeterEntry()))
        assert found[1].direct_meter_entry == direct
        client.write(modify(p4r.DirectMeterEntry(table_entry=host(2))))
        assert (HOST, _key(2)) not in dataplane.meters

        client.write(modify(with_meter))  # the meter is written again and stays
        assert dataplane.meters[HOST, _key(1)] == MeterRates(10, 20, 30, 40)
        client.write(modify(host(1)))  # the meter is left out and is reset
        assert not dataplane.meters
        missing = p4r.DirectMeterEntry(table_entry=host(9))
        special = p4r.TableEntry(table_id=IDS["special"], priority=1)
        assert codes(
            client,
            modify(missing),
            insert(direct),
            delete(direct),
            modify(p4r.DirectMeterEntry(table_entry=special)),
        ) == [rpc_code.NOT_FOUND, INVALID, INVALID, INVALID]
        with pytest.raises(grpc.RpcError) as caught:
            client.read(p4r.Entity(direct_meter_entry=missing))
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND


def test_the_meter_of_the_default_entry() -> None:
    default = p4r.TableEntry(table_id=IDS["host"], is_default_action=True)
    metered = p4r.TableEntry()
    metered.CopyFrom(default)
    metered.meter_config.CopyFrom(_config())
    with loaded(CONTROL_PLANE) as (client, dataplane):
        client.write(modify(metered))
        assert dataplane.meters == {(HOST, None): MeterRates(10, 20, 30, 40)}
        (found,) = client.read_tables(metered)
        assert found.meter_config == _config()
        direct = p4r.DirectMeterEntry(table_entry=default, config=_config(1, 2, 3, 4))
        client.write(modify(direct))
        query = p4r.Entity(direct_meter_entry=p4r.DirectMeterEntry(table_entry=default))
        (entity,) = client.read(query)
        assert entity.direct_meter_entry.config == _config(1, 2, 3, 4)
        with pytest.raises(grpc.RpcError):
            client.write(
                modify(metered), insert(default), atomicity=p4r.WriteRequest.ROLLBACK_ON_ERROR
            )
        assert dataplane.meters == {(HOST, None): MeterRates(1, 2, 3, 4)}
        client.write(modify(default))
        assert not dataplane.meters


def test_modify_without_an_action_keeps_it() -> None:
    tagged = host(1, 3, idle_timeout_ns=500)
    tagged.metadata = b"tag"
    bare = host(1)
    bare.ClearField("action")
    bare.counter_data.packet_count = 9
    with loaded(CONTROL_PLANE) as (client, dataplane):
        client.write(insert(tagged))
        client.write(modify(bare))
        assert client.read_tables(p4r.TableEntry(table_id=IDS["host"])) == [tagged]
        assert dataplane.counters == {(HOST, _key(1)): (9, 0)}


def test_idle_timeouts_are_kept_and_read() -> None:
    with loaded(CONTROL_PLANE) as (client, dataplane):
        client.write(insert(host(1, idle_timeout_ns=7_000_000_000)), insert(host(2)))
        assert dataplane.options[HOST, _key(1)] == {"idle_timeout_ns": 7_000_000_000}
        dataplane.idle_ns[HOST, _key(1)] = 1234
        query = p4r.TableEntry(table_id=IDS["host"])
        found = client.read_tables(query)
        assert [entry.idle_timeout_ns for entry in found] == [7_000_000_000, 0]
        assert not any(entry.HasField("time_since_last_hit") for entry in found)
        query.time_since_last_hit.SetInParent()
        found = client.read_tables(query)
        assert [entry.time_since_last_hit.elapsed_ns for entry in found] == [1234, 0]
        client.write(modify(host(1)))
        assert dataplane.options[HOST, _key(1)] == {}
        hit = host(3)
        hit.time_since_last_hit.SetInParent()
        default = p4r.TableEntry(table_id=IDS["host"], is_default_action=True, idle_timeout_ns=1)
        assert (
            codes(client, insert(host(3, idle_timeout_ns=-1)), insert(hit), modify(default))
            == [INVALID] * 3
        )
        other = p4r.TableEntry(table_id=IDS["special"])
        other.time_since_last_hit.SetInParent()
        with pytest.raises(grpc.RpcError, match="no idle timeouts"):
            client.read_tables(other)


def _tags(*values: bytes) -> p4r.ValueSetEntry:
    entry = p4r.ValueSetEntry(value_set_id=IDS["tag_types"])
    for value in values:
        entry.members.add().match.add(field_id=1).exact.value = value
    return entry


def test_value_sets_are_replaced_as_a_whole() -> None:
    pair = p4r.ValueSetEntry(value_set_id=IDS["port_tags"])
    match = pair.members.add().match
    match.add(field_id=2).exact.value = b"\x01\x05"
    match.add(field_id=1).exact.value = b"\x88"
    with loaded(CONTROL_PLANE) as (client, dataplane):
        client.write(modify(_tags(b"\x81\x00", b"\x00\x88")), modify(pair))
        ones = b"\xff\xff"
        assert dataplane.value_sets == {
            0: [(b"\x81\x00", ones), (b"\x00\x88", ones)],
            1: [(b"\x00\x88\x01\x05", b"\xff\xff\x01\xff")],
        }
        query = p4r.Entity(value_set_entry=p4r.ValueSetEntry())
        found = [item.value_set_entry for item in client.read(query)]
        assert found[0] == _tags(b"\x81\x00", b"\x88")
        assert [item.field_id for item in found[1].members[0].match] == [1, 2]
        before = dataplane.state
        errors = refused(
            client,
            insert(_tags()),
            delete(_tags()),
            modify(_tags(b"\x01", b"\x00\x01")),
            modify(_tags(*(bytes([number]) for number in range(5)))),
            modify(_tags(b"\x01\x00\x00")),
            modify(_tags(b"")),
            modify(
                p4r.ValueSetEntry(value_set_id=IDS["port_tags"], members=_tags(b"\x01").members)
            ),
        )
        assert [code for code, _ in errors] == [
            INVALID,
            INVALID,
            rpc_code.ALREADY_EXISTS,
            rpc_code.RESOURCE_EXHAUSTED,
            rpc_code.OUT_OF_RANGE,
            INVALID,
            INVALID,
        ]
        assert dataplane.state == before
        client.write(modify(_tags()))
        assert list(dataplane.value_sets) == [1]


def test_wide_register_cells() -> None:
    register = p4r.RegisterEntry(register_id=IDS["wide"], index=p4r.Index(index=3))
    register.data.bitstring = b"\x01" + bytes(8)
    with loaded(CONTROL_PLANE) as (client, dataplane):
        client.write(modify(register))
        assert dataplane.registers == {(0, 3): b"\x01" + bytes(8)}
        assert client.read(p4r.Entity(register_entry=register))[0].register_entry == register
        register.data.bitstring = b"\x01" + bytes(9)
        wrong = p4r.RegisterEntry(register_id=IDS["wide"])
        wrong.data.bool = True
        assert codes(client, modify(register), modify(wrong)) == [rpc_code.OUT_OF_RANGE, INVALID]
