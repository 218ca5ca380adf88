# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The contenders of the simulator, and one run of any of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.simulator.asynchronous import (
    ChainReplication,
    ComputeTimes,
    FairParameterServer,
    FluidRun,
)
from benchmarks.simulator.estimated import EstimatedRun
from benchmarks.simulator.outcome import RunFigures, figures_of
from benchmarks.simulator.planned_allreduce import PlannedAllreduce
from benchmarks.simulator.scenario import Scenario
from benchmarks.simulator.scheduled import GroupPlaces, ScheduledRun
from benchmarks.simulator.synchronous import (
    RingAllreduce,
    SwitchAllreduce,
    SynchronousParameterServer,
)
from benchmarks.simulator.timeline import TimelineEvent
from switchfold.controller.scheduler.delay_bound import DelayBound
from switchfold.controller.scheduler.scheduler import SchedulerOptions
from switchfold.controller.scheduler.training.commit_order import CommitOrder


@dataclass(frozen=True, kw_only=True)
class SimulatedContender:
    """A way to train, and how tables call it."""

    name: str
    label: str
    make: Callable[[Scenario, ComputeTimes | None], FluidRun]
    is_synchronous: bool = False


def tau_max_of(num_workers: int) -> int:
    """Return the delay bound of scheduled updates.

    Each worker has one update under way, so this is twice what delays are on average.
    """
    return 2 * num_workers


WHOLE_BATCH_WAIT_S = 1e6
"""For batches that are closed only when no grant is open."""


RELAY_MAX = 16
"""Workers that get one model at the same time, at most."""
_RELAYING: Final = {"gather_wait_s": 1.0, "relay_max": RELAY_MAX, "relay_wait_s": 6.0}
_SWITCHES_RELAYING: Final = {**_RELAYING, "switch_wait_s": 0.2, "join_ratio": 1.5}
"""Of contenders whose workers relay, and whose switches add. An update alone takes 1 s."""


def _scheduled(
    places: GroupPlaces, **choices: Any
) -> Callable[[Scenario, ComputeTimes | None], FluidRun]:
    """`choices` are options of the scheduler."""

    def make(scenario: Scenario, computing: ComputeTimes | None) -> FluidRun:
        bound = DelayBound(tau_max=tau_max_of(scenario.num_workers))
        options = SchedulerOptions(bound=bound, **choices)
        return ScheduledRun(scenario, computing, places=places, options=options)

    return make


def _estimated(
    places: GroupPlaces = GroupPlaces.NOWHERE, **choices: Any
) -> Callable[[Scenario, ComputeTimes | None], FluidRun]:
    """Return what makes a run whose scheduler knows links by estimates, and commits in sequence.

    `choices` are options of the scheduler.
    """

    def make(scenario: Scenario, computing: ComputeTimes | None) -> FluidRun:
        options = SchedulerOptions(
            bound=DelayBound(tau_max=tau_max_of(scenario.num_workers)),
            commit_order=CommitOrder.SEQUENCE,
            **choices,
        )
        return EstimatedRun(scenario, computing, places=places, options=options)

    return make


CONTENDERS = {
    each.name: each
    for each in (
        SimulatedContender(name="async-ps", label="asynchronous PS", make=FairParameterServer),
        SimulatedContender(name="chain", label="PS, chain replication", make=ChainReplication),
        SimulatedContender(
            name="sync-ps",
            label="synchronous PS",
            make=SynchronousParameterServer,
            is_synchronous=True,
        ),
        SimulatedContender(
            name="ring", label="ring allreduce", make=RingAllreduce, is_synchronous=True
        ),
        SimulatedContender(
            name="planned-allreduce",
            label="planned allreduce",
            make=PlannedAllreduce,
            is_synchronous=True,
        ),
        SimulatedContender(
            name="switch-allreduce",
            label="switch allreduce",
            make=SwitchAllreduce,
            is_synchronous=True,
        ),
        SimulatedContender(name="direct", label="scheduled", make=_scheduled(GroupPlaces.NOWHERE)),
        SimulatedContender(
            name="estimated", label="scheduled, links by estimates", make=_estimated()
        ),
        SimulatedContender(
            name="fresh",
            label="links by estimates, models wait",
            make=_estimated(most_queued_updates=0.5),
        ),
        SimulatedContender(
            name="hosts", label="scheduled, hosts add", make=_scheduled(GroupPlaces.HOSTS)
        ),
        SimulatedContender(
            name="hosts-whole",
            label="hosts add, whole batches",
            make=_scheduled(GroupPlaces.HOSTS, batch_wait_s=WHOLE_BATCH_WAIT_S),
        ),
        SimulatedContender(
            name="switches",
            label="scheduled, switches add",
            make=_scheduled(GroupPlaces.SWITCHES),
        ),
        SimulatedContender(
            name="switches-whole",
            label="switches add, whole batches",
            make=_scheduled(GroupPlaces.SWITCHES, batch_wait_s=WHOLE_BATCH_WAIT_S),
        ),
        SimulatedContender(
            name="hosts-relays",
            label="hosts add, workers relay models",
            make=_scheduled(GroupPlaces.HOSTS, **_RELAYING),
        ),
        SimulatedContender(
            name="switches-relays",
            label="switches add, workers relay models",
            make=_scheduled(GroupPlaces.SWITCHES, **_SWITCHES_RELAYING),
        ),
        SimulatedContender(
            name="estimated-switches",
            label="links by estimates, switches add",
            make=_estimated(GroupPlaces.SWITCHES),
        ),
        SimulatedContender(
            name="estimated-relays",
            label="links by estimates, switches add, workers relay models",
            make=_estimated(GroupPlaces.SWITCHES, **_SWITCHES_RELAYING),
        ),
        SimulatedContender(
            name="estimated-relays-apart",
            label="the same, join ratio 1",
            make=_estimated(GroupPlaces.SWITCHES, **_SWITCHES_RELAYING | {"join_ratio": 1.0}),
        ),
    )
}
BASELINE = "async-ps"


@dataclass(frozen=True, kw_only=True)
class ContenderRun:
    """One contender on one scenario."""

    figures: RunFigures
    events: tuple[TimelineEvent, ...]
    server_in_bytes: float
    """Mean of the servers' links towards them."""
    server_out_bytes: float
    decisions: int = 0
    decision_cost_s: float = 0.0
    """Median over all batches of this machine's time for a decision; it is not simulated."""
    groups: int = 0


def simulate(
    contender: SimulatedContender,
    scenario: Scenario,
    *,
    duration_s: float,
    wanted_updates: int = 0,
    computing: ComputeTimes | None = None,
) -> ContenderRun:
    """Run a contender for so much simulated time; figures are those of that time.

    With computing times of a record, it ends when all workers have ended.
    """
    run = contender.make(scenario, computing)
    run.links.call_at(0.0, run.start)
    run.links.run(duration_s)
    moved = run.links.moved_bits
    scheduler = run if isinstance(run, ScheduledRun) else None
    return ContenderRun(
        figures=figures_of(
            run.events,
            duration_s=run.links.now_s,
            num_servers=scenario.num_servers,
            wanted_updates=wanted_updates,
            is_synchronous=contender.is_synchronous,
        ),
        events=tuple(run.events),
        server_in_bytes=_mean(moved[f">{server}"] / 8 for server in scenario.servers),
        server_out_bytes=_mean(moved[f"{server}>"] / 8 for server in scenario.servers),
        decisions=scheduler.num_decisions if scheduler else 0,
        decision_cost_s=scheduler.median_cost_s if scheduler else 0.0,
        groups=scheduler.num_groups if scheduler else 0,
    )


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)
