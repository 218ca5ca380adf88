# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A process with a log and snapshots until it is killed: it prints each lsn that is durable.

Its rows are checksums over all records that they took, in order, so a record that is missing, wrong
or applied twice shows.
"""

from __future__ import annotations

import os
import struct
import sys
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

from log_cases import content
from switchfold.hostlib.errors import StorageError
from switchfold.hostlib.parameter_server.storage import LogEvents, LogOptions, ServerStorage

NUM_ROWS = 4
ROW = struct.Struct("<IQ")
OPTIONS = LogOptions(segment_bytes=5000, waiting_bytes=4000)


class ChainedRows:
    """Rows of checksum and lsn; safe from any thread."""

    def __init__(self) -> None:
        self.rows = [(0, 0)] * NUM_ROWS
        self.applied_lsn = 0
        self.changed = threading.Condition()

    def apply(self, lsn: int, record: bytes | memoryview) -> None:
        with self.changed:
            checksum, row_lsn = self.rows[lsn % NUM_ROWS]
            if lsn > row_lsn:
                self.rows[lsn % NUM_ROWS] = (zlib.crc32(record, checksum), lsn)
            self.applied_lsn = lsn
            self.changed.notify_all()

    def chunks(self) -> Iterator[tuple[str, bytes]]:
        for number in range(NUM_ROWS):
            with self.changed:
                chunk = ROW.pack(*self.rows[number])
            yield str(number), chunk

    def recover(self, storage: ServerStorage) -> None:
        if storage.snapshot is not None:
            for name, payload in storage.snapshot.chunks():
                checksum, lsn = ROW.unpack(payload)
                self.rows[int(name)] = (checksum, lsn)
            self.applied_lsn = storage.snapshot.lsn
        for lsn, record in storage.records():
            self.apply(lsn, record)


def write_snapshots(storage: ServerStorage, rows: ChainedRows) -> None:
    last_lsn = rows.applied_lsn
    while True:
        with rows.changed:
            rows.changed.wait_for(lambda lsn=last_lsn: rows.applied_lsn > lsn)
            last_lsn = rows.applied_lsn
        storage.write_snapshot(last_lsn, rows.chunks())


def end(first_lsn: int, last_lsn: int, error: StorageError) -> None:
    os.write(2, f"{first_lsn} to {last_lsn}: {error}\n".encode())
    os._exit(1)


def main(directory: Path) -> None:
    rows = ChainedRows()
    room = threading.Event()

    def apply(lsn: int) -> None:
        for each in range(rows.applied_lsn + 1, lsn + 1):
            rows.apply(each, content(each))
        os.write(1, f"{lsn}\n".encode())

    events = LogEvents(on_durable=apply, on_failed=end, on_room=room.set)
    storage = ServerStorage(directory, events, OPTIONS)
    rows.recover(storage)
    lsn = storage.log.durable_lsn
    os.write(1, f"{lsn}\n".encode())
    threading.Thread(target=write_snapshots, args=(storage, rows), daemon=True).start()
    while True:
        lsn = storage.log.append([content(lsn + 1)])
        while not storage.log.has_room:
            room.wait()
            room.clear()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
