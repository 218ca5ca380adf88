# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Snapshots: whole or not there, the one before a damaged one, and full disks."""

from __future__ import annotations

import errno
import itertools
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from log_cases import FakeDisk
from switchfold.hostlib.errors import DiskFullError, StorageDamagedError, StorageError
from switchfold.hostlib.parameter_server.storage import SnapshotStore, StoredSnapshot

IDENTITY = UUID(int=77)
CHUNKS = [("rows/0", b"some rows"), ("empty", b""), ("Zähler", bytes(range(100)))]
Chunks = list[tuple[str, bytes]]


def open_store(directory: Path, disk: FakeDisk | None = None, last_lsn: int = 99) -> SnapshotStore:
    return SnapshotStore(directory, IDENTITY, lambda: last_lsn, disk or FakeDisk())


def read(snapshot: StoredSnapshot | None) -> Chunks:
    assert snapshot is not None
    return [(name, bytes(payload)) for name, payload in snapshot.chunks()]


def names(directory: Path) -> list[str]:
    return sorted(path.name.lstrip("0") for path in directory.iterdir())


def test_a_snapshot_comes_back(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s")
    assert store.newest() is None
    store.write(12, CHUNKS)
    for found in (store.newest(), open_store(tmp_path / "s").newest()):
        assert read(found) == CHUNKS
        assert found is not None
        assert (found.lsn, found.last_lsn) == (12, 99)
        assert read(found) == CHUNKS  # a second time


def test_an_empty_snapshot(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s")
    store.write(0, [])
    assert read(store.newest()) == []


def test_two_are_kept(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s")
    for lsn in (3, 8, 20, 21):
        store.write(lsn, [("at", str(lsn).encode())])
    assert store.lsns() == [20, 21]
    assert names(tmp_path / "s") == ["20.snapshot", "21.snapshot"]
    assert read(store.newest()) == [("at", b"21")]


def test_a_snapshot_at_the_same_lsn_takes_the_place_of_the_first(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s")
    store.write(3, [("a", b"1")])
    store.write(3, [("a", b"2")])
    assert store.lsns() == [3]
    assert read(store.newest()) == [("a", b"2")]


def test_chunks_are_written_one_by_one(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s")
    (tmp_path / "s").mkdir(exist_ok=True)
    sizes: list[int] = []

    def chunks() -> Iterator[tuple[str, memoryview]]:
        buffer = bytearray(1000)
        for number in range(5):
            buffer[:] = bytes([number]) * 1000  # the caller may use one buffer for all
            yield str(number), memoryview(buffer).cast("I", (25, 10))
            (path,) = (tmp_path / "s").glob("*.new")
            sizes.append(path.stat().st_size)

    store.write(1, chunks())
    assert [b - a for a, b in itertools.pairwise(sizes)] == [1029] * 4
    assert read(store.newest()) == [(str(n), bytes([n]) * 1000) for n in range(5)]


def damage_is_noticed(directory: Path, data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """Give the newest snapshot other bytes: the one before is found, with a warning."""
    store = open_store(directory)
    if not store.lsns():
        store.write(5, [("before", b"it")])
    path = directory / f"{9:020d}.snapshot"
    path.write_bytes(data)
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        found = store.newest()
    assert read(found) == [("before", b"it")]
    assert str(path) in caplog.text
    assert names(directory) == ["5.snapshot", "9.damaged"]
    path.with_suffix(".damaged").unlink()


@pytest.fixture
def stored(tmp_path: Path) -> bytes:
    open_store(tmp_path / "whole").write(9, CHUNKS)
    (path,) = (tmp_path / "whole").iterdir()
    return path.read_bytes()


def test_every_flipped_bit_is_found(
    tmp_path: Path, stored: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    for place in range(len(stored)):
        changed = bytearray(stored)
        changed[place] ^= 1 << place % 8
        damage_is_noticed(tmp_path / "s", bytes(changed), caplog)


def test_every_cut_is_found(
    tmp_path: Path, stored: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    for size in range(len(stored)):
        damage_is_noticed(tmp_path / "s", stored[:size], caplog)
    damage_is_noticed(tmp_path / "s", stored + b"\0", caplog)


def test_chunks_that_are_cut_out_or_moved(
    tmp_path: Path, stored: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = 40, 40 + 28 + 6 + 9  # where the first two chunks begin
    third = second + 28 + 5
    a, b, rest = stored[first:second], stored[second:third], stored[third:]
    for data in (a + rest, b + rest, rest, b + a + rest, a + a + b + rest):
        damage_is_noticed(tmp_path / "s", stored[:first] + data, caplog)


def test_a_snapshot_with_another_name(
    tmp_path: Path, stored: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store(tmp_path / "s")
    (tmp_path / "s" / f"{10:020d}.snapshot").write_bytes(stored)
    assert store.newest() is None
    assert "by its header, it is the snapshot of lsn 9" in caplog.text


def test_the_one_before_a_damaged_one_stays(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s")
    for lsn in (1, 2, 3):
        store.write(lsn, [("at", str(lsn).encode())])
    path = tmp_path / "s" / f"{3:020d}.snapshot"
    path.write_bytes(path.read_bytes()[:-1])
    assert read(store.newest()) == [("at", b"2")]
    store.write(4, CHUNKS)
    assert store.lsns() == [2, 4]


def test_damage_after_the_check(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s")
    store.write(1, CHUNKS)
    found = store.newest()
    assert found is not None
    data = bytearray(found.path.read_bytes())
    data[-60] ^= 1
    found.path.write_bytes(data)
    with pytest.raises(StorageDamagedError, match="right before"):
        read(found)
    found.path.unlink()
    with pytest.raises(StorageError, match="cannot read"):
        read(found)


def test_a_snapshot_of_another_log(tmp_path: Path) -> None:
    open_store(tmp_path / "s").write(1, CHUNKS)
    other = SnapshotStore(tmp_path / "s", UUID(int=78), lambda: 1)
    with pytest.raises(StorageDamagedError, match="from the same copy"):
        other.newest()
    assert other.lsns() == [1]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO])
@pytest.mark.parametrize("room", [0, 40, 100, None])
def test_a_disk_that_fails_leaves_the_older_ones(
    tmp_path: Path, number: int, room: int | None
) -> None:
    disk = FakeDisk()
    store = open_store(tmp_path / "s", disk)
    for lsn in (1, 2):
        store.write(lsn, CHUNKS)
    error = OSError(number, os.strerror(number))
    if room is None:
        disk.sync_errors = [error]
    else:
        disk.write_error, disk.write_room = error, room
    kind = StorageError if number == errno.EIO else DiskFullError
    with pytest.raises(kind, match=os.strerror(number)) as raised:
        store.write(3, CHUNKS)
    assert type(raised.value) is kind
    assert names(tmp_path / "s") == ["1.snapshot", "2.snapshot"]
    disk.write_error = None
    store.write(3, CHUNKS)
    assert store.lsns() == [2, 3]


def test_chunks_that_raise_leave_nothing(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s")

    def chunks() -> Iterator[tuple[str, bytes]]:
        yield CHUNKS[0]
        raise KeyError("rows")

    with pytest.raises(KeyError):
        store.write(1, chunks())
    assert names(tmp_path / "s") == []


def test_an_unfinished_snapshot_is_removed(tmp_path: Path) -> None:
    open_store(tmp_path / "s")
    (tmp_path / "s" / f"{1:020d}.new").write_bytes(b"SFSNAPSH")
    store = open_store(tmp_path / "s")
    assert names(tmp_path / "s") == []
    assert store.newest() is None
