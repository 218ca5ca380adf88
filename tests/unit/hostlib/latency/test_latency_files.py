# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The files of a latency log: whole, bounded, and what a server puts into its own."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from hand_time import HOUR, MS, HandTime
from measured_tables import WAIT_S, MeasuredTables
from switchfold.hostlib import LatencyLogError
from switchfold.hostlib.latency import ARRIVALS, FORMAT, ParquetLog, parquet_log, server_log
from switchfold.hostlib.latency.schema import METADATA_KEY, REQUESTS
from switchfold.hostlib.parameter_server import ClientOptions, ServerOptions
from switchfold.hostlib.parameter_server.rows import RowTable
from switchfold.hostlib.parameter_server.server import ParameterServer
from switchfold.hostlib.parameter_server.tables import TableClient
from time_bound import wait_until

SMALL = 8


def about(path: Path) -> dict[str, Any]:
    return json.loads(pq.read_schema(path).metadata[METADATA_KEY])


def row(number: int) -> tuple[int, ...]:
    return (0, 1, number, 1000 * number, number % 2)


def test_rows_come_back_from_as_many_files_as_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_log, "FILE_ROWS", SMALL)
    monkeypatch.setattr(parquet_log, "FLUSH_S", 3600.0)
    log = ParquetLog(tmp_path, ARRIVALS, "a")
    written = threading.Event()
    write = ParquetLog._write
    monkeypatch.setattr(ParquetLog, "_write", lambda self, rows: (write(self, rows), written.set()))
    for number in range(2 * SMALL + 3):
        log.append(row(number))
        if number % SMALL == SMALL - 1:
            assert written.wait(WAIT_S)
            # The buffer is free a moment later.
            while log._full is not None:
                threading.Event().wait(0.001)
            written.clear()
    log.close()
    log.close()
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == [f"arrivals-a-{n:06d}.parquet" for n in (1, 2, 3)]
    found = [each for file in files for each in pq.read_table(file).to_pylist()]
    assert [each["arrived_us"] for each in found] == [1000 * n for n in range(2 * SMALL + 3)]
    assert [each["operation"] for each in found[:2]] == ["push", "pull"]
    assert about(files[0]) == {"format": FORMAT, "kind": "arrivals", "dropped": 0}


def test_rows_that_come_while_others_are_flushed_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_log, "FILE_ROWS", SMALL)
    monkeypatch.setattr(parquet_log, "FLUSH_S", 0.01)
    flushed = threading.Event()
    write = ParquetLog._write

    def write_late(self: ParquetLog, rows: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        if not flushed.is_set() and len(rows):
            for number in range(1, SMALL + 1):  # they fill a buffer
                self.append(row(number))
            flushed.set()
        write(self, rows)

    monkeypatch.setattr(ParquetLog, "_write", write_late)
    log = ParquetLog(tmp_path, ARRIVALS, "a")
    log.append(row(0))
    assert flushed.wait(WAIT_S)
    log.close()
    assert not log.dropped
    found = [
        each for file in sorted(tmp_path.iterdir()) for each in pq.read_table(file).to_pylist()
    ]
    assert [each["arrived_us"] for each in found] == [1000 * n for n in range(SMALL + 1)]


def test_a_slow_disk_costs_rows_and_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_log, "FILE_ROWS", SMALL)
    monkeypatch.setattr(parquet_log, "FLUSH_S", 3600.0)
    may_write, write = threading.Event(), ParquetLog._write

    def wait(self: ParquetLog, rows: Any) -> None:
        assert may_write.wait(WAIT_S)
        write(self, rows)

    monkeypatch.setattr(ParquetLog, "_write", wait)
    log = ParquetLog(tmp_path, ARRIVALS, "a")
    for number in range(5 * SMALL):
        log.append(row(number))
    assert log.dropped == 4 * SMALL
    may_write.set()
    log.close()
    files = sorted(tmp_path.iterdir())
    assert sum(pq.read_metadata(file).num_rows for file in files) == SMALL
    assert sum(about(file)["dropped"] for file in files) == 4 * SMALL


def test_a_disk_that_fails_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = ParquetLog(tmp_path, ARRIVALS, "a")

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(log._parquet, "write_table", fail)
    log.append(row(1))
    log.close()
    assert log.dropped == 1
    assert "lost 1 rows of the latency log: [Errno 28]" in caplog.text


def test_an_error_of_pyarrows_costs_its_rows_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(parquet_log, "FILE_ROWS", SMALL)
    monkeypatch.setattr(parquet_log, "FLUSH_S", 3600.0)
    log = ParquetLog(tmp_path, ARRIVALS, "a")
    write, num_calls = log._parquet.write_table, 0

    def fail_once(*arguments: Any, **named: Any) -> None:
        nonlocal num_calls
        num_calls += 1
        if num_calls == 1:
            raise log._arrow.ArrowInvalid("planted")
        write(*arguments, **named)

    monkeypatch.setattr(log._parquet, "write_table", fail_once)
    for number in range(2 * SMALL):
        log.append(row(number))
        wait_until(lambda number=number: log._full is None, f"row {number} is taken")
    log.close()
    assert log.dropped == SMALL
    (file,) = sorted(tmp_path.glob("*.parquet"))
    assert pq.read_metadata(file).num_rows == SMALL
    assert about(file)["dropped"] == SMALL
    (record,) = [each for each in caplog.records if "lost" in each.message]
    assert record.exc_info is not None


def test_a_missing_pyarrow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    said = r"needs the Python module pyarrow.*pip install '\.\[latency\]'"
    with pytest.raises(LatencyLogError, match=said):
        TableClient([("127.0.0.1", 9)], ClientOptions(worker_id=0, latency_log=tmp_path))
    with pytest.raises(LatencyLogError, match=said):
        ParameterServer(ServerOptions(num_workers=1, latency_log=tmp_path))


def test_a_file_is_written_without_pandas(tmp_path: Path) -> None:
    """pyarrow would import it for an array of numpy's, which takes half a second."""
    script = f"""
import pathlib, sys
from switchfold.hostlib.latency import REQUESTS, ParquetLog
log = ParquetLog(pathlib.Path({str(tmp_path)!r}), REQUESTS, "a")
log.append([1] * len(REQUESTS.columns))
log.close()
print("pandas" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=WAIT_S
    )
    assert done.stdout == "False\n"
    assert pq.read_table(tmp_path / "requests-a-000001.parquet").num_rows == 1


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LatencyLogError, match=r"cannot make the directory .*choose another"):
        ParquetLog(tmp_path / "file" / "log", REQUESTS, "a")


def test_updates_are_those_of_the_script(tmp_path: Path) -> None:
    script = [[1, 2, 3], [2, 3, 1 << 40], [-7, 3], [3]]
    expected: Counter[int] = Counter(key for _ in range(2) for keys in script for key in keys)
    with MeasuredTables(tmp_path, num_workers=2, num_servers=3) as tables:
        for worker_id in range(2):
            for keys in script:
                tables.push(keys, worker_id)
        tables.pull([99])  # makes a row without updates
    rows = tables.rows("updates")
    assert {each["key"]: each["updates"] for each in rows} == {**expected, 99: 0}
    assert {each["server"] for each in rows} == {0, 1, 2}
    assert {each["table"] for each in rows} == {tables.tables[0].definition.number}


@pytest.mark.parametrize("count", [0, 1, 5000])
def test_updates_of_a_table_are_those_that_a_pull_names(count: int) -> None:
    table = RowTable(width=3, max_rows=10_000)
    keys = np.arange(count, dtype=np.int64) * -3
    for part in (1, 2, 7):
        some = keys[::part].copy()
        table.push(some, np.ones((some.size, 3), np.float32))
    found = [*table.updates()]
    if not count:
        assert found == []
        return
    named = np.concatenate([each[0] for each in found])
    assert (np.sort(named) == np.sort(keys)).all()
    assert (table.pull(named).updates == np.concatenate([each[1] for each in found])).all()


def test_arrivals_are_those_of_the_script(tmp_path: Path) -> None:
    time = HandTime()
    script = [(0, 0), (1, 300), (1, 300), (1, 400), (2, 999), (3, 1000), (0, 2500), (2, 2500)]
    with MeasuredTables(tmp_path, num_workers=4) as tables:
        tables.set_clocks(time.clock(), time.clock(0))
        passed_us = 0
        for worker_id, at_us in script:
            time.pass_by((at_us - passed_us) * MS // 1000)
            passed_us = at_us
            tables.pull([1], worker_id)
    rows = tables.rows("arrivals")
    assert [(each["worker"], each["arrived_us"]) for each in rows] == script
    assert len({(each["worker"], each["connection"]) for each in rows}) == 4


def test_the_load_is_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_log, "SAMPLE_S", 0.0)
    with MeasuredTables(tmp_path) as tables:
        tables.set_clocks(HandTime().clock(HOUR), HandTime().clock(HOUR))
        for _ in range(3):
            tables.pull([1])
    rows = tables.rows("samples")
    assert len(rows) >= 3
    spent = [each["processor_us"] for each in rows]
    assert spent == sorted(spent)
    assert min(each["resident_bytes"] for each in rows) > 1 << 20
    assert rows[-1]["at_us"] == HOUR // 1000
