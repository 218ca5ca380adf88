# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The fake switch behind a UDP socket on loopback: what workers send to it, and what it answers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from fake_switch import FakeSwitch
from loopback import LOOPBACK
from switchfold.hostlib.control.view import Endpoint, JobView
from switchfold.hostlib.slots.wire import datagram_bytes, view_datagrams
from switchfold.hostlib.transports.udp import UdpTransport


class UdpSwitch(FakeSwitch):
    """Sums what comes by UDP; use `running`."""

    def __init__(
        self, transports: Sequence[UdpTransport], *, values_per_packet: int, slot_count: int
    ) -> None:
        super().__init__(
            len(transports), values_per_packet=values_per_packet, slot_count=slot_count
        )
        self.contributions: list[bytes] = []
        """Datagrams as they came."""
        self.answers: list[bytes] = []
        self._workers = [transport.local.udp_port for transport in transports]
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((LOOPBACK, 0))
        self._slot_count = slot_count
        self._thread = threading.Thread(target=self._serve, name="udp-switch")

    def job_view(self, worker_id: int) -> JobView:
        return JobView.on_one_switch(
            job=self.job_id,
            generation=self.generation,
            worker_id=worker_id,
            num_workers=self.num_workers,
            slot_count=self._slot_count,
            values_per_packet=self.values_per_packet,
            switch=Endpoint(address=LOOPBACK, udp_port=self._socket.getsockname()[1]),
        )

    def unpacked(self, datagrams: Sequence[bytes]) -> NDArray[np.void]:
        rows = np.frombuffer(b"".join(datagrams), np.uint8)
        rows = rows.reshape(-1, datagram_bytes(self.values_per_packet))
        return view_datagrams(rows, self.values_per_packet)

    def deliver(self, worker_id: int, to: int | None, row: NDArray[np.uint8]) -> None:
        if to is None:
            super().deliver(worker_id, to, row)
            return
        self.answers.append(row.tobytes())
        self._socket.sendto(row.tobytes(), (LOOPBACK, self._workers[to]))

    def _serve(self) -> None:
        while True:
            datagram, (_, port) = self._socket.recvfrom(1 << 16)
            if not datagram:
                return
            self.contributions.append(datagram)
            with self.lock:
                row = np.frombuffer(datagram, np.uint8)
                self.deliver(self._workers.index(port), None, row)

    @contextmanager
    def running(self) -> Generator[None]:
        self._thread.start()
        try:
            yield
        finally:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
                last.sendto(b"", self._socket.getsockname())
            self._thread.join()
            self._socket.close()
