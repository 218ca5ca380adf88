# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Packets leave a congested port by their priority, as far as their job may.

All packets are in the queues before the second of them leaves. softswitch sends nothing before its
link has a rate again. BMv2 gives each queue a rate of its own: after a first packet at 1 a second,
all that comes within this second may leave from the same moment on.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pytest

import bmv2_target
from bmv2_thrift import set_queue_rate
from p4runtime_control import P4RuntimeControl
from packet_frames import (
    ETHERTYPE_IPV4,
    SWITCH_MAC,
    Job,
    contribution,
    ethernet,
    ipv4,
    to_switch,
    udp,
)
from packet_target import SENTINEL_NETWORK, Entry, job_entries
from priority_frames import stop_port
from switchfold import p4src
from switchfold.bmv2_topos.processes.daemons import NUM_PRIORITIES
from switchfold.hostlib.slots.wire import (
    ETHERNET_BYTES,
    IPV4_BYTES,
    UDP_BYTES,
    VALUES_PER_PACKET_NARROW,
    Operation,
    datagram_dtype,
)
from time_bound import wait_until

PORT, FREE_PORT = 1, 3
"""The only worker's, which is congested towards the worker; and another one."""
HIGHEST = NUM_PRIORITIES - 1
FIRST, CAPPED = (
    Job(
        job_id=number, generation=1, values_per_packet=VALUES_PER_PACKET_NARROW, num_workers=1,
        slot_base=32 * number, slot_count=32, max_priority=max_priority,
    )
    for number, max_priority in ((1, HIGHEST), (2, 5))
)  # fmt: skip
LAYOUT = datagram_dtype(VALUES_PER_PACKET_NARROW)
PERIOD_S = 1.0
"""Between two packets of one of BMv2's queues at one a second."""


class Congested(Protocol):
    """A switch whose PORT holds back what leaves it."""

    def insert(self, *entries: Entry) -> None: ...

    def set_multicast_group(self, group_id: int, replicas: Sequence[tuple[int, int]]) -> None: ...

    def through(self, first: Sequence[bytes], frames: Sequence[bytes]) -> list[bytes] | None:
        """Send frames into PORT; return what leaves it, None if the machine was too slow.

        `first` are one for each queue, the highest first.
        """
        ...


class CongestedSoftswitch:
    """softswitch, whose link stands still."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        from switchfold.softswitch import compile_program  # noqa: PLC0415
        from switchfold.softswitch.p4runtime.service.serve import serve  # noqa: PLC0415 (needs the server's packages)
        from switchfold.softswitch.switch.switch import Switch  # noqa: PLC0415

        compile_program(p4src.artefacts("narrow").json)  # finsy waits 10 s, a compiler takes longer
        self._switch = stack.enter_context(Switch(priority_queues=NUM_PRIORITIES))
        self._switch.ports.add(PORT, "mem")
        server = stack.enter_context(serve(self._switch, address="127.0.0.1:0"))
        control = P4RuntimeControl("narrow", server.address)
        stack.callback(control.close)
        self.insert, self.set_multicast_group = control.insert, control.set_multicast_group
        stop_port(self._switch, PORT)
        self._switch.start()

    def through(self, first: Sequence[bytes], frames: Sequence[bytes]) -> list[bytes] | None:
        """See Congested."""
        from switchfold.softswitch.switch.impairments import Impairments  # noqa: PLC0415

        sent = [*first, *frames]
        rows = np.frombuffer(b"".join(sent), np.uint8).reshape(len(sent), -1)
        lengths = np.full(len(sent), rows.shape[1], np.int32)
        port = self._switch.ports.mem_port(PORT)
        assert port.send(rows, lengths) == len(sent)
        wait_until(
            lambda: self._switch.ports.statistics(PORT)["rx_packets"] == len(sent),
            lambda: f"{len(sent)} frames sent, {self._switch.ports.statistics(PORT)}",
        )
        self._switch.ports.set_impairments(PORT, Impairments(), direction="out")
        left: list[bytes] = []
        space = np.zeros_like(rows)
        while len(left) < len(sent):
            count = port.receive(space, lengths, timeout_s=60)
            assert count > 0, f"{len(left)} of {len(sent)} frames left"
            left += [row.tobytes() for row in space[:count]]
        return left


class CongestedBmv2:
    """BMv2, whose queues have a rate for a while."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        if (reason := bmv2_target.missing_reason()) is not None:
            pytest.skip(reason)
        self._target = bmv2_target.Bmv2Target("narrow")
        stack.callback(self._target.close)
        if self._target.thrift_port is None:
            pytest.skip("this BMv2 has no Thrift, by which the rate of a queue is set")
        self._thrift_port = self._target.thrift_port
        self.insert = self._target.insert
        self.set_multicast_group = self._target.set_multicast_group

    def through(self, first: Sequence[bytes], frames: Sequence[bytes]) -> list[bytes] | None:
        """See Congested."""
        set_queue_rate(self._thrift_port, PORT, 1)
        end_s = time.monotonic() + PERIOD_S
        self._target.send(PORT, first)
        self._pass("first", FREE_PORT)
        set_queue_rate(self._thrift_port, PORT, 0)
        self._target.send(PORT, frames)
        # It waits behind all others: its queue is the lowest.
        end = self._mark("end", PORT)
        self._target.send(PORT, [end])
        self._pass("last", FREE_PORT)
        is_in_time = time.monotonic() < end_s
        left = self._target.receive_until(PORT, end[-8:])
        return left if is_in_time else None

    def _pass(self, name: str, port: int) -> None:
        """Wait until a frame has passed. One thread runs ingress, so earlier ones are queued."""
        mark = self._mark(name, port)
        self._target.send(PORT, [mark])
        assert self._target.receive_until(port, mark[-8:]) == []

    @staticmethod
    def _mark(name: str, port: int) -> bytes:
        address = SENTINEL_NETWORK + port
        payload = udp(0xC612_FFFF, address, 9, 9, name.encode().rjust(8))
        return ethernet(SWITCH_MAC, 1, ETHERTYPE_IPV4) + ipv4(0xC612_FFFF, address, payload)


OPEN = {"softswitch": CongestedSoftswitch, "bmv2": CongestedBmv2}


def frame(job: Job, slot_index: int, priority: int, **fields: Any) -> bytes:
    fields = {"slot_index": slot_index, "priority": priority} | fields
    return to_switch(job, 0, contribution(job, 0, **fields))


def answered(kind: str, frames: Sequence[bytes]) -> list[bytes]:
    """Return what leaves a switch of this kind, which has both jobs, in its order."""
    first = [frame(FIRST, priority, priority) for priority in reversed(range(NUM_PRIORITIES))]
    left: list[bytes] | None = None

    def is_in_time() -> bool:
        nonlocal left
        with contextlib.ExitStack() as stack:
            switch: Congested = OPEN[kind](stack)
            for job in (FIRST, CAPPED):
                switch.insert(*job_entries(job))
                switch.set_multicast_group(job.multicast_group_id, [(PORT, 1)])
            left = switch.through(first, frames)
        return left is not None

    wait_until(is_in_time, "all frames are in the queues before the second leaves", 300.0)
    assert left is not None
    return left


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "kind", ["softswitch", pytest.param("bmv2", marks=[pytest.mark.bmv2, pytest.mark.root])]
)
def test_higher_priority_leaves_first_from_a_congested_port(kind: str) -> None:
    asked = [0, 3, 7, 5, 0, 1, 6, 3, 200, 2]
    frames = [frame(CAPPED, slot, priority) for slot, priority in enumerate(asked)]
    # The answer to a probe that came last, when all the values were waiting.
    frames.append(frame(CAPPED, len(asked), 5, operation=Operation.PROBE))
    left = [
        np.frombuffer(data[ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES :], LAYOUT)["header"][0]
        for data in answered(kind, frames)
    ]
    came = [(FIRST, priority, priority) for priority in reversed(range(NUM_PRIORITIES))]
    came += [(CAPPED, slot, priority) for slot, priority in enumerate([*asked, 5])]
    due = sorted(came, key=lambda each: -min(each[2], each[0].max_priority))
    names = ("job_id", "slot_index", "priority")
    assert [tuple(int(header[name]) for name in names) for header in left] == [
        (job.job_id, slot, priority) for job, slot, priority in due
    ]
    (notice,) = [header for header in left if header["operation"] == Operation.NOTICE]
    assert notice["slot_index"] == len(asked)
    assert {int(header["operation"]) for header in left} == {Operation.RESULT, Operation.NOTICE}
