# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A session whose workers sum by TCP among themselves, without a controller or a switch."""

from __future__ import annotations

from collections.abc import Sequence

from switchfold.hostlib import Session, SessionOptions
from switchfold.hostlib.control.view import Endpoint, JobView, Member
from switchfold.hostlib.peers import PeerServer
from switchfold.hostlib.slots.wire import VALUES_PER_PACKET_WIDE
from switchfold.hostlib.transports.udp import UdpTransport


def join_among_hosts(
    addresses: Sequence[str], number: int, peers: PeerServer, timeout_s: float
) -> Session:
    """Return the session of a worker; all workers listen at the same port of their addresses.

    The session closes the peer server.
    """
    address = addresses[number]
    view = JobView(
        job=1,
        generation=1,
        worker_id=number,
        members=tuple(
            Member(worker_id=i, address=each, peer_address=each, peer_port=peers.port)
            for i, each in enumerate(addresses)
        ),
        trees=(),
        child_id=0,
        worker_bitmap=0,
        values_per_packet=VALUES_PER_PACKET_WIDE,
        switch=Endpoint(address=address),  # unused, because there are no trees
    )
    options = SessionOptions(timeout_s=timeout_s, precision="block")
    return Session.direct(view, UdpTransport(address), options, peers)
