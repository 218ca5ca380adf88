# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Timelines as files, aligned, summed up and drawn."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from fake_switch import FakeSwitch
from switchfold.controller.__main__ import run
from switchfold.controller.cli.traces.alignment import Alignment, align
from switchfold.controller.cli.traces.summary import summarize
from switchfold.hostlib import TraceError
from switchfold.hostlib.tracing.timeline import WAIT, Clock, Span, Timeline, Transfer
from switchfold.hostlib.tracing.trace_files import (
    assign_rows,
    read_trace,
    trace_path,
    union,
    write_trace,
)
from view_driver import ViewDriver


def span(name: str, category: str, begin_s: float, end_s: float) -> Span:
    return Span(name=name, category=category, begin_s=begin_s, end_s=end_s)


def transfer(name: str, *moments: float, error: str = "") -> Transfer:
    ready_s, first_packet_s, last_result_s, done_s = moments
    return Transfer(
        name=name,
        num_bytes=4000,
        ready_s=ready_s,
        first_packet_s=first_packet_s,
        last_result_s=last_result_s,
        done_s=done_s,
        error=error,
    )


def toy(rank: int, offset_s: float = 100.0) -> Timeline:
    """FC backward 10 ms, its sync 90 ms; CONV backward 90 ms, its sync 10 ms."""
    timeline = Timeline(rank, job="toy", host="here")
    at = offset_s
    timeline.add_span(span("forward", "forward", at, at + 0.02))
    timeline.add_span(span("fc", "backward", at + 0.02, at + 0.03))
    timeline.add_span(span("conv", "backward", at + 0.03, at + 0.12))
    timeline.add_span(span("backward", "backward", at + 0.02, at + 0.12))
    timeline.add_transfer(transfer("fc", at + 0.03, at + 0.03, at + 0.12, at + 0.121))
    timeline.add_transfer(transfer("conv", at + 0.12, at + 0.121, at + 0.13, at + 0.131))
    timeline.add_span(span("until done", WAIT, at + 0.12, at + 0.131))
    return timeline


def test_trace_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    timeline = toy(3)
    timeline.add_transfer(transfer("lost", 100.2, 100.21, 0, 100.3, error="TimeoutError: x"))
    timeline.note_barrier()
    path = tmp_path / "new" / "trace-3.json"
    write_trace(timeline, path)
    again = read_trace(path)
    assert (again.rank, again.job, again.host, again.clock) == (3, "toy", "here", timeline.clock)
    assert again.transfers == timeline.transfers
    assert [each.name for each in again.spans] == [
        "forward",
        "backward",
        "fc",
        "conv",
        "until done",
    ]
    for each in again.spans:
        twin = next(other for other in timeline.spans if other.name == each.name)
        assert each.category == twin.category
        assert (each.begin_s, each.end_s) == pytest.approx((twin.begin_s, twin.end_s), abs=1e-6)
    assert [entry.name for entry in path.parent.iterdir()] == ["trace-3.json"]
    assert run(["trace", "summary", str(path.parent)]) == 0
    assert run(["trace", "summary", str(tmp_path)]) == 1


def test_trace_obeys_the_trace_event_format(tmp_path: Path) -> None:
    write_trace(toy(1), tmp_path / "trace.json")
    content: dict[str, Any] = json.loads((tmp_path / "trace.json").read_text())
    assert content["displayTimeUnit"] == "ms"
    events = content["traceEvents"]
    assert {event["pid"] for event in events} == {1}
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert names[0] == "compute"
    slices = [event for event in events if event["ph"] == "X"]
    assert all(event["dur"] >= 0 and event["tid"] in names for event in slices)
    for row in names:  # slices of a row must nest, or viewers show them wrongly
        open_ends: list[float] = []
        for each in sorted(
            (s for s in slices if s["tid"] == row), key=lambda s: (s["ts"], -s["dur"])
        ):
            while open_ends and open_ends[-1] <= each["ts"] + 1e-3:
                open_ends.pop()
            end = each["ts"] + each["dur"]
            assert not open_ends or end <= open_ends[-1] + 1e-3, each
            open_ends.append(end)
    starts, ends = ([e for e in events if e["ph"] == phase] for phase in "sf")
    assert [each["id"] for each in starts] == [each["id"] for each in ends] == ["1.0", "1.1"]
    assert all(each["tid"] == 0 and each["bp"] == "e" for each in starts)


def test_timeline_follows_an_allreduce() -> None:
    timeline = Timeline(0)
    with closing(ViewDriver(FakeSwitch(2), range(2))) as driver:
        futures = [session.allreduce(np.ones(5000)) for session in driver.sessions.values()]
        timeline.follow(futures[0], "bucket 0", ready_s=futures[0].times.submitted_s - 1)
        for future in futures:
            future.result(60)
        lost = driver.sessions[0].allreduce(np.ones(10))
        timeline.follow(lost, "bucket 1")
        driver.sessions[0].close()
    done, failed = timeline.transfers
    times = futures[0].times
    assert (done.name, done.num_bytes, done.error) == ("bucket 0", 40_000, "")
    assert done.ready_s == times.submitted_s - 1
    assert (done.first_packet_s, done.last_result_s) == (times.first_packet_s, times.last_result_s)
    assert failed.error.startswith("SessionClosedError: ")
    assert failed.ready_s == lost.times.submitted_s


def test_newest_events_are_kept_and_a_failed_block_is_recorded() -> None:
    timeline = Timeline(0, max_events=2)
    for number in range(4):
        with pytest.raises(ZeroDivisionError), timeline.span(str(number), "forward"):
            raise ZeroDivisionError
    assert [each.name for each in timeline.spans] == ["2", "3"]
    assert timeline.num_dropped == 2


def test_overlap_is_the_hidden_part_of_the_communication() -> None:
    summary = summarize(align([toy(0)]).ranks[0])
    assert summary.duration_s == pytest.approx(0.131)
    assert summary.compute_s == pytest.approx(0.12)  # nested spans count once, waits never
    assert summary.categories_s["backward"] == pytest.approx(0.1)
    assert summary.transfer_s == pytest.approx(0.099)
    assert summary.overlapped_s == pytest.approx(0.09)
    assert summary.exposed_s == pytest.approx(0.009)
    assert summary.overlap_share == pytest.approx(90 / 99)
    assert summary.median_wait_s == pytest.approx(0.0005)
    assert (summary.num_transfers, summary.num_failed, summary.num_bytes) == (2, 0, 8000)


def test_clocks_are_aligned_by_machine_barrier_or_first_event() -> None:
    def timelines(one: Clock, other: Clock) -> list[Timeline]:
        both = [toy(0, 100.0), toy(1, 5000.01)]
        both[0].clock, both[1].clock = one, other
        return both

    def offset_s(one: Clock, other: Clock, alignment: Alignment) -> float:
        trace = align(timelines(one, other))
        assert trace.alignment is alignment
        assert min(each.spans[0].begin_s for each in trace.ranks) == 0
        return trace.ranks[1].spans[0].begin_s - trace.ranks[0].spans[0].begin_s

    machine, other = Clock(boot_id="a"), Clock(boot_id="b")
    assert offset_s(machine, machine, Alignment.SHARED_CLOCK) == pytest.approx(4900.01)
    assert offset_s(machine, other, Alignment.FIRST_EVENT) == 0
    barrier, late = Clock(boot_id="a", barrier_s=99.0), Clock(boot_id="b", barrier_s=4999.0)
    assert offset_s(barrier, late, Alignment.BARRIER) == pytest.approx(0.01)


def test_union_and_rows() -> None:
    assert union([(3, 4), (0, 1), (0.5, 2), (2, 2.5)]) == [(0, 2.5), (3, 4)]
    assert assign_rows([(0, 3), (1, 2), (2, 4), (3, 5)]) == [0, 1, 1, 0]


@pytest.mark.parametrize(
    ("setting", "path"),
    [("/t", "/t/trace-7.json"), ("/t/a-%r.json", "/t/a-7.json"), ("a.json", "a-7.json")],
)
def test_setting_names_a_file_per_rank(setting: str, path: str) -> None:
    assert trace_path(setting, 7) == Path(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "cannot be read as JSON"),
        ("[]", "not a trace of version 1"),
        ('{"otherData": {"switchfold_trace": 9}}', "its version is 9"),
        ('{"otherData": {"switchfold_trace": 1}, "traceEvents": []}', "is damaged"),
    ],
)
def test_file_that_is_no_trace_is_refused(
    tmp_path: Path, text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace.json"
    path.write_text(text)
    with pytest.raises(TraceError, match=said):
        read_trace(path)
    assert run(["trace", "summary", str(path)]) == 1
    assert said in capsys.readouterr().err


def test_trace_is_not_written_where_a_file_stands(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TraceError, match="cannot be written"):
        write_trace(toy(0), tmp_path / "file" / "trace.json")


def test_commands_draw_and_sum_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(tmp_path / f"trace-{rank}.json") for rank in range(2)]
    for rank, name in enumerate(files):
        write_trace(toy(rank, 100 + 0.004 * rank), Path(name))
    assert run(["trace", "summary", *files]) == 0
    assert "90.9 %" in capsys.readouterr().out
    assert run(["trace", "summary", "--json", *files]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [each["rank"] for each in told["ranks"]] == [0, 1]
    assert told["ranks"][1]["overlap_share"] == pytest.approx(90 / 99, abs=1e-3)
    picture = tmp_path / "trace.svg"
    assert run(["trace", "plot", *files, "--out", str(picture)]) == 0
    title = ElementTree.parse(picture).getroot().find("{http://www.w3.org/2000/svg}title")
    assert title is not None
    assert title.text is not None
    assert "2 ranks" in title.text
    capsys.readouterr()
    for arguments, said in (
        ((*files, "--out", str(tmp_path / "trace.txt")), "does not end in"),
        ((*files, "--out", str(picture), "--from", "9"), "the trace ends at 0.135"),
        ((files[0], files[0], "--out", str(picture)), "one file per rank"),
    ):
        assert run(["trace", "plot", *arguments]) == 1
        assert said in capsys.readouterr().err
