# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One StreamChannel: arbitration and packet-out in, notifications and packet-in out."""

import logging
import queue
import threading
from collections.abc import Iterator

import grpc
from finsy.proto import p4r, rpc_code

from ...errors import SoftswitchError
from .arbitration import Client
from .device import Device
from .handlers import UNREADABLE, Unreadable
from .status import (
    RequestError,
    digest_ack_error,
    other_stream_error,
    packet_out_error,
    request_error,
    shortened,
)

MAX_QUEUED_MESSAGES = 4096
"""Packet-ins, lists and errors that wait for one slow client; more are dropped."""

logger = logging.getLogger(__name__)


class StreamChannel:
    """Serves one client: the gRPC handler yields responses, a thread of its own reads requests."""

    def __init__(
        self,
        device: Device,
        requests: Iterator[p4r.StreamMessageRequest | Unreadable],
        context: grpc.ServicerContext,
    ) -> None:
        self._device = device
        self._requests = requests
        self._context = context
        self._out: queue.SimpleQueue[p4r.StreamMessageResponse | RequestError | None] = (
            queue.SimpleQueue()
        )
        self._client = Client(send=self._out.put)
        self.reader = threading.Thread(target=self._read, name="p4runtime-stream", daemon=True)

    def responses(self) -> Iterator[p4r.StreamMessageResponse]:
        """Yield the messages for the client until either side ends the stream."""
        if not self._context.add_callback(self.close):
            return
        self._device.add_stream(self)
        self.reader.start()
        try:
            while True:
                item = self._out.get()
                if item is None:
                    return
                if isinstance(item, RequestError):
                    self._context.abort(item.grpc_code, shortened(item.message))
                yield item
        finally:
            self._device.remove_stream(self)

    def close(self) -> None:
        """End the stream from any thread."""
        self._out.put(None)

    @property
    def client(self) -> Client:
        """This stream as the arbitration knows it."""
        return self._client

    def offer(self, message: p4r.StreamMessageResponse) -> bool:
        """Queue a message; False if the client is too slow and the message is dropped."""
        if self._out.qsize() >= MAX_QUEUED_MESSAGES:
            return False
        self._out.put(message)
        return True

    def _read(self) -> None:
        try:
            for request in self._requests:
                if isinstance(request, Unreadable):
                    raise RequestError(rpc_code.INVALID_ARGUMENT, UNREADABLE)
                self._handle(request)
        except RequestError as exc:
            self._out.put(exc)
        except grpc.RpcError:
            logger.debug("stream cancelled by its client")
        finally:
            self.close()

    def _handle(self, request: p4r.StreamMessageRequest) -> None:
        """Serve one message; a RequestError raised from here ends the stream."""
        kind = request.WhichOneof("update")
        if kind == "arbitration":
            self._device.arbitrate(self._client, request.arbitration)
        elif kind == "packet":
            try:
                self._device.send_packet_out(self._client, request.packet)
            except SoftswitchError as exc:
                self.offer(packet_out_error(request_error(exc), request.packet))
        elif kind == "digest_ack":
            try:
                self._device.acknowledge_digest(self._client, request.digest_ack)
            except SoftswitchError as exc:
                self.offer(digest_ack_error(request_error(exc), request.digest_ack))
        else:
            code = rpc_code.INVALID_ARGUMENT if kind is None else rpc_code.UNIMPLEMENTED
            reason = "is not set" if kind is None else f"{kind} is not supported"
            self.offer(other_stream_error(RequestError(code, f"stream message: {reason}"), request))
