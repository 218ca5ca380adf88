# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The gRPC server: P4Runtime 1.4 for one softswitch."""

import itertools
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import TYPE_CHECKING, Any, NoReturn

import grpc
from finsy.proto import p4r, p4r_grpc

from ...errors import SoftswitchError
from ..thread_name import name_this_thread
from .dataplane import DataPlane
from .device import Device
from .handlers import generic_handler
from .pipeline_config import Compile
from .port_statistics import Counters, statistics_handler
from .status import (
    DETAILS_KEY,
    AddressInUseError,
    RequestError,
    request_error,
    shortened,
    write_details,
)
from .stream import StreamChannel

if TYPE_CHECKING:
    from ....hostlib.credentials import Credentials

API_VERSION = "1.4.0"
MAX_STREAMS = 48
"""Open StreamChannels over all roles. Each holds a thread of the pool; more are refused."""
UNARY_THREADS = 8
"""Threads that streams can never take."""
MAX_CALLS = 1024
"""Calls at a time, with those that wait for a thread; more are refused."""
MAX_CONNECTIONS = 128
"""More are closed as soon as they are accepted."""
MAX_MESSAGE_BYTES = 64 << 20
UNREAD_BYTES = 64 << 10
"""Most bytes that a call may send before they are wanted; gRPC would take megabytes."""
HANDSHAKE_S = 20.0
"""Longest time for TLS, and again for HTTP/2, until a connection can carry calls."""
IDLE_S = 20.0
"""Longest time of a connection without a call."""
RESPONSE_BYTES = 1 << 20
"""Size at which a ReadResponse is sent, well below the 4 MiB that clients accept."""
POOL_NAME = "p4runtime"
"""Of the threads that serve calls, in the tools of the system as well. The pool gets one more
whenever all of them are busy."""
STOP_GRACE_S = 0.5
THREAD_END_S = 5.0
SOCKET_PROBE_S = 1.0

logger = logging.getLogger(__name__)


class P4RuntimeServer(p4r_grpc.P4RuntimeServicer):
    """A P4Runtime server; `start` binds it, `stop` ends every stream and thread of it."""

    def __init__(  # noqa: PLR0913 - what it serves, where, and to whom
        self,
        dataplane: DataPlane,
        *,
        address: str,
        device_id: int,
        compile_program: Compile,
        credentials: "Credentials | None" = None,
        insecure: bool = False,
        port_statistics: Callable[[], Counters] | None = None,
    ) -> None:
        """Make a server; with `credentials` it serves controllers and operators over TLS alone.

        Without credentials, every client may do everything. So this raises CredentialsError unless
        `insecure`, or unless the address is a Unix socket, whose file says who may connect.
        `port_statistics` reads the port counters for clients that ask for them.
        """
        from ....hostlib.credentials import Role, require_choice  # noqa: PLC0415 - only to serve

        require_choice(
            credentials,
            who=f"P4Runtime at {address}",
            role=Role.SWITCH,
            insecure=insecure,
            address=address,
        )
        self._port_statistics = port_statistics
        self._address = address
        self._credentials: Any = None
        self._guards: list[grpc.ServerInterceptor] = []
        if credentials is not None:
            from ....hostlib.credentials.grpc_channels import server_credentials  # noqa: PLC0415
            from .caller_guard import CallerGuard  # noqa: PLC0415 - cryptography only for TLS

            self._credentials = server_credentials(credentials)
            self._guards.append(CallerGuard(credentials))
        self.device = Device(dataplane, device_id, compile_program)
        self._server: grpc.Server | None = None
        self._pool: futures.ThreadPoolExecutor | None = None
        self._channels: set[StreamChannel] = set()
        self._readers: list[threading.Thread] = []
        """Threads of open streams, and of streams that have ended since."""
        self._readers_lock = threading.Lock()
        self.port = 0
        """TCP port in use; 0 when stopped or on a Unix socket."""

    @property
    def address(self) -> str:
        """Where clients connect: host and the port that is bound."""
        host, _, _ = self._address.rpartition(":")
        return f"{host}:{self.port}" if self.port else self._address

    def start(self) -> None:
        """Bind and serve. Raises AddressInUseError."""
        assert self._server is None, "the server runs already"
        self._pool = futures.ThreadPoolExecutor(
            MAX_STREAMS + UNARY_THREADS,
            thread_name_prefix=POOL_NAME,
            initializer=name_this_thread,
            initargs=(POOL_NAME,),
        )
        server = grpc.server(
            self._pool,
            interceptors=self._guards,
            maximum_concurrent_rpcs=MAX_CALLS,
            options=[
                ("grpc.so_reuseport", 0),
                ("grpc.max_allowed_incoming_connections", MAX_CONNECTIONS),
                ("grpc.server_handshake_timeout_ms", round(1000 * HANDSHAKE_S)),
                ("grpc.http2.settings_timeout", round(1000 * HANDSHAKE_S)),
                ("grpc.max_connection_idle_ms", round(1000 * IDLE_S)),
                ("grpc.http2.lookahead_bytes", UNREAD_BYTES),
                ("grpc.http2.bdp_probe", 0),  # it would raise the line above
                ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
                ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
            ],
        )
        server.add_generic_rpc_handlers((generic_handler(self),))
        if self._port_statistics is not None:
            server.add_generic_rpc_handlers((statistics_handler(self._port_statistics),))
        try:
            if _is_served(self._address):
                raise RuntimeError("another process serves this Unix socket")
            if self._credentials is None:
                port = server.add_insecure_port(self._address)
            else:
                port = server.add_secure_port(self._address, self._credentials)
        except RuntimeError as exc:
            self._pool.shutdown()
            raise AddressInUseError(
                f"P4Runtime server: cannot bind {self._address}: the address is taken, or it is "
                "not one of this machine; stop the other process or choose another address"
            ) from exc
        self.port = 0 if self._address.startswith("unix:") else port
        self.device.start()
        server.start()
        self._server = server
        logger.info("P4Runtime on %s", self.address)

    def stop(self) -> None:
        """End all streams and wait for their threads. May be called twice."""
        server, self._server = self._server, None
        if server is None:
            return
        self.device.close()
        server.stop(STOP_GRACE_S).wait()
        with self._readers_lock:
            readers = list(self._readers)
        for reader in readers:
            if reader.is_alive():
                reader.join(THREAD_END_S)
        assert self._pool is not None
        self._pool.shutdown(wait=True)
        self.port = 0

    def __enter__(self) -> "P4RuntimeServer":
        if self._server is None:
            self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def Capabilities(  # noqa: N802 - gRPC's name
        self, request: p4r.CapabilitiesRequest, context: grpc.ServicerContext
    ) -> p4r.CapabilitiesResponse:
        """Return the API version."""
        del request, context
        return p4r.CapabilitiesResponse(p4runtime_api_version=API_VERSION)

    def SetForwardingPipelineConfig(  # noqa: N802
        self, request: p4r.SetForwardingPipelineConfigRequest, context: grpc.ServicerContext
    ) -> p4r.SetForwardingPipelineConfigResponse:
        """Verify, save or commit a program."""
        try:
            self.device.set_config(request)
        except SoftswitchError as exc:
            _abort(context, exc)
        return p4r.SetForwardingPipelineConfigResponse()

    def GetForwardingPipelineConfig(  # noqa: N802
        self, request: p4r.GetForwardingPipelineConfigRequest, context: grpc.ServicerContext
    ) -> p4r.GetForwardingPipelineConfigResponse:
        """Return the program."""
        try:
            return self.device.get_config(request)
        except SoftswitchError as exc:
            _abort(context, exc)

    def Write(  # noqa: N802
        self, request: p4r.WriteRequest, context: grpc.ServicerContext
    ) -> p4r.WriteResponse:
        """Carry out a batch of updates."""
        try:
            results = self.device.write(request)
        except SoftswitchError as exc:
            _abort(context, exc)
        if any(results):
            message, details = write_details(results)
            context.set_trailing_metadata(((DETAILS_KEY, details),))
            context.abort(grpc.StatusCode.UNKNOWN, message)
        return p4r.WriteResponse()

    def Read(  # noqa: N802
        self, request: p4r.ReadRequest, context: grpc.ServicerContext
    ) -> Iterator[p4r.ReadResponse]:
        """Return entities, in several messages if there are many."""
        try:
            results = self.device.read(request)
        except SoftswitchError as exc:
            _abort(context, exc)
        errors = [item if isinstance(item, RequestError) else None for item in results]
        first = next((error for error in errors if error is not None), None)
        if first is not None:
            _, details = write_details(errors)
            context.set_trailing_metadata(((DETAILS_KEY, details),))
            _abort(context, first)
        selected = (item for item in results if not isinstance(item, RequestError))
        yield from _in_parts(itertools.chain.from_iterable(selected))

    def StreamChannel(  # noqa: N802
        self,
        request_iterator: Iterator[p4r.StreamMessageRequest],
        context: grpc.ServicerContext,
    ) -> Iterator[p4r.StreamMessageResponse]:
        """Serve one client's stream until it ends."""
        if len(self._channels) >= MAX_STREAMS:
            context.abort(
                grpc.StatusCode.RESOURCE_EXHAUSTED, f"{MAX_STREAMS} streams are open already"
            )
        channel = StreamChannel(self.device, request_iterator, context)
        self._channels.add(channel)
        self._keep_reader(channel.reader)
        try:
            yield from channel.responses()
        finally:
            self._channels.discard(channel)

    def _keep_reader(self, reader: threading.Thread) -> None:
        with self._readers_lock:
            # A thread without an identity has not started yet.
            left = [old for old in self._readers if old.ident is None or old.is_alive()]
            self._readers = [*left, reader]


def _in_parts(entities: Iterator[p4r.Entity]) -> Iterator[p4r.ReadResponse]:
    """Put entities into messages that clients accept; yields at least one message."""
    response, size = p4r.ReadResponse(), 0
    for entity in entities:
        response.entities.append(entity)
        size += entity.ByteSize()
        if size >= RESPONSE_BYTES:
            yield response
            response, size = p4r.ReadResponse(), 0
    yield response


def _is_served(address: str) -> bool:
    """Return whether a process serves this Unix socket, which gRPC would replace silently."""
    if not address.startswith("unix:"):
        return False  # a TCP port in use is refused by the kernel
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(SOCKET_PROBE_S)
        return probe.connect_ex(address.removeprefix("unix:")) == 0


def _abort(context: grpc.ServicerContext, error: SoftswitchError) -> NoReturn:
    refusal = request_error(error)
    context.abort(refusal.grpc_code, shortened(refusal.message))
    raise AssertionError("abort never returns")
