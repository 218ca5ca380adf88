# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Appends groups of records to the newest segment: a group is durable as a whole, or undone."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, final

from ...errors import DiskFullError, LogBrokenError, StorageError
from .disk import DiskCalls, is_disk_full, write_all
from .record import (
    SEGMENT_HEADER_BYTES,
    RecordHeader,
    SegmentHeader,
    crc_seed,
    padding_bytes,
    payload_crc,
    record_bytes,
)
from .segment import Segment, create_segment, recover_end


class PendingRecord(NamedTuple):
    """A record that is not durable yet."""

    lsn: int
    parts: tuple[memoryview, ...]
    """Payload, as bytes."""
    length: int
    """Bytes of the payload."""


@final
class SegmentAppender:
    """The newest segment of a log, open for writing; used by one thread at a time.

    Opening it cuts off what a crash left incomplete. Raises StorageDamagedError and OSError.
    """

    def __init__(self, segment: Segment, calls: DiskCalls) -> None:
        self._calls = calls
        self._fd = os.open(segment.path, os.O_RDWR | os.O_APPEND)
        try:
            self.last_lsn = recover_end(segment, self._fd, calls)
        except BaseException:
            os.close(self._fd)
            raise
        self._set_segment(segment)

    def _set_segment(self, segment: Segment) -> None:
        self.segment = segment
        self.size = os.fstat(self._fd).st_size
        """Bytes of the file."""

    @property
    def is_empty(self) -> bool:
        """Whether the segment holds no record."""
        return self.size == SEGMENT_HEADER_BYTES

    def start_segment(self, first_lsn: int) -> None:
        """Go on in a new segment. Raises StorageError, after which the log is as it was."""
        header = SegmentHeader(self.segment.header.identity, first_lsn, self.last_lsn)
        directory = self.segment.path.parent
        try:
            segment, fd = create_segment(directory, header, self._calls)
        except OSError as error:
            if is_disk_full(error):
                raise _disk_full(directory, error) from error
            raise StorageError(
                f"cannot start a segment in {directory}: {error}; the next record tries it again"
            ) from error
        os.close(self._fd)
        self._fd = fd
        self._set_segment(segment)

    def append(self, group: Sequence[PendingRecord]) -> None:
        """Write records and make them durable.

        Raises DiskFullError after the file is durably as it was before, and LogBrokenError if it
        is unknown which records the disk holds.
        """
        path, size = self.segment.path, self.size
        try:
            write_all(self._calls, self._fd, self._pack(group))
            self._calls.fdatasync(self._fd)
        except OSError as error:
            if not is_disk_full(error):
                raise _broken(path, error) from error
            self._undo(error)
            raise _disk_full(path, error) from error
        self.size = size + sum(record_bytes(record.length) for record in group)
        self.last_lsn = group[-1].lsn

    def _undo(self, error: OSError) -> None:
        """Remove what was written of a group, durably: a refused record must not come back."""
        try:
            os.ftruncate(self._fd, self.size)
            self._calls.fdatasync(self._fd)
        except OSError as second:
            raise _broken(self.segment.path, second) from error

    def _pack(self, group: Sequence[PendingRecord]) -> list[bytes | memoryview]:
        seed = crc_seed(self.segment.header.identity)
        packed: list[bytes | memoryview] = []
        previous_lsn = self.last_lsn
        for record in group:
            crc = payload_crc(record.parts, seed)
            header = RecordHeader(record.length, record.lsn, previous_lsn, self.last_lsn, crc)
            packed.append(header.pack(seed))
            packed += record.parts
            if num_zeros := padding_bytes(record.length):
                packed.append(bytes(num_zeros))
            previous_lsn = record.lsn
        return packed

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


def _disk_full(path: Path, error: OSError) -> DiskFullError:
    return DiskFullError(
        f"{path}: {error.strerror}; nothing was kept of what did not fit. Free space, or write a"
        " snapshot, which frees segments; then the log takes records again"
    )


def _broken(path: Path, error: OSError) -> LogBrokenError:
    return LogBrokenError(
        f"{path}: {error.strerror}: it is unknown which of the last records the disk holds. The log"
        " takes no more records. Check the disk, then start the server again"
    )
