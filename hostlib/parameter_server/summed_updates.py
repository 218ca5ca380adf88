# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The sum of scheduled updates of several workers, as it is logged and counted.

A sum counts as all of its updates, or not at all: what one of them has added cannot be taken out.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from ..errors import StorageDamagedError

_COUNT: Final = struct.Struct("=Q")
_MEMBER: Final = struct.Struct("=QQQQ")


class SumMember(NamedTuple):
    """One of the updates in a sum."""

    worker_id: int
    incarnation: int
    """Of the worker's process."""
    number: int
    """Of the update, in that process."""
    open_from: int
    """The worker knows the outcome of all its updates before this number."""


class UpdateCounts(Protocol):
    """What the tables know of a worker's scheduled updates."""

    incarnation: int
    num_commits: int
    updates: list[int]


def head_bytes(num_members: int) -> int:
    """Return how many bytes of a SUM's payload name its members."""
    return _COUNT.size + num_members * _MEMBER.size


def pack_members_into(payload: memoryview, members: Sequence[SumMember]) -> None:
    """Write the first bytes of a SUM's payload."""
    _COUNT.pack_into(payload, 0, len(members))
    for position, member in enumerate(members):
        _MEMBER.pack_into(payload, head_bytes(position), *member)


def unpack_members(payload: memoryview) -> tuple[list[SumMember], memoryview]:
    """Return the members of a sum, and its keys and values. Raises StorageDamagedError."""
    count = _COUNT.unpack_from(payload)[0] if len(payload) >= _COUNT.size else 0
    if not count or len(payload) < head_bytes(count):
        raise StorageDamagedError(f"a SUM of {len(payload)} bytes in the log of a server")
    heads = payload[_COUNT.size : head_bytes(count)]
    members = [SumMember._make(fields) for fields in _MEMBER.iter_unpack(heads)]
    return members, payload[head_bytes(count) :]


def are_open(members: Sequence[SumMember], workers: Sequence[UpdateCounts]) -> bool:
    """Return whether none of the updates has been applied, and none is of a replaced process."""
    return len({member[:3] for member in members}) == len(members) and all(
        member.worker_id < len(workers)
        and workers[member.worker_id].incarnation == member.incarnation
        and member.number >= member.open_from
        and member.number not in workers[member.worker_id].updates
        for member in members
    )


def count_update(worker: UpdateCounts, number: int, open_from: int) -> None:
    """Note that an update of a worker has been applied."""
    kept = [each for each in worker.updates if each >= open_from]
    worker.updates = sorted((*kept, number))
    worker.num_commits += 1
