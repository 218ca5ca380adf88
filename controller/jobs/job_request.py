# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the workers of a job must agree on: its terms, and its token.

Only the SHA-256 of a token is kept, here and in the database. It has no salt, so that an index
finds the job of a token; a token should be drawn at random, and then no list of tokens can exist.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from typing import Final

from ...hostlib.control.session_api import session_pb2 as pb
from ...hostlib.control.transfers_api import transfers_pb2
from ...hostlib.straggler import WAIT_FOR_ALL, StragglerPolicy
from ..errors import InvalidJobError, JobTokenError
from .job import PathChoice

MAX_JOB_WORKERS: Final = 0xFFFF
"""Contributors are counted in 16 bits."""
_LEAST_WEIGHT: Final = 1e-6
_ASK: Final = (
    "set SWITCHFOLD_JOB_TOKEN to what the job's first worker had (row servers: or --hot-job-token)"
)
_DRAW: Final = "a new job needs a new token: export SWITCHFOLD_JOB_TOKEN=$(openssl rand -hex 16)"


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    """The terms of a job, as each of its workers states them."""

    name: str
    num_workers: int
    slots_wanted: int = 0
    """0: the controller decides."""
    straggler: StragglerPolicy = WAIT_FOR_ALL
    weight: float = 1.0
    path: PathChoice = PathChoice.AUTO
    min_workers: int = 1
    max_priority: int = 0

    def __post_init__(self) -> None:
        if not self.name or len(self.name) > 255:
            raise InvalidJobError("the job's name must have 1 to 255 characters")
        if not 1 <= self.num_workers <= MAX_JOB_WORKERS:
            raise InvalidJobError(
                f"job {self.name!r} has {self.num_workers} workers; a job holds 1 to "
                f"{MAX_JOB_WORKERS}"
            )
        if not self.min_workers <= self.num_workers:
            raise InvalidJobError(
                f"job {self.name!r}: min_workers is {self.min_workers}, above the "
                f"{self.num_workers} workers that it starts with"
            )
        if not _LEAST_WEIGHT <= self.weight <= 1 / _LEAST_WEIGHT:
            raise InvalidJobError(
                f"job {self.name!r}: weight {self.weight} is not in {_LEAST_WEIGHT:g} to "
                f"{1 / _LEAST_WEIGHT:g}"
            )

    def __str__(self) -> str:
        slots = self.slots_wanted or "any number of"
        results = "whole results"
        tolerance = self.straggler.tolerance
        if tolerance is not None and tolerance.stale:
            results = f"workers that may do without {tolerance.stale:g} of their results"
        elif tolerance is not None:
            results = (
                f"results that may lack {tolerance.loss:g} of all contributions, and have at least "
                f"{tolerance.least_of_worker:g} of each worker's"
            )
        elif self.straggler.allow_partial:
            quorum = self.straggler.quorum or self.num_workers
            results = f"partial results (quorum {quorum}, deadline {self.straggler.deadline_s} s)"
        return (
            f"{self.num_workers} workers (at least {self.min_workers}), {slots} slots, {results}, "
            f"weight {self.weight:g}, path {self.path}, priority up to {self.max_priority}"
        )


@dataclass(frozen=True)
class JobToken:
    """What is kept of a job's token."""

    digest: bytes = field(default=b"", repr=False)
    """SHA-256; b"": there is no token."""
    run: str = ""
    """Tells jobs apart that have the same token one after the other."""

    @classmethod
    def of(cls, request: pb.JoinRequest | pb.AttachRowServer | transfers_pb2.Register) -> JobToken:
        """Return what is kept of a request's token."""
        if not request.job_token:
            return NO_TOKEN
        run = request.job_run if isinstance(request, pb.JoinRequest) else ""
        return cls(hashlib.sha256(request.job_token.encode()).digest(), run)

    @property
    def is_set(self) -> bool:
        """Whether there is a token."""
        return bool(self.digest)

    def is_same(self, other: JobToken) -> bool:
        """Whether both are of one token, or neither is of any; compares in constant time."""
        return hmac.compare_digest(self.digest, other.digest)


NO_TOKEN: Final = JobToken()


def wrong_token(job_name: str, who: str, given: JobToken, wanted: JobToken) -> JobTokenError:
    """Return why `who` is refused, whose token is not the job's."""
    if not wanted.is_set:
        return JobTokenError(
            f"job {job_name!r} refuses {who}, which has a job token: its first worker gave none, "
            "so anyone may be in it; start all workers and row servers with the same token"
        )
    what = "this is not its job token" if given.is_set else "it has a job token, and none came"
    return JobTokenError(f"job {job_name!r} refuses {who}: {what}; {_ASK}")


def spent_token(job_name: str, who: str, owner: str, *, is_live: bool) -> JobTokenError:
    """Return why `who` is refused, whose token has opened another job, `owner`."""
    state = "is live" if is_live else "has ended"
    return JobTokenError(
        f"job {job_name!r} refuses {who}: its job token is that of job {owner!r}, which {state}; "
        f"{_DRAW}"
    )
