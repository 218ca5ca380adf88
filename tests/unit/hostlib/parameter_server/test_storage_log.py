# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The write-ahead log on a disk that works: numbers, groups, segments, limits, one owner."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import log_cases
from log_cases import FakeDisk, LogWatch, content, fill, open_log, read_log
from switchfold.hostlib.errors import (
    ConfigurationError,
    LogBusyError,
    LogClosedError,
    LogLockedError,
    StorageDamagedError,
    StorageError,
)
from switchfold.hostlib.parameter_server.storage import LogOptions, WriteAheadLog
from switchfold.hostlib.parameter_server.storage import disk as disk_module
from switchfold.hostlib.parameter_server.storage import log as log_module
from switchfold.hostlib.parameter_server.storage import segment as segment_module
from switchfold.hostlib.parameter_server.storage.record import record_bytes


def segment_names(directory: Path) -> list[int]:
    return sorted(int(path.stem) for path in directory.glob("*.log"))


def test_records_are_numbered_from_1_and_come_back(tmp_path: Path) -> None:
    watch = LogWatch()
    with open_log(tmp_path / "log", watch) as log:
        assert log.durable_lsn == 0
        assert list(log.replay(1)) == []
        assert [log.append([b"a", b"", b"bc"]), log.append([]), log.append([b"d"])] == [1, 2, 3]
        watch.wait_durable(3)
        assert log.durable_lsn == 3
        expected = [(1, b"abc"), (2, b""), (3, b"d")]
        assert list(log.replay(1)) == expected
    assert read_log(tmp_path / "log") == expected
    assert read_log(tmp_path / "log", from_lsn=3) == expected[2:]
    assert read_log(tmp_path / "log", from_lsn=4) == []
    with open_log(tmp_path / "log") as log:
        assert log.append([b"e"]) == 4
    assert read_log(tmp_path / "log") == [*expected, (4, b"e")]


def test_identity_stays(tmp_path: Path) -> None:
    with open_log(tmp_path / "log") as log, open_log(tmp_path / "other") as other:
        identity = log.identity
        assert identity != other.identity
    with open_log(tmp_path / "log") as log:
        assert log.identity == identity


def test_parts_are_bytes_of_any_contiguous_buffer(tmp_path: Path) -> None:
    numbers = memoryview(bytearray(range(16))).cast("I", (2, 2))
    with open_log(tmp_path / "log") as log:
        log.append([numbers, bytearray(b"x")])
        with pytest.raises(TypeError):
            log.append([memoryview(b"abcdef")[::2]])
    assert read_log(tmp_path / "log") == [(1, bytes(range(16)) + b"x")]


def test_a_record_of_many_parts(tmp_path: Path) -> None:
    parts = [bytes([n % 251]) * (n % 7) for n in range(5000)]  # more than one writev takes
    with open_log(tmp_path / "log") as log:
        log.append(parts)
    assert read_log(tmp_path / "log") == [(1, b"".join(parts))]


def test_waiting_records_become_durable_in_one_group(tmp_path: Path) -> None:
    watch, disk = LogWatch(), FakeDisk()
    with open_log(tmp_path / "log", watch, disk) as log:
        disk.stop()
        before = disk.num_syncs
        for lsn in range(1, 1001):
            assert log.append([content(lsn)]) == lsn
        assert watch.durable == []
        disk.go_on()
        watch.wait_durable(1000)
        assert disk.num_syncs - before <= 2  # one was under way with the first records
        assert watch.durable[-1] == 1000
    assert read_log(tmp_path / "log") == [(lsn, content(lsn)) for lsn in range(1, 1001)]


def test_threads_append_together(tmp_path: Path) -> None:
    watch = LogWatch()
    lsns: list[list[int]] = [[] for _ in range(4)]

    def append(log: WriteAheadLog, thread: int) -> None:
        for n in range(200):
            lsns[thread].append(log.append([f"{thread}/{n}".encode()]))

    with open_log(tmp_path / "log", watch, segment_bytes=4096) as log:
        threads = [threading.Thread(target=append, args=(log, t)) for t in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert watch.durable[-1] == 800
    assert watch.durable == sorted(watch.durable)
    expected = {lsn: f"{t}/{n}".encode() for t in range(4) for n, lsn in enumerate(lsns[t])}
    assert read_log(tmp_path / "log") == sorted(expected.items())


def test_close_makes_waiting_records_durable(tmp_path: Path) -> None:
    watch, disk = LogWatch(), FakeDisk()
    log = open_log(tmp_path / "log", watch, disk)
    for lsn in range(1, 101):
        log.append([content(lsn)])
    log.close()
    log.close()
    assert watch.durable[-1] == 100
    with pytest.raises(LogClosedError, match="closed"):
        log.append([b"late"])


def test_segments_are_named_by_their_first_lsn_and_keep_their_size(tmp_path: Path) -> None:
    fill(tmp_path / "log", 100, segment_bytes=1000)
    names = segment_names(tmp_path / "log")
    assert len(names) > 5
    assert names[0] == 1
    sizes = [path.stat().st_size for path in (tmp_path / "log").glob("*.log")]
    assert max(sizes) <= 1000
    assert [lsn for lsn, _ in read_log(tmp_path / "log", names[3])] == [*range(names[3], 101)]


def test_a_group_is_divided_among_segments(tmp_path: Path) -> None:
    watch, disk = LogWatch(), FakeDisk()
    with open_log(tmp_path / "log", watch, disk, segment_bytes=1000) as log:
        disk.stop()
        for lsn in range(1, 101):
            log.append([content(lsn)])
        disk.go_on()
        watch.wait_durable(100)
    assert max(path.stat().st_size for path in (tmp_path / "log").glob("*.log")) <= 1000
    assert read_log(tmp_path / "log") == [(lsn, content(lsn)) for lsn in range(1, 101)]


def test_a_record_larger_than_a_segment_is_alone_in_its(tmp_path: Path) -> None:
    with open_log(tmp_path / "log", segment_bytes=200) as log:
        for payload in (b"a", bytes(5000), b"b", b"c"):
            log.append([payload])
    assert segment_names(tmp_path / "log") == [1, 2, 3]
    assert [len(payload) for _, payload in read_log(tmp_path / "log")] == [1, 5000, 1, 1]


def test_drop_before_removes_whole_segments(tmp_path: Path) -> None:
    fill(tmp_path / "log", 100, segment_bytes=1000)
    names = segment_names(tmp_path / "log")
    with open_log(tmp_path / "log") as log:
        log.drop_before(names[2])
        assert segment_names(tmp_path / "log") == names[2:]
        log.drop_before(names[4] - 1)  # it is in a segment that has to stay
        assert segment_names(tmp_path / "log") == names[3:]
        assert next(iter(log.replay(names[3]))) == (names[3], content(names[3]))
        with pytest.raises(StorageDamagedError, match=f"follows lsn {names[3] - 1}"):
            log.replay(names[3] - 1)
        log.drop_before(1000)
        assert segment_names(tmp_path / "log") == names[-1:]
        assert log.append([content(101)]) == 101
    assert read_log(tmp_path / "log", 101) == [(101, content(101))]


def test_replay_leaves_out_what_is_being_written(tmp_path: Path) -> None:
    watch = LogWatch()
    with open_log(tmp_path / "log", watch) as log:
        (path,) = (tmp_path / "log").glob("*.log")
        for records in ([], [(1, b"a")]):
            size = path.stat().st_size
            with path.open("ab") as file:
                file.write(b"half a record")
            assert list(log.replay(1)) == records
            assert list(log.replay(2)) == []
            os.truncate(path, size)
            watch.wait_durable(log.append([b"a"]))


def test_names_are_durable_before_anything_depends_on_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "log"
    seen: list[list[int]] = []

    def sync(path: Path) -> None:
        assert path == directory
        seen.append(segment_names(directory))

    monkeypatch.setattr(segment_module, "sync_directory", sync)
    monkeypatch.setattr(log_module, "sync_directory", sync)
    fill(directory, 30, segment_bytes=1000)
    names = segment_names(directory)
    assert len(names) > 2
    assert seen == [names[:1], *(names[: n + 1] for n in range(len(names)))]
    seen.clear()
    with open_log(directory) as log:  # the process before it may have been killed in between
        assert seen == [names]
        log.drop_before(1000)
    assert seen == [names[n:] for n in range(len(names))]


def test_the_directory_is_durable_in_any_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Path] = []
    monkeypatch.setattr(disk_module, "sync_directory", seen.append)
    for _ in range(2):
        open_log(tmp_path / "log").close()
    assert seen == [tmp_path, tmp_path]


def test_an_unfinished_segment_is_removed(tmp_path: Path) -> None:
    fill(tmp_path / "log", 3)
    unfinished = tmp_path / "log" / f"{4:020d}.new"
    unfinished.write_bytes(b"half a head")
    assert len(read_log(tmp_path / "log")) == 3
    assert not unfinished.exists()


def test_a_full_queue_refuses_and_has_room_again(tmp_path: Path) -> None:
    watch, disk = LogWatch(), FakeDisk()
    size = record_bytes(100)
    with open_log(tmp_path / "log", watch, disk, waiting_bytes=10 * size) as log:
        disk.stop()
        for _ in range(4):
            log.append([bytes(100)])
        assert log.has_room
        log.append([bytes(100)])
        assert not log.has_room  # half of it waits
        for _ in range(5):
            log.append([bytes(100)])
        with pytest.raises(LogBusyError, match="again later"):
            log.append([b""])
        assert watch.num_rooms == 0
        disk.go_on()
        watch.wait(lambda: watch.num_rooms == 1)
        assert log.has_room
        assert log.append([b"now"]) == 11
        watch.wait_durable(11)
    assert watch.num_rooms == 1
    assert watch.failed == []


def test_a_record_that_never_fits_is_refused(tmp_path: Path) -> None:
    with open_log(tmp_path / "log", waiting_bytes=1000) as log:
        with pytest.raises(ValueError, match="at most"):
            log.append([bytes(1000)])
        assert log.append([bytes(1000 - record_bytes(0))]) == 1


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with open_log(tmp_path / "log"):
        with pytest.raises(LogLockedError, match=rf"in use by process {os.getpid()}\b"):
            open_log(tmp_path / "log")
        code = (
            "import sys\n"
            "from pathlib import Path\n"
            "from log_cases import open_log\n"
            "open_log(Path(sys.argv[1]))\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "log")],
            cwd=Path(log_cases.__file__).parent,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        assert f"in use by process {os.getpid()}:" in done.stderr
    open_log(tmp_path / "log").close()


def test_a_log_in_an_impossible_place(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="choose a directory"):
        open_log(tmp_path / "no" / "log")
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="choose a directory"):
        open_log(tmp_path / "file")


@pytest.mark.parametrize("name", ["segment_bytes", "waiting_bytes"])
def test_options_are_checked(name: str) -> None:
    with pytest.raises(ConfigurationError, match="positive"):
        LogOptions(**{name: 0})
