# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A session API server whose answers a test scripts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import grpc

from hostlib.session_api import session_pb2 as api
from hostlib.session_api import session_pb2_grpc

Answer = Callable[[api.WorkerMessage, Any], list[api.ControllerMessage]]


def welcome(**changes: Any) -> api.ControllerMessage:
    fields: dict[str, Any] = {
        "job_id": 7,
        "generation": 1000,
        "slot_count": 32,
        "num_workers": 1,
        "values_per_packet": 32,
        "wire_version": 1,
        "switch_address": "10.0.0.254",
        "switch_mac": "02:00:00:00:01:00",
        "switch_udp_port": 21318,
        "lease_s": 0.3,
    }
    return api.ControllerMessage(welcome=api.Welcome(**{**fields, **changes}))


class FakeController(session_pb2_grpc.SwitchfoldSessionServicer):
    """Calls `answer(message, context)` for every message and sends what it returns."""

    def __init__(self, answer: Answer, address: str = "127.0.0.1:0") -> None:
        self.answer = answer
        self.seen: list[api.WorkerMessage] = []
        self.changed = threading.Condition()
        self.server = grpc.server(futures.ThreadPoolExecutor(8))
        session_pb2_grpc.add_SwitchfoldSessionServicer_to_server(self, self.server)
        self.port = self.server.add_insecure_port(address)
        self.address = f"127.0.0.1:{self.port}"
        self.server.start()

    def Join(  # noqa: N802
        self, request_iterator: Iterator[api.WorkerMessage], context: Any
    ) -> Iterator[api.ControllerMessage]:
        for message in request_iterator:
            with self.changed:
                self.seen.append(message)
                self.changed.notify_all()
            yield from self.answer(message, context)
            if message.HasField("leave"):
                return

    def wait_for(self, kind: str, count: int = 1) -> api.WorkerMessage:
        """Wait until `count` messages of a kind have come; return the last."""

        def of_kind() -> list[api.WorkerMessage]:
            return [m for m in self.seen if m.WhichOneof("message") == kind]

        with self.changed:
            assert self.changed.wait_for(lambda: len(of_kind()) >= count, 10), self.seen
            return of_kind()[-1]

    def stop(self) -> None:
        self.server.stop(None).wait(5)
