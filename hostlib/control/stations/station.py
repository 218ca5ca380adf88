# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's or server's registration at the controller's transfer scheduler.

gRPC is loaded when a station starts.
"""

from __future__ import annotations

import enum
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple, final

from ...credentials.tokens import token_problem
from ...errors import ConfigurationError, HostlibError, JobRefusedError
from ..controller_addresses import ControllerAddresses
from ..kept_stream import KeptStream
from .allreduce_terms import AllreduceEvent, AllreduceReport
from .model_terms import ModelHop, ModelReport
from .replica_terms import ReplicaEvent, ReplicaReport

if TYPE_CHECKING:
    from .station_stream import StationStream

_IDENTITY_BYTES: Final = 16
MOST_NORM: Final = 1e30
"""Schedulers add norms up, and take no greater one."""


class StationKind(enum.Enum):
    """What a station does."""

    WORKER = "worker"
    SERVER = "server"
    REPLICA = "replica"
    """Of the server with its id; it may become that server."""


@dataclass(frozen=True, kw_only=True)
class StationRequest:
    """What a station tells the scheduler about itself."""

    controller: str
    """HOST:PORT or unix:/PATH, or several with commas."""
    job: str
    """Name of the job."""
    kind: StationKind
    station_id: int
    """The worker's id, or the server's position among the servers."""
    host: str
    """Name of the station's host in the controller's file."""
    tau_max: int | None = None
    """Bound on the delay of updates, MLfabric's tau_max; None: none. All stations give the same."""
    div_max: float | None = None
    """Bound on the distance of a replica, MLfabric's Div_max; None: none. Likewise."""
    staleness: int | None = None
    """How many iterations a worker may be ahead of the slowest one; None: any number. Likewise."""
    momentum: float | None = None
    """Of a worker's optimiser; None: its steps are not bounded by norms of updates."""
    reached_at: tuple[str, int] | None = None
    """Of a replica: the address and port that workers connect to."""
    token: str = field(default="", repr=False)
    """The controller's token."""
    job_token: str = field(default="", repr=False)
    """The job's token, if it has one."""
    credentials: str | None = None
    """Folder with this host's certificate, key and authority; None: no TLS."""
    aggregator: tuple[str, int] | None = None
    """Where this worker gathers updates of others while its host is idle; None: it does not."""
    relay: tuple[str, int] | None = None
    """Where this worker takes models from others, and it sends its own on; None: it does not."""
    identity: bytes = field(default_factory=lambda: secrets.token_bytes(_IDENTITY_BYTES))
    """Of this process: 16 random bytes."""

    def __post_init__(self) -> None:
        where = f"scheduled updates of job {self.job!r}"
        if not self.controller or not self.job or not self.host:
            raise ConfigurationError(
                f"{where}: controller {self.controller!r}, host {self.host!r}; give"
                " a controller, a job's name and the name of this host in the controller's file"
            )
        if self.tau_max is not None and not 0 <= self.tau_max < 1 << 32:
            raise ConfigurationError(f"{where}: tau_max {self.tau_max}; give 0 to 2^32 - 1")
        if self.staleness is not None and not 0 <= self.staleness < 1 << 31:
            raise ConfigurationError(f"{where}: staleness {self.staleness}; give 0 to 2^31 - 1")
        if self.staleness is not None and self.tau_max is not None:
            raise ConfigurationError(
                f"{where}: staleness {self.staleness} and tau_max {self.tau_max}; only asynchronous"
                " updates are dropped for their delay: leave out one of them"
            )
        if self.div_max is not None and not self.div_max >= 0:
            raise ConfigurationError(f"{where}: div_max {self.div_max}; give 0 or more")
        if len(self.identity) != _IDENTITY_BYTES:
            raise ConfigurationError(f"{where}: an identity has {_IDENTITY_BYTES} bytes")
        for whose, token in ("controller", self.token), ("job", self.job_token):
            if problem := token_problem(token):
                raise ConfigurationError(f"{where}: the {whose}'s token {problem}")

    @property
    def who(self) -> str:
        """Name the station, for people."""
        return f"{self.kind.value} {self.station_id} of job {self.job!r}"


class ServerProgress(NamedTuple):
    """How far a server is when it registers; of workers, zeros."""

    version: int = 0
    """Number of updates that its model contains."""
    next_sequence: int = 0
    """One above the last place of the commit sequence that it knows; 0: none."""
    catches_up: bool = False
    """Of a replica: it can read its server's log, and joins while updates go on."""


class StationRegistered(NamedTuple):
    """The scheduler knows this station; what it has not answered is to be sent again."""

    grant_wait_s: float
    """A worker waits no longer than this for an answer."""
    next_transfer_id: int
    next_sequence: int
    """To a server: the first place that is still open; nothing comes for those before."""
    registration: int = 0
    """Number of this registration, for reports that belong to it."""
    allowed: int | None = None
    """To a server with a replica: it may apply the places below this one."""


class StationCut(NamedTuple):
    """The stream broke; it is opened again, and then the station registers anew."""


class GrantedSpan(NamedTuple):
    """A part of a granted transfer's schedule; times in seconds since the grant arrived."""

    start_s: float
    end_s: float
    rate_bits_per_s: int
    """Of payload."""


class GroupHop(NamedTuple):
    """Where a granted update is added to others: at a worker whose host is idle."""

    group_id: int
    num_members: int
    worker_id: int
    """Of the aggregator."""
    address: tuple[str, int]
    """Where it listens."""
    outcome_s: float
    """A member without an outcome so long after the grant sends the update to the server itself."""
    is_switch: bool = False
    """The server's switch adds it up, as the server tells; the fields before are of no use then."""


class TransferGranted(NamedTuple):
    """A worker may send an update within these spans; after the last one, at its rate.

    Likewise a server a model, which has no sequence and no factor.
    """

    transfer_id: int
    spans: tuple[GrantedSpan, ...]
    """In their order, without overlaps. None: at once, since no link is on the path."""
    sequence: int
    """The update's place in the server's commit sequence."""
    factor: float
    """Of the learning rate: the server scales the update by it; of a group, the member does."""
    hop: GroupHop | None = None
    """None: the update goes to the server."""
    replica_spans: tuple[GrantedSpan, ...] | None = None
    """When the update goes to the server's replica as well; None: it does not."""
    model_hop: ModelHop | None = None
    """None: the server sends the model."""


class TransferDropped(NamedTuple):
    """A worker frees an update and takes the newest model."""

    transfer_id: int
    reason: str
    delay: int
    """The least delay that the update would have had."""


class TransferRefused(NamedTuple):
    """A worker does not ask for this transfer again; the stream ends, and is opened again.

    A server sends this model without a grant; its stream stays.
    """

    transfer_id: int
    reason: str


class CommitExpected(NamedTuple):
    """To a server: this update has a place in its commit sequence."""

    sequence: int
    worker_id: int
    transfer_id: int
    factor: float
    due_s: float
    """When it should have arrived, in seconds since this message arrived."""
    earliest_s: float
    """When it has arrived if links carry more than planned: its grant may be faster than that."""
    size_bytes: int
    """For which its worker has asked; 0: not told."""
    begins_s: float = 0.0
    """When its worker may begin to send it, in seconds since this message arrived."""


class CommitSkipped(NamedTuple):
    """To a server: nothing comes for this place."""

    sequence: int


class ExpectedMember(NamedTuple):
    """One of the updates of a group."""

    worker_id: int
    transfer_id: int


class GatherExpected(NamedTuple):
    """To an aggregator: the updates of a group come, and it sends their sum."""

    group_id: int
    server_id: int
    members: tuple[ExpectedMember, ...]
    """By place in the server's commit sequence."""
    spans: tuple[GrantedSpan, ...]
    """Of the sum; none: at once."""
    gather_s: float
    """The sum leaves so long after this message, without what is missing then."""


class SwitchGroupExpected(NamedTuple):
    """To a server: its workers are granted a group, whose updates the switch adds up."""

    group_id: int
    members: tuple[ExpectedMember, ...]
    """By place in the server's commit sequence."""
    start_s: float
    """The members send from then on, in seconds after this message."""
    gather_s: float
    """The server goes on so long after this message without those that have not joined."""


StationEvent = (
    StationRegistered
    | StationCut
    | TransferGranted
    | TransferDropped
    | TransferRefused
    | CommitExpected
    | CommitSkipped
    | GatherExpected
    | SwitchGroupExpected
    | AllreduceEvent
    | ReplicaEvent
)


class TransferRequested(NamedTuple):
    """A worker asks for a grant."""

    transfer_id: int
    server_id: int
    size_bytes: int
    version: int
    """Of the model that the update was computed on."""
    norm: float
    sum_key: int = 0
    """Updates of equal keys may be added up; 0: this one travels alone."""
    clock: int = 0
    """Iterations that the worker has ended, in jobs that are not asynchronous."""
    whole_bytes: int = 0
    """Of a sparse update: size of one of all values, up to which sums may grow; 0: it has all."""


class TransferDelivered(NamedTuple):
    """An update has arrived at a server."""

    worker_id: int
    transfer_id: int
    is_granted: bool
    """False: it came without a grant, or after its place was given up."""
    is_refused: bool = False
    """The server does not apply it."""
    is_early: bool = False
    """It came by itself, long before its granted time."""


class TransferWithdrawn(NamedTuple):
    """A worker does not wait for an answer any longer, or gives an update up.

    Likewise a server, with a model.
    """

    transfer_id: int
    is_sent_ungranted: bool


class UpdatesCommitted(NamedTuple):
    """A server's model contains so many updates now."""

    version: int
    next_sequence: int = 0
    """The first place of the commit sequence that is not over."""


class RateObserved(NamedTuple):
    """How fast a granted update went, from its first byte until its last one was acknowledged.

    Likewise a model; the server says so before ModelDelivered.
    """

    transfer_id: int
    size_bytes: int
    seconds: float
    network_wait_s: float
    """Of these, how long the network took less than the grant allowed."""


class UpdateGathered(NamedTuple):
    """An aggregator has an update of a group."""

    group_id: int
    worker_id: int
    transfer_id: int


class GroupLeft(NamedTuple):
    """A member sends its update to the server itself: the sum does not come, or is of no effect."""

    group_id: int
    transfer_id: int


class SwitchMembers(NamedTuple):
    """A server's switch can add up the updates of these workers; of none: there are no groups."""

    worker_ids: tuple[int, ...]


StationReport = (
    TransferRequested
    | TransferDelivered
    | TransferWithdrawn
    | UpdatesCommitted
    | RateObserved
    | UpdateGathered
    | GroupLeft
    | SwitchMembers
    | ModelReport
    | AllreduceReport
    | ReplicaReport
)


@final
class TransferStation:
    """One stream to the scheduler, opened again whenever it breaks.

    The callbacks are called from the station's thread, one at a time, and must return soon.
    """

    def __init__(
        self,
        request: StationRequest,
        *,
        progress: Callable[[], ServerProgress] = ServerProgress,
        on_event: Callable[[StationEvent], None],
        on_failed: Callable[[HostlibError], None],
    ) -> None:
        """Call `start` to open the stream.

        `progress()` is asked from the station's thread whenever it registers.
        `on_failed(error)`: the controller refuses this station, and there is no further attempt,
        unless it has named the request that it refuses (TransferRefused): JobRefusedError,
        VersionMismatchError (stations that disagree), or WorkerTakenError when another process has
        its place.
        """
        self._controllers = ControllerAddresses(request.controller)
        self._request = request
        self._progress = progress
        self._on_event = on_event
        self._registration = 0
        self._has_refused_one = False
        self._kept = KeptStream["StationStream", StationEvent](
            self._open,
            lambda stream: stream.events(),
            on_event=self._tell,
            on_failed=on_failed,
            on_broken=lambda: on_event(StationCut()),
            may_reopen=self._may_reopen,
            name=f"switchfold-{request.kind.value}-station",
            meanwhile="updates travel without grants until it is back",
        )

    def start(self) -> None:
        """Register in a thread of the station's own; keeps trying while nobody answers.

        Raises ConfigurationError when the registration cannot be sent.
        """
        from .station_stream import check_station  # noqa: PLC0415 - loads gRPC

        check_station(self._request)
        self._kept.start()

    def send(self, report: StationReport, registration: int) -> None:
        """Tell the scheduler something, if this registration is the present one.

        If not, it is not sent, now or later: whoever learns of the next registration sends again
        what matters still, in the right order. Raises ConfigurationError for a norm that is none.
        """
        if isinstance(report, TransferRequested):
            check_norm(report.norm)
        with self._kept.lock:
            if self._kept.stream is not None and registration == self._registration:
                self._kept.stream.send(report)

    def become_server(self) -> None:
        """Register as the server from the next stream on: this replica has been promoted."""
        self._request = replace(self._request, kind=StationKind.SERVER)

    def close(self) -> None:
        """End the registration; no callback comes later. Not to be called from a callback."""
        self._kept.close()

    def _open(self) -> StationStream:
        from .station_stream import StationStream  # noqa: PLC0415 - loads gRPC

        self._has_refused_one = False
        with self._kept.lock:
            self._registration += 1
        return StationStream(self._controllers, self._request, self._progress())

    def _tell(self, event: StationEvent) -> None:
        if isinstance(event, StationRegistered):
            event = event._replace(registration=self._registration)
        is_worker = self._request.kind is StationKind.WORKER
        self._has_refused_one |= is_worker and isinstance(event, TransferRefused)
        self._on_event(event)

    def _may_reopen(self, error: HostlibError) -> bool:
        """Return whether a refusal is about one request, which is not made again."""
        return self._has_refused_one and type(error) is JobRefusedError


def check_norm(norm: float) -> None:
    """Raise ConfigurationError unless a norm is from 0 to MOST_NORM."""
    if not 0 <= norm <= MOST_NORM:
        raise ConfigurationError(
            f"norm {norm} of an update; give its Euclidean norm, from 0 to {MOST_NORM:g}. Does the"
            " training diverge?"
        )
