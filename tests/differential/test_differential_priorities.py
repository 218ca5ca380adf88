# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Priority queues of softswitch against those of BMv2: what leaves a port that was stopped.

BMv2 gives each queue a rate of its own. To make it hold frames of all priorities and then choose
among them, each queue gets a first frame at one frame per second, and then no rate. So whatever
comes before the second is over may leave from the same moment on.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from contextlib import closing

import pytest
from finsy.proto import p4r

from differential.bmv2_switch import Bmv2Switch, missing_reason
from differential.campaign import Found
from differential.case import Packet, Write
from differential.runtime_client import DEADLINE_S
from pipeline_driver import PROGRAMS
from priority_frames import (
    CLONE,
    CLONED,
    GROUP,
    MULTICAST,
    SESSION,
    UNICAST,
    Frame,
    release,
    send,
    stop_port,
)
from switchfold.softswitch import Switch, compile_program
from time_bound import wait_until

PROGRAM = Found.of(PROGRAMS / "priorities.json")
IN_PORT, OUT_PORT, FREE_PORT = 1, 2, 3
RATE_PPS, PERIOD_S = 1, 1.0
QUEUE_PACKETS = 64
"""Room of each queue of BMv2."""
_reason = missing_reason()
pytestmark = [
    pytest.mark.bmv2,
    pytest.mark.timeout(600),  # of attempts until the machine is fast enough for one
    pytest.mark.skipif(_reason is not None, reason=str(_reason)),
]


def first_frames(queues: int) -> list[Frame]:
    """Return one frame for each queue; softswitch begins to send the first at once."""
    return [Frame(UNICAST, priority, OUT_PORT, 0) for priority in reversed(range(queues))]


def random_frames(queues: int, count: int) -> list[Frame]:
    """Return frames of all kinds, some without a queue, and more of one than its queue holds."""
    generator = random.Random(queues)
    made: list[Frame] = []
    for serial in range(1, count + 1):
        command = generator.choices([UNICAST, CLONE, MULTICAST], [20, 2, 1])[0]
        priority = generator.choice([generator.randrange(8), queues // 2])
        made.append(Frame(command, priority, OUT_PORT, serial))
    return made


def replication() -> list[p4r.Update]:
    """Return updates that add a group and a clone session, all for OUT_PORT."""
    group, session = (p4r.Update(type=p4r.Update.INSERT) for _ in range(2))
    entry = group.entity.packet_replication_engine_entry.multicast_group_entry
    entry.multicast_group_id = GROUP
    for instance in (1, 2):
        entry.replicas.add(egress_port=OUT_PORT, instance=instance)
    clone = session.entity.packet_replication_engine_entry.clone_session_entry
    clone.session_id = SESSION
    clone.replicas.add(egress_port=OUT_PORT, instance=1)
    return [group, session]


def through_softswitch(queues: int, frames: Sequence[Frame]) -> list[Frame]:
    with Switch(compile_program(PROGRAM.json), priority_queues=queues) as switch:
        for port in (IN_PORT, OUT_PORT):
            switch.ports.add(port, "mem")
        switch.replication.set_multicast_group(GROUP, [(OUT_PORT, 1), (OUT_PORT, 2)])
        switch.replication.set_clone_session(SESSION, [(OUT_PORT, 1)])
        stop_port(switch, OUT_PORT, QUEUE_PACKETS)
        switch.start()
        send(switch, frames)
        return release(switch, OUT_PORT)


def through_bmv2(queues: int, first: Sequence[Frame], frames: Sequence[Frame]) -> list[Frame]:
    left: list[Frame] | None = None

    def is_in_time() -> bool:
        nonlocal left
        left = _through_bmv2(queues, first, frames)
        return left is not None

    wait_until(is_in_time, "all frames are in the queues before the first leaves", 300.0)
    assert left is not None
    return left


def _through_bmv2(
    queues: int, first: Sequence[Frame], frames: Sequence[Frame]
) -> list[Frame] | None:
    """Return what leaves OUT_PORT, or None if the machine was too slow."""
    mark = Packet(IN_PORT, Frame(UNICAST, 0, FREE_PORT, 0).pack())
    marked = FREE_PORT, mark.frame
    made = Bmv2Switch(PROGRAM.json, PROGRAM.p4info, endless_s=DEADLINE_S, priority_queues=queues)
    with closing(made) as switch:
        if not switch.has_queue_rate:
            pytest.skip("this BMv2 has no Thrift, by which the rate of a queue is set")
        assert switch.take(mark) == [marked]
        for update in replication():
            assert switch.take(Write(update)) == "OK"
        stream = switch.open_stream()
        end_s = time.monotonic() + PERIOD_S
        switch.set_queue_rate(OUT_PORT, RATE_PPS)
        stream.send([*(Packet(IN_PORT, frame.pack()) for frame in first), mark])
        # One thread runs ingress and fills the queues, so all are there when the mark comes.
        left = [stream.receive()]
        switch.set_queue_rate(OUT_PORT, 0)
        stream.send([*(Packet(IN_PORT, frame.pack()) for frame in frames), mark])
        left.append(stream.receive())
        is_in_time = time.monotonic() < end_s
        left += stream.close()
    if not is_in_time:
        return None
    assert left[:2] == [marked] * 2
    assert {port for port, _ in left[2:]} == {OUT_PORT}
    return [Frame.unpack(data) for _, data in left[2:]]


@pytest.mark.parametrize("queues", [1, 2, 5, 8])
def test_both_switches_send_what_waits_in_the_same_order(queues: int) -> None:
    first, frames = first_frames(queues), random_frames(queues, 250)
    left = through_bmv2(queues, first, frames)
    # The cases for which this comparison is: overflow, all priorities, replicas and clones.
    assert {frame.priority for frame in left if frame.command != CLONED} == set(range(queues))
    assert max(frame.enq_qdepth for frame in left) == QUEUE_PACKETS - 1
    assert {frame.command for frame in left} == {UNICAST, MULTICAST, CLONED, CLONE}
    assert through_softswitch(queues, [*first, *frames]) == left
