# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold report latency`: its numbers against scripts, its page, and runs it cannot read."""

from __future__ import annotations

import base64
import json
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hand_time import MS, HandTime
from measured_tables import MeasuredTables
from switchfold.controller.__main__ import run as switchfold
from switchfold.controller.cli.latency import statistics
from switchfold.controller.cli.latency.run_files import Columns, load_run
from switchfold.controller.cli.latency.statistics import KINDS, PARTS
from switchfold.controller.errors import (
    LatencyRunDamagedError,
    LatencyRunEmptyError,
    LatencyRunFormatError,
    LatencyRunMissingError,
    ToolError,
)
from switchfold.hostlib.latency import FORMAT, REQUESTS
from switchfold.hostlib.latency.schema import METADATA_KEY


def columns(rows: list[dict[str, float]]) -> Columns:
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def request(**values: float) -> dict[str, float]:
    return dict.fromkeys((column.name for column in REQUESTS.columns), 0) | values


@pytest.fixture
def run(tmp_path: Path) -> Path:
    with MeasuredTables(tmp_path / "run", num_workers=2, num_servers=2) as tables:
        for keys in ([1, 2, 3, 4], [3, 4, 5, 6], [3, 7, 8, 9]):
            for worker_id in range(2):
                tables.pull(keys, worker_id)
                tables.push(keys, worker_id)
    return tmp_path / "run"


def test_windows_count_each_sender_once() -> None:
    script = [(0, 0), (1, 300), (1, 300), (1, 400), (2, 999), (3, 1000), (0, 4500), (2, 4999)]
    arrivals = columns(
        [
            {"server": server, "worker": worker, "connection": i % 3, "arrived_us": at}
            for server in (0, 5)
            for i, (worker, at) in enumerate(script)
        ]
    )
    found = statistics.distinct_per_window(arrivals, 1000)
    assert sorted(found) == [0, 5]
    for windows in found.values():
        assert windows.numbers.tolist() == [0, 1, 4]
        assert windows.counts.tolist() == [3, 1, 2]
        assert windows.num_empty == 2
    by_connection = statistics.distinct_per_window(arrivals, 1000, by_connection=True)[0]
    assert by_connection.counts.tolist() == [5, 1, 2]
    assert statistics.distinct_per_window(arrivals, 5000)[0].counts.tolist() == [4]


def test_windows_of_a_run_are_those_of_the_script(tmp_path: Path) -> None:
    time, at_us = HandTime(), 0
    script = [(0, 100), (1, 300), (1, 300), (1, 400), (2, 999), (3, 1000), (0, 2500), (2, 2500)]
    with MeasuredTables(tmp_path, num_workers=4) as tables:
        tables.set_clocks(time.clock(), time.clock(0))
        for worker_id, sent_us in script:
            time.pass_by((sent_us - at_us) * MS // 1000)
            at_us = sent_us
            tables.pull([1], worker_id)
    (windows,) = statistics.distinct_per_window(load_run(tmp_path).arrivals, 1000).values()
    assert windows.numbers.tolist() == [0, 1, 2]
    assert windows.counts.tolist() == [3, 1, 2]


def test_intervals_have_two_modes(tmp_path: Path) -> None:
    """Four requests in a push, then 200 ms of training."""
    time, iterations, training = HandTime(), 5, 200 * MS
    with MeasuredTables(tmp_path) as tables:
        tables.set_clocks(time.clock(), time.clock())
        for _ in range(iterations):
            for _ in range(3):
                tables.push([1])
                time.pass_by(MS)
            tables.push([1])
            time.pass_by(training)
    found = statistics.intervals_us(load_run(tmp_path).requests)
    values, counts = np.unique(found, return_counts=True)
    assert values.tolist() == [1000, training // 1000]
    assert counts.tolist() == [3 * iterations, iterations - 1]


def test_intervals_are_of_one_worker_and_server() -> None:
    rows = [
        request(worker=worker, server=server, sent_us=at)
        for worker, server, at in [(0, 0, 10), (1, 0, 11), (0, 1, 12), (0, 0, 25), (1, 0, 12)]
    ]
    assert sorted(statistics.intervals_us(columns(rows)).tolist()) == [1, 15]


def test_intervals_of_a_sample_are_those_of_its_stretches() -> None:
    """Calls 3 and 7 of worker 0 are not in the sample; worker 1's are others."""
    rows = [
        request(worker=worker, server=server, call=call, sent_us=at, operation=call % 2)
        for worker, server, call, at in [
            (0, 0, 1, 10),
            (0, 1, 1, 11),
            (0, 0, 2, 20),
            (0, 0, 4, 500),  # of call 3, something may have been sent before
            (0, 1, 5, 530),
            (0, 0, 6, 560),
            (0, 0, 4, 570),  # call 4 sends by TCP after all
            (0, 0, 8, 900),
            (1, 0, 7, 100),
            (1, 0, 3, 40),
        ]
    ]
    all_requests = columns(rows)
    found = statistics.intervals_us(all_requests, all_requests)
    assert sorted(found.tolist()) == [10, 60]
    pulls = statistics.of_kind(all_requests, "pull")
    assert statistics.intervals_us(pulls, all_requests).tolist() == []
    pushes = statistics.of_kind(all_requests, "push")
    assert statistics.intervals_us(pushes, all_requests).tolist() == [60]
    assert len(statistics.intervals_us(all_requests)) == 7


def test_updates_are_merged_and_sorted(run: Path) -> None:
    totals = statistics.sorted_updates(load_run(run).updates)
    # Key 3 in all three pushes, key 4 in two, the other seven in one, of two workers each.
    assert totals.tolist() == [6, 4, *[2] * 7]
    shares = statistics.top_shares(totals, (1, 2, 9, 10))
    assert shares == [(1, 6 / 24), (2, 10 / 24), (9, 1.0)]
    assert statistics.top_shares(np.zeros(3), (1,)) == []


def test_a_restarted_server_counts_on() -> None:
    rows = [
        {"server": 0, "table": 7, "key": -1, "updates": 5},
        {"server": 0, "table": 7, "key": -1, "updates": 9},
        {"server": 0, "table": 8, "key": -1, "updates": 1},
    ]
    assert statistics.sorted_updates(columns(rows)).tolist() == [9, 1]


def test_parts_add_up_to_the_whole(run: Path) -> None:
    answered = load_run(run).answered
    for operation in ("push", "pull"):
        rows = statistics.of_operation(answered, operation)
        parts = statistics.breakdown(rows)
        assert [part.name for part in parts] == [*PARTS.values()]
        assert sum(part.share for part in parts) == pytest.approx(1)
        mean_us = statistics.whole_us(rows).mean()
        assert sum(part.mean for part in parts) == pytest.approx(mean_us)
        assert [part.name for part in parts if not part.is_measured] == ["switch wait"]


def test_parts_are_those_of_the_rows() -> None:
    own = {"w_proc_us": 1, "w_queue_us": 2, "ps_proc_us": 3, "ps_queue_us": 4, "n_tx_us": 10}
    rows = [
        request(**own, rtt_us=17, operation=1, switch_wait_us=np.nan),
        request(**{name: 3 * value for name, value in own.items()}, rtt_us=51, operation=1),
    ]
    rows[1]["switch_wait_us"] = np.nan
    parts = {part.name: part for part in statistics.breakdown(columns(rows))}
    assert {name: part.mean for name, part in parts.items()} == {
        "W_proc": 2,
        "W_queue": 4,
        "PS_proc": 6,
        "PS_queue": 8,
        "N_tx": 20,
        "switch wait": 0,
        "PS_wait": 0,
    }
    assert parts["N_tx"].share == pytest.approx(0.5)
    assert statistics.breakdown({name: values[:0] for name, values in columns(rows).items()}) == []


def test_requests_by_the_switch_are_their_own_kinds() -> None:
    rows = [request(operation=operation, path=path) for operation in (0, 1) for path in (0, 1)]
    rows += [request(operation=0, path=1, rtt_us=50, n_tx_us=20, switch_wait_us=30, call=1)]
    sizes = {name: statistics.of_kind(columns(rows), name)["rtt_us"].size for name in KINDS}
    assert sizes == {"push": 1, "pull": 1, "hot push": 2, "hot pull": 1}
    parts = statistics.breakdown(statistics.of_kind(columns(rows), "hot push"))
    shares = {part.name: part.share for part in parts if part.share}
    assert shares == pytest.approx({"N_tx": 0.4, "switch wait": 0.6})


def test_the_page_shows_requests_by_the_switch(run: Path) -> None:
    path = next(run.glob("requests-*"))
    table = pq.read_table(path)
    index = table.column_names.index("path")
    switch = pa.array(["switch"] * table.num_rows).dictionary_encode()
    pq.write_table(table.set_column(index, "path", switch), path)
    out = run.parent / "page.html"
    assert switchfold(["report", "latency", str(run), "--out", str(out)]) == 0
    text = Page(out.read_text()).text
    assert "hot push, µs" in text
    assert "request, hot pull" in text


def test_arithmetic_is_the_difference_of_the_handlers() -> None:
    rows = [request(operation=0, ps_proc_us=each) for each in (100, 140)]
    rows += [request(operation=1, ps_proc_us=each) for each in (80, 130)]
    assert statistics.arithmetic(columns(rows)) == (15, 0.125)
    assert statistics.arithmetic(columns(rows[:2])) is None


def test_a_call_ends_with_its_last_request() -> None:
    rows = [
        request(worker=0, call=1, sent_us=100, rtt_us=10, w_proc_us=1),
        request(worker=0, call=2, sent_us=200, rtt_us=7),
        request(worker=1, call=1, sent_us=5, rtt_us=3, w_queue_us=2),
        request(worker=0, call=1, sent_us=101, rtt_us=50, w_proc_us=1),
    ]
    assert statistics.call_times_us(columns(rows)).tolist() == [52, 7, 5]


def test_load_is_processor_time_per_time() -> None:
    rows = [
        {"server": 0, "at_us": at, "processor_us": used, "resident_bytes": 7}
        for at, used in [(0, 100), (1_000_000, 600_100), (3_000_000, 1_000_100), (4_000_000, 5)]
    ]
    at_s, in_use, resident = statistics.load(columns(rows))[0]
    assert at_s.tolist() == [1, 3]
    assert in_use.tolist() == [0.6, 0.2]
    assert resident.tolist() == [7, 7]


class Page(HTMLParser):
    """Collects what a page would load, its headings and its texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values: Mapping[str, str | None] = dict(attrs)
        self.loads += [values[name] or "" for name in ("src", "href") if name in values]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_needs_nothing_else(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = run.parent / "page.html"
    arguments = ["report", "latency", str(run), str(run), "--by", "connection", "--out", str(out)]
    assert switchfold(arguments) == 0
    assert capsys.readouterr().out == f"{out}: 48 requests of 2 runs\n"
    page = Page(out.read_text())
    assert page.loads
    for load in page.loads:
        assert load.startswith("data:image/svg+xml;base64,")
        svg = base64.b64decode(load.partition(",")[2])
        assert ET.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
        assert not re.search(rb'(?:href|src)="(?!#)', svg)
    for said in (*PARTS.values(), "Over scale", "Arithmetic", "different connections send to"):
        assert said in page.text
    assert "Workers: 2. Servers: 2. Requests: 24 (24 answered)." in page.text


def test_a_page_of_workers_alone(run: Path) -> None:
    for path in run.iterdir():
        if not path.name.startswith("requests"):
            path.unlink()
    out = run.parent / "page.html"
    assert switchfold(["report", "latency", str(run), "--out", str(out)]) == 0
    assert "No server has logged arrivals." in out.read_text()


def test_names_are_not_markup(run: Path) -> None:
    odd = run.rename(run.parent / "<b>&")
    out = odd.parent / "page.html"
    assert switchfold(["report", "latency", str(odd), "--out", str(out)]) == 0
    assert "<b>" not in out.read_text()
    assert "<b>&" in Page(out.read_text()).text


def test_a_missing_run_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(LatencyRunMissingError, match="give the one of `latency_log`"):
        load_run(tmp_path / "none")
    assert switchfold(["report", "latency", str(tmp_path / "none")]) == 1
    assert capsys.readouterr().err.startswith("error: there is no directory ")


def test_an_empty_run_is_told(run: Path) -> None:
    for path in run.glob("requests-*"):
        path.unlink()
    with pytest.raises(LatencyRunEmptyError, match="when their client is closed"):
        load_run(run)


@pytest.mark.parametrize("keep", [0, 3, 200, -1])
def test_a_damaged_file_is_named(run: Path, keep: int) -> None:
    path = next(run.glob("arrivals-*"))
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(LatencyRunDamagedError, match=f"{path.name} cannot be read"):
        load_run(run)


def test_flipped_bytes_are_never_a_crash(run: Path) -> None:
    path = next(run.glob("requests-*"))
    whole = path.read_bytes()
    rng, refused = np.random.default_rng(5), 0
    for _ in range(60):
        broken = bytearray(whole)
        broken[int(rng.integers(len(broken)))] ^= int(rng.integers(1, 256))
        path.write_bytes(broken)
        try:
            load_run(run)
        except (LatencyRunDamagedError, LatencyRunFormatError):
            refused += 1
    assert refused


@pytest.mark.parametrize("about", [None, {"format": 0}, {"format": FORMAT, "kind": "samples"}])
def test_another_format_is_told(run: Path, about: dict[str, object] | None) -> None:
    path = next(run.glob("requests-*"))
    table = pq.read_table(path)
    metadata = {} if about is None else {METADATA_KEY: json.dumps(about).encode()}
    pq.write_table(table.replace_schema_metadata(metadata), path)
    with pytest.raises(LatencyRunFormatError, match=path.name):
        load_run(run)


def test_a_file_without_a_column_is_told(run: Path) -> None:
    path = next(run.glob("samples-*"))
    table = pq.read_table(path)
    pq.write_table(table.drop_columns(["at_us"]), path)
    with pytest.raises(LatencyRunFormatError, match=f"is of format {FORMAT}"):
        load_run(run)


def test_dropped_rows_are_on_the_page(run: Path) -> None:
    path = next(run.glob("requests-*"))
    table = pq.read_table(path)
    about = {**json.loads(table.schema.metadata[METADATA_KEY]), "dropped": 1234}
    metadata = {METADATA_KEY: json.dumps(about).encode()}
    pq.write_table(table.replace_schema_metadata(metadata), path)
    out = run.parent / "page.html"
    assert switchfold(["report", "latency", str(run), "--out", str(out)]) == 0
    assert "1,234 rows are missing" in out.read_text()


def renew(path: Path, **about: object) -> None:
    """Change what a file says of itself."""
    table = pq.read_table(path)
    said = {**json.loads(table.schema.metadata[METADATA_KEY]), **about}
    metadata = {METADATA_KEY: json.dumps(said).encode()}
    pq.write_table(table.replace_schema_metadata(metadata), path)


def test_the_share_of_recorded_calls_is_told(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = run.parent / "page.html"
    first, second = sorted(run.glob("requests-*"))  # of two workers, with 6 calls each
    renew(second, calls=34, recorded_calls=6)
    assert switchfold(["report", "latency", str(run), "--out", str(out)]) == 0
    assert capsys.readouterr().out == (
        f"{out}: 24 requests of 1 runs\nrun: 30 % of the calls were recorded\n"
    )
    text = " ".join(Page(out.read_text()).text.split())
    assert (
        "30 % of the workers' calls, 12 of 40 pushes and pulls (by worker: 17.6 % to 100 %)" in text
    )
    assert "only where all calls between them were recorded" in out.read_text()
    assert load_run(run).calls == (40, 12)
    renew(second, calls=6)
    assert switchfold(["report", "latency", str(run), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}: 24 requests of 1 runs\n"
    assert "recorded" not in out.read_text()
    renew(first, calls=100_001, recorded_calls=100_000)
    assert switchfold(["report", "latency", str(run), "--out", str(out)]) == 0
    assert "run: 99.9 % of the calls" in capsys.readouterr().out


def test_files_of_a_worker_add_up(run: Path) -> None:
    first, second = sorted(run.glob("requests-*"))
    renew(first, worker=7, calls=10, recorded_calls=4)
    renew(second, worker=7, calls=20, recorded_calls=5)
    assert load_run(run).calls_by_worker == {7: (30, 9)}


def test_a_run_of_the_format_before_has_all_calls(run: Path) -> None:
    for path in run.glob("*.parquet"):
        table = pq.read_table(path)
        about = json.loads(table.schema.metadata[METADATA_KEY])
        old = {name: about[name] for name in ("kind", "dropped")} | {"format": 2}
        metadata = {METADATA_KEY: json.dumps(old).encode()}
        pq.write_table(table.replace_schema_metadata(metadata), path)
    found = load_run(run)
    assert (found.requests["call"].size, found.is_sample) == (24, False)


@pytest.mark.parametrize("wrong", [{"calls": "many"}, {"worker": None}, {"recorded_calls": []}])
def test_wrong_counts_of_calls_are_told(run: Path, wrong: dict[str, object]) -> None:
    path = next(run.glob("requests-*"))
    renew(path, **wrong)
    with pytest.raises(LatencyRunFormatError, match=path.name):
        load_run(run)


def test_unreadable_outcomes_are_told(run: Path) -> None:
    path = next(run.glob("requests-*"))
    table = pq.read_table(path)
    index = table.column_names.index("outcome")
    other = pa.array(["surprised"] * table.num_rows)
    pq.write_table(table.set_column(index, "outcome", other), path)
    with pytest.raises(LatencyRunFormatError, match=path.name):
        load_run(run)


def test_a_missing_pyarrow_is_told(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ToolError, match=r"pip install '\.\[latency\]'"):
        load_run(run)


def test_a_page_that_cannot_be_written_is_told(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert switchfold(["report", "latency", str(run), "--out", str(run)]) == 1
    assert "give another --out" in capsys.readouterr().err
