# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A session API server whose answers a test scripts."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import suppress
from typing import Any, cast

import grpc

from loopback import LOOPBACK
from switchfold.hostlib.control.session_api import session_pb2 as api
from switchfold.hostlib.control.session_api import session_pb2_grpc
from switchfold.hostlib.slots.wire import WIRE_VERSION

Answer = Callable[[api.WorkerMessage, Any], list[api.ControllerMessage]]


def view(**changes: Any) -> api.View:
    """Return a view of worker 0 alone, on one tree."""
    fields: dict[str, Any] = {
        "generation": 1000,
        "num_workers": 1,
        "members": [api.Member(worker_id=0, address="10.0.0.1")],
        "trees": [api.Tree(tree_id=7, slot_count=32)],
        "worker_bitmap": 1,
        "switch_address": "10.0.0.254",
        "switch_mac": "02:00:00:00:01:00",
        "switch_udp_port": 21318,
    }
    return api.View(**{**fields, **changes})


def join_reply(**changes: Any) -> api.ControllerMessage:
    """Return a join reply; all other fields are those of its view."""
    fields: dict[str, Any] = {
        "job_number": 7,
        "values_per_packet": 32,
        "wire_version": WIRE_VERSION,
        "lease_s": 0.3,
    }
    names = api.JoinReply.DESCRIPTOR.fields_by_name
    of_view = {name: value for name, value in changes.items() if name not in names}
    of_join_reply = {name: value for name, value in changes.items() if name in names}
    return api.ControllerMessage(
        join_reply=api.JoinReply(view=view(**of_view), **{**fields, **of_join_reply})
    )


class FakeController(session_pb2_grpc.SwitchfoldSessionServicer):
    """Calls `answer(message, context)` for every message and sends what it returns."""

    def __init__(self, answer: Answer, address: str = f"{LOOPBACK}:0") -> None:
        self.answer = answer
        self.seen: list[api.WorkerMessage] = []
        self.tokens: list[object] = []
        """The token of each call, None if it had none."""
        self.pushed: queue.SimpleQueue[api.ControllerMessage] = queue.SimpleQueue()
        self.changed = threading.Condition()
        self._contexts: list[Any] = []
        self.server = grpc.server(futures.ThreadPoolExecutor(8))
        add: Any = cast("Any", session_pb2_grpc).add_SwitchfoldSessionServicer_to_server
        add(self, self.server)
        self.port = self.server.add_insecure_port(address)
        self.address = f"{LOOPBACK}:{self.port}"
        self.server.start()

    def Join(  # noqa: N802
        self, request_iterator: Iterator[api.WorkerMessage], context: Any
    ) -> Iterator[api.ControllerMessage]:
        self._contexts.append(context)
        self.tokens.append(dict(context.invocation_metadata()).get("authorization"))
        for message in request_iterator:
            with self.changed:
                self.seen.append(message)
                self.changed.notify_all()
            yield from self.answer(message, context)
            yield from self._taken()
            if message.HasField("leave"):
                return

    def _taken(self) -> Iterator[api.ControllerMessage]:
        with suppress(queue.Empty):  # another stream may have taken the last one
            while True:
                yield self.pushed.get_nowait()

    def push(self, message: api.ControllerMessage) -> None:
        """Send a message with the answer to the worker's next one, a heartbeat at the latest."""
        self.pushed.put(message)

    def break_streams(self) -> None:
        """Close all streams without an error message."""
        while self._contexts:
            self._contexts.pop().cancel()

    def wait_for(self, kind: str, count: int = 1) -> api.WorkerMessage:
        """Wait until `count` messages of a kind have come; return the last."""

        def of_kind() -> list[api.WorkerMessage]:
            return [m for m in self.seen if m.WhichOneof("message") == kind]

        with self.changed:
            assert self.changed.wait_for(lambda: len(of_kind()) >= count, 60), self.seen
            return of_kind()[-1]

    def stop(self) -> None:
        self.server.stop(None).wait(60)
