# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Checks every field of every request before anything is done or logged.

Texts, bytes and enumerations are checked by their kind, numbers by the table below. What depends on
the fabric or on other workers is checked by `worker_place` and `job_request`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from ...hostlib.credentials.tokens import token_problem
from ...hostlib.options import LONGEST_LEASE_S
from ...hostlib.slots.wire import MAX_PRIORITY
from ..errors import InvalidJobError
from .printable import quoted

MAX_MESSAGE_BYTES: Final = 256 << 10
"""Size of one request; a Stalled that names every worker of the largest job fits."""
REQUEST_TIMEOUT_S: Final = 5.0
"""A call's first message must be complete by then."""
MAX_TEXT: Final = 255
MAX_BYTES: Final = 64
MAX_ITEMS: Final = 0xFFFF
_MAX_POSITION: Final = 1 << 53
_MAX_NORM: Final = 1e30
SECRET_TEXTS: Final = frozenset(
    ("JoinRequest.job_token", "AttachRowServer.job_token", "Register.job_token")
)
"""Texts that no error shows."""

RANGES: Final[Mapping[str, tuple[float, float] | None]] = {
    "JoinRequest.worker_id": (0, 0xFFFF),
    "JoinRequest.num_workers": None,  # checked by JobRequest; not read in a running job
    "JoinRequest.wire_version": None,  # compared with the switch's
    "JoinRequest.values_per_packet": None,  # likewise
    "JoinRequest.udp_port": (1, 0xFFFF),
    "JoinRequest.ingress_port": (1, 511),
    "JoinRequest.slots_wanted": (0, 0xFFFF),
    "JoinRequest.join_timeout_s": (0, 86400),
    "JoinRequest.lease_s": (0, LONGEST_LEASE_S),
    "JoinRequest.peer_port": (0, 0xFFFF),
    "JoinRequest.weight": (0, 1e6),
    "JoinRequest.min_workers": (0, 0xFFFF),
    "JoinRequest.max_priority": (0, MAX_PRIORITY),
    "Straggler.quorum": (0, 0xFFFF),
    "Straggler.deadline_s": (0, 3600),
    "Tolerance.loss": (0, 1),
    "Tolerance.worker_floor": (0, 1),
    "Tolerance.stale": (0, 1),
    "Resume.job_number": None,  # compared with the job's
    "Resume.generation": None,  # of a view that may be gone
    "Resume.proposed": None,  # of a change that may be unknown
    "ViewReady.generation": None,  # ignored unless it is that of the change in progress
    "ViewReady.position": (0, _MAX_POSITION),
    "ViewEntered.generation": None,  # as above
    "Stalled.generation": None,  # as above
    "Stalled.missing_workers": (0, 0xFFFF),
    "Stalled.silent_s": (0, 1e9),
    "Stalled.silent_tree": (0, 0xFFFF),
    "Submitted.number": (0, _MAX_POSITION),
    "Submitted.num_elements": (0, 1 << 53),
    "AttachRowServer.server_id": (0, 31),
    "AttachRowServer.wire_version": None,  # compared with the switch's
    "AttachRowServer.values_per_packet": None,  # likewise
    "AttachRowServer.udp_port": (1, 0xFFFF),
    "AttachRowServer.ingress_port": (1, 511),
    "AttachRowServer.rows_wanted": (1, 0xFFFF),
    "SetRows.generation": None,  # ignored unless it is that of the view in use
    "SetRows.number": None,  # the server's own
    "SetRows.rows": (0, 0xFFFF),
    "SetRows.epochs": None,  # checked with the id of the server
    "SetRows.exponents": (-128, 127),
    "Heartbeat.sequence": None,  # not read
    "Leave.position": (0, _MAX_POSITION),
    "Barrier.use": None,  # counts as long as the job lives
    "Register.station_id": (0, 0xFFFF),
    "Register.tau_max": (0, 1 << 31),
    "Register.div_max": (0, _MAX_NORM),
    "Register.version": (0, _MAX_POSITION),
    "Register.next_sequence": (0, _MAX_POSITION),
    "Register.staleness": (0, 1 << 31),
    "Register.port": (0, 0xFFFF),
    "Register.momentum": (0, 1),
    "TransferRequested.transfer_id": (0, 1 << 62),
    "TransferRequested.server_id": (0, 0xFFFF),
    "TransferRequested.size_bytes": (1, 1 << 40),
    "TransferRequested.version": (0, _MAX_POSITION),
    "TransferRequested.norm": (0, _MAX_NORM),
    "TransferRequested.clock": (0, _MAX_POSITION),
    "TransferDelivered.worker_id": (0, 0xFFFF),
    "TransferDelivered.transfer_id": (0, 1 << 62),
    "TransferWithdrawn.transfer_id": (0, 1 << 62),
    "UpdatesCommitted.version": (0, _MAX_POSITION),
    "UpdatesCommitted.next_sequence": (0, _MAX_POSITION),
    "ReplicaReady.server_id": (0, 0xFFFF),
    "ReplicaReady.port": (1, 0xFFFF),
    "ReplicaReceived.worker_id": (0, 0xFFFF),
    "ReplicaReceived.transfer_id": (0, 1 << 62),
    "StateReported.version": (0, _MAX_POSITION),
    "StateReported.checksum": None,  # compared with another one
    "StateReported.next_sequence": (0, _MAX_POSITION),
    "StateReported.lsn": (0, _MAX_POSITION),
    "StateReported.step": (0, _MAX_NORM),
    "RateObserved.transfer_id": (0, 1 << 62),
    "RateObserved.size_bytes": (0, 1 << 40),
    "RateObserved.seconds": (0, 1e9),
    "Aggregator.port": (1, 0xFFFF),
    "ModelRelay.port": (1, 0xFFFF),
    "TransferRequested.sum_key": (0, (1 << 32) - 1),
    "TransferRequested.whole_bytes": (0, 1 << 40),
    "SwitchMembers.worker_ids": (0, 0xFFFF),
    "UpdateGathered.group_id": (0, _MAX_POSITION),
    "UpdateGathered.worker_id": (0, 0xFFFF),
    "UpdateGathered.transfer_id": (0, 1 << 62),
    "GroupLeft.group_id": (0, _MAX_POSITION),
    "GroupLeft.transfer_id": (0, 1 << 62),
    "RateObserved.network_wait_s": (0, 1e9),
    "ModelRequested.transfer_id": (0, 1 << 62),
    "ModelRequested.worker_id": (0, 0xFFFF),
    "ModelRequested.size_bytes": (1, 1 << 40),
    "ModelDelivered.transfer_id": (0, 1 << 62),
    "AllreduceRequested.transfer_id": (0, 1 << 62),
    "AllreduceRequested.number": (1, _MAX_POSITION),
    "AllreduceRequested.size_bytes": (1, 1 << 40),
    "AllreduceRequested.num_members": (0, 0xFFFF),
    "AllreduceRequested.wait_s": (0, 86400),
    "AllreduceEnded.transfer_id": (0, 1 << 62),
    "ShowTreeRequest.tensor_bytes": (0, 1 << 50),
}
"""Least and greatest value of each number in a request; None: every value is allowed."""


def check_request(message: Message) -> None:
    """Raise InvalidJobError for the first field with a value that is not allowed."""
    for field, value in message.ListFields():
        values: list[Any] = list(cast("Iterable[Any]", value)) if field.is_repeated else [value]
        name = f"{message.DESCRIPTOR.name}.{field.name}"
        if len(values) > MAX_ITEMS:
            raise InvalidJobError(f"{name} has {len(values)} items; the limit is {MAX_ITEMS}")
        for one in values:
            _check_value(name, field, one)
    for field in message.DESCRIPTOR.fields:
        # ListFields leaves zeros out; some numbers must not be zero.
        allowed = RANGES.get(f"{message.DESCRIPTOR.name}.{field.name}")
        if allowed and allowed[0] > 0 and not field.has_presence:
            _check_number(f"{message.DESCRIPTOR.name}.{field.name}", getattr(message, field.name))


def _check_value(name: str, field: FieldDescriptor, value: Any) -> None:
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        check_request(value)
    elif name in SECRET_TEXTS:
        if problem := token_problem(value):
            raise InvalidJobError(f"{name} {problem}")
    elif field.type == FieldDescriptor.TYPE_STRING:
        if len(value) > MAX_TEXT or not value.isprintable():
            raise InvalidJobError(
                f"{name} is {quoted(value)}; at most {MAX_TEXT} printable characters are allowed"
            )
    elif field.type == FieldDescriptor.TYPE_BYTES:
        if len(value) > MAX_BYTES:
            raise InvalidJobError(f"{name} has {len(value)} bytes; at most {MAX_BYTES} are allowed")
    elif field.type == FieldDescriptor.TYPE_ENUM:
        kinds = cast("EnumDescriptor", field.enum_type)
        if value not in kinds.values_by_number:
            known = ", ".join(kinds.values_by_name)
            raise InvalidJobError(f"{name} is {value}; {known} are allowed, from 0")
    elif field.type != FieldDescriptor.TYPE_BOOL:
        _check_number(name, value)


def _check_number(name: str, value: float) -> None:
    allowed = RANGES.get(name, (0, 0))
    if allowed is None:
        return
    low, high = allowed
    if not math.isfinite(value) or not low <= value <= high:
        raise InvalidJobError(f"{name} is {value}; {low:.0f} to {high:.0f} is allowed")
