# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker process that sums tensor after tensor and says what came out, one line of JSON each.

Tensor t of worker w holds (w + 1) * (t + 1) everywhere. Arguments: values per tensor, number of the
last tensor. A line on standard input makes the worker leave after the tensor that is under way.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

import numpy as np

from hostlib.config import transport_from_environment
from hostlib.options import SessionOptions
from hostlib.session import Session


def main() -> None:
    size, last = (int(argument) for argument in sys.argv[1:])
    is_over = threading.Event()

    def listen() -> None:
        sys.stdin.readline()
        is_over.set()

    worker_id = int(os.environ["SWITCHFOLD_WORKER_ID"])
    session = Session.join(
        controller=os.environ["SWITCHFOLD_CONTROLLER"],
        token=os.environ.get("SWITCHFOLD_TOKEN", ""),
        job=os.environ["SWITCHFOLD_JOB"],
        worker_id=worker_id,
        num_workers=int(os.environ["SWITCHFOLD_NUM_WORKERS"]),
        transport=transport_from_environment(),
        options=SessionOptions(join_timeout_s=60.0),
        ingress_port=int(os.environ["SWITCHFOLD_INGRESS_PORT"]),
        is_joining="IS_JOINING" in os.environ,
        peer_address="127.0.0.1",
    )
    threading.Thread(target=listen, daemon=True).start()
    tensor = session.first_tensor
    with session:
        while tensor <= last and not is_over.is_set():
            array = np.full(size, (worker_id + 1) * (tensor + 1), np.int32)
            future = session.allreduce(array)
            result = future.result(60.0)
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
