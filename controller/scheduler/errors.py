# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Typed errors of the transfer scheduler.

SchedulerError                    (a ValueError: the caller's input is refused, nothing has changed)
├── InvalidTransferError          a size, norm, version or time that makes no sense
├── UnknownStationError           a host, server or switch that the network does not have
├── NoRouteError                  no route joins two stations
├── DuplicateTransferError        the id was used before
├── UnknownTransferError          no waiting or granted transfer has this id
├── ClockError                    a time before one that the scheduler has seen
└── CommitSequenceError           a place of the commit sequence that is past, or filled already

The package imports no gRPC, so that a simulator can use it alone: these errors carry no status.
"""

from __future__ import annotations


class SchedulerError(ValueError):
    """Base of all errors of this package; the text says what, where and what to do."""


class InvalidTransferError(SchedulerError):
    """A request or an option has a value that makes no sense."""


class UnknownStationError(SchedulerError):
    """The network has no such host, server or switch."""


class NoRouteError(SchedulerError):
    """No route joins the two stations."""


class DuplicateTransferError(SchedulerError):
    """The id of a transfer was used before."""


class UnknownTransferError(SchedulerError):
    """No waiting or granted transfer has this id."""


class ClockError(SchedulerError):
    """The time is not a number, or before one that the scheduler has seen."""


class CommitSequenceError(SchedulerError):
    """The place in the commit sequence is past, or filled already."""
