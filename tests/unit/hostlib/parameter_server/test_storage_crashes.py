# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What is reported as durable survives kill -9, and a loss of power that leaves sectors out."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import log_appender
from log_cases import FakeDisk, LogWatch, content, open_log, read_log

NUM_KILLS = 50


def append_and_kill(directory: Path, num_lines: int) -> list[int]:
    """Run a process until it has printed some lines, kill it, and return what it printed."""
    with subprocess.Popen(
        [sys.executable, log_appender.__file__, str(directory)],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(num_lines)]
        process.kill()
        lines += process.stdout.readlines()
        assert process.wait() == -9
    return [int(line) for line in lines if line.endswith("\n")]


@pytest.mark.slow
def test_durable_records_survive_kill_9(tmp_path: Path) -> None:
    draw = random.Random(1)
    last_lsn = 0
    for _ in range(NUM_KILLS):
        printed = append_and_kill(tmp_path / "log", draw.randint(1, 25))
        assert printed[0] >= last_lsn  # it found all that the process before it had reported
        assert printed == sorted(set(printed))
        found = read_log(tmp_path / "log")
        assert found == [(lsn, content(lsn)) for lsn in range(1, len(found) + 1)]
        last_lsn = printed[-1]
        assert len(found) >= last_lsn
    assert last_lsn > NUM_KILLS


@settings(max_examples=60, deadline=None)
@given(
    groups=st.lists(st.integers(1, 30), min_size=1, max_size=6),
    sizes=st.lists(st.integers(0, 2000), min_size=1, max_size=8),
    seed=st.integers(0, 1 << 30),
)
def test_durable_records_survive_a_loss_of_power(
    tmp_path_factory: pytest.TempPathFactory, groups: list[int], sizes: list[int], seed: int
) -> None:
    """The power fails while the last group is made durable."""
    folder = tmp_path_factory.mktemp("power")
    watch, disk = LogWatch(), FakeDisk()
    disk.keeps_synced = True
    payloads: list[bytes] = []
    with open_log(folder / "log", watch, disk, segment_bytes=20_000) as log:
        for count in groups:
            disk.go_on()
            watch.wait(lambda: log.durable_lsn == len(payloads))
            disk.stop()
            for number in range(count + 1):
                lsn = len(payloads) + 1
                # No byte is 0: a record that is left out cannot be mistaken for one of zeros.
                payloads.append(bytes([1 + lsn % 255]) * sizes[lsn % len(sizes)])
                log.append([payloads[-1]])
                if number == 0:
                    disk.wait_stopped()
        disk.stop_at_next()
        durable = log.durable_lsn
        disk.lose_power(folder / "log", folder / "left", seed)
        disk.go_on()
    expected = [(lsn + 1, payload) for lsn, payload in enumerate(payloads)]
    for _ in range(2):
        found = read_log(folder / "left")
        assert found == expected[: len(found)]
        assert len(found) >= durable
    with open_log(folder / "left") as log:
        assert log.append([b"after"]) == len(found) + 1
    assert read_log(folder / "left") == [*found, (len(found) + 1, b"after")]
