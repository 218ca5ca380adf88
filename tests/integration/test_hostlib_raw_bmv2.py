# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Packet sockets sum through BMv2 over veth pairs whose offloads are on, as the kernel makes them.

BMv2 reads one frame at a time and knows no unfinished checksum.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from ipaddress import IPv4Address
from typing import Any, cast

import numpy as np
import pyroute2
import pytest

import bmv2_target
from packet_frames import SWITCH_MAC, Job
from packet_target import job_entries
from switchfold.hostlib.control.view import Endpoint, JobView
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.session import Session
from switchfold.hostlib.slots.wire import Outcome
from switchfold.hostlib.transports.raw import RawTransport
from switchfold.hostlib.transports.segmentation import cuts_super_frames

pytestmark = [
    pytest.mark.root,
    pytest.mark.bmv2,
    pytest.mark.skipif(
        bmv2_target.missing_reason() is not None, reason=str(bmv2_target.missing_reason())
    ),
]
NETWORK = int(IPv4Address(f"10.215.{os.getpid() % 256}.0"))
OPTIONS = SessionOptions(timeout_s=120.0, min_rto_s=0.1)


class _LocalJob(Job):
    """A job whose workers have addresses of this test's own."""

    def address(self, worker_id: int) -> int:
        return NETWORK + 1 + worker_id


@pytest.fixture
def switch() -> Iterator[bmv2_target.Bmv2Target]:
    target = bmv2_target.Bmv2Target("wide")
    yield target
    target.close()


def give_address(job: Job, worker_id: int, interface: str) -> None:
    mac = ":".join(f"{byte:02x}" for byte in job.mac(worker_id).to_bytes(6, "big"))
    with cast(Any, pyroute2).IPRoute() as route:
        index = route.link_lookup(ifname=interface)[0]
        route.link("set", index=index, address=mac)
        route.addr(
            "add", index=index, address=str(IPv4Address(job.address(worker_id))), prefixlen=32
        )


def test_raw_sums_through_bmv2_with_offloads_on(switch: bmv2_target.Bmv2Target) -> None:
    job = _LocalJob(job_id=9, generation=5, values_per_packet=352, slot_count=64)
    for entry in job_entries(job):
        switch.insert(entry)
    workers = range(job.num_workers)
    switch.set_multicast_group(
        job.multicast_group_id, [(job.port(worker), worker + 1) for worker in workers]
    )
    mac = ":".join(f"{byte:02x}" for byte in SWITCH_MAC.to_bytes(6, "big"))
    remote = Endpoint(address=str(IPv4Address(NETWORK + 254)), mac=mac)
    with ExitStack() as stack:
        sessions: list[Session] = []
        for worker in workers:
            interface = switch.host_interface(job.port(worker))
            give_address(job, worker, interface)
            transport = RawTransport(interface, job.udp_port(worker))
            view = JobView.on_one_switch(
                job=job.job_id,
                generation=job.generation,
                worker_id=worker,
                num_workers=job.num_workers,
                slot_count=job.slot_count,
                values_per_packet=job.values_per_packet,
                switch=remote,
            )
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
                assert not cuts_super_frames(sock, interface)
            sessions.append(stack.enter_context(Session.direct(view, transport, OPTIONS)))
        array = np.arange(20_000, dtype=np.int32)
        futures = [session.allreduce(array) for session in sessions]
        for future in futures:
            np.testing.assert_array_equal(future.result(120), 2 * array)
        assert switch.counters("outcomes")[Outcome.BAD_CHECKSUM] == 0
