# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""ROLLBACK_ON_ERROR and DATAPLANE_ATOMIC: a batch is carried out completely or not at all."""

import grpc
import pytest
from finsy.proto import p4r, rpc_code

from fake_data_plane import FakeDataPlane
from p4runtime_control_plane import (
    IDS,
    hop_member,
    host,
    next_hop,
    one_shot,
    path,
    refused,
)
from p4runtime_fixtures import CONTROL_PLANE, BareClient, delete, insert, loaded, modify

MODES = [p4r.WriteRequest.ROLLBACK_ON_ERROR, p4r.WriteRequest.DATAPLANE_ATOMIC]
EVERYTHING = [
    "table_entry",
    "action_profile_member",
    "action_profile_group",
    "meter_entry",
    "counter_entry",
    "register_entry",
    "packet_replication_engine_entry",
    "value_set_entry",
    "digest_entry",
]


def read_all(client: BareClient) -> list[p4r.Entity]:
    queries: list[p4r.Entity] = []
    for name in EVERYTHING:
        query = p4r.Entity()
        getattr(query, name).SetInParent()
        queries.append(query)
    queries[0].table_entry.counter_data.SetInParent()
    queries[0].table_entry.meter_config.SetInParent()
    defaults = p4r.Entity(table_entry=p4r.TableEntry(is_default_action=True))
    found = client.read(*queries, defaults)
    return sorted(found, key=lambda item: item.SerializeToString(deterministic=True))


def _group(number: int, *ports: bytes) -> p4r.PacketReplicationEngineEntry:
    entry = p4r.PacketReplicationEngineEntry()
    entry.multicast_group_entry.multicast_group_id = number
    for port in ports:
        entry.multicast_group_entry.replicas.add(port=port)
    return entry


def _session(number: int, port: bytes) -> p4r.PacketReplicationEngineEntry:
    entry = p4r.PacketReplicationEngineEntry()
    entry.clone_session_entry.session_id = number
    entry.clone_session_entry.replicas.add(port=port)
    return entry


def _meter(cir: int) -> p4r.MeterEntry:
    return p4r.MeterEntry(
        meter_id=IDS["port_meter"],
        index=p4r.Index(index=1),
        config=p4r.MeterConfig(cir=cir, pir=cir),
    )


def _counter(packets: int) -> p4r.CounterEntry:
    return p4r.CounterEntry(counter_id=IDS["kinds"], data=p4r.CounterData(packet_count=packets))


def _register(value: bytes) -> p4r.RegisterEntry:
    entry = p4r.RegisterEntry(register_id=IDS["wide"], index=p4r.Index(index=2))
    entry.data.bitstring = value
    return entry


def _tags(value: bytes) -> p4r.ValueSetEntry:
    entry = p4r.ValueSetEntry(value_set_id=IDS["tag_types"])
    entry.members.add().match.add(field_id=1).exact.value = value
    return entry


def _digest(size: int) -> p4r.DigestEntry:
    entry = p4r.DigestEntry(digest_id=IDS["learned_t"])
    entry.config.max_list_size = size
    return entry


def _default(port: bytes) -> p4r.TableEntry:
    entry = p4r.TableEntry(table_id=IDS["host"], is_default_action=True)
    entry.action.action.CopyFrom(CONTROL_PLANE.action("known", port))
    return entry


def _counted(entry: p4r.TableEntry, packets: int, cir: int) -> p4r.TableEntry:
    entry.counter_data.packet_count = packets
    entry.meter_config.cir = entry.meter_config.pir = cir
    return entry


STATE = [
    insert(hop_member(1)),
    insert(hop_member(2)),
    insert(next_hop(b"\x0a\x00\x00\x00", 8, action_profile_member_id=1)),
    insert(one_shot(1, (1, 1), (2, 1))),
    insert(_counted(host(1, 1, idle_timeout_ns=5), 3, 4)),
    insert(_counted(host(2), 5, 6)),
    insert(_group(1, b"\x01")),
    insert(_group(2, b"\x02")),
    insert(_session(1, b"\x01")),
    insert(_session(2, b"\x02")),
    insert(_digest(4)),
    modify(_meter(1)),
    modify(_counter(1)),
    modify(_register(b"\x01")),
    modify(_tags(b"\x01")),
    modify(_default(b"\x01")),
]
CHANGES = [
    insert(hop_member(3)),
    modify(hop_member(2, 9)),
    modify(next_hop(b"\x0a\x00\x00\x00", 8, action_profile_member_id=3)),
    delete(hop_member(1)),
    insert(one_shot(2, (3, 1))),
    modify(one_shot(1, (4, 1), (5, 1), (6, 1))),
    delete(path(2)),
    modify(_counted(host(1, 7), 30, 40)),
    modify(_counted(host(1, 8), 31, 41)),
    delete(host(2)),
    insert(_counted(host(2, 4), 1, 1)),
    insert(host(3)),
    modify(_group(1, b"\x01", b"\x02")),
    delete(_group(2)),
    insert(_group(3, b"\x03")),
    modify(_session(1, b"\x05")),
    delete(_session(2, b"")),
    insert(_session(3, b"\x03")),
    delete(_digest(0)),
    modify(_meter(2)),
    modify(p4r.MeterEntry(meter_id=IDS["port_meter"])),
    modify(_counter(2)),
    modify(_register(b"\x02")),
    modify(_tags(b"\x02")),
    modify(_default(b"\x02")),
    modify(p4r.TableEntry(table_id=IDS["host"], is_default_action=True)),
]


def _filled(client: BareClient) -> None:
    for update in STATE:
        client.write(update)


def _without_ids(dataplane: FakeDataPlane) -> dict[str, object]:
    """Return the state without the ids that the server chose for one-shot sets."""
    state = dataplane.state
    state["members"] = sorted(state["members"].values())
    state["selector_groups"] = sorted(len(item) for item in state["selector_groups"].values())
    state["options"] = len(state["options"])
    return state


@pytest.mark.parametrize("mode", MODES)
def test_a_failed_batch_changes_nothing(mode: int) -> None:
    with loaded(CONTROL_PLANE) as (client, dataplane):
        _filled(client)
        before, state = read_all(client), dataplane.state
        for length in range(len(CHANGES) + 1):
            changes = CHANGES[:length]
            errors = refused(client, *changes, insert(hop_member(0)), *changes, atomicity=mode)
            assert [code for code, _ in errors] == [
                *[rpc_code.ABORTED] * length,
                rpc_code.INVALID_ARGUMENT,
                *[rpc_code.ABORTED] * length,
            ]
            assert "update" in errors[0][1] or length == 0
            assert read_all(client) == before
            assert dataplane.state == state


@pytest.mark.parametrize("mode", MODES)
def test_a_batch_without_failure_is_as_single_updates(mode: int) -> None:
    with loaded(CONTROL_PLANE) as (client, dataplane):
        _filled(client)
        for change in CHANGES:
            client.write(change)
        wanted, state = read_all(client), _without_ids(dataplane)
        client.push(p4info=CONTROL_PLANE.p4info, blob=CONTROL_PLANE.json)
        _filled(client)
        client.write(*CHANGES, atomicity=mode)
        assert read_all(client) == wanted
        assert _without_ids(dataplane) == state


def test_only_dataplane_atomic_holds_packets() -> None:
    with loaded(CONTROL_PLANE) as (client, dataplane):
        holds = dataplane.holds
        client.write(insert(host(1)), atomicity=p4r.WriteRequest.ROLLBACK_ON_ERROR)
        assert dataplane.holds == holds
        client.write(insert(host(2)), atomicity=p4r.WriteRequest.DATAPLANE_ATOMIC)
        assert dataplane.holds == holds + 1
        assert not dataplane.is_held


def test_unknown_modes_are_refused() -> None:
    with loaded(CONTROL_PLANE) as (client, _):
        with pytest.raises(grpc.RpcError) as caught:
            client.write(insert(host(1)), atomicity=9)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
