# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The options of a session, and of a single sum."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from numpy.typing import NDArray

from .errors import ConfigurationError
from .loss_tolerance import LossTolerance
from .slots.wire import MAX_PRIORITY
from .straggler import WAIT_FOR_ALL, StragglerPolicy

LONGEST_LEASE_S = 7 * 86400.0
"""The longest lease that a worker asks for."""
NonfinitePolicy = Literal["raise", "propagate"]
ReduceOperation = Literal["sum", "mean", "max", "min"]
Precision = Literal["exact", "block"]
Rounding = Literal["bfloat16"]
LateWait = Literal["silence", "adaptive"]
PathOption = Literal["auto", "switch", "host", "transposed"]
"""Where a job runs: on switches when they have room, only on switches, only between the hosts;
or transposed: on softswitch on the workers' hosts, each of which sums a part of every tensor."""


@dataclass(frozen=True, kw_only=True)
class Summation:
    """How a tensor is reduced; the same on all workers."""

    operation: ReduceOperation = "sum"
    """With "max" and "min": to the largest or smallest element of any worker."""
    nonfinite: NonfinitePolicy = "raise"
    precision: Precision = "exact"
    round_to: Rounding | None = None
    """A narrower format than the array's dtype that exact results are rounded to."""
    label: str = ""
    """Tensors of different labels, or tolerances, are never added up."""
    tolerance: LossTolerance | None = None
    """What the sum may lack, in a job that tolerates loss; None: as the job says."""
    priority: int = 0
    """Of its packets in the queues of switches; the sum does not depend on it."""
    large_first: bool = False
    """Chunks of large values lack nothing, and their packets have the next higher priority."""
    previous: NDArray[Any] | None = field(default=None, compare=False, repr=False)
    """What the result has where this worker does without results; None: zeros."""

    def __post_init__(self) -> None:
        """Check choices."""
        _check_precision(self.precision)
        if self.round_to not in (None, "bfloat16"):
            raise ConfigurationError(
                f"round_to is {self.round_to!r}; choose 'bfloat16', or None for the array's dtype"
            )


@dataclass(frozen=True, kw_only=True)
class SessionOptions:
    """Options of a session; refuses values that cannot work. All times are seconds.

    Those after `lease_s` are sent to the controller when the session joins a job. A session without
    a controller does not use them.
    """

    timeout_s: float = 30.0
    """How long an allreduce may take, unless the call says otherwise."""
    nonfinite: NonfinitePolicy = "raise"
    """NaN or infinity in a sum's tensor: NonFiniteError on all workers, or as IEEE 754 sums them;
    with block precision, NaN for the whole chunk. Likewise NaN in that of a maximum or minimum."""
    precision: Precision = "exact"
    """Float sums: "exact", rounded once; or "block", a scale per packet, for gradients."""
    window: int = 256
    """Most value chunks without result at a time; the job's slots are another limit."""
    batch: int = 128
    """Most datagrams that one receive takes."""
    min_rto_s: float = 0.02
    """Least margin of the retransmission timeout over the smoothed round trip."""
    max_rto_s: float = 1.0
    initial_rto_s: float = 0.1
    """Retransmission timeout before the first measured round trip."""
    coalesce_s: float = 0.012
    """Longest pause before a receive while many chunks wait for results. Pauses make batches
    larger, which costs less work."""
    late_wait: LateWait = "silence"
    """When a sum that tolerates loss lets contributions go that are late, and not lost: "silence",
    once no result has come for a while; "adaptive", once a chunk takes longer than 95 % of the
    chunks before (docs/protocol.md). Each worker may have its own."""
    dynamic_incast: bool = False
    """Adapt how many chunks are under way towards each root of a transposed job, where short queues
    drop what many senders send at once and mark nothing (docs/transport.md). Of use if all workers
    do."""
    retain_bytes: int = 256 << 20
    """Memory for results that other workers may have missed, if results may be partial or the view
    has no switch. Otherwise the number of the job's slots limits what is kept."""
    join_timeout_s: float = 60.0
    """How long joining may take, the other workers' arrival included."""
    taken_wait_s: float = 0.0
    """How long joining asks again while the job still runs with an earlier process in this worker's
    place: for programs that a launcher starts again after a failure."""
    lease_s: float | None = None
    """How long this worker may send nothing, though its connection stands, before the job goes on
    without it: while one long call holds the interpreter lock, or the process is stopped. None:
    `timeout_s`. The controller's own lease is the least."""
    straggler: StragglerPolicy = WAIT_FOR_ALL
    """What the job does about late workers; the same on all workers."""
    weight: float = 1.0
    """The job's share of slots against other jobs."""
    max_priority: int = 0
    """Highest priority that the job asks for, 0 to 7; the same on all workers. Control packets have
    the highest one that the controller grants, and tensors those below: `allreduce(priority=)`."""
    path: PathOption = "auto"
    """Where the job runs."""
    min_workers: int = 1
    """The job ends when fewer workers are left."""
    slots_wanted: int = 0
    """Exactly so many slots; 0: the job's share."""
    switch_name: str = ""
    """The switch that this worker is connected to; "": the controller finds it."""
    ingress_port: int | str = 0
    """Port of that switch, by P4 number or by interface name; 0: the controller finds it."""
    values_per_packet: int = 0
    """Of the switch program that the job needs; 0: any."""
    is_joining: bool = False
    """May join a running job at a tensor boundary; the number of workers is then not compared."""
    peer_address: str | None = None
    """Where other workers reach this one by TCP, for results that they missed and for sums among
    hosts. None: the transport's own address; "": nowhere."""
    token: str = field(default="", repr=False)
    """Secret of the controller, if it wants one."""
    credentials: str | None = None
    """Folder with this worker's certificate, key and authority (see docs/certificates.md); None: no
    TLS, which `insecure` must say, too."""
    insecure: bool = False
    """Without `credentials`: join all the same, without TLS. A warning says so."""
    job_token: str = field(default="", repr=False)
    """Secret of the job: the first worker's is the job's, and whoever joins later must have it. The
    workers also prove it, instead of `token`, to each other by TCP. "": the job is open to all."""
    job_run: str = ""
    """Tells jobs apart that have the same `job_token` one after the other; the same on all workers.
    Without it, a token opens one job, and never another one."""
    metrics: str = ""
    """Where the process serves metrics for Prometheus: a port of 127.0.0.1, or ADDRESS:PORT; "":
    nowhere. Sessions of one process that say the same share it."""

    def __post_init__(self) -> None:
        """Check ranges."""
        for name in ("timeout_s", "min_rto_s", "max_rto_s", "initial_rto_s", "join_timeout_s"):
            if not getattr(self, name) > 0:
                raise ConfigurationError(f"{name} is {getattr(self, name)}; it must be positive")
        if self.window < 1 or self.batch < 1:
            raise ConfigurationError("window and batch must be at least 1")
        if self.retain_bytes < 0:
            raise ConfigurationError(
                f"retain_bytes is {self.retain_bytes}; it must not be negative"
            )
        if self.taken_wait_s < 0:
            raise ConfigurationError(
                f"taken_wait_s is {self.taken_wait_s}; it must not be negative"
            )
        if self.lease_s is not None and not 0 <= self.lease_s < float("inf"):
            raise ConfigurationError(f"lease_s is {self.lease_s}; it must be a time, 0 or above")
        if not 0 <= self.max_priority <= MAX_PRIORITY:
            raise ConfigurationError(
                f"max_priority is {self.max_priority}; it must be 0 to {MAX_PRIORITY}, as a port of"
                f" a switch has at most {MAX_PRIORITY + 1} queues"
            )
        if self.path == "transposed" and self.switch_name:
            raise ConfigurationError(
                f"switch_name is {self.switch_name!r}, but a transposed job runs on the switches"
                " of all its hosts; leave it out, or choose another path"
            )
        if self.coalesce_s < 0:
            raise ConfigurationError(f"coalesce_s is {self.coalesce_s}; it must not be negative")
        if self.late_wait not in ("silence", "adaptive"):
            raise ConfigurationError(
                f"late_wait is {self.late_wait!r}; choose 'silence' or 'adaptive'"
            )
        _check_precision(self.precision)
        if self.nonfinite not in ("raise", "propagate"):
            raise ConfigurationError(
                f"nonfinite is {self.nonfinite!r}; choose 'raise' or 'propagate'"
            )

    @property
    def peer_secret(self) -> str:
        """What the workers prove to each other: the job's token, or else the controller's."""
        return self.job_token or self.token

    @property
    def asked_lease_s(self) -> float:
        """How long this worker asks to be waited for."""
        asked_s = self.timeout_s if self.lease_s is None else self.lease_s
        return min(asked_s, LONGEST_LEASE_S)


def with_moved(
    options: SessionOptions | None, moved: Mapping[str, Any], function: str
) -> SessionOptions:
    """Return the options with those that a caller of `function` gave as keywords of their own.

    Warns of them, as the next release does not take them. Raises TypeError for other keywords.
    """
    options = options or SessionOptions()
    if moved:
        options = replace(options, **moved)
        warnings.warn(
            f"{function} takes {', '.join(moved)} as fields of SessionOptions; the next release"
            " takes no such keywords",
            DeprecationWarning,
            stacklevel=3,
        )
    return options


def _check_precision(precision: str) -> None:
    if precision not in ("exact", "block"):
        raise ConfigurationError(f"precision is {precision!r}; choose 'exact' or 'block'")
