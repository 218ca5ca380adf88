# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Snapshots of a server's state on disk: each a complete file of named chunks; two are kept.

All numbers are little-endian. The file's header keeps its place in all format versions.

```text
header, 40 bytes                      chunk
  0  magic "SFSNAPSH"                   0  marker, u32
  8  format version, u32                4  number of the chunk from 0, u32
 12  identity of the log, UUID          8  length of the payload, u64
 28  lsn, u64                          16  length of the name in bytes, u32
 36  CRC-32 of bytes 0 to 35, u32      20  CRC-32 of name and payload, u32
                                       24  CRC-32 of bytes 0 to 23, u32
end, 24 bytes, then no more bytes      28  name in UTF-8, then payload
  0  marker, u32
  4  number of chunks, u32
  8  last lsn, u64
 16  zero, u32
 20  CRC-32 of bytes 0 to 19, u32
```

The CRCs behind the header start from the header's, so a chunk of another snapshot is not valid.
A snapshot may be taken while records are applied. The lsn in its header is that of the last record
before it began: the state holds all records up to there. It may hold some up to the last lsn, too.
"""

from __future__ import annotations

import logging
import os
import struct
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Final, NamedTuple, final
from uuid import UUID

from ...closable import Closable
from ...errors import DiskFullError, StorageDamagedError, StorageError
from .disk import BytesLike, DiskCalls, is_disk_full, make_directory, sync_directory, write_all

KEPT_SNAPSHOTS: Final = 2
FORMAT_VERSION: Final = 1
_SUFFIX: Final = ".snapshot"
_UNFINISHED: Final = ".new"
_DAMAGED: Final = ".damaged"
_MAGIC: Final = b"SFSNAPSH"
_CHUNK_MARKER: Final = 0xC8A9C4A6
_END_MARKER: Final = 0xE9D0F11E
_HEADER: Final = struct.Struct("<8sI16sQ")
_CHUNK: Final = struct.Struct("<IIQII")
_END: Final = struct.Struct("<IIQI")
_CRC: Final = struct.Struct("<I")
_HEADER_BYTES: Final = _HEADER.size + _CRC.size
_CHUNK_BYTES: Final = _CHUNK.size + _CRC.size
_END_BYTES: Final = _END.size + _CRC.size
_logger = logging.getLogger(__name__)


class _Header(NamedTuple):
    version: int
    identity: UUID
    lsn: int
    crc: int


@final
@dataclass(frozen=True)
class StoredSnapshot:
    """A snapshot on disk, all of whose bytes were checked."""

    path: Path
    lsn: int
    """The state holds all records up to this one; replay the log from the next one on."""
    last_lsn: int
    """The state holds no record behind this one."""

    def chunks(self) -> Iterator[tuple[str, memoryview]]:
        """Yield name and payload of each chunk, checked again; the payloads are the caller's.

        Raises StorageDamagedError if the file is no longer what it was, and StorageError.
        """
        try:
            with self.path.open("rb") as file:
                yield from _read_chunks(file, _read_header(file).crc, self.last_lsn)
        except ValueError as error:
            raise StorageDamagedError(
                f"{self.path}: {error}, but it was right before; check the disk", self.path
            ) from error
        except OSError as error:
            raise StorageError(f"cannot read {self.path}: {error}; check the disk") from error


@contextmanager
def _disk_errors(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        if is_disk_full(error):
            raise DiskFullError(
                f"{path}: {error.strerror}; the snapshots before it are kept. Free space"
            ) from error
        raise StorageError(f"cannot write {path}: {error}; check the disk") from error


@final
class SnapshotWriter(Closable):
    """A snapshot under way; without `finish`, nothing of it stays. As a context, it ends itself.

    Raises DiskFullError and StorageError.
    """

    def __init__(self, path: Path, identity: UUID, lsn: int, calls: DiskCalls) -> None:
        self._path, self._calls = path, calls
        self._unfinished = path.with_suffix(_UNFINISHED)
        self._count = 0
        with _disk_errors(path):
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            self._fd: int | None = os.open(self._unfinished, flags, 0o644)
        head = _HEADER.pack(_MAGIC, FORMAT_VERSION, identity.bytes, lsn)
        self._seed = zlib.crc32(head)
        try:
            self._write(head, _CRC.pack(self._seed))
        except BaseException:
            self.close()
            raise

    def add(self, name: str, data: BytesLike) -> None:
        """Write a chunk."""
        encoded = name.encode("utf-8")
        payload = memoryview(data).cast("B") if memoryview(data).nbytes else memoryview(b"")
        crc = zlib.crc32(payload, zlib.crc32(encoded, self._seed))
        head = _CHUNK.pack(_CHUNK_MARKER, self._count, len(payload), len(encoded), crc)
        self._write(head, _CRC.pack(zlib.crc32(head, self._seed)), encoded, payload)
        self._count += 1

    def finish(self, last_lsn: int) -> None:
        """Make it durable; it holds no record behind an lsn."""
        end = _END.pack(_END_MARKER, self._count, last_lsn, 0)
        self._write(end, _CRC.pack(zlib.crc32(end, self._seed)))
        assert self._fd is not None
        with _disk_errors(self._path):
            self._calls.fdatasync(self._fd)
            os.close(self._fd)
            self._fd = None
            self._unfinished.rename(self._path)
            sync_directory(self._path.parent)

    def close(self) -> None:
        """Leave nothing behind, unless it is finished."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
        self._unfinished.unlink(missing_ok=True)

    def _write(self, *parts: bytes | memoryview) -> None:
        assert self._fd is not None
        with _disk_errors(self._path):
            write_all(self._calls, self._fd, parts)


@final
class SnapshotStore:
    """The snapshots in a directory, which is created if its parent exists.

    They belong to one log, whose lock keeps other processes away. `durable_lsn` returns the log's
    last durable lsn. A state to be stored must hold durable records alone: else a snapshot could
    hold a record that the log loses. Raises StorageError.
    """

    def __init__(
        self,
        directory: Path,
        identity: UUID,
        durable_lsn: Callable[[], int],
        calls: DiskCalls = os,
    ) -> None:
        self.directory = directory
        self._identity = identity
        self._durable_lsn = durable_lsn
        self._calls = calls
        try:
            make_directory(directory)
            for path in directory.glob(f"*{_UNFINISHED}"):
                path.unlink()
        except OSError as error:
            raise StorageError(
                f"cannot keep snapshots in {directory}: {error}; choose a directory that this"
                " server may write to"
            ) from error

    def write(self, lsn: int, chunks: Iterable[tuple[str, BytesLike]]) -> None:
        """Store a snapshot that began behind a record; remove those older than the last two.

        Each chunk is written before the next one is asked for. Raises DiskFullError, StorageError,
        and what `chunks` raises; then the stored snapshots are as they were.
        """
        with self.begin(lsn) as writer:
            for name, data in chunks:
                writer.add(name, data)
            writer.finish(self._durable_lsn())
            with _disk_errors(self._path(lsn)):
                self._remove_old()

    def begin(self, lsn: int) -> SnapshotWriter:
        """Begin a snapshot that others add chunks to; raises as `write` does."""
        return SnapshotWriter(self._path(lsn), self._identity, lsn, self._calls)

    def newest(self) -> StoredSnapshot | None:
        """Return the newest snapshot that is whole, None if there is none.

        All its bytes are read. A damaged one gets another name, with a warning in the log of the
        program. Raises StorageDamagedError for one of another log or of an unknown format version,
        and StorageError.
        """
        for lsn in reversed(self.lsns()):
            path = self._path(lsn)
            try:
                return self._check(path)
            except (OSError, ValueError) as error:
                aside = path.with_suffix(_DAMAGED)
                _logger.warning("%s: %s; renamed it to %s", path, error, aside.name)
                try:
                    path.rename(aside)
                    sync_directory(self.directory)
                except OSError as second:
                    raise StorageError(
                        f"cannot rename {path}, which is damaged: {second}; check the disk"
                    ) from error
        return None

    def lsns(self) -> list[int]:
        """Return the lsns of the stored snapshots, oldest first."""
        names = (path.stem for path in self.directory.glob(f"*{_SUFFIX}"))
        return sorted(int(name) for name in names if name.isdecimal())

    def _check(self, path: Path) -> StoredSnapshot:
        with path.open("rb") as file:
            header = _read_header(file)
            if header.version != FORMAT_VERSION or header.identity != self._identity:
                raise StorageDamagedError(
                    f"{path} is of log {header.identity}, format version {header.version}; the log"
                    f" here is {self._identity}, and this software reads {FORMAT_VERSION}. Restore"
                    " snapshots and log from the same copy",
                    path,
                )
            if self._path(header.lsn) != path:
                raise ValueError(f"by its header, it is the snapshot of lsn {header.lsn}")
            last_lsn = _read_last_lsn(file, header.crc)
            file.seek(_HEADER_BYTES)
            for _ in _read_chunks(file, header.crc, last_lsn):
                pass
        return StoredSnapshot(path, header.lsn, last_lsn)

    def _path(self, lsn: int) -> Path:
        return self.directory / f"{lsn:020d}{_SUFFIX}"

    def _remove_old(self) -> None:
        for lsn in self.lsns()[:-KEPT_SNAPSHOTS]:
            with suppress(FileNotFoundError):
                self._path(lsn).unlink()
            sync_directory(self.directory)


def _unpack(kind: struct.Struct, data: bytes, seed: int) -> tuple[int, ...]:
    """Return the numbers of a chunk's head or of the end. Raises ValueError."""
    if len(data) < kind.size + _CRC.size:
        raise ValueError("it ends too early")
    if zlib.crc32(data[: kind.size], seed) != _CRC.unpack_from(data, kind.size)[0]:
        raise ValueError("a checksum is wrong")
    return kind.unpack_from(data)


def _read_header(file: BufferedReader) -> _Header:
    data = file.read(_HEADER_BYTES)
    if len(data) < _HEADER_BYTES:
        raise ValueError("the header is incomplete")
    magic, version, identity, lsn = _HEADER.unpack_from(data)
    crc = zlib.crc32(data[: _HEADER.size])
    if magic != _MAGIC or crc != _CRC.unpack_from(data, _HEADER.size)[0]:
        raise ValueError("the header is damaged")
    return _Header(version, UUID(bytes=identity), lsn, crc)


def _read_last_lsn(file: BufferedReader, seed: int) -> int:
    """Return what the end of the file says."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - _END_BYTES, 0))
    _, _, last_lsn, _ = _unpack(_END, file.read(), seed)
    return last_lsn


def _read_chunks(
    file: BufferedReader, seed: int, last_lsn: int
) -> Iterator[tuple[str, memoryview]]:
    """Yield the chunks behind the header; check all bytes up to the end of the file."""
    size = os.fstat(file.fileno()).st_size
    count = 0
    while (left := size - file.tell()) > _END_BYTES:
        marker, number, length, name_length, crc = _unpack(_CHUNK, file.read(_CHUNK_BYTES), seed)
        if marker != _CHUNK_MARKER or number != count:
            raise ValueError(f"no chunk {count} in its place")
        if _CHUNK_BYTES + name_length + length + _END_BYTES > left:
            raise ValueError(f"chunk {count} ends behind the end of the file")
        name = file.read(name_length)
        payload = bytearray(length)
        if len(name) < name_length or file.readinto(payload) < length:
            raise ValueError(f"chunk {count} is incomplete")
        if zlib.crc32(payload, zlib.crc32(name, seed)) != crc:
            raise ValueError(f"the checksum of chunk {count} is wrong")
        yield name.decode("utf-8"), memoryview(payload)
        count += 1
    if _unpack(_END, file.read(_END_BYTES), seed) != (_END_MARKER, count, last_lsn, 0):
        raise ValueError(f"no end behind {count} chunks")
