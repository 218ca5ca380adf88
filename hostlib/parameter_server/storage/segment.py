# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Segments of a log as files: created, read, and cut off behind the last complete record."""

from __future__ import annotations

import logging
import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Final, NamedTuple, final

from ...errors import StorageDamagedError
from .disk import DiskCalls, sync_directory, write_all
from .record import (
    MARKER,
    RECORD_HEADER_BYTES,
    SEGMENT_HEADER_BYTES,
    RecordHeader,
    SegmentHeader,
    crc_seed,
    padding_bytes,
    payload_crc,
    record_bytes,
    unpack_record_header,
    unpack_segment_header,
)

SUFFIX: Final = ".log"
_UNFINISHED: Final = ".new"
_SECTOR_BYTES: Final = 512
"""A disk writes this much whole or not at all."""
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Segment:
    """One file of a log."""

    path: Path
    header: SegmentHeader

    @property
    def previous_lsn(self) -> int:
        """Lsn of the record before the segment."""
        return self.header.previous_lsn


class StoredRecord(NamedTuple):
    """A record that was read and checked."""

    offset: int
    """First byte of the record in its file."""
    header: RecordHeader
    payload: memoryview

    @property
    def end(self) -> int:
        """Offset of the first byte behind the record."""
        return self.offset + record_bytes(self.header.length)


class RecordMark(NamedTuple):
    """Names a record, so that two logs can be compared there."""

    lsn: int
    payload_crc: int | None = None
    """None: it is not known."""


@final
class BadRecordError(Exception):
    """The bytes at an offset are no record, or not the one that belongs there."""

    def __init__(self, offset: int, last_lsn: int, reason: str, *, is_short: bool = False) -> None:
        super().__init__(reason)
        self.is_short = is_short
        """The file ends within the record: it may be that its end is still to be written."""
        self.offset = offset
        self.last_lsn = last_lsn
        """Lsn of the last good record before it."""


def segment_path(directory: Path, first_lsn: int) -> Path:
    """Return the name of the segment whose records begin at an lsn; names sort by lsn."""
    return directory / f"{first_lsn:020d}{SUFFIX}"


def create_segment(directory: Path, header: SegmentHeader, calls: DiskCalls) -> tuple[Segment, int]:
    """Create an empty segment; return it with its descriptor, which appends.

    The header is durable before the segment has its name. So a file with such a name always has a
    whole header, and nothing needs to guess whether a crash or damage cut it short. Raises OSError.
    """
    path = segment_path(directory, header.first_lsn)
    unfinished = path.with_suffix(_UNFINISHED)
    fd = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
    try:
        write_all(calls, fd, [header.pack()])
        calls.fdatasync(fd)
        unfinished.rename(path)
        sync_directory(directory)
    except OSError:
        os.close(fd)
        unfinished.unlink(missing_ok=True)
        raise
    return Segment(path, header), fd


def list_segments(directory: Path) -> list[Segment]:
    """Return the log's segments as `found_segments` does; remove those that were never finished."""
    for unfinished in directory.glob(f"*{_UNFINISHED}"):
        unfinished.unlink()
    return found_segments(directory)


def found_segments(directory: Path, *, is_copied: bool = False) -> list[Segment]:
    """Return the log's segments, oldest first; another process may write to the log.

    Raises StorageDamagedError if a header is damaged or does not fit its name or its neighbours,
    and OSError. With `is_copied`, the files may be written meanwhile: BadRecordError for one that
    ends within its header.
    """
    segments: list[Segment] = []
    for path in sorted(directory.glob(f"*{SUFFIX}")):
        with path.open("rb") as file:
            data = file.read(SEGMENT_HEADER_BYTES)
        if is_copied and len(data) < SEGMENT_HEADER_BYTES:
            raise BadRecordError(0, 0, f"{path} has no whole header", is_short=True)
        try:
            header = unpack_segment_header(data)
            _check_neighbours(path, header, segments)
        except ValueError as error:
            raise StorageDamagedError(
                f"{path}, offset 0: {error}; restore the file from a copy of the directory", path
            ) from error
        segments.append(Segment(path, header))
    return segments


def _check_neighbours(path: Path, header: SegmentHeader, before: list[Segment]) -> None:
    if path.stem != f"{header.first_lsn:020d}":
        raise ValueError(f"by its header, its name should begin with {header.first_lsn:020d}")
    if header.previous_lsn >= header.first_lsn:
        raise ValueError(f"it follows lsn {header.previous_lsn}, which is not before its first one")
    if before and header.identity != before[-1].header.identity:
        raise ValueError(
            f"it belongs to log {header.identity}, but {before[-1].path.name} to log"
            f" {before[-1].header.identity}"
        )


def read_records(segment: Segment, start: tuple[int, int] | None = None) -> Iterator[StoredRecord]:
    """Yield a segment's records in order, each in memory of its own.

    `start`: the offset of the first one, and the lsn of the record before it; None: all.

    Raises BadRecordError at the first bytes that are not the next record, and OSError.
    """
    offset, last_lsn = start or (SEGMENT_HEADER_BYTES, segment.previous_lsn)
    with segment.path.open("rb") as file:
        file.seek(offset)
        while (record := _read_record(file, segment.header, offset, last_lsn)) is not None:
            yield record
            offset, last_lsn = record.end, record.header.lsn


def _read_record(
    file: BufferedReader, segment: SegmentHeader, offset: int, last_lsn: int
) -> StoredRecord | None:
    """Return the record at the file's position, None at the end of the file."""
    seed = crc_seed(segment.identity)
    head = file.read(RECORD_HEADER_BYTES)
    if not head:
        return None
    header = unpack_record_header(head, seed)
    if header is None:
        is_short = len(head) < RECORD_HEADER_BYTES
        raise BadRecordError(offset, last_lsn, "no valid head of a record", is_short=is_short)
    if header.previous_lsn != last_lsn:
        raise BadRecordError(
            offset, last_lsn, f"record {header.lsn} follows record {header.previous_lsn}"
        )
    if header.lsn < segment.first_lsn or not header.durable_lsn <= last_lsn < header.lsn:
        raise BadRecordError(offset, last_lsn, f"record {header.lsn} is out of order")
    body = bytearray(header.length + padding_bytes(header.length))
    if file.readinto(body) < len(body):
        text = f"record {header.lsn} is incomplete"
        raise BadRecordError(offset, last_lsn, text, is_short=True)
    if reason := _check_body(body, header, seed):
        raise BadRecordError(offset, last_lsn, reason)
    return StoredRecord(offset, header, memoryview(body)[: header.length])


def _check_body(body: bytes | bytearray, header: RecordHeader, seed: int) -> str | None:
    """Return what is wrong with a payload and its zeros, None if they are right."""
    payload = memoryview(body)[: header.length]
    if payload_crc([payload], seed) != header.payload_crc:
        return f"the checksum of record {header.lsn} is wrong"
    if any(body[header.length :]):
        return f"no zeros behind record {header.lsn}"
    return None


def damage(segment: Segment, error: BadRecordError) -> StorageDamagedError:
    """Return the error that says where a segment is damaged, and what to do."""
    return StorageDamagedError(
        f"{segment.path}, offset {error.offset}, behind lsn {error.last_lsn}: {error}; no crash"
        " leaves that behind. Restore the file from a copy. Without one, all pushes behind lsn"
        f" {error.last_lsn} are lost: remove the later segments, and shorten this file by"
        f" `truncate -s {error.offset}`",
        segment.path,
        error.offset,
    )


def recover_end(segment: Segment, fd: int, calls: DiskCalls) -> int:
    """Cut an incomplete end off the newest segment; return the lsn of the last record.

    What the file then holds is durable. A bad record is cut off, with all that follows, if it can
    be one that was never durable. Raises StorageDamagedError if it was durable, and OSError.
    """
    # A killed process may have left bytes in memory alone. Those that the disk refused to take are
    # marked as written there: they must be read from the disk.
    calls.fdatasync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    last_lsn = segment.previous_lsn
    try:
        for record in read_records(segment):
            last_lsn = record.header.lsn
    except BadRecordError as error:
        if not _was_never_durable(segment, error):
            raise damage(segment, error) from error
        num_bytes = os.fstat(fd).st_size - error.offset
        os.ftruncate(fd, error.offset)
        calls.fdatasync(fd)
        _logger.warning(
            "%s: cut off an incomplete end, the last %d bytes, from offset %d on: %s",
            segment.path,
            num_bytes,
            error.offset,
            error,
        )
    return last_lsn


def _was_never_durable(segment: Segment, error: BadRecordError) -> bool:
    """Return whether a loss of power, or the end of a process, can have made a record bad.

    Records of one group may reach the disk in any order, so good ones may follow a bad one. If any
    of these was written after the bad one had become durable, the bad one was damaged later.
    Otherwise a sector without any bytes must show that part of the group did not reach the disk.
    """
    with (
        segment.path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        first: int | None = None
        for offset, header in _later_records(data, segment.header, error):
            if header.durable_lsn > error.last_lsn:
                return False
            if first is None:
                first = offset
        return first is None or _has_lost_sector(data, error.offset, first)


def _later_records(
    data: mmap.mmap, segment: SegmentHeader, error: BadRecordError
) -> Iterator[tuple[int, RecordHeader]]:
    """Yield the good records from a bad place on, with their offsets.

    The first may be at the place itself: a good record that does not belong there.
    """
    seed = crc_seed(segment.identity)
    marker = MARKER.to_bytes(4, "little")
    offset = data.find(marker, error.offset)
    while offset >= 0:
        header = unpack_record_header(data[offset : offset + RECORD_HEADER_BYTES], seed)
        following = offset + 1
        if header is not None and header.lsn > error.last_lsn:
            end = offset + record_bytes(header.length)
            body = data[offset + RECORD_HEADER_BYTES : end]
            if end <= len(data) and _check_body(body, header, seed) is None:
                yield offset, header
                following = end
        offset = data.find(marker, following)


def _has_lost_sector(data: mmap.mmap, start: int, end: int) -> bool:
    """Return whether a sector, from `start` on, holds nothing but zeros; `end` is good again."""
    while (stop := start - start % _SECTOR_BYTES + _SECTOR_BYTES) <= end:
        if not any(data[start:stop]):
            return True
        start = stop
    return False
