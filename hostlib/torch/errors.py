# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of the torch.distributed backend.

HostlibError
`- CollectiveError (also RuntimeError): names rank, collective, cause and remedy
   |- CollectiveInputError (also ValueError): tensors that the collective cannot take
   |- CollectiveTimeoutError (also TimeoutError): no result within the timeout
   |- CollectiveMismatchError: the ranks called different collectives, or with different tensors
   |- RankExitedError: a rank left the job, died, or the job was ended
   |- GroupDestroyedError: the process group was destroyed before the collective ended
   `- GroupJoinError: the process group could not be made
"""

from __future__ import annotations

from ..errors import (
    AllreduceTimeoutError,
    HostlibError,
    JobEndedError,
    MemberError,
    PeerMismatchError,
    SaturationError,
    SessionBrokenError,
    SessionClosedError,
    TensorTooLargeError,
)


class CollectiveError(HostlibError, RuntimeError):
    """A collective of the process group failed."""


class CollectiveInputError(CollectiveError, ValueError):
    """The collective cannot take these tensors."""


class CollectiveTimeoutError(CollectiveError, TimeoutError):
    """The collective did not end within its timeout."""


class CollectiveMismatchError(CollectiveError):
    """The ranks called different collectives, or with different tensors."""


class RankExitedError(CollectiveError):
    """A rank of the group is gone, or its job was ended."""


class GroupDestroyedError(CollectiveError):
    """The process group was destroyed before the collective ended."""


class GroupJoinError(CollectiveError):
    """The process group could not be made."""


_REMEDIES: tuple[tuple[type[Exception], type[CollectiveError], str], ...] = (
    (
        PeerMismatchError,
        CollectiveMismatchError,
        "call the same collectives with the same shapes, dtypes and operations on all ranks",
    ),
    (
        SaturationError,
        CollectiveError,
        "Gloo sums int64",
    ),
    (TensorTooLargeError, CollectiveInputError, "split the tensor"),
    (
        AllreduceTimeoutError,
        CollectiveTimeoutError,
        "then destroy the process group and init again, or restart the ranks",
    ),
    (
        MemberError,
        RankExitedError,
        "restart the ranks, or let torchrun do so with --max-restarts",
    ),
    (
        JobEndedError,
        RankExitedError,
        "restart the ranks, or let torchrun do so with --max-restarts",
    ),
    (
        SessionClosedError,
        GroupDestroyedError,
        "wait for the work before destroy_process_group",
    ),
    (
        SessionBrokenError,
        CollectiveError,
        "destroy the process group and init again, or restart the ranks",
    ),
)


def collective_error(place: str, error: Exception) -> CollectiveError:
    """Return the error of a collective; `place` names rank, collective and group."""
    if isinstance(error, CollectiveMismatchError):  # its text already names cause and remedy
        return CollectiveMismatchError(f"{place}: {error}")
    kinds = ((kind, remedy) for cause, kind, remedy in _REMEDIES if isinstance(error, cause))
    other = (CollectiveError, "destroy the process group and init again")
    kind, remedy = next(kinds, other)
    raised = kind(f"{place}: {error}; {remedy}")
    raised.__cause__ = error
    return raised
