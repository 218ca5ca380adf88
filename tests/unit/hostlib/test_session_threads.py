# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What other threads do while a session's own one is in the C library; `make sanitize` looks on."""

from __future__ import annotations

import threading
from contextlib import ExitStack

import numpy as np

from loopback import LOOPBACK
from switchfold.hostlib.session import Session
from switchfold.hostlib.transports.udp import UdpTransport
from udp_switch import UdpSwitch
from view_driver import QUICK

TENSORS, VALUES = 20, 3000


class Observer(threading.Thread):
    """Reads a session's statistics until it is told to stop, and once more."""

    def __init__(self, session: Session) -> None:
        super().__init__(name="observer")
        self._session = session
        self._stop_asked = threading.Event()
        self.looks: list[dict[str, int | float]] = []

    def run(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._stop_asked.is_set()
            self.looks.append(self._session.statistics)

    def stop(self) -> None:
        self._stop_asked.set()
        self.join()


def test_statistics_are_read_while_tensors_are_summed() -> None:
    with ExitStack() as stack:
        transports = [UdpTransport(LOOPBACK) for _ in range(2)]
        switch = UdpSwitch(transports, values_per_packet=32, slot_count=64)
        stack.enter_context(switch.running())
        workers = [
            stack.enter_context(Session.direct(switch.job_view(i), transport, QUICK))
            for i, transport in enumerate(transports)
        ]
        observer = Observer(workers[0])
        observer.start()
        stack.callback(observer.stop)
        for number in range(TENSORS):
            values = np.full(VALUES, number, np.int32)
            futures = [worker.allreduce(values) for worker in workers]
            for future in futures:
                np.testing.assert_array_equal(future.result(60), 2 * values)
        observer.stop()
        last = workers[0].statistics
    # No count was seen half written.
    sent = [look["value_packets_sent"] for look in observer.looks]
    assert sent == sorted(sent)
    assert sent[-1] <= last["value_packets_sent"] == TENSORS * -(-VALUES // 32)
    assert all(
        look["value_packets_received"] <= look["value_packets_sent"] for look in observer.looks
    )
