# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The aggregation program, both widths, straight through the pipeline seam."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from pipeline_driver import Driver
from switchfold.hostlib.slots.wire import (
    UDP_PORT,
    WIRE_VERSION,
    Flag,
    Operation,
    Outcome,
    datagram_dtype,
)

BUILD = Path(__file__).parents[2] / "p4src" / "build"
GROUP = 5
GENERATION = 1000
SWITCH = "10.0.0.254"


class Aggregator(Driver):
    """Two workers of one job on ports 1 and 2."""

    def __init__(self, variant: str, values: int) -> None:
        super().__init__(BUILD / f"switchfold_{variant}" / f"switchfold_{variant}.json")
        self.values = values
        self.insert("job", [1], "admit_root", [GENERATION, 0, 8, 3, 2, 2, GROUP, 0, 0, 0])
        for worker in (0, 1):
            source = 0x0A000001 + worker
            key: list[int | tuple[int, int]] = [1, worker, worker + 1, source]
            self.insert("worker", key, "admit_worker", [1 << worker, 1 << worker, 1])
            address = [0x020000000001 + worker, source, 5000 + worker]
            self.insert("worker_address", [1, worker + 1], "set_worker_address", address)
        for outcome in Outcome:
            self.insert("outcome", [1, int(outcome)], "count_outcome", [])

    def frame(self, worker: int, lanes: np.ndarray, round_: int = 1, **fields: int) -> bytes:
        datagram = np.zeros(1, datagram_dtype(self.values))
        header = datagram["header"]
        content = {
            "version": WIRE_VERSION,
            "operation": Operation.AGGREGATE_ADD,
            "job_id": 1,
            "worker_id": worker,
            "generation": GENERATION,
            "slot_index": 3,
            "round": round_,
            "range_end": self.values,
            "worker_bitmap": 1 << worker,
            "num_contributors": 1,
            "exponent": 100 + worker,
        } | fields
        for name, value in content.items():
            header[name] = value
        datagram["values"] = lanes
        packet = Ether(src=f"02:00:00:00:00:{worker + 1:02x}", dst="02:00:00:00:00:fe")
        packet /= IP(src=f"10.0.0.{worker + 1}", dst=SWITCH)
        packet /= UDP(sport=5000 + worker, dport=UDP_PORT) / datagram.tobytes()
        return bytes(packet)

    def outcomes(self) -> dict[Outcome, int]:
        counts = {outcome: self.counter("outcome.outcomes", outcome)[0] for outcome in Outcome}
        return {outcome: count for outcome, count in counts.items() if count}

    def result(self, replica: int) -> tuple[Packet, np.ndarray]:
        self.egress(replica, egress_rid=replica, instance_type=5)
        frame = self.deparse()
        packet = Ether(frame)
        datagram = np.frombuffer(bytes(packet[UDP].payload), datagram_dtype(self.values))[0]
        return packet, datagram


@pytest.fixture(params=[("narrow", 32), ("wide", 352)], ids=["narrow", "wide"])
def switch(request: pytest.FixtureRequest) -> Iterator[Aggregator]:
    held = Aggregator(*request.param)
    yield held
    held.close()


def lanes(switch: Aggregator, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    values = generator.integers(-(1 << 31), 1 << 31, switch.values, dtype=np.int64)
    return values.astype(np.int32)


def saturated(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    total = left.astype(np.int64) + right.astype(np.int64)
    return np.clip(total, -(1 << 31), (1 << 31) - 1)


def test_two_contributions_complete_with_saturated_sums(switch: Aggregator) -> None:
    first, second = lanes(switch, 1), lanes(switch, 2)
    out = switch.ingress(switch.frame(0, first), port=1)
    assert out.mcast_grp == 0
    assert out.egress_spec == switch.ops.drop_port
    out = switch.ingress(switch.frame(1, second), port=2)
    assert out.mcast_grp == GROUP
    packet, datagram = switch.result(1)
    np.testing.assert_array_equal(datagram["values"], saturated(first, second))
    header = datagram["header"]
    assert header["operation"] == Operation.RESULT
    assert header["worker_bitmap"] == 3
    assert header["num_contributors"] == 2
    assert header["exponent"] == 101
    assert int(header["flags"]) & Flag.OVERFLOW
    assert (packet[IP].dst, packet[UDP].dport) == ("10.0.0.1", 5000)
    stated = (packet[IP].chksum, packet[UDP].chksum)
    del packet[IP].chksum, packet[UDP].chksum
    again = Ether(bytes(packet))
    assert stated == (again[IP].chksum, again[UDP].chksum)
    assert switch.outcomes() == {Outcome.ABSORBED: 1, Outcome.COMPLETED: 1}


def test_small_sums_do_not_overflow_and_rounds_start_afresh(switch: Aggregator) -> None:
    for round_ in range(1, 6):
        first = np.arange(switch.values) * round_
        second = -np.arange(switch.values) - round_
        switch.ingress(switch.frame(0, first, round_), port=1)
        switch.ingress(switch.frame(1, second, round_), port=2)
        _, datagram = switch.result(2)
        np.testing.assert_array_equal(datagram["values"], first + second)
        assert not int(datagram["header"]["flags"]) & Flag.OVERFLOW


def test_maximum(switch: Aggregator) -> None:
    first, second = lanes(switch, 3), lanes(switch, 4)
    operation = {"operation": int(Operation.AGGREGATE_MAX)}
    switch.ingress(switch.frame(0, first, **operation), port=1)
    switch.ingress(switch.frame(1, second, **operation), port=2)
    _, datagram = switch.result(1)
    np.testing.assert_array_equal(datagram["values"], np.maximum(first, second))


def test_bad_checksum_and_foreign_packets_are_counted(switch: Aggregator) -> None:
    frame = bytearray(switch.frame(0, lanes(switch, 5)))
    frame[-1] ^= 1
    switch.process(bytes(frame), port=1)
    switch.process(switch.frame(0, lanes(switch, 5)), port=2)
    switch.process(switch.frame(0, lanes(switch, 5), job_id=2), port=1)
    switch.process(switch.frame(0, lanes(switch, 5))[:-4], port=1)
    assert set(switch.outcomes()) == {
        Outcome.BAD_CHECKSUM,
        Outcome.FOREIGN_WORKER,
        Outcome.FOREIGN_JOB,
        Outcome.BAD_LENGTH,
    }


def test_lanes_of_an_index_are_contiguous_and_loops(switch: Aggregator) -> None:
    from switchfold.softswitch.generator import generate  # noqa: PLC0415

    text = generate(switch.model)
    assert f"* {switch.values} + i]" in text.replace("1 + i]", "i]")
    assert len(text.splitlines()) < 9000


def test_lane_registers_are_readable(switch: Aggregator) -> None:
    values = lanes(switch, 6)
    switch.ingress(switch.frame(0, values), port=1)
    names = [r.name for r in switch.model.registers if ".lanes.lane" in r.name]
    assert len(names) == switch.values
    held = [switch.register(name, 3 << 1 | 1) for name in names]
    assert held == [int(value) & 0xFFFFFFFF for value in values]
