# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""RECONCILE_AND_COMMIT with another program keeps state that fits, or changes nothing."""

import json

import grpc
import pytest
from finsy.proto import p4i, p4r

from p4runtime_control_plane import IDS, host
from p4runtime_fixtures import CONTROL_PLANE, BareClient, delete, loaded, modify, serving
from test_p4runtime_atomicity import CHANGES, STATE, read_all

RECONCILE = p4r.SetForwardingPipelineConfigRequest.RECONCILE_AND_COMMIT


def blob(**changes: int) -> bytes:
    """Return the program with other sizes: another program with the same objects."""
    program = json.loads(CONTROL_PLANE.json)
    for table in program["pipelines"][0]["tables"]:
        alias = table["name"].rpartition(".")[2]
        table["max_size"] = changes.get(alias, table["max_size"])
    program["program"] = "another.p4"
    return json.dumps(program).encode()


def _p4info() -> p4i.P4Info:
    info = p4i.P4Info()
    info.CopyFrom(CONTROL_PLANE.p4info)
    return info


def _refused(client: BareClient, **changes: object) -> str:
    with pytest.raises(grpc.RpcError) as caught:
        client.push(action=RECONCILE, **changes)
    error = caught.value
    assert isinstance(error, grpc.Call)
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    return error.details() or ""


def test_all_state_goes_over_to_another_program() -> None:
    with loaded(CONTROL_PLANE) as (client, dataplane):
        for update in STATE:
            client.write(update)
        started = p4r.TableEntry(table_id=IDS["started"])
        started.match.add(field_id=1).exact.value = b"\x91\x00"
        client.write(delete(started))
        default = p4r.DirectCounterEntry(
            table_entry=p4r.TableEntry(table_id=IDS["host"], is_default_action=True)
        )
        default.data.packet_count = 77
        client.write(modify(default))
        wanted, state = read_all(client), dataplane.state
        holds = dataplane.holds
        client.push(action=RECONCILE, p4info=CONTROL_PLANE.p4info, blob=blob(host=100), cookie=5)
        assert dataplane.num_loads == 2
        assert dataplane.holds > holds
        assert read_all(client) == wanted
        # Written once or twice, an entry of the program and a default are the same.
        for name in ("entries", "options", "defaults"):
            assert dataplane.state[name].items() >= state[name].items()
            del state[name]
        assert dataplane.state.items() >= state.items()
        for update in CHANGES:
            client.write(update)


def test_state_without_room_is_refused_and_stays() -> None:
    with loaded(CONTROL_PLANE) as (client, dataplane):
        for update in STATE:
            client.write(update)
        wanted = read_all(client)
        text = _refused(client, p4info=CONTROL_PLANE.p4info, blob=blob(host=1))
        assert "table TheIngress.host is full" in text
        assert dataplane.num_loads == 1
        assert read_all(client) == wanted
        client.write(modify(host(1, 9)))


def test_objects_that_are_gone_matter_only_with_state() -> None:
    info = _p4info()
    kept = [item for item in info.tables if item.preamble.alias != "host"]
    del info.tables[:]
    info.tables.extend(kept)
    with loaded(CONTROL_PLANE) as (client, dataplane):
        client.push(action=RECONCILE, p4info=info, blob=CONTROL_PLANE.json)
        assert dataplane.num_loads == 2
        client.push(action=RECONCILE, p4info=CONTROL_PLANE.p4info, blob=CONTROL_PLANE.json)
        for update in STATE:
            client.write(update)
        assert "is not in the P4Info" in _refused(client, p4info=info, blob=CONTROL_PLANE.json)


def test_ids_with_another_meaning_are_refused() -> None:
    info = _p4info()
    first, second = info.counters[0].preamble, info.registers[0].preamble
    first.id, second.id = second.id, first.id
    with loaded(CONTROL_PLANE) as (client, _):
        text = _refused(client, p4info=info, blob=CONTROL_PLANE.json)
        assert "was TheIngress.kinds and is TheIngress.wide now" in text


def test_the_first_program_needs_no_reconciling() -> None:
    with serving() as (server, dataplane), BareClient(server.port) as client:
        client.become_primary()
        client.push(action=RECONCILE)
        assert dataplane.num_loads == 1
        assert "p4_device_config" in _refused(client, blob=b"{}")
        assert "config: is missing" in _refused(client, no_config=True)
