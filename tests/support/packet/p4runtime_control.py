# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The control half of a packet test's target: P4Runtime through finsy, one call at a time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import finsy as fy
import grpc
from finsy.proto import p4r, p4r_grpc

from packet_target import Entry
from switchfold import p4src

DEADLINE_S = 60.0
DEVICE_ID = 1


def table_entry(entry: Entry) -> fy.P4TableEntry:
    """Return finsy's form of an entry."""
    match = {
        name: value if isinstance(value, int) else f"{value[0]:#x}/{value[1]}"
        for name, value in entry.match.items()
    }
    action = fy.P4TableAction(entry.action, **entry.params)
    return fy.P4TableEntry(entry.table, match=fy.P4TableMatch(**match), action=action)


class P4RuntimeControl:
    """A P4Runtime client that pushes one program and then blocks for each request."""

    def __init__(
        self,
        program: p4src.Variant | p4src.Artefacts,
        address: str,
        explain: Callable[[], str] = lambda: "",
    ) -> None:
        self._explain = explain
        made = program if isinstance(program, p4src.Artefacts) else p4src.artefacts(program)
        with contextlib.ExitStack() as stack:
            self._runner = stack.enter_context(asyncio.Runner())
            self._switch = fy.Switch(
                "target",
                address,
                fy.SwitchOptions(p4info=made.p4info, p4blob=made.json, device_id=DEVICE_ID),
            )
            self._run(self._switch.__aenter__())
            stack.callback(lambda: self._run(self._switch.__aexit__(None, None, None)))
            self._packets = self._switch.read_packets()
            self._next_packet = self._run(self._request_packet())
            stack.callback(self._stop_waiting)
            channel = stack.enter_context(grpc.insecure_channel(address))
            self._stub = p4r_grpc.P4RuntimeStub(channel)
            self._resources = stack.pop_all()

    def _stop_waiting(self) -> None:
        self._next_packet.cancel()

    def close(self) -> None:
        """Close the connection."""
        self._resources.close()

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        async def limited() -> Any:
            return await asyncio.wait_for(coroutine, DEADLINE_S)

        try:
            return self._runner.run(limited())
        except TimeoutError:
            raise TimeoutError(f"no answer from the switch; {self._explain()}") from None

    async def _request_packet(self) -> asyncio.Task[fy.P4PacketIn]:
        """Start to wait for a packet-in: what arrives before anybody waits is lost."""

        async def next_packet() -> fy.P4PacketIn:
            return await anext(self._packets)

        task = asyncio.create_task(next_packet())
        await asyncio.wait([task], timeout=0)
        return task

    def packet_ins_until(self, mark: bytes) -> list[bytes]:
        """Return the packet-ins before the one that ends with a mark, with their header."""

        async def collect() -> list[bytes]:
            frames: list[bytes] = []
            while True:
                packet = await self._next_packet
                self._next_packet = await self._request_packet()
                if packet.payload.endswith(mark):
                    return frames
                header = (int(packet["ingress_port"]) << 7).to_bytes(2, "big")
                frames.append(header + packet.payload)

        return self._run(collect())

    def packet_out(self, port: int, frame: bytes) -> None:
        """Send a frame out of a port."""
        self._run(self._switch.write([fy.P4PacketOut(frame, egress_port=port, _pad=0)]))

    def insert(self, *entries: Entry) -> None:
        """See packet_target.Target."""
        self._run(self._switch.write([+table_entry(entry) for entry in entries]))

    def delete(self, *entries: Entry) -> None:
        """See packet_target.Target."""
        self._run(self._switch.write([-table_entry(entry) for entry in entries]))

    def set_multicast_group(self, group_id: int, replicas: Sequence[tuple[int, int]]) -> None:
        """See packet_target.Target."""
        group = fy.P4MulticastGroupEntry(group_id, replicas=list(replicas))
        self._run(self._switch.write([+group if replicas else -group]))

    def counters_request(self, name: str) -> p4r.ReadRequest:
        """Return the request for an indirect counter."""
        wanted = p4r.CounterEntry(counter_id=self._switch.p4info.counters[name].id)
        return p4r.ReadRequest(device_id=DEVICE_ID, entities=[p4r.Entity(counter_entry=wanted)])

    def counters(self, name: str) -> list[int]:
        """Return the packets of an indirect counter by index.

        Tests do so after every packet: a bare call takes a tenth of the time of finsy's entities.
        """
        try:
            return [
                entity.counter_entry.data.packet_count
                for response in self._stub.Read(self.counters_request(name), timeout=DEADLINE_S)
                for entity in response.entities
            ]
        except grpc.RpcError as error:
            raise TimeoutError(f"counters were not read: {error}; {self._explain()}") from error

    def direct_counter(self, entry: Entry) -> int:
        """See packet_target.Target."""
        (found,) = self._read(fy.P4DirectCounterEntry(table_entry=table_entry(entry)))
        return found.packet_count

    def _read(self, wanted: Any) -> list[Any]:
        async def collect() -> list[Any]:
            return [entity async for entity in self._switch.read([wanted])]

        return self._run(collect())
