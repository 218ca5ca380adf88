# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A member of allreduces in a process of its own, which can be killed."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from types import TracebackType
from typing import Any, Self

import numpy as np

from switchfold.hostlib.parameter_server import ClientOptions
from switchfold.hostlib.parameter_server.transfers import FabricMember, TransferOptions

WAIT_S = 60.0


class MemberProcess:
    """Calls all_reduce once with ones; `made` is what `main` takes."""

    def __init__(self, **made: Any) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, json.dumps(made)], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

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
    """Wait until the process is killed."""
    client = ClientOptions(worker_id=made["worker_id"], insecure=True)
    options = TransferOptions(job="sums", **made["transfers"])
    with FabricMember([(host, port) for host, port in made["members"]], options, client) as member:
        if made["num_values"]:
            member.all_reduce(np.ones(made["num_values"], np.float32))
        print("ready", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
