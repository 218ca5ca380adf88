# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A write-ahead log: records that survive the end of the process and a loss of power.

A log is a directory of segments, whose format is in `record.py`. `append` numbers a record and
returns at once. A thread writes all records that wait, makes them durable by one fdatasync, and
reports it. Numbers grow by one per record. A number whose record failed is not given again while
the log is open, so the stored numbers may have gaps; each record names the one before it.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import final
from uuid import UUID, uuid4

from ...closable import Closable
from ...errors import (
    ConfigurationError,
    DiskFullError,
    LogBrokenError,
    LogBusyError,
    LogClosedError,
    StorageDamagedError,
    StorageError,
)
from ...guarded_thread import GuardedThread
from .appender import PendingRecord, SegmentAppender
from .disk import BytesLike, DirectoryLock, DiskCalls, is_disk_full, make_directory, sync_directory
from .record import MAX_PAYLOAD_BYTES, SEGMENT_HEADER_BYTES, SegmentHeader, record_bytes
from .segment import (
    BadRecordError,
    RecordMark,
    Segment,
    create_segment,
    damage,
    list_segments,
    read_records,
)

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class LogOptions:
    """Sizes of a log."""

    segment_bytes: int = 64 << 20
    """A file that would become larger is followed by a new one; a larger record is alone in its."""
    waiting_bytes: int = 64 << 20
    """Most bytes that wait to become durable, headers included."""

    def __post_init__(self) -> None:
        if self.segment_bytes < 1 or self.waiting_bytes < 1:
            raise ConfigurationError(
                f"segments of {self.segment_bytes} bytes, {self.waiting_bytes} waiting bytes; give"
                " positive numbers"
            )


@dataclass(frozen=True, kw_only=True)
class LogEvents:
    """What a log calls, in its writer's thread. The functions must be short and must not raise."""

    on_durable: Callable[[int], None]
    """All records up to this lsn are durable, except for those that were reported as failed."""
    on_failed: Callable[[int, int, StorageError], None]
    """The records from the first lsn to the last one failed.

    After LogBrokenError, some of them may be in the log. After any other error, such as
    DiskFullError, none of them is, and the log takes records again.
    """
    on_room: Callable[[], None]
    """`has_room` is true again."""


@final
class WriteAheadLog(Closable):
    """A log in a directory, which is created if its parent exists. One process may have it open.

    Opening it cuts off records that a crash left incomplete, and logs how many bytes these were.
    All methods may be called from any thread, but `close` not from a function of `events`.

    Raises LogLockedError, StorageDamagedError, DiskFullError for the first segment of a new log,
    and StorageError if the directory cannot be read or written.
    """

    def __init__(
        self,
        directory: Path,
        events: LogEvents,
        options: LogOptions | None = None,
        calls: DiskCalls = os,
    ) -> None:
        self.directory = directory
        self._events = events
        self._options = options or LogOptions()
        with ExitStack() as undo:
            try:
                make_directory(directory)
                self._lock = DirectoryLock(directory)
                undo.callback(self._lock.release)
                self._segments = list_segments(directory) or [_first_segment(directory, calls)]
                sync_directory(directory)  # a killed process may have left it to us
                self._appender = SegmentAppender(self._segments[-1], calls)
            except OSError as error:
                raise StorageError(
                    f"cannot open the log in {directory}: {error}; choose a directory that this"
                    " server may write to, on a disk that has space"
                ) from error
            undo.pop_all()
        self._dropping = threading.Lock()
        self._changed = threading.Condition()
        self._waiting: deque[PendingRecord] = deque()
        self._waiting_bytes = 0  # of these, and of the group that is being written
        self._has_room = True
        self._durable_lsn = self._appender.last_lsn
        self._next_lsn = max(self._durable_lsn + 1, self._appender.segment.header.first_lsn)
        self._is_closing = False
        self._broken: str | None = None
        self._thread = GuardedThread(
            self._run,
            name="switchfold-log",
            # Such as by a function of `events`.
            on_failed=lambda error: self._break([], LogBrokenError(self._describe_end(error))),
        )
        self._thread.start()

    @property
    def identity(self) -> UUID:
        """The log's own number, drawn when it was created."""
        return self._segments[-1].header.identity

    @property
    def durable_lsn(self) -> int:
        """Lsn of the last durable record, 0 if there is none."""
        with self._changed:
            return self._durable_lsn

    def last_mark(self) -> RecordMark:
        """Return what names the last durable record; nothing may be appended meanwhile.

        Reads the newest segment. Raises StorageDamagedError and StorageError.
        """
        with self._changed:
            segment, lsn = self._segments[-1], self._durable_lsn
        mark = RecordMark(lsn)
        try:
            for record in read_records(segment):
                if record.header.lsn == lsn:
                    mark = RecordMark(lsn, record.header.payload_crc)
        except BadRecordError as error:
            raise damage(segment, error) from error
        except OSError as error:
            raise StorageError(f"cannot read {segment.path}: {error}; check the disk") from error
        return mark

    @property
    def has_room(self) -> bool:
        """Whether less than half of `waiting_bytes` wait.

        A server that finds it false stops reading from its connections until `on_room`. What it
        has read already still fits into the other half.
        """
        with self._changed:
            return self._has_room

    def append(self, parts: Sequence[BytesLike], *, lsn: int | None = None) -> int:
        """Take the payload of a record in contiguous parts; return its lsn at once.

        `lsn`: the one that it has in the log of which this is a copy; None: the next one.

        The parts must not change until `on_durable` or `on_failed`: they are not copied. Raises
        LogBusyError if too many bytes wait, LogBrokenError, LogClosedError, and ValueError for a
        payload that is too large for the log, or an lsn that the log is beyond.
        """
        views = tuple(memoryview(part).cast("B") for part in parts if memoryview(part).nbytes)
        length = sum(map(len, views))
        size = record_bytes(length)
        limit = self._options.waiting_bytes
        if length > MAX_PAYLOAD_BYTES or size > limit:
            raise ValueError(
                f"a record of {length} bytes; the log takes at most {MAX_PAYLOAD_BYTES}, and"
                f" {limit} with its header"
            )
        with self._changed:
            self._check_usable()
            if self._waiting_bytes + size > limit:
                raise LogBusyError(
                    f"{self._waiting_bytes} bytes wait to be written to {self.directory}, and"
                    f" {size} more would be above the limit of {limit}; send the push again later"
                )
            lsn = self._next_lsn if lsn is None else lsn
            if lsn < self._next_lsn:
                raise ValueError(f"record {lsn} in a log whose next one is {self._next_lsn}")
            self._next_lsn = lsn + 1
            self._waiting.append(PendingRecord(lsn, views, length))
            self._waiting_bytes += size
            self._has_room = 2 * self._waiting_bytes < limit
            self._changed.notify()
        return lsn

    def _check_usable(self) -> None:
        if self._broken is not None:
            raise LogBrokenError(self._broken)
        if self._is_closing:
            raise LogClosedError(f"the log in {self.directory} is closed")

    def replay(self, from_lsn: int) -> Iterator[tuple[int, memoryview]]:
        """Return lsn and payload of the durable records from an lsn on, up to the last one now.

        The payloads are the caller's to keep. Raises StorageDamagedError, now or while the records
        are read, if the log does not reach back to this lsn, or is damaged from there on.
        """
        with self._changed:
            last_lsn = self._durable_lsn
            segments = [*self._segments]
        index = len(segments) - 1
        while index > 0 and segments[index].previous_lsn >= from_lsn:
            index -= 1
        if segments[index].previous_lsn >= from_lsn:
            raise StorageDamagedError(
                f"{segments[index].path} is the oldest segment, and follows lsn"
                f" {segments[index].previous_lsn}, but the records from lsn {from_lsn} on are"
                " needed; restore the missing segments from a copy",
                segments[index].path,
            )
        return _read_segments(segments[index:], from_lsn, last_lsn)

    def drop_before(self, lsn: int) -> None:
        """Remove the segments in which all records are before an lsn. Raises StorageError."""
        with self._dropping:
            while (segment := self._superfluous_segment(lsn)) is not None:
                try:
                    segment.path.unlink(missing_ok=True)
                    sync_directory(self.directory)  # each by itself: no gap after a loss of power
                except OSError as error:
                    raise StorageError(
                        f"cannot remove {segment.path}: {error}; it takes up space, but does no"
                        " harm"
                    ) from error
                with self._changed:
                    del self._segments[0]

    def _superfluous_segment(self, lsn: int) -> Segment | None:
        """Return the oldest segment if the next one follows a record before an lsn."""
        with self._changed:
            if len(self._segments) > 1 and self._segments[1].previous_lsn < lsn:
                return self._segments[0]
            return None

    def close(self) -> None:
        """Write all that waits, report it, and let another process open the log."""
        with self._changed:
            if self._is_closing:
                return
            self._is_closing = True
            self._changed.notify()
        self._thread.join()
        self._appender.close()
        self._lock.release()

    def _run(self) -> None:
        while self._write_group():
            pass

    def _describe_end(self, error: BaseException) -> str:
        return (
            f"the writer of the log in {self.directory} has ended: {error!r}; start the server"
            " again"
        )

    def _write_group(self) -> bool:
        """Wait for records, write them and report them; return whether there may be more."""
        group = self._take_group()
        if group is None:
            return False
        try:
            self._store(group)
        except LogBrokenError as error:
            self._break(group, error)
            return False
        except StorageError as error:
            self._finish(group, error)
        except BaseException as error:  # such as MemoryError
            self._break(group, LogBrokenError(self._describe_end(error)))
            raise
        else:
            self._finish(group, None)
        return True

    def _take_group(self) -> list[PendingRecord] | None:
        """Wait for records; return as many as fit into the segment, or into the next one."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closing)
            if not self._waiting:
                return None
            room = self._options.segment_bytes - self._appender.size
            group = [self._waiting.popleft()]
            room -= record_bytes(group[0].length)
            if room < 0:
                room += self._appender.size - SEGMENT_HEADER_BYTES
            while self._waiting and (size := record_bytes(self._waiting[0].length)) <= room:
                group.append(self._waiting.popleft())
                room -= size
            return group

    def _store(self, group: list[PendingRecord]) -> None:
        size = sum(record_bytes(record.length) for record in group)
        is_too_large = self._appender.size + size > self._options.segment_bytes
        if is_too_large and not self._appender.is_empty:
            self._appender.start_segment(group[0].lsn)
            with self._changed:
                self._segments.append(self._appender.segment)
        self._appender.append(group)

    def _finish(self, group: list[PendingRecord], error: StorageError | None) -> None:
        """Report a group, after its bytes have stopped to count as waiting."""
        with self._changed:
            self._waiting_bytes -= sum(record_bytes(record.length) for record in group)
            had_room = self._has_room
            self._has_room = 2 * self._waiting_bytes < self._options.waiting_bytes
            has_room_again = self._has_room and not had_room
            if error is None:
                self._durable_lsn = group[-1].lsn
        if error is None:
            self._events.on_durable(group[-1].lsn)
        else:
            _logger.error("records %d to %d failed: %s", group[0].lsn, group[-1].lsn, error)
            self._events.on_failed(group[0].lsn, group[-1].lsn, error)
        if has_room_again:
            self._events.on_room()

    def _break(self, group: list[PendingRecord], error: LogBrokenError) -> None:
        """Refuse all records from now on, and those that wait."""
        with self._changed:
            self._broken = str(error)
            group = [*group, *self._waiting]
            self._waiting.clear()
        if group:
            self._finish(group, error)


def _first_segment(directory: Path, calls: DiskCalls) -> Segment:
    try:
        segment, fd = create_segment(directory, SegmentHeader(uuid4(), 1, 0), calls)
    except OSError as error:
        if is_disk_full(error):
            raise DiskFullError(f"cannot create a log in {directory}: {error}") from error
        raise
    os.close(fd)
    return segment


def _read_segments(
    segments: Sequence[Segment], from_lsn: int, last_lsn: int
) -> Iterator[tuple[int, memoryview]]:
    """Yield the records from one lsn to another one; check that none is missing in between."""
    lsn = segments[0].previous_lsn
    for segment in segments:
        if segment.previous_lsn != lsn:
            raise StorageDamagedError(
                f"{segment.path} follows lsn {segment.previous_lsn}, but the segments before it"
                f" end with lsn {lsn}: records are missing; restore all segments from a copy",
                segment.path,
            )
        if lsn >= last_lsn:  # what follows is being written
            return
        try:
            for record in read_records(segment):
                lsn = record.header.lsn
                if from_lsn <= lsn <= last_lsn:
                    yield lsn, record.payload
                if lsn >= last_lsn:
                    return
        except BadRecordError as error:
            raise damage(segment, error) from error
        except OSError as error:
            raise StorageError(f"cannot read {segment.path}: {error}; check the disk") from error
    if lsn < last_lsn:
        raise StorageDamagedError(
            f"{segments[-1].path} ends with lsn {lsn}, but held lsn {last_lsn}; restore it from a"
            " copy",
            segments[-1].path,
        )
