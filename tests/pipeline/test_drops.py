# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Packets that are dropped after ingress, as in simple_switch."""

from __future__ import annotations

import pytest

from pipeline_driver import PROGRAMS
from switchfold.softswitch import Switch, compile_program

IN_FUNCTION, PRIORITY, PRIORITY_OF_GROUP = 1, 2, 3


def make_switch(priority_queues: int = 1) -> Switch:
    program = compile_program(PROGRAMS / "drops.json", cflags=("-Werror",))
    switch = Switch(program, priority_queues=priority_queues)
    for port in (1, 2):
        switch.ports.add(port, "mem")
    switch.replication.set_multicast_group(1, [(1, 0), (2, 0)])
    return switch


def test_a_function_drops_through_its_copy_of_the_metadata() -> None:
    with make_switch() as switch:
        assert switch.process(1, bytes([IN_FUNCTION, 7, 0])) == []
        assert switch.process(1, bytes([IN_FUNCTION, 9, 0])) == [(1, bytes([IN_FUNCTION, 9, 9]))]
        assert switch.ports.statistics(1)["dropped_by_program"] == 1


@pytest.mark.parametrize(("queues", "sent"), [(1, [0]), (3, [0, 1, 2]), (8, list(range(8)))])
def test_a_priority_without_a_queue_drops(queues: int, sent: list[int]) -> None:
    with make_switch(queues) as switch:
        left = [switch.process(1, bytes([PRIORITY, number, 0])) for number in range(8)]
        assert [frame[2] for frames in left for _, frame in frames] == sent
        copies = [switch.process(1, bytes([PRIORITY_OF_GROUP, number, 0])) for number in range(8)]
        assert [len(frames) for frames in copies] == [2] * queues + [0] * (8 - queues)
        assert switch.ports.statistics(1)["dropped_priority"] == 2 * (8 - queues)
