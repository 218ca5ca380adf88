# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Snapshot and log together: a server that comes back has the exact state."""

from __future__ import annotations

import logging
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from log_cases import LogWatch
from switchfold.hostlib.errors import LogLockedError, StorageDamagedError, StorageError
from switchfold.hostlib.parameter_server.storage import LogOptions, ServerStorage

PUSH = struct.Struct("<IQIq")
NAME = struct.Struct("<IQ")
ROW = struct.Struct("<qQ")
NUM_ROWS = 4
OPTIONS = LogOptions(segment_bytes=400)


class SmallServer:
    """A server of a few numbers, each with the lsn of the last push to it."""

    def __init__(self, directory: Path) -> None:
        self.watch = LogWatch()
        self.storage = ServerStorage(directory, self.watch.events, OPTIONS)
        self.rows = [(0, 0)] * NUM_ROWS
        self.pushes: set[tuple[int, ...]] = set()
        if self.storage.snapshot is not None:
            for name, payload in self.storage.snapshot.chunks():
                if name == "pushes":
                    self.pushes = {*NAME.iter_unpack(payload)}
                else:
                    value, lsn = ROW.unpack(payload)
                    self.rows[int(name)] = (value, lsn)
        self.num_replayed = 0
        for lsn, record in self.storage.records():
            self.apply(lsn, record)
            self.num_replayed += 1

    def apply(self, lsn: int, record: bytes | memoryview) -> None:
        worker, sequence, row, change = PUSH.unpack(record)
        assert (worker, sequence) not in self.pushes
        self.pushes.add((worker, sequence))
        value, last_lsn = self.rows[row]
        if lsn > last_lsn:
            self.rows[row] = (value + change, lsn)

    def push(self, worker: int, sequence: int, row: int, change: int) -> None:
        if (worker, sequence) in self.pushes:
            return
        record = PUSH.pack(worker, sequence, row, change)
        lsn = self.storage.log.append([record])
        self.watch.wait_durable(lsn)
        self.apply(lsn, record)

    def snapshot(self, between: Iterator[tuple[int, int, int, int]]) -> None:
        """Write a snapshot while pushes go on: one after each chunk."""

        def chunks() -> Iterator[tuple[str, bytes]]:
            yield "pushes", b"".join(NAME.pack(*name) for name in self.pushes)
            for row in range(NUM_ROWS):
                yield str(row), ROW.pack(*self.rows[row])
                for push in between:
                    self.push(*push)
                    break

        self.storage.write_snapshot(self.storage.log.durable_lsn, chunks())

    def values(self) -> list[int]:
        return [value for value, _ in self.rows]


def damage_newest_snapshot(directory: Path) -> None:
    paths = sorted((directory / "snapshots").glob("*.snapshot"))
    if len(paths) > 1:
        paths[-1].write_bytes(paths[-1].read_bytes()[:-3])


pushes = st.tuples(
    st.integers(0, 2), st.integers(1, 60), st.integers(0, NUM_ROWS - 1), st.integers(-99, 99)
)
steps = st.lists(
    st.one_of(
        pushes,
        st.lists(pushes, max_size=NUM_ROWS),
        st.sampled_from(["restart", "restart with a damaged snapshot"]),
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(steps)
def test_a_server_comes_back_with_the_exact_state(
    tmp_path_factory: pytest.TempPathFactory,
    all_steps: list[tuple[int, int, int, int] | list[tuple[int, int, int, int]] | str],
) -> None:
    directory = tmp_path_factory.mktemp("server") / "state"
    server = SmallServer(directory)
    applied: set[tuple[int, int]] = set()
    expected = [0] * NUM_ROWS

    def note(push: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
        worker, sequence, row, change = push
        if (worker, sequence) not in applied:
            applied.add((worker, sequence))
            expected[row] += change
        return push

    for step in all_steps:
        if isinstance(step, tuple):
            server.push(*note(step))
        elif isinstance(step, list):
            server.snapshot(note(push) for push in step)
        else:
            server.storage.close()
            if step != "restart":
                damage_newest_snapshot(directory)
            server = SmallServer(directory)
        assert server.values() == expected
    server.storage.close()
    server = SmallServer(directory)
    assert server.values() == expected
    server.storage.close()


def run_pushes(directory: Path, first: int, last: int) -> SmallServer:
    server = SmallServer(directory)
    for sequence in range(first, last + 1):
        server.push(0, sequence, sequence % NUM_ROWS, sequence)
    return server


def test_a_snapshot_shortens_the_log_but_not_behind_the_older_one(tmp_path: Path) -> None:
    server = run_pushes(tmp_path / "state", 1, 40)
    log = tmp_path / "state" / "log"
    num_segments = len(list(log.glob("*.log")))
    server.snapshot(iter([]))
    assert len(list(log.glob("*.log"))) == num_segments  # a single snapshot may be damaged
    for sequence in range(41, 61):
        server.push(0, sequence, 0, 1)
    server.snapshot(iter([]))
    assert server.storage.log.append([b"x"]) == 61
    server.storage.close()
    firsts = sorted(int(path.stem) for path in log.glob("*.log"))
    assert 30 < firsts[0] <= 41


def test_replay_begins_behind_the_snapshot(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = run_pushes(tmp_path / "state", 1, 10)
    server.snapshot(iter([]))
    server.push(0, 11, 0, 5)
    server.storage.close()
    with caplog.at_level(logging.INFO):
        server = SmallServer(tmp_path / "state")
    assert server.num_replayed == 1
    assert "holds the log up to lsn 10; the log ends with lsn 11" in caplog.text
    server.storage.close()


def test_a_log_that_ends_before_the_snapshot(tmp_path: Path) -> None:
    server = run_pushes(tmp_path / "state", 1, 10)
    server.snapshot(iter([(0, 11, 0, 1), (0, 12, 0, 1)]))
    server.storage.close()
    newest = max((tmp_path / "state" / "log").glob("*.log"))
    newest.write_bytes(newest.read_bytes()[:-8])
    with pytest.raises(StorageDamagedError, match=r"when lsn 12 was durable, .* ends with lsn 11"):
        SmallServer(tmp_path / "state")


def test_a_log_that_begins_behind_the_snapshot(tmp_path: Path) -> None:
    server = run_pushes(tmp_path / "state", 1, 10)
    server.snapshot(iter([]))
    for sequence in range(11, 40):
        server.push(0, sequence, 0, 1)
    server.storage.close()
    log = tmp_path / "state" / "log"
    paths = sorted(log.glob("*.log"))
    for path in paths[:3]:
        path.unlink()
    with pytest.raises(StorageDamagedError, match="records from lsn 11 on are needed") as raised:
        SmallServer(tmp_path / "state")
    assert raised.value.path == paths[3]


def test_snapshots_without_their_log(tmp_path: Path) -> None:
    server = run_pushes(tmp_path / "state", 1, 3)
    server.snapshot(iter([]))
    server.storage.close()
    shutil.rmtree(tmp_path / "state" / "log")
    for _ in range(2):
        with pytest.raises(StorageDamagedError, match="from the same copy"):
            SmallServer(tmp_path / "state")


def test_a_snapshot_of_records_that_are_not_durable(tmp_path: Path) -> None:
    server = run_pushes(tmp_path / "state", 1, 3)
    with pytest.raises(ValueError, match="lsn 4 is not durable yet, only 3 is"):
        server.storage.write_snapshot(4, [])
    server.storage.close()


def test_one_server_at_a_time(tmp_path: Path) -> None:
    first = ServerStorage(tmp_path / "state", LogWatch().events)
    with pytest.raises(LogLockedError):
        ServerStorage(tmp_path / "state", LogWatch().events)
    first.close()
    ServerStorage(tmp_path / "state", LogWatch().events).close()


def test_an_impossible_place(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot keep a server's state"):
        ServerStorage(tmp_path / "no" / "state", LogWatch().events)
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "snapshots").write_text("")
    for _ in range(2):  # the lock was given back
        with pytest.raises(StorageError, match="cannot keep snapshots"):
            ServerStorage(tmp_path / "state", LogWatch().events)
