# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Membership in a job over the session API (gRPC): join, lease, barriers, resumption."""

from __future__ import annotations

import logging
import queue
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, final

from ..credentials.tokens import token_metadata, token_problem
from ..errors import (
    BarrierTimeoutError,
    ConfigurationError,
    ControllerUnreachableError,
    HostlibError,
    JobEndedError,
    JobRefusedError,
    JoinError,
    PeerMismatchError,
    SessionClosedError,
    VersionMismatchError,
    WorkerArrivalError,
    WorkerTakenError,
)
from ..guarded_thread import GuardedThread
from ..slots.wire import WIRE_VERSION
from .controller_addresses import ControllerAddresses, named_leader
from .controller_channel import ControllerChannel
from .controller_life import ControllerLife
from .controller_seam import ViewListener
from .grpc_seam import load_grpc
from .join_request import JoinRequest
from .session_api import session_pb2 as api
from .submitted_message import encode_submitted
from .submitted_tensor import SubmittedTensors
from .view import JobView
from .view_message import decode_view

JOIN_METHOD = "/switchfold.session.v1.SwitchfoldSession/Join"
FIRST_RESUME_S = 0.05
"""Pause before the first attempt to resume a broken stream; the controller does not wait long."""
RESUME_INTERVAL_S = 0.5
"""Longest pause between attempts to reach a controller that is gone."""
BEAT_S = 2.0
"""Longest pause between heartbeats, which show that a worker runs."""
LEAVE_S = 1.0
"""Longest time that leaving takes: until the controller ends the stream."""
_logger = logging.getLogger(__name__)
_grpc = load_grpc()


@final
class GrpcControllerLink:
    """One stream to the controller, kept alive by heartbeats and resumed when it breaks.

    Aggregation does not need the controller: while it is away the data path goes on.
    """

    def __init__(self, controller: str, request: JoinRequest) -> None:
        self._controllers = ControllerAddresses(controller)
        self._request = request
        self._channel = ControllerChannel(self._controllers, request.options.credentials)
        self._lock = threading.Condition()
        self._outbox: queue.SimpleQueue[api.WorkerMessage | None] = queue.SimpleQueue()
        self._call: Any = None
        self._view: JobView | None = None  # of the join reply
        self._listener: ViewListener | None = None
        self._missed: list[api.ControllerMessage] = []  # came before anybody listened
        self._boundary = 0
        self._lease_s = 0.0
        self._secret = b""  # to resume a broken stream; from the first join reply
        self._ended: HostlibError | None = None
        self._on_ended: Callable[[HostlibError], None] | None = None
        self._waiting: set[tuple[str, int]] = set()  # barriers sent and not released
        self._uses: Counter[str] = Counter()  # how often each barrier's name was used
        self._is_away = False  # said once, not at every attempt
        self._pause_s = FIRST_RESUME_S  # before the next attempt
        self._taken_deadline_s = 0.0
        self._is_waiting_for_lease = False  # said once
        self._join_deadline_s = 0.0
        self._life = ControllerLife(self._controllers)
        self._is_closing = threading.Event()
        self._thread = GuardedThread(self._run, name="switchfold-lease", on_failed=self._fail)

    def join(self, timeout_s: float, taken_wait_s: float = 0.0) -> JobView:
        """Open the stream, wait for the join reply and return the job's view.

        While the job still runs with an earlier process in this worker's place, asks again for
        `taken_wait_s`. Raises ConfigurationError, CredentialsError, ControllerUnreachableError,
        JobRefusedError, WorkerArrivalError, VersionMismatchError or ThreadFailedError.
        """
        try:
            self._request.join_request(None)
        except ValueError as error:
            raise ConfigurationError(
                f"job {self._request.job!r}: an argument of join cannot be sent: {error}"
            ) from error
        if problem := token_problem(self._request.options.token):
            raise ConfigurationError(f"job {self._request.job!r}: the token {problem}")
        deadline_s = time.monotonic() + timeout_s
        # A refusal says more than a timeout: the last attempt ends before that.
        self._taken_deadline_s = time.monotonic() + min(taken_wait_s, timeout_s - 2.0)
        self._join_deadline_s = deadline_s
        self._channel.connect(timeout_s, f"job {self._request.job!r}")
        self._thread.start()
        with self._lock:
            is_decided = self._lock.wait_for(
                lambda: self._view is not None or self._ended is not None,
                max(0.0, deadline_s - time.monotonic()),
            )
        if self._ended is not None:
            raise self._ended
        view = self._view
        if not is_decided or view is None:
            raise WorkerArrivalError(
                f"job {self._request.job!r}: no join reply from {self._controllers} within"
                f" {timeout_s} s; see whether all {self._request.num_workers} workers run"
            )
        return view

    @property
    def boundary(self) -> int:
        """Number of the first tensor that this worker takes part in."""
        return self._boundary

    def listen(self, listener: ViewListener) -> None:
        """Tell `listener` of changes of the view and of the job's end, from the join on."""
        with self._lock:
            self._on_ended = listener.fail
            ended = self._ended
        if ended is not None:
            listener.fail(ended)
        while True:
            with self._lock:
                missed, self._missed = self._missed, []
                if not missed:
                    self._listener = listener
                    return
            for message in missed:
                self._pass_on(message, listener)

    def view_ready(self, generation: int, position: int) -> None:
        """Answer the proposal of a view with this worker's position."""
        ready = api.ViewReady(generation=generation, position=position)
        self._send(api.WorkerMessage(view_ready=ready))

    def view_entered(self, generation: int) -> None:
        """Report that this worker uses no view older than `generation`."""
        entered = api.ViewEntered(generation=generation)
        self._send(api.WorkerMessage(view_entered=entered))

    def stalled(
        self,
        generation: int,
        missing_workers: Sequence[int],
        submitted: SubmittedTensors,
        silent_s: float = 0.0,
        silent_tree: int = 0,
    ) -> None:
        """Report that nothing comes back in a view though this worker sends."""
        stalled = api.Stalled(
            generation=generation,
            missing_workers=missing_workers,
            silent_s=silent_s,
            silent_tree=silent_tree,
            submitted=encode_submitted(submitted),
        )
        self._send(api.WorkerMessage(stalled=stalled))

    def barrier(self, name: str, timeout_s: float) -> None:
        """Wait until all workers that are in the job have reached the barrier.

        Workers that leave or are lost do not count. Raises BarrierTimeoutError,
        SessionClosedError, or JobEndedError or PeerMismatchError when the job ends meanwhile.
        """
        with self._lock:
            self._uses[name] += 1
            key = (name, self._uses[name])
            self._waiting.add(key)
            self._outbox.put(_barrier_message(key))
            is_over = self._lock.wait_for(
                lambda: (
                    key not in self._waiting or self._ended is not None or self._is_closing.is_set()
                ),
                timeout_s,
            )
            is_released = key not in self._waiting
            self._waiting.discard(key)
        if is_released:
            return
        if self._ended is not None:
            raise self._ended
        if is_over:
            raise SessionClosedError(f"barrier {name!r}: the session was closed")
        raise BarrierTimeoutError(
            f"barrier {name!r} of job {self._request.job!r} was not released within {timeout_s} s;"
            " see whether all workers reach it and whether the controller runs"
        )

    def close(self, position: int | None = None) -> None:
        """Leave the job and close the connection; `position`: tensors run to their end."""
        with self._lock:
            if self._is_closing.is_set():
                return
            self._is_closing.set()
            call = self._call
            self._lock.notify_all()
        if call is not None and self._view is not None:
            self._outbox.put(api.WorkerMessage(leave=api.Leave(position=position)))
            self._outbox.put(None)
            self._thread.join(LEAVE_S)
        if call is not None:
            call.cancel()
        self._channel.close()
        if self._thread.is_alive():
            self._thread.join(1.0)

    def _send(self, message: api.WorkerMessage) -> None:
        """Queue a message; the controller asks again for what is lost with a stream."""
        with self._lock:
            self._outbox.put(message)

    def _run(self) -> None:
        """Keep a stream open until the job is over or the link is closed."""
        while not self._is_closing.is_set():
            with self._lock:
                self._outbox = queue.SimpleQueue()
                view, proposed = self._view, 0
                if self._listener is not None:
                    view, proposed = self._listener.view, self._listener.proposed
                self._outbox.put(self._request.join_request(view, proposed, self._secret))
                for key in self._waiting:
                    self._outbox.put(_barrier_message(key))
            try:
                self._read_stream()
            except _grpc.RpcError as error:
                if self._is_closing.is_set() or self._ended is not None:
                    return
                if self._view is None and (self._is_taken(error) or self._is_elsewhere(error)):
                    self._is_closing.wait(RESUME_INTERVAL_S)
                    continue
                if self._view is None or not _is_transient(error):
                    self._end(self._refused(error))
                    return
                if not self._is_away:
                    _logger.warning(
                        "controller at %s is away, aggregation goes on: %s",
                        self._controllers,
                        error.details(),
                    )
                self._is_away = True
                self._choose(error)
            if self._ended is not None:
                return
            if self._view is None:
                # The stream ended without a status and without a join reply.
                self._end(
                    JobRefusedError(f"{self._controllers} ended the stream without a join reply")
                )
                return
            # Jitter: all workers of a controller lose it at the same time.
            self._is_closing.wait(self._pause_s * random.uniform(0.5, 1.0))
            self._pause_s = min(2 * self._pause_s, RESUME_INTERVAL_S)

    def _is_taken(self, error: Any) -> bool:
        """Return whether another process is this worker, and joining shall wait until it is gone.

        A process that was killed with its machine is in the job until its lease ends.
        """
        if error.code() != _grpc.StatusCode.ALREADY_EXISTS:
            return False
        left_s = self._taken_deadline_s - time.monotonic()
        if left_s > 0 and not self._is_waiting_for_lease:
            self._is_waiting_for_lease = True
            _logger.warning("%s; asking again for %.0f s", error.details(), left_s)
        return left_s > 0

    def _is_elsewhere(self, error: Any) -> bool:
        """Return whether another controller may let this worker join, and choose which."""
        is_standby = named_leader(error) is not None
        is_gone = self._controllers.are_several and _is_transient(error)
        if (not is_standby and not is_gone) or time.monotonic() >= self._join_deadline_s - 1.0:
            return False
        _logger.info(
            "job %r: controller at %s: %s", self._request.job, self._controllers, error.details()
        )
        self._choose(error)
        return True

    def _choose(self, error: Any) -> None:
        """Choose the controller to call after a broken stream, or a standby's answer."""
        leader = named_leader(error)
        if leader is not None:
            self._controllers.follow(leader)
        else:
            self._controllers.turn()

    def _read_stream(self) -> None:
        outbox = self._outbox
        self._life = ControllerLife(self._controllers)
        method = self._channel.get().stream_stream(
            JOIN_METHOD,
            request_serializer=api.WorkerMessage.SerializeToString,
            response_deserializer=api.ControllerMessage.FromString,
        )
        metadata = token_metadata(self._request.options.token)
        call = method(self._messages(outbox), metadata=metadata)
        with self._lock:
            self._call = call
            if self._is_closing.is_set():
                call.cancel()
        try:
            for message in call:
                self._life.hear(message)
                self._take(message)
        finally:
            outbox.put(None)

    def _messages(
        self, outbox: queue.SimpleQueue[api.WorkerMessage | None]
    ) -> Iterator[api.WorkerMessage]:
        """Yield what is to be sent, and heartbeats between."""
        sequence = 0
        while True:
            interval_s = min(self._lease_s / 3, BEAT_S) or 1.0
            try:
                message = outbox.get(timeout=interval_s)
            except queue.Empty:
                sequence += 1
                message = api.WorkerMessage(heartbeat=api.Heartbeat(sequence=sequence))
            if message is None:
                return
            self._note_silence()
            yield message

    def _note_silence(self) -> None:
        """Break the stream of a controller that should have shown that it lives."""
        if self._life.has_ended():
            with self._lock:
                call = self._call
            call.cancel()

    def _take(self, message: api.ControllerMessage) -> None:
        kind = message.WhichOneof("message")
        if kind == "join_reply":
            self._take_join_reply(message.join_reply)
        elif kind == "barrier_released":
            with self._lock:
                released = message.barrier_released
                self._waiting.discard((released.name, released.use))
                self._lock.notify_all()
        elif kind in ("view_proposal", "view_commit", "missing"):
            self._take_change(message)
        elif kind == "job_ended":
            ended = message.job_ended
            error = PeerMismatchError if ended.is_mismatch else JobEndedError
            self._end(error(f"the controller ended the job: {ended.reason}"))

    def _take_change(self, message: api.ControllerMessage) -> None:
        with self._lock:
            listener = self._listener
            if listener is None:
                self._missed.append(message)
                return
        self._pass_on(message, listener)

    def _pass_on(self, message: api.ControllerMessage, listener: ViewListener) -> None:
        """Tell the listener of a proposal, of a commit, or of missing workers."""
        if message.HasField("view_proposal"):
            proposal = message.view_proposal
            listener.propose(proposal.generation, is_abort=proposal.is_abort)
        elif message.HasField("missing"):
            listener.note_missing(message.missing.generation, message.missing.missing_workers)
        else:
            self._pass_commit_on(message.view_commit, listener)

    def _pass_commit_on(self, commit: api.ViewCommit, listener: ViewListener) -> None:
        joined = self._view
        assert joined is not None, "no change comes before the join reply"
        try:
            view = decode_view(
                commit.view,
                job=joined.job,
                worker_id=joined.worker_id,
                values_per_packet=joined.values_per_packet,
            )
        except HostlibError as error:
            listener.fail(error)
        else:
            listener.commit(view, commit.boundary, commit.source_worker)

    def _take_join_reply(self, join_reply: api.JoinReply) -> None:
        if join_reply.wire_version != WIRE_VERSION:
            self._end(
                VersionMismatchError(
                    f"{self._controllers} and its switch speak wire version"
                    f" {join_reply.wire_version}, this library {WIRE_VERSION}; install the same"
                    " release on both"
                )
            )
            return
        self._pause_s = FIRST_RESUME_S
        if self._is_away:
            self._is_away = False
            _logger.warning("controller at %s is back", self._controllers)
        is_first = self._view is None
        view = None
        try:
            if is_first:
                view = decode_view(
                    join_reply.view,
                    job=join_reply.job_number,
                    worker_id=self._request.worker_id,
                    values_per_packet=join_reply.values_per_packet,
                )
        except HostlibError as error:
            self._end(error)
            return
        with self._lock:
            self._lease_s = join_reply.lease_s
            self._secret = join_reply.resume_secret or self._secret
            if view is not None:
                self._boundary = join_reply.boundary
                for released in join_reply.barriers_released:
                    self._uses[released.name] = released.use
                self._view = view
            # The first heartbeat leaves at once: `_messages` waits without knowing the lease yet.
            self._outbox.put(api.WorkerMessage(heartbeat=api.Heartbeat()))
            self._lock.notify_all()

    def _refused(self, error: Any) -> HostlibError:
        """Return why there is no stream: before the join reply a refusal, later the job's end."""
        if self._view is None:
            return _refusal(error, self._controllers.current, self._request)
        return JobEndedError(
            f"the controller at {self._controllers} does not let worker {self._request.worker_id} "
            f"come back to job {self._request.job!r}: {error.details()}"
        )

    def _fail(self, error: HostlibError) -> None:
        """End the job, as nothing renews the lease any more."""
        if not self._is_closing.is_set():
            self._end(error)

    def _end(self, error: HostlibError) -> None:
        with self._lock:
            self._ended = error
            callback = self._on_ended
            self._lock.notify_all()
            call = self._call
        if call is not None:
            call.cancel()
        if callback is not None:
            callback(error)


def _barrier_message(key: tuple[str, int]) -> api.WorkerMessage:
    return api.WorkerMessage(barrier=api.Barrier(name=key[0], use=key[1]))


def _is_transient(error: Any) -> bool:
    """Return whether a broken stream is worth another attempt."""
    code = _grpc.StatusCode
    return error.code() in (code.UNAVAILABLE, code.CANCELLED, code.UNKNOWN, code.INTERNAL)


def _refusal(error: Any, controller: str, request: JoinRequest) -> HostlibError:
    """Turn a gRPC status into our error."""
    code, text = error.code(), f"job {request.job!r} at {controller}: {error.details()}"
    if code is _grpc.StatusCode.UNIMPLEMENTED:  # also for HTTP 404 of any other server
        return ControllerUnreachableError(
            f"the server at {controller} is no controller of Switchfold ({error.details()});"
            " check the address"
        )
    kinds: dict[Any, type[JoinError]] = {
        _grpc.StatusCode.UNAVAILABLE: ControllerUnreachableError,
        _grpc.StatusCode.CANCELLED: ControllerUnreachableError,  # it stopped before it answered
        _grpc.StatusCode.DEADLINE_EXCEEDED: WorkerArrivalError,
        _grpc.StatusCode.FAILED_PRECONDITION: VersionMismatchError,
        _grpc.StatusCode.ALREADY_EXISTS: WorkerTakenError,
    }
    return kinds.get(code, JobRefusedError)(text)
