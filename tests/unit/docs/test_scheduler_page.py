# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""docs/scheduler.md: its example runs, and its figures of groups and its names are the code's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from switchfold.controller.scheduler.grouping import AggregationPlaces
from switchfold.controller.scheduler.scheduler import TransferScheduler
from switchfold.controller.scheduler.transfers import DropReason, TransferGrant
from transfer_cases import Decisions, grants_of, make, push

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "scheduler.md").read_text("utf-8")


def test_example_runs_and_has_the_stated_times() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, "scheduler.md", "exec"), names)
    decisions: Decisions = names["decisions"]
    times = {
        grant.request.worker: (grant.spans[0].start_s, grant.spans[-1].end_s)
        for grant in grants_of(decisions)
    }
    comment = re.findall(r"(h\d) from (\d+) to (\d+) s", code)
    assert times == {host: pytest.approx((int(a), int(b))) for host, a, b in comment}


def test_calls_and_reasons_are_those_of_the_code() -> None:
    calls = re.findall(r"^\| `(\w+)", PAGE, re.MULTILINE)
    assert calls
    assert all(hasattr(TransferScheduler, call) for call in calls)
    assert set(re.findall(r"\(`([A-Z_]+)`\)", PAGE)) == {reason.name for reason in DropReason}


PLACES = {
    "none": None,
    "one host": AggregationPlaces(hosts=["a1"]),
    "two hosts": AggregationPlaces(hosts=["a1", "a2"]),
    "a switch above all six": AggregationPlaces(
        switches={"s1": frozenset(f"h{n}" for n in range(1, 7))}
    ),
}


def shape(grants: list[TransferGrant]) -> str:
    """Return how many members each message has, as on the page."""
    messages = [grant.group.group_id if grant.group else -1 - grant.sequence for grant in grants]
    return " ".join(str(messages.count(each)) for each in dict.fromkeys(messages))


@pytest.mark.parametrize("name", PLACES)
def test_table_of_groups_is_computed(name: str) -> None:
    (row,) = re.findall(
        rf"^\| {name} \| ([\d ]+) \| ([\d.]+) s \| ([\d.]+) s \|", PAGE, re.MULTILINE
    )
    scheduler = make(6, places=PLACES[name])
    for number in range(1, 7):
        scheduler.submit(push(number), 0.0)
    grants = grants_of(scheduler.decide(0.0))
    commits = [grant.commit_s for grant in grants]
    assert shape(grants) == row[0]
    assert sum(commits) / 6 == pytest.approx(float(row[1]), abs=0.005)
    assert max(commits) == pytest.approx(float(row[2]))


def test_messages_behind_an_update_that_was_granted_alone_are_those_stated() -> None:
    (stated,) = re.findall(r"two hosts make the other five ([\d ]+):", PAGE)
    scheduler = make(6, places=PLACES["two hosts"], batch_wait_s=0.0)
    scheduler.submit(push(1), 0.0)
    (first,) = grants_of(scheduler.decide(0.0))
    assert first.group is None
    for number in range(2, 7):
        scheduler.submit(push(number), 0.5)
    assert shape(grants_of(scheduler.decide(0.5))) == stated
