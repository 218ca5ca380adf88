# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's membership in a job: allreduce, barrier, close."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, final

from numpy.typing import NDArray

from .closable import Closable
from .control.controller_seam import ControllerLink
from .control.view import JobView, check_worker
from .credentials import Role, credentials_in, require_choice
from .engine.engine import Engine
from .errors import (
    AddressUnreachableError,
    ConfigurationError,
    HostlibError,
    MulticastUnavailableError,
    SessionClosedError,
    SessionError,
)
from .future import AllgatherFuture, AllreduceFuture
from .loss_tolerance import LossTolerance
from .observing.logs import set_up_worker_logs
from .options import (
    NonfinitePolicy,
    Precision,
    ReduceOperation,
    Rounding,
    SessionOptions,
    Summation,
    with_moved,
)
from .peers import PeerServer
from .session_checks import (
    check_large_first,
    check_maximum,
    check_stale,
    check_tolerance,
    checked_previous,
    checked_priority,
)
from .transports.base import Transport, trees_transport
from .transports.station_mac import stated_station

if TYPE_CHECKING:
    from .observing.worker_metrics import SessionMeter

_logger = logging.getLogger(__name__)


@final
class Session(Closable):
    """Sums tensors with the other workers of a job. Use `join`, or `direct` without a controller.

    One thread moves packets; all methods may be called from any thread. A session that failed stays
    broken: every later allreduce raises SessionBrokenError until the job is joined again.
    """

    def __init__(
        self,
        view: JobView,
        transport: Transport,
        options: SessionOptions,
        link: ControllerLink | None,
        peers: PeerServer | None = None,
        *,
        meter: SessionMeter | None = None,
    ) -> None:
        self.options = options
        self._meter = meter
        self._transport = transport
        self._link = link
        self._lock = threading.Lock()
        self._is_closed = False
        self._peers = peers
        check_stale(view)
        if peers is not None:
            peers.enter_job(view.job, view.worker_id)
        self._engine = Engine(
            view,
            transport,
            options,
            first_tensor=0 if link is None else link.boundary,
            link=link,
            peers=peers,
        )
        _logger.info(
            "session of worker %d: %s, %s; %s",
            *(view.worker_id, view, options, transport.offloads),
        )
        if link is not None:
            link.listen(self._engine)
        if meter is not None:
            meter.attach(lambda: self.statistics)

    @classmethod
    def direct(
        cls,
        view: JobView,
        transport: Transport,
        options: SessionOptions | None = None,
        peers: PeerServer | None = None,
    ) -> Self:
        """Start in a view that was set up without a controller; for tests and experiments.

        The peer server gives results to other members, and carries values if the view has no
        switch. The session closes it.
        """
        return cls(view, transport, options or SessionOptions(), None, peers)

    @property
    def view(self) -> JobView:
        """The view that this worker runs in: members, trees, generation, granted priority."""
        return self._engine.view

    @property
    def first_tensor(self) -> int:
        """Number of this session's first allreduce, counted from the job's first."""
        return 0 if self._link is None else self._link.boundary

    @classmethod
    def join(
        cls,
        *,
        controller: str,
        job: str,
        worker_id: int,
        num_workers: int,
        transport: Transport,
        options: SessionOptions | None = None,
        **moved: Any,
    ) -> Self:
        """Join a job at the controller ("host:port") and wait for all of its workers.

        `options` hold what the worker asks of its job. Until the next release those options are
        also taken as keywords (`moved`), with a DeprecationWarning. Raises JoinError and its kinds;
        the transport is closed when joining fails.
        """
        # Only joining needs grpc; importing this module does not.
        try:
            from .control.controller_link import GrpcControllerLink, JoinRequest  # noqa: PLC0415
        except ModuleNotFoundError as exc:
            transport.close()
            raise ConfigurationError(
                f"joining a job needs the Python module {exc.name}, which is missing; run"
                " pip install '.[controller]' in a checkout"
            ) from exc

        with contextlib.ExitStack() as undo:
            undo.callback(transport.close)
            set_up_worker_logs()
            options = with_moved(options, moved, "Session.join")
            if not options.is_joining:
                check_worker(worker_id, num_workers)
            require_choice(
                options.credentials,
                who=f"worker {worker_id} of job {job!r}",
                role=Role.WORKER,
                options=(
                    "SessionOptions.credentials or SWITCHFOLD_CREDENTIALS",
                    "SessionOptions.insecure",
                ),
                insecure=options.insecure,
            )
            if options.path == "transposed":
                trees_transport(transport)
            meter = _open_meter(options, job, worker_id)
            if meter is not None:
                undo.callback(meter.close)
            peers = _open_peers(transport, options)
            if peers is not None:
                undo.callback(peers.close)
            request = JoinRequest(
                job=job,
                worker_id=worker_id,
                num_workers=num_workers,
                local=stated_station(transport.local, options.ingress_port),
                peers=(peers.address, peers.port) if peers is not None else ("", 0),
                options=options,
            )
            link = GrpcControllerLink(controller, request)
            undo.callback(link.close)
            view = link.join(options.join_timeout_s, options.taken_wait_s)
            session = cls(view, transport, options, link, peers, meter=meter)
            undo.pop_all()
        return session

    def allreduce(  # noqa: PLR0913 - a user's options of one call
        self,
        array: NDArray[Any],
        op: ReduceOperation = "sum",
        *,
        precision: Precision | None = None,
        round_to: Rounding | None = None,
        timeout_s: float | None = None,
        nonfinite: NonfinitePolicy | None = None,
        label: str = "",
        tolerance: LossTolerance | None = None,
        priority: int = 0,
        large_first: bool = False,
        previous: NDArray[Any] | None = None,
    ) -> AllreduceFuture:
        """Sum (or average) an array of any shape over all workers; return a future at once.

        Takes float16, float32, float64 and int32. Every worker must submit the same sequence of
        shapes, dtypes, operations and precisions, and gets the same bytes.

        With `op` "max" or "min", each element is the largest or smallest one of the workers', of
        float32 or int32, bit for bit: infinities and denormals are numbers, -0.0 is below 0.0. If
        any worker's element is NaN, the result is the NaN with bits 0x7fc00000, or with
        `nonfinite="raise"` NonFiniteError on all workers. `precision` does not matter. Maxima lack
        no contribution that was lost, whatever the job tolerates; `tolerance` and `large_first`
        raise ConfigurationError. `precision` of sums of floats:

        - "exact", the default: each element is the true sum, rounded once to the dtype (half to
          even). Its error is at most half a unit in the last place, whatever the values. A mean
          is the true sum divided by the contributors, rounded once.
        - "block": the values of a packet share one scale, 2^-28 of their largest at 4 workers. For
          gradients: half the packets of float32, a third of float64. Values far below their
          neighbours are lost; `hostlib.summation.quantization` states the bound.

        `round_to="bfloat16"` rounds exact float32 results once to bfloat16 instead. The array must
        not change until the future is done. `precision`, `timeout_s` and `nonfinite` override the
        session's options. Tensors of different operation, precision, `label` or `tolerance` are
        never added up: the future then ends with PeerMismatchError on all workers, which names who
        has what, or at a timeout below 2 s with AllreduceTimeoutError.

        In a job with `StragglerPolicy(tolerance=...)`, sums of int32, and of floats with block
        precision, may lack lost contributions; `tolerance` takes the place of the job's, the same
        on all workers. `AllreduceFuture.delivery` says what is missing. Exact sums of floats lack
        nothing. Raises ConfigurationError for a tolerance in another job, or of an exact sum.

        With `LossTolerance(stale=...)`, a worker may do without results that it has lost, and the
        workers do not get the same bytes. The result has the values of `previous` there, an array
        like the input that must not change until the future is done, or zeros without one;
        `AllreduceFuture.delivery.stale` says where.

        In switches, packets of a higher `priority` leave before those of a lower one, of this job
        and of others. Tensors of one session start in the order of the calls, whatever their
        priorities; see `allreduce_group`. A session may use 0, the lowest, to
        `SessionOptions.max_priority` - 1; others raise ConfigurationError. Where the controller
        grants less, the highest that it grants for tensors takes their place.

        With `large_first`, what is lost of the larger half of the packets, by the scales that the
        workers agree on, is always sent again, so that sums lack small values. In switches, these
        packets have the next higher priority, if it is granted. All workers should say the same.
        Raises ConfigurationError for int32 and exact sums, which have no scales, and in a job that
        neither tolerates loss nor asks for a `max_priority` of 2 or more.
        """
        (future,) = self.allreduce_group(
            [array],
            op,
            precision=precision,
            round_to=round_to,
            timeout_s=timeout_s,
            nonfinite=nonfinite,
            label=label,
            tolerance=tolerance,
            priorities=[priority],
            large_first=large_first,
            previous=None if previous is None else [previous],
        )
        return future

    def allreduce_group(  # noqa: PLR0913 - as `allreduce`
        self,
        arrays: Sequence[NDArray[Any]],
        op: ReduceOperation = "sum",
        *,
        priorities: Sequence[int],
        precision: Precision | None = None,
        round_to: Rounding | None = None,
        timeout_s: float | None = None,
        nonfinite: NonfinitePolicy | None = None,
        label: str = "",
        tolerance: LossTolerance | None = None,
        large_first: bool = False,
        previous: Sequence[NDArray[Any]] | None = None,
    ) -> list[AllreduceFuture]:
        """Reduce arrays as `allreduce` does, a higher priority first; return their futures.

        Arrays of the same priority go in the order of the list. All workers must give the same
        priorities, as the tensors of a session have one order for all of them. The timeout is that
        of each array. `previous` has one array for each.
        """
        if len(priorities) != len(arrays):
            raise ConfigurationError(
                f"{len(arrays)} arrays and {len(priorities)} priorities; give each array its own"
            )
        olds = checked_previous(self.view, arrays, previous)
        check_maximum(op, tolerance=tolerance, large_first=large_first)
        submissions: list[tuple[NDArray[Any], Summation]] = []
        for array, priority, old in zip(arrays, priorities, olds, strict=True):
            if tolerance is not None:
                check_tolerance(self.view, tolerance, array, precision or self.options.precision)
            if large_first:
                check_large_first(
                    self.view, self.options, array, precision or self.options.precision
                )
            summation = Summation(
                operation=op,
                nonfinite=nonfinite or self.options.nonfinite,
                precision=precision or self.options.precision,
                round_to=round_to,
                label=label,
                tolerance=tolerance,
                priority=checked_priority(self.options, priority),
                large_first=large_first,
                previous=old,
            )
            submissions.append((array, summation))
        futures = self._engine.submit(submissions, self._checked(timeout_s))
        if self._meter is not None:
            self._meter.clock.watch(futures)
        return futures

    @property
    def can_multicast(self) -> bool:
        """Whether one switch of the present view copies blocks to all workers: `allgather`."""
        return self.view.can_multicast

    def allgather(self, array: NDArray[Any], *, timeout_s: float | None = None) -> AllgatherFuture:
        """Send an array to all other workers, and get theirs; return a future at once.

        Each worker sends its block once, and the switch copies it. The result is a list of arrays,
        bit for bit, in the order of the view's members, this worker's own among them. Takes any
        dtype of plain bytes; shape and dtype are the same on all workers. Allgathers and allreduces
        are one sequence, which all workers submit in the same order. The array must not change
        until the future is done. Raises MulticastUnavailableError if no switch can copy to all
        (see `can_multicast`); a view change may also end the future with it, on all workers.
        """
        if not self.can_multicast:
            view = self.view
            raise MulticastUnavailableError(
                f"job {view.job} has {len(view.trees)} trees over its {view.num_workers} workers;"
                " a switch copies blocks if all workers are connected to it; send the arrays by"
                " other means"
            )
        future = self._engine.gather(array, self._checked(timeout_s))
        if self._meter is not None:
            self._meter.clock.watch((future,))
        return future

    def _checked(self, timeout_s: float | None) -> float:
        if timeout_s is None:
            timeout_s = self.options.timeout_s
        if not timeout_s > 0:  # NaN would wait for ever
            raise ConfigurationError(f"timeout_s is {timeout_s}; it must be positive")
        return timeout_s

    def barrier(self, name: str, timeout_s: float = 60.0) -> None:
        """Wait until every worker of the job has called this with the same name.

        Raises BarrierTimeoutError, SessionClosedError, or SessionError without a controller.
        """
        if self._is_closed:
            raise SessionClosedError(f"barrier {name!r}: the session is closed")
        if self._link is None:
            raise SessionError(f"barrier {name!r}: this session has no controller; use join")
        self._link.barrier(name, timeout_s)

    @property
    def statistics(self) -> dict[str, int | float]:
        """Packet counts since the start, and three present values.

        These are `round_trip_s` and `exponent_round_trip_s`, the smoothed round trips of values and
        exponents in seconds, and `window`, in chunks.
        `value_packets_marked` counts results that met congestion. `value_packets_retransmitted`
        counts the packets that were sent again: `value_packets_fast_retransmitted` of them because
        later results had shown a loss, `value_packets_probe_retransmitted` after silence, and the
        others because a timer had run out. `incast_trials` counts how often another number of
        chunks towards each root was tried, with `dynamic_incast`.
        """
        counts = self._engine.statistics
        for cause, number in list(self._transport.counters.items()):
            counts[f"refused_{cause}"] += number
        now = {
            "round_trip_s": self._engine.round_trip_s,
            "exponent_round_trip_s": self._engine.exponent_round_trip_s,
            "window": self._engine.window,
        }
        return {**counts, **now}

    def close(self) -> None:
        """End the session; allreduces under way end with SessionClosedError. Never hangs."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        if self._meter is not None:
            self._meter.close()
        position = self._engine.close()
        self._transport.close()
        if self._link is not None:
            self._link.close(position)
        if self._peers is not None:
            self._peers.close()


def break_session(session: Session, error: HostlibError) -> None:
    """End a session's allreduces with `error`, and refuse later ones: for the torch backend."""
    session._engine.fail(error)  # pyright: ignore[reportPrivateUsage]


def _open_meter(options: SessionOptions, job: str, worker_id: int) -> SessionMeter | None:
    """Serve metrics, if the options say where; raises MetricsError."""
    if not options.metrics:
        return None
    from .observing.worker_metrics import SessionMeter  # noqa: PLC0415 - only when it is needed

    return SessionMeter(options.metrics, job, worker_id)


def _open_peers(transport: Transport, options: SessionOptions) -> PeerServer | None:
    """Listen for other workers at an address where they can reach this one.

    Raises AddressUnreachableError if the options give an address that is not this host's, and
    CredentialsError.
    """
    address = options.peer_address
    if address == "":
        return None
    credentials = credentials_in(options.credentials)
    try:
        return PeerServer(
            address or transport.local.address, token=options.peer_secret, credentials=credentials
        )
    except AddressUnreachableError:
        if address is not None:
            raise
        # The addresses of a tunnel, or of a simulation, belong to no kernel.
        _logger.info("no peer server: %s is not this host's address", transport.local.address)
        return None
