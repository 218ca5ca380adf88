# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker process that takes part in host allreduces without end; tests kill or stop it.

It prints its port, reads all ports as JSON, and reduces. It prints "reduced" after the first
reduction, and for each line that it reads, after the next one. If the host allreduce fails, it
prints the error as JSON.
"""

from __future__ import annotations

import json
import sys

import numpy as np

from switchfold.hostlib.control.view import Member
from switchfold.hostlib.errors import MemberError, PeerError
from switchfold.hostlib.hosts import HostAllreduce, Reduction
from switchfold.hostlib.peers import PeerServer
from switchfold.hostlib.slots.wire import Operation

NUM_VALUES = 200_000


def main(worker_id: int, silence_s: float, address: str) -> None:
    with PeerServer(address, token="secret") as server:
        server.enter_job(1, worker_id)
        print(server.port, flush=True)
        ports: list[int] = json.loads(sys.stdin.readline())
        members = [
            Member(worker_id=i, peer_address=address, peer_port=port)
            for i, port in enumerate(ports)
        ]

        def on_failure(error: PeerError) -> None:
            lost = error.worker_id if isinstance(error, MemberError) else None
            print(json.dumps({"error": type(error).__name__, "worker_id": lost}), flush=True)

        path = HostAllreduce(
            server, generation=1, members=members, on_failure=on_failure, silence_s=silence_s
        )

        def on_done(reduction: Reduction) -> None:
            if reduction.values[0] != len(ports):
                raise AssertionError(f"{reduction.values[0]} instead of {len(ports)}")
            if not has_said:
                has_said.append(True)
                print("reduced", flush=True)
            reduction.values[:] = 1
            path.reduce(Operation.AGGREGATE_ADD, reduction.values, on_done)

        has_said: list[bool] = []
        path.reduce(Operation.AGGREGATE_ADD, np.ones(NUM_VALUES, np.int32), on_done)
        for _ in sys.stdin:  # a survivor of a failure stays, until the test lets it go
            has_said.clear()
        path.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3])
