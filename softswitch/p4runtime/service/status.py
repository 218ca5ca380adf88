# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of the P4Runtime server, and their form in gRPC.

SoftswitchError
├── RequestError               one request or update is refused, with a canonical code
│   └── PipelineConfigError    a forwarding pipeline configuration cannot be realised
└── AddressInUseError          the server's own address is taken
"""

from collections.abc import Sequence
from typing import Any

import grpc
from finsy.proto import p4r, rpc_code, rpc_status
from google.protobuf import any_pb2

from ...errors import (
    BadArgumentError,
    CacheError,
    CompilerNotFoundError,
    EntryExistsError,
    EntryNotFoundError,
    InUseError,
    PortError,
    SoftswitchError,
    SwitchStateError,
    TableFullError,
    UnsupportedControlError,
)

DETAILS_KEY = "grpc-status-details-bin"
STATUS_CHARACTERS = 4000
"""Most characters of a gRPC status: clients refuse answers with more than 8 KiB of status."""
MESSAGE_BUDGET_BYTES = 6 * 1024
"""Room for texts: by default, gRPC clients refuse trailing metadata over 8 KiB."""
DETAILS_BUDGET_BYTES = 56 * 1024
"""Room for all details: finsy accepts 64 KiB of metadata."""

_STATUS_CODES = {code.value[0]: code for code in grpc.StatusCode}
_OK_DETAIL = any_pb2.Any(
    type_url="type.googleapis.com/p4.v1.Error", value=p4r.Error().SerializeToString()
)


class RequestError(SoftswitchError):
    """A request, or one update of a Write, is refused."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        """Canonical code (google.rpc.Code)."""
        self.message = message
        """Which field, what is wrong, what to do."""

    @property
    def grpc_code(self) -> grpc.StatusCode:
        """The same code in gRPC's enumeration."""
        return _STATUS_CODES[self.code]


class PipelineConfigError(RequestError):
    """The switch cannot realise a forwarding pipeline configuration; INVALID_ARGUMENT."""

    def __init__(self, summary: str, problems: Sequence[str] = ()) -> None:
        text = summary
        if problems:
            text = f"{summary}:\n" + "\n".join(f"- {problem}" for problem in problems)
        super().__init__(rpc_code.INVALID_ARGUMENT, text)
        self.problems = tuple(problems)


class AddressInUseError(SoftswitchError):
    """The address for the P4Runtime server is taken or does not exist on this machine."""


_CODES_OF_ERRORS: list[tuple[type[SoftswitchError], int]] = [
    (EntryNotFoundError, rpc_code.NOT_FOUND),
    (EntryExistsError, rpc_code.ALREADY_EXISTS),
    (TableFullError, rpc_code.RESOURCE_EXHAUSTED),
    (InUseError, rpc_code.FAILED_PRECONDITION),
    (UnsupportedControlError, rpc_code.UNIMPLEMENTED),
    (BadArgumentError, rpc_code.INVALID_ARGUMENT),
    (PortError, rpc_code.UNAVAILABLE),
    (SwitchStateError, rpc_code.FAILED_PRECONDITION),
    (CompilerNotFoundError, rpc_code.FAILED_PRECONDITION),
    (CacheError, rpc_code.FAILED_PRECONDITION),
]


def request_error(error: SoftswitchError) -> RequestError:
    """Return an error of the switch as the refusal of a request; a RequestError as it is."""
    if isinstance(error, RequestError):
        return error
    for kind, code in _CODES_OF_ERRORS:
        if isinstance(error, kind):
            return RequestError(code, str(error))
    return RequestError(rpc_code.INTERNAL, str(error))


def shortened(message: str) -> str:
    """Return a message that fits into a gRPC status: cut after a line, with a note on the rest."""
    if len(message) <= STATUS_CHARACTERS:
        return message
    kept = message[:STATUS_CHARACTERS].rpartition("\n")[0] or message[:STATUS_CHARACTERS]
    lines = message.count("\n") - kept.count("\n")
    return f"{kept}\n  and {lines} more: `softswitch show` lists all"


def write_details(errors: Sequence[RequestError | None]) -> tuple[str, bytes]:
    """Return gRPC message and serialised google.rpc.Status for a Write with failed updates.

    The status has one detail per update, in order, and OK if `errors` holds None. Beyond
    `MESSAGE_BUDGET_BYTES`, details have no text. If even the codes exceed `DETAILS_BUDGET_BYTES`
    (about 1,400 updates), the status has no details, and the message says so. The message always
    names the first failure.
    """
    failed = [index for index, error in enumerate(errors) if error is not None]
    first = errors[failed[0]]
    assert first is not None
    message = (
        f"{len(failed)} of {len(errors)} updates failed; "
        f"first: update {failed[0]}: {first.grpc_code.name}: {first.message}"
    )
    status = rpc_status.Status(code=rpc_code.UNKNOWN, message=message)
    budget = MESSAGE_BUDGET_BYTES
    for error in errors:
        if error is None:
            status.details.append(_OK_DETAIL)
            continue
        budget -= len(error.message)
        text = error.message if budget > 0 else ""
        detail = p4r.Error(canonical_code=error.code, message=text)
        status.details.add().Pack(detail)
    if status.ByteSize() > DETAILS_BUDGET_BYTES:
        message += "; too many updates for details: send batches of 1,000 to get one per update"
        status = rpc_status.Status(code=rpc_code.UNKNOWN, message=message)
    return message, status.SerializeToString()


def packet_out_error(error: RequestError, packet: p4r.PacketOut) -> p4r.StreamMessageResponse:
    """Report a refused packet-out on its stream, with the packet."""
    return _stream_error(error, packet_out=p4r.PacketOutError(packet_out=packet))


def digest_ack_error(error: RequestError, ack: p4r.DigestListAck) -> p4r.StreamMessageResponse:
    """Report a refused acknowledgement on its stream."""
    return _stream_error(error, digest_list_ack=p4r.DigestListAckError(digest_list_ack=ack))


def other_stream_error(
    error: RequestError, request: p4r.StreamMessageRequest
) -> p4r.StreamMessageResponse:
    """Report a stream message of another kind."""
    return _stream_error(error, other=p4r.StreamOtherError(other=request.other))


def _stream_error(error: RequestError, **details: Any) -> p4r.StreamMessageResponse:
    text = shortened(error.message)
    return p4r.StreamMessageResponse(
        error=p4r.StreamError(canonical_code=error.code, message=text, **details)
    )
