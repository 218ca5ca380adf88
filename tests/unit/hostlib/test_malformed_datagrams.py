# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Every length and every flipped bit of a result: refused by its cause, and the sum stays right."""

from __future__ import annotations

import contextlib
import ctypes
import socket
import time
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from loopback import LOOPBACK
from switchfold.hostlib.control.view import Endpoint, JobView
from switchfold.hostlib.native.library import address, library
from switchfold.hostlib.native.structures import SourceStruct
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.slots.switch_reducer import SwitchReducer
from switchfold.hostlib.slots.wire import HEADER_BYTES, HEADER_DTYPE, Operation, datagram_bytes
from switchfold.hostlib.summation.chunks import IntegerSource, Summand, ValueKind
from switchfold.hostlib.transports.udp import UdpTransport

VALUES = 32
SIZE = datagram_bytes(VALUES)
CAUSES = {
    "version": "version",
    "operation": "operation",
    "job_id": "foreign_job",
    "generation": "generation",
    "slot_index": "slot",  # or the name of one that waits for nothing
    "round": "duplicate",
    "tensor_id": "mismatch",
    "chunk_index": "mismatch",
    "range_start": "mismatch",
    "range_end": "mismatch",
}
"""Of fields that must be those of the contribution; a result may change the others."""
NEVER_AGAIN = SessionOptions(min_rto_s=60.0, initial_rto_s=60.0, max_rto_s=60.0)


class Worker:
    """A reducer with one chunk under way, and the socket of its switch."""

    def __init__(self, transport: UdpTransport, switch: socket.socket) -> None:
        self.transport, self._switch = transport, switch
        port = switch.getsockname()[1]
        self.slot_count = 32
        view = JobView.on_one_switch(
            job=7,
            generation=0x01020304,
            worker_id=0,
            num_workers=1,
            slot_count=self.slot_count,
            values_per_packet=VALUES,
            switch=Endpoint(address=LOOPBACK, udp_port=port),
        )
        transport.open(Endpoint(address=LOOPBACK, udp_port=port), SIZE)
        self._refused: Counter[str] = Counter()
        self._reducer = SwitchReducer(view, transport, NEVER_AGAIN, self._refused)
        self._flat = np.arange(VALUES, dtype=np.int32)
        self.source = IntegerSource(Summand(tensor_id=258, flat=self._flat), VALUES)
        self._reducer.values.enqueue(self.source)
        self._reducer.poll(time.monotonic())
        contribution = bytearray(switch.recv(SIZE + 1))
        contribution[1] = Operation.RESULT
        self.result = bytes(contribution)

    def send(self, datagram: bytes) -> None:
        self._switch.sendto(datagram, (LOOPBACK, self.transport.local.udp_port))

    @property
    def counts(self) -> Counter[str]:
        return +(self._refused + self.transport.counters)

    def take(self, count: int) -> Counter[str]:
        """Receive until so many more datagrams are counted; return by which causes."""
        before, deadline_s = self.counts, time.monotonic() + 60
        while (counted := self.counts - before).total() < count:
            assert time.monotonic() < deadline_s, f"{counted} of {count}"
            assert self._reducer.poll(time.monotonic() + 0.01).results == 0
        return counted

    def finish(self) -> None:
        """Take the good result."""
        self.finish_with(self.result)
        np.testing.assert_array_equal(self.source.output.reshape(-1), self._flat)

    def finish_with(self, datagram: bytes) -> None:
        """Take a result, whatever its values are."""
        self.send(datagram)
        while not self._reducer.values.is_finished(self.source):
            self._reducer.poll(time.monotonic() + 1)


@pytest.fixture
def worker() -> Iterator[Worker]:
    with (
        contextlib.closing(UdpTransport(LOOPBACK)) as transport,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as switch,
    ):
        switch.bind((LOOPBACK, 0))
        yield Worker(transport, switch)


def test_every_length_but_one_is_refused(worker: Worker) -> None:
    for length in range(SIZE + 100):
        if length != SIZE:
            worker.send((worker.result + bytes(100))[:length])
            assert worker.take(1) == {"length": 1}, length
    worker.finish()


@pytest.mark.parametrize("field", CAUSES)
def test_every_bit_that_names_the_chunk_counts(worker: Worker, field: str) -> None:
    assert HEADER_DTYPE.fields is not None
    dtype, at = HEADER_DTYPE.fields[field][:2]
    for place in range(at, at + dtype.itemsize):
        for bit in range(8):
            damaged = bytearray(worker.result)
            damaged[place] ^= 1 << bit
            if field == "operation" and damaged[place] == Operation.MULTICAST:
                continue  # a packet of allgathers: see test_malformed_blocks.py
            worker.send(bytes(damaged))
            causes = worker.take(1)
            if field == "slot_index" and causes["duplicate"]:
                assert int.from_bytes(damaged[at : at + 4], "big") < worker.slot_count
            else:
                assert causes == {CAUSES[field]: 1}, f"bit {bit} of byte {place}"
    worker.finish()


def test_unchecked_fields_do_not_hide_a_result(worker: Worker) -> None:
    changed = bytearray(worker.result)
    for field in ("flags", "worker_id", "worker_bitmap", "num_contributors", "exponent"):
        assert HEADER_DTYPE.fields is not None
        dtype, at = HEADER_DTYPE.fields[field][:2]
        changed[at : at + dtype.itemsize] = bytes(
            b ^ 0xFF for b in changed[at : at + dtype.itemsize]
        )
    worker.result = bytes(changed)
    worker.finish()


def test_forged_values_from_the_right_address_are_taken(worker: Worker) -> None:
    """Nothing in a result proves its sender: see docs/security.md."""
    forged = np.full(VALUES, 666, ">i4")
    worker.finish_with(worker.result[:HEADER_BYTES] + forged.tobytes())
    np.testing.assert_array_equal(worker.source.output.reshape(-1), forged)


def test_mean_of_nobody_is_finite() -> None:
    rows, output = np.full((1, VALUES), 8, np.int32), np.zeros(VALUES, np.float32)
    factor, contributors = np.ones(1, np.float32), np.zeros(1, np.uint16)
    source = SourceStruct(
        num_chunks=1,
        num_values=VALUES,
        values=ValueKind.FLOAT32,
        backward=address(factor),
        output=address(output),
        contributors=address(contributors),
        is_mean=True,
    )
    library.source_take_rows(ctypes.byref(source), 0, 1, address(rows), VALUES)
    np.testing.assert_array_equal(output, 8)
