# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Priority queues of a port whose rate lets nothing leave, until the test lifts the rate."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from pipeline_driver import PROGRAMS
from priority_frames import (
    CLONE,
    CLONE_IN_EGRESS,
    CLONED,
    GROUP,
    MULTICAST,
    SESSION,
    SIZE,
    UNICAST,
    Frame,
    release,
    send,
    stop_port,
)
from switchfold.softswitch import Switch, compile_program
from switchfold.softswitch.commands.command import main
from switchfold.softswitch.trace.pcap import read_pcap

QUEUES = 8


def make_switch(priority_queues: int = QUEUES) -> Switch:
    program = compile_program(PROGRAMS / "priorities.json", cflags=("-Werror",))
    switch = Switch(program, priority_queues=priority_queues)
    switch.ports.add(1, "mem")
    return switch


@pytest.fixture
def switch() -> Iterator[Switch]:
    with make_switch() as made:
        yield made


def strict(frames: Sequence[Frame]) -> list[Frame]:
    """Return frames in the order in which they leave: the first is on its way when others come."""
    return [frames[0], *sorted(frames[1:], key=lambda frame: -frame.priority)]


def queued(frames: Sequence[Frame]) -> list[Frame]:
    """Return frames with the depths that egress sees if none leaves meanwhile."""
    depths = [0] * QUEUES
    made: list[Frame] = []
    for frame in frames:
        made.append(frame._replace(enq_qdepth=depths[frame.priority]))
        depths[frame.priority] += 1
    return made


def test_the_highest_priority_leaves_first(switch: Switch, tmp_path: Path) -> None:
    generator = random.Random(7)
    frames = [Frame(UNICAST, generator.randrange(QUEUES), 2, serial) for serial in range(300)]
    capture = tmp_path / "port2.pcap"
    switch.ports.add(2, "mem", capture=capture)
    stop_port(switch, 2)
    switch.start()
    send(switch, frames[:100])
    send(switch, frames[100:])
    left = release(switch, 2)
    assert left == strict(queued(frames))
    counted = switch.ports.statistics(2)
    assert counted["tx_packets"] == counted["impaired_out_delayed"] == len(frames)
    assert counted["tx_bytes"] == len(frames) * SIZE
    switch.stop()
    assert list(read_pcap(capture)) == [frame.pack() for frame in left]


def test_without_a_rate_frames_leave_as_they_come(switch: Switch) -> None:
    frames = [Frame(UNICAST, serial % QUEUES, 2, serial) for serial in range(40)]
    switch.ports.add(2, "mem")
    switch.start()
    send(switch, frames)
    assert release(switch, 2) == frames


def test_a_full_queue_drops_its_own_frames_only(switch: Switch) -> None:
    frames = [Frame(UNICAST, 6, 2, serial) for serial in range(20)]
    frames += [Frame(UNICAST, 5, 2, serial) for serial in range(20, 24)]
    switch.ports.add(2, "mem")
    stop_port(switch, 2, queue_packets=5)
    switch.start()
    send(switch, frames)
    kept = [*queued(frames)[:5], *queued(frames)[20:]]
    assert release(switch, 2) == kept
    counted = switch.ports.statistics(2)
    assert (counted["impaired_out_overrun"], counted["tx_packets"]) == (15, 9)


@pytest.mark.parametrize("queues", [1, 4])
def test_a_priority_without_a_queue_drops(queues: int) -> None:
    frames = [Frame(UNICAST, serial % QUEUES, 2, serial) for serial in range(40)]
    with make_switch(queues) as switch:
        switch.ports.add(2, "mem")
        stop_port(switch, 2)
        switch.start()
        send(switch, frames)
        kept = [frame for frame in queued(frames) if frame.priority < queues]
        assert release(switch, 2) == strict(kept)
        assert switch.ports.statistics(1)["dropped_priority"] == len(frames) - len(kept)


def test_replicas_have_the_priority_of_their_packet_and_clones_the_lowest(switch: Switch) -> None:
    frames = [Frame(MULTICAST, 2, 0, 0), Frame(CLONE, 3, 2, 1), Frame(CLONE_IN_EGRESS, 4, 2, 2)]
    frames += [Frame(MULTICAST, 5, 0, 3)]
    for port in (2, 3):
        switch.ports.add(port, "mem")
        stop_port(switch, port)
    switch.replication.set_multicast_group(GROUP, [(2, 1), (3, 2)])
    switch.replication.set_clone_session(SESSION, [(2, 1)])
    switch.start()
    send(switch, frames)
    first, second, third, fourth = frames
    clones = [second._replace(command=CLONED), third._replace(command=CLONED, enq_qdepth=1)]
    assert release(switch, 2) == [first, fourth, third, second, *clones]
    assert release(switch, 3) == [first, fourth]


def test_a_port_closes_with_frames_in_its_queues(switch: Switch) -> None:
    frames = [Frame(UNICAST, serial % QUEUES, 2, serial) for serial in range(40)]
    switch.start()
    for _ in range(2):
        switch.ports.add(2, "mem")
        stop_port(switch, 2)
        send(switch, frames)
        assert switch.ports.statistics(2)["impaired_out_delayed"] == len(frames)
        switch.ports.remove(2)


def test_a_trace_has_the_queues_that_it_is_given() -> None:
    words = ["trace", str(PROGRAMS / "priorities.json"), "--color", "never"]
    words += ["--frame", Frame(UNICAST, 3, 2, 0).pack().hex()]
    traced = [
        CliRunner().invoke(main, [*words, "--priority-queues", str(queues)], catch_exceptions=False)
        for queues in (3, 4)
    ]
    assert [result.exit_code for result in traced] == [0, 0]
    dropped = "dropped: priority 3 has no queue for port 2"
    assert [dropped in result.stdout for result in traced] == [True, False]


@pytest.mark.parametrize("queues", [-1, 0, 257])
def test_impossible_numbers_of_queues_are_refused(queues: int) -> None:
    with pytest.raises(ValueError, match="priority_queues must be 1 to 256"):
        Switch(priority_queues=queues)
