# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A P4Runtime server without a data plane: strict about updates, remembers what was written."""

# ruff: noqa: N802
from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
from finsy.proto import p4r, p4r_grpc, rpc_code, rpc_status

from loopback import LOOPBACK


class FakeP4Runtime(p4r_grpc.P4RuntimeServicer):
    """One device; the highest election id is primary."""

    def __init__(self, *, can_read_groups: bool = True) -> None:
        self.config: p4r.ForwardingPipelineConfig | None = None
        self.entities: dict[bytes, p4r.Entity] = {}
        self.counters: dict[bytes, int] = {}
        """Packets by direct counter key (see `key`) or (counter id, index)."""
        self.num_pushes = 0
        self.num_writes = 0
        self.packet_outs: asyncio.Queue[p4r.PacketOut] = asyncio.Queue()
        self.refuse_writes = False
        self.may_load = asyncio.Event()
        """While unset, the loading of a new program does not end."""
        self.may_load.set()
        self.load_limit_s = 0.0
        """How long the controller would have waited for the last program to load."""
        self.address = ""
        self._can_read_groups = can_read_groups
        self._streams: dict[int, asyncio.Queue[p4r.StreamMessageResponse]] = {}
        self._server: grpc.aio.Server | None = None

    async def start(self, port: int = 0) -> None:
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        p4r_grpc.add_P4RuntimeServicer_to_server(self, self._server)
        self.address = f"{LOOPBACK}:{self._server.add_insecure_port(f'{LOOPBACK}:{port}')}"
        await self._server.start()

    async def stop(self) -> None:
        assert self._server is not None
        await self._server.stop(None)
        self._streams.clear()

    def restart_empty(self) -> None:
        """Forget everything, as a switch that was restarted."""
        self.config = None
        self.entities.clear()

    def tables(self) -> dict[int, int]:
        """Number of entries by table id; groups under 0. The mark of generations does not count."""
        sizes: dict[int, int] = {}
        for entity in self.entities.values():
            if is_mark(entity):
                continue
            sizes[entity.table_entry.table_id] = sizes.get(entity.table_entry.table_id, 0) + 1
        return sizes

    def send_packet_in(self, packet: p4r.PacketIn) -> None:
        for queue in self._streams.values():
            queue.put_nowait(p4r.StreamMessageResponse(packet=packet))

    async def StreamChannel(self, request_iterator: Any, context: Any) -> AsyncIterator[Any]:
        queue: asyncio.Queue[p4r.StreamMessageResponse] = asyncio.Queue()
        election_id = 0

        async def read() -> None:
            nonlocal election_id
            async for message in request_iterator:
                if message.HasField("packet"):
                    self.packet_outs.put_nowait(message.packet)
                elif message.HasField("arbitration"):
                    self._streams.pop(election_id, None)
                    election_id = message.arbitration.election_id.low
                    self._streams[election_id] = queue
                    self._arbitrate(message.arbitration.device_id)

        reader = asyncio.create_task(read())
        try:
            while True:
                yield await queue.get()
        finally:
            reader.cancel()
            if self._streams.get(election_id) is queue:
                del self._streams[election_id]
                if all(election_id > other for other in self._streams):
                    self._announce_primary_gone(election_id)

    def _arbitrate(self, device_id: int) -> None:
        primary = max(self._streams)
        for election_id, queue in self._streams.items():
            code = rpc_code.OK if election_id == primary else rpc_code.ALREADY_EXISTS
            queue.put_nowait(_arbitration(device_id, primary, code))

    def _announce_primary_gone(self, primary: int) -> None:
        for queue in self._streams.values():
            queue.put_nowait(_arbitration(1, primary, rpc_code.NOT_FOUND))

    async def Capabilities(self, request: Any, context: Any) -> p4r.CapabilitiesResponse:
        return p4r.CapabilitiesResponse(p4runtime_api_version="1.3.0")

    async def GetForwardingPipelineConfig(
        self, request: Any, context: Any
    ) -> p4r.GetForwardingPipelineConfigResponse:
        if self.config is None:
            await context.abort(
                grpc.StatusCode.FAILED_PRECONDITION,
                "No forwarding pipeline config set for this device",
            )
        return p4r.GetForwardingPipelineConfigResponse(config=self.config)

    async def SetForwardingPipelineConfig(
        self, request: Any, context: Any
    ) -> p4r.SetForwardingPipelineConfigResponse:
        self.load_limit_s = context.time_remaining()
        await self.may_load.wait()
        self.config = request.config
        self.entities.clear()
        self.num_pushes += 1
        return p4r.SetForwardingPipelineConfigResponse()

    async def Write(self, request: Any, context: Any) -> p4r.WriteResponse:
        self.num_writes += 1
        if self.refuse_writes:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "table is full")
        errors = [self._update(update) for update in request.updates]
        if any(error.canonical_code for error in errors):
            status = rpc_status.Status(code=rpc_code.UNKNOWN, message="write failed")
            for error in errors:
                status.details.add().Pack(error)
            context.set_trailing_metadata(
                (("grpc-status-details-bin", status.SerializeToString()),)
            )
            await context.abort(grpc.StatusCode.UNKNOWN, "write failed")
        return p4r.WriteResponse()

    def _update(self, update: p4r.Update) -> p4r.Error:
        identity = key(update.entity)
        exists = identity in self.entities
        if update.type == p4r.Update.INSERT and exists:
            return p4r.Error(canonical_code=rpc_code.ALREADY_EXISTS, message="exists")
        if update.type != p4r.Update.INSERT and not exists:
            return p4r.Error(canonical_code=rpc_code.NOT_FOUND, message="no such entity")
        if update.type == p4r.Update.DELETE:
            del self.entities[identity]
        else:
            self.entities[identity] = update.entity
        return p4r.Error(canonical_code=rpc_code.OK)

    async def Read(self, request: Any, context: Any) -> AsyncIterator[p4r.ReadResponse]:
        response = p4r.ReadResponse()
        for wanted in request.entities:
            kind = wanted.WhichOneof("entity")
            if kind == "packet_replication_engine_entry" and not self._can_read_groups:
                await context.abort(grpc.StatusCode.UNIMPLEMENTED, "no reads of groups")
            if kind == "direct_counter_entry":
                entry = wanted.direct_counter_entry
                found = p4r.Entity(direct_counter_entry=entry)
                packets = self.counters.get(key(p4r.Entity(table_entry=entry.table_entry)), 0)
                found.direct_counter_entry.data.packet_count = packets
                response.entities.append(found)
            elif kind == "counter_entry":
                found = p4r.Entity(counter_entry=wanted.counter_entry)
                found.counter_entry.data.packet_count = 5 * wanted.counter_entry.HasField("index")
                response.entities.append(found)
            else:
                response.entities.extend(
                    entity
                    for entity in self.entities.values()
                    if entity.WhichOneof("entity") == kind
                    and entity.table_entry.table_id == wanted.table_entry.table_id
                    and _replication_kind(entity) == _replication_kind(wanted)
                )
        yield response


def _arbitration(device_id: int, primary: int, code: int) -> p4r.StreamMessageResponse:
    update = p4r.MasterArbitrationUpdate(
        device_id=device_id,
        election_id=p4r.Uint128(low=primary),
        status=rpc_status.Status(code=code),
    )
    return p4r.StreamMessageResponse(arbitration=update)


def is_mark(entity: p4r.Entity) -> bool:
    """Whether an entry keeps the newest generation: its key is of no tree, so all zeros."""
    fields = entity.table_entry.match
    return bool(fields) and all(field.exact.value == b"\0" for field in fields)


def key(entity: p4r.Entity) -> bytes:
    """Identity of a table entry, a multicast group or a clone session."""
    if entity.HasField("table_entry"):
        entry = p4r.TableEntry(
            table_id=entity.table_entry.table_id, priority=entity.table_entry.priority
        )
        fields = sorted(entity.table_entry.match, key=lambda field: field.field_id)
        entry.match.extend(fields)
        return entry.SerializeToString(deterministic=True)
    if _replication_kind(entity) == "clone_session_entry":
        session = entity.packet_replication_engine_entry.clone_session_entry
        return b"session %d" % session.session_id
    group = entity.packet_replication_engine_entry.multicast_group_entry
    return b"group %d" % group.multicast_group_id


def _replication_kind(entity: p4r.Entity) -> str | None:
    return entity.packet_replication_engine_entry.WhichOneof("type")
