# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Multicast groups of the packet replication engine."""

# pyright: reportDeprecated=false
# egress_port and controller_metadata are deprecated, and clients in use send them.

from collections.abc import Iterable
from typing import Any

from finsy.proto import p4r, rpc_code

from softswitch.p4runtime.status import RequestError
from softswitch.p4runtime.values import decode, encode

PORT_WIDTH = 9
"""Bits of a v1model port."""
MAX_GROUP_ID = 0xFFFF
MAX_INSTANCE = 0xFFFF


class ReplicationStore:
    """What Write changes in the engine and Read returns. The caller serialises calls."""

    def __init__(self, dataplane: Any) -> None:
        self.dataplane = dataplane
        self._groups: dict[int, p4r.MulticastGroupEntry] = {}

    def write(self, update_type: int, entry: p4r.PacketReplicationEngineEntry) -> None:
        """Carry out one update."""
        kind = entry.WhichOneof("type")
        if kind == "multicast_group_entry":
            self._write_group(update_type, entry.multicast_group_entry)
        elif kind == "clone_session_entry":
            session = entry.clone_session_entry.session_id
            raise RequestError(
                rpc_code.UNIMPLEMENTED,
                f"clone session {session}: packets are not cloned; use a multicast group",
            )
        else:
            raise RequestError(
                rpc_code.INVALID_ARGUMENT, "packet_replication_engine_entry: type is not set"
            )

    def read(self, query: p4r.PacketReplicationEngineEntry) -> list[p4r.Entity]:
        """Return the selected groups; id 0 selects all. There are no clone sessions."""
        kind = query.WhichOneof("type")
        if kind == "multicast_group_entry":
            groups = _select(self._groups, query.multicast_group_entry.multicast_group_id)
            return [_entity(multicast_group_entry=group) for group in groups]
        if kind == "clone_session_entry":
            return []
        return [_entity(multicast_group_entry=group) for group in self._groups.values()]

    def _write_group(self, update_type: int, entry: p4r.MulticastGroupEntry) -> None:
        group = entry.multicast_group_id
        _check_id("multicast_group_id", group, MAX_GROUP_ID)
        _check_existence("multicast group", update_type, group, self._groups)
        if update_type == p4r.Update.DELETE:
            self.dataplane.delete_multicast_group(group)
            del self._groups[group]
            return
        replicas = _decode_replicas(f"multicast group {group}", entry.replicas)
        self.dataplane.set_multicast_group(group, replicas)
        stored = p4r.MulticastGroupEntry()
        stored.CopyFrom(entry)
        _make_canonical(stored.replicas)
        self._groups[group] = stored


def _select(entries: dict[int, Any], wanted: int) -> list[Any]:
    if wanted == 0:
        return list(entries.values())
    return [entries[wanted]] if wanted in entries else []


def _entity(**entry: Any) -> p4r.Entity:
    return p4r.Entity(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(**entry))


def _check_id(name: str, value: int, largest: int) -> None:
    if not 0 < value <= largest:
        raise RequestError(rpc_code.INVALID_ARGUMENT, f"{name} {value}: 1 to {largest}")


def _check_existence(what: str, update_type: int, key: int, entries: dict[int, Any]) -> None:
    if update_type == p4r.Update.INSERT and key in entries:
        raise RequestError(rpc_code.ALREADY_EXISTS, f"{what} {key} exists; use MODIFY")
    if update_type != p4r.Update.INSERT and key not in entries:
        raise RequestError(rpc_code.NOT_FOUND, f"{what} {key} does not exist")


def _decode_replicas(where: str, replicas: Iterable[p4r.Replica]) -> list[tuple[int, int]]:
    decoded: list[tuple[int, int]] = []
    seen: set[tuple[int, int]] = set()
    for replica in replicas:
        if replica.backup_replicas:
            raise RequestError(
                rpc_code.UNIMPLEMENTED, f"{where}: backup_replicas are not supported"
            )
        kind = replica.WhichOneof("port_kind")
        if kind == "port":
            port = int.from_bytes(decode(replica.port, PORT_WIDTH, f"{where}: port"), "big")
        else:
            port = replica.egress_port
        if port >> PORT_WIDTH:
            raise RequestError(rpc_code.INVALID_ARGUMENT, f"{where}: egress_port {port}: 9 bits")
        if replica.instance > MAX_INSTANCE:
            raise RequestError(
                rpc_code.INVALID_ARGUMENT, f"{where}: instance {replica.instance}: 16 bits"
            )
        pair = (port, replica.instance)
        if pair in seen:
            raise RequestError(
                rpc_code.INVALID_ARGUMENT,
                f"{where}: port {port} with instance {replica.instance} twice",
            )
        seen.add(pair)
        decoded.append(pair)
    return decoded


def _make_canonical(replicas: Iterable[p4r.Replica]) -> None:
    for replica in replicas:
        if replica.WhichOneof("port_kind") == "port":
            replica.port = encode(replica.port)
