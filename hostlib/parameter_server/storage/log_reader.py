# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Reads a log that another process writes, or a copy of one that grows; changes nothing there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, final
from uuid import UUID

from ...errors import ForeignLogError, LogCopyError, StorageError
from .record import RecordHeader
from .segment import (
    BadRecordError,
    RecordMark,
    Segment,
    StoredRecord,
    damage,
    found_segments,
    read_records,
)


class ReadRecord(NamedTuple):
    """A record of the log; the payload is the caller's to keep."""

    lsn: int
    payload: memoryview


class _Place(NamedTuple):
    """Where the last record is that was read."""

    path: Path
    offset: int
    previous_lsn: int
    end: int


@final
class LogReader:
    """Goes on behind the last record of a copy; not for several threads.

    It sees records before they are durable. Should their writer take them back, the record after
    them shows that, and reading fails.
    """

    def __init__(self, directory: Path, identity: UUID, after: RecordMark) -> None:
        """`identity`: of the log. `after`: the last record that is known."""
        self._directory = directory
        self._identity = identity
        self._mark = after
        self._place: _Place | None = None

    @property
    def position(self) -> int:
        """Lsn of the last record that is known or was read."""
        return self._mark.lsn

    def read(self, most_bytes: int, last_lsn: int | None = None) -> list[ReadRecord]:
        """Return the next records that are whole, in order; none if there are none yet.

        Ends with the record that brings their payloads to `most_bytes`, or is `last_lsn`.

        Raises ForeignLogError for the log of another server, LogCopyError if it does not continue
        what is known, StorageDamagedError, and StorageError if it cannot be read.
        """
        found: list[ReadRecord] = []
        try:
            self._read_into(found, most_bytes, last_lsn)
        except FileNotFoundError:
            pass  # the server has just removed its oldest segment; the next call finds out
        except OSError as error:
            raise StorageError(
                f"cannot read the server's log in {self._directory}: {error}; give the directory"
                " that the server has for --log, or a copy of it"
            ) from error
        return found

    def _read_into(self, found: list[ReadRecord], most_bytes: int, last_lsn: int | None) -> None:
        num_bytes = 0
        for segment, is_newest in self._segments_left():
            for record in self._new_records(segment, is_newest=is_newest):
                if last_lsn is not None and record.header.lsn > last_lsn:
                    return
                self._mark = RecordMark(record.header.lsn, record.header.payload_crc)
                self._place = _Place(
                    segment.path, record.offset, record.header.previous_lsn, record.end
                )
                found.append(ReadRecord(record.header.lsn, record.payload))
                num_bytes += len(record.payload)
                if num_bytes >= most_bytes:
                    return

    def _segments_left(self) -> list[tuple[Segment, bool]]:
        """Return the segments that may hold further records, and which of them is the newest."""
        try:
            segments = found_segments(self._directory, is_copied=True)
        except BadRecordError:
            return []  # a file that is being copied has to come
        if not segments:
            raise StorageError(
                f"there is no log in {self._directory}; give the directory that the server has for"
                " --log, or a copy of it"
            )
        identity = segments[-1].header.identity
        if identity != self._identity:
            raise ForeignLogError(
                f"{self._directory} is log {identity}, and this replica's own log is a copy of"
                f" {self._identity}: they are of two servers, or the server began a new log. Copy"
                " the directory of this replica's server"
            )
        index = len(segments) - 1
        while index > 0 and segments[index].previous_lsn > self.position:
            index -= 1
        if segments[index].previous_lsn > self.position:
            raise LogCopyError(
                f"this replica's own log ends with record {self.position}, and"
                f" {segments[index].path} is the oldest segment of its server's log and follows"
                f" record {segments[index].previous_lsn}: the records between are gone. Remove the"
                " own log, copy the server's directory once more, and start the replica again"
            )
        newest = segments[-1]
        return [(segment, segment is newest) for segment in segments[index:]]

    def _new_records(self, segment: Segment, *, is_newest: bool) -> Iterator[StoredRecord]:
        """Yield the records behind the position, which moves meanwhile; check that they follow."""
        place, start = self._place, None
        if place is not None and place.path == segment.path:
            if segment.path.stat().st_size <= place.end:
                return
            start = place.offset, place.previous_lsn
        try:
            for record in read_records(segment, start):
                header = record.header
                if header.lsn > self.position:
                    if header.previous_lsn != self.position:
                        raise self._otherwise(segment)
                    yield record
                elif header.lsn == self.position and not self._is_known(header):
                    raise self._otherwise(segment)
        except BadRecordError as error:
            if start is not None and error.offset == start[0]:
                raise self._otherwise(segment) from error
            if not (is_newest and error.is_short):
                raise damage(segment, error) from error

    def _is_known(self, header: RecordHeader) -> bool:
        """Return whether a record is the last one that is known."""
        return self._mark.payload_crc in (None, header.payload_crc)

    def _otherwise(self, segment: Segment) -> LogCopyError:
        return LogCopyError(
            f"{segment.path} has other records at and behind {self.position} than this replica's"
            " own log, which is no copy any more: a replica that had joined wrote it, or it holds"
            " what the server has lost. Remove the own log, copy the server's directory once more,"
            " and start the replica again"
        )
