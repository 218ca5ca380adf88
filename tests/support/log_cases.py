# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Logs for tests: what they report, their records, and disks that fail or lose their power."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from switchfold.hostlib.errors import StorageError
from switchfold.hostlib.parameter_server.storage import LogEvents, LogOptions, WriteAheadLog
from switchfold.hostlib.parameter_server.storage.disk import DiskCalls

TIMEOUT_S = 60.0
SECTOR_BYTES = 512


class LogWatch:
    """Collects what a log reports, and waits for it."""

    def __init__(self) -> None:
        self.durable: list[int] = []
        self.failed: list[tuple[int, int, StorageError]] = []
        self.num_rooms = 0
        self._changed = threading.Condition()
        self.events = LogEvents(
            on_durable=self._on_durable, on_failed=self._on_failed, on_room=self._on_room
        )

    def _on_durable(self, lsn: int) -> None:
        with self._changed:
            self.durable.append(lsn)
            self._changed.notify_all()

    def _on_failed(self, first_lsn: int, last_lsn: int, error: StorageError) -> None:
        with self._changed:
            self.failed.append((first_lsn, last_lsn, error))
            self._changed.notify_all()

    def _on_room(self) -> None:
        with self._changed:
            self.num_rooms += 1
            self._changed.notify_all()

    def wait(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, TIMEOUT_S)

    def wait_durable(self, lsn: int) -> None:
        self.wait(lambda: bool(self.durable) and self.durable[-1] >= lsn)

    def wait_failed(self, lsn: int) -> None:
        self.wait(lambda: any(first <= lsn <= last for first, last, _ in self.failed))

    def wait_reported(self, lsn: int) -> None:
        self.wait(
            lambda: (
                bool(self.durable and self.durable[-1] >= lsn)
                or any(first <= lsn <= last for first, last, _ in self.failed)
            )
        )


class FakeDisk:
    """The system calls of a log over real files; they count, fail and stop as a test says."""

    def __init__(self) -> None:
        self.num_syncs = 0
        self.write_error: OSError | None = None
        self.write_room = 0
        """Bytes that are written before `write_error`."""
        self.sync_errors: list[Exception | None] = []
        """Results of the next fdatasyncs."""
        self.synced: dict[int, bytes] = {}
        """What a loss of power leaves of each file, by inode."""
        self.unsynced: dict[int, bytes] = {}
        """What it may leave, too: bytes that were cut off, but not durably."""
        self.keeps_synced = False
        self._num_before = 0
        self._changed = threading.Condition()
        self._allowed: int | None = None  # number of fdatasyncs until the next one stops

    def writev(self, fd: int, buffers: Sequence[bytes | memoryview], /) -> int:
        if self.write_error is None:
            return os.writev(fd, buffers)
        if self.write_room == 0:
            raise self.write_error
        data = b"".join(buffers)[: self.write_room]
        self.write_room -= len(data)
        written = os.write(fd, data)
        self._keep(self.unsynced, fd)
        return written

    def fdatasync(self, fd: int, /) -> None:
        with self._changed:
            self.num_syncs += 1
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self._allowed != 0, TIMEOUT_S)
            if self._allowed is not None:
                self._allowed -= 1
        error = self.sync_errors.pop(0) if self.sync_errors else None
        if error is not None:
            self._keep(self.unsynced, fd)
            raise error
        os.fdatasync(fd)
        self._keep(self.synced, fd)
        self.unsynced.pop(os.fstat(fd).st_ino, None)

    def _keep(self, contents: dict[int, bytes], fd: int) -> None:
        if self.keeps_synced:
            state = os.fstat(fd)
            contents[state.st_ino] = os.pread(fd, state.st_size, 0)

    def stop(self) -> None:
        """Let the next fdatasync wait; the log must not be in one."""
        self._allowed = 0
        self._num_before = self.num_syncs

    def wait_stopped(self) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.num_syncs > self._num_before, TIMEOUT_S)

    def stop_at_next(self) -> None:
        """Let the present fdatasync go on, and wait until the next one stops."""
        with self._changed:
            self._num_before = self.num_syncs
            self._allowed = 1
            self._changed.notify_all()
        self.wait_stopped()

    def go_on(self) -> None:
        with self._changed:
            self._allowed = None
            self._changed.notify_all()

    def lose_power(self, directory: Path, copy: Path, seed: int) -> None:
        """Copy a log as a disk may hold it after a loss of power.

        What was synced is there. Of the rest, each sector may be there, and the file may end
        behind any sector.
        """
        draw = random.Random(seed)
        copy.mkdir()
        for path in directory.glob("*.log"):
            synced = self.synced[path.stat().st_ino]
            data = self.unsynced.get(path.stat().st_ino, path.read_bytes())
            assert data.startswith(synced)
            end = draw.randint(len(synced), len(data))
            left = bytearray(end)
            left[: len(synced)] = synced
            start = len(synced)
            while start < end:
                stop = min(start - start % SECTOR_BYTES + SECTOR_BYTES, end)
                if draw.random() < 0.7:
                    left[start:stop] = data[start:stop]
                start = stop
            (copy / path.name).write_bytes(left)


class UnsyncedDisk:
    """Makes nothing durable, for tests of what is read: thousands of them would take long."""

    def __init__(self) -> None:
        self.writev = os.writev

    def fdatasync(self, fd: int, /) -> None:
        os.fstat(fd)  # it is open


def open_log(
    directory: Path,
    watch: LogWatch | None = None,
    calls: DiskCalls = os,
    *,
    segment_bytes: int = 1 << 20,
    waiting_bytes: int = 1 << 20,
) -> WriteAheadLog:
    options = LogOptions(segment_bytes=segment_bytes, waiting_bytes=waiting_bytes)
    return WriteAheadLog(directory, (watch or LogWatch()).events, options, calls)


def content(lsn: int) -> bytes:
    """Return the payload that a test gives a record: of varying length, different for each."""
    draw = random.Random(lsn)
    return f"record {lsn} ".encode() + draw.randbytes(draw.randrange(90))


def fill(directory: Path, num_records: int, segment_bytes: int = 1 << 20) -> None:
    """Create a log, each record of which is a group of its own."""
    watch = LogWatch()
    with open_log(directory, watch, UnsyncedDisk(), segment_bytes=segment_bytes) as log:
        for _ in range(num_records):
            lsn = log.append([content(log.durable_lsn + 1)])
            watch.wait_durable(lsn)


def fill_in_one_group(directory: Path, payloads: Sequence[bytes]) -> None:
    """Append to a log a first record, then the payloads in one group."""
    watch, disk = LogWatch(), FakeDisk()
    with open_log(directory, watch, disk) as log:
        disk.stop()
        log.append([b"first"])
        disk.wait_stopped()
        lsns = [log.append([payload]) for payload in payloads]
        disk.go_on()
        watch.wait_durable(lsns[-1])
    assert len(watch.durable) == 2


def read_log(directory: Path, from_lsn: int = 1) -> list[tuple[int, bytes]]:
    """Open a log and return its records."""
    with open_log(directory, calls=UnsyncedDisk()) as log:
        return [(lsn, bytes(payload)) for lsn, payload in log.replay(from_lsn)]
