# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a chart of a timeline draws: its window, lanes, bounds and axis."""

from __future__ import annotations

import re
from typing import Any

import pytest

from switchfold.controller.cli.timeline.chart import chart, tick_step
from switchfold.controller.cli.timeline.events import timeline_of
from switchfold.controller.cli.timeline.log_file import TransferRecording
from switchfold.controller.cli.timeline.page import notes, transfers_page
from switchfold.controller.cli.timeline.records import TransferTimeline
from switchfold.controller.cli.timeline.window import MOST_LANES, MOST_WORKERS, window_of
from switchfold.controller.errors import TransferLogEmptyError
from written_timeline import begun_s, dropped, event_of, granted_update


def timeline(*events: list[dict[str, Any]]) -> TransferTimeline:
    return timeline_of("train", sorted((one for each in events for one in each), key=begun_s))


def notes_of(found: TransferTimeline, most: int = 2000) -> str:
    recording = TransferRecording(file="log", timeline=found, truncated_line=None)
    return " ".join(notes(recording, window_of(found, most=most)))


def numbers(found: TransferTimeline, *times_s: float | None, most: int = 2000) -> list[int]:
    window = window_of(found, *times_s, most=most)
    return sorted(each.number for row in window.rows for _, each in row.updates)


FOUR = timeline(*(granted_update(0, n, 10.0 * n) for n in range(4)))


def test_all_is_shown() -> None:
    window = window_of(FOUR)
    assert (window.from_s, window.until_s) == (0.0, pytest.approx(31.3))
    assert (window.before, window.after, window.is_cut) == (0, 0, False)
    assert numbers(FOUR) == [0, 1, 2, 3]
    assert notes_of(FOUR) == ""


@pytest.mark.parametrize(
    ("times_s", "shown"),
    [
        ((9.0, None), [1, 2, 3]),
        ((None, 10.0), [0, 1]),
        ((10.5, 11.0), [1]),  # it begins before and ends after
        ((5.0, 6.0), []),
        ((5.0, 900.0), [1, 2, 3]),
    ],
)
def test_a_part_is_shown(times_s: tuple[float | None, float | None], shown: list[int]) -> None:
    assert numbers(FOUR, *times_s) == shown
    window = window_of(FOUR, *times_s)
    assert window.before + window.after + len(shown) == 4


def test_nothing_is_beyond_the_end() -> None:
    with pytest.raises(TransferLogEmptyError, match=r"recorded for 31\.3 s, and nothing from 40 s"):
        window_of(FOUR, 40.0)


def test_a_window_with_too_many_transfers_is_cut_and_told() -> None:
    window = window_of(FOUR, most=2)
    assert window.is_cut
    assert window.until_s == pytest.approx(20.0)
    assert numbers(FOUR, most=2) == [0, 1]
    assert window.after == 2
    assert "Later ones, which are not drawn: 2. Choose a part with --from" in notes_of(FOUR, most=2)


def test_allreduces_count_as_what_is_drawn() -> None:
    sums = [event_of(float(n), "allreduce_granted", number=n, members=2, bytes=1) for n in range(6)]
    assert window_of(timeline(sums), most=3).until_s == pytest.approx(3.0)
    later = window_of(timeline(sums), from_s=2.5, most=3)
    assert (later.until_s, later.is_cut) == (pytest.approx(5.0), False), "earlier ones count not"


def test_transfers_of_one_time_have_lanes() -> None:
    found = timeline(*(granted_update(0, n, 0.1 * n) for n in range(3)), granted_update(0, 9, 5.0))
    (row,) = window_of(found).rows
    assert [(lane, each.number) for lane, each in row.updates] == [(0, 0), (1, 1), (2, 2), (0, 9)]
    assert (row.num_update_lanes, row.num_model_lanes) == (3, 0)


def test_more_than_a_row_has_room_for_is_told() -> None:
    found = timeline(*(granted_update(0, n, 0.0) for n in range(MOST_LANES + 2)))
    (row,) = window_of(found).rows
    assert row.num_update_lanes == MOST_LANES
    assert "drawn over others: 2." in notes_of(found)


def test_more_workers_than_rows_are_told() -> None:
    found = timeline(*(granted_update(n, 1, 0.0) for n in range(MOST_WORKERS + 2)))
    window = window_of(found)
    assert len(window.rows) == MOST_WORKERS
    assert window.hidden_workers == [32, 33]
    assert "not drawn: 32, 33." in notes_of(found)


def test_updates_without_an_end_are_told() -> None:
    assert "Updates without an end in the recording: 1." in notes_of(
        timeline(granted_update(0, 1, 0.0)[:2])
    )


def test_events_that_are_not_known_are_told() -> None:
    found = timeline([event_of(0.0, "paused")], granted_update(0, 1, 0.0))
    assert "not shown: 1 paused." in notes_of(found)


def bars(found: TransferTimeline, kind: str) -> list[tuple[float, float]]:
    """Return left and right sides of a kind of bars in a chart."""
    sides = re.findall(
        rf'<rect class="{kind}" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"',
        chart(found, window_of(found)),
    )
    return [(float(left), float(left) + float(width)) for left, width in sides]


def test_late_parts_follow_the_granted_span() -> None:
    found = timeline(granted_update(0, 1, 0.0, late_s=0.6))
    ((_, granted_end),) = bars(found, "direct")
    ((late_begin, late_end),) = bars(found, "late")
    assert late_begin == pytest.approx(granted_end, abs=0.2)
    assert late_end - late_begin == pytest.approx(0.6 / 1.9 * 1100, abs=0.5)


def test_a_span_that_was_not_used_up_has_an_outline() -> None:
    found = timeline(granted_update(0, 1, 0.0, late_s=-0.4))
    assert bars(found, "late") == []
    ((_, used_end),) = bars(found, "direct")
    ((spare_begin, _),) = bars(found, "spare direct-edge")
    assert spare_begin == pytest.approx(used_end, abs=0.2)


@pytest.mark.parametrize(
    ("fields", "kind"), [({"group": 1}, "switch"), ({"group": 1, "aggregator": 2}, "host")]
)
def test_groups_look_different(fields: dict[str, int], kind: str) -> None:
    found = timeline(granted_update(0, 1, 0.0, **fields))
    assert bars(found, "direct") == []
    assert len(bars(found, kind)) == 1


def test_drops_and_promotions_are_marked() -> None:
    promoted = [event_of(0.2, "promoted", server=0, lost=0)]
    found = timeline(dropped(0, 1, 0.0, "too old"), promoted)
    text = chart(found, window_of(found))
    assert '<path class="dropped"' in text
    assert "0.200 s: the replica takes the place of server 0" in text


def test_an_allreduce_shows_what_was_later_than_planned() -> None:
    sums = [
        event_of(0.0, "allreduce_granted", number=1, members=2, bytes=1, seconds=1.0),
        event_of(2.0, "allreduce_ended", number=1, members=2, bytes=1),
        event_of(2.0, "allreduce_granted", number=2, members=2, bytes=1, seconds=1.0),
        event_of(3.0, "allreduce_ended", number=2, members=2, bytes=1),
        event_of(3.0, "allreduce_granted", number=3, members=2, bytes=1, seconds=1.0),
    ]
    found = timeline(sums)
    assert len(bars(found, "direct")) == 2
    assert len(bars(found, "late")) == 1
    assert len(bars(found, "spare direct-edge")) == 1


def test_a_page_of_one_event() -> None:
    found = timeline([event_of(0.0, "allreduce_failed", reason="worker 1 is gone")])
    recording = TransferRecording(file="log", timeline=found, truncated_line=None)
    text = transfers_page(recording, window_of(found))
    assert "an allreduce has failed: worker 1 is gone" in text
    assert "No update was dropped." in text


@pytest.mark.parametrize(
    ("length_s", "most", "step_s"),
    [(60.0, 13.0, 5.0), (60.0, 6.0, 10.0), (1.0, 13.0, 0.1), (0.001, 10.0, 0.0001), (99.0, 10, 10)],
)
def test_ticks_are_few_and_round(length_s: float, most: float, step_s: float) -> None:
    assert tick_step(length_s, most) == pytest.approx(step_s)
