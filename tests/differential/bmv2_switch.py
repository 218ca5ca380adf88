# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""simple_switch_grpc with its ports behind its data-plane gRPC service, without root and sleep.

Each packet goes in on a stream of its own. BMv2 ends the stream only when it holds no packet any
more. So all effects of a packet have arrived by then, however often it recirculates.
"""

from __future__ import annotations

import contextlib
import queue
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

import bmv2_thrift
from bmv2_options import BINARY, free_tcp_port, thrift_options
from differential.case import Packet, Step
from differential.runtime_client import DEADLINE_S, DEVICE_ID, RuntimeClient

ENDLESS_S = 2.0
"""A packet that takes longer is taken to loop or recirculate for ever."""


def missing_reason() -> str | None:
    """Return why BMv2 cannot run here, or None."""
    return None if shutil.which(BINARY) else f"{BINARY} is not on the PATH"


class SwitchEndedError(Exception):
    """The switch's process ended or became unusable during a step."""


def _stream_message() -> type:
    """PacketStreamRequest and PacketStreamResponse of the service have the same four fields."""
    fields = [("id", 4), ("device_id", 4), ("port", 13), ("packet", 12)]
    message = descriptor_pb2.DescriptorProto(name="Packet")
    for number, (name, kind) in enumerate(fields, 1):
        message.field.add(name=name, number=number, type=kind, label=1)  # pyright: ignore
    file = descriptor_pb2.FileDescriptorProto(
        name="differential_packet.proto", package="differential", syntax="proto3"
    )
    file.message_type.append(message)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("differential.Packet"))


_PacketMessage = _stream_message()


class RefusedError(Exception):
    """BMv2 does not load the program."""


class PacketStream:
    """Packets to and from all ports of a BMv2, in order."""

    def __init__(self, stream: grpc.StreamStreamMultiCallable) -> None:
        self._requests: queue.Queue[object] = queue.Queue()
        self._answers = stream(iter(self._requests.get, None), timeout=DEADLINE_S)

    def send(self, packets: Iterable[Packet]) -> None:
        """Send packets one after the other."""
        for packet in packets:
            self._requests.put(
                _PacketMessage(device_id=DEVICE_ID, port=packet.port, packet=packet.frame)
            )

    def receive(self) -> tuple[int, bytes]:
        """Return the next packet that leaves, with its port."""
        answer = next(self._answers)
        return answer.port, answer.packet

    def close(self) -> Iterator[tuple[int, bytes]]:
        """Send no more; return what leaves until BMv2 holds no packet."""
        self._requests.put(None)
        for answer in self._answers:
            yield answer.port, answer.packet


class Bmv2Switch:
    """One simple_switch_grpc process that runs a program."""

    name = "bmv2"

    def __init__(
        self,
        json: Path,
        p4info: Path,
        *,
        endless_s: float = ENDLESS_S,
        priority_queues: int = 1,
    ) -> None:
        """Start it; a packet that takes longer than `endless_s` ends it."""
        self._endless_s = endless_s
        with contextlib.ExitStack() as stack:
            self._log = stack.enter_context(tempfile.TemporaryFile())
            control, data = free_tcp_port(), free_tcp_port()
            thrift = thrift_options()
            self._thrift_port = int(thrift[-1]) if thrift else None
            self._process = subprocess.Popen(
                [BINARY, "--no-p4", f"--device-id={DEVICE_ID}", *thrift, "--",
                 f"--grpc-server-addr=127.0.0.1:{control}",
                 f"--dp-grpc-server-addr=127.0.0.1:{data}",
                 f"--priority-queues={priority_queues}"],
                stdout=self._log, stderr=self._log,
            )  # fmt: skip
            stack.callback(self._stop)
            self._await_server(control)
            self._client = RuntimeClient(f"127.0.0.1:{control}")
            stack.callback(self._client.close)
            try:
                self._client.push(json, p4info)
            except grpc.RpcError as exc:
                raise RefusedError(f"{BINARY} refuses the program: {exc.details()}") from exc
            self._channel = stack.enter_context(grpc.insecure_channel(f"127.0.0.1:{data}"))
            self._stream = self._channel.stream_stream(
                "/p4.bm.DataplaneInterface/PacketStream",
                request_serializer=_PacketMessage.SerializeToString,
                response_deserializer=_PacketMessage.FromString,
            )
            self._resources = stack.pop_all()

    def _await_server(self, port: int) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.02)
                break
        raise SwitchEndedError(f"{BINARY} does not listen: {self.said()}")

    def said(self) -> str:
        """Return the end of the process's output, and its status."""
        self._log.seek(0)
        text = self._log.read()[-1500:].decode(errors="replace")
        return f"status {self._process.poll()}: {text}"

    def take(self, step: Step) -> object:
        """Do one step; return its code, or the (port, frame) pairs that left, as they arrived."""
        try:
            if isinstance(step, Packet):
                return self._send(step)
            return self._client.write(step.update)
        except grpc.RpcError as exc:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(60)
            if self._process.poll() is None:
                raise
            raise SwitchEndedError(self.said()) from exc

    def _send(self, packet: Packet) -> list[tuple[int, bytes]]:
        message = _PacketMessage(device_id=DEVICE_ID, port=packet.port, packet=packet.frame)
        deadline = time.monotonic() + DEADLINE_S
        while True:
            answers = self._stream(iter([message]), timeout=self._endless_s)
            try:
                return [(answer.port, answer.packet) for answer in answers]
            except grpc.RpcError as exc:
                # The data plane starts a little after the program has been accepted.
                if exc.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
                    raise SwitchEndedError("the packet never leaves") from exc
                if exc.details() != "not ready" or time.monotonic() > deadline:
                    raise

    def open_stream(self) -> PacketStream:
        """Open the only stream; a packet must have been through before."""
        return PacketStream(self._stream)

    @property
    def has_queue_rate(self) -> bool:
        """Whether this BMv2 has Thrift, which set_queue_rate needs."""
        return self._thrift_port is not None

    def set_queue_rate(self, port: int, rate_pps: int) -> None:
        """Limit what leaves each queue of a port, in packets per second; 0: no limit."""
        assert self._thrift_port is not None
        bmv2_thrift.set_queue_rate(self._thrift_port, port, rate_pps)

    def counters(self) -> dict[str, tuple[int, int]]:
        """See RuntimeClient."""
        try:
            return self._client.counters()
        except grpc.RpcError as exc:
            raise SwitchEndedError(f"counters cannot be read, {self.said()}") from exc

    def _stop(self) -> None:
        self._process.kill()
        self._process.wait(DEADLINE_S)

    def close(self) -> None:
        """End the process."""
        self._resources.close()
