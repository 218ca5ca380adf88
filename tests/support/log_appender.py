# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A process that appends to a log until it is killed, and prints each lsn that is durable."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from log_cases import content
from switchfold.hostlib.errors import StorageError
from switchfold.hostlib.parameter_server.storage import LogEvents, LogOptions, WriteAheadLog


def write_lsn(lsn: int) -> None:
    os.write(1, f"{lsn}\n".encode())


def end(first_lsn: int, last_lsn: int, error: StorageError) -> None:
    os.write(2, f"{first_lsn} to {last_lsn}: {error}\n".encode())
    os._exit(1)


def main(directory: Path) -> None:
    room = threading.Event()
    events = LogEvents(on_durable=write_lsn, on_failed=end, on_room=room.set)
    options = LogOptions(segment_bytes=20_000, waiting_bytes=4000)
    log = WriteAheadLog(directory, events, options)
    lsn = log.durable_lsn
    write_lsn(lsn)
    while True:
        lsn = log.append([content(lsn + 1)])
        while not log.has_room:
            room.wait()
            room.clear()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
