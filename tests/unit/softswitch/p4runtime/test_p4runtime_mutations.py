# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Damaged P4Runtime messages: the server answers with a proper status, and works on unharmed.

`P4RUNTIME_MUTATIONS=1000000` tries more than the usual number, and `.ci/run` tries 20,000;
`P4RUNTIME_SEED` repeats a run.
"""

import gc
import os
import random
import resource
import threading
from collections import Counter

import grpc
import pytest
from finsy.proto import U128, p4r, rpc_code
from google.protobuf.message import Message

from fake_data_plane import FakeDataPlane
from message_mutations import mutate_bytes, mutate_field
from p4runtime_control_plane import hop_member, host, next_hop, one_shot, path_group, path_member
from p4runtime_fixtures import (
    CONTROL_PLANE,
    DEADLINE_S,
    DEVICE_ID,
    BareClient,
    delete,
    insert,
    modify,
    serving,
)
from test_p4runtime_atomicity import CHANGES, STATE
from time_bound import wait_until

COUNT = int(os.environ.get("P4RUNTIME_MUTATIONS", "2000"))
SEED = int(os.environ.get("P4RUNTIME_SEED", "1"))
MAX_GROWTH_KIB = 64 * 1024
UNARY = ["Write", "Read", "SetForwardingPipelineConfig", "GetForwardingPipelineConfig"]


def _queries() -> list[p4r.Entity]:
    found = [update.entity for update in (*STATE, *CHANGES)]
    for field in p4r.Entity.DESCRIPTOR.fields:
        query = p4r.Entity()
        getattr(query, field.name).SetInParent()
        found.append(query)
    return found


def _requests() -> list[tuple[str, Message]]:
    """Valid requests of every kind: the method and the message."""
    election_id = U128.encode(1)
    writes = [
        *STATE,
        *CHANGES,
        insert(path_member(1)),
        insert(path_group(1, (1, 1))),
        delete(hop_member(1)),
        delete(next_hop(b"\x0a", 32)),
        modify(one_shot(3, (1, 1))),
        delete(host(1)),
    ]
    requests: list[tuple[str, Message]] = []
    for number, update in enumerate(writes):
        request = p4r.WriteRequest(device_id=DEVICE_ID, election_id=election_id, updates=[update])
        request.updates.append(writes[number // 2])
        request.atomicity = number % 3  # pyright: ignore[reportAttributeAccessIssue]
        requests.append(("Write", request))
    for query in _queries():
        requests.append(("Read", p4r.ReadRequest(device_id=DEVICE_ID, entities=[query])))
    set_config = p4r.SetForwardingPipelineConfigRequest(
        device_id=DEVICE_ID,
        election_id=election_id,
        action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
    )
    set_config.config.p4info.CopyFrom(CONTROL_PLANE.p4info)
    set_config.config.p4_device_config = CONTROL_PLANE.json
    requests.append(("SetForwardingPipelineConfig", set_config))
    get_config = p4r.GetForwardingPipelineConfigRequest(device_id=DEVICE_ID)
    requests.append(("GetForwardingPipelineConfig", get_config))
    return requests


def _mutants(rng: random.Random, count: int) -> list[tuple[str, bytes]]:
    requests = _requests()
    usual = [item for item in requests if not item[0].startswith("Set")]
    made: list[tuple[str, bytes]] = []
    while len(made) < count:
        # A whole program takes long to read, so it is tried less often.
        method, message = rng.choice(requests if rng.random() < 0.2 else usual)
        data = message.SerializeToString()
        if rng.random() < 0.5:
            made.append((method, mutate_bytes(data, rng)))
            continue
        copy = type(message)()
        copy.CopyFrom(message)
        for _ in range(rng.randint(1, 3)):
            mutate_field(copy, rng, "TheIngress.host")
        made.append((method, copy.SerializeToString()))
    return made


class _RawStub:
    """A client that calls methods with any bytes."""

    def __init__(self, port: int) -> None:
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        make = {"Read": self._channel.unary_stream}
        self._calls = {
            method: make.get(method, self._channel.unary_unary)(
                f"/p4.v1.P4Runtime/{method}",
                request_serializer=bytes,
                response_deserializer=bytes,
            )
            for method in UNARY
        }

    def call(self, method: str, data: bytes) -> tuple[grpc.StatusCode, str]:
        """Return how the call ended."""
        try:
            answer = self._calls[method](data, timeout=DEADLINE_S)
            if method == "Read":
                for _ in answer:
                    pass
        except grpc.RpcError as exc:
            return exc.code(), exc.details() or ""
        return grpc.StatusCode.OK, ""

    def close(self) -> None:
        self._channel.close()


def _is_proper(method: str, code: grpc.StatusCode, details: str) -> bool:
    if code in {grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE}:
        return False
    if code is grpc.StatusCode.UNKNOWN:
        return method == "Write" and "updates failed" in details
    return code is not grpc.StatusCode.INTERNAL


def _num_threads() -> int:
    """Return the number of threads; those of the server's pool are bounded, and start as needed."""
    return sum(not thread.name.startswith("p4runtime_") for thread in threading.enumerate())


def _resident_kib() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() // 1024


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_damaged_requests_leave_the_server_unharmed() -> None:
    rng = random.Random(SEED)
    with serving() as (server, dataplane), BareClient(server.port) as client:
        client.become_primary()
        client.push(p4info=CONTROL_PLANE.p4info, blob=CONTROL_PLANE.json)
        stub = _RawStub(server.port)
        codes: Counter[str] = Counter()
        threads, resident_kib = 0, 0
        portion = max(COUNT // 10, 1)
        for part in range(10):
            for method, data in _mutants(rng, portion):
                code, details = stub.call(method, data)
                assert _is_proper(method, code, details), (
                    f"{method} {data[:2000].hex()}: {code}: {details}"
                )
                codes[code.name] += 1
            gc.collect()
            if part == 1:  # by now, all code has run once
                threads, resident_kib = _num_threads(), _resident_kib()
        print(dict(codes))
        assert codes["OK"] > COUNT // 20
        assert len(codes) >= 6
        wait_until(lambda: _num_threads() <= threads + 2, "calls leave threads")
        assert _resident_kib() - resident_kib < MAX_GROWTH_KIB
        stub.close()
        _serves_still(client, dataplane)


def _serves_still(client: BareClient, dataplane: FakeDataPlane) -> None:
    client.push(p4info=CONTROL_PLANE.p4info, blob=CONTROL_PLANE.json)
    for update in STATE:
        client.write(update)
    assert len(dataplane.entries) == 4


@pytest.mark.timeout(600)
def test_damaged_stream_messages_leave_the_server_unharmed() -> None:
    rng = random.Random(SEED)
    ack = p4r.DigestListAck(digest_id=CONTROL_PLANE.ids["learned_t"], list_id=1)
    packet = p4r.PacketOut(payload=bytes(60))
    packet.metadata.add(metadata_id=1, value=b"\x01")
    packet.metadata.add(metadata_id=2, value=b"\x00")
    arbitration = p4r.MasterArbitrationUpdate(device_id=DEVICE_ID, election_id=U128.encode(2))
    messages = [
        p4r.StreamMessageRequest(arbitration=arbitration),
        p4r.StreamMessageRequest(packet=packet),
        p4r.StreamMessageRequest(digest_ack=ack),
    ]
    with serving() as (server, dataplane), BareClient(server.port) as client:
        client.become_primary(1 << 100)
        client.push(p4info=CONTROL_PLANE.p4info, blob=CONTROL_PLANE.json)
        channel = grpc.insecure_channel(f"127.0.0.1:{server.port}")
        open_stream = channel.stream_stream(
            "/p4.v1.P4Runtime/StreamChannel",
            request_serializer=bytes,
            response_deserializer=bytes,
        )
        for _ in range(max(COUNT // 200, 10)):
            sent: list[bytes] = [messages[0].SerializeToString()]
            for _ in range(rng.randint(1, 12)):
                copy = p4r.StreamMessageRequest()
                copy.CopyFrom(rng.choice(messages))
                if rng.random() < 0.5:
                    mutate_field(copy, rng, "TheIngress.host")
                    sent.append(copy.SerializeToString())
                else:
                    sent.append(mutate_bytes(copy.SerializeToString(), rng))
            call = open_stream(iter(sent), timeout=DEADLINE_S)
            try:
                for _ in call:
                    pass
                code, details = call.code(), call.details()
            except grpc.RpcError as exc:
                code, details = exc.code(), exc.details() or ""
            assert code is not grpc.StatusCode.DEADLINE_EXCEEDED, [item.hex() for item in sent]
            assert code not in {grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL}, (
                f"{details}: {[i.hex() for i in sent]}"
            )
        channel.close()
        client.arbitrate((1 << 128) - 1)
        while client.receive().arbitration.status.code != rpc_code.OK:
            pass  # mutants may have been primary meanwhile
        _serves_still(client, dataplane)
