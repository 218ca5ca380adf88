# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Contenders of the simulator on small scenarios: hand-computed times, traces, bytes, records."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.simulator.contenders import CONTENDERS, ContenderRun, simulate
from benchmarks.simulator.estimated import PLANNED_SHARE, EstimatedRun
from benchmarks.simulator.outcome import commit_times, delays_of, figures_of, get_times
from benchmarks.simulator.scenario import Scenario
from benchmarks.simulator.timeline import (
    TimelineError,
    TimelineEvent,
    TimelineKind,
    read_timeline,
    write_timeline,
)
from benchmarks.simulator.traces import (
    ComputeSetting,
    ComputeTrace,
    LinkSetting,
    LinkTrace,
    RecordedComputing,
    StreamWeights,
)
from benchmarks.simulator.training_problem import LeastSquares, time_to_target
from switchfold.controller.scheduler.scheduler import SchedulerOptions

ALL = list(CONTENDERS)
ASYNCHRONOUS = [name for name in ALL if not CONTENDERS[name].is_synchronous]
SCENARIO = Scenario(num_workers=4, seed=7, update_bytes=1_250_000, stream_spread=0.0)
"""An update takes 0.1 s on a link."""


def run(name: str, scenario: Scenario = SCENARIO, duration_s: float = 20.0) -> ContenderRun:
    return simulate(CONTENDERS[name], scenario, duration_s=duration_s, wanted_updates=5)


def once(name: str, num_workers: int, compute_s: float = 1.0, **changes: object) -> ContenderRun:
    """Run one iteration whose computing times are equal."""
    scenario = replace(SCENARIO, num_workers=num_workers, control_rtt_s=0, decision_s=0)
    scenario = replace(scenario, **changes)
    computing = RecordedComputing(times_s=[[compute_s]] * num_workers)
    return simulate(CONTENDERS[name], scenario, duration_s=100.0, computing=computing)


def times(found: ContenderRun, kind: TimelineKind) -> list[float]:
    return [event.time_s for event in found.events if event.event is kind]


@pytest.mark.parametrize(
    ("name", "commits_s"),
    [
        # Models: 4 share the server's uplink, 0.4 s; computing 1 s; updates share the downlink.
        ("async-ps", [1.8, 1.8, 1.8, 1.8]),
        # Then four copies share the server's uplink to the replica.
        ("chain", [2.2, 2.2, 2.2, 2.2]),
        # Without models before the first iteration: 1 s, then 0.4 s.
        ("sync-ps", [1.4, 1.4, 1.4, 1.4]),
        # 2 x 3/4 of an update on every link.
        ("ring", [1.15, 1.15, 1.15, 1.15]),
        # As long as the ring, on equal links.
        ("planned-allreduce", [1.15, 1.15, 1.15, 1.15]),
        ("switch-allreduce", [1.1, 1.1, 1.1, 1.1]),
        # Models in turns at 0.1, 0.2, 0.3, 0.4 s; so updates find the link free.
        ("direct", [1.2, 1.3, 1.4, 1.5]),
        # After 0.05 s for a group to gather, all have one model at 0.15 s; two updates go directly,
        # and a host adds the others up.
        ("hosts-relays", [1.25, 1.35, 1.45, 1.45]),
        # The batch waits for 0.2 s, and is one sum of 0.1 s.
        ("switches-relays", [1.45] * 4),
        # The same as directly, planned with less than links carry.
        ("estimated", [1 + turns * 0.1 / PLANNED_SHARE for turns in (2, 3, 4, 5)]),
        ("fresh", [1 + turns * 0.1 / PLANNED_SHARE for turns in (2, 3, 4, 5)]),
        ("estimated-switches", [1 + turns * 0.1 / PLANNED_SHARE for turns in (2, 3, 4, 5)]),
        # As with true rates: 0.05 s, one model, 0.2 s of waiting, and one sum.
        ("estimated-relays", [1.25 + 2 * 0.1 / PLANNED_SHARE] * 4),
    ],
)
def test_one_iteration_by_hand(name: str, commits_s: list[float]) -> None:
    found = once(name, 4)
    assert times(found, TimelineKind.COMMIT) == pytest.approx(commits_s, abs=1e-3)


def test_a_switch_adds_a_batch_in_the_time_of_one_update() -> None:
    found = once("switches", 4, has_models=False)
    # All four requests of one moment are one batch: 0.1 s for the sum, not 0.4 s.
    assert times(found, TimelineKind.COMMIT) == pytest.approx([1.1] * 4)
    assert found.groups == 1
    assert found.server_in_bytes == pytest.approx(SCENARIO.update_bytes)


def test_a_scheduler_that_is_told_no_rates_finds_the_slow_link() -> None:
    scenario = replace(SCENARIO, links=LinkSetting.HALVED, update_bytes=12_500_000)
    (slow,) = [host for host, share in scenario.link_trace.shares(0).items() if share < 1]
    made = CONTENDERS["estimated"].make(scenario, None)
    assert isinstance(made, EstimatedRun)
    assert made.tracker.slowed() == {}
    made.start()
    slowed: set[str] = set()
    for time_s in range(1, 21):
        made.links.run(float(time_s))
        slowed |= made.tracker.slowed().keys()
    assert slow in slowed


def test_a_worker_behind_a_slow_link_does_not_keep_a_model_from_others() -> None:
    """Of a chain, each worker has the model as soon as its own link and those before it allow."""
    scenario = replace(SCENARIO, links=LinkSetting.HALVED)
    assert scenario.link_trace.shares(0)["w3"] == 0.5
    found = once("estimated-relays", 4, links=LinkSetting.HALVED)
    assert found.events[0].event is TimelineKind.GET
    got_s = times(found, TimelineKind.GOT)[:4]
    wait_s = SchedulerOptions().batch_wait_s
    assert got_s == pytest.approx([*[wait_s + 0.1 / PLANNED_SHARE] * 3, wait_s + 0.2])


def test_estimates_do_not_learn_of_sums_in_a_switch() -> None:
    scenario = replace(SCENARIO, has_models=False, links=LinkSetting.HALVED)
    made = CONTENDERS["estimated-switches"].make(scenario, None)
    assert isinstance(made, EstimatedRun)
    made.start()
    made.links.run(10.0)
    assert made.num_groups > 0
    assert made.num_commits > 4 * made.num_groups - 4
    assert made.tracker.slowed() == {}


def test_requests_and_answers_wait_behind_streams() -> None:
    found = once("async-ps", 1, message_wait_s=0.03)
    # 0.03 s until the server sends 0.1 s; 1 s; 0.1 s. The answer is later than the commit.
    assert times(found, TimelineKind.GOT)[0] == pytest.approx(0.13)
    assert times(found, TimelineKind.COMMIT) == pytest.approx([1.23])
    assert commit_times(found.events) == pytest.approx([0.1])
    # The answer, the next request, and the model.
    assert get_times(found.events) == pytest.approx([0.16])


def test_workers_begin_apart() -> None:
    scenario = replace(SCENARIO, start_spread_s=0.4, stream_seed=2)
    found = run("async-ps", scenario, duration_s=0.5)
    assert times(found, TimelineKind.GET) == sorted(scenario.starts_s())
    assert len(set(scenario.starts_s())) == 4
    assert scenario.starts_s() != replace(scenario, stream_seed=3).starts_s()


def test_a_slow_link_holds_up_a_planned_allreduce_less_than_a_ring() -> None:
    """The slow worker's link must carry the vector once each way; the ring's links all do twice."""
    links = {"links": LinkSetting.HALVED}
    shares = replace(SCENARIO, num_workers=8, **links).link_trace.shares(0)
    assert sorted(shares[f"w{number}"] for number in range(8)) == [0.5, *[1.0] * 7]
    ring_s = times(once("ring", 8, **links), TimelineKind.COMMIT)[0] - 1.0
    planned_s = times(once("planned-allreduce", 8, **links), TimelineKind.COMMIT)[0] - 1.0
    assert ring_s == pytest.approx(2 * 7 / 8 * 0.2, abs=1e-3)
    assert 0.2 <= planned_s < 0.7 * ring_s


def test_every_contender_has_a_colour_of_its_own_in_plots() -> None:
    colours = pytest.importorskip("benchmarks.simulator.grid_plot", reason="plots need matplotlib")
    assert set(colours.COLOURS) == set(ALL)
    assert len(set(colours.COLOURS.values())) == len(ALL)


def test_two_servers_get_half_of_each_update() -> None:
    found = once("async-ps", 2, num_servers=2)
    # Each worker's link carries its whole model and its whole update.
    assert times(found, TimelineKind.COMMIT) == pytest.approx([1.2] * 4)
    assert found.figures.updates == 2
    assert found.server_in_bytes == pytest.approx(SCENARIO.update_bytes)


@pytest.mark.parametrize("name", ALL)
def test_runs_are_deterministic(name: str) -> None:
    scenario = replace(SCENARIO, links=LinkSetting.REDRAWN, computing=ComputeSetting.STRAGGLERS)
    first, second = run(name, scenario), run(name, scenario)
    assert first.events == second.events
    assert first.figures == second.figures
    assert run(name, replace(scenario, seed=8)).events != first.events


@pytest.mark.parametrize("name", ALL)
def test_all_contenders_see_the_same_traces(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each contender asks for the same times of the same seed, and sets the same rates."""
    scenario = replace(SCENARIO, links=LinkSetting.REDRAWN, computing=ComputeSetting.STRAGGLERS)
    reference = ComputeTrace(ComputeSetting.STRAGGLERS, 7, 4, scenario.compute_s)
    asked: dict[tuple[int, int], float] = {}
    original = ComputeTrace.time_s

    def ask(trace: ComputeTrace, worker: int, iteration: int) -> float:
        asked[worker, iteration] = original(trace, worker, iteration)
        return asked[worker, iteration]

    monkeypatch.setattr(ComputeTrace, "time_s", ask)
    made = CONTENDERS[name].make(scenario, None)
    made.start()
    made.links.run(12.0)
    assert asked
    assert asked == {key: original(reference, *key) for key in asked}
    assert {key[0] for key in asked} == set(range(4))
    link = "w0>"
    made.links.start([link], 1e12, lambda: None)  # the rate of the third period at most
    before = made.links.moved_bits[link]
    made.links.run(12.5)
    assert made.links.moved_bits[link] - before <= 0.5 * scenario.capacities(2)[link] * 1.000001


@pytest.mark.parametrize("name", ASYNCHRONOUS)
def test_bytes_at_the_server_are_those_of_the_messages(name: str) -> None:
    """What came in is what was sent, but for sums, which are one message, and what is under way."""
    found = run(name)
    sent = sum(event.event is TimelineKind.SENT for event in found.events)
    received = found.server_in_bytes / SCENARIO.update_bytes
    kinds = Counter(event.event for event in found.events)
    assert kinds[TimelineKind.GOT] <= kinds[TimelineKind.GET]
    assert kinds[TimelineKind.COMMIT] + kinds[TimelineKind.DROP] <= kinds[TimelineKind.PUSH]
    assert sent >= kinds[TimelineKind.COMMIT] > 20
    if found.groups:
        assert received < sent
    else:
        assert sent <= received + 1e-6
        assert received <= sent + SCENARIO.num_workers


def test_leaves_of_a_large_cluster_are_on_the_route() -> None:
    scenario = Scenario(num_workers=40, seed=1)
    assert scenario.route("w0", "server0") == ("w0>", "leaf0>", ">server0")
    assert scenario.route("server0", "w39") == ("server0>", ">leaf1", ">w39")
    assert scenario.route("w0", "w31") == ("w0>", ">w31")
    assert scenario.route("w0", "w32") == ("w0>", "leaf0>", ">leaf1", ">w32")
    assert scenario.route("leaf1", "server0") == ("leaf1>", ">server0")
    assert scenario.route("w32", "leaf1") == ("w32>",)
    assert scenario.route("w0", "leaf1") is None
    assert scenario.capacities(0)["leaf1>"] == 8 * scenario.link_bits_per_s
    small = Scenario(num_workers=32, seed=1)
    assert small.route("w0", "server0") == ("w0>", ">server0")
    assert small.route("leaf0", "server0") == (">server0",)


def test_link_traces_by_setting() -> None:
    workers = [f"w{number}" for number in range(20)]
    hosts = [*workers, "server0"]
    even, redrawn, halved = (
        LinkTrace(setting=setting, seed=3, hosts=hosts, workers=workers)
        for setting in (LinkSetting.EVEN, LinkSetting.REDRAWN, LinkSetting.HALVED)
    )
    assert set(even.shares(5).values()) == {1.0}
    periods = [redrawn.shares(period) for period in range(50)]
    assert {share for each in periods for share in each.values()} == {1.0, 0.5, 0.25}
    assert len({tuple(each.values()) for each in periods}) == 50
    assert redrawn.shares(7) == periods[7]
    assert Counter(halved.shares(0).values()) == {1.0: 19, 0.5: 2}
    assert halved.shares(0) == halved.shares(9)
    assert halved.shares(0)["server0"] == 1.0


def test_compute_traces_by_setting() -> None:
    def table(setting: ComputeSetting) -> list[list[float]]:
        trace = ComputeTrace(setting, 5, 20, 1.0)
        return [[trace.time_s(worker, it) for worker in range(20)] for it in range(40)]

    assert all(0.95 <= time_s <= 1.05 for row in table(ComputeSetting.EVEN) for time_s in row)
    rows = table(ComputeSetting.STRAGGLERS)
    slow = [tuple(np.flatnonzero(np.array(row) > 3.5)) for row in rows]
    assert {len(each) for each in slow} == {4}
    assert [len(set(slow[at : at + 10])) for at in range(0, 40, 10)] == [1, 1, 1, 1]
    assert len(set(slow)) > 1
    few = [tuple(np.flatnonzero(np.array(row) > 1.5)) for row in table(ComputeSetting.FEW_SLOW)]
    assert {len(each) for each in few} == {2}
    assert len(set(few)) == 1


def test_streams_share_a_link_unequally() -> None:
    weights = StreamWeights(0.6, 5, 1000)
    logarithms = np.log([weights.weight(worker, 3) for worker in range(1000)])
    assert abs(logarithms.mean()) < 0.1
    assert 0.5 < logarithms.std() < 0.7
    again = StreamWeights(0.6, 5, 1000)
    assert weights.weight(4, 2) == again.weight(4, 2)
    assert weights.weight(4, 2) != weights.weight(4, 1)
    even = StreamWeights(0.0, 5, 10)
    assert {even.weight(worker, 0) for worker in range(10)} == {1.0}


def test_unequal_shares_end_one_after_the_other_and_move_the_same_bytes() -> None:
    found = once("async-ps", 4, stream_spread=0.6)
    commits = times(found, TimelineKind.COMMIT)
    assert len(set(commits)) == 4
    assert commits[-1] == pytest.approx(1.8)
    assert found.server_in_bytes == pytest.approx(4 * SCENARIO.update_bytes)


def event(time_s: float, kind: str, worker: str = "w0") -> TimelineEvent:
    return TimelineEvent(
        time_s=time_s, event=TimelineKind(kind), worker=worker, server="s", bytes=10
    )


def test_figures_of_a_timeline_by_hand() -> None:
    events = [
        event(0, "get", "w0"),
        event(0, "get", "w1"),
        event(1, "push", "w0"),
        event(2, "push", "w1"),
        event(3, "sent", "w1"),
        event(3, "commit", "w1"),
        event(3, "get", "w1"),
        event(5, "sent", "w0"),
        event(5, "commit", "w0"),
        event(6, "push", "w1"),
        event(6, "drop", "w1"),
    ]
    assert delays_of(events) == [0, 1]
    assert delays_of(events, is_synchronous=True) == [0, 0]
    figures = figures_of(events, duration_s=10.0, num_servers=1, wanted_updates=2)
    assert (figures.updates, figures.drops, figures.updates_per_s) == (2, 1, 0.2)
    assert (figures.mean_delay, figures.max_delay) == (0.5, 1)
    assert figures.mean_push_s == pytest.approx(2.5)
    assert figures.reached_s == 5
    late = figures_of(events, duration_s=10.0, num_servers=1, wanted_updates=3)
    assert late.reached_s is None


def test_timelines_are_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    found = run("direct", duration_s=3.0)
    write_timeline(found.events, path)
    assert read_timeline(path) == list(found.events)
    path.write_text('{"time_s": 1, "event": "fly"}\n')
    with pytest.raises(TimelineError, match=r"run\.jsonl, line 1 is no event"):
        read_timeline(path)
    path.write_text("\n")
    with pytest.raises(TimelineError, match="has no events"):
        read_timeline(path)


def test_late_gradients_converge_later_and_too_large_steps_not() -> None:
    """One worker whose gradients are fresh, and four whose gradients are 3 updates late."""
    problem = LeastSquares.draw(1)
    fresh = [
        event(step + part, kind)
        for step in range(400)
        for part, kind in ((0, "get"), (0.2, "push"), (0.4, "commit"))
    ]
    late: list[TimelineEvent] = []
    for worker in range(4):
        late += [event(worker / 10, "get", f"w{worker}"), event(0.5, "push", f"w{worker}")]
    for step in range(1, 400):
        worker = f"w{step % 4}"
        late += [event(step + part, kind, worker) for part, kind in ((0, "commit"), (0.1, "get"))]
        late.append(event(step + 0.2, "push", worker))
    quick, slow = (
        time_to_target(problem, sorted(events, key=lambda e: e.time_s), 0.08, seed=1)
        for events in (fresh, late)
    )
    assert quick is not None
    assert slow is not None
    assert quick < slow
    assert time_to_target(problem, late, 0.32, seed=1) is None
    assert time_to_target(problem, fresh, 0.32, seed=1) is not None
    assert time_to_target(problem, fresh, 1e-6, seed=1) is None
