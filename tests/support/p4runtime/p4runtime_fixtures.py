# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The server over a fake data plane, and a bare gRPC client that knows only the protobufs."""

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import grpc
from finsy.proto import U128, p4i, p4r, p4r_grpc, rpc_status
from google.protobuf import text_format

from fake_data_plane import FakeDataPlane
from switchfold.softswitch.p4runtime.service.server import P4RuntimeServer
from switchfold.softswitch.program.bmv2_json import read_program

SAMPLE = Path(__file__).parent / "p4runtime_sample"
PROGRAMS = Path(__file__).parents[2] / "pipeline" / "programs"


class Sample:
    """A compiled program: its JSON, its P4Info and the ids by alias."""

    def __init__(self, folder: Path, name: str) -> None:
        self.json = (folder / f"{name}.json").read_bytes()
        text = (folder / f"{name}.p4info.txtpb").read_text()
        self.p4info = text_format.Parse(text, p4i.P4Info())
        info = self.p4info
        lists = (info.tables, info.actions, info.counters, info.registers, info.action_profiles)
        externs = (info.meters, info.digests, info.value_sets, info.direct_meters)
        self.ids: dict[str, int] = {
            item.preamble.alias: item.preamble.id for items in (*lists, *externs) for item in items
        }

    def action(self, name: str, *params: bytes) -> p4r.Action:
        """Return an action with its parameters in order."""
        encoded = p4r.Action(action_id=self.ids[name])
        for number, value in enumerate(params, 1):
            encoded.params.add(param_id=number, value=value)
        return encoded


TOY = Sample(SAMPLE, "toy_forwarding")
CONTROL_PLANE = Sample(PROGRAMS, "control_plane")
JSON, P4INFO, IDS = TOY.json, TOY.p4info, TOY.ids
DEVICE_ID = 7
DEADLINE_S = 60.0


class StreamEndedError(Exception):
    """The server ended the stream."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(f"{code}: {details}")
        self.code = code
        self.details = details


class BareClient:
    """P4Runtime over plain grpc: unary calls and one stream."""

    def __init__(self, port: int) -> None:
        self._channel = grpc.insecure_channel(
            f"127.0.0.1:{port}", options=[("grpc.max_metadata_size", 64 * 1024)]
        )
        self.stub = p4r_grpc.P4RuntimeStub(self._channel)
        self.election_id = 0
        self._requests: queue.SimpleQueue[p4r.StreamMessageRequest | None] = queue.SimpleQueue()
        self._received: queue.SimpleQueue[p4r.StreamMessageResponse | StreamEndedError] = (
            queue.SimpleQueue()
        )
        self._call: Any = None
        self._reader: threading.Thread | None = None

    def __enter__(self) -> "BareClient":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._requests.put(None)
        if self._call is not None:
            self._call.cancel()
        if self._reader is not None:
            self._reader.join(DEADLINE_S)
            assert not self._reader.is_alive()
        self._channel.close()

    def send(self, request: p4r.StreamMessageRequest) -> None:
        if self._call is None:
            self._call = self.stub.StreamChannel(iter(self._requests.get, None))
            self._reader = threading.Thread(target=self._read)
            self._reader.start()
        self._requests.put(request)

    def receive(self) -> p4r.StreamMessageResponse:
        item = self._received.get(timeout=DEADLINE_S)
        if isinstance(item, StreamEndedError):
            raise item
        return item

    def arbitrate(
        self, election_id: int | None, *, role: str = "", device_id: int = DEVICE_ID
    ) -> None:
        update = p4r.MasterArbitrationUpdate(device_id=device_id)
        if election_id is not None:
            update.election_id.CopyFrom(U128.encode(election_id))
            self.election_id = election_id
        if role:
            update.role.name = role
        self.send(p4r.StreamMessageRequest(arbitration=update))

    def become_primary(self, election_id: int = 1) -> None:
        self.arbitrate(election_id)
        assert self.receive().arbitration.status.code == 0

    def status(self) -> int:
        return self.receive().arbitration.status.code

    def push(self, **changes: Any) -> None:
        config = p4r.ForwardingPipelineConfig(
            p4info=changes.pop("p4info", P4INFO), p4_device_config=changes.pop("blob", JSON)
        )
        config.cookie.cookie = changes.pop("cookie", 99)
        action = changes.pop("action", p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT)
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=changes.pop("device_id", DEVICE_ID),
            election_id=U128.encode(self.election_id),
            action=action,
        )
        if not changes.pop("no_config", False):
            request.config.CopyFrom(config)
        assert not changes
        self.stub.SetForwardingPipelineConfig(request, timeout=DEADLINE_S)

    def write(
        self,
        *updates: p4r.Update,
        device_id: int = DEVICE_ID,
        role: str = "",
        atomicity: int = p4r.WriteRequest.CONTINUE_ON_ERROR,
    ) -> None:
        request = p4r.WriteRequest(
            device_id=device_id,
            election_id=U128.encode(self.election_id),
            role=role,
            updates=updates,
        )
        request.atomicity = atomicity  # pyright: ignore[reportAttributeAccessIssue]
        self.stub.Write(request, timeout=DEADLINE_S)

    def read(self, *entities: p4r.Entity, device_id: int = DEVICE_ID) -> list[p4r.Entity]:
        request = p4r.ReadRequest(device_id=device_id, entities=entities)
        responses = self.stub.Read(request, timeout=DEADLINE_S)
        return [entity for response in responses for entity in response.entities]

    def read_tables(self, query: p4r.TableEntry) -> list[p4r.TableEntry]:
        return [item.table_entry for item in self.read(p4r.Entity(table_entry=query))]

    def _read(self) -> None:
        try:
            for response in self._call:
                self._received.put(response)
        except grpc.RpcError as exc:
            self._received.put(StreamEndedError(exc.code(), exc.details()))
        else:
            self._received.put(StreamEndedError(grpc.StatusCode.OK, "end of stream"))


@contextmanager
def serving() -> Iterator[tuple[P4RuntimeServer, FakeDataPlane]]:
    """Serve a fake data plane on a free port."""
    dataplane = FakeDataPlane()
    server = P4RuntimeServer(
        dataplane, address="127.0.0.1:0", device_id=DEVICE_ID, compile_program=read_program
    )
    with server:
        yield server, dataplane


@contextmanager
def loaded(sample: Sample = TOY) -> Iterator[tuple[BareClient, FakeDataPlane]]:
    """Serve a sample program to a bare client that is primary."""
    with serving() as (server, dataplane), BareClient(server.port) as client:
        client.become_primary()
        client.push(p4info=sample.p4info, blob=sample.json)
        yield client, dataplane


def update(kind: int, entity: Any) -> p4r.Update:
    """Wrap a table entry, register entry, ... into an Update."""
    names = {field.message_type.name: field.name for field in p4r.Entity.DESCRIPTOR.fields}
    return p4r.Update(type=kind, entity=p4r.Entity(**{names[type(entity).__name__]: entity}))


def insert(entity: Any) -> p4r.Update:
    return update(p4r.Update.INSERT, entity)


def modify(entity: Any) -> p4r.Update:
    return update(p4r.Update.MODIFY, entity)


def delete(entity: Any) -> p4r.Update:
    return update(p4r.Update.DELETE, entity)


def action(name: str, *params: bytes) -> p4r.TableAction:
    return p4r.TableAction(action=TOY.action(name, *params))


def station(
    address: bytes = b"\x0a", port: bytes = b"\x01", *, out: bytes = b"\x02"
) -> p4r.TableEntry:
    entry = p4r.TableEntry(
        table_id=IDS["station"], action=action("forward", out, b"\xaa\xbb\xcc\xdd\xee\xff")
    )
    entry.match.add(field_id=1).exact.value = address
    entry.match.add(field_id=2).exact.value = port
    return entry


def prefix(value: bytes, prefix_len: int) -> p4r.TableEntry:
    entry = p4r.TableEntry(table_id=IDS["prefix"], action=action("drop_packet"))
    match = entry.match.add(field_id=1).lpm
    match.value, match.prefix_len = value, prefix_len
    return entry


def policy(priority: int, *, ether_type: bytes = b"\x08\x06") -> p4r.TableEntry:
    entry = p4r.TableEntry(table_id=IDS["policy"], priority=priority, action=action("punt"))
    ternary = entry.match.add(field_id=1).ternary
    ternary.value, ternary.mask = ether_type, b"\xff\xff"
    ports = entry.match.add(field_id=2).range
    ports.low, ports.high = b"\x01", b"\x08"
    entry.match.add(field_id=3).optional.value = b"\x0a"
    return entry


def update_errors(error: grpc.RpcError) -> list[tuple[int, str]]:
    """Canonical code and text of each update of a failed Write."""
    assert isinstance(error, grpc.Call)
    assert error.code() is grpc.StatusCode.UNKNOWN
    for key, value in error.trailing_metadata():
        if key == "grpc-status-details-bin":
            status = rpc_status.Status.FromString(value)
            errors: list[tuple[int, str]] = []
            for detail in status.details:
                item = p4r.Error()
                assert detail.Unpack(item)
                errors.append((item.canonical_code, item.message))
            return errors
    raise AssertionError("no grpc-status-details-bin")
