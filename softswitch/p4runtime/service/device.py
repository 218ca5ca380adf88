# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The one device behind a server: its lock, its configuration, its clients."""

import logging
import threading
from collections.abc import Iterator
from typing import Protocol

from finsy.proto import p4r, rpc_code

from ...errors import SoftswitchError
from ..writes.write import write_updates
from .arbitration import Arbitration, Client
from .dataplane import DataPlane
from .notifier import Notifier
from .packet_io import pack_packet_out, unpack_packet_in
from .pipeline_config import Compile, PipelineConfig
from .status import RequestError, request_error

logger = logging.getLogger(__name__)


class Stream(Protocol):
    """What the device needs of an open StreamChannel."""

    @property
    def client(self) -> Client:
        """The stream as the arbitration knows it."""
        ...

    def offer(self, message: p4r.StreamMessageResponse) -> bool:
        """Queue a message that may be lost, without blocking; False: the client is too slow."""
        ...

    def close(self) -> None:
        """End the stream."""
        ...


class Device:
    """Serialises everything that changes state.

    One lock covers arbitration, configuration and writes, so that a new primary is announced only
    after the writes of the old one are done (P4Runtime 1.4 section 5.3). Packets pass without it.
    Programs are compiled outside it.
    """

    def __init__(self, dataplane: DataPlane, device_id: int, compile_program: Compile) -> None:
        self.device_id = device_id
        self.config = PipelineConfig(dataplane, compile_program)
        self._dataplane = dataplane
        self._arbitration = Arbitration(device_id)
        self._lock = threading.RLock()
        self._streams: dict[Client, Stream] = {}
        self.packets_in_dropped = 0
        """Dropped packet-ins: no primary, too short for their header, or a client too slow."""
        self._notifier = Notifier(
            dataplane, lambda: self.config.running, self._lock, self._send_to_primaries
        )

    def start(self) -> None:
        """Start to receive from the data plane."""
        self._dataplane.set_packet_in(self._receive_packet_in)
        self._notifier.start()

    def check_device(self, device_id: int) -> None:
        """Raise NOT_FOUND for another device's id."""
        if device_id != self.device_id:
            raise RequestError(
                rpc_code.NOT_FOUND,
                f"device_id {device_id}: this switch is device {self.device_id}",
            )

    def add_stream(self, stream: Stream) -> None:
        """Register a stream that has begun."""
        with self._lock:
            self._streams[stream.client] = stream

    def remove_stream(self, stream: Stream) -> None:
        """Forget a stream that has ended."""
        with self._lock:
            self._streams.pop(stream.client, None)
            self._arbitration.remove(stream.client)

    def close(self) -> None:
        """End every stream and take no more packets."""
        self._dataplane.set_packet_in(None)
        self._notifier.close()
        with self._lock:
            streams = list(self._streams.values())
        for stream in streams:
            stream.close()

    def arbitrate(self, client: Client, request: p4r.MasterArbitrationUpdate) -> None:
        """Take an arbitration update."""
        with self._lock:
            self._arbitration.update(client, request)

    def write(self, request: p4r.WriteRequest) -> list[RequestError | None]:
        """Carry out a batch; one result per update."""
        self.check_device(request.device_id)
        with self._lock:
            self._check_primary(request)
            results = write_updates(self.config.current(), request)
        if any(update.entity.HasField("digest_entry") for update in request.updates):
            self._notifier.wake()
        return results

    def read(self, request: p4r.ReadRequest) -> list[Iterator[p4r.Entity] | RequestError]:
        """Return an iterator over the entities of each query, or its refusal.

        All values are read now, under the lock; the iterators only encode.
        """
        self.check_device(request.device_id)
        with self._lock:
            stores = self.config.current().stores
            results: list[Iterator[p4r.Entity] | RequestError] = []
            for query in request.entities:
                try:
                    results.append(stores.read(query))
                except SoftswitchError as exc:
                    results.append(request_error(exc))
        return results

    def set_config(self, request: p4r.SetForwardingPipelineConfigRequest) -> None:
        """Carry out a SetForwardingPipelineConfig."""
        self.check_device(request.device_id)
        with self._lock:
            self._check_primary(request)
        pipeline = self.config.prepare(request)
        with self._lock:
            self._check_primary(request)
            self.config.apply(request, pipeline)

    def get_config(
        self, request: p4r.GetForwardingPipelineConfigRequest
    ) -> p4r.GetForwardingPipelineConfigResponse:
        """Return the configuration."""
        self.check_device(request.device_id)
        with self._lock:
            return self.config.get(request.response_type)

    def send_packet_out(self, client: Client, packet: p4r.PacketOut) -> None:
        """Inject a packet-out of the primary."""
        if not self._arbitration.is_primary(client):
            raise RequestError(rpc_code.PERMISSION_DENIED, "packet-out: not primary")
        running = self.config.running
        if running is None:
            raise RequestError(
                rpc_code.FAILED_PRECONDITION, "packet-out: No forwarding pipeline config is set"
            )
        self._dataplane.packet_out(pack_packet_out(running.schema.packet_out, packet))

    def acknowledge_digest(self, client: Client, ack: p4r.DigestListAck) -> None:
        """Take the primary's acknowledgement of a digest list."""
        if not self._arbitration.is_primary(client):
            raise RequestError(rpc_code.PERMISSION_DENIED, "digest_ack: not primary")
        running = self.config.running
        if running is None:
            raise RequestError(
                rpc_code.FAILED_PRECONDITION, "digest_ack: No forwarding pipeline config is set"
            )
        running.stores.digests.acknowledge(ack)

    def _check_primary(
        self, request: p4r.WriteRequest | p4r.SetForwardingPipelineConfigRequest
    ) -> None:
        is_set = request.HasField("election_id")
        self._arbitration.check_primary(request.role, request.election_id, is_set=is_set)

    def _receive_packet_in(self, frame: bytes) -> None:
        running = self.config.running
        if running is None:
            self.packets_in_dropped += 1
            return
        try:
            packet = unpack_packet_in(running.schema.packet_in, frame)
        except RequestError as exc:
            self.packets_in_dropped += 1
            logger.warning("%s", exc)
            return
        if not self._send_to_primaries(p4r.StreamMessageResponse(packet=packet)):
            self.packets_in_dropped += 1

    def _send_to_primaries(self, message: p4r.StreamMessageResponse) -> bool:
        """Queue a message for the primary of each role; False if there is none or one misses it."""
        primaries = self._arbitration.primaries()
        streams = [self._streams.get(client) for client in primaries]
        sent = [stream is not None and stream.offer(message) for stream in streams]
        return bool(sent) and all(sent)
