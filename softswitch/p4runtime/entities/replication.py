# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Multicast groups and clone sessions of the packet replication engine (section 9.5)."""

# pyright: reportDeprecated=false
# egress_port and controller_metadata are deprecated, and clients in use send them.

from collections.abc import Iterable, Iterator
from typing import Any

from finsy.proto import p4r, rpc_code

from ..p4info.values import decode, encode
from ..service.status import RequestError
from ..writes.journal import Backend

PORT_WIDTH = 9
"""Bits of a v1model port."""
MAX_GROUP_ID = 0xFFFF
MAX_SESSION_ID = 0x7FFF
"""simple_switch keeps clone sessions in 15 bits."""
MAX_INSTANCE = 0xFFFF
MAX_CLASS_OF_SERVICE = 7


class ReplicationStore:
    """Groups and sessions as Write changes and Read returns them. The caller serialises calls."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._groups: dict[int, p4r.MulticastGroupEntry] = {}
        self._sessions: dict[int, p4r.CloneSessionEntry] = {}

    def write(self, update_type: int, entry: p4r.PacketReplicationEngineEntry) -> None:
        """Carry out one update."""
        kind = entry.WhichOneof("type")
        if kind == "multicast_group_entry":
            self._write_group(update_type, entry.multicast_group_entry)
        elif kind == "clone_session_entry":
            self._write_session(update_type, entry.clone_session_entry)
        else:
            raise RequestError(
                rpc_code.INVALID_ARGUMENT, "packet_replication_engine_entry: type is not set"
            )

    def read(self, query: p4r.PacketReplicationEngineEntry) -> Iterator[p4r.Entity]:
        """Return the selected groups or sessions; id 0 selects all."""
        kind = query.WhichOneof("type")
        groups = _select(self._groups, query.multicast_group_entry.multicast_group_id)
        sessions = _select(self._sessions, query.clone_session_entry.session_id)
        if kind in {"multicast_group_entry", None}:
            yield from (_entity(multicast_group_entry=group) for group in groups)
        if kind in {"clone_session_entry", None}:
            yield from (_entity(clone_session_entry=session) for session in sessions)

    def _write_group(self, update_type: int, entry: p4r.MulticastGroupEntry) -> None:
        number = entry.multicast_group_id
        _check_id("multicast_group_id", number, MAX_GROUP_ID)
        _check_existence("multicast group", update_type, number, self._groups)
        new: p4r.MulticastGroupEntry | None = None
        if update_type != p4r.Update.DELETE:
            _decode_replicas(f"multicast group {number}", entry.replicas)
            new = p4r.MulticastGroupEntry()
            new.CopyFrom(entry)
            _make_canonical(new.replicas)
        old = self._groups.get(number)
        self._assign_group(number, new)
        self._backend.journal.note(lambda: self._assign_group(number, old))

    def _assign_group(self, number: int, entry: p4r.MulticastGroupEntry | None) -> None:
        if entry is None:
            self._backend.dataplane.replication.delete_multicast_group(number)
            del self._groups[number]
        else:
            replicas = _decode_replicas("", entry.replicas)
            self._backend.dataplane.replication.set_multicast_group(number, replicas)
            self._groups[number] = entry

    def _write_session(self, update_type: int, entry: p4r.CloneSessionEntry) -> None:
        number = entry.session_id
        _check_id("session_id", number, MAX_SESSION_ID)
        _check_existence("clone session", update_type, number, self._sessions)
        new: p4r.CloneSessionEntry | None = None
        if update_type != p4r.Update.DELETE:
            where = f"clone session {number}"
            _decode_replicas(where, entry.replicas)
            if entry.class_of_service > MAX_CLASS_OF_SERVICE:
                raise RequestError(
                    rpc_code.INVALID_ARGUMENT,
                    f"{where}: class_of_service {entry.class_of_service}: "
                    f"0 to {MAX_CLASS_OF_SERVICE}",
                )
            if entry.packet_length_bytes < 0:
                raise RequestError(
                    rpc_code.INVALID_ARGUMENT, f"{where}: packet_length_bytes is negative"
                )
            new = p4r.CloneSessionEntry()
            new.CopyFrom(entry)
            _make_canonical(new.replicas)
        old = self._sessions.get(number)
        self._assign_session(number, new)
        self._backend.journal.note(lambda: self._assign_session(number, old))

    def _assign_session(self, number: int, entry: p4r.CloneSessionEntry | None) -> None:
        if entry is None:
            self._backend.dataplane.replication.delete_clone_session(number)
            del self._sessions[number]
        else:
            self._backend.dataplane.replication.set_clone_session(
                number,
                _decode_replicas("", entry.replicas),
                packet_length_bytes=entry.packet_length_bytes,
            )
            self._sessions[number] = entry


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
            raise RequestError(
                rpc_code.INVALID_ARGUMENT, f"{where}: egress_port {port}: at most 9 bits"
            )
        if replica.instance > MAX_INSTANCE:
            raise RequestError(
                rpc_code.INVALID_ARGUMENT, f"{where}: instance {replica.instance}: at most 16 bits"
            )
        pair = (port, replica.instance)
        if pair in seen:
            raise RequestError(
                rpc_code.INVALID_ARGUMENT,
                f"{where}: port {port} with instance {replica.instance} is given twice",
            )
        seen.add(pair)
        decoded.append(pair)
    return decoded


def _make_canonical(replicas: Iterable[p4r.Replica]) -> None:
    for replica in replicas:
        if replica.WhichOneof("port_kind") == "port":
            replica.port = encode(replica.port)
