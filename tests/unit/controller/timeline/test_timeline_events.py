# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""From events of a timeline to transfers, and their figures."""

from __future__ import annotations

from typing import Any

import pytest

from switchfold.controller.cli.timeline.events import timeline_of
from switchfold.controller.cli.timeline.figures import (
    counts_by_worker,
    end_figures,
    group_counts,
    model_counts,
    replica_backlog,
    update_counts,
    waits_for_grants,
    waits_for_links,
    waits_for_places,
)
from switchfold.controller.cli.timeline.records import (
    ReplicaPromotion,
    TransferEnd,
    TransferPath,
    TransferTimeline,
)
from written_timeline import begun_s, dropped, event_of, granted_update


def timeline(*events: list[dict[str, Any]]) -> TransferTimeline:
    return timeline_of("train", sorted((one for each in events for one in each), key=begun_s))


def ending(event: str, at_s: float, transfer: int = 1) -> list[dict[str, Any]]:
    return [event_of(at_s, event, worker=0, server=0, transfer=transfer)]


def model(number: int, at_s: float, worker: int = 0, **grant: Any) -> list[dict[str, Any]]:
    own = {"worker": worker, "server": 0, "transfer": number, "bytes": 10}
    return [
        event_of(at_s, "model_requested", **own),
        event_of(at_s + 0.1, "model_granted", begins=0.0, ends=0.5, **own, **grant),
        event_of(at_s + 0.6, "model_delivered", **own),
    ]


def test_times_of_an_update() -> None:
    (update,) = timeline(granted_update(0, 1, 0.0, late_s=0.3)).updates
    assert update.requested_s == 0
    assert update.granted_s == pytest.approx(0.1)
    assert update.begins_s == pytest.approx(0.2)
    assert update.ends_s == pytest.approx(1.2)
    assert update.arrived_s == pytest.approx(1.5)
    assert update.committed_s == pytest.approx(1.6)
    assert (update.end, update.path, update.delay) == (TransferEnd.DONE, TransferPath.DIRECT, 2)
    assert update.behind_s == pytest.approx(0.3)


@pytest.mark.parametrize(("late_s", "is_late"), [(-0.5, False), (0.19, False), (0.21, True)])
def test_late_is_what_the_controller_calls_late(late_s: float, is_late: bool) -> None:
    (update,) = timeline(granted_update(0, 1, 0.0, late_s=late_s)).updates
    assert update.is_late is is_late


def test_an_update_of_a_group_at_a_host_ends_there() -> None:
    events = granted_update(0, 1, 0.0, late_s=3.0, group=5, aggregator=4)
    gathered = [event_of(1.3, "gathered", worker=0, server=0, transfer=1)]
    (update,) = timeline(events, gathered).updates
    assert update.path is TransferPath.HOST_GROUP
    assert update.arrived_s == pytest.approx(1.3)
    left = [event_of(1.25, "left", worker=0, server=0, transfer=1)]
    (update,) = timeline(events, gathered, left).updates
    assert update.arrived_s == pytest.approx(4.2)


def test_groups_are_counted_by_their_kind() -> None:
    updates = timeline(
        granted_update(0, 1, 0.0, group=5, aggregator=4),
        granted_update(1, 1, 0.0, group=5, aggregator=4),
        granted_update(2, 1, 0.0, group=6),
        granted_update(3, 1, 0.0),
    ).updates
    assert group_counts(updates) == {
        TransferPath.HOST_GROUP: (1, 2),
        TransferPath.SWITCH_GROUP: (1, 1),
    }


@pytest.mark.parametrize(
    ("event", "end"),
    [
        ("withdrawn", TransferEnd.WITHDRAWN),
        ("refused", TransferEnd.REFUSED),
        ("ungranted", TransferEnd.UNGRANTED),
    ],
)
def test_ends_without_a_commit(event: str, end: TransferEnd) -> None:
    (update,) = timeline(granted_update(0, 1, 0.0)[:2], ending(event, 2.0)).updates
    assert update.end is end
    assert update.over_s == pytest.approx(2.0)


def test_an_update_that_comes_after_it_was_withdrawn() -> None:
    asked = granted_update(0, 1, 0.0)[:1]
    counts = update_counts(
        timeline(asked, ending("withdrawn", 1.0), ending("ungranted", 1.5)).updates
    )
    assert (counts.pushes, counts.withdrawn, counts.ungranted, counts.grants) == (1, 1, 1, 0)


def test_an_applied_update_that_is_refused_later_is_no_commit() -> None:
    counts = update_counts(timeline(granted_update(0, 1, 0.0), ending("refused", 2.0)).updates)
    assert (counts.commits, counts.refused) == (0, 1)


def test_an_update_that_nobody_asked_for_is_no_push() -> None:
    counts = update_counts(timeline(ending("ungranted", 0.0, transfer=9)).updates)
    assert (counts.pushes, counts.ungranted, counts.drop_ratio) == (0, 1, 0.0)
    assert counts.mean_delay is None


def test_a_request_that_another_controller_hears_again() -> None:
    first = granted_update(0, 1, 0.0)[:1]
    found = timeline(first, granted_update(0, 1, 5.0))
    assert [each.end for each in found.updates] == [TransferEnd.ASKED_AGAIN, TransferEnd.DONE]
    assert waits_for_grants(found.updates).values[-1] == 0


def test_models_have_ids_of_their_own() -> None:
    found = timeline(granted_update(0, 1, 0.0), model(1, 0.05), model(2, 0.05, 3, relayed_by=0))
    assert [each.path for each in found.models] == [TransferPath.DIRECT, TransferPath.RELAY]
    counts = model_counts(found.models)
    assert (counts.requested, counts.granted, counts.delivered, counts.relayed) == (2, 2, 2, 1)
    assert found.workers == [0, 3]
    by_worker = counts_by_worker(found)
    assert by_worker[3][1].relayed == 1
    assert by_worker[3][0].pushes == 0


def test_counts_of_workers() -> None:
    found = timeline(
        granted_update(0, 1, 0.0, late_s=1.0), granted_update(0, 2, 5.0), dropped(0, 3, 9.0, "old")
    )
    counts, _ = counts_by_worker(found)[0]
    assert (counts.pushes, counts.grants, counts.commits, counts.drops) == (3, 2, 2, 1)
    assert counts.drop_ratio == pytest.approx(1 / 3)
    assert counts.mean_delay == pytest.approx(2.0)
    assert counts.mean_wait_s == pytest.approx(0.1)
    assert (counts.ends.number, counts.ends.num_late) == (2, 1)
    assert counts.ends.mean_s == pytest.approx(0.5)
    assert counts.ends.most_s == pytest.approx(1.0)


def test_ends_of_nothing() -> None:
    assert end_figures([]).number == 0


def test_queues_over_time() -> None:
    found = timeline(granted_update(0, 1, 0.0), granted_update(1, 1, 0.05), dropped(2, 1, 0.1, ""))
    waiting = waits_for_grants(found.updates)
    assert waiting.times_s == pytest.approx([0.0, 0.05, 0.15, 0.2])
    assert waiting.values == [1, 2, 1, 0]  # at 0.1 s, one is granted and one asked for
    before = waits_for_links(found.updates)
    assert before.most == 2
    placed = waits_for_places(found.updates)
    assert placed.times_s == pytest.approx([1.2, 1.25, 1.3, 1.35])
    assert placed.values == [1, 2, 1, 0]


def test_replicas() -> None:
    states = [
        event_of(at_s, "replicated", server=2, version=9, replica_version=9 - behind, distance=0.5)
        for at_s, behind in ((0.0, 1), (1.0, 3), (2.0, 0))
    ]
    promoted = [event_of(3.0, "promoted", server=2, version=9, lost=1, distance=0.5)]
    found = timeline(states, promoted)
    assert replica_backlog(found.replicas, 2) == ([0.0, 1.0, 2.0], [1, 3, 0])
    assert replica_backlog(found.replicas, 0).most == 0
    assert found.promotions == [ReplicaPromotion(time_s=3.0, server=2, lost=1)]


def test_allreduces() -> None:
    sums = [
        event_of(0.0, "allreduce_granted", number=1, members=4, bytes=100, seconds=0.5),
        event_of(0.7, "allreduce_ended", number=1, members=4, bytes=100),
        event_of(1.0, "allreduce_granted", number=2, members=4, bytes=100, seconds=0.5),
        event_of(2.0, "allreduce_failed", reason="worker 3 is gone"),
        event_of(2.5, "allreduce_ended", number=9, members=4, bytes=100),
    ]
    found = timeline(sums)
    assert [each.ended_s for each in found.allreduces] == [pytest.approx(0.7), None]
    assert found.failed == [(2.0, "worker 3 is gone")]
    assert found.length_s == 2.5


def test_events_of_later_releases_and_clocks_are_counted() -> None:
    events = [event_of(1.0, "paused"), event_of(0.5, "paused"), *granted_update(0, 1, 2.0)]
    found = timeline_of("train", events)
    assert found.unknown == {"paused": 2}
    assert found.num_turned_back == 1
    assert found.updates[0].requested_s == pytest.approx(1.0)


def test_what_limited_a_sender() -> None:
    seen = [event_of(1.3, "observed", worker=0, transfer=n, limit="network") for n in (1, 8)]
    (update,) = timeline(granted_update(0, 1, 0.0), seen).updates
    assert update.limit == "network"
