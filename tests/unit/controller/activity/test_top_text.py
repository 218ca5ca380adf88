# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Rows of `switchfold top`, what its JSON adds, and which jobs it goes on looking at."""

from __future__ import annotations

import json

from activity_looks import LookFigures, window_of
from switchfold.controller.api.operator_api import activity_pb2, fabric_pb2, operator_pb2
from switchfold.controller.cli.activity.looks import look_at
from switchfold.controller.cli.activity.window import ActivityWindow
from switchfold.controller.cli.top.text import LINKS_SHOWN, SLOTS_SHOWN, TopScreen
from switchfold.controller.errors import OperatorRefusedError


def window(**fields: object) -> ActivityWindow:
    return window_of(
        LookFigures(time_s=t, rounds=100 * t, sent_bytes=(500_000 * t, 0, 0), **fields)  # pyright: ignore
        for t in range(3)
    )


def screen(**windows: ActivityWindow) -> TopScreen:
    workers = [operator_pb2.Worker(worker_id=n) for n in range(3)]
    return TopScreen(
        jobs=[
            operator_pb2.Job(
                name="train", state="running", num_workers=3, workers=workers,
                missing_workers=[2], path="switch", slot_count=128,
            ),
            operator_pb2.Job(name="next", state="waiting", num_workers=4, workers=workers[:1]),
        ],
        switches=[operator_pb2.Switch(name="s1", state="ready", num_slots=1024, used_slots=128)],
        links=[
            fabric_pb2.Link(name="s1-s2", key="s1:3-s2:1", state="up", rate_bits_per_s=1e6),
            fabric_pb2.Link(name="s1-s3", key="s1:4-s3:1", state="dead", rate_bits_per_s=1e6),
        ],
        windows=windows,
    )  # fmt: skip


def test_jobs_have_workers_rounds_and_last_worker() -> None:
    rows = list(screen(train=window(waiting=[[1]])).job_rows())
    assert rows == [
        ("train", "running", "2/3", "switch", 128, "100", "0 %", "1 (100 %)"),
        ("next", "waiting", "1/4", "-", 0, "-", "-", "-"),
    ]


def test_job_without_trees_has_no_figures() -> None:
    assert next(iter(screen(train=window(path="host")).job_rows()))[5:] == ("-", "-", "-")
    assert not list(screen(train=window(path="host")).tree_rows())


def test_trees_have_waiting_slots_and_hold_time() -> None:
    rows = list(screen(train=window(waiting=[[1]])).tree_rows())
    assert rows == [("train", 3, "s1", 128, "1", "100", "10 ms")]
    unread = list(screen(train=window(slot_error="refused")).tree_rows())
    assert unread == [("train", 3, "s1", 128, "-", "100", "-")]


def test_slots_that_wait_for_one_worker_come_first() -> None:
    rows = screen(train=window(waiting=[[0, 2], [1]])).slot_rows()
    assert rows == [
        ("train", 3, "s1", 1, "worker 1", "yes"),
        ("train", 3, "s1", 0, "worker 0, worker 2", "yes"),
    ]
    assert len(screen(train=window(waiting=[[1]] * 30)).slot_rows()) == SLOTS_SHOWN
    assert not screen(train=window()).slot_rows()


def test_links_out_of_use_come_first_then_the_busiest() -> None:
    rows = screen(train=window()).link_rows()
    assert rows[0] == ("s1", "s3", "dead", "1 Mbit/s", "-", "-")
    assert rows[1] == ("h1", "s1", "up", "8 Mbit/s", "4 Mbit/s", "50 %")
    assert len(rows) == 4


def test_table_of_links_is_bounded_and_json_has_all() -> None:
    more = [activity_pb2.LinkActivity(sender=f"x{n}", receiver="s1") for n in range(20)]
    shown = screen(train=window(more_links=more))
    assert len(shown.link_rows()) == 1 + LINKS_SHOWN
    (activity,) = shown.as_dict()["activity"]
    assert len(activity["links"]) == 23


def test_json_has_each_slot_that_waits_and_for_whom() -> None:
    shown = screen(train=window(waiting=[[1], [0, 2]])).as_dict()
    (activity,) = json.loads(json.dumps(shown))["activity"]
    assert activity["waiting_now"] == [
        {"tree_id": 3, "switch": "s1", "slot_index": i, "missing_workers": missing,
         "missing_switches": [], "is_stuck": True}
        for i, missing in enumerate([[1], [0, 2]])
    ]  # fmt: skip
    assert (activity["job"], activity["looks"], activity["seconds"]) == ("train", 3, 2)


def test_jobs_that_ended_are_looked_at_no_more() -> None:
    class Reader:
        living = frozenset({"train", "other"})

        def show_activity(self, name: str) -> activity_pb2.JobActivity:
            if name not in self.living:
                raise OperatorRefusedError(f"job {name!r} is not running")
            return LookFigures(time_s=1.0).message()

    reader = Reader()
    windows: dict[str, ActivityWindow] = {}
    look_at(reader, windows, ("train", "other", "begins"), most=5)
    assert set(windows) == {"train", "other"}
    look_at(reader, windows, ("train",), most=5)
    assert {name: len(each) for name, each in windows.items()} == {"train": 2}
    reader.living = frozenset()
    look_at(reader, windows, ("train",), most=5)
    assert not windows
