# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A packet socket outlives its interface going down and up, and does not spin afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pyroute2
import pytest

from switchfold.hostlib.control.view import Endpoint
from switchfold.hostlib.slots.wire import datagram_bytes
from switchfold.hostlib.transports.raw import RawTransport

NEAR, FAR = f"sff{os.getpid()}a", f"sff{os.getpid()}b"


@pytest.fixture
def route() -> Iterator[Any]:
    """A veth pair, both ends up."""
    with cast(Any, pyroute2).IPRoute() as route:
        route.link("add", ifname=NEAR, kind="veth", peer={"ifname": FAR})
        try:
            for name in (NEAR, FAR):
                route.link("set", index=route.link_lookup(ifname=name)[0], state="up")
            near = route.link_lookup(ifname=NEAR)[0]
            route.addr("add", index=near, address="10.213.8.1", prefixlen=24)
            yield route
        finally:
            route.link("del", index=route.link_lookup(ifname=NEAR)[0])


@pytest.mark.skipif(os.geteuid() != 0, reason="packet sockets and veth need root")
@pytest.mark.root
def test_raw_transport_outlives_a_link_flap(route: Any) -> None:
    near = route.link_lookup(ifname=NEAR)[0]
    transport = RawTransport(NEAR)
    rows = np.zeros((4, datagram_bytes(32)), np.uint8)
    try:
        transport.open(Endpoint(address="10.213.8.2", mac="02:00:00:00:00:02"), rows.shape[1])
        assert transport.send(rows) == 4
        route.link("set", index=near, state="down")
        assert transport.send(rows) == 0
        route.link("set", index=near, state="up")
        transport.receive(rows, 0.0)
        # The error occurs once; after it, a receive waits again, and only a wake ends it.
        transport.receive(rows, 0.01)
        before = transport.counters["network_error"]
        for _ in range(3):
            transport.receive(rows, 0.01)
        assert transport.counters["network_error"] == before > 0
        assert transport.send(rows) == 4
    finally:
        transport.close()
