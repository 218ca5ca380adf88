# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The same updates to softswitch and to simple_switch_grpc: equal codes except those listed."""

import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager

import grpc
import pytest
from finsy.proto import p4i, p4r, rpc_code

from bmv2_options import BINARY, free_tcp_port, thrift_options
from p4runtime_control_plane import IDS, hop_member, host, next_hop, one_shot, path, path_group
from p4runtime_control_plane import path_member as member
from p4runtime_fixtures import (
    CONTROL_PLANE,
    BareClient,
    delete,
    insert,
    modify,
    update_errors,
)
from switchfold.softswitch.p4runtime.service.serve import serve
from switchfold.softswitch.switch.switch import Switch
from time_bound import wait_until

DEVICE_ID = 1
OK = rpc_code.OK
INVALID = rpc_code.INVALID_ARGUMENT


def _wide(entry: p4r.TableEntry) -> p4r.TableEntry:
    entry.match[0].exact.value = b"\x01" + bytes(6)
    return entry


def _group(number: int, *replicas: tuple[int, int]) -> p4r.PacketReplicationEngineEntry:
    entry = p4r.PacketReplicationEngineEntry()
    entry.multicast_group_entry.multicast_group_id = number
    for port, instance in replicas:
        entry.multicast_group_entry.replicas.add(egress_port=port, instance=instance)
    return entry


def _session(number: int) -> p4r.PacketReplicationEngineEntry:
    entry = p4r.PacketReplicationEngineEntry()
    entry.clone_session_entry.session_id = number
    entry.clone_session_entry.replicas.add(egress_port=1, instance=1)
    return entry


def _special(
    priority: int, value: bytes = b"\x08\x00", mask: bytes = b"\xff\xff"
) -> p4r.TableEntry:
    entry = p4r.TableEntry(table_id=IDS["special"], priority=priority)
    ternary = entry.match.add(field_id=1).ternary
    ternary.value, ternary.mask = value, mask
    entry.action.action.CopyFrom(CONTROL_PLANE.action("drop_packet"))
    return entry


def _counter(index: int) -> p4r.CounterEntry:
    entry = p4r.CounterEntry(counter_id=IDS["kinds"], index=p4r.Index(index=index))
    entry.data.packet_count = 3
    return entry


def _meter(index: int) -> p4r.MeterEntry:
    config = p4r.MeterConfig(cir=1, cburst=1, pir=2, pburst=2)
    return p4r.MeterEntry(meter_id=IDS["port_meter"], index=p4r.Index(index=index), config=config)


def _default(table: str, action: str, *params: bytes) -> p4r.TableEntry:
    entry = p4r.TableEntry(table_id=IDS[table], is_default_action=True)
    entry.action.action.CopyFrom(CONTROL_PLANE.action(action, *params))
    return entry


def _fixed() -> p4r.TableEntry:
    entry = p4r.TableEntry(table_id=IDS["fixed"], priority=9)
    ternary = entry.match.add(field_id=1).ternary
    ternary.value = ternary.mask = b"\x12"
    entry.action.action.CopyFrom(CONTROL_PLANE.action("punt"))
    return entry


def _without_action(entry: p4r.TableEntry) -> p4r.TableEntry:
    entry.ClearField("action")
    return entry


_Case = tuple[str, p4r.Update, int, int]
"""Name, update, the code of softswitch, the code of BMv2."""


def _same(name: str, update: p4r.Update, code: int) -> _Case:
    return name, update, code, code


CASES: list[_Case] = [
    _same("insert", insert(host(1)), OK),
    _same("insert twice", insert(host(1)), rpc_code.ALREADY_EXISTS),
    _same("modify", modify(host(1, 2)), OK),
    _same("modify what is not there", modify(host(2)), rpc_code.NOT_FOUND),
    _same("delete what is not there", delete(host(2)), rpc_code.NOT_FOUND),
    ("unknown table", insert(p4r.TableEntry(table_id=33554433)), rpc_code.NOT_FOUND, INVALID),
    ("value too wide", insert(_wide(host(3))), rpc_code.OUT_OF_RANGE, INVALID),
    _same("no action", insert(_without_action(host(3))), INVALID),
    _same("action of another table", insert(_special(0)), INVALID),
    _same("ternary entry", insert(_special(1)), OK),
    _same("ternary entry again", insert(_special(1)), rpc_code.ALREADY_EXISTS),
    _same("other priority", insert(_special(2)), OK),
    _same("bits outside the mask", insert(_special(3, b"\x08\x01", b"\xff\x00")), INVALID),
    _same("mask of zero", insert(_special(3, b"\x00", b"\x00")), INVALID),
    _same("default entry", modify(_default("host", "known", b"\x01")), OK),
    _same("insert a default entry", insert(_default("host", "learn")), INVALID),
    ("const table", insert(_fixed()), rpc_code.PERMISSION_DENIED, rpc_code.UNKNOWN),
    _same("member", insert(hop_member(1)), OK),
    _same("member again", insert(hop_member(1)), rpc_code.ALREADY_EXISTS),
    _same("entry of a member", insert(next_hop(b"\x0a", 32, action_profile_member_id=1)), OK),
    (
        "entry of no member",
        insert(next_hop(b"\x0b", 32, action_profile_member_id=9)),
        rpc_code.NOT_FOUND,
        INVALID,
    ),
    _same("group of none", insert(path_group(1, (9, 1), max_size=4)), rpc_code.NOT_FOUND),
    _same("selector's member", insert(member(1)), OK),
    ("group", insert(path_group(1, (1, 1), max_size=4)), OK, rpc_code.ALREADY_EXISTS),
    _same("group again", insert(path_group(1, max_size=4)), rpc_code.ALREADY_EXISTS),
    ("entry of a group", insert(path(1, action_profile_group_id=1)), OK, rpc_code.UNKNOWN),
    _same("one-shot among groups", insert(one_shot(2, (1, 1))), INVALID),
    _same("multicast group", insert(_group(1, (1, 1))), OK),
    _same("multicast group again", insert(_group(1)), rpc_code.ALREADY_EXISTS),
    _same("multicast group 0", insert(_group(0)), INVALID),
    _same("replica twice", insert(_group(2, (1, 1), (1, 1))), INVALID),
    _same("clone session", insert(_session(5)), OK),
    _same("clone session 0", insert(_session(0)), INVALID),
    _same("counter", modify(_counter(1)), OK),
    _same("counter insert", insert(_counter(1)), INVALID),
    ("counter index", modify(_counter(4)), rpc_code.OUT_OF_RANGE, rpc_code.UNKNOWN),
    _same("negative counter index", modify(_counter(-1)), INVALID),
    _same("meter", modify(_meter(1)), OK),
    _same("meter delete", delete(_meter(1)), INVALID),
    ("no entity", p4r.Update(type=p4r.Update.INSERT), INVALID, rpc_code.UNKNOWN),
    _same("third priority", insert(_special(8)), OK),
]


@contextmanager
def _softswitch() -> Generator[int]:
    with Switch() as switch, serve(switch, address="127.0.0.1:0") as server:
        yield server.port


@contextmanager
def _bmv2() -> Generator[int]:
    port = free_tcp_port()
    command = [BINARY, "--no-p4", "--device-id", str(DEVICE_ID), *thrift_options()]
    command += ["--", "--grpc-server-addr", f"127.0.0.1:{port}", "--cpu-port", "255"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            ready = grpc.channel_ready_future(channel)
            wait_until(lambda: ready.done() or process.poll() is not None, f"{BINARY} serves")
            assert process.poll() is None, f"{BINARY} ended"
        yield port
    finally:
        process.terminate()
        process.wait(60)


def _codes(port: int) -> dict[str, int]:
    found: dict[str, int] = {}
    with BareClient(port) as client:
        client.arbitrate(1, device_id=DEVICE_ID)
        assert client.status() == OK
        info = p4i.P4Info()
        info.CopyFrom(CONTROL_PLANE.p4info)
        info.ClearField("digests")  # BMv2 refuses digests with enum fields
        client.push(p4info=info, blob=CONTROL_PLANE.json, device_id=DEVICE_ID)
        for name, update, _, _ in CASES:
            try:
                client.write(update, device_id=DEVICE_ID)
            except grpc.RpcError as exc:
                ((code, _),) = update_errors(exc)
                found[name] = code
            else:
                found[name] = OK
    return found


def test_codes_of_softswitch() -> None:
    with _softswitch() as port:
        assert _codes(port) == {name: code for name, _, code, _ in CASES}


@pytest.mark.bmv2
@pytest.mark.skipif(shutil.which(BINARY) is None, reason=f"{BINARY} is not on the PATH")
def test_codes_of_bmv2() -> None:
    with _bmv2() as port:
        assert _codes(port) == {name: code for name, _, _, code in CASES}
