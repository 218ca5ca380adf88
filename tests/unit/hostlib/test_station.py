# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The stream of a station to the transfer scheduler: registrations, reports, answers, refusals."""

from __future__ import annotations

import math
import queue
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import grpc
import pytest

from fake_transfers import (
    FakeTransfers,
    dropped,
    expected,
    granted,
    refused,
    say_nothing,
    server,
    worker,
)
from switchfold.hostlib import errors
from switchfold.hostlib.control import kept_stream
from switchfold.hostlib.control.stations import station_stream
from switchfold.hostlib.control.stations.station import (
    CommitExpected,
    GrantedSpan,
    RateObserved,
    ServerProgress,
    StationCut,
    StationEvent,
    StationKind,
    StationRegistered,
    StationRequest,
    TransferDelivered,
    TransferDropped,
    TransferGranted,
    TransferRefused,
    TransferRequested,
    TransferStation,
    TransferWithdrawn,
    UpdatesCommitted,
)
from switchfold.hostlib.control.transfers_api import transfers_pb2 as api

WAIT_S = 60.0
SPAN = (0.5, 1.5, 80_000_000)


def request(address: str, kind: StationKind = StationKind.WORKER, **changes: Any) -> StationRequest:
    fields: dict[str, Any] = {"controller": address, "job": "train", "kind": kind, "host": "h1"}
    return StationRequest(**{**fields, "station_id": 3, **changes})


class Watched:
    """A station whose callbacks are queues."""

    def __init__(
        self, asked: StationRequest, progress: Callable[[], ServerProgress] = ServerProgress
    ) -> None:
        self.events: queue.SimpleQueue[StationEvent] = queue.SimpleQueue()
        self.failures: queue.SimpleQueue[errors.HostlibError] = queue.SimpleQueue()
        self.station = TransferStation(
            asked, progress=progress, on_event=self.events.put, on_failed=self.failures.put
        )

    def next(self) -> StationEvent:
        return self.events.get(timeout=WAIT_S)

    def __enter__(self) -> Watched:
        self.station.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.station.close()


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("FIRST_PAUSE_S", "LAST_PAUSE_S"):
        monkeypatch.setattr(kept_stream, name, 0.02)
    made = FakeTransfers(say_nothing, grant_wait_s=2.5)
    yield made
    made.stop()


def test_a_worker_registers_asks_and_hears(
    fake: FakeTransfers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(station_stream, "BEAT_S", 0.05)
    fake.next_transfer_id = 17
    asked = request(fake.address, tau_max=0, div_max=2.5, token="secret", job_token="ours")
    with Watched(asked) as watched:
        assert watched.next() == StationRegistered(2.5, 17, 0, 1)
        (register,) = fake.said(worker(3), "register")
        assert (register.job_name, register.host, register.job_token) == ("train", "h1", "ours")
        assert (register.tau_max, register.div_max) == (0, 2.5)
        assert (register.identity, len(register.identity)) == (asked.identity, 16)
        assert fake.tokens == ["Bearer secret"]
        watched.station.send(TransferRequested(17, 2, 1000, 5, 1.5, clock=3), 1)
        watched.station.send(TransferWithdrawn(17, is_sent_ungranted=True), 1)
        watched.station.send(RateObserved(17, 1000, 0.25, 0.125), 1)
        assert fake.wait_for(worker(3), "requested")[0] == api.TransferRequested(
            transfer_id=17, server_id=2, size_bytes=1000, version=5, norm=1.5, clock=3
        )
        assert fake.wait_for(worker(3), "withdrawn")[0].is_sent_ungranted
        observed = fake.wait_for(worker(3), "rate_observed")[0]
        assert (observed.seconds, observed.network_wait_s) == (0.25, 0.125)
        fake.tell(worker(3), granted(17, 4, SPAN, factor=0.5), dropped(18, "too old"))
        spans = (GrantedSpan(*SPAN),)
        assert watched.next() == TransferGranted(17, spans, 4, 0.5)
        assert watched.next() == TransferDropped(18, "too old", 7)
        beats = fake.wait_for(worker(3), "heartbeat", 2)
        assert [beat.sequence for beat in beats] == list(range(1, len(beats) + 1))


def test_a_server_says_how_far_it_is(fake: FakeTransfers) -> None:
    progress = [ServerProgress(version=9, next_sequence=6)]
    with Watched(request(fake.address, StationKind.SERVER), lambda: progress[0]) as watched:
        assert watched.next() == StationRegistered(2.5, 1, 6, 1)
        (register,) = fake.said(server(3), "register")
        assert (register.version, register.next_sequence) == (9, 6)
        assert not register.HasField("tau_max")
        assert not register.HasField("div_max")
        assert not register.HasField("staleness")
        fake.tell(server(3), expected(6, 1, 2, due_s=0.5))
        assert watched.next() == CommitExpected(6, 1, 2, 1.0, 0.5, 0.5, 0)
        fake.tell(server(3), expected(7, 1, 3, due_s=0.5, earliest_s=0.25, size_bytes=9))
        assert watched.next() == CommitExpected(7, 1, 3, 1.0, 0.5, 0.25, 9)
        for told_s, begins_s in (0.25, 0.25), (0.75, 0.5), (-1.0, 0.0), (math.nan, 0.0):
            fake.tell(server(3), expected(8, 1, 4, due_s=0.5, begins_s=told_s))
            assert watched.next() == CommitExpected(8, 1, 4, 1.0, 0.5, 0.5, 0, begins_s)
        watched.station.send(TransferDelivered(1, 2, is_granted=True, is_early=True), 1)
        watched.station.send(UpdatesCommitted(10), 1)
        (told,) = fake.wait_for(server(3), "delivered")
        assert (told.is_granted, told.is_early) == (True, True)
        assert fake.wait_for(server(3), "committed")[0].version == 10
        progress[0] = ServerProgress(version=10, next_sequence=7)
        fake.break_streams()
        assert watched.next() == StationCut()
        assert watched.next() == StationRegistered(2.5, 1, 7, 2)
        again = fake.said(server(3), "register")[1]
        assert again.identity == register.identity
        assert again.version == 10
        # What belongs to the stream before is not sent, so it cannot come out of order.
        watched.station.send(UpdatesCommitted(11), 1)
        watched.station.send(UpdatesCommitted(12), 2)
        assert [told.version for told in fake.wait_for(server(3), "committed", 2)] == [10, 12]


@pytest.mark.parametrize(
    "spans",
    [
        ((0.0, 1.0, 0),),
        ((1.0, 1.0, 5),),
        ((-0.1, 1.0, 5),),
        ((0.0, 2.0, 5), (1.0, 3.0, 5)),
        ((0.0, math.nan, 5),),
        ((0.0, math.inf, 5),),
    ],
)
def test_a_grant_without_usable_spans_is_no_answer(
    fake: FakeTransfers, spans: tuple[tuple[float, float, int], ...]
) -> None:
    with Watched(request(fake.address)) as watched:
        watched.next()
        fake.tell(worker(3), granted(1, 0, *spans), granted(2, 0, SPAN, factor=math.nan))
        event = watched.next()
        assert isinstance(event, TransferGranted)
        assert (event.transfer_id, event.factor) == (2, 1.0)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, errors.JobRefusedError),
        (grpc.StatusCode.PERMISSION_DENIED, errors.JobRefusedError),
        (grpc.StatusCode.FAILED_PRECONDITION, errors.VersionMismatchError),
        (grpc.StatusCode.ALREADY_EXISTS, errors.WorkerTakenError),
        (grpc.StatusCode.UNIMPLEMENTED, errors.JobRefusedError),
    ],
)
def test_refusals_are_told_once_and_end_the_attempts(
    fake: FakeTransfers,
    monkeypatch: pytest.MonkeyPatch,
    code: grpc.StatusCode,
    kind: type[errors.HostlibError],
) -> None:
    monkeypatch.setattr(kept_stream, "TAKEN_WAIT_S", 0.0)
    fake.refuse = code, "because of that"
    with Watched(request(fake.address)) as watched:
        error = watched.failures.get(timeout=WAIT_S)
        assert type(error) is kind
        assert "worker 3 of job 'train'" in str(error)
        assert "because of that" in str(error)
    assert len(fake.said(worker(3), "register")) == 1
    assert watched.failures.empty()


REFUSED = grpc.StatusCode.INVALID_ARGUMENT, "because of that"


def test_a_refusal_of_one_request_is_no_refusal_of_the_station(fake: FakeTransfers) -> None:
    with Watched(request(fake.address, staleness=2)) as watched:
        for registration in (1, 2, 3):
            assert watched.next() == StationRegistered(2.5, 1, 0, registration)
            fake.tell(worker(3), refused(7, "no such server"), REFUSED)
            assert watched.next() == TransferRefused(7, "no such server")
            assert watched.next() == StationCut()
        registers = fake.wait_for(worker(3), "register", 4)
        assert {each.identity for each in registers} == {registers[0].identity}
        assert {each.staleness for each in registers} == {2}
        assert watched.failures.empty()


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, errors.JobRefusedError),
        (grpc.StatusCode.FAILED_PRECONDITION, errors.VersionMismatchError),
    ],
)
def test_a_refusal_that_names_no_request_ends_the_attempts(
    fake: FakeTransfers, code: grpc.StatusCode, kind: type[errors.HostlibError]
) -> None:
    with Watched(request(fake.address)) as watched:
        watched.next()
        fake.tell(worker(3), refused(7, "no such server"), REFUSED)
        for event in (TransferRefused(7, "no such server"), StationCut()):
            assert watched.next() == event
        assert isinstance(watched.next(), StationRegistered)
        if kind is errors.VersionMismatchError:
            fake.tell(worker(3), refused(8, "no such server"))
            assert watched.next() == TransferRefused(8, "no such server")
        fake.tell(worker(3), (code, "because of that"))
        assert type(watched.failures.get(timeout=WAIT_S)) is kind


@pytest.mark.parametrize(
    "code",
    [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.ABORTED],
)
def test_what_may_pass_is_tried_again(fake: FakeTransfers, code: grpc.StatusCode) -> None:
    fake.refuse = code, "not now"
    with Watched(request(fake.address)) as watched:
        fake.wait_for(worker(3), "register", 2)
        fake.refuse = None
        assert isinstance(watched.next(), StationRegistered)
        assert watched.failures.empty()


def test_nothing_is_sent_without_a_stream(fake: FakeTransfers) -> None:
    station = Watched(request(fake.address)).station
    station.send(UpdatesCommitted(1), 0)
    with pytest.raises(errors.ConfigurationError, match="norm nan"):
        station.send(TransferRequested(1, 0, 8, 0, math.nan), 0)
    assert not fake.seen


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"controller": ""}, "give a controller"),
        ({"job": ""}, "give a controller"),
        ({"host": ""}, "the name of this host"),
        ({"tau_max": -1}, "tau_max -1"),
        ({"tau_max": 1 << 32}, "tau_max 4294967296"),
        ({"div_max": -0.5}, "div_max -0.5"),
        ({"div_max": math.nan}, "div_max nan"),
        ({"staleness": -1}, "staleness -1"),
        ({"staleness": 1 << 31}, "staleness 2147483648"),
        ({"staleness": 0, "tau_max": 4}, "staleness 0 and tau_max 4"),
        ({"identity": b"short"}, "16 bytes"),
        ({"token": "a\nb"}, "the controller's token"),
        ({"job_token": "a\nb"}, "the job's token"),
    ],
)
def test_registrations_that_make_no_sense(changes: dict[str, Any], what: str) -> None:
    with pytest.raises(errors.ConfigurationError, match=what):
        request("here:1", **{"controller": "here:1", **changes})


def test_a_registration_that_cannot_be_sent_is_refused_at_the_start() -> None:
    station = Watched(request("here:1", station_id=1 << 40)).station
    with pytest.raises(errors.ConfigurationError, match="cannot be sent"):
        station.start()


def test_grpc_is_loaded_only_by_a_station_that_starts() -> None:
    code = (
        "import sys\n"
        "import switchfold.hostlib.parameter_server.transfers\n"
        "import switchfold.hostlib.control.stations.station\n"
        "assert 'grpc' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
