# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold report transfers`: its page, its JSON, and timelines it cannot read."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from controller_fixtures import run
from fake_station import UPDATE_BYTES, stations, transfer_controller
from switchfold.controller.__main__ import run as switchfold
from switchfold.controller.cli.timeline.log_file import load_recording
from switchfold.controller.cli.timeline.records import TransferEnd
from switchfold.controller.errors import (
    TransferLogDamagedError,
    TransferLogEmptyError,
    TransferLogJobError,
    TransferLogMissingError,
)
from time_bound import until
from written_timeline import begun_s, dropped, granted_update, line_of, lines_of

VOID = {"meta", "br", "img", "link"}


class Page(HTMLParser):
    """A page's text, what it loads, and its open elements, which must be none at its end."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = ""
        self.loads: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.text += data


def write(folder: Path, events: list[dict[str, Any]], end: str = "") -> Path:
    path = folder / "transfers.jsonl"
    path.write_text(lines_of(events) + end, "utf-8")
    return path


def page_of(folder: Path, log: Path, *options: str) -> Page:
    out = folder / "page.html"
    assert switchfold(["report", "transfers", str(log), "--out", str(out), *options]) == 0
    found = Page(out.read_text("utf-8"))
    assert found.open == []
    assert found.loads == []
    return found


def test_a_page_has_transfers_queues_drops_and_tallies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = [*granted_update(0, 1, 0.0, late_s=0.5), *dropped(1, 2, 0.25, "too old")]
    found = page_of(tmp_path, write(tmp_path, sorted(events, key=begun_s)))
    for said in (
        "Transfers of job train",
        "Updates: 2 asked for, 1 granted, 1 applied, 1 dropped (50.0 %)",
        "all that was recorded",
        "updates wait",
        "update 1 of worker 0 to server 0, 1 MB, asked for at 0.000 s, granted at 0.100 s,"
        " planned from 0.200 to 1.200 s, there at 1.700 s (+0.500 s)",
        "1 too old.",
        "The latest 1 of 1",
    ):
        assert said in found.text
    assert capsys.readouterr().out.endswith(": 2 updates and 0 models of job train, 1.8 s\n")


def test_names_are_not_markup(tmp_path: Path) -> None:
    events = dropped(0, 1, 0.0, "<i>&")
    for event in events:
        event["job"] = "<b>"
    found = page_of(tmp_path, write(tmp_path, events))
    assert "Transfers of job <b>" in found.text
    assert "1 <i>&." in found.text


def test_a_part_is_told(tmp_path: Path) -> None:
    events = [event for n in range(4) for event in granted_update(0, n, 10.0 * n)]
    log = write(tmp_path, events)
    found = page_of(tmp_path, log, "--from", "9", "--until", "15")
    assert "of 31.3 s. Transfers that ended before: 1; that begin later: 2." in found.text
    assert "update 1 of worker 0" in found.text
    assert "update 2 of worker 0" not in found.text
    assert "Updates: 4 asked for" in found.text


def test_json_has_the_figures_and_writes_no_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log = write(tmp_path, [*granted_update(0, 1, 0.0), *dropped(3, 2, 5.0, "too old")])
    assert switchfold(["report", "transfers", str(log), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [path.name for path in tmp_path.iterdir()] == [log.name]
    assert found["job"] == "train"
    assert [each["worker"] for each in found["workers"]] == [0, 3]
    assert found["workers"][1]["updates"]["drop_ratio"] == 1
    assert found["drops"] == [
        {
            "time_s": pytest.approx(5.1),
            "worker": 3,
            "server": 0,
            "transfer": 2,
            "reason": "too old",
            "delay": 7,
        }
    ]
    assert not found["window"]["is_cut"]


def test_a_line_that_was_cut_off_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = granted_update(0, 1, 0.0)
    log = write(tmp_path, events, end='{"time":179000')
    found = page_of(tmp_path, log)
    note = f"Line {len(events) + 1}, the last one, was cut off"
    assert note in found.text
    assert note in capsys.readouterr().out
    assert "Updates: 1 asked for" in found.text


def test_a_whole_last_line_needs_no_end(tmp_path: Path) -> None:
    log = write(tmp_path, granted_update(0, 1, 0.0))
    log.write_text(log.read_text("utf-8").rstrip("\n"), "utf-8")
    recording = load_recording(log)
    assert recording.truncated_line is None
    assert recording.timeline.updates[0].end is TransferEnd.DONE


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(TransferLogMissingError, match=r"gone\.jsonl: No such file"):
        load_recording(tmp_path / "gone.jsonl")
    with pytest.raises(TransferLogMissingError, match="Is a directory"):
        load_recording(tmp_path)


@pytest.mark.parametrize("text", ["", "\n\n", '{"tim'])
def test_nothing_recorded(tmp_path: Path, text: str) -> None:
    log = tmp_path / "log"
    log.write_text(text, "utf-8")
    with pytest.raises(TransferLogEmptyError, match="record one with `--transfer-log FILE`"):
        load_recording(log)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("what is this", "it is no JSON"),
        ("[1]", "it is no object"),
        ("{}", "it has no time, event, job"),
        (line_of(0.0, "requested", worker=0, transfer=1), "it has no server"),
        (line_of(0.0, "requested", worker="a", server=0, transfer=1), "its worker is no integer"),
        (line_of(0.0, "unheard", job=3), "its job is no text"),
        (line_of(0.0, "unheard", time=float("nan")), "its time is no number"),
        (line_of(0.0, "unheard", time=1e18), "its time is none of seconds since 1970"),
        (line_of(0.0, "unheard", time=10**400), "its time is no number"),
        (
            line_of(0.0, "granted", worker=0, server=0, transfer=1, ends="x"),
            "its ends is no number",
        ),
    ],
)
def test_a_line_that_is_no_event(tmp_path: Path, line: str, problem: str) -> None:
    log = tmp_path / "log"
    log.write_text(f"{line_of(0.0, 'unheard')}\n\n{line}\n", "utf-8")
    with pytest.raises(TransferLogDamagedError, match=f"log, line 3 is no event.*{problem}"):
        load_recording(log)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"\x80\x81\n")
    with pytest.raises(TransferLogDamagedError, match="line 1 is no event"):
        load_recording(log)


def test_jobs_are_named(tmp_path: Path) -> None:
    events = granted_update(0, 1, 0.0)
    other = [event | {"job": "other"} for event in granted_update(0, 1, 0.0)]
    log = write(tmp_path, [*events, *other, *other])
    with pytest.raises(TransferLogJobError, match="has the jobs other, train: name one"):
        load_recording(log)
    with pytest.raises(TransferLogJobError, match="no job 'third', but other, train: give one"):
        load_recording(log, "third")
    assert load_recording(log, "train").timeline.num_events == len(events)


def test_a_time_after_the_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write(tmp_path, granted_update(0, 1, 0.0))
    assert switchfold(["report", "transfers", str(log), "--from", "60"]) == 1
    assert "nothing from 60 s on: give an earlier time to --from" in capsys.readouterr().err


def test_a_window_without_length(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write(tmp_path, granted_update(0, 1, 0.0))
    assert switchfold(["report", "transfers", str(log), "--from", "6", "--until", "6"]) == 2
    assert "6 is not after --from 6" in capsys.readouterr().err


def test_a_page_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write(tmp_path, granted_update(0, 1, 0.0))
    assert switchfold(["report", "transfers", str(log), "--out", str(tmp_path)]) == 1
    assert "give another --out" in capsys.readouterr().err


def test_what_a_controller_has_recorded(tmp_path: Path) -> None:
    log = tmp_path / "transfers.jsonl"

    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path, transfers={"log": log}) as controller,
            stations(controller.address, 2, tau_max=0) as (server, (one, other)),
        ):
            await one.push(one.first_id)
            await one.granted()
            await other.push(other.first_id)
            await other.dropped()
            await server.deliver(0, one.first_id)
            await server.deliver(1, other.first_id + 9, is_granted=False)
            place = controller.transfers.job("train").workers[1]
            await until(lambda: place.counts.ungranted == 1)

    run(scenario())
    timeline = load_recording(log).timeline
    assert [(each.worker, each.end, each.size_bytes) for each in timeline.updates] == [
        (0, TransferEnd.DONE, UPDATE_BYTES),
        (1, TransferEnd.DROPPED, UPDATE_BYTES),
        (1, TransferEnd.UNGRANTED, None),
    ]
    granted = timeline.updates[0]
    assert granted.begins_s is not None
    assert granted.ends_s is not None
    assert granted.ends_s - granted.begins_s == pytest.approx(1.0)
    assert "1 too old." in page_of(tmp_path, log).text
