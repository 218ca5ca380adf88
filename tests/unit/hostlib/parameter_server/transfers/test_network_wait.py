# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker says of an update that was late: the network kept it back, or its own processor."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from switchfold.hostlib.control.stations.station import GrantedSpan, TransferGranted
from switchfold.hostlib.parameter_server.transfers import granted_rate, update_link
from switchfold.hostlib.parameter_server.transfers.granted_rate import GrantedRate
from switchfold.hostlib.parameter_server.transfers.outgoing import OutgoingUpdate
from switchfold.hostlib.parameter_server.transfers.update_link import UpdateLink

NUM_BYTES = 1_000_000
SPANS = (GrantedSpan(0.0, 1.0, 8 * NUM_BYTES),)


class HandLoop:
    """Timers on a clock that only `run` moves; a slow processor runs them late."""

    def __init__(self, least_pause_s: float) -> None:
        self.now_s = 100.0
        self._least_pause_s = least_pause_s
        self._numbers = itertools.count()
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._cancelled: set[int] = set()

    def monotonic(self) -> float:
        return self.now_s

    def call_later(self, wait_s: float, call: Callable[[], None]) -> Any:
        number = next(self._numbers)
        due_s = self.now_s + max(wait_s, self._least_pause_s)
        heapq.heappush(self._timers, (due_s, number, call))
        return SimpleNamespace(cancel=lambda: self._cancelled.add(number))

    def run(self, is_done: Callable[[], bool]) -> None:
        while not is_done():
            self.now_s, number, call = heapq.heappop(self._timers)
            if number not in self._cancelled:
                call()


class HandLink:
    """A connection whose network takes so many bytes/s."""

    is_drained = is_up = True

    def __init__(self, loop: HandLoop, bytes_per_s: float) -> None:
        self._loop, self._bytes_per_s = loop, bytes_per_s
        self._looked_s = loop.now_s
        self._unacknowledged = 0.0

    @property
    def unacknowledged_bytes(self) -> int:
        passed = (self._loop.now_s - self._looked_s) * self._bytes_per_s
        self._looked_s = self._loop.now_s
        self._unacknowledged = max(0.0, self._unacknowledged - passed)
        return math.ceil(self._unacknowledged)

    def send(self, _frame: object, payload: memoryview | None = None) -> None:
        self._unacknowledged = self.unacknowledged_bytes + (payload.nbytes if payload else 0)

    def limit_rate(self, _bytes_per_s: float) -> None:
        pass


def measure(
    monkeypatch: pytest.MonkeyPatch, *, bytes_per_s: float = 1e9, least_pause_s: float = 0.0
) -> tuple[float, float]:
    """Send an update that is granted 1 s; return how long it took, and waited for the network."""
    loop = HandLoop(least_pause_s)
    for module in (granted_rate, update_link):
        monkeypatch.setattr(module, "time", loop)
    told: list[tuple[float, float]] = []
    session: Any = SimpleNamespace(shard=0)
    link = UpdateLink(
        loop,  # type: ignore[arg-type]
        session,
        1,
        unreachable_s=60.0,
        timeout_s=60.0,
        on_measured=lambda update, seconds: told.append((seconds, update.network_wait_s)),
    )
    link._link = HandLink(loop, bytes_per_s)  # type: ignore[assignment]
    link._has_entered = True
    update = OutgoingUpdate(
        shard=0,
        table=1,
        num_keys=1,
        payload=memoryview(bytearray(NUM_BYTES)),
        version=0,
        norm=1.0,
        done=lambda _outcome: None,
        grant=TransferGranted(1, SPANS, 0, 1.0),
        rate=GrantedRate(SPANS, loop.now_s),
    )
    link.send(update)
    loop.run(lambda: bool(told))
    return told[0]


def test_an_update_in_time_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds, wait_s = measure(monkeypatch)
    assert seconds == pytest.approx(1.0, abs=0.02)
    assert wait_s < 0.02


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_a_slow_network_keeps_an_update_back(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    seconds, wait_s = measure(monkeypatch, bytes_per_s=share * NUM_BYTES)
    assert seconds == pytest.approx(1 / share, rel=0.05)
    assert wait_s > 0.8 * (seconds - 1.0)


def test_a_slow_processor_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds, wait_s = measure(monkeypatch, least_pause_s=0.4)
    assert seconds > 2.5
    assert wait_s < 0.5 * (seconds - 1.0)


def test_time_is_added_up_until_a_connection_breaks() -> None:
    update = OutgoingUpdate(
        shard=0,
        table=1,
        num_keys=1,
        payload=memoryview(bytearray(8)),
        version=0,
        norm=1.0,
        done=lambda _outcome: None,
    )
    update.note_held(True, 1.0)
    update.note_held(True, 1.5)
    update.note_held(False, 2.0)
    update.note_held(False, 9.0)
    assert update.network_wait_s == 1.0
    update.is_begun = True
    update.start_again()
    assert update.is_measured
