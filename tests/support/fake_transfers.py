# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A transfer scheduler whose answers a test scripts."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from typing import Any, NamedTuple, cast

import grpc

from loopback import LOOPBACK
from switchfold.hostlib.control.transfers_api import transfers_pb2 as api
from switchfold.hostlib.control.transfers_api import transfers_pb2_grpc

WAIT_S = 60.0


class Caller(NamedTuple):
    """Who is at the other end of a stream."""

    is_server: bool
    station_id: int


Outgoing = api.SchedulerMessage | tuple[grpc.StatusCode, str] | None
"""A message, the status that ends a stream, or its end without one."""
Policy = Callable[["FakeTransfers", Caller, api.StationMessage], None]


def worker(station_id: int) -> Caller:
    return Caller(is_server=False, station_id=station_id)


def server(station_id: int = 0) -> Caller:
    return Caller(is_server=True, station_id=station_id)


def granted(
    transfer_id: int,
    sequence: int,
    *spans: tuple[float, float, int],
    factor: float = 0.0,
    hop: api.GroupHop | None = None,
) -> api.SchedulerMessage:
    return api.SchedulerMessage(
        granted=api.TransferGranted(
            transfer_id=transfer_id,
            spans=[api.RateSpan(start_s=a, end_s=b, rate_bits_per_s=rate) for a, b, rate in spans],
            sequence=sequence,
            learning_rate_factor=factor,
            hop=hop,
        )
    )


def dropped(transfer_id: int, reason: str) -> api.SchedulerMessage:
    return api.SchedulerMessage(
        dropped=api.TransferDropped(transfer_id=transfer_id, reason=reason, delay=7)
    )


def expected(  # noqa: PLR0913 - the fields of the message
    sequence: int,
    worker_id: int,
    transfer_id: int,
    *,
    due_s: float = 0.0,
    earliest_s: float = 0.0,
    begins_s: float = 0.0,
    size_bytes: int = 0,
    factor: float = 0.0,
) -> api.SchedulerMessage:
    return api.SchedulerMessage(
        expected=api.CommitExpected(
            sequence=sequence,
            worker_id=worker_id,
            transfer_id=transfer_id,
            learning_rate_factor=factor,
            due_s=due_s,
            earliest_s=earliest_s,
            size_bytes=size_bytes,
            begins_s=begins_s,
        )
    )


def switch_group(
    group_id: int, members: Mapping[int, int], *, start_s: float, gather_s: float
) -> api.SchedulerMessage:
    """`members`: transfers by worker, in the order of their places."""
    return api.SchedulerMessage(
        switch_group=api.SwitchGroupExpected(
            group_id=group_id,
            members=[api.GroupMember(worker_id=w, transfer_id=t) for w, t in members.items()],
            start_s=start_s,
            gather_s=gather_s,
        )
    )


def refused(transfer_id: int, reason: str) -> api.SchedulerMessage:
    return api.SchedulerMessage(refused=api.TransferRefused(transfer_id=transfer_id, reason=reason))


def skipped(sequence: int) -> api.SchedulerMessage:
    return api.SchedulerMessage(skipped=api.CommitSkipped(sequence=sequence))


class FakeTransfers(transfers_pb2_grpc.TransfersServicer):
    """Registers every station; `policy(self, caller, message)` sees all that it says then."""

    def __init__(
        self,
        policy: Policy,
        address: str = f"{LOOPBACK}:0",
        *,
        grant_wait_s: float = WAIT_S,
        model_wait_s: float | None = None,
        refuse: tuple[grpc.StatusCode, str] | None = None,
    ) -> None:
        self.policy, self.grant_wait_s, self.refuse = policy, grant_wait_s, refuse
        self.model_wait_s = grant_wait_s if model_wait_s is None else model_wait_s
        """How long servers wait for grants of models."""
        self.grants_models = True
        """Whether servers may send each model at once; if not, `policy` answers."""
        self.next_sequence = 0
        self.next_transfer_id = 1
        self.seen: list[tuple[Caller, api.StationMessage]] = []
        self.tokens: list[object] = []
        self.changed = threading.Condition()
        self._queues: dict[Caller, queue.SimpleQueue[Outgoing]] = {}
        self._contexts: list[Any] = []
        self.server = grpc.server(futures.ThreadPoolExecutor(32))
        add: Any = cast("Any", transfers_pb2_grpc).add_TransfersServicer_to_server
        add(self, self.server)
        self.port = self.server.add_insecure_port(address)
        is_unix = address.startswith("unix:")
        self.address = address if is_unix else f"{LOOPBACK}:{self.port}"
        self.server.start()

    def FollowAsWorker(  # noqa: N802
        self, request_iterator: Iterator[api.StationMessage], context: Any
    ) -> Iterator[api.SchedulerMessage]:
        return self._follow(False, request_iterator, context)

    def FollowAsServer(  # noqa: N802
        self, request_iterator: Iterator[api.StationMessage], context: Any
    ) -> Iterator[api.SchedulerMessage]:
        return self._follow(True, request_iterator, context)

    def _follow(
        self, is_server: bool, messages: Iterator[api.StationMessage], context: Any
    ) -> Iterator[api.SchedulerMessage]:
        self.tokens.append(dict(context.invocation_metadata()).get("authorization"))
        first = next(messages)
        assert first.HasField("register")
        caller = Caller(is_server, first.register.station_id)
        self._note(caller, first)
        if self.refuse is not None:
            context.abort(*self.refuse)
        outbox: queue.SimpleQueue[Outgoing] = queue.SimpleQueue()
        told = api.Registered(
            grant_wait_s=self.model_wait_s if is_server else self.grant_wait_s,
            lease_s=10.0,
            next_transfer_id=self.next_transfer_id,
            next_sequence=max(self.next_sequence, first.register.next_sequence),
        )
        outbox.put(api.SchedulerMessage(registered=told))
        with self.changed:
            self._contexts.append(context)
            self._queues[caller] = outbox
            self.changed.notify_all()
        reader = threading.Thread(target=self._read, args=(caller, messages, outbox), daemon=True)
        reader.start()
        while (message := outbox.get()) is not None:
            if isinstance(message, tuple):
                context.abort(*message)
            else:
                yield message

    def _read(
        self,
        caller: Caller,
        messages: Iterator[api.StationMessage],
        outbox: queue.SimpleQueue[Outgoing],
    ) -> None:
        with contextlib.suppress(Exception):  # grpc's own, when the stream ends
            for message in messages:
                self._note(caller, message)
                if message.HasField("model_requested") and self.grants_models:
                    self.tell(caller, granted(message.model_requested.transfer_id, 0))
                else:
                    self.policy(self, caller, message)
        outbox.put(None)

    def _note(self, caller: Caller, message: api.StationMessage) -> None:
        with self.changed:
            self.seen.append((caller, message))
            self.changed.notify_all()

    def tell(self, caller: Caller, *messages: Outgoing) -> None:
        """Send messages to a station, when it is there, or end its stream with a status."""
        with self.changed:
            assert self.changed.wait_for(lambda: caller in self._queues, WAIT_S), caller
            for message in messages:
                self._queues[caller].put(message)

    def said(self, caller: Caller, kind: str) -> list[Any]:
        """Return what a station has said of a kind: `requested`, `delivered`, ..."""
        return [
            getattr(message, kind)
            for who, message in list(self.seen)
            if who == caller and message.WhichOneof("message") == kind
        ]

    def wait_for(self, caller: Caller, kind: str, count: int = 1) -> list[Any]:
        """Wait until a station has said `count` messages of a kind, or more; return all of them."""
        with self.changed:
            is_there = self.changed.wait_for(lambda: len(self.said(caller, kind)) >= count, WAIT_S)
            assert is_there, (caller, kind, self.seen)
        return self.said(caller, kind)

    def break_streams(self) -> None:
        """Close all streams without an error message."""
        with self.changed:
            contexts, self._contexts = self._contexts, []
            self._queues.clear()
        for context in contexts:
            context.cancel()

    def stop(self) -> None:
        self.server.stop(None).wait(WAIT_S)


def grant_everything(rate_bits_per_s: int = 1_000_000_000) -> Policy:
    """Grant each request at once, each server's in the order in which they come."""
    lock = threading.Lock()
    granted_of: Counter[int] = Counter()

    def answer(fake: FakeTransfers, caller: Caller, message: api.StationMessage) -> None:
        if not message.HasField("requested"):
            return
        asked = message.requested
        with lock:
            sequence = granted_of[asked.server_id]
            granted_of[asked.server_id] += 1
        fake.tell(server(asked.server_id), expected(sequence, caller.station_id, asked.transfer_id))
        fake.tell(caller, granted(asked.transfer_id, sequence, (0.0, 1.0, rate_bits_per_s)))

    return answer


def say_nothing(_fake: FakeTransfers, _caller: Caller, _message: api.StationMessage) -> None:
    """Answer nothing."""
