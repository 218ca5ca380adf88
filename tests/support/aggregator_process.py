# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker that gathers updates of others, in a process of its own, which can be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from switchfold.hostlib.credentials import Credentials
from switchfold.hostlib.parameter_server import ClientOptions, HotRowUse
from switchfold.hostlib.parameter_server.tables import DenseTensor, TableClient, TensorDefinition
from switchfold.hostlib.parameter_server.transfers import FabricWorker, TransferOptions

WAIT_S = 60.0


class AggregatorProcess:
    """Runs in a network namespace; `made` is what `main` takes."""

    def __init__(self, namespace: str, **made: Any) -> None:
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", namespace, sys.executable, __file__, json.dumps(made)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def freeze(self) -> None:
        """Stop it: nothing that comes is answered, and no connection breaks."""
        self.process.send_signal(signal.SIGSTOP)
        _, status = os.waitpid(self.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)

    def thaw(self) -> None:
        """Let it go on."""
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it at once; a second call does nothing."""
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


def main(made: dict[str, Any]) -> None:
    """Gather until the process is killed."""
    folder: str | None = made["credentials"]
    options = ClientOptions(
        worker_id=made["worker_id"],
        source=made["source"],
        credentials=None if folder is None else Credentials(Path(folder)),
        insecure=folder is None,
        use_hot_rows=HotRowUse.NEVER,
    )
    with TableClient([(host, port) for host, port in made["servers"]], options) as client:
        tensor = DenseTensor(client, TensorDefinition(name="w", num_values=made["num_values"]))
        transfers = TransferOptions(aggregate=True, credentials=folder, **made["transfers"])
        with FabricWorker(tensor, transfers):
            print("ready", flush=True)
            threading.Event().wait()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
