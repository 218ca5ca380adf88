# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker process that sums tensor after tensor and prints each result as one line of JSON.

Tensor t of worker w holds (w + 1) * (t + 1) everywhere; the variable VALUES is the number of its
values. Commands on standard input take effect between tensors: "hold 3" makes a call of 3
seconds that lets no other thread of the interpreter run, "leave" leaves the job. An error is the
last line.
"""

from __future__ import annotations

import ctypes
import json
import os
import queue
import sys
import threading
import time

import numpy as np

from switchfold.hostlib.config import join_from_environment
from switchfold.hostlib.errors import HostlibError
from switchfold.hostlib.options import SessionOptions


def main() -> None:
    size = int(os.environ.get("VALUES", "100000"))
    orders: queue.SimpleQueue[list[str]] = queue.SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            orders.put(line.split())

    worker_id = int(os.environ["SWITCHFOLD_WORKER_ID"])
    session = join_from_environment(
        SessionOptions(
            join_timeout_s=120.0,
            timeout_s=120.0,
            lease_s=float(os.environ.get("LEASE_S", "60")),
            retain_bytes=int(os.environ.get("RETAIN_BYTES", SessionOptions.retain_bytes)),
        )
    )
    threading.Thread(target=listen, daemon=True).start()
    tensor = session.first_tensor
    with session:
        while True:
            if not orders.empty():
                word, *rest = orders.get()
                if word == "leave":
                    return
                print(json.dumps({"held_from_s": time.monotonic()}), flush=True)
                ctypes.PyDLL(None).usleep(int(1e6 * float(rest[0])))
            array = np.full(size, (worker_id + 1) * (tensor + 1), np.int32)
            try:
                future = session.allreduce(array)
                result = future.result(120.0)
            except HostlibError as error:
                print(json.dumps({"error": str(error), "kind": type(error).__name__}), flush=True)
                return
            line = {
                "tensor": tensor,
                "members": list(future.members),
                "value": int(result[0]),
                "is_even": bool((result == result[0]).all()),
                "at_s": time.monotonic(),
            }
            print(json.dumps(line), flush=True)
            tensor += 1


if __name__ == "__main__":
    main()
