# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Pipeline configurations: every action and response type, and configurations that do not fit."""

import grpc
import pytest
from finsy.proto import p4i, p4r, rpc_code

from p4runtime_fixtures import (
    IDS,
    JSON,
    P4INFO,
    BareClient,
    insert,
    loaded,
    serving,
    station,
    update,
    update_errors,
)

Set = p4r.SetForwardingPipelineConfigRequest
Get = p4r.GetForwardingPipelineConfigRequest


def _get(client: BareClient, kind: Get.ResponseType = Get.ALL) -> p4r.ForwardingPipelineConfig:
    request = Get(device_id=7, response_type=kind)
    return client.stub.GetForwardingPipelineConfig(request, timeout=60).config


def _refused(client: BareClient, **changes: object) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as caught:
        client.push(**changes)
    error = caught.value
    assert isinstance(error, grpc.Call)
    return error.code(), error.details() or ""


def test_empty_switch_has_no_config_and_refuses_entries() -> None:
    with serving() as (server, _), BareClient(server.port) as client:
        client.become_primary()
        request = Get(device_id=7)
        assert not client.stub.GetForwardingPipelineConfig(request).HasField("config")
        with pytest.raises(grpc.RpcError, match="No forwarding pipeline config") as caught:
            client.write(insert(station()))
        assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION


def test_config_comes_back_by_response_type() -> None:
    with loaded() as (client, _):
        everything = _get(client)
        assert everything.p4info == P4INFO
        assert everything.p4_device_config == JSON
        assert everything.cookie.cookie == 99
        cookie = _get(client, Get.COOKIE_ONLY)
        assert cookie.cookie.cookie == 99
        assert not cookie.HasField("p4info")
        assert not cookie.p4_device_config
        info = _get(client, Get.P4INFO_AND_COOKIE)
        assert info.p4info == P4INFO
        assert not info.p4_device_config
        assert _get(client, Get.DEVICE_CONFIG_AND_COOKIE).p4_device_config == JSON


def test_verify_changes_nothing() -> None:
    with serving() as (server, dataplane), BareClient(server.port) as client:
        client.become_primary()
        client.push(action=Set.VERIFY)
        assert dataplane.num_loads == 0
        assert not _get(client).cookie.cookie


def test_commit_starts_afresh() -> None:
    with loaded() as (client, dataplane):
        group = p4r.PacketReplicationEngineEntry()
        group.multicast_group_entry.multicast_group_id = 1
        client.write(insert(station()), insert(group))
        client.push()
        assert client.read_tables(p4r.TableEntry(table_id=IDS["station"])) == []
        assert dataplane.groups == {}
        assert dataplane.num_loads == 2


def test_saved_config_takes_writes_and_commit_replays_them() -> None:
    with serving() as (server, dataplane), BareClient(server.port) as client:
        client.become_primary()
        assert _refused(client, action=Set.COMMIT, no_config=True)[0] is grpc.StatusCode.NOT_FOUND
        client.push(action=Set.VERIFY_AND_SAVE)
        client.write(insert(station()))
        assert client.read_tables(p4r.TableEntry(table_id=IDS["station"])) == [station()]
        assert dataplane.num_loads == 0
        assert not dataplane.entries
        code, _ = _refused(client, action=Set.COMMIT)
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        client.push(action=Set.COMMIT, no_config=True)
        assert dataplane.num_loads == 1
        assert len(dataplane.entries) == 1
        assert client.read_tables(p4r.TableEntry(table_id=IDS["station"])) == [station()]


def test_reconcile_of_the_running_program_changes_the_cookie_only() -> None:
    with loaded() as (client, dataplane):
        client.write(insert(station()))
        client.push(action=Set.RECONCILE_AND_COMMIT, cookie=100)
        assert _get(client).cookie.cookie == 100
        assert dataplane.num_loads == 1
        assert len(dataplane.entries) == 1


def test_only_the_primary_of_this_device_may_push() -> None:
    with serving() as (server, _), BareClient(server.port) as client:
        assert _refused(client)[0] is grpc.StatusCode.PERMISSION_DENIED
        client.become_primary()
        assert _refused(client, device_id=8)[0] is grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize("blob", [b"", b"\xff\xfe", b"{}", b'{"pipelines": 3, "parsers": []}'])
def test_broken_device_config_is_refused(blob: bytes) -> None:
    with loaded() as (client, dataplane):
        code, text = _refused(client, blob=blob)
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert "p4_device_config" in text
        assert dataplane.num_loads == 1


def test_missing_config_and_action_are_refused() -> None:
    with loaded() as (client, _):
        assert "config" in _refused(client, no_config=True)[1]
        assert "action" in _refused(client, action=Set.UNSPECIFIED)[1]


REMOVED_ID = 0x02ABCDEF


def _with_a_removed_table() -> p4i.P4Info:
    """Return the P4Info with the parts that p4c leaves there of a table that no packet reaches."""
    info = p4i.P4Info()
    info.CopyFrom(P4INFO)
    removed = info.tables.add()
    removed.CopyFrom(next(t for t in info.tables if t.preamble.alias == "prefix"))
    removed.preamble.id, removed.preamble.name = REMOVED_ID, "ToyIngress.unreached"
    removed.preamble.alias = "unreached"
    counter = info.direct_counters.add(direct_table_id=REMOVED_ID)
    counter.preamble.id, counter.preamble.name = 0x13ABCDEF, "ToyIngress.unreached_counter"
    removed.direct_resource_ids[:] = [counter.preamble.id]
    meter = info.direct_meters.add(direct_table_id=REMOVED_ID)
    meter.preamble.id, meter.preamble.name = 0x15ABCDEF, "ToyIngress.unreached_meter"
    profile = info.action_profiles.add(table_ids=[REMOVED_ID])
    profile.preamble.id, profile.preamble.name = 0x11ABCDEF, "ToyIngress.unreached_profile"
    return info


def test_table_that_the_compiler_removed_is_empty(caplog: pytest.LogCaptureFixture) -> None:
    with serving() as (server, _), BareClient(server.port) as client:
        client.become_primary()
        client.push(p4info=_with_a_removed_table())
        assert "table ToyIngress.unreached is in the P4Info, not in the JSON" in caplog.text
        assert _get(client).p4info == _with_a_removed_table()
        client.write(insert(station()))
        entry = p4r.TableEntry(table_id=REMOVED_ID)
        assert client.read_tables(entry) == []
        assert client.read_tables(p4r.TableEntry(table_id=REMOVED_ID, is_default_action=True)) == []
        assert client.read_tables(p4r.TableEntry(table_id=IDS["station"])) == [station()]
        for query in (
            p4r.Entity(direct_counter_entry=p4r.DirectCounterEntry(table_entry=entry)),
            p4r.Entity(direct_meter_entry=p4r.DirectMeterEntry(table_entry=entry)),
        ):
            assert client.read(query) == []
        for kind in (p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE):
            with pytest.raises(grpc.RpcError) as caught:
                client.write(update(kind, entry))
            ((code, text),) = update_errors(caught.value)
            assert code == rpc_code.NOT_FOUND
            assert "the compiler removed it" in text


def test_unused_profile_and_digest_that_the_compiler_removed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    info = p4i.P4Info()
    info.CopyFrom(P4INFO)
    profile = info.action_profiles.add(size=4)
    profile.preamble.id, profile.preamble.name = 0x11ABCDEF, "ToyIngress.unused_profile"
    digest = info.digests.add()
    digest.preamble.id, digest.preamble.name = 0x17ABCDEF, "unreached_digest"
    digest.type_spec.bitstring.bit.bitwidth = 8
    member = p4r.ActionProfileMember(action_profile_id=profile.preamble.id, member_id=1)
    group = p4r.ActionProfileGroup(action_profile_id=profile.preamble.id, group_id=1)
    entities = [
        p4r.Entity(action_profile_member=member),
        p4r.Entity(action_profile_group=group),
        p4r.Entity(digest_entry=p4r.DigestEntry(digest_id=digest.preamble.id)),
    ]
    with serving() as (server, _), BareClient(server.port) as client:
        client.become_primary()
        client.push(p4info=info)
        for label in ("action profile ToyIngress.unused_profile", "digest unreached_digest"):
            assert f"{label} is in the P4Info, not in the JSON" in caplog.text
        for entity in entities:
            assert client.read(entity) == []
            with pytest.raises(grpc.RpcError) as caught:
                client.write(p4r.Update(type=p4r.Update.INSERT, entity=entity))
            ((code, text),) = update_errors(caught.value)
            assert code == rpc_code.NOT_FOUND
            assert "the compiler removed it" in text


def test_error_typed_key_has_the_width_of_the_json(caplog: pytest.LogCaptureFixture) -> None:
    info = p4i.P4Info()
    info.CopyFrom(P4INFO)
    (table,) = (t for t in info.tables if t.preamble.alias == "station")
    table.match_fields[1].bitwidth = 0
    with serving() as (server, _), BareClient(server.port) as client:
        client.become_primary()
        client.push(p4info=info)
        assert "ingress_port: no width in P4Info, 9 bits in the JSON" in caplog.text
        client.write(insert(station()))
        assert client.read_tables(p4r.TableEntry(table_id=IDS["station"])) == [station()]


def test_p4info_of_another_program_lists_every_difference() -> None:
    info = p4i.P4Info()
    info.CopyFrom(P4INFO)
    info.tables[0].preamble.name = "ToyIngress.stations"
    info.tables[1].match_fields[0].bitwidth = 32
    info.tables[1].match_fields[0].match_type = p4i.MatchField.EXACT
    info.counters[0].size = 5
    info.registers[0].preamble.name = "ToyIngress.gone"
    info.controller_packet_metadata[0].metadata[0].bitwidth = 8
    with loaded() as (client, _):
        code, text = _refused(client, p4info=info)
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        for part in (
            "table ToyIngress.stations is not in the JSON",
            "src_address: 32 bits but 48",
            "src_address: exact but lpm",
            "counter ToyIngress.ports: size 5 but 4",
            "register ToyIngress.gone is not in the JSON",
            "packet_in, field ingress_port: 8 bits but 9",
        ):
            assert part in text
