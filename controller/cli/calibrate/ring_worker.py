# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One worker of `switchfold calibrate` that sums among hosts by TCP; prints JSON.

By torch's Gloo if there is torch, else by Switchfold's own host allreduce.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import socket
import time
from collections.abc import Generator
from datetime import timedelta
from typing import Any, Final

from ....hostlib.control.view import Endpoint, JobView, Member
from ....hostlib.options import SessionOptions
from ....hostlib.peers import PeerServer
from ....hostlib.session import Session
from ....hostlib.slots.wire import VALUES_PER_PACKET_WIDE
from ....hostlib.transports.udp import UdpTransport
from .sums import Floats, Sum, large_and_small, worker_parser

_RETRY_S: Final = 0.02


@contextlib.contextmanager
def gloo_ring(place: tuple[int, int], options: argparse.Namespace) -> Generator[Sum]:
    """Join a group of torch's Gloo."""
    torch: Any = importlib.import_module("torch")
    group: Any = importlib.import_module("torch.distributed")
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = options.interface
    group.init_process_group(
        "gloo",
        init_method=f"file://{options.rendezvous}",
        rank=place[0],
        world_size=place[1],
        timeout=timedelta(seconds=options.timeout),
    )

    def add(values: Floats) -> Floats:
        group.all_reduce(torch.from_numpy(values))
        return values

    try:
        yield add
    finally:
        group.destroy_process_group()


@contextlib.contextmanager
def host_ring(place: tuple[int, int], options: argparse.Namespace) -> Generator[Sum]:
    """Open a session among the hosts; no packets leave from its transport."""
    places = [each.rpartition(":") for each in options.peers.split(",")]
    members = tuple(
        Member(worker_id=worker_id, address=host, peer_address=host, peer_port=int(port))
        for worker_id, (host, _, port) in enumerate(places)
    )
    own = members[place[0]]
    view = JobView(
        job=1,
        generation=1,
        worker_id=place[0],
        members=members,
        trees=(),
        child_id=0,
        worker_bitmap=0,
        values_per_packet=VALUES_PER_PACKET_WIDE,
        switch=Endpoint(address=own.address),  # unused, because there are no trees
    )
    peers = PeerServer(own.address, own.peer_port)
    for member in members:
        await_listener(member.peer_address, member.peer_port, options.timeout)
    settings = SessionOptions(timeout_s=options.timeout, insecure=True)
    with Session.direct(view, UdpTransport(own.address), settings, peers) as session:
        yield lambda values: session.allreduce(values, precision="block").result()


def await_listener(address: str, port: int, timeout_s: float) -> None:
    """Return when a process listens at a port; ConnectionRefusedError if none does in time."""
    deadline_s = time.monotonic() + timeout_s
    while True:
        try:
            socket.create_connection((address, port), timeout_s).close()
        except ConnectionRefusedError:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(_RETRY_S)
        else:
            return


def main() -> None:
    """Sum, verify, and print the times."""
    parser = worker_parser()
    parser.add_argument("--interface", required=True)
    parser.add_argument("--rendezvous", required=True)
    parser.add_argument("--peers", required=True, help="HOST:PORT of each worker, with commas")
    parser.add_argument("--ring", choices=["gloo", "host"], required=True)
    options = parser.parse_args()
    place = int(os.environ["SWITCHFOLD_WORKER_ID"]), int(os.environ["SWITCHFOLD_NUM_WORKERS"])
    ring = gloo_ring if options.ring == "gloo" else host_ring
    with ring(place, options) as add:
        found = large_and_small(add, place, options, lambda: 0.0)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
