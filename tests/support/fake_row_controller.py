# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A controller for row servers whose answers a test scripts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any, cast

import grpc

from loopback import LOOPBACK
from switchfold.hostlib.control.session_api import session_pb2 as api
from switchfold.hostlib.control.session_api import session_pb2_grpc

RowAnswer = Callable[[api.RowServerMessage, Any], list[api.RowControllerMessage]]


def row_view(**changes: Any) -> api.RowControllerMessage:
    """Return a view with rows 8 to 15 for server 1."""
    fields: dict[str, Any] = {
        "generation": 1000,
        "tree_id": 7,
        "first_row": 8,
        "num_rows": 8,
        "values_per_packet": 32,
        "worker_id": 33,
        "switch_address": "10.0.0.254",
        "switch_mac": "02:00:00:00:01:00",
        "switch_udp_port": 21318,
        "num_workers": 1,
        "members": [
            api.RowMember(
                worker_id=5,
                child_id=5,
                worker_bitmap=32,
                switch_address="10.0.1.254",
                switch_udp_port=21318,
            )
        ],
    }
    return api.RowControllerMessage(row_view=api.RowView(**{**fields, **changes}))


class FakeRowController(session_pb2_grpc.SwitchfoldSessionServicer):
    """Calls `answer(message, context)` for every message and sends what it returns."""

    def __init__(self, answer: RowAnswer, address: str = f"{LOOPBACK}:0") -> None:
        self.answer = answer
        self.seen: list[api.RowServerMessage] = []
        self.tokens: list[object] = []
        self.changed = threading.Condition()
        self._contexts: list[Any] = []
        self.server = grpc.server(futures.ThreadPoolExecutor(8))
        add: Any = cast("Any", session_pb2_grpc).add_SwitchfoldSessionServicer_to_server
        add(self, self.server)
        self.port = self.server.add_insecure_port(address)
        self.address = f"{LOOPBACK}:{self.port}"
        self.server.start()

    def ServeRows(  # noqa: N802
        self, request_iterator: Iterator[api.RowServerMessage], context: Any
    ) -> Iterator[api.RowControllerMessage]:
        self._contexts.append(context)
        self.tokens.append(dict(context.invocation_metadata()).get("authorization"))
        for message in request_iterator:
            with self.changed:
                self.seen.append(message)
                self.changed.notify_all()
            yield from self.answer(message, context)

    def break_streams(self) -> None:
        """Close all streams without an error message."""
        while self._contexts:
            self._contexts.pop().cancel()

    def wait_for(self, kind: str, count: int = 1) -> api.RowServerMessage:
        """Wait until `count` messages of a kind have come; return the last."""

        def of_kind() -> list[api.RowServerMessage]:
            return [m for m in self.seen if m.WhichOneof("message") == kind]

        with self.changed:
            assert self.changed.wait_for(lambda: len(of_kind()) >= count, 60), self.seen
            return of_kind()[-1]

    def stop(self) -> None:
        self.server.stop(None).wait(60)
