# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""MLfabric's calls of a worker: pushes whose transfers a scheduler plans, and gets of the model."""

from __future__ import annotations

import contextlib
import math
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from ...closable import Closable
from ...control.stations.replica_terms import ReplicaEvent
from ...control.stations.station import (
    GatherExpected,
    RateObserved,
    StationEvent,
    StationKind,
    TransferStation,
    check_norm,
)
from ...credentials import Role, require_choice
from ...errors import (
    ConfigurationError,
    ExchangeTimeoutError,
    HostlibError,
    PeerClosedError,
)
from ...peers.frames import MAX_BATCH_BYTES
from ..rows import Versions
from ..tables.dense import DenseTensor, ReadTensor, TensorPart, Values
from ..tables.parts import Gathering
from ..tables.state import KEY_BYTES
from ..transfer_options import TransferOptions
from .aggregator import Aggregator
from .grant_requests import GrantRequests
from .group_path import GroupPath, sum_key
from .models.worker_relay import WorkerRelay
from .outgoing import OutgoingUpdate, PartOutcome
from .replicas.worker_replicas import WorkerReplicas, momentum_of, step_scale
from .update_link import UpdateLink, closed_error

MOST_OPEN_PUSHES: Final = 64


@final
@dataclass(frozen=True, kw_only=True)
class PushOutcome:
    """What became of an update at all servers."""

    parts: tuple[PartOutcome, ...]
    """By server, of those that keep a part of the tensor."""
    model: Values | None = None
    """The newest model, if a part was dropped."""

    @property
    def is_committed(self) -> bool:
        """Whether all servers have applied their parts."""
        return not self.drop_reasons

    @property
    def drop_reasons(self) -> tuple[str, ...]:
        """Why parts were dropped; each said once."""
        return tuple(dict.fromkeys(part.drop_reason for part in self.parts if part.drop_reason))


@final
class FabricWorker(Closable):
    """Pushes updates of a dense tensor, and gets its values; safe from any thread.

    `counters`: pushes, granted_updates, ungranted_updates, dropped_updates (parts of pushes, one
    for each server), refused_updates (likewise), failed_pushes, moved_servers (whose replica has
    taken their place), repeated_requests (for updates that were under way then), lost_updates (that
    the former server had applied, and the new one has not), and those of GroupPath and
    WorkerRelay. `gathered` are those of this worker as an aggregator, see Gatherer.
    """

    def __init__(
        self, tensor: DenseTensor, options: TransferOptions, *, most_open: int = 4
    ) -> None:
        """Register as a worker (MLfabric's registerAsWorker), and go on at once.

        `tensor` has the staleness of the options. `most_open`: pushes without an outcome; another
        one waits. With a staleness, it is 1. Raises ConfigurationError, and CredentialsError as
        TableClient does.
        """
        if not 1 <= most_open <= MOST_OPEN_PUSHES:
            raise ConfigurationError(f"{most_open} open pushes; give 1 to {MOST_OPEN_PUSHES}")
        if tensor.definition.staleness != options.staleness:
            raise ConfigurationError(
                f"tensor {tensor.definition.name!r} has staleness {tensor.definition.staleness},"
                f" and the TransferOptions have {options.staleness}; give both the same"
            )
        client = tensor.client
        require_choice(
            client.options.credentials and options.credentials,
            who=f"worker {client.options.worker_id}'s scheduled updates",
            role=Role.WORKER,
            options=("ClientOptions.credentials and TransferOptions.credentials", "insecure=True"),
            insecure=client.options.insecure,
        )
        self.counters: Counter[str] = Counter()
        self.commits = np.zeros(client.num_shards, np.uint64)
        """By server, the version of the model that the last `get` has returned."""
        self._tensor = tensor
        self._definition = tensor.definition.table()
        self._table = self._definition.number
        self._options = options
        self._loop = client.loop
        self._has_iterations = options.staleness is not None
        self._room = threading.BoundedSemaphore(1 if self._has_iterations else most_open)
        self._problem: HostlibError | None = None
        self._is_closed = False
        self._aggregator: Aggregator | None = None
        if options.aggregate:
            self._aggregator = Aggregator(
                options,
                client.options,
                client.num_shards,
                forward=lambda update: self._post(lambda: self._forward(update)),
                report=lambda report: self._post(lambda: self._requests.report(report)),
            )
        self._relay: WorkerRelay | None = None
        if options.relay_models:
            try:
                self._relay = WorkerRelay(self._loop, options, client.options, self.counters)
            except HostlibError:
                self._close_aggregator()
                raise
        optimiser = tensor.definition.optimiser
        self._step_scale = step_scale(optimiser)
        station = options.station(
            StationKind.WORKER,
            client.options.worker_id,
            self._aggregator and self._aggregator.place,
            self._relay and self._relay.place,
        )
        self._station = TransferStation(
            replace(station, momentum=momentum_of(optimiser)),
            on_event=lambda event: self._post(lambda: self._on_event(event)),
            on_failed=lambda error: self._post(lambda: self._on_failed(error)),
        )
        self._requests = GrantRequests[OutgoingUpdate](
            self._loop,
            grant_wait_s=options.grant_wait_s,
            report=self._station.send,
            send=self._send,
            counters=self.counters,
        )
        self._links = [
            UpdateLink(
                self._loop,
                session,
                client.incarnation,
                unreachable_s=client.options.reconnect_s,
                timeout_s=client.options.timeout_s,
                on_measured=self._on_measured,
                on_send_again=self._send_again,
                on_declined=self._on_declined,
                switch_address=client.options.hot_address,
                counters=self.counters,
            )
            for session in client.sessions
        ]
        self._groups = GroupPath(
            self._loop,
            client.options,
            client.incarnation,
            self._links,
            report=self._requests.report,
            on_measured=self._on_measured,
            counters=self.counters,
        )
        self._replicas = WorkerReplicas(tensor, self._links, self._requests, self.counters)
        try:
            self._loop.run(self._dial)
            self._loop.on_failure(self._fail_all)
            self._station.start()
        except HostlibError:
            self._close_ends()
            raise

    def push(self, update: Values, norm: float | None = None) -> Future[PushOutcome]:
        """Have an update of all values applied: MLfabric's push(server, update, norm).

        It is of the model that the last `get` has returned. Each server's part asks the scheduler
        for a grant. Nothing of it leaves before the grant, and then only as fast as granted; a part
        that the scheduler drops never leaves. `norm`: the Euclidean norm, None: of each part,
        computed here. The array may change after the call.

        With a staleness, it also ends this worker's iteration, at all servers and for all tables of
        the client: do not call `TableClient.advance`. Nothing is dropped then.

        The future is done when each part is applied (durably, if the server keeps a log) or
        dropped; in a synchronous job, when the servers have it for the sum of its iteration. Its
        errors: StaleUpdateError (older than tau_max: not applied), UpdateRefusedError (the
        scheduler cannot plan it: not sent), and those of `SparseTable.push`. Waits while
        `most_open` pushes have no outcome. Raises RowShapeError, NonFiniteGradientError,
        ConfigurationError for a norm that is none, ExchangeTimeoutError, PeerClosedError, and
        JobRefusedError or VersionMismatchError if the scheduler has refused this worker.
        """
        return self._push(self._tensor.parts(update), norm)

    def push_blocks(
        self, blocks: NDArray[np.int64], values: Values, norm: float | None = None
    ) -> Future[PushOutcome]:
        """Have an update of some of the tensor's blocks applied, as `push` does: a sparse one.

        `blocks`: different numbers of blocks, [n], from 0; `values`: [n, block_values]. Only these
        travel, and only servers with any of them have a part in the outcome; nothing changes at the
        others. Idle workers add sparse updates up, switches do not.

        Errors as of `push`. Raises ConfigurationError also in jobs with iterations, where each
        server needs an update of each worker.
        """
        if self._has_iterations:
            raise ConfigurationError(
                "push_blocks in a job with iterations, where each server waits for an update of"
                " each worker; push all values, with zeros"
            )
        return self._push(self._tensor.block_parts(blocks, values), norm)

    def get(self) -> Future[Values]:
        """Ask for the newest model: MLfabric's get(server, model).

        A server sends it when the scheduler lets it, and then the model of that moment; or at once,
        if no grant comes in time.

        Later pushes are of this model, once the future is done. With a staleness, it waits until no
        worker is further behind this one's pushes that are done. Its errors are those of
        `DenseTensor.pull`.
        """
        future: Future[Values] = Future()
        future.set_running_or_notify_cancel()

        def take(read: Future[ReadTensor]) -> None:
            error = read.exception()
            if error is not None:
                future.set_exception(error)
                return
            found = read.result()
            self.commits = found.commits
            future.set_result(found.values)

        self._tensor.read(is_model=True).add_done_callback(take)
        return future

    def close(self) -> None:
        """End the registration; pushes without an outcome fail with PeerClosedError.

        The table client stays open. Call this before its `close`.
        """
        if self._is_closed:
            return
        self._is_closed = True
        self._station.close()
        self._close_ends()
        try:
            self._loop.run(self._end_all)
        except PeerClosedError:  # the client is closed, and its thread and sockets with it
            self._fail_all()

    def _push(self, parts: Sequence[TensorPart], norm: float | None) -> Future[PushOutcome]:
        if self._problem is not None:
            raise self._problem
        most = max(part.payload.nbytes for part in parts)
        if most > MAX_BATCH_BYTES:
            raise ConfigurationError(
                f"{most} bytes for one server; the limit is {MAX_BATCH_BYTES}: use more servers"
            )
        norms = [_norm_of(part.payload, part.num_keys) if norm is None else norm for part in parts]
        for each in norms:
            check_norm(each)
        self._take_room()
        gathering = _Gathering(len(parts), self._end)
        outgoing = [
            OutgoingUpdate(
                shard=part.shard,
                table=self._table,
                num_keys=part.num_keys,
                payload=part.payload,
                version=int(self.commits[part.shard]),
                norm=each * self._step_scale,
                sum_key=sum_key(self._definition, part.num_keys, part.whole_bytes),
                whole_bytes=part.whole_bytes,
                done=gathering.take,
            )
            for part, each in zip(parts, norms, strict=True)
        ]
        try:
            self._loop.post(lambda: self._ask(outgoing))
        except PeerClosedError:
            for each in outgoing:
                each.settle(closed_error())
        return gathering.future

    @property
    def gathered(self) -> Counter[str]:
        """Counters of this worker as an aggregator."""
        return Counter() if self._aggregator is None else self._aggregator.gatherer.counters

    def _close_ends(self) -> None:
        self._close_aggregator()
        if self._relay is not None:
            with contextlib.suppress(PeerClosedError):  # the client is closed, and its sessions
                self._loop.run(self._leave_sessions)
            self._relay.close()

    def _leave_sessions(self) -> None:
        for session in self._tensor.client.sessions:
            if session.relay is self._relay:
                session.relay = None

    def _close_aggregator(self) -> None:
        if self._aggregator is not None:
            self._aggregator.close()

    def _take_room(self) -> None:
        if self._loop.is_own_thread:
            raise ConfigurationError(
                "the callback of a future would wait for its own thread; use another thread"
            )
        timeout_s = self._tensor.client.options.timeout_s
        if not self._room.acquire(timeout=timeout_s):
            raise ExchangeTimeoutError(
                f"earlier pushes have had no outcome for {timeout_s:g} s, and no more may be open."
                " Are the servers too slow?",
                [],
            )
        if self._is_closed:
            self._room.release()
            raise closed_error()

    def _post(self, call: Callable[[], None]) -> None:
        with contextlib.suppress(PeerClosedError):  # the client is closed
            self._loop.post(call)

    # The methods below run in the loop's thread.

    def _dial(self) -> None:
        for session in self._tensor.client.sessions if self._relay is not None else ():
            session.relay = self._relay
        for link in self._links:
            link.dial()

    def _ask(self, updates: list[OutgoingUpdate]) -> None:
        self.counters["pushes"] += 1
        client = self._tensor.client
        for update in updates:
            if self._is_closed:
                update.settle(closed_error())
            elif self._has_iterations and client.sessions[update.shard].num_ahead:
                # An earlier process of this worker has ended the iteration there.
                update.settle(PartOutcome(shard=update.shard))
            else:
                update.clock = client.iteration if self._has_iterations else 0
                self._requests.ask(update)

    def _on_declined(self, update: OutgoingUpdate) -> None:
        """An update that is in no switch group after all goes to its server."""
        if self._is_closed:
            update.settle(closed_error())
        else:
            self._groups.declined(update)

    def _send_again(self, update: OutgoingUpdate) -> None:
        """A sum does not come, or is of no effect."""
        self._groups.leave(update, "its sum does not come, or is of no effect")

    def _on_event(self, event: StationEvent) -> None:
        if isinstance(event, GatherExpected):
            if self._aggregator is not None:
                self._aggregator.expect(event)
        elif self._is_closed:
            return
        elif isinstance(event, ReplicaEvent):
            self._replicas.on_event(event)
        else:
            self._requests.on_event(event)

    def _send(self, update: OutgoingUpdate) -> None:
        if update.grant is not None and update.grant.hop is not None:
            self._groups.send(update)
        else:
            self._links[update.shard].send(update)
            self._replicas.granted(update)

    def _forward(self, total: OutgoingUpdate) -> None:
        """Send a sum of others' updates."""
        if self._is_closed:
            total.settle(closed_error())
        else:
            self._links[total.shard].send(total)

    def _on_failed(self, error: HostlibError) -> None:
        """The scheduler refuses this worker: what waits fails, and so do later pushes."""
        self._problem = error
        for update in self._requests.take_all():
            update.settle(error)

    def _on_measured(self, update: OutgoingUpdate, seconds: float) -> None:
        if seconds > 0:
            self._requests.report(
                RateObserved(
                    update.transfer_id, update.payload.nbytes, seconds, update.network_wait_s
                )
            )

    def _end(self, gathering: _Gathering) -> None:
        """End the iteration of a push in which no part has failed, if there are iterations."""
        if not self._has_iterations or gathering.error is not None:
            self._finish(gathering)
            return

        def take(ended: Future[Versions]) -> None:
            error = ended.exception()
            if isinstance(error, HostlibError):
                gathering.error = error
            self._finish(gathering)

        client = self._tensor.client
        ending = Gathering(client.num_shards, lambda: client.versions)
        ending.future.add_done_callback(take)
        client.end_iteration(ending)

    def _finish(self, gathering: _Gathering) -> None:
        """Give a push its outcome; fetch the model first if a part was dropped."""
        self._replicas.when_room(self._room.release)
        if gathering.error is not None:
            self.counters["failed_pushes"] += 1
            gathering.future.set_exception(gathering.error)
            return
        outcome = PushOutcome(parts=tuple(sorted(gathering.parts, key=lambda part: part.shard)))
        if outcome.is_committed:
            gathering.future.set_result(outcome)
            return

        def take(got: Future[Values]) -> None:
            error = got.exception()
            if error is not None:
                gathering.future.set_exception(error)
            else:
                gathering.future.set_result(PushOutcome(parts=outcome.parts, model=got.result()))

        self.get().add_done_callback(take)

    def _end_all(self) -> None:
        self._replicas.close(closed_error())
        for link in self._links:
            link.close(closed_error())
        self._groups.close(closed_error())
        self._fail_all()

    def _fail_all(self, error: PeerClosedError | None = None) -> None:
        for update in self._requests.take_all():
            update.settle(error or closed_error())
        for link in self._links:
            link.fail(error or closed_error())


class _Gathering:
    """The parts of one push."""

    def __init__(self, num_parts: int, end: Callable[[_Gathering], None]) -> None:
        self.future: Future[PushOutcome] = Future()
        self.future.set_running_or_notify_cancel()
        self.parts: list[PartOutcome] = []
        self.error: HostlibError | None = None
        self._num_left = num_parts
        self._finish = end

    def take(self, outcome: PartOutcome | HostlibError) -> None:
        """Take the outcome of a part."""
        if isinstance(outcome, HostlibError):
            self.error = self.error or outcome
        else:
            self.parts.append(outcome)
        self._num_left -= 1
        if not self._num_left:
            self._finish(self)


def _norm_of(payload: memoryview, num_keys: int) -> float:
    values: NDArray[np.float32] = np.frombuffer(payload, np.float32, offset=KEY_BYTES * num_keys)
    # Squares of large float32 overflow; those of float64 do not.
    return math.sqrt(float(np.einsum("i,i->", values, values, dtype=np.float64)))
