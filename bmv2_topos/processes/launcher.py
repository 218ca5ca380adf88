# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Become a testbed process: enter a namespace, leave the caller's session, note the pid, then exec.

Run as a script by `processes` with isolated, site-less Python, so that it starts in
milliseconds and imports only the standard library. It writes the pid file first and keeps its pid
across the exec, so that a killed caller never leaves an unrecorded process.

Usage: launcher.py PID_FILE NAMESPACE_PATH|- PARENT_PID|- COMMAND [ARGUMENT...]
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1


def start_time_of(pid: int) -> int:
    """Return when a process started, in clock ticks since boot (field 22 of its stat)."""
    # The command name may hold blanks and brackets; the next fields follow the last bracket.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[19])


def main(arguments: list[str]) -> None:
    """Turn this process into COMMAND."""
    pid_file, namespace, parent, *command = arguments
    libc = ctypes.CDLL(None, use_errno=True)
    if parent != "-":
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != int(parent):  # it died before the line above
            sys.exit("launcher: the testbed's owner is gone")
    record = Path(pid_file)
    partial = record.with_suffix(".partial")
    partial.write_text(f"{os.getpid()} {start_time_of(os.getpid())}\n")
    partial.rename(record)
    if namespace != "-":
        descriptor = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
        if libc.setns(descriptor, _CLONE_NEWNET) != 0:
            sys.exit(f"launcher: cannot enter {namespace}: {os.strerror(ctypes.get_errno())}")
    try:
        os.execvp(command[0], command)  # noqa: S606 - deliberately without a shell
    except OSError as exc:
        sys.exit(f"launcher: cannot run {command[0]}: {exc.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
