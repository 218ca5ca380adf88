# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The relay of the runtime between UDP sockets: fates, counters, order, and its end."""

from __future__ import annotations

import ctypes
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from loopback import LOOPBACK
from stepped_link import SteppedLink, compile_stepped_link
from switchfold.bmv2_topos.impairment.relay import COUNTERS
from switchfold.softswitch.compilation.runtime_library import ImpairmentsT, runtime_library
from switchfold.softswitch.switch.impairments import parse_settings
from time_bound import wait_until

PACKETS: Final = 150
PLACE: Final = (LOOPBACK, 0)


class UdpRelay:
    """A relay that takes datagrams from one socket and sends them to another one."""

    def __init__(self, settings: str) -> None:
        self._library = runtime_library()
        self._sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(4)]
        self._source, receiver, sender, self.sink = self._sockets
        for bound in (receiver, self.sink):
            bound.bind(PLACE)
        self._source.connect(receiver.getsockname())
        sender.connect(self.sink.getsockname())
        self.sink.settimeout(60)
        self._relay = ctypes.c_void_p(
            self._library.relay_create(receiver.fileno(), sender.fileno())
        )
        self.set(settings)
        self._thread = threading.Thread(target=self._library.relay_run, args=(self._relay,))
        self._thread.start()

    def set(self, settings: str) -> None:
        self._library.relay_set(
            self._relay, ctypes.byref(ImpairmentsT.of(parse_settings(settings))), 0
        )

    def send(self, numbers: range) -> None:
        """Send datagrams, and wait until the relay has seen them."""
        seen = self.counters()["seen"]
        for number in numbers:
            self._source.send(number.to_bytes(4, "big"))
        wait_until(lambda: self.counters()["seen"] == seen + len(numbers), "all are seen")

    def received(self, count: int) -> list[int]:
        return [int.from_bytes(self.sink.recv(100), "big") for _ in range(count)]

    def counters(self) -> dict[str, int]:
        values = (ctypes.c_uint64 * len(COUNTERS))()
        self._library.relay_counters(self._relay, values)
        return dict(zip(COUNTERS, values, strict=True))

    def stop(self) -> None:
        self._library.relay_stop(self._relay)
        self._thread.join(60)
        assert not self._thread.is_alive()

    def close(self) -> None:
        if self._thread.is_alive():
            self.stop()
        self._library.relay_destroy(self._relay)
        for each in self._sockets:
            each.close()


@pytest.fixture
def relay() -> Iterator[UdpRelay]:
    made = UdpRelay("loss=0")
    yield made
    made.close()


def test_packets_have_the_fates_of_the_seed(relay: UdpRelay, tmp_path: Path) -> None:
    settings = "loss=0.1,burst_start=0.05,burst_end=0.3,duplication=0.1,seed=9"
    of_stage = ImpairmentsT.of(parse_settings(settings))
    with SteppedLink(compile_stepped_link(tmp_path), 1, of_stage) as link:
        expected = [left for i in range(PACKETS) for left in link.push(i, 4, 0, i)]
    relay.set(settings)
    relay.send(range(PACKETS))
    assert relay.received(len(expected)) == expected
    counted = relay.counters()
    assert (
        counted["sent"]
        == len(expected)
        == PACKETS + counted["duplicated"] - (counted["lost"] + counted["burst_lost"])
    )
    assert counted["lost"] > 0 < counted["burst_lost"]


def test_new_settings_and_the_end_let_go_what_waits(relay: UdpRelay) -> None:
    relay.set("delay_s=3000")
    relay.send(range(10))
    relay.set("reordering=1,reordering_packets=1000")
    assert relay.received(10) == list(range(10))
    relay.send(range(10, 20))
    assert relay.counters()["sent"] == 10
    relay.stop()
    assert relay.received(10) == list(range(10, 20))
    counted = relay.counters()
    assert (counted["delayed"], counted["reordered"], counted["sent"]) == (10, 10, 20)


def test_delay_ends_by_itself(relay: UdpRelay) -> None:
    relay.set("delay_s=0.001")
    relay.send(range(PACKETS))
    assert relay.received(PACKETS) == list(range(PACKETS))
    assert relay.counters()["delayed"] == PACKETS


def test_what_cannot_be_sent_is_counted(relay: UdpRelay) -> None:
    relay.sink.close()
    relay.send(range(PACKETS))
    counted = relay.counters()
    assert counted["refused"] > 0
    assert counted["seen"] == counted["sent"] + counted["refused"]
