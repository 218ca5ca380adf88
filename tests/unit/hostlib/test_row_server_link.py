# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The link of a parameter server to the controller that gives it rows of switches."""

from __future__ import annotations

import queue
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Protocol

import grpc
import numpy as np
import pytest

from fake_row_controller import FakeRowController, RowAnswer, row_view
from loopback import LOOPBACK
from switchfold.hostlib import errors
from switchfold.hostlib.control import kept_stream, row_server_stream
from switchfold.hostlib.control.row_server_link import (
    ROW_DTYPE,
    RowMember,
    RowServerLink,
    RowServerRequest,
    RowView,
)
from switchfold.hostlib.control.session_api import session_pb2 as api
from switchfold.hostlib.control.view import Endpoint
from switchfold.hostlib.slots.wire import WIRE_VERSION

ROWS = np.array([(8, 65, -10), (15, 97, 3)], ROW_DTYPE)


class Start(Protocol):
    def __call__(self, answer: RowAnswer, address: str = ..., /) -> FakeRowController: ...


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    for name in ("FIRST_PAUSE_S", "LAST_PAUSE_S"):
        monkeypatch.setattr(kept_stream, name, 0.02)
    monkeypatch.setattr(kept_stream, "TAKEN_WAIT_S", 600.0)
    running: list[FakeRowController] = []

    def run(answer: RowAnswer, address: str = f"{LOOPBACK}:0") -> FakeRowController:
        running.append(FakeRowController(answer, address))
        return running[-1]

    yield run
    for controller in running:
        controller.stop()


class Server:
    """A link whose callbacks are queues."""

    def __init__(self, address: str, **changes: Any) -> None:
        fields: dict[str, Any] = {
            "job": "train",
            "server_id": 1,
            "identity": b"i" * 16,
            "local": Endpoint(address="10.0.0.9", udp_port=6000, mac="02:00:00:00:00:09"),
            "rows_wanted": 8,
        }
        self.views: queue.SimpleQueue[RowView] = queue.SimpleQueue()
        self.installed: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()
        self.downs: queue.SimpleQueue[errors.HostlibError] = queue.SimpleQueue()
        self.link = RowServerLink(
            address,
            RowServerRequest(**{**fields, **changes}),
            on_view=self.views.put,
            on_installed=lambda generation, number: self.installed.put((generation, number)),
            on_down=self.downs.put,
        )

    def __enter__(self) -> Server:
        self.link.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.link.close()


def serve(message: api.RowServerMessage, context: Any) -> list[api.RowControllerMessage]:
    if message.HasField("attach"):
        return [row_view()]
    if message.HasField("set_rows"):
        installed = api.RowsInstalled(
            generation=message.set_rows.generation, number=message.set_rows.number
        )
        return [api.RowControllerMessage(rows_installed=installed)]
    return []


def test_server_attaches_and_sets_rows(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_server_stream, "BEAT_S", 0.05)
    controller = start(serve)
    with Server(controller.address, ingress_port="s1-eth9", token="secret") as server:
        view = server.views.get(timeout=60)
        assert view == RowView(
            generation=1000,
            tree_id=7,
            first_row=8,
            num_rows=8,
            values_per_packet=32,
            worker_id=33,
            switch=Endpoint(address="10.0.0.254", udp_port=21318, mac="02:00:00:00:01:00"),
            num_workers=1,
            members=(
                RowMember(
                    worker_id=5,
                    child_id=5,
                    worker_bitmap=32,
                    switch=Endpoint(address="10.0.1.254", udp_port=21318),
                ),
            ),
            reason="",
        )
        server.link.set_rows(1000, 4, ROWS)
        assert server.installed.get(timeout=60) == (1000, 4)
        controller.wait_for("heartbeat", 2)
    attach = controller.wait_for("attach").attach
    assert (attach.job_name, attach.server_id, attach.identity) == ("train", 1, b"i" * 16)
    assert (attach.wire_version, attach.rows_wanted) == (WIRE_VERSION, 8)
    assert (attach.address, attach.udp_port) == ("10.0.0.9", 6000)
    assert (attach.mac, attach.ingress_port_name) == ("02:00:00:00:00:09", "s1-eth9")
    assert controller.tokens == ["Bearer secret"]
    rows = controller.wait_for("set_rows").set_rows
    assert (list(rows.rows), list(rows.epochs), list(rows.exponents)) == (
        [8, 15], [65, 97], [-10, 3]
    )  # fmt: skip
    assert server.downs.empty()


def test_broken_stream_is_opened_again_with_the_last_rows(start: Start) -> None:
    controller = start(serve)
    with Server(controller.address, ingress_port=9) as server:
        server.views.get(timeout=60)
        server.link.set_rows(1000, 1, ROWS[:1])
        server.link.set_rows(1000, 2, ROWS)
        assert [server.installed.get(timeout=60)[1] for _ in range(2)] == [1, 2]
        controller.break_streams()
        assert server.views.get(timeout=60).generation == 1000
        assert server.installed.get(timeout=60) == (1000, 2)
        assert controller.wait_for("attach", 2).attach.ingress_port == 9
    assert server.downs.empty()


def test_rows_set_before_the_controller_is_there(start: Start) -> None:
    controller = start(serve)
    address = controller.address
    controller.stop()
    with Server(address) as server:
        server.link.set_rows(1000, 1, ROWS)
        start(serve, address)
        assert server.views.get(timeout=60).num_rows == 8
        assert server.installed.get(timeout=60) == (1000, 1)


def test_job_that_ends_leaves_the_server_without_rows(start: Start) -> None:
    ended = api.RowControllerMessage(job_ended=api.JobEnded(reason="completed"))
    controller = start(lambda message, context: [*serve(message, context), ended])
    with Server(controller.address) as server:
        assert server.views.get(timeout=60).num_rows == 8
        after = server.views.get(timeout=60)
        assert (after.generation, after.num_rows, after.members) == (0, 0, ())
        assert after.reason == "the job has ended: completed"
        assert (after.worker_id, after.values_per_packet) == (33, 32)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, errors.JobRefusedError),
        (grpc.StatusCode.PERMISSION_DENIED, errors.JobRefusedError),
        (grpc.StatusCode.UNAUTHENTICATED, errors.JobRefusedError),
        (grpc.StatusCode.UNIMPLEMENTED, errors.JobRefusedError),
        (grpc.StatusCode.FAILED_PRECONDITION, errors.VersionMismatchError),
        (grpc.StatusCode.ALREADY_EXISTS, errors.WorkerTakenError),
    ],
)
def test_refusal_ends_the_link(
    start: Start,
    monkeypatch: pytest.MonkeyPatch,
    code: grpc.StatusCode,
    kind: type[errors.HostlibError],
) -> None:
    monkeypatch.setattr(kept_stream, "TAKEN_WAIT_S", 0.0)

    def refuse(message: api.RowServerMessage, context: Any) -> list[api.RowControllerMessage]:
        context.abort(code, "no, since")
        return []

    controller = start(refuse)
    with Server(controller.address) as server:
        error = server.downs.get(timeout=60)
    assert type(error) is kind
    assert "row server 1 of job 'train'" in str(error)
    assert "no, since" in str(error)
    assert len(controller.tokens) == 1, "it does not ask again"


def test_taken_place_is_asked_for_again(start: Start) -> None:
    def refuse_twice(message: api.RowServerMessage, context: Any) -> list[api.RowControllerMessage]:
        if len(controller.seen) < 3:
            context.abort(grpc.StatusCode.ALREADY_EXISTS, "another process")
        return serve(message, context)

    controller = start(refuse_twice)
    with Server(controller.address) as server:
        assert server.views.get(timeout=60).num_rows == 8
    assert server.downs.empty()


def test_place_that_another_process_has_taken_is_given_up(start: Start) -> None:
    def take_away(message: api.RowServerMessage, context: Any) -> list[api.RowControllerMessage]:
        if message.HasField("set_rows"):
            context.abort(grpc.StatusCode.ALREADY_EXISTS, "attached on another stream")
        return serve(message, context)

    controller = start(take_away)
    with Server(controller.address) as server:
        server.views.get(timeout=60)
        server.link.set_rows(1000, 1, ROWS)
        assert type(server.downs.get(timeout=60)) is errors.WorkerTakenError
    assert len(controller.tokens) == 1, "it does not take the place back"


@pytest.mark.parametrize(
    "code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED,
             grpc.StatusCode.ABORTED, grpc.StatusCode.INTERNAL]
)  # fmt: skip
def test_passing_trouble_is_waited_for(start: Start, code: grpc.StatusCode) -> None:
    def refuse_once(message: api.RowServerMessage, context: Any) -> list[api.RowControllerMessage]:
        if len(controller.seen) == 1:
            context.abort(code, "later")
        return serve(message, context)

    controller = start(refuse_once)
    with Server(controller.address) as server:
        assert server.views.get(timeout=60).num_rows == 8
    assert server.downs.empty()


def test_request_that_cannot_be_sent(start: Start) -> None:
    for changes in ({"server_id": -1}, {"token": "two words"}, {"job": "\ud800"}):
        with pytest.raises(errors.ConfigurationError, match="row server"):
            Server("127.0.0.1:1", **changes).link.start()


def test_rows_of_another_dtype() -> None:
    with pytest.raises(errors.ConfigurationError, match="is needed"):
        Server("127.0.0.1:1").link.set_rows(1, 1, np.zeros(3, np.int32))  # pyright: ignore[reportArgumentType]


def test_close_without_a_controller(start: Start) -> None:
    Server("127.0.0.1:1").link.close()
    with Server("127.0.0.1:1") as server:
        pass
    assert server.downs.empty()
    silent = start(lambda message, context: [])
    with Server(silent.address):
        silent.wait_for("attach")


def test_module_is_imported_without_grpc() -> None:
    code = (
        "import sys, switchfold.hostlib.control.row_server_link\n"
        "print({'grpc', 'google'} & {name.split('.')[0] for name in sys.modules})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_server_leaves_a_controller_that_is_silent_for_one_that_it_was_told_of(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one stands still: its kernel keeps the connection, and nothing comes."""
    monkeypatch.setattr(row_server_stream, "BEAT_S", 0.05)

    def tell(message: api.RowServerMessage, context: Any) -> list[api.RowControllerMessage]:
        if not message.HasField("attach"):
            return []
        known = api.Controllers(addresses=[first.address, second.address], beat_s=0.1)
        return [row_view(), api.RowControllerMessage(controllers=known)]

    second = start(serve)
    first = start(tell)
    with Server(first.address, ingress_port=9) as server:
        assert second.wait_for("attach").attach.identity == b"i" * 16
        server.link.set_rows(1000, 1, ROWS)
        assert server.installed.get(timeout=60) == (1000, 1)
    assert server.downs.empty()


def test_server_goes_from_a_controller_that_stops_to_one_that_it_was_told_of(start: Start) -> None:
    def tell(message: api.RowServerMessage, context: Any) -> list[api.RowControllerMessage]:
        known = api.Controllers(addresses=[first.address, second.address], beat_s=3600.0)
        return [api.RowControllerMessage(controllers=known), row_view()]

    second = start(serve)
    first = start(tell)
    with Server(first.address, ingress_port=9) as server:
        server.views.get(timeout=60)
        first.stop()
        assert second.wait_for("attach").attach.identity == b"i" * 16
    assert server.downs.empty()
