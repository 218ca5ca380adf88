# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Packets that are wrong in themselves: each cause is counted, and nothing is sent."""

from __future__ import annotations

from typing import Any

import pytest

from packet_frames import MORE_FRAGMENTS, Job, contribution, to_all_workers, to_switch
from packet_target import Target, check_exchange, check_frames
from switchfold.hostlib.slots.wire import Operation, Outcome, datagram_bytes


@pytest.mark.parametrize("missing_bytes", [1, 4, 200])
def test_packet_validation_short_datagram(target: Target, job: Job, missing_bytes: int) -> None:
    payload = contribution(job, 0).tobytes()[: -min(missing_bytes, 4 * job.values_per_packet)]
    check_exchange(target, 1, to_switch(job, 0, payload), Outcome.BAD_LENGTH)


@pytest.mark.parametrize("kept_bytes", [0, 1, 43, 44])
def test_packet_validation_datagram_without_lanes(
    target: Target, job: Job, kept_bytes: int
) -> None:
    payload = contribution(job, 0).tobytes()[:kept_bytes]
    check_exchange(target, 1, to_switch(job, 0, payload), Outcome.BAD_LENGTH)


def test_packet_validation_long_datagram(target: Target, job: Job) -> None:
    payload = contribution(job, 0).tobytes() + bytes(4)
    check_exchange(target, 1, to_switch(job, 0, payload), Outcome.BAD_LENGTH)


def test_packet_validation_frame_cut_behind_right_lengths(target: Target, job: Job) -> None:
    frame = to_switch(job, 0, contribution(job, 0))[:-1]
    check_exchange(target, 1, frame, Outcome.BAD_LENGTH)


@pytest.mark.parametrize(
    ("ip", "udp_fields"),
    [
        ({"total_length": 196}, {}),
        ({}, {"length": 99}),
        ({"fragment": MORE_FRAGMENTS}, {}),
    ],
)
def test_packet_validation_lengths_disagree(
    target: Target, job: Job, ip: dict[str, Any], udp_fields: dict[str, Any]
) -> None:
    frame = to_switch(job, 0, contribution(job, 0), ip=ip, udp_fields=udp_fields)
    check_exchange(target, 1, frame, Outcome.BAD_LENGTH)


def test_packet_validation_padding_behind_datagram_is_accepted(target: Target, job: Job) -> None:
    frame = to_switch(job, 0, contribution(job, 0)) + bytes(6)
    check_exchange(target, 1, frame, Outcome.ABSORBED)


@pytest.mark.parametrize("bit", [0x0001, 0x8000])
def test_packet_validation_wrong_udp_checksum(target: Target, job: Job, bit: int) -> None:
    frame = to_switch(job, 0, contribution(job, 0, 7), udp_fields={"checksum_error": bit})
    check_exchange(target, 1, frame, Outcome.BAD_CHECKSUM)


def test_packet_validation_flipped_lane_bit(target: Target, job: Job) -> None:
    frame = bytearray(to_switch(job, 0, contribution(job, 0, 7)))
    frame[-1] ^= 1
    check_exchange(target, 1, bytes(frame), Outcome.BAD_CHECKSUM)


def test_packet_validation_wrong_ipv4_checksum(target: Target, job: Job) -> None:
    frame = to_switch(job, 0, contribution(job, 0), ip={"checksum_error": 0x0100})
    check_exchange(target, 1, frame, Outcome.BAD_CHECKSUM)


def test_packet_validation_absent_udp_checksum_is_accepted(target: Target, job: Job) -> None:
    frame = to_switch(job, 0, contribution(job, 0), udp_fields={"checksum": 0})
    check_exchange(target, 1, frame, Outcome.ABSORBED)


def test_packet_validation_computed_zero_checksum_is_accepted(target: Target, job: Job) -> None:
    # tensor_id makes the datagram sum up to zero, which RFC 768 sends as 0xffff.
    plain = to_switch(job, 0, contribution(job, 0))
    checksum = int.from_bytes(plain[40:42], "big")
    datagram = contribution(job, 0, tensor_id=checksum)
    zero = to_switch(job, 0, datagram)
    assert zero[40:42] == b"\0\0"
    frame = to_switch(job, 0, datagram, udp_fields={"checksum": 0xFFFF})
    check_exchange(target, 1, frame, Outcome.ABSORBED)


@pytest.mark.parametrize("version", [0, 1, 255])
def test_packet_validation_version(target: Target, job: Job, version: int) -> None:
    frame = to_switch(job, 0, contribution(job, 0, version=version))
    check_exchange(target, 1, frame, Outcome.BAD_VERSION)


@pytest.mark.parametrize("operation", [0, 10, 255])
def test_packet_validation_unknown_operation(target: Target, job: Job, operation: int) -> None:
    frame = to_switch(job, 0, contribution(job, 0, operation=operation))
    check_exchange(target, 1, frame, Outcome.BAD_OPERATION)


@pytest.mark.parametrize(
    ("start", "elements"), [(0, 0), (5, -5), (0, 1_000_000), (0xFFFF_FFFF, -0xFFFF_FFFF)]
)
def test_packet_validation_range(target: Target, job: Job, start: int, elements: int) -> None:
    datagram = contribution(job, 0, range_start=start, range_end=start + elements)
    check_exchange(target, 1, to_switch(job, 0, datagram), Outcome.BAD_RANGE)


def test_packet_validation_range_one_longer_than_lanes(target: Target, job: Job) -> None:
    datagram = contribution(job, 0, range_end=job.values_per_packet + 1)
    check_exchange(target, 1, to_switch(job, 0, datagram), Outcome.BAD_RANGE)


def test_packet_validation_short_last_chunk_is_accepted(target: Target, job: Job) -> None:
    start = 3 * job.values_per_packet
    datagram = contribution(job, 0, chunk_index=3, range_start=start, range_end=start + 1)
    check_exchange(target, 1, to_switch(job, 0, datagram), Outcome.ABSORBED)


@pytest.mark.parametrize(("chunk_index", "start"), [(1, 0), (0, 1), (1, 31)])
def test_packet_validation_off_grid(target: Target, job: Job, chunk_index: int, start: int) -> None:
    datagram = contribution(job, 0, chunk_index=chunk_index, range_start=start, range_end=start + 1)
    check_exchange(target, 1, to_switch(job, 0, datagram), Outcome.OFF_GRID)


def test_packet_validation_chunk_index_may_not_wrap_around(target: Target, job: Job) -> None:
    chunk_index = -(-(1 << 32) // job.values_per_packet)
    start = chunk_index * job.values_per_packet - (1 << 32)
    datagram = contribution(job, 0, chunk_index=chunk_index, range_start=start, range_end=start + 1)
    check_exchange(target, 1, to_switch(job, 0, datagram), Outcome.OFF_GRID)


def test_packet_validation_refused_packets_change_nothing(target: Target, job: Job) -> None:
    good, other = contribution(job, 0, 5), contribution(job, 1, 6)
    check_exchange(target, 1, to_switch(job, 0, good), Outcome.ABSORBED)
    for bad in (
        to_switch(job, 1, contribution(job, 1, 6, version=9)),
        to_switch(job, 1, other, udp_fields={"checksum_error": 4}),
    ):
        check_frames(target.exchange(2, bad), [])
    result = contribution(
        job, 1, 11, operation=Operation.RESULT, worker_bitmap=3, num_contributors=2
    )
    check_exchange(
        target, 2, to_switch(job, 1, other), Outcome.COMPLETED, to_all_workers(job, result)
    )


def test_packet_validation_datagram_size_is_the_wire_formats(target: Target, job: Job) -> None:
    datagram = contribution(job, 0)
    assert len(datagram.tobytes()) == datagram_bytes(target.values_per_packet)
