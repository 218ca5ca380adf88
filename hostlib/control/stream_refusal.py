# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Why the controller ended a stream, as an error of ours."""

from __future__ import annotations

from typing import Any

from ..errors import (
    ControllerUnreachableError,
    HostlibError,
    JobRefusedError,
    VersionMismatchError,
    WorkerTakenError,
)
from .controller_addresses import ControllerAddresses, named_leader
from .controller_channel import ControllerChannel
from .grpc_seam import load_grpc

_grpc = load_grpc()
_KINDS: dict[Any, type[HostlibError]] = {
    _grpc.StatusCode.INVALID_ARGUMENT: JobRefusedError,
    _grpc.StatusCode.UNAUTHENTICATED: JobRefusedError,
    _grpc.StatusCode.PERMISSION_DENIED: JobRefusedError,
    _grpc.StatusCode.FAILED_PRECONDITION: VersionMismatchError,
    _grpc.StatusCode.ALREADY_EXISTS: WorkerTakenError,
}


def stream_refusal(
    error: Any, who: str, controllers: ControllerAddresses, channel: ControllerChannel
) -> HostlibError:
    """Return the error; after a broken stream, choose the controller to call next.

    `who` is the end that called, for people.
    """
    code, details = error.code(), error.details()
    if code is _grpc.StatusCode.UNIMPLEMENTED:
        return JobRefusedError(
            f"{who}: the server at {controllers} is no controller of Switchfold, or "
            f"one of an earlier release ({details}); check the address"
        )
    kind = _KINDS.get(code, ControllerUnreachableError)
    if code is _grpc.StatusCode.UNAVAILABLE:
        details = channel.problem() or details
    refusal = kind(f"{who} at {controllers}: {details}")
    if isinstance(refusal, ControllerUnreachableError):
        controllers.follow(named_leader(error) or "")
    return refusal
