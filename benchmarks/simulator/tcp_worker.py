# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One process of tcp_check.py: a plain parameter server over TCP, or one of its workers.

Both move bytes without meaning and write a timeline with the machine's monotonic clock. A worker's
computing is a wait of the told length.
"""

from __future__ import annotations

import argparse
import socket
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.simulator.timeline import TimelineEvent, TimelineKind, write_timeline

PORT = 47_500
TIMEOUT_S = 120.0
_BLOCK_BYTES = 1 << 16
SERVER = "server0"


class TimelineRecorder:
    """Events of one process, from any of its threads."""

    def __init__(self, num_bytes: int) -> None:
        self._bytes = num_bytes
        self._lock = threading.Lock()
        self.events: list[TimelineEvent] = []

    def note(self, *kinds: TimelineKind, worker: str) -> None:
        """Add events of the present moment, all at once."""
        with self._lock:
            now_s = time.monotonic()
            for kind in kinds:
                self.events.append(
                    TimelineEvent(
                        time_s=now_s, event=kind, worker=worker, server=SERVER, bytes=self._bytes
                    )
                )


def receive(connection: socket.socket, num_bytes: int) -> None:
    """Read so many bytes; ConnectionError if the other end closes before."""
    block = bytearray(_BLOCK_BYTES)
    left = num_bytes
    while left:
        count = connection.recv_into(block, min(left, len(block)))
        if not count:
            raise ConnectionError(f"the other end closed with {left} of {num_bytes} bytes to come")
        left -= count


def serve(options: argparse.Namespace, recorder: TimelineRecorder) -> None:
    """Give each worker a thread, which sends models and takes updates."""
    model = bytes(options.bytes)
    failures: list[BaseException] = []

    def attend(connection: socket.socket) -> None:
        try:
            with connection:
                connection.settimeout(TIMEOUT_S)
                worker = f"w{connection.recv(1)[0]}"
                for _ in range(options.iterations):
                    recorder.note(TimelineKind.GET, worker=worker)
                    connection.sendall(model)
                    receive(connection, options.bytes)
                    recorder.note(TimelineKind.SENT, TimelineKind.COMMIT, worker=worker)
        except OSError as exc:
            failures.append(exc)

    with socket.create_server(("", PORT), backlog=options.workers) as listener:
        listener.settimeout(TIMEOUT_S)
        print("listening", flush=True)
        threads: list[threading.Thread] = []
        for _ in range(options.workers):
            connection, _ = listener.accept()
            threads.append(threading.Thread(target=attend, args=(connection,)))
        for thread in threads:  # all of them at once
            thread.start()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]


def work(options: argparse.Namespace, recorder: TimelineRecorder) -> None:
    """Get models, wait, and push updates."""
    update = bytes(options.bytes)
    worker = f"w{options.number}"
    with socket.create_connection((options.server, PORT), timeout=TIMEOUT_S) as connection:
        connection.sendall(bytes([options.number]))
        for wait_s in options.waits:
            receive(connection, options.bytes)
            recorder.note(TimelineKind.GOT, worker=worker)
            time.sleep(wait_s)
            recorder.note(TimelineKind.PUSH, worker=worker)
            connection.sendall(update)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("role", choices=("server", "worker"))
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--record", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=1)
    parser.add_argument("--number", type=int, default=0)
    parser.add_argument("--server", default="")
    parser.add_argument("--waits", type=float, nargs="*", default=[])
    options = parser.parse_args()
    recorder = TimelineRecorder(options.bytes)
    (serve if options.role == "server" else work)(options, recorder)
    write_timeline(recorder.events, options.record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
