# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Logs on disks that are full or fail: what is refused is not kept, what is durable stays."""

from __future__ import annotations

import errno
import os
import queue
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

import log_cases
from log_cases import FakeDisk, LogWatch, content, open_log, read_log
from switchfold.hostlib.errors import DiskFullError, LogBrokenError, StorageError
from switchfold.hostlib.parameter_server.storage import WriteAheadLog

FULL = [errno.ENOSPC, errno.EDQUOT, errno.EFBIG]


def os_error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def append_all(log: WriteAheadLog, watch: LogWatch, disk: FakeDisk, count: int) -> list[int]:
    """Append records that wait for the same fdatasync, and one before them; wait for all."""
    disk.stop()
    lsns = [log.append([b"group before"])]
    disk.wait_stopped()
    lsns += [log.append([b"x" * 100]) for _ in range(count)]
    disk.go_on()
    watch.wait_reported(lsns[-1])
    return lsns


@pytest.mark.parametrize("number", FULL, ids=errno.errorcode.get)
@pytest.mark.parametrize("room", [0, 1, 200, 1000])
def test_a_group_that_does_not_fit_leaves_nothing(tmp_path: Path, number: int, room: int) -> None:
    watch, disk = LogWatch(), FakeDisk()
    with open_log(tmp_path / "log", watch, disk) as log:
        first = append_all(log, watch, disk, 3)
        (path,) = (tmp_path / "log").glob("*.log")
        before = path.read_bytes()
        disk.write_error, disk.write_room = os_error(number), room
        failed = log.append([bytes(2000)])
        watch.wait_failed(failed)
        assert path.read_bytes() == before
        assert log.durable_lsn == first[-1]
        ((first_lsn, last_lsn, error),) = watch.failed
        assert (first_lsn, last_lsn) == (failed, failed)
        assert isinstance(error, DiskFullError)
        assert os.strerror(number) in str(error)
        assert str(path) in str(error)
        disk.write_error = None
        after = log.append([b"after"])
        assert after == failed + 1
        watch.wait_durable(after)
    found = read_log(tmp_path / "log")
    assert [lsn for lsn, _ in found] == [*first, after]
    with open_log(tmp_path / "log") as log:
        assert log.append([b"reopened"]) == after + 1


@pytest.mark.parametrize("number", FULL, ids=errno.errorcode.get)
def test_a_disk_that_is_found_full_at_fdatasync(tmp_path: Path, number: int) -> None:
    watch, disk = LogWatch(), FakeDisk()
    with open_log(tmp_path / "log", watch, disk) as log:
        first = append_all(log, watch, disk, 3)
        disk.sync_errors = [os_error(number)]
        failed = log.append([b"lost"])
        watch.wait_failed(failed)
        assert isinstance(watch.failed[0][2], DiskFullError)
        after = log.append([b"after"])
        watch.wait_durable(after)
    assert [lsn for lsn, _ in read_log(tmp_path / "log")] == [*first, after]


def test_a_refusal_is_durable_before_it_is_reported(tmp_path: Path) -> None:
    watch, disk = LogWatch(), FakeDisk()
    disk.keeps_synced = True
    with open_log(tmp_path / "log", watch, disk) as log:
        append_all(log, watch, disk, 3)
        before = dict(disk.synced)
        disk.sync_errors = [os_error(errno.ENOSPC)]
        disk.synced.clear()
        watch.wait_failed(log.append([b"lost"]))
        assert disk.synced == before


def test_all_records_of_a_group_fail_and_those_behind_it_go_on(tmp_path: Path) -> None:
    watch, disk = LogWatch(), FakeDisk()
    with open_log(tmp_path / "log", watch, disk, segment_bytes=600) as log:
        disk.sync_errors = [None, os_error(errno.ENOSPC)]
        lsns = append_all(log, watch, disk, 9)  # 3 records to a segment
    (group,) = watch.failed
    kept = [lsn for lsn, _ in read_log(tmp_path / "log")]
    assert kept == [lsn for lsn in lsns if not group[0] <= lsn <= group[1]]
    assert group[1] < lsns[-1]
    assert watch.durable[-1] == lsns[-1]


def test_failed_lsns_are_not_given_again_while_the_log_is_open(tmp_path: Path) -> None:
    watch, disk = LogWatch(), FakeDisk()
    with open_log(tmp_path / "log", watch, disk) as log:
        disk.write_error = os_error(errno.ENOSPC)
        lsns = [log.append([content(n)]) for n in range(20)]
        watch.wait_failed(lsns[-1])
        assert lsns == [*range(1, 21)]
        disk.write_error = None
        assert log.append([b"now"]) == 21
    assert [lsn for lsn, _ in read_log(tmp_path / "log")] == [21]
    ranges = [(first, last) for first, last, _ in watch.failed]
    assert [lsn for first, last in ranges for lsn in range(first, last + 1)] == lsns


def test_a_full_disk_at_a_new_segment(tmp_path: Path) -> None:
    watch, disk = LogWatch(), FakeDisk()
    with open_log(tmp_path / "log", watch, disk, segment_bytes=300) as log:
        watch.wait_durable(log.append([bytes(200)]))
        disk.write_error = os_error(errno.ENOSPC)
        watch.wait_failed(log.append([bytes(200)]))
        assert not list((tmp_path / "log").glob("*.new"))
        disk.write_error, disk.write_room = os_error(errno.ENOSPC), 48  # the header alone fits
        watch.wait_failed(log.append([bytes(200)]))
        assert len(list((tmp_path / "log").glob("*.log"))) == 2
        disk.write_error = None
    assert [lsn for lsn, _ in read_log(tmp_path / "log")] == [1]
    with open_log(tmp_path / "log", watch) as log:
        # The empty segment has the third record's lsn for its name.
        watch.wait_durable(log.append([b"after"]))
        log.drop_before(3)
        assert len(list((tmp_path / "log").glob("*.log"))) == 1
    assert read_log(tmp_path / "log", 2) == [(3, b"after")]


def test_a_new_segment_that_cannot_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = LogWatch()
    with open_log(tmp_path / "log", watch, segment_bytes=300) as log:
        watch.wait_durable(log.append([bytes(200)]))
        with monkeypatch.context() as patch:
            open_file = os.open

            def refuse(path: Path, flags: int, mode: int = 0o777) -> int:
                if flags & os.O_CREAT:
                    raise os_error(errno.EMFILE)
                return open_file(path, flags, mode)

            patch.setattr(os, "open", refuse)
            watch.wait_failed(log.append([bytes(200)]))
        assert "Too many open files" in str(watch.failed[0][2])
        watch.wait_durable(log.append([b"after"]))
    assert [lsn for lsn, _ in read_log(tmp_path / "log")] == [1, 3]


@pytest.mark.parametrize("call", ["write", "sync", "undo"])
def test_a_disk_that_fails_breaks_the_log_for_good(tmp_path: Path, call: str) -> None:
    watch, disk = LogWatch(), FakeDisk()
    with open_log(tmp_path / "log", watch, disk) as log:
        durable = append_all(log, watch, disk, 3)
        if call == "write":
            disk.write_error = os_error(errno.EIO)
        elif call == "sync":
            disk.sync_errors = [os_error(errno.EIO)]
        else:
            disk.sync_errors = [os_error(errno.ENOSPC), os_error(errno.EIO)]
        lost = log.append([b"lost"])
        watch.wait_failed(lost)
        disk.write_error = None
        for _ in range(2):
            with pytest.raises(LogBrokenError, match="Input/output error: it is unknown"):
                log.append([b"more"])
        assert log.durable_lsn == durable[-1]
    assert [(first, last) for first, last, _ in watch.failed] == [(lost, lost)]
    assert isinstance(watch.failed[0][2], LogBrokenError)
    assert [lsn for lsn, _ in read_log(tmp_path / "log")][:4] == durable


def test_waiting_records_fail_with_the_group_that_breaks_the_log(tmp_path: Path) -> None:
    watch, disk = LogWatch(), FakeDisk()
    with open_log(tmp_path / "log", watch, disk, waiting_bytes=1000) as log:
        disk.stop()
        disk.sync_errors = [os_error(errno.EIO)]
        lsns = [log.append([b"x" * 100]) for _ in range(6)]
        assert not log.has_room
        disk.go_on()
        watch.wait_failed(lsns[-1])
        watch.wait(lambda: watch.num_rooms == 1)
    assert [(first, last) for first, last, _ in watch.failed] == [(1, 6)]
    assert watch.durable == []


def test_a_function_that_raises_breaks_the_log(tmp_path: Path) -> None:
    """What waits then is reported."""
    failed: queue.SimpleQueue[tuple[int, int, Exception]] = queue.SimpleQueue()

    def append_and_raise(_: int) -> None:
        for _ in range(2):
            log.append([b"waits"])
        raise ZeroDivisionError

    watch = LogWatch()
    watch.events = log_cases.LogEvents(
        on_durable=append_and_raise,
        on_failed=lambda *told: failed.put(told),
        on_room=lambda: None,
    )
    with open_log(tmp_path / "log", watch) as log:
        log.append([b"durable"])
        first, last, error = failed.get(timeout=log_cases.TIMEOUT_S)
        assert (first, last) == (2, 3)
        assert isinstance(error, LogBrokenError)
        assert "ZeroDivisionError" in str(error)
        with pytest.raises(LogBrokenError, match="ZeroDivisionError"):
            log.append([b"more"])
    assert read_log(tmp_path / "log") == [(1, b"durable")]


def test_a_writer_that_ends_reports_its_records(tmp_path: Path) -> None:
    watch, disk = LogWatch(), FakeDisk()
    with open_log(tmp_path / "log", watch, disk) as log:
        disk.stop()
        disk.sync_errors = [MemoryError()]
        lsns = [log.append([b"lost"]) for _ in range(3)]
        disk.go_on()
        watch.wait_failed(lsns[-1])
        assert [(first, last) for first, last, _ in watch.failed] == [(1, 3)]
        assert isinstance(watch.failed[0][2], LogBrokenError)
        with pytest.raises(LogBrokenError, match="MemoryError"):
            log.append([b"more"])


def test_a_full_disk_at_the_first_segment(tmp_path: Path) -> None:
    disk = FakeDisk()
    disk.write_error = os_error(errno.ENOSPC)
    with pytest.raises(DiskFullError, match="cannot create a log"):
        open_log(tmp_path / "log", calls=disk)
    assert [path.name for path in (tmp_path / "log").iterdir()] == ["lock"]
    disk.write_error = os_error(errno.EIO)
    with pytest.raises(StorageError, match="Input/output error"):
        open_log(tmp_path / "log", calls=disk)
    open_log(tmp_path / "log").close()


FILE_LIMIT = """
import resource, signal, sys
from pathlib import Path
from log_cases import LogWatch, content, open_log
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
watch = LogWatch()
with open_log(Path(sys.argv[1]), watch) as log:
    lsns = []
    while not watch.failed:
        lsns.append(log.append([content(len(lsns) + 1)]))
        watch.wait(lambda: watch.failed or watch.durable and watch.durable[-1] == lsns[-1])
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    watch.wait_durable(log.append([content(len(lsns) + 1)]))
(failed,) = watch.failed
print(failed[0], type(failed[2]).__name__, log.durable_lsn)
"""


@pytest.mark.parametrize("limit", [10_000, 10_007])
def test_a_limit_of_file_sizes(tmp_path: Path, limit: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FILE_LIMIT, str(tmp_path / "log"), str(limit)],
        cwd=Path(log_cases.__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    )
    failed, error, durable = done.stdout.split()
    assert error == "DiskFullError"
    assert int(durable) == int(failed) + 1
    expected = [lsn for lsn in range(1, int(durable) + 1) if lsn != int(failed)]
    assert read_log(tmp_path / "log") == [(lsn, content(lsn)) for lsn in expected]


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount a small tmpfs")
    path = tmp_path / "disk"
    path.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"cannot mount a tmpfs: {done.stderr.strip()}")
    yield path
    subprocess.run(["umount", str(path)], check=True)


@pytest.mark.root
def test_a_disk_that_becomes_full_and_has_space_again(small_disk: Path) -> None:
    watch = LogWatch()
    kept: list[int] = []
    with open_log(small_disk / "log", watch, segment_bytes=30_000) as log:
        for attempt in range(3):
            while len(watch.failed) == attempt:
                lsn = log.append([bytes([attempt]) * 5000])
                watch.wait_reported(lsn)
                if lsn in watch.durable:
                    kept.append(lsn)
            assert isinstance(watch.failed[-1][2], DiskFullError)
            assert len(kept) > 5
            log.drop_before(kept[-1])
    stored = read_log(small_disk / "log", kept[-1])
    assert [lsn for lsn, _ in stored] == [kept[-1]]
