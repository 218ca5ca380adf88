# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Worker 0, which ends an iteration at all servers but the first; then it waits to be killed."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import Future
from typing import Any

import numpy as np

from switchfold.hostlib.parameter_server.tables import TableDefinition
from switchfold.hostlib.peers.frames import FrameKind
from table_cluster import WAIT_S, open_client


def main(servers: list[str]) -> None:
    addresses = [(host, int(port)) for host, _, port in (each.partition(":") for each in servers)]
    with open_client(addresses, 0) as client:
        table = client.define(TableDefinition(name="w", width=1, staleness=0))
        keys = np.arange(40)
        table.push(keys, np.full((40, 1), 2, np.float32)).result(WAIT_S)
        for session in client._sessions[1:]:  # as if the process ended while it sends
            ended: Future[Any] = Future()
            client._loop.run(
                lambda session=session, ended=ended: session.change(
                    FrameKind.ADVANCE, memoryview(b""), ended.set_result
                )
            )
            assert ended.result(WAIT_S) is None
        print(client.clock, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1:])
