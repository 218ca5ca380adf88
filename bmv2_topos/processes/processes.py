# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Processes of a testbed: start them in a namespace, wait until they are ready, stop them by pid.

Every process has a session of its own and a pid file with its start time. So a stop reaches its
children, too, and a pid that the kernel has given to another process is never signalled.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ..config import RUN_DIRECTORY_VARIABLE
from ..errors import ProcessFailedError, ProcessTimeoutError
from ..network.namespaces import namespace_path
from . import launcher

TERM_TIMEOUT_S: Final = 3.0
KILL_TIMEOUT_S: Final = 60.0
"""How long the kernel may take to end a process after SIGKILL."""
"""How long a process may take to end after SIGTERM before it gets SIGKILL."""
READY_FD: Final = "{ready_fd}"
"""Stands in a command for the descriptor that the process writes to once it is ready."""
_LOG_LINES: Final = 15
_POLL_S: Final = 0.02
LAUNCH_TIMEOUT_S: Final = 60.0
"""How long a process may take to start."""


@dataclass(frozen=True, kw_only=True)
class ProcessRecord:
    """A process as its pid file names it."""

    name: str
    pid: int
    start_time: int
    """Clock ticks since boot."""
    run_directory: Path

    def is_leader_alive(self) -> bool:
        """Tell whether the recorded process itself runs (a zombie does not)."""
        return _state_of(self.pid, self.start_time) not in {None, "Z", "X"}

    def living(self) -> list[int]:
        """Return the pids of the process and of what it started, as long as they run."""
        leader_ours = _state_of(self.pid, self.start_time) is not None
        if not leader_ours and Path(f"/proc/{self.pid}").exists():
            return []  # the pid has been reused: nothing of ours is left in its group
        return [pid for pid in _session_members(self.pid) if leader_ours or self._is_ours(pid)]

    def _is_ours(self, pid: int) -> bool:
        mark = f"{RUN_DIRECTORY_VARIABLE}={self.run_directory}".encode()
        try:
            return mark in _environment_of(pid)
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            return False

    def terminate(self) -> None:
        """Ask the process and its children to end; `stop` waits for them."""
        for pid in self.living():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def kill(self) -> None:
        """End the process and its children by SIGKILL alone."""
        for pid in self.living():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.stop(term_timeout_s=0)

    def stop(self, *, term_timeout_s: float = TERM_TIMEOUT_S) -> None:
        """End the process and its children: SIGTERM, then SIGKILL for those that still run."""
        for signal_number, timeout_s in (
            (signal.SIGTERM, term_timeout_s),
            (signal.SIGKILL, KILL_TIMEOUT_S),
        ):
            deadline = time.monotonic() + timeout_s
            for pid in self.living():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal_number)
            while self.living() and time.monotonic() < deadline:
                time.sleep(_POLL_S)
        if left := self.living():
            raise ProcessTimeoutError(f"{self.name}: pids {left} did not end after SIGKILL")


@dataclass(kw_only=True)
class ManagedProcess:
    """A process that this Python process started."""

    record: ProcessRecord
    log: Path
    popen: subprocess.Popen[bytes] = field(repr=False)

    def wait(self, *, timeout_s: float) -> int:
        """Return the exit status; raises ProcessTimeoutError with the log's end."""
        try:
            return self.popen.wait(timeout_s)
        except subprocess.TimeoutExpired as exc:
            raise ProcessTimeoutError(
                f"{self.record.name} (pid {self.record.pid}) still runs after {timeout_s} s; "
                f"last lines of {self.log}:\n{log_tail(self.log)}"
            ) from exc

    def kill(self) -> None:
        """End the process and its children by SIGKILL alone, and reap it."""
        for pid in self.record.living():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.wait(timeout_s=KILL_TIMEOUT_S)
        self.record.stop(term_timeout_s=0)

    def stop(self, *, term_timeout_s: float = TERM_TIMEOUT_S) -> None:
        """End the process and its children, and reap it."""
        for pid in self.record.living():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(term_timeout_s)
        self.kill()


@dataclass(kw_only=True)
class StartingProcess:
    """A process that has been launched and may not be ready yet; `await_ready` or `close` it."""

    process: ManagedProcess
    ready_read: int
    uses_descriptor: bool

    def await_ready(
        self, timeout_s: float, is_ready: Callable[[], bool] = lambda: False
    ) -> ManagedProcess:
        """Wait until the process writes to its descriptor; without one, until `is_ready`.

        Raises ProcessFailedError when it ends before it is ready, ProcessTimeoutError when it takes
        too long (it is then stopped).
        """
        try:
            descriptor = self.ready_read if self.uses_descriptor else None
            _await_ready(self.process, timeout_s, descriptor, is_ready)
        finally:
            self.close()
        return self.process

    def close(self) -> None:
        """Stop listening for its readiness."""
        if self.ready_read >= 0:
            os.close(self.ready_read)
            self.ready_read = -1


def start_process(
    name: str,
    command: Sequence[str],
    *,
    run_directory: Path,
    environment: Mapping[str, str],
    namespace: str | None = None,
    dies_with_us: bool = True,
) -> ManagedProcess:
    """Start a command like `launch_process`; nobody waits until it is ready."""
    starting = launch_process(
        name,
        command,
        run_directory=run_directory,
        environment=environment,
        namespace=namespace,
        dies_with_us=dies_with_us,
    )
    starting.close()
    return starting.process


def launch_process(
    name: str,
    command: Sequence[str],
    *,
    run_directory: Path,
    environment: Mapping[str, str],
    namespace: str | None = None,
    dies_with_us: bool = True,
) -> StartingProcess:
    """Start a command, in a namespace if one is named; its output goes to `<name>.log`.

    `{ready_fd}` in the command becomes a descriptor that the process writes to when it is ready.
    With `dies_with_us` the kernel kills the process when the calling thread ends.
    """
    log = run_directory / f"{name}.log"
    pid_file = run_directory / f"{name}.pid"
    pid_file.unlink(missing_ok=True)
    # A former process of this name may have left children that still write to their log.
    log.unlink(missing_ok=True)
    ready_read, ready_write = os.pipe()
    launch = [sys.executable, "-I", "-S", launcher.__file__, str(pid_file)]
    launch += [str(namespace_path(namespace)) if namespace else "-"]
    launch += [str(os.getpid()) if dies_with_us else "-"]
    launch += [str(ready_write) if word == READY_FD else word for word in command]
    try:
        with log.open("wb") as output:
            popen = subprocess.Popen(
                launch,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                pass_fds=[ready_write],
                start_new_session=True,
            )
        record = _await_record(name, popen, pid_file, log)
    except BaseException:
        os.close(ready_read)
        raise
    finally:
        os.close(ready_write)
    return StartingProcess(
        process=ManagedProcess(record=record, log=log, popen=popen),
        ready_read=ready_read,
        uses_descriptor=READY_FD in command,
    )


def read_records(run_directory: Path) -> list[ProcessRecord]:
    """Return the processes that a run directory records, dead ones too."""
    return [_read_record(path) for path in sorted(run_directory.glob("*.pid"))]


def log_tail(log: Path) -> str:
    """Return the last lines of a log, for error texts."""
    if not log.exists():
        return "(no log)"
    lines = log.read_text(errors="replace").splitlines()
    return "\n".join(lines[-_LOG_LINES:]) or "(empty)"


def is_alive(pid: int, start_time: int) -> bool:
    """Tell whether the process that started then still runs under this pid."""
    return _state_of(pid, start_time) not in {None, "Z", "X"}


def _read_record(path: Path) -> ProcessRecord:
    pid, start_time = path.read_text().split()
    return ProcessRecord(
        name=path.stem, pid=int(pid), start_time=int(start_time), run_directory=path.parent
    )


def _await_record(
    name: str, popen: subprocess.Popen[bytes], pid_file: Path, log: Path
) -> ProcessRecord:
    deadline = time.monotonic() + LAUNCH_TIMEOUT_S
    while not pid_file.exists():
        # The process may have written its record, and ended, since the check above.
        if popen.poll() is not None and not pid_file.exists():
            raise ProcessFailedError(f"{name} did not start:\n{log_tail(log)}")
        if time.monotonic() > deadline:
            popen.kill()
            popen.wait()
            raise ProcessTimeoutError(f"{name} was not launched within {LAUNCH_TIMEOUT_S:.0f} s")
        time.sleep(0.002)
    return _read_record(pid_file)


def _await_ready(
    process: ManagedProcess, timeout_s: float, descriptor: int | None, is_ready: Callable[[], bool]
) -> None:
    deadline = time.monotonic() + timeout_s
    name = process.record.name
    while True:
        if descriptor is not None:
            readable, _, _ = select.select([descriptor], [], [], _POLL_S)
            if readable and os.read(descriptor, 64):
                return
        elif is_ready():
            return
        if process.popen.poll() is not None:
            status = process.popen.returncode
            process.stop()
            raise ProcessFailedError(
                f"{name} ended with status {status} before it was ready; "
                f"last lines of {process.log}:\n{log_tail(process.log)}"
            )
        if time.monotonic() > deadline:
            process.stop()
            raise ProcessTimeoutError(
                f"{name} was not ready after {timeout_s} s and has been stopped; "
                f"last lines of {process.log}:\n{log_tail(process.log)}"
            )
        time.sleep(_POLL_S)


def _state_of(pid: int, start_time: int) -> str | None:
    """Return the state letter of a process, None when it is gone or the pid is another's."""
    try:
        fields = _stat_fields(pid)
    except (FileNotFoundError, ProcessLookupError):
        return None
    return fields[0] if int(fields[19]) == start_time else None


def _environment_of(pid: int) -> list[bytes]:
    """Return the variables of a process, waiting for those of one that is about to run a program.

    While the kernel replaces a process's program (execve), environment and arguments read as empty.
    """
    folder, deadline = Path(f"/proc/{pid}"), time.monotonic() + LAUNCH_TIMEOUT_S
    while True:
        arguments = (folder / "cmdline").read_bytes()
        environment = (folder / "environ").read_bytes()
        # Before and after that moment, each program has at least one argument.
        if environment or arguments or _stat_fields(pid)[0] in {"Z", "X"}:
            return environment.split(b"\0")
        if time.monotonic() > deadline:
            return []
        time.sleep(0.001)


def _stat_fields(pid: int | str) -> list[str]:
    """Return the fields of /proc/PID/stat from the state letter on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _session_members(session: int) -> list[int]:
    members: list[int] = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdecimal():
            continue
        try:
            fields = _stat_fields(entry.name)
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == session and fields[0] not in {"Z", "X"}:
            members.append(int(entry.name))
    return members
