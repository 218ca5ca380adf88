# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Reading a log that another one writes: each record once, and only what continues a copy."""

from __future__ import annotations

import shutil
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from log_cases import LogWatch, UnsyncedDisk, content, fill, open_log, read_log
from switchfold.hostlib.errors import (
    ForeignLogError,
    LogCopyError,
    StorageDamagedError,
    StorageError,
)
from switchfold.hostlib.parameter_server.storage.log_reader import LogReader
from switchfold.hostlib.parameter_server.storage.record import (
    RECORD_HEADER_BYTES,
    SEGMENT_HEADER_BYTES,
)
from switchfold.hostlib.parameter_server.storage.segment import (
    RecordMark,
    found_segments,
    read_records,
)

MUCH = 1 << 20


def reader_of(directory: Path, after: RecordMark | None = None) -> LogReader:
    """A reader of a log behind a mark, or of all of it."""
    identity = found_segments(directory)[-1].header.identity
    return LogReader(directory, identity, after or RecordMark(0))


def read(
    reader: LogReader, most_bytes: int = MUCH, last_lsn: int | None = None
) -> dict[int, bytes]:
    return {lsn: bytes(payload) for lsn, payload in reader.read(most_bytes, last_lsn)}


def contents(first: int, last: int) -> dict[int, bytes]:
    return {lsn: content(lsn) for lsn in range(first, last + 1)}


def mark_of(directory: Path) -> RecordMark:
    with open_log(directory, calls=UnsyncedDisk()) as log:
        return log.last_mark()


@settings(max_examples=25, deadline=None)
@given(
    segment_bytes=st.sampled_from([100, 300, 1 << 20]),
    steps=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 200)), min_size=1, max_size=6),
)
def test_each_record_comes_once_and_in_order_while_the_log_grows(
    tmp_path_factory: pytest.TempPathFactory, segment_bytes: int, steps: list[tuple[int, int]]
) -> None:
    directory = tmp_path_factory.mktemp("server") / "log"
    watch, found, last = LogWatch(), {}, 0
    with open_log(directory, watch, UnsyncedDisk(), segment_bytes=segment_bytes) as log:
        reader = reader_of(directory)
        for count, most_bytes in steps:
            for _ in range(count):
                last = log.append([content(last + 1)])
                watch.wait_durable(last)
            new = read(reader, most_bytes)
            assert not new.keys() & found.keys()
            found |= new
            assert reader.position == max(found, default=0)
        while new := read(reader, 1):
            assert len(new) == 1
            found |= new
    assert list(found.items()) == list(contents(1, last).items())


def test_reading_goes_on_behind_the_end_of_a_copy(tmp_path: Path) -> None:
    server, copy = tmp_path / "server", tmp_path / "copy"
    fill(server, 4)
    shutil.copytree(server, copy)
    fill(server, 3)
    reader = reader_of(server, mark_of(copy))
    assert reader.position == 4
    assert read(reader, last_lsn=4) == {}
    assert read(reader, last_lsn=6) == contents(5, 6)
    assert read(reader) == contents(7, 7)
    assert read(reader) == {}


def test_a_copy_gets_the_numbers_that_the_records_have(tmp_path: Path) -> None:
    server, copy = tmp_path / "server", tmp_path / "copy"
    with open_log(server) as log:
        log.append([b"a"])
        log.append([b"b"], lsn=5)  # 2 to 4 have failed
        with pytest.raises(ValueError, match="record 5 in a log whose next one is 6"):
            log.append([b"c"], lsn=5)
    assert read_log(server) == [(1, b"a"), (5, b"b")]
    with open_log(copy) as own:
        for lsn, payload in reader_of(server).read(MUCH):
            own.append([payload], lsn=lsn)
    assert read_log(copy) == read_log(server)


@pytest.mark.parametrize("segment_bytes", [1, 1 << 20])
def test_a_record_whose_end_is_missing_comes_when_it_is_whole(
    tmp_path: Path, segment_bytes: int
) -> None:
    fill(tmp_path / "log", 3, segment_bytes)
    newest = found_segments(tmp_path / "log")[-1].path
    whole = newest.read_bytes()
    (*_, last) = read_records(found_segments(tmp_path / "log")[-1])
    for end in range(last.offset, len(whole)):
        newest.write_bytes(whole[:end])
        reader = reader_of(tmp_path / "log")
        assert read(reader) == contents(1, 2), end
        assert read(reader) == {}
        newest.write_bytes(whole)
        assert read(reader) == contents(3, 3), end


def test_a_file_that_is_copied_once_more_is_read_when_it_is_there(tmp_path: Path) -> None:
    fill(tmp_path / "log", 3)
    (newest,) = (tmp_path / "log").glob("*.log")
    whole, reader = newest.read_bytes(), reader_of(tmp_path / "log")
    for end in range(SEGMENT_HEADER_BYTES):
        newest.write_bytes(whole[:end])
        assert read(reader) == {}, end
    newest.write_bytes(whole)
    assert read(reader) == contents(1, 3)


@pytest.mark.parametrize("which", ["oldest", "newest"])
def test_a_damaged_record_is_named(tmp_path: Path, which: str) -> None:
    fill(tmp_path / "log", 4, segment_bytes=300)
    segments = found_segments(tmp_path / "log")
    damaged = segments[0 if which == "oldest" else -1]
    record = next(read_records(damaged))
    data = bytearray(damaged.path.read_bytes())
    data[record.offset + RECORD_HEADER_BYTES] ^= 1
    damaged.path.write_bytes(data)
    with pytest.raises(StorageDamagedError, match="Restore the file from a copy") as caught:
        read(reader_of(tmp_path / "log"))
    assert (caught.value.path, caught.value.offset) == (damaged.path, record.offset)


def test_an_older_segment_that_ends_early_is_damaged(tmp_path: Path) -> None:
    fill(tmp_path / "log", 4, segment_bytes=1)
    oldest = found_segments(tmp_path / "log")[0].path
    oldest.write_bytes(oldest.read_bytes()[:-1])
    with pytest.raises(StorageDamagedError, match="is incomplete"):
        read(reader_of(tmp_path / "log"))


def test_the_log_of_another_server_is_refused(tmp_path: Path) -> None:
    fill(tmp_path / "log", 1)
    reader = LogReader(tmp_path / "log", uuid4(), RecordMark(0))
    with pytest.raises(ForeignLogError, match="Copy the directory of this replica's server"):
        reader.read(MUCH)


def test_a_copy_that_is_too_old_is_refused(tmp_path: Path) -> None:
    server, copy = tmp_path / "server", tmp_path / "copy"
    fill(server, 2, segment_bytes=1)
    shutil.copytree(server, copy)
    fill(server, 3, segment_bytes=1)
    with open_log(server, segment_bytes=1) as log:
        log.drop_before(4)
    reader = reader_of(server, mark_of(copy))
    with pytest.raises(LogCopyError, match=r"ends with record 2, .* follows record 3"):
        reader.read(MUCH)
    assert read(reader_of(server, RecordMark(3))) == contents(4, 5)


def test_a_copy_that_goes_on_by_itself_is_refused(tmp_path: Path) -> None:
    server, copy = tmp_path / "server", tmp_path / "copy"
    fill(server, 2)
    shutil.copytree(server, copy)
    with open_log(copy) as log:
        log.append([b"of the replica"])
    fill(server, 3)
    with pytest.raises(LogCopyError, match="other records at and behind 3"):
        reader_of(server, mark_of(copy)).read(MUCH)


def test_a_copy_with_more_than_the_server_has_waits_until_that_shows(tmp_path: Path) -> None:
    server, copy = tmp_path / "server", tmp_path / "copy"
    fill(server, 2)
    shutil.copytree(server, copy)
    with open_log(copy) as log:
        log.append([b"lost"], lsn=4)
    reader = reader_of(server, mark_of(copy))
    assert read(reader) == {}
    fill(server, 3)
    with pytest.raises(LogCopyError, match="other records at and behind 4"):
        reader.read(MUCH)


@pytest.mark.parametrize("rewritten", [b"others", b"others that are longer", b"o"])
def test_records_that_their_writer_takes_back_are_noticed(tmp_path: Path, rewritten: bytes) -> None:
    directory, kept = tmp_path / "log", tmp_path / "kept"
    fill(directory, 2)
    shutil.copytree(directory, kept)
    with open_log(directory) as log:
        log.append([b"record"])
    reader = reader_of(directory)
    assert len(read(reader)) == 3
    shutil.copytree(kept, directory, dirs_exist_ok=True)
    assert read(reader) == {}
    with open_log(directory) as log:
        log.append([rewritten])
        log.append([rewritten])
    with pytest.raises(LogCopyError, match="other records at and behind 3"):
        reader.read(MUCH)


def test_a_directory_without_a_log_is_refused(tmp_path: Path) -> None:
    reader = LogReader(tmp_path / "log", uuid4(), RecordMark(0))
    with pytest.raises(StorageError, match=r"there is no log in .*/log; give the directory"):
        reader.read(MUCH)


def test_a_reader_changes_nothing(tmp_path: Path) -> None:
    fill(tmp_path / "log", 2)
    unfinished = tmp_path / "log" / "00000000000000000003.new"
    unfinished.touch()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "log").iterdir()}
    assert read(reader_of(tmp_path / "log")) == contents(1, 2)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "log").iterdir()} == before


def test_the_last_record_of_a_log_is_named(tmp_path: Path) -> None:
    fill(tmp_path / "log", 3)
    (*_, last) = read_records(found_segments(tmp_path / "log")[-1])
    assert mark_of(tmp_path / "log") == RecordMark(3, last.header.payload_crc)
    with open_log(tmp_path / "empty") as log:
        assert log.last_mark() == RecordMark(0)
