# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One stream of a row server to its controller; gRPC's errors become ours here."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any, Final, final

from ..credentials.tokens import token_metadata, token_problem
from ..errors import ConfigurationError
from ..slots.wire import WIRE_VERSION
from .controller_addresses import ControllerAddresses
from .controller_channel import ControllerChannel
from .controller_life import ControllerLife
from .grpc_seam import load_grpc
from .row_server_link import RowMember, RowServerRequest, RowSet, RowsInstalled, RowView
from .session_api import session_pb2 as api
from .stream_refusal import stream_refusal
from .view import UNKNOWN_MAC, Endpoint

SERVE_ROWS_METHOD: Final = "/switchfold.session.v1.SwitchfoldSession/ServeRows"
BEAT_S: Final = 2.0
"""Longest pause between messages, which show that a server runs."""
_grpc = load_grpc()


def check_row_request(request: RowServerRequest) -> None:
    """Raise ConfigurationError when a request cannot be sent."""
    where = f"row server {request.server_id} of job {request.job!r}"
    if problem := token_problem(request.job_token):
        raise ConfigurationError(f"{where}: the job token {problem}")
    try:
        _attach_message(request)
    except ValueError as error:
        raise ConfigurationError(f"{where}: an argument cannot be sent: {error}") from error
    if problem := token_problem(request.token):
        raise ConfigurationError(f"{where}: the token {problem}")


@final
class RowStream:
    """Attaches when its events are read; `close` ends it from any thread."""

    def __init__(self, controllers: ControllerAddresses, request: RowServerRequest) -> None:
        self._controllers = controllers
        self._request = request
        self._channel = ControllerChannel(controllers, request.credentials)
        self._life = ControllerLife(controllers)
        self._outbox: queue.SimpleQueue[api.RowServerMessage | None] = queue.SimpleQueue()
        self._outbox.put(_attach_message(request))
        method = self._channel.get().stream_stream(
            SERVE_ROWS_METHOD,
            request_serializer=api.RowServerMessage.SerializeToString,
            response_deserializer=api.RowControllerMessage.FromString,
        )
        self._call: Any = method(self._messages(), metadata=token_metadata(request.token))

    def send_rows(self, rows: RowSet) -> None:
        """Queue a set of rows."""
        self._outbox.put(
            api.RowServerMessage(
                set_rows=api.SetRows(
                    generation=rows.generation,
                    number=rows.number,
                    rows=rows.rows["row"].tolist(),
                    epochs=rows.rows["epoch"].tolist(),
                    exponents=rows.rows["exponent"].tolist(),
                )
            )
        )

    def events(self) -> Iterator[RowView | RowsInstalled]:
        """Yield what the controller tells, until the stream ends.

        Raises ControllerUnreachableError when it breaks, and JobRefusedError, WorkerTakenError or
        VersionMismatchError when the controller refuses this server.
        """
        told = api.RowView()
        try:
            for message in self._call:
                self._life.hear(message)
                if message.HasField("row_view"):
                    told = message.row_view
                    yield _decode_view(told)
                elif message.HasField("rows_installed"):
                    installed = message.rows_installed
                    yield RowsInstalled(installed.generation, installed.number)
                elif message.HasField("job_ended"):
                    reason = f"the job has ended: {message.job_ended.reason}"
                    yield _decode_view(_without_rows(told, reason))
        except _grpc.RpcError as error:
            who = f"row server {self._request.server_id} of job {self._request.job!r}"
            raise stream_refusal(error, who, self._controllers, self._channel) from error

    def close(self) -> None:
        """End the stream."""
        self._outbox.put(None)
        self._call.cancel()
        self._channel.close()

    def _messages(self) -> Iterator[api.RowServerMessage]:
        """Yield what is to be sent, and heartbeats between."""
        sequence = 0
        while True:
            try:
                message = self._outbox.get(timeout=BEAT_S)
            except queue.Empty:
                sequence += 1
                message = api.RowServerMessage(heartbeat=api.Heartbeat(sequence=sequence))
            if message is None:
                return
            if self._life.has_ended():
                self._call.cancel()
            yield message


def _without_rows(view: api.RowView, reason: str) -> api.RowView:
    """Return what a server knows while its job has no view."""
    return api.RowView(
        values_per_packet=view.values_per_packet,
        worker_id=view.worker_id,
        switch_address=view.switch_address,
        switch_mac=view.switch_mac,
        switch_udp_port=view.switch_udp_port,
        reason=reason,
    )


def _attach_message(request: RowServerRequest) -> api.RowServerMessage:
    local = request.local
    attach = api.AttachRowServer(
        job_name=request.job,
        server_id=request.server_id,
        identity=request.identity,
        wire_version=WIRE_VERSION,
        values_per_packet=request.values_per_packet,
        address=local.address,
        mac=local.mac if local.mac != UNKNOWN_MAC else "",
        udp_port=local.udp_port,
        switch_name=request.switch_name,
        rows_wanted=request.rows_wanted,
        job_token=request.job_token,
    )
    if isinstance(request.ingress_port, str):
        attach.ingress_port_name = request.ingress_port
    elif request.ingress_port:
        attach.ingress_port = request.ingress_port
    return api.RowServerMessage(attach=attach)


def _decode_view(view: api.RowView) -> RowView:
    return RowView(
        generation=view.generation,
        tree_id=view.tree_id,
        first_row=view.first_row,
        num_rows=view.num_rows,
        values_per_packet=view.values_per_packet,
        worker_id=view.worker_id,
        switch=Endpoint(
            address=view.switch_address,
            udp_port=view.switch_udp_port,
            mac=view.switch_mac or UNKNOWN_MAC,
        ),
        num_workers=view.num_workers,
        members=tuple(
            RowMember(
                worker_id=member.worker_id,
                child_id=member.child_id,
                worker_bitmap=member.worker_bitmap,
                switch=Endpoint(address=member.switch_address, udp_port=member.switch_udp_port),
            )
            for member in view.members
        ),
        reason=view.reason,
    )
