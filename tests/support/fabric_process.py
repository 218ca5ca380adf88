# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker of scheduled updates in a process of its own, which can be stopped and killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from switchfold.hostlib.config import join_from_environment
from switchfold.hostlib.credentials import Credentials
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.parameter_server import ClientOptions, HotRowUse
from switchfold.hostlib.parameter_server.tables import DenseTensor, TableClient, TensorDefinition
from switchfold.hostlib.parameter_server.transfers import FabricWorker, TransferOptions
from time_bound import wait_until

WAIT_S = 60.0


class FabricProcess:
    """Runs in a network namespace; `made` is what `main` takes. Wait for it by `await_ready`."""

    def __init__(self, namespace: str, **made: Any) -> None:
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", namespace, sys.executable, __file__, json.dumps(made)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def await_ready(self) -> None:
        """Wait until it may push and gather."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def push(self, seed: int) -> None:
        """Have it push `update_of(seed, ...)`; nobody learns of the outcome."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{seed}\n")
        self.process.stdin.flush()

    def freeze(self) -> None:
        """Stop it: nothing that comes is answered, and no connection breaks."""
        self.process.send_signal(signal.SIGSTOP)
        _, status = os.waitpid(self.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)

    def thaw(self) -> None:
        """Let it go on."""
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it at once by SIGKILL; a second call does nothing."""
        if self.process.returncode is None:
            self.process.kill()
            self.process.communicate(timeout=WAIT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()


def update_of(seed: int, worker_id: int, num_values: int) -> NDArray[np.float32]:
    """Return a worker's update of whole numbers, whose sums are exact in any order."""
    return np.random.default_rng((seed, worker_id)).integers(-9, 10, num_values).astype(np.float32)


def settle_update(
    worker: FabricWorker,
    total: NDArray[np.float32],
    num_updates: int,
    update: NDArray[np.float32],
    *,
    is_killed: bool,
) -> None:
    """Check that a process's update does not count, or wait until it counts, if that lives.

    `total` is the sum of the other `num_updates` updates, which all count. The model is exact.
    """

    def count() -> int:
        model = worker.get().result(WAIT_S)
        counted = int(worker.commits[0]) - num_updates
        assert counted in (0, 1), counted
        assert np.array_equal(model, total + counted * update)
        return counted

    if is_killed:
        assert not count()
    else:
        wait_until(count, "the update of a process that lives")


def main(made: dict[str, Any]) -> None:
    """Push what standard input says, and gather, until the process is killed."""
    folder: str | None = made["credentials"]
    options = ClientOptions(
        worker_id=made["worker_id"],
        source=made["source"],
        credentials=None if folder is None else Credentials(Path(folder)),
        insecure=folder is None,
        use_hot_rows=HotRowUse.NEVER,
        **made.get("client", {}),
    )
    with contextlib.ExitStack() as stack:
        if "session" in made:
            limits = SessionOptions(join_timeout_s=WAIT_S, timeout_s=WAIT_S, lease_s=WAIT_S)
            variables = {**os.environ, **made["session"]}
            stack.enter_context(join_from_environment(limits, variables=variables))
        servers = [(host, port) for host, port in made["servers"]]
        client = stack.enter_context(TableClient(servers, options))
        definition = TensorDefinition(name="w", num_values=made["num_values"])
        transfers = TransferOptions(credentials=folder, **made["transfers"])
        worker = stack.enter_context(FabricWorker(DenseTensor(client, definition), transfers))
        print("ready", flush=True)
        for line in sys.stdin:
            worker.push(update_of(int(line), options.worker_id, definition.num_values))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
