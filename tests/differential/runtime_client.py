# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A bare P4Runtime client, which sends the same requests to both switches."""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Iterator
from pathlib import Path

import grpc
from finsy.proto import p4i, p4r, p4r_grpc, rpc_code, rpc_status
from google.protobuf import text_format

DEADLINE_S = 60.0
LOAD_DEADLINE_S = 200.0
"""The longest program takes a C compiler a minute on a loaded machine."""
DEVICE_ID = 1
_DETAILS = "grpc-status-details-bin"


class RuntimeClient:
    """The primary controller of one switch; blocking calls."""

    def __init__(self, address: str) -> None:
        self._direct_counters: list[p4i.DirectCounter] = []
        self._channel = grpc.insecure_channel(address)
        grpc.channel_ready_future(self._channel).result(DEADLINE_S)
        self._stub = p4r_grpc.P4RuntimeStub(self._channel)
        self._requests: queue.Queue[p4r.StreamMessageRequest | None] = queue.Queue()
        self._stream = self._stub.StreamChannel(iter(self._requests.get, None))
        request = p4r.StreamMessageRequest()
        request.arbitration.device_id = DEVICE_ID
        request.arbitration.election_id.low = 1
        self._requests.put(request)
        answer: p4r.StreamMessageResponse = next(self._stream)
        assert answer.arbitration.status.code == rpc_code.OK, answer

    def push(self, json: Path, p4info: Path) -> None:
        """Load a program."""
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=DEVICE_ID,
            election_id=p4r.Uint128(low=1),
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
        )
        info = text_format.Parse(p4info.read_text(encoding="utf-8"), p4i.P4Info())
        self._direct_counters = list(info.direct_counters)
        request.config.p4info.CopyFrom(info)
        request.config.p4_device_config = json.read_bytes()
        self._stub.SetForwardingPipelineConfig(request, timeout=LOAD_DEADLINE_S)

    def write(self, update: p4r.Update) -> str:
        """Send one update; return "OK" or the name of its canonical error code."""
        request = p4r.WriteRequest(
            device_id=DEVICE_ID, election_id=p4r.Uint128(low=1), updates=[update]
        )
        try:
            self._stub.Write(request, timeout=DEADLINE_S)
        except grpc.RpcError as exc:
            if exc.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                raise
            return _update_code(exc)
        return "OK"

    def counters(self) -> dict[str, tuple[int, int]]:
        """Return packets and bytes of all counters that are not zero, by name."""
        request = p4r.ReadRequest(device_id=DEVICE_ID)
        request.entities.add().counter_entry.SetInParent()
        for direct in self._direct_counters:
            entry = request.entities.add().direct_counter_entry.table_entry
            entry.table_id = direct.direct_table_id
        found: dict[str, tuple[int, int]] = {}
        for entity in request.entities:
            one = p4r.ReadRequest(device_id=DEVICE_ID, entities=[entity])
            for name, data in self._read(one):
                if data.packet_count or data.byte_count:
                    found[name] = data.packet_count, data.byte_count
        return found

    def _read(self, request: p4r.ReadRequest) -> Iterator[tuple[str, p4r.CounterData]]:
        for response in self._stub.Read(request, timeout=DEADLINE_S):
            for entity in response.entities:
                if entity.HasField("counter_entry"):
                    entry = entity.counter_entry
                    yield f"counter {entry.counter_id}[{entry.index.index}]", entry.data
                else:
                    direct = entity.direct_counter_entry
                    entry = p4r.TableEntry(
                        table_id=direct.table_entry.table_id,
                        match=sorted(direct.table_entry.match, key=lambda field: field.field_id),
                        priority=direct.table_entry.priority,
                    )
                    yield text_format.MessageToString(entry, as_one_line=True), direct.data

    def close(self) -> None:
        """Close the connection."""
        self._requests.put(None)
        self._stream.cancel()
        with contextlib.suppress(grpc.RpcError):
            for _ in self._stream:
                pass
        self._channel.close()


def _update_code(error: grpc.RpcError) -> str:
    for key, value in error.trailing_metadata() or ():
        if key == _DETAILS:
            for detail in rpc_status.Status.FromString(value).details:
                said = p4r.Error()
                if detail.Unpack(said):
                    return rpc_code.Code.Name(said.canonical_code)
    return error.code().name
