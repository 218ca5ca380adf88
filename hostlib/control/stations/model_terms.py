# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What servers and the scheduler tell each other of the models that workers want."""

from __future__ import annotations

from typing import NamedTuple


class ModelHop(NamedTuple):
    """Another worker sends a granted model: the server tells both."""

    sender_transfer_id: int
    """The server's number of that worker's model, which is sent on."""
    address: tuple[str, int]
    """Where the worker of this model listens for it."""
    wait_s: float
    """Without the whole model so long after the grant, the server sends it."""


class ModelRequested(NamedTuple):
    """A server asks for a grant: a worker wants its model.

    TransferGranted or TransferRefused answers, with the same id.
    """

    transfer_id: int
    """Unique in the server's registration, rising."""
    worker_id: int
    size_bytes: int


class ModelDelivered(NamedTuple):
    """The worker has a granted model: its kernel has acknowledged the last byte."""

    transfer_id: int


ModelReport = ModelRequested | ModelDelivered
