# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Damaged, doubled and early chunks of allgathers: counted by cause, and the blocks stay right."""

from __future__ import annotations

import contextlib
import socket
import time
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from loopback import LOOPBACK
from switchfold.hostlib.allgather import AllgatherTask
from switchfold.hostlib.control.view import Endpoint, JobView
from switchfold.hostlib.errors import PeerMismatchError
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.slots.switch_reducer import SwitchReducer
from switchfold.hostlib.slots.wire import HEADER_BYTES, HEADER_DTYPE, Flag, datagram_bytes
from switchfold.hostlib.transports.udp import UdpTransport

VALUES, CHUNKS, WINDOW_CHUNKS = 32, 3, 128
SIZE = datagram_bytes(VALUES)
JOB, GENERATION, OTHER, NOBODY = 7, 0x01020304, 1, 255
CAUSES = {
    "version": "version",
    "job_id": "foreign_job",
    "generation": "generation",
    "worker_bitmap": "foreign_worker",
}
"""Of fields that say whose multicast it is."""
CLAIMS = ("tensor_id", "chunk_index", "range_end", "expected")
"""Fields that must be those of this worker's allgather."""
NEVER_AGAIN = SessionOptions(min_rto_s=60.0, initial_rto_s=60.0, max_rto_s=60.0)


class Worker:
    """A worker with an allgather under way, and the socket of its switch."""

    def __init__(self, transport: UdpTransport, switch: socket.socket) -> None:
        self.transport, self.switch = transport, switch
        remote = Endpoint(address=LOOPBACK, udp_port=switch.getsockname()[1])
        view = JobView.on_one_switch(
            job=JOB,
            generation=GENERATION,
            worker_id=0,
            num_workers=2,
            slot_count=32,
            values_per_packet=VALUES,
            switch=remote,
        )
        transport.open(remote, SIZE)
        self._refused: Counter[str] = Counter()
        self.reducer = SwitchReducer(view, transport, NEVER_AGAIN, self._refused)
        generator = np.random.default_rng(1)
        self.arrays = generator.integers(-99, 99, (2, VALUES * CHUNKS - 5)).astype(np.int32)
        self.task = AllgatherTask(0, self.arrays[0], deadline_s=np.inf, timeout_s=60.0)
        self.task.begin(view, retains=False)
        assert self.reducer.multicast is not None
        self.reducer.multicast.enqueue(self.task, time.monotonic())
        self.sent = [switch.recv(SIZE + 1) for _ in range(CHUNKS)]
        words = np.zeros(VALUES * CHUNKS, np.int32)
        words[: self.arrays.shape[1]] = self.arrays[1]
        self.chunks = [
            self.changed(
                header + words[VALUES * i : VALUES * (i + 1)].tobytes(),
                worker_id=OTHER,
                worker_bitmap=1 << OTHER,
                priority=NOBODY,
            )
            for i, header in enumerate(datagram[:HEADER_BYTES] for datagram in self.sent)
        ]
        """Those of the other worker."""

    def changed(self, datagram: bytes, **fields: int) -> bytes:
        row = np.frombuffer(datagram, np.uint8).copy()
        header = row[:HEADER_BYTES].view(HEADER_DTYPE)
        for name, value in fields.items():
            header[name] = value
        return row.tobytes()

    def report(self, received: int, held: int, about: int = 0) -> bytes:
        """Return a report of a worker's chunks; `held` has bit i for chunk `received` + i."""
        words = [about, received, *(held >> 32 * i & 0xFFFFFFFF for i in range(4))]
        lanes = np.zeros(VALUES, ">u4")
        lanes[: len(words)] = words
        header = self.changed(
            self.chunks[0], flags=Flag.REPORT, tensor_id=0, range_end=len(words), expected=0
        )
        return header[:HEADER_BYTES] + lanes.tobytes()

    def send(self, *datagrams: bytes) -> None:
        for datagram in datagrams:
            self.switch.sendto(datagram, (LOOPBACK, self.transport.local.udp_port))

    def poll(self) -> int:
        return self.reducer.poll(time.monotonic() + 0.01).results

    def take(self, *datagrams: bytes) -> tuple[int, Counter[str]]:
        """Take datagrams; return how many brought news, and the causes of the others."""
        before, news = self._refused.copy(), 0
        self.send(*datagrams)
        deadline_s = time.monotonic() + 60
        while news + (refused := self._refused - before).total() < len(datagrams):
            assert time.monotonic() < deadline_s, f"{news} and {refused} of {len(datagrams)}"
            news += self.poll()
        return news, refused

    def check(self) -> None:
        """Check that the allgather has ended with the blocks of both workers."""
        assert self.task.is_settled
        self.task.finish()
        np.testing.assert_array_equal(self.task.future.result(0), self.arrays)

    @property
    def counts(self) -> Counter[str]:
        assert self.reducer.multicast is not None
        return self.reducer.multicast.counts


@pytest.fixture
def worker() -> Iterator[Worker]:
    with (
        contextlib.closing(UdpTransport(LOOPBACK)) as transport,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as switch,
    ):
        switch.bind((LOOPBACK, 0))
        switch.settimeout(60)
        yield Worker(transport, switch)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_each_chunk_counts_once_in_any_order(worker: Worker, order: tuple[int, ...]) -> None:
    for place in order:
        assert worker.take(worker.chunks[place]) == (1, {})
        assert worker.take(worker.chunks[place]) == (0, {"duplicate": 1})
    worker.check()
    assert worker.take(*worker.chunks) == (0, {"duplicate": CHUNKS})
    assert worker.counts["multicast_packets_received"] == CHUNKS


@pytest.mark.parametrize("field", CAUSES)
def test_every_bit_that_names_the_sender_counts(worker: Worker, field: str) -> None:
    assert HEADER_DTYPE.fields is not None
    dtype, at = HEADER_DTYPE.fields[field][:2]
    for place in range(at, at + dtype.itemsize):
        for bit in range(8):
            damaged = bytearray(worker.chunks[0])
            damaged[place] ^= 1 << bit
            assert worker.take(bytes(damaged)) == (0, {CAUSES[field]: 1}), (place, bit)
    for bitmap in (1 << 0, 1 << 2, 0, 0xFFFFFFFF):
        foreign = worker.changed(worker.chunks[0], worker_bitmap=bitmap)
        assert worker.take(foreign) == (0, {"foreign_worker": 1}), bitmap
    assert worker.take(*worker.chunks) == (CHUNKS, {})
    worker.check()


@pytest.mark.parametrize("sequence", [WINDOW_CHUNKS, 1 << 31, 0xFFFFFFFF])
def test_chunk_outside_the_window_is_refused(worker: Worker, sequence: int) -> None:
    far = worker.changed(worker.chunks[0], round=sequence)
    assert worker.take(far) == (0, {"duplicate": 1})
    assert worker.take(*worker.chunks) == (CHUNKS, {})
    worker.check()


def test_chunks_before_their_allgather_wait_for_it(worker: Worker) -> None:
    early = worker.changed(worker.chunks[0], round=CHUNKS, tensor_id=2)
    assert worker.take(early) == (1, {})
    assert worker.take(early) == (0, {"duplicate": 1})
    assert worker.take(*worker.chunks) == (CHUNKS, {})
    worker.check()


@pytest.mark.parametrize("field", CLAIMS)
def test_chunk_of_another_tensor_is_a_mismatch(worker: Worker, field: str) -> None:
    other = bytearray(worker.chunks[0])
    assert HEADER_DTYPE.fields is not None
    dtype, at = HEADER_DTYPE.fields[field][:2]
    other[at + dtype.itemsize - 1] ^= 1
    with pytest.raises(PeerMismatchError, match="worker 1 gathers something else"):
        worker.take(bytes(other))


def test_report_of_any_content_does_no_harm(worker: Worker) -> None:
    every = (1 << WINDOW_CHUNKS) - 1
    reports = [
        worker.report(received, held, about)
        for received in (0, 1, CHUNKS + 1, 1 << 31, 0xFFFFFFFF)
        for held in (0, every)
        for about in (0, 1, 9, 255)
    ]
    reports.append(worker.changed(worker.report(0, every), range_end=0xFFFFFFFF))
    reports.append(worker.changed(worker.report(0, every), range_end=0))
    assert worker.take(*reports) == (len(reports), {})
    assert worker.take(*worker.chunks) == (CHUNKS, {})
    worker.check()


def test_report_of_a_gap_makes_the_lost_chunk_leave_again(worker: Worker) -> None:
    deadline_s = time.monotonic() + 60
    while not worker.counts["multicast_packets_retransmitted"]:
        assert time.monotonic() < deadline_s
        worker.take(worker.report(0, 0b10))  # the second chunk has come, the first one not
    again = worker.switch.recv(SIZE + 1)
    while again[HEADER_BYTES:] != worker.sent[0][HEADER_BYTES:]:
        again = worker.switch.recv(SIZE + 1)  # a report
    fixed = ("tensor_id", "chunk_index", "range_start", "range_end", "round", "flags", "expected")
    pair = [np.frombuffer(each[:HEADER_BYTES], HEADER_DTYPE)[0] for each in (again, worker.sent[0])]
    assert [pair[0][name] for name in fixed] == [pair[1][name] for name in fixed]


def test_receipts_end_what_is_owed(worker: Worker) -> None:
    multicast = worker.reducer.multicast
    assert multicast is not None
    assert multicast.is_owing
    receipt = worker.changed(worker.chunks[0], priority=0, slot_index=CHUNKS)
    assert worker.take(receipt) == (1, {})
    assert multicast.missing == [OTHER]  # its block
    deadline_s = time.monotonic() + 60
    while multicast.is_owing:  # until the report of its chunk has left
        assert time.monotonic() < deadline_s
        worker.poll()
    assert worker.counts["multicast_packets_reported"] == 1
