# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames to and from the controller."""

from __future__ import annotations

import pytest

from packet_frames import CPU_PORT, SWITCH_MAC, Job, contribution, ethernet, to_switch
from packet_target import PORTS, Target, check_frames

TO_CPU, FROM_CPU = 4, 5


def packet_in(port: int, frame: bytes) -> tuple[int, bytes]:
    return CPU_PORT, (port << 7).to_bytes(2, "big") + frame


@pytest.mark.parametrize("ethertype", [0x0806, 0x86DD, 0x88CC, 0x0026])
@pytest.mark.parametrize("port", PORTS)
def test_packet_io_not_ipv4_goes_to_the_controller(
    target: Target, port: int, ethertype: int
) -> None:
    before = target.counters("ordinary_outcomes")[TO_CPU]
    frame = ethernet(0xFFFF_FFFF_FFFF, 5, ethertype) + bytes(range(46))
    check_frames(target.exchange(port, frame), [packet_in(port, frame)])
    assert target.counters("ordinary_outcomes")[TO_CPU] == before + 1


def test_packet_io_long_frame_arrives_whole(target: Target) -> None:
    frame = ethernet(SWITCH_MAC, 5, 0x88CC) + bytes(index % 253 for index in range(1486))
    check_frames(target.exchange(3, frame), [packet_in(3, frame)])


@pytest.mark.parametrize("port", PORTS)
def test_packet_io_packet_out_leaves_untouched(target: Target, port: int) -> None:
    before = target.counters("ordinary_outcomes")[FROM_CPU]
    frame = ethernet(5, SWITCH_MAC, 0x0806) + bytes([port]) * 46
    check_frames(target.packet_out(port, frame), [(port, frame)])
    assert target.counters("ordinary_outcomes")[FROM_CPU] == before + 1


def test_packet_io_packet_out_of_a_contribution_is_not_aggregated(target: Target, job: Job) -> None:
    outcomes = target.counters("outcomes")
    frame = to_switch(job, 0, contribution(job, 0, 3))
    check_frames(target.packet_out(2, frame), [(2, frame)])
    assert target.counters("outcomes") == outcomes
