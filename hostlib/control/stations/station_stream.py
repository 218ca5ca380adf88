# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One stream of a station to the transfer scheduler; gRPC's messages become ours here."""

from __future__ import annotations

import logging
import math
import queue
from collections.abc import Iterator
from typing import Any, Final, final

from ...credentials.tokens import token_metadata
from ...errors import ConfigurationError
from ..controller_addresses import ControllerAddresses
from ..controller_channel import ControllerChannel
from ..grpc_seam import load_grpc
from ..stream_refusal import stream_refusal
from ..transfers_api import transfers_pb2 as api
from .allreduce_stream import allreduce_event, allreduce_message
from .allreduce_terms import AllreduceEnded, AllreduceRequested
from .granted_spans import granted_spans
from .model_terms import ModelDelivered, ModelHop, ModelRequested
from .replica_stream import replica_event, replica_message
from .station import (
    CommitExpected,
    CommitSkipped,
    ExpectedMember,
    GatherExpected,
    GroupHop,
    GroupLeft,
    RateObserved,
    ServerProgress,
    StationEvent,
    StationKind,
    StationRegistered,
    StationReport,
    StationRequest,
    SwitchGroupExpected,
    SwitchMembers,
    TransferDelivered,
    TransferDropped,
    TransferGranted,
    TransferRefused,
    TransferRequested,
    TransferWithdrawn,
    UpdateGathered,
    UpdatesCommitted,
)

METHODS: Final = {
    StationKind.WORKER: "/switchfold.transfers.v1.Transfers/FollowAsWorker",
    StationKind.SERVER: "/switchfold.transfers.v1.Transfers/FollowAsServer",
    StationKind.REPLICA: "/switchfold.transfers.v1.Transfers/FollowAsReplica",
}
BEAT_S: Final = 1.0
"""Longest pause between messages, which show that a station lives; half of what is asked for."""
_logger = logging.getLogger(__name__)
_grpc = load_grpc()


def check_station(request: StationRequest) -> None:
    """Raise ConfigurationError when a registration cannot be sent."""
    try:
        _register(request, ServerProgress())
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"{request.who}: an argument cannot be sent: {error}") from error


@final
class StationStream:
    """Registers when its events are read; `close` ends it from any thread."""

    def __init__(
        self, controllers: ControllerAddresses, request: StationRequest, progress: ServerProgress
    ) -> None:
        self._controllers = controllers
        self._request = request
        self._channel = ControllerChannel(controllers, request.credentials)
        self._outbox: queue.SimpleQueue[api.StationMessage | None] = queue.SimpleQueue()
        self._outbox.put(_register(request, progress))
        method = self._channel.get().stream_stream(
            METHODS[request.kind],
            request_serializer=api.StationMessage.SerializeToString,
            response_deserializer=api.SchedulerMessage.FromString,
        )
        self._call: Any = method(self._messages(), metadata=token_metadata(request.token))

    def send(self, report: StationReport) -> None:
        """Queue a report."""
        self._outbox.put(_message(report))

    def events(self) -> Iterator[StationEvent]:
        """Yield what the scheduler tells, until the stream ends.

        Raises ControllerUnreachableError when it breaks, and JobRefusedError, WorkerTakenError or
        VersionMismatchError when the controller refuses this station.
        """
        try:
            for message in self._call:
                event = _event(message)
                if event is not None:
                    yield event
        except _grpc.RpcError as error:
            who = self._request.who
            raise stream_refusal(error, who, self._controllers, self._channel) from error

    def close(self) -> None:
        """End the stream."""
        self._outbox.put(None)
        self._call.cancel()
        self._channel.close()

    def _messages(self) -> Iterator[api.StationMessage]:
        """Yield what is to be sent, and heartbeats between."""
        sequence = 0
        while True:
            try:
                message = self._outbox.get(timeout=BEAT_S)
            except queue.Empty:
                sequence += 1
                message = api.StationMessage(heartbeat=api.Heartbeat(sequence=sequence))
            if message is None:
                return
            yield message


def _register(request: StationRequest, progress: ServerProgress) -> api.StationMessage:
    place, relay = request.aggregator, request.relay
    return api.StationMessage(
        register=api.Register(
            job_name=request.job,
            station_id=request.station_id,
            identity=request.identity,
            host=request.host,
            job_token=request.job_token,
            tau_max=request.tau_max,
            div_max=request.div_max,
            staleness=request.staleness,
            version=progress.version,
            next_sequence=progress.next_sequence,
            aggregator=None if place is None else api.Aggregator(address=place[0], port=place[1]),
            relay=None if relay is None else api.ModelRelay(address=relay[0], port=relay[1]),
            momentum=request.momentum,
            address=None if request.reached_at is None else request.reached_at[0],
            port=None if request.reached_at is None else request.reached_at[1],
            catches_up=progress.catches_up,
        )
    )


def _message(  # noqa: PLR0911 - one for each kind
    report: StationReport,
) -> api.StationMessage:
    fields = report._asdict()
    if isinstance(report, TransferRequested):
        return api.StationMessage(requested=api.TransferRequested(**fields))
    if isinstance(report, TransferDelivered):
        return api.StationMessage(delivered=api.TransferDelivered(**fields))
    if isinstance(report, TransferWithdrawn):
        return api.StationMessage(withdrawn=api.TransferWithdrawn(**fields))
    if isinstance(report, RateObserved):
        return api.StationMessage(rate_observed=api.RateObserved(**fields))
    if isinstance(report, UpdateGathered):
        return api.StationMessage(gathered=api.UpdateGathered(**fields))
    if isinstance(report, GroupLeft):
        return api.StationMessage(left=api.GroupLeft(**fields))
    if isinstance(report, SwitchMembers):
        return api.StationMessage(switch_members=api.SwitchMembers(**fields))
    if isinstance(report, ModelRequested):
        return api.StationMessage(model_requested=api.ModelRequested(**fields))
    if isinstance(report, ModelDelivered):
        return api.StationMessage(model_delivered=api.ModelDelivered(**fields))
    if isinstance(report, AllreduceRequested | AllreduceEnded):
        return allreduce_message(report)
    if not isinstance(report, UpdatesCommitted):
        return replica_message(report)
    return api.StationMessage(committed=api.UpdatesCommitted(**fields))


def _event(  # noqa: PLR0911 - one for each kind
    message: api.SchedulerMessage,
) -> StationEvent | None:
    """Return what a message says; None if this release cannot use it."""
    match message.WhichOneof("message"):
        case "registered":
            told = message.registered
            return StationRegistered(
                told.grant_wait_s,
                told.next_transfer_id,
                told.next_sequence,
                allowed=told.allowed_sequence if told.has_replica else None,
            )
        case "granted" | "dropped" | "refused":
            return _answer(message)
        case "expected":
            place = message.expected
            factor = _factor(place.learning_rate_factor)
            due_s = max(0.0, place.due_s) if math.isfinite(place.due_s) else 0.0
            earliest_s = place.earliest_s if 0 < place.earliest_s < due_s else due_s
            return CommitExpected(
                *(place.sequence, place.worker_id, place.transfer_id, factor, due_s, earliest_s),
                place.size_bytes,
                min(max(0.0, place.begins_s), due_s) if math.isfinite(place.begins_s) else 0.0,
            )
        case "skipped":
            return CommitSkipped(message.skipped.sequence)
        case "gather":
            return _gather(message.gather)
        case "switch_group":
            return _switch_group(message.switch_group)
        case "allreduce_noted" | "allreduce_granted" | "allreduce_failed":
            return allreduce_event(message)
        case _:
            return replica_event(message)


def _answer(message: api.SchedulerMessage) -> StationEvent | None:
    """Return what a worker is told of its request."""
    if message.HasField("granted"):
        return _grant(message.granted)
    if message.HasField("refused"):
        return TransferRefused(message.refused.transfer_id, message.refused.reason)
    dropped = message.dropped
    return TransferDropped(dropped.transfer_id, dropped.reason, dropped.delay)


def _grant(granted: api.TransferGranted) -> TransferGranted | None:
    what = f"the grant of transfer {granted.transfer_id}"
    spans = granted_spans(granted.spans, what)
    replica_spans = granted_spans(granted.replica_spans, what)
    hop = _hop(granted.hop) if granted.HasField("hop") else None
    if spans is None or replica_spans is None or (granted.HasField("hop") and hop is None):
        return None  # the worker then waits until it sends without a grant
    return TransferGranted(
        granted.transfer_id,
        spans,
        granted.sequence,
        _factor(granted.learning_rate_factor),
        hop,
        replica_spans if granted.has_replica else None,
        _model_hop(granted.model_hop) if granted.HasField("model_hop") else None,
    )


def _model_hop(hop: api.ModelHop) -> ModelHop | None:
    """Return where a model comes from; without a time that can be waited, from the server."""
    if not 0 <= hop.wait_s < math.inf:
        return None
    return ModelHop(hop.sender_transfer_id, (hop.address, hop.port), hop.wait_s)


def _hop(hop: api.GroupHop) -> GroupHop | None:
    if hop.kind == api.GroupHop.SWITCH:
        return GroupHop(hop.group_id, hop.num_members, 0, ("", 0), 0.0, is_switch=True)
    if hop.kind != api.GroupHop.HOST or not hop.outcome_s >= 0:
        _logger.warning("group %d: nothing is known of its kind %d", hop.group_id, hop.kind)
        return None
    address = hop.address, hop.port
    return GroupHop(hop.group_id, hop.num_members, hop.worker_id, address, hop.outcome_s)


def _gather(told: api.GatherExpected) -> GatherExpected | None:
    spans = granted_spans(told.spans, f"the sum of group {told.group_id}")
    if spans is None or not told.gather_s >= 0:
        return None  # the members send their updates to the server themselves
    members = tuple(ExpectedMember(each.worker_id, each.transfer_id) for each in told.members)
    return GatherExpected(told.group_id, told.server_id, members, spans, told.gather_s)


def _switch_group(told: api.SwitchGroupExpected) -> SwitchGroupExpected | None:
    if not 0 <= told.start_s <= told.gather_s < math.inf:
        return None  # the members send their updates to the server themselves
    members = tuple(ExpectedMember(each.worker_id, each.transfer_id) for each in told.members)
    return SwitchGroupExpected(told.group_id, members, told.start_s, told.gather_s)


def _factor(factor: float) -> float:
    """Return a factor of the learning rate; what is none counts as 1."""
    return factor if math.isfinite(factor) and factor > 0 else 1.0
