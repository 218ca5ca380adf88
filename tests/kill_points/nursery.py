# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A process that has imported everything and forks controllers, workers and row servers.

One order per line of standard input, as JSON, is answered by one line. It has no threads, so that
it may fork; what it has forked dies with it.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, Final

from kill_points import controller_process, row_server_process, worker_process

_ROLES: Final = {
    "controller": controller_process.run,
    "worker": worker_process.run,
    "row server": row_server_process.run,
}
_IMPORTED_LATE: Final = (
    "switchfold.controller.cli.controller",
    "switchfold.hostlib.control.controller_link",
    "switchfold.hostlib.control.row_server_stream",
)
"""What the roles would import only when they begin."""
_PR_SET_PDEATHSIG: Final = 1


def main() -> None:
    """Carry out orders until the input ends."""
    for module in _IMPORTED_LATE:
        importlib.import_module(module)
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        if "reap" in order:
            _, status = os.waitpid(order["reap"], 0)
            answer = os.waitstatus_to_exitcode(status)
        else:
            answer = _fork(order)
        print(answer, flush=True)


def _fork(order: dict[str, Any]) -> int:
    threads = os.listdir("/proc/self/task")
    assert len(threads) == 1, "a process with threads must not fork"
    parent = os.getpid()
    pid = os.fork()  # noqa: TID251 - it has no threads
    if pid:
        return pid
    code = 1
    try:
        _take_place(order, parent)
        _ROLES[order["role"]](order["arguments"])
        code = 0
    except SystemExit as exc:
        code = exc.code if isinstance(exc.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _take_place(order: dict[str, Any], parent: int) -> None:
    """Have a session, an output and an environment of one's own."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the line above
        os._exit(1)
    os.setsid()
    output = os.open(Path(order["output"]), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for ours, theirs in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(ours, theirs)
    os.environ.clear()
    os.environ.update(order["environment"])


if __name__ == "__main__":
    main()
