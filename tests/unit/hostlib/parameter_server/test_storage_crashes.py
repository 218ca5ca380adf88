# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What is reported as durable survives kill -9, and a loss of power that leaves sectors out."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chained_rows
from log_cases import FakeDisk, LogWatch, content, open_log, read_log
from switchfold.hostlib.parameter_server.storage import ServerStorage

NUM_KILLS = int(os.environ.get("SWITCHFOLD_KILLS", "20"))


def append_and_kill(directory: Path, num_lines: int) -> list[int]:
    """Run a process until it has printed some lines, kill it, and return what it printed."""
    with subprocess.Popen(
        [sys.executable, chained_rows.__file__, str(directory)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(num_lines)]
        process.kill()
        lines += process.stdout.readlines()
        assert process.wait() == -9
    return [int(line) for line in lines if line.endswith("\n")]


@pytest.mark.slow
def test_durable_records_survive_kill_9(tmp_path: Path) -> None:
    """The process appends to a log and writes snapshots, which shorten the log."""
    draw = random.Random(1)
    expected = chained_rows.ChainedRows()
    last_lsn = 0
    for _ in range(NUM_KILLS):
        printed = append_and_kill(tmp_path / "state", draw.randint(1, 25))
        assert printed[0] >= last_lsn  # it found all that the process before it had reported
        assert printed == sorted(set(printed))
        last_lsn = printed[-1]
        found = chained_rows.ChainedRows()
        with ServerStorage(tmp_path / "state", LogWatch().events) as storage:
            assert storage.log.durable_lsn >= last_lsn
            found.recover(storage)
            first_lsn = 1 if storage.snapshot is None else storage.snapshot.lsn + 1
            assert [(lsn, bytes(record)) for lsn, record in storage.records()] == [
                (lsn, content(lsn)) for lsn in range(first_lsn, storage.log.durable_lsn + 1)
            ]
        for lsn in range(expected.applied_lsn + 1, found.applied_lsn + 1):
            expected.apply(lsn, content(lsn))
        assert found.rows == expected.rows
    assert last_lsn > NUM_KILLS
    assert storage.snapshot is not None
    assert not (tmp_path / "state" / "log" / f"{1:020d}.log").exists()


@dataclass(frozen=True)
class Group:
    """Records that a test appends together."""

    count: int
    fault: str = "none"
    """`write` and `sync`: the disk is full at the system call."""
    room: int = 0
    """Bytes that a full disk takes."""


groups = st.builds(
    Group,
    count=st.integers(1, 30),
    fault=st.sampled_from(["none", "none", "write", "sync"]),
    room=st.integers(0, 5000),
)


@settings(max_examples=80, deadline=None)
@given(
    before=st.lists(groups, max_size=6),
    last=st.integers(1, 30),
    sizes=st.lists(st.integers(0, 2000), min_size=1, max_size=8),
    seed=st.integers(0, 1 << 30),
)
def test_a_loss_of_power_leaves_what_is_durable_and_nothing_refused(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[Group],
    last: int,
    sizes: list[int],
    seed: int,
) -> None:
    """The power fails while the last group is made durable, perhaps on a disk that was full."""
    folder = tmp_path_factory.mktemp("power")
    watch, disk = LogWatch(), FakeDisk()
    disk.keeps_synced = True
    payloads: dict[int, bytes] = {}
    with open_log(folder / "log", watch, disk, segment_bytes=20_000) as log:

        def append() -> int:
            lsn = len(payloads) + 1
            # No byte is 0: a record that is left out cannot be mistaken for one of zeros.
            payloads[lsn] = bytes([1 + lsn % 255]) * sizes[lsn % len(sizes)]
            assert log.append([payloads[lsn]]) == lsn
            return lsn

        for group in before:
            full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if group.fault == "write":
                disk.write_error, disk.write_room = full, group.room
            elif group.fault == "sync":
                disk.sync_errors = [full]
            for _ in range(group.count):
                lsn = append()
            watch.wait_reported(lsn)
            disk.write_error, disk.sync_errors = None, []
        disk.lose_power(folder / "log", folder / "between", seed)
        num_between = len(payloads)
        disk.stop()
        append()
        disk.wait_stopped()
        for _ in range(last):
            append()
        disk.stop_at_next()
        durable = log.durable_lsn
        disk.lose_power(folder / "log", folder / "left", seed)
        disk.go_on()
    refused = {lsn for a, b, _ in watch.failed for lsn in range(a, b + 1)}
    expected = [(lsn, payload) for lsn, payload in payloads.items() if lsn not in refused]
    between = [record for record in expected if record[0] <= num_between]
    assert read_log(folder / "between") == between
    for _ in range(2):  # the second time, nothing is cut off
        found = read_log(folder / "left")
        assert found == expected[: len(found)]
        assert len(found) >= sum(lsn <= durable for lsn, _ in expected)
    with open_log(folder / "left") as log:
        lsn = log.append([b"after"])
    assert read_log(folder / "left") == [*found, (lsn, b"after")]
