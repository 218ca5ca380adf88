# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One shard of a bulk-synchronous parameter server."""

from __future__ import annotations

import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import final

import numpy as np

from ..closable import Closable
from ..control.row_server_link import RowServerRequest
from ..credentials import Credentials, Role, require_choice
from ..errors import (
    ConfigurationError,
    PeerClosedError,
    PeerError,
    PeerProtocolError,
    PeerRefusedError,
)
from ..latency import ServerLog
from ..peers import PeerServer
from ..peers.connection import Connection
from ..peers.frames import Greeting, Purpose
from .hot_server.hot_row_server import HotRowServer
from .hot_server.link import RowLink, RowLinkFactory, controller_link
from .layout import Pair, PairLayout
from .options import GENERATION, ServerOptions, all_credentials
from .pair_state import (
    Answer,
    Answered,
    BufferPool,
    Failure,
    FailureKind,
    Origin,
    PairState,
    PendingSum,
)
from .rules import Values, as_workers_sent
from .switch_groups.station import SwitchGroupStation
from .tables.port import TablePort
from .tables.service import TableService
from .transfers.update_port import UpdatePort, UpdateReceiver
from .transfers.update_station import UpdateStation
from .worker_end import WorkerEnd

_CHECK_S = 0.5
_logger = logging.getLogger(__name__)


@final
class ParameterServer(Closable):
    """Listens as soon as it is made. One thread does all the work: use one server per core.

    `counters`: updates, replayed_updates and late_updates (both ignored), broadcasts (answered
    pairs), partial_pairs (without late workers), failed_pairs, received_floats and sent_floats
    (payload on the wire).
    """

    def __init__(  # noqa: PLR0913 - where it listens, and for whom
        self,
        options: ServerOptions,
        *,
        address: str = "127.0.0.1",
        port: int = 0,
        token: str = "",
        credentials: Credentials | None = None,
        insecure: bool = False,
        job: int = 1,
        row_link: RowLinkFactory = controller_link,
    ) -> None:
        """`credentials`: workers connect by TLS, and must show a worker's certificate.

        Without them, here or in the options of hot rows, raises CredentialsError unless `insecure`.
        `row_link` makes the link to the controller, if the options ask for hot rows.
        """
        if not (0 <= port < 1 << 16 and 0 <= job < 1 << 32):
            raise ConfigurationError(f"port {port}, job {job}; give a TCP port and a 32-bit job")
        require_choice(
            all_credentials(credentials, options),
            who=f"parameter server {options.shard}",
            role=Role.SERVER,
            insecure=insecure,
        )
        self.options = options
        self.counters: Counter[str] = Counter()
        self.layout: PairLayout | None = None
        """None until the first worker declares its keys."""
        self._pool = BufferPool(1)
        self._pairs: dict[tuple[int, int], PairState] = {}
        self._ends: dict[int, Answered] = {}
        self._gone_s: dict[int, float] = {}
        rows = options.hot or options.switch_groups
        # Of a UDP port with the number of the TCP port, if there is one.
        udp_address = (rows.address or address) if rows is not None and not rows.udp_port else ""
        self._peers = PeerServer(
            address, port, token=token, credentials=credentials, udp_address=udp_address
        )
        self.address, self.port, self.loop = address, self._peers.port, self._peers.loop
        self._latency: ServerLog | None = None
        self._hot: HotRowServer | None = None
        self._row_link: RowLink | None = None
        self.groups: SwitchGroupStation | None = None
        """Updates that a switch adds up."""
        try:
            if options.latency_log is not None:
                self._latency = ServerLog(
                    self.loop, options.latency_log, shard=options.shard, job=job
                )
            self.tables = TableService(
                self.loop,
                options.num_workers,
                shard=options.shard,
                directory=options.log,
                timeout_s=options.timeout_s,
            )
            station: UpdateStation | None = None
            try:
                self._start_hot_rows(row_link)
                station = UpdateStation(
                    self.tables,
                    self.loop,
                    options,
                    replica_at=(self.address, self.port) if options.is_replica else None,
                )
                if options.switch_groups is not None:
                    place, tables = (self.address, self.port), self.tables
                    self.groups = SwitchGroupStation(
                        station.service, tables, self.loop, options, place, row_link
                    )
            except BaseException:
                if station is not None:
                    station.close()
                self._close_hot_rows()
                self.tables.close()
                raise
        except BaseException:
            self._peers.close()
            if self._latency is not None:
                self._latency.close(())
            raise
        self._station = station
        self.updates = station.service
        """Updates that a scheduler orders: their counters, and callbacks."""
        self.update_receiver: UpdateReceiver = station.service
        """Takes updates as they come. Who sees them first replaces it, before workers connect, and
        passes them on to `updates`."""
        self.loop.run(self._start)
        self._peers.enter_job(job, options.shard)

    def _start_hot_rows(self, make_link: RowLinkFactory) -> None:
        """Attach to a job of the controller, if there is one."""
        options = self.options.hot
        if options is not None:
            # The controller knows a server that comes back by its address and port.
            options = replace(
                options,
                address=options.address or self.address,
                udp_port=options.udp_port or self.port,
            )
        hot = self._hot = HotRowServer(self.loop, self.tables, self.options.shard, options)
        self.tables.hot = hot
        if options is not None and hot.local is not None:
            request = RowServerRequest(
                job=options.job,
                server_id=self.options.shard,
                identity=self.tables.full_identity,
                local=replace(hot.local, mac=options.mac or hot.local.mac),
                rows_wanted=options.rows,
                ingress_port=options.ingress_port,
                switch_name=options.switch_name,
                token=options.token,
                credentials=options.credentials,
                job_token=options.job_token,
            )
            self._row_link = make_link(
                options.controller,
                request,
                on_view=lambda view: self._post(lambda: hot.on_view(view)),
                on_installed=lambda generation, number: self._post(
                    lambda: hot.on_installed(generation, number)
                ),
                on_down=lambda error: self._post(lambda: hot.on_down(error)),
            )
        self.loop.run(lambda: hot.start(self._row_link))
        if self._row_link is not None:
            self._row_link.start()

    def _post(self, call: Callable[[], None]) -> None:
        with contextlib.suppress(PeerClosedError):  # the server is closed
            self.loop.post(call)

    def pause_latency_log(self, is_paused: bool) -> None:
        """Record no request from now on, or do so again; load is logged all the time.

        Workers that measure their requests still get their times. Times between requests over a
        pause are not those of the workload. Raises ConfigurationError without
        ServerOptions.latency_log.
        """
        log = self._latency
        if log is None:
            raise ConfigurationError(
                "this server has no latency log; give ServerOptions.latency_log"
            )
        log.is_paused = is_paused

    def close(self) -> None:
        """End all connections and the threads; a second call does nothing."""
        if self.groups is not None:
            self.groups.close()
        self._close_hot_rows()
        self._station.close()
        self._peers.close()
        latency, self._latency = self._latency, None
        if latency is not None:
            latency.close(self.tables.state.updates())
        self.tables.close()

    def _close_hot_rows(self) -> None:
        link, self._row_link = self._row_link, None
        if link is not None:
            link.close()
        hot, self._hot = self._hot, None
        if hot is not None:
            self.loop.run(hot.close)

    # The methods below run in the loop's thread.

    def _start(self) -> None:
        self._station.when_open(lambda: self._peers.add_view(GENERATION, _Door(self)))
        self._check_overdue()

    def adopt(self, connection: Connection, greeting: Greeting) -> None:
        """Take over a worker's connection; it replaces an older one of the same purpose."""
        worker_id = greeting.sender
        if greeting.purpose not in (Purpose.PARAMETERS, Purpose.TABLES, Purpose.TRANSFERS):
            raise PeerRefusedError("this is a parameter server")
        if worker_id >= self.options.num_workers:
            raise PeerRefusedError(
                f"worker {worker_id}: this server has workers 0 to {self.options.num_workers - 1}"
            )
        if greeting.purpose is Purpose.TABLES:
            TablePort(
                self.tables,
                self.loop,
                worker_id,
                connection,
                hot=self._hot,
                latency=self._latency,
            )
            return
        if greeting.purpose is Purpose.TRANSFERS:
            groups = None if self.groups is None else self.groups.groups
            receiver, hold_s = self.update_receiver, self.updates.hold_s
            UpdatePort(receiver, self.loop, worker_id, connection, groups, hold_s=hold_s)
            return
        old = self._ends.get(worker_id)
        if isinstance(old, WorkerEnd):
            old.connection.close()
        elif old is not None:
            raise PeerRefusedError(f"worker {worker_id} is on the server's own host")
        self.attach(worker_id, WorkerEnd(self, worker_id, connection))

    def attach(self, worker_id: int, end: Answered) -> None:
        """Answer a worker through `end` from now on."""
        self._ends[worker_id] = end
        self._gone_s.pop(worker_id, None)

    def detach(self, worker_id: int, end: Answered) -> None:
        """Learn that a worker's connection is gone."""
        if self._ends.get(worker_id) is end:
            del self._ends[worker_id]
            self._gone_s[worker_id] = time.monotonic()

    def close_connections(self) -> None:
        """Close the connections of all workers; they will connect again."""
        for end in list(self._ends.values()):
            if isinstance(end, WorkerEnd):
                end.connection.close(PeerClosedError("closed by the server"))

    def declare(self, worker_id: int, description: bytes) -> None:
        """Add a worker's keys. Raises PeerMismatchError and PeerProtocolError."""
        if self.layout is None:
            self.layout = PairLayout.of_description(description)
            self._pool = BufferPool(self.layout.pair_bytes // 4)
            if self.options.shard >= self.layout.num_servers:
                number = self.layout.num_servers
                self.layout = None
                raise PeerProtocolError(
                    f"this is server {self.options.shard}, worker {worker_id} has {number} servers"
                )
        self.layout.merge(description, worker_id)

    def pair(self, key: int, pair: int) -> Pair:
        """Return a pair of this shard; raise PeerProtocolError for a pair of another shard."""
        keys = self.layout.keys if self.layout is not None else []
        if key < len(keys) and pair < len(keys[key].pairs):
            found = keys[key].pairs[pair]
            if found.shard == self.options.shard:
                return found
        raise PeerProtocolError(f"pair {pair} of key {key} is not on server {self.options.shard}")

    @as_workers_sent
    def multiply(self, origin: Origin, key: int, u: Values, v: Values) -> None:
        """Take a worker's factors u [K, M] and v [K, N] of its update u^T v."""
        values = np.matmul(u.T, v).reshape(-1)
        assert self.layout is not None
        for pair in self.layout.keys[key].pairs:
            part = values[pair.first : pair.first + pair.num_values]
            self.update(origin, key, pair.number, part)

    def check_factors(self, key: int, rows: int, columns: int) -> None:
        """Raise PeerProtocolError unless the key is here and has so many rows and columns."""
        self.pair(key, 0)
        assert self.layout is not None
        found = self.layout.keys[key]
        if not found.is_whole or found.num_values != rows * columns:
            raise PeerProtocolError(
                f"factors of a {rows}x{columns} matrix for {self._name(key)}, which has"
                f" {found.num_values} values{' on several servers' * (not found.is_whole)}"
            )

    def room(self, num_values: int) -> Values:
        """Return memory for an update."""
        return self._pool.take(num_values)

    def _state_of(self, key: int, pair: int) -> PairState:
        state = self._pairs.get((key, pair))
        if state is None:
            self.pair(key, pair)  # raises PeerProtocolError
            state = PairState(self._pool, self.options.num_workers)
            self._pairs[key, pair] = state
        return state

    def update(
        self, origin: Origin, key: int, pair: int, values: Values, *, is_lent: bool = False
    ) -> None:
        """Take an update; lent values are only read, others now belong to the server."""
        worker_id, iteration, open_from = origin
        state = self._state_of(key, pair)
        state.acknowledge(worker_id, open_from)
        waiting = state.pending.get(iteration)
        if self._is_over(state, worker_id, key, pair, iteration) or (
            waiting is not None and worker_id in waiting.contributors
        ):
            if waiting is not None:
                self.counters["replayed_updates"] += 1
            if not is_lent:
                self._pool.give(values)
            return
        for older in state.unfillable(worker_id, iteration):
            text = (
                f"{self._name(key)}: worker {worker_id} is at iteration {iteration} and will not"
                f" contribute to iteration {older}: it skipped that one, or has its answer from a"
                " server that was killed; restart all workers"
            )
            self._fail(key, pair, older, Failure(FailureKind.RESTARTED, text, (worker_id,)))
        self.counters["updates"] += 1
        if waiting is None:
            waiting = state.pending[iteration] = PendingSum(self._pool, time.monotonic())
            self._plan_drop(key, pair, iteration)
        waiting.add(worker_id, values, is_lent=is_lent)
        self._close_if_complete(key, pair, iteration)

    def _is_over(
        self, state: PairState, worker_id: int, key: int, pair: int, iteration: int
    ) -> bool:
        """Answer an update that comes too late, or again; return whether it is one."""
        failure = state.failures.get(iteration)
        answer = state.answers.get(iteration)
        if answer is not None:
            kind = "replayed" if worker_id in answer.contributors else "late"
            self.counters[f"{kind}_updates"] += 1
            self._answer(worker_id, key, pair, iteration, answer)
            return True
        if failure is None and state.has_answered(worker_id, iteration):
            self.counters["replayed_updates"] += 1
            # A worker that sent it twice expects no answer; a new run of the worker does.
            failure = Failure(
                FailureKind.LATE,
                f"{self._name(key)}: worker {worker_id} had the answer of iteration {iteration}; a"
                f" new run with this server counts on from {state.last_closed + 1}, or restart the"
                " servers",
                (worker_id,),
            )
        elif failure is None and iteration <= state.last_closed:
            self.counters["late_updates"] += 1
            failure = Failure(
                FailureKind.LATE,
                f"{self._name(key)}: iteration {iteration} is too old, the newest is"
                f" {state.last_closed}; worker {worker_id} is too late",
                (worker_id,),
            )
        if failure is not None:
            self._tell(worker_id, key, iteration, failure)
        return failure is not None

    def _close_if_complete(self, key: int, pair: int, iteration: int) -> None:
        state = self._pairs[key, pair]
        waiting = state.pending.get(iteration)
        if waiting is None:
            return
        count = len(waiting.contributors)
        drop = self.options.stragglers
        if count < self.options.num_workers:
            if drop is None or count < drop.quorum:
                return
            if time.monotonic() < waiting.started_s + drop.deadline_s:
                return
            self.counters["partial_pairs"] += 1
        total = waiting.total()
        self.options.rule.apply(total, count)
        answer = Answer(total, frozenset(waiting.contributors))
        state.close(iteration, answer)
        self.counters["broadcasts"] += 1
        for worker_id in sorted(waiting.contributors):
            self._answer(worker_id, key, pair, iteration, answer)

    def _plan_drop(self, key: int, pair: int, iteration: int) -> None:
        if self.options.stragglers is not None:
            self.loop.call_later(
                self.options.stragglers.deadline_s,
                lambda: self._close_if_complete(key, pair, iteration),
            )

    def _answer(self, worker_id: int, key: int, pair: int, iteration: int, answer: Answer) -> None:
        end = self._ends.get(worker_id)
        if end is not None:  # otherwise it sends the update again when it is back
            end.send_answer(key, pair, iteration, answer)

    def _tell(self, worker_id: int, key: int, iteration: int, failure: Failure) -> None:
        end = self._ends.get(worker_id)
        if end is not None:
            end.send_failure(key, iteration, failure)

    def _fail(self, key: int, pair: int, iteration: int, failure: Failure) -> None:
        self.counters["failed_pairs"] += 1
        _logger.warning("server %d: %s", self.options.shard, failure.text)
        for worker_id in self._pairs[key, pair].fail(iteration, failure):
            self._tell(worker_id, key, iteration, failure)

    def _name(self, key: int) -> str:
        assert self.layout is not None
        return f"key {self.layout.keys[key].name!r}"

    def _check_overdue(self) -> None:
        now_s = time.monotonic()
        for (key, pair), state in self._pairs.items():
            for iteration, waiting in list(state.pending.items()):
                failure = self._overdue(key, iteration, waiting, now_s)
                if failure is not None:
                    self._fail(key, pair, iteration, failure)
        self.loop.call_later(_CHECK_S, self._check_overdue)

    def _overdue(
        self, key: int, iteration: int, waiting: PendingSum, now_s: float
    ) -> Failure | None:
        missing = [w for w in range(self.options.num_workers) if w not in waiting.contributors]
        gone = [w for w in missing if now_s - self._gone_s.get(w, now_s) > self.options.grace_s]
        what = f"{self._name(key)}, iteration {iteration}"
        if gone and self.options.stragglers is None:
            text = f"{what}: worker {_list(gone)} is gone; restart it, or all workers"
            return Failure(FailureKind.LOST, text, tuple(gone))
        if now_s - waiting.started_s > self.options.timeout_s:
            text = f"{what}: no update from worker {_list(missing)} in {self.options.timeout_s:g} s"
            return Failure(FailureKind.MISSING, text, tuple(missing))
        return None

    def refuse(self, worker_id: int, end: WorkerEnd, error: PeerError) -> None:
        """Tell a worker that its keys or frames are refused."""
        _logger.warning("server %d: worker %d: %s", self.options.shard, worker_id, error)
        end.send_refusal(Failure(FailureKind.MISMATCH, str(error), (worker_id,)))


def _list(worker_ids: Sequence[int]) -> str:
    return ", ".join(map(str, worker_ids))


@final
class _Door:
    """Gives workers' connections from the peer server to the parameter server."""

    def __init__(self, server: ParameterServer) -> None:
        self._server = server

    def adopt(self, connection: Connection, greeting: Greeting) -> None:
        self._server.adopt(connection, greeting)

    def close(self) -> None:
        self._server.close_connections()
