# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Damaged logs: an incomplete end is cut off, all other damage is an error, never a record."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from log_cases import UnsyncedDisk, content, fill, fill_in_one_group, open_log, read_log
from switchfold.hostlib.errors import StorageDamagedError
from switchfold.hostlib.parameter_server.storage.record import (
    RECORD_HEADER_BYTES,
    SEGMENT_HEADER_BYTES,
    SegmentHeader,
    record_bytes,
    unpack_segment_header,
)

NUM_RECORDS = 12
EXPECTED = [(lsn, content(lsn)) for lsn in range(1, NUM_RECORDS + 1)]


def only_segment(directory: Path) -> Path:
    (path,) = directory.glob("*.log")
    return path


def ends(payloads: list[bytes]) -> list[int]:
    """Return the offset behind each record."""
    offsets: list[int] = []
    offset = SEGMENT_HEADER_BYTES
    for payload in payloads:
        offset += record_bytes(len(payload))
        offsets.append(offset)
    return offsets


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of one segment."""
    directory = tmp_path_factory.mktemp("whole") / "log"
    fill(directory, NUM_RECORDS)
    return directory


@pytest.fixture
def damaged(whole: Path, tmp_path: Path) -> Callable[[bytes], Path]:
    """Return a function that makes a log whose only segment has other bytes."""
    directory = tmp_path / "log"
    directory.mkdir()
    path = directory / only_segment(whole).name

    def make(data: bytes) -> Path:
        path.write_bytes(data)
        return directory

    return make


def test_an_end_that_is_cut_at_any_byte(whole: Path, damaged: Callable[[bytes], Path]) -> None:
    data = only_segment(whole).read_bytes()
    offsets = ends([payload for _, payload in EXPECTED])
    assert offsets[-1] == len(data)
    for size in (*range(SEGMENT_HEADER_BYTES, offsets[1]), *range(offsets[-4], len(data))):
        directory = damaged(data[:size])
        kept = EXPECTED[: sum(offset <= size for offset in offsets)]
        assert read_log(directory) == kept, size
        with open_log(directory, calls=UnsyncedDisk()) as log:
            assert log.append([b"next"]) == len(kept) + 1
        assert read_log(directory) == [*kept, (len(kept) + 1, b"next")]


def test_a_cut_is_logged_with_its_size(
    whole: Path, damaged: Callable[[bytes], Path], caplog: pytest.LogCaptureFixture
) -> None:
    data = only_segment(whole).read_bytes()
    start = ends([payload for _, payload in EXPECTED])[-2]
    directory = damaged(data[: start + 50])
    with caplog.at_level(logging.WARNING):
        assert read_log(directory) == EXPECTED[:-1]
    assert f"cut off an incomplete end, the last 50 bytes, from offset {start} on" in caplog.text
    assert str(only_segment(directory)) in caplog.text
    caplog.clear()
    assert read_log(directory) == EXPECTED[:-1]
    assert not caplog.text


def test_an_end_of_zeros_is_cut_off(whole: Path, damaged: Callable[[bytes], Path]) -> None:
    data = only_segment(whole).read_bytes()
    assert read_log(damaged(data + bytes(5000))) == EXPECTED
    start = ends([payload for _, payload in EXPECTED])[-2]
    assert read_log(damaged(data[:start] + bytes(5000))) == EXPECTED[:-1]


def test_every_flipped_bit_is_found(whole: Path, damaged: Callable[[bytes], Path]) -> None:
    data = only_segment(whole).read_bytes()
    offsets = ends([payload for _, payload in EXPECTED])
    for place in range(len(data)):
        for mask in (1 << place % 8, 0xFF):
            changed = bytearray(data)
            changed[place] ^= mask
            directory = damaged(bytes(changed))
            if place >= offsets[-2]:
                assert read_log(directory) == EXPECTED[:-1], place
                continue
            with pytest.raises(StorageDamagedError) as raised:
                read_log(directory)
            starts = [SEGMENT_HEADER_BYTES, *offsets]
            expected = max((start for start in starts if start <= place), default=0)
            assert raised.value.offset == expected, place
            assert raised.value.path == only_segment(directory)
            assert only_segment(directory).read_bytes() == changed  # nothing was cut off


def test_the_error_says_where_and_what_to_do(whole: Path, damaged: Callable[[bytes], Path]) -> None:
    data = bytearray(only_segment(whole).read_bytes())
    offset = ends([payload for _, payload in EXPECTED])[4]
    data[offset + RECORD_HEADER_BYTES] ^= 1
    directory = damaged(bytes(data))
    with pytest.raises(StorageDamagedError) as raised:
        open_log(directory)
    text = str(raised.value)
    assert f"{only_segment(directory)}, offset {offset}, behind lsn 5" in text
    assert "the checksum of record 6 is wrong" in text
    assert f"truncate -s {offset}" in text
    with only_segment(directory).open("rb+") as file:  # the advice works
        file.truncate(offset)
    assert read_log(directory) == EXPECTED[:5]


def test_a_flipped_bit_in_the_last_group(tmp_path: Path) -> None:
    payloads = [b"\xff" * 700, b"\xff" * 800, b"\xff" * 900]
    fill_in_one_group(tmp_path / "log", payloads)
    path = only_segment(tmp_path / "log")
    data = bytearray(path.read_bytes())
    offsets = ends([b"first", *payloads])
    data[offsets[0] + 300] ^= 1
    path.write_bytes(data)
    with pytest.raises(StorageDamagedError, match="no crash leaves that behind"):
        open_log(tmp_path / "log")
    data[offsets[0] + 300] ^= 1
    data[offsets[2] + 300] ^= 1  # in the last record: as if it had been incomplete
    path.write_bytes(data)
    assert [payload for _, payload in read_log(tmp_path / "log")] == [b"first", *payloads[:2]]


def test_a_sector_of_the_last_group_that_was_not_written(tmp_path: Path) -> None:
    payloads = [b"\xff" * 700, b"\xff" * 1200, b"\xff" * 900, b"\xff" * 700]
    fill_in_one_group(tmp_path / "log", payloads)
    path = only_segment(tmp_path / "log")
    data = bytearray(path.read_bytes())
    start = ends([b"first", *payloads])[1]
    sector = start - start % 512 + 512
    data[sector : sector + 512] = bytes(512)
    path.write_bytes(data)
    assert [payload for _, payload in read_log(tmp_path / "log")] == [b"first", payloads[0]]
    assert path.stat().st_size == start


def test_a_sector_that_was_durable_and_is_lost(tmp_path: Path) -> None:
    payloads = [b"\xff" * 700, b"\xff" * 1200, b"\xff" * 900, b"\xff" * 700]
    fill_in_one_group(tmp_path / "log", payloads)
    with open_log(tmp_path / "log") as log:
        log.append([b"another group"])
    path = only_segment(tmp_path / "log")
    data = bytearray(path.read_bytes())
    start = ends([b"first", *payloads])[1]
    sector = start - start % 512 + 512
    data[sector : sector + 512] = bytes(512)
    path.write_bytes(data)
    with pytest.raises(StorageDamagedError, match=f"offset {start}, behind lsn 2"):
        open_log(tmp_path / "log")


def test_a_record_that_is_cut_out(whole: Path, damaged: Callable[[bytes], Path]) -> None:
    data = only_segment(whole).read_bytes()
    offsets = ends([payload for _, payload in EXPECTED])
    for cut in (0, 5, NUM_RECORDS - 2):
        start = offsets[cut - 1] if cut else SEGMENT_HEADER_BYTES
        directory = damaged(data[:start] + data[offsets[cut] :])
        with pytest.raises(StorageDamagedError, match=f"follows record {cut + 1}"):
            read_log(directory)


def test_a_record_of_another_log(tmp_path: Path) -> None:
    fill(tmp_path / "log", 3)
    fill(tmp_path / "other", 4)
    path = only_segment(tmp_path / "log")
    size = path.stat().st_size
    path.write_bytes(path.read_bytes() + only_segment(tmp_path / "other").read_bytes()[size:])
    assert [lsn for lsn, _ in read_log(tmp_path / "log")] == [1, 2, 3]


def many_segments(directory: Path) -> list[Path]:
    fill(directory, 60, segment_bytes=800)
    paths = sorted(directory.glob("*.log"))
    assert len(paths) > 5
    return paths


def test_a_missing_segment(tmp_path: Path) -> None:
    paths = many_segments(tmp_path / "whole")
    for missing in range(len(paths) - 1):
        directory = tmp_path / str(missing)
        shutil.copytree(tmp_path / "whole", directory)
        (directory / paths[missing].name).unlink()
        with pytest.raises(StorageDamagedError) as raised:
            read_log(directory)
        assert raised.value.path == directory / paths[missing + 1].name
        assert "from a copy" in str(raised.value)


def test_an_older_segment_that_is_damaged_or_cut(tmp_path: Path) -> None:
    paths = many_segments(tmp_path / "log")
    path = paths[2]
    data = path.read_bytes()
    for place in range(0, len(data), 3):
        changed = bytearray(data)
        changed[place] ^= 0x10
        path.write_bytes(changed)
        with pytest.raises(StorageDamagedError) as raised:
            read_log(tmp_path / "log")
        assert raised.value.path == path
    for size in range(0, len(data), 3):
        path.write_bytes(data[:size])
        with pytest.raises(StorageDamagedError) as raised:
            read_log(tmp_path / "log")
        assert raised.value.path in (path, paths[3])
    path.write_bytes(data)
    assert len(read_log(tmp_path / "log")) == 60


def test_replay_yields_what_is_before_the_damage(tmp_path: Path) -> None:
    paths = many_segments(tmp_path / "log")
    data = bytearray(paths[2].read_bytes())
    data[-20] ^= 1
    paths[2].write_bytes(data)
    lsns: list[int] = []
    with open_log(tmp_path / "log") as log:
        with pytest.raises(StorageDamagedError):
            lsns += [lsn for lsn, _ in log.replay(1)]
        lsns.extend(lsn for lsn, _ in log.replay(int(paths[3].stem)))
    assert lsns == [*range(int(paths[3].stem), 61)]


def test_a_segment_with_another_name_or_of_another_log(tmp_path: Path) -> None:
    paths = many_segments(tmp_path / "log")
    renamed = paths[2].with_name(f"{int(paths[2].stem) + 1:020d}.log")
    paths[2].rename(renamed)
    with pytest.raises(StorageDamagedError, match=f"should begin with {paths[2].stem}"):
        open_log(tmp_path / "log")
    renamed.unlink()
    many_segments(tmp_path / "other")
    shutil.copy(tmp_path / "other" / paths[2].name, paths[2])
    with pytest.raises(StorageDamagedError, match="belongs to log"):
        open_log(tmp_path / "log")


def test_another_format_version(whole: Path, damaged: Callable[[bytes], Path]) -> None:
    data = bytearray(only_segment(whole).read_bytes())
    data[8] = 2
    with pytest.raises(StorageDamagedError, match="format version 2, this software reads 1"):
        open_log(damaged(bytes(data)))


def test_a_segment_that_follows_itself(whole: Path, damaged: Callable[[bytes], Path]) -> None:
    data = only_segment(whole).read_bytes()
    identity = unpack_segment_header(data).identity
    head = SegmentHeader(identity, 1, 1).pack()
    with pytest.raises(StorageDamagedError, match="not before its first one"):
        open_log(damaged(head + data[len(head) :]))
