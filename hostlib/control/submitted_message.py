# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Encoding what a worker has submitted, for the controller."""

from __future__ import annotations

from .session_api import session_pb2 as api
from .submitted_tensor import SubmittedTensor, SubmittedTensors


def encode_submitted(submitted: SubmittedTensors) -> list[api.Submitted]:
    """Return the messages of a worker's last tensors."""
    complete = [_encode(tensor, is_awaited=False) for tensor in submitted.complete]
    return complete + [_encode(tensor, is_awaited=True) for tensor in submitted.awaited]


def _encode(tensor: SubmittedTensor, *, is_awaited: bool) -> api.Submitted:
    message = api.Submitted(
        number=tensor.number,
        is_awaited=is_awaited,
        num_elements=tensor.num_elements,
        dtype=tensor.dtype,
        operation=tensor.operation,
        label=tensor.printable_label,
    )
    if tensor.tolerance is not None:
        message.tolerance.loss = tensor.tolerance.loss
        message.tolerance.worker_floor = tensor.tolerance.least_of_worker
        message.tolerance.stale = tensor.tolerance.stale
    return message
