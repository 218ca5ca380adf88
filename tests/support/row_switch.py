# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The reference switch with the hot rows of one job behind a UDP socket on loopback.

    with RowSwitch(num_workers=2) as switch:
        switch.attach(SERVER_ID_BASE, server.local.address, server.local.udp_port)
        switch.set_rows({4: RowEntry(epoch=32, exponent=-10)})
        worker.open(switch.endpoint, switch.datagram_bytes)  # UdpTransports, as the server's

Workers and servers are told apart by the header's `worker_id`: bit w for worker w, none for a
server. Each gets its answers where its last packet came from, or where `attach` says. Row r takes
slot r for its pushes, and its values are in the copies behind all these slots, as in a real lease.
"""

from __future__ import annotations

import random
import socket
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from loopback import LOOPBACK
from reference_job import (
    ReferenceChild,
    ReferenceJob,
    ReferenceRow,
)
from slot_reference import (
    Destination,
    ReferenceSwitch,
)
from switchfold.hostlib.control.view import Endpoint
from switchfold.hostlib.hot_rows.row_packets import SERVER_ID_BASE
from switchfold.hostlib.slots.wire import (
    EXPONENT_BIAS,
    Operation,
    Outcome,
    datagram_bytes,
    view_datagrams,
)
from switchfold.hostlib.transports.sockets import enlarge_buffers

MOST_SERVERS: Final = 32
_MARK: Final = b"."
_HELD: Final = 20
"""Packets that are held back at most; a packet overtakes up to so many."""
_RELEASE: Final = 0.2
"""Probability with which a packet that passes releases a held one."""


class RowEntry(NamedTuple):
    """A row's entry in table `hot_row`."""

    epoch: int
    exponent: int = 0
    """A lane is worth 2^exponent."""
    server_id: int = SERVER_ID_BASE
    """`worker_id` of the row's server, which gets its sums and receipts."""


class RowSwitch:
    """Runs from `__enter__` to `__exit__`, in a thread of its own; safe from any thread.

    Impairments apply to each packet in both directions, by a generator with the seed; a packet that
    is held back leaves after later ones. `drop`, if it is set, loses packets of the test's choice:
    it gets the packet, and the receiver's `worker_id`, or None for a packet to the switch.
    """

    def __init__(  # noqa: PLR0913 - a test names the few that differ
        self,
        num_workers: int,
        *,
        values_per_packet: int = 32,
        num_rows: int = 1024,
        job_id: int = 7,
        generation: int = 1000,
        loss: float = 0.0,
        duplication: float = 0.0,
        reordering: float = 0.0,
        seed: int = 1,
        address: str = LOOPBACK,
    ) -> None:
        self.loss, self.duplication, self.reordering = loss, duplication, reordering
        self.drop: Callable[[NDArray[np.void], int | None], bool] | None = None
        self.passed: Counter[str] = Counter()
        """Packets to the switch by operation in lower case, such as `aggregate_add`; its packets
        as `to_workers` and `to_servers`; `lost`, also by `drop`; `doubled`; `held`; `ignored` by a
        stopped switch; `homeless`: for somebody who is not known."""
        self.changed = threading.Condition(threading.RLock())
        """Notified after each packet."""
        self.datagram_bytes = datagram_bytes(values_per_packet)
        self.num_rows = num_rows
        self._values = values_per_packet
        self._random = random.Random(seed)
        self._reference = ReferenceSwitch(values_per_packet)
        self._homes: dict[int, tuple[str, int]] = {}
        self._servers: dict[int, int] = {}  # by row
        self._held: deque[tuple[NDArray[np.void], int | None]] = deque()
        self._is_stopped = False
        self._num_drained = 0
        self._failure: BaseException | None = None
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        enlarge_buffers(self._socket)
        self._socket.bind((address, 0))
        self._thread = threading.Thread(target=self._serve, name="row-switch")
        self.begin_view(generation, num_workers, job_id=job_id)

    @property
    def endpoint(self) -> Endpoint:
        """Where workers and servers send packets."""
        address, port = self._socket.getsockname()
        return Endpoint(address=address, udp_port=port)

    @property
    def job_id(self) -> int:
        """Of the packets."""
        return self._job.job_id

    @property
    def generation(self) -> int:
        """Of the view."""
        return self._job.generation

    @property
    def num_workers(self) -> int:
        """Of the view."""
        return self._job.num_workers

    @property
    def outcomes(self) -> dict[Outcome, int]:
        """How many packets had each outcome."""
        return self._reference.outcomes

    @property
    def rows(self) -> dict[int, RowEntry]:
        """The entries of table `hot_row`."""
        with self.changed:
            return {
                row: RowEntry(entry.epoch, entry.exponent - EXPONENT_BIAS, self._servers[row])
                for row, entry in self._job.hot_rows.items()
            }

    def begin_view(self, generation: int, num_workers: int, *, job_id: int | None = None) -> None:
        """Install another view in place of the one before: it has no hot rows yet."""
        bits = {i: 1 << i for i in range(num_workers)}
        bits |= dict.fromkeys(range(SERVER_ID_BASE, SERVER_ID_BASE + MOST_SERVERS), 0)
        children = {
            i: ReferenceChild(port=i, address=i, bit=bit, contributor_mask=bit)
            for i, bit in bits.items()
        }
        with self.changed:
            self._servers.clear()
            self._job = ReferenceJob(
                job_id=self._job.job_id if job_id is None else job_id,
                generation=generation,
                slot_base=0,
                slot_count=0,
                children=children,
                num_workers=num_workers,
                quorum=num_workers,
            )
            self._reference.jobs = {self._job.job_id: self._job}

    def attach(self, worker_id: int, address: str, udp_port: int) -> None:
        """Name the place of a worker or server that may get packets before it sends any."""
        with self.changed:
            self._homes[worker_id] = (address, udp_port)

    def set_rows(self, entries: Mapping[int, RowEntry]) -> None:
        """Add or replace entries by the row's number; the others stay."""
        assert all(0 <= row < self.num_rows for row in entries)
        with self.changed:
            self._set(
                self._job.hot_rows
                | {
                    row: ReferenceRow(
                        slot=row,
                        value_copy=2 * self.num_rows + row,
                        epoch=entry.epoch,
                        exponent=entry.exponent + EXPONENT_BIAS,
                    )
                    for row, entry in entries.items()
                }
            )
            self._servers |= {row: entry.server_id for row, entry in entries.items()}

    def delete_rows(self, rows: Iterable[int]) -> None:
        """Evict rows: their packets are answered COLD from now on."""
        gone = set(rows)
        with self.changed:
            self._set({r: entry for r, entry in self._job.hot_rows.items() if r not in gone})

    def _set(self, rows: dict[int, ReferenceRow]) -> None:
        self._job = replace(self._job, hot_rows=rows)
        self._reference.jobs = {self._job.job_id: self._job}

    def restart(self) -> None:
        """Lose all registers and all packets that are held back; the entries stay."""
        with self.changed:
            outcomes = self._reference.outcomes
            self._reference = ReferenceSwitch(self._values)
            self._reference.outcomes = outcomes
            self._reference.jobs = {self._job.job_id: self._job}
            self._held.clear()
            self._is_stopped = False

    def stop(self) -> None:
        """Ignore all packets, until `restart`."""
        with self.changed:
            self._is_stopped = True

    def wait(self, condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
        """Wait until a condition holds that packets change."""
        with self.changed:
            assert self.changed.wait_for(condition, timeout_s), self.passed

    def drain(self) -> None:
        """Wait until all packets that were sent before have been taken."""
        with self.changed:
            goal = self._num_drained + 1
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mark:
            mark.sendto(_MARK, self._socket.getsockname())
        self.wait(lambda: self._num_drained >= goal)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", self._socket.getsockname())
        self._thread.join()
        self._socket.close()
        if self._failure is not None and exc is None:
            raise self._failure

    def _serve(self) -> None:
        try:
            while True:
                data, source = self._socket.recvfrom(1 << 16)
                if not data:
                    return
                if data == _MARK:
                    with self.changed:
                        self._num_drained += 1
                        self.changed.notify_all()
                    continue
                assert len(data) == self.datagram_bytes, f"a datagram of {len(data)} bytes"
                packet = view_datagrams(np.frombuffer(data, np.uint8)[None, :], self._values)[0]
                with self.changed:
                    self._homes[int(packet["header"]["worker_id"])] = source
                    self._pass(packet, None)
                    self.changed.notify_all()
        except BaseException as error:  # raised again at the end of the test
            self._failure = error

    def _pass(self, packet: NDArray[np.void], to: int | None) -> None:
        """Lose, double or hold back a packet; `to` None means towards the switch."""
        if self._is_stopped:
            self.passed["ignored"] += 1
            return
        draw = self._random.random
        if draw() < self.loss or (self.drop is not None and self.drop(packet, to)):
            self.passed["lost"] += 1
            return
        is_double = draw() < self.duplication
        self.passed["doubled"] += is_double
        for _ in range(1 + is_double):
            if len(self._held) < _HELD and draw() < self.reordering:
                self.passed["held"] += 1
                self._held.append((packet.copy(), to))
            else:
                self._deliver(packet, to)
        while self._held and draw() < _RELEASE:
            self._deliver(*self._held.popleft())

    def _deliver(self, packet: NDArray[np.void], to: int | None) -> None:
        if to is not None:
            home = self._homes.get(to)
            if home is None:
                self.passed["homeless"] += 1
                return
            self.passed["to_servers" if to >= SERVER_ID_BASE else "to_workers"] += 1
            self._socket.sendto(packet.tobytes(), home)
            return
        header = packet["header"]
        sender, row = int(header["worker_id"]), int(header["slot_index"])
        self.passed[Operation(int(header["operation"])).name.lower()] += 1
        _, reply = self._reference.receive(sender, sender, packet)
        if reply is None:
            return
        assert reply.to in (Destination.SENDER, Destination.SERVER, Destination.COPIES)
        self._pass(reply.datagram, sender if reply.to is Destination.SENDER else self._servers[row])
