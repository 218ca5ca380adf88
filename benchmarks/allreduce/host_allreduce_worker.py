# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One worker of the host allreduce benchmark: the same sums by a session and by Gloo, in turn.

host_allreduce.py starts it on every host of a testbed. The session needs no controller: its view
has all hosts of the testbed and no switch. The last line of the output is JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import sys
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.allreduce.allreduce_worker import (
    Allreduce,
    open_gloo,
    own_contribution,
    own_worker_id,
    print_content,
    timed,
    verify,
    worker_parser,
)
from switchfold.hostlib import Session, SessionOptions
from switchfold.hostlib.config import transport_from_environment
from switchfold.hostlib.control.view import Endpoint, JobView, Member
from switchfold.hostlib.credentials import credentials_in
from switchfold.hostlib.peers import PeerServer
from switchfold.hostlib.slots.wire import VALUES_PER_PACKET_WIDE
from switchfold.hostlib.transports.udp import UdpTransport

PEER_PORT = 29600

untyped: Any = torch  # some of its functions are only partly typed


def run_one(
    allreduce: Allreduce, label: str, repeat: int, options: argparse.Namespace
) -> dict[str, Any]:
    """Run and verify one allreduce; return its times."""
    array = own_contribution(repeat, options.bytes)
    result, run = timed(allreduce, array, untyped.distributed.barrier, options.switch_pids)
    verify(result, repeat, label)
    return {"label": label, "repeat": repeat, **run}


def open_session(options: argparse.Namespace, *, has_tls: bool) -> Session:
    """Return a session among the hosts of the testbed; no packets leave from its transport."""
    with contextlib.closing(transport_from_environment()) as named:
        transport = UdpTransport(named.local.address)
    port = PEER_PORT + has_tls
    credentials = credentials_in(options.credentials) if has_tls else None
    peers = PeerServer(transport.local.address, port, credentials=credentials)
    untyped.distributed.barrier()  # from here on all workers listen
    members = tuple(
        Member(worker_id=i, address=address, peer_address=address, peer_port=port)
        for i, address in enumerate(options.addresses)
    )
    view = JobView(
        job=1,
        generation=1,
        worker_id=own_worker_id(),
        members=members,
        trees=(),
        child_id=0,
        worker_bitmap=0,
        values_per_packet=VALUES_PER_PACKET_WIDE,
        switch=Endpoint(address=transport.local.address),  # unused, because there are no trees
    )
    return Session.direct(view, transport, SessionOptions(timeout_s=options.timeout), peers)


def run_all(options: argparse.Namespace) -> dict[str, Any]:
    """Let contenders take turns, so that noise of the machine affects both."""
    gloo = open_gloo(options.rendezvous, options.timeout)
    with contextlib.ExitStack() as stack:
        contenders: dict[str, Allreduce] = {"gloo": gloo}
        for label in sorted({"host", "tls"}.intersection(options.labels)):
            session = stack.enter_context(open_session(options, has_tls=label == "tls"))
            contenders[label] = lambda array, session=session: session.allreduce(
                array, precision="block"
            ).result()
        runs = [
            run_one(contenders[label], label, repeat, options)
            for repeat in range(options.repeats + 1)  # the first of each is warm-up
            for label in options.labels
        ]
        untyped.distributed.barrier()
        return {
            "runs": runs,
            "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        }


def main() -> None:
    parser = worker_parser()
    parser.add_argument("--credentials", type=Path, required=True)
    parser.add_argument("--labels", type=lambda text: text.split(","), required=True)
    parser.add_argument("--addresses", type=lambda text: text.split(","), required=True)
    print_content(run_all, parser.parse_args())


if __name__ == "__main__":
    main()
