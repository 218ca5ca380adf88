# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Super-frames between packet sockets and softswitch, over veth pairs with offloads on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from typing import Any, cast

import numpy as np
import pyroute2
import pytest

from softswitch_job import SoftswitchJob
from switchfold.hostlib.control.view import Endpoint
from switchfold.hostlib.slots.wire import Outcome
from switchfold.hostlib.transports.base import Offloads
from switchfold.hostlib.transports.raw import RawTransport

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="packet sockets and veth need root"),
]
WORKERS = 2
PREFIX = f"sfw{os.getpid()}"
SUMS = 5


class _VethJob(SoftswitchJob):
    """A job whose workers have packet sockets; the switch has the other ends of their cables."""

    def port_spec(self, worker_id: int) -> str:
        return f"veth:{PREFIX}s{worker_id}"

    def endpoint(self, worker_id: int) -> Endpoint:
        return Endpoint(
            address=f"10.216.{os.getpid() % 256}.{worker_id + 1}",
            udp_port=40001 + worker_id,
            mac=f"02:53:46:00:00:{worker_id + 1:02x}",
        )

    def transport(self, worker_id: int) -> RawTransport:
        return RawTransport(f"{PREFIX}h{worker_id}", self.endpoint(worker_id).udp_port)


@pytest.fixture
def cables() -> Iterator[Any]:
    """A veth pair for each worker, as the kernel makes them."""
    with cast(Any, pyroute2).IPRoute() as route:
        made: list[int] = []
        try:
            for worker in range(WORKERS):
                host, switch = f"{PREFIX}h{worker}", f"{PREFIX}s{worker}"
                route.link("add", ifname=host, kind="veth", peer={"ifname": switch})
                made.append(route.link_lookup(ifname=host)[0])
                for index in (made[-1], route.link_lookup(ifname=switch)[0]):
                    route.link("set", index=index, state="up")
            yield route
        finally:
            for index in made:
                route.link("del", index=index)


def test_raw_and_softswitch_exchange_super_frames(cables: Any) -> None:
    with closing(_VethJob("wide", WORKERS, slot_count=128)) as job:
        for worker in range(WORKERS):
            end = job.endpoint(worker)
            index = cables.link_lookup(ifname=f"{PREFIX}h{worker}")[0]
            cables.link("set", index=index, address=end.mac)
            cables.addr("add", index=index, address=end.address, prefixlen=32)
        array = np.arange(100_000, dtype=np.int32)
        with job.sessions() as sessions:
            for _ in range(SUMS):
                for future in [session.allreduce(array) for session in sessions]:
                    np.testing.assert_array_equal(future.result(120), WORKERS * array)
            for session in sessions:
                transport = cast(RawTransport, session._transport)  # pyright: ignore
                assert transport.offloads == Offloads(
                    sent_together=45, sent_together_later=45, are_received_together=True
                )
        assert Outcome.BAD_CHECKSUM not in job.outcomes()
        for worker in range(WORKERS):
            statistics = job.switch.ports.statistics(worker + 1)
            assert statistics["rx_super_frames"] > 0
            assert statistics["tx_super_frames"] > 0
