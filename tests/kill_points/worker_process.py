# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker that sums tensor after tensor, and writes a line of JSON for each; SIGTERM: it leaves.

Tensor t of worker w holds (w + 1) * (t + 1) everywhere. An error is the last line.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Final

import numpy as np

from switchfold.hostlib.config import join_from_environment
from switchfold.hostlib.errors import HostlibError
from switchfold.hostlib.options import SessionOptions

_SIZE: Final = 200
"""Values of a tensor: a few packets."""
_PACE_S: Final = 0.01
"""Pause between tensors: the load of a trainer that computes."""
LIMIT_S: Final = 60.0
_LEAVE: Final = (signal.SIGTERM,)


def run(arguments: list[str]) -> None:
    """Join the job of the environment, and sum."""
    assert not arguments
    # No handler: one that sets an event waits for ever if it interrupts a wait for that event.
    # Threads that start later block the signal as well.
    signal.pthread_sigmask(signal.SIG_BLOCK, _LEAVE)
    weight = int(os.environ["SWITCHFOLD_WORKER_ID"]) + 1
    options = SessionOptions(join_timeout_s=LIMIT_S, timeout_s=LIMIT_S, lease_s=LIMIT_S)
    try:
        with join_from_environment(options) as session:
            tensor = session.first_tensor
            while signal.sigtimedwait(_LEAVE, _PACE_S) is None:
                future = session.allreduce(np.full(_SIZE, weight * (tensor + 1), np.int32))
                result = future.result(LIMIT_S)
                _write(
                    job=session.view.job,
                    tensor=tensor,
                    members=list(future.members),
                    value=int(result[0]),
                    is_even=bool((result == result[0]).all()),
                    generation=session.view.generation,
                )
                tensor += 1
    except HostlibError as error:
        _write(error=f"{type(error).__name__}: {error}")


def _write(**line: object) -> None:
    # In one piece: the log of other threads goes to the same file.
    sys.stdout.write(json.dumps(line) + "\n")
