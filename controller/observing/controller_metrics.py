# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of a controller: what it knows at a scrape, without a call of any switch."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final, Protocol

from ...hostlib.observing import metric_table as table
from ...hostlib.observing.metric import MetricSamples
from ...hostlib.slots import wire
from ..config import LinkConfig
from ..fabric.fabric import Direction, Fabric
from ..fabric.fabric_state import Condition, FabricState
from ..fabric.link_meter import CounterSample, LinkMeter
from ..jobs.job import Job, JobState, View, ViewState
from ..jobs.live_job import LiveJob
from ..switches.switch_session import SwitchSession
from ..transfers.job_transfers import JobTransfers

if TYPE_CHECKING:
    from ..database.database import Database
    from ..web.state import PageState

_ANSWER_S: Final = 5.0
"""How long a scrape waits for the controller's loop."""


class MeasuredController(Protocol):
    """Puts its metrics, in its event loop; `controller.server.ControllerServer` is one."""

    @property
    def is_serving(self) -> bool:
        """Whether its parts are there to be asked."""
        ...

    def put_metrics(self, samples: MetricSamples) -> None:
        """Add all values."""
        ...

    def show_state(self) -> PageState:
        """Return what the web page shows."""
        ...


class ControllerScrape:
    """Answers scrapes, in another thread, from what the controller's loop knows."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.leader: MeasuredController | None = None
        """None while this controller stands by."""

    def fill(self, samples: MetricSamples) -> None:
        """Have the loop put the values; TimeoutError if it does not come to that."""
        asyncio.run_coroutine_threadsafe(self._put(samples), self._loop).result(_ANSWER_S)

    async def _put(self, samples: MetricSamples) -> None:
        is_leading = self.leader is not None and self.leader.is_serving
        samples.put(table.CONTROLLER_LEADER, is_leading)
        if self.leader is not None and is_leading:
            self.leader.put_metrics(samples)


@dataclass(frozen=True, kw_only=True)
class ObservedJob:
    """A job with the state of its workers."""

    job: Job
    live: LiveJob | None

    @property
    def num_workers(self) -> int:
        """Workers that are in the job."""
        if self.live is None:
            return len(self.job.workers)
        return len(self.live.leases) - len(self.missing) * self.live.has_started

    @property
    def missing(self) -> list[int]:
        """Workers that have not arrived, or that have no session."""
        if self.live is None:
            return []
        if not self.live.has_started:
            return list(self.live.missing)
        return sorted(w for w, lease in self.live.leases.items() if not lease.is_attached)


def put_database(samples: MetricSamples, database: Database) -> None:
    """Put whether the database can be written."""
    samples.put(table.DATABASE_UP, not database.failure)


def put_jobs(
    samples: MetricSamples, jobs: Iterable[ObservedJob], last: CounterSample | None
) -> None:
    """Put the live jobs; `last` has the rounds of their trees."""
    states = Counter({JobState.WAITING: 0, JobState.RUNNING: 0})
    for figures in jobs:
        job, view = figures.job, figures.job.view
        states[job.state] += 1
        samples.put(table.JOB_WORKERS, figures.num_workers, job=job.name)
        samples.put(table.JOB_MISSING_WORKERS, len(figures.missing), job=job.name)
        samples.put(table.JOB_SLOTS, view.slot_count if view else 0, job=job.name)
        samples.put(table.JOB_TREES, len(view.trees) if view else 0, job=job.name)
        samples.put(table.JOB_ROUNDS, _rounds(view, last), job=job.name)
    for state, number in states.items():
        samples.put(table.JOBS, number, state=str(state))


def put_transfers(samples: MetricSamples, jobs: Iterable[JobTransfers]) -> None:
    """Put what became of the updates and models of jobs with live transfers."""
    for job in jobs:
        counts, models = job.counts, job.models.tally
        open_records = job.flow.open_records
        waiting = sum(record.state.is_waiting for record in open_records)
        for event, number in (
            ("requested", counts.pushes),
            ("granted", counts.grants),
            # A counter never decreases: what is refused late is counted here, too.
            ("committed", counts.commits + counts.refused_commits),
            ("dropped", counts.drops),
            ("withdrawn", counts.withdrawn),
            ("overdue", counts.overdue),
            ("ungranted", counts.ungranted + counts.refused_ungranted),
            ("refused", counts.refused),
            ("early", counts.early),
        ):
            samples.put(table.JOB_UPDATES, number, job=job.name, event=event)
        for state, number in (("waiting", waiting), ("granted", len(open_records) - waiting)):
            samples.put(table.JOB_OPEN_UPDATES, number, job=job.name, state=state)
        for event, number in asdict(models).items():
            samples.put(table.JOB_MODELS, number, job=job.name, event=event)


def put_switches(
    samples: MetricSamples, switches: Mapping[str, SwitchSession], views: Iterable[View]
) -> None:
    """Put the state of each switch, and its slots."""
    held = tuple(views)
    for name, session in switches.items():
        used = sum(view.slots_on(name) for view in held)
        samples.put(table.SWITCH_READY, session.is_ready, switch=name)
        samples.put(table.SWITCH_SLOTS, used, switch=name, state="used")
        samples.put(table.SWITCH_SLOTS, wire.NUM_SLOTS - used, switch=name, state="free")


def put_links(samples: MetricSamples, state: FabricState, meter: LinkMeter) -> None:
    """Put state, rate and bytes of links between switches, and rate and bytes of hosts' links."""
    names = link_names(state.fabric.links)
    for link in state.fabric.links:
        name = names[link.key]
        is_up = state.condition(link) is Condition.UP
        samples.put(table.LINK_UP, is_up, link=name)
        samples.put(table.LINK_CAPACITY, link.rate_bits_per_s / 8, link=name)
        for sender, end in ((link.a, link.ends[0]), (link.b, link.ends[1])):
            _put_bytes(samples, meter.last, Direction(*end), link=name, sender=sender)
    for name, switch, host, direction, rate in _host_directions(state.fabric):
        if rate is not None:
            samples.put(table.LINK_CAPACITY, rate / 8, link=name)
        sender = host if direction.is_inward else switch
        _put_bytes(samples, meter.last, direction, link=name, sender=sender)


def link_names(links: Iterable[LinkConfig]) -> dict[str, str]:
    """Return by key a name of each link that no other one has: parallel links have their keys."""
    all_links = tuple(links)
    shared = Counter(link.name for link in all_links)
    return {link.key: link.name if shared[link.name] == 1 else link.key for link in all_links}


def _host_directions(fabric: Fabric) -> Iterator[tuple[str, str, str, Direction, int | None]]:
    """Yield (link, switch, host, direction, stated rate in bits/s) of both halves of each link."""
    for switch in fabric.switches.values():
        for host in switch.hosts:
            name = f"{host.name}-{switch.name}"
            for is_inward in (True, False):
                direction = Direction(switch.name, host.port, is_inward)
                yield name, switch.name, host.name, direction, host.rate_bits_per_s


def _put_bytes(
    samples: MetricSamples,
    last: CounterSample | None,
    direction: Direction,
    *,
    link: str,
    sender: str,
) -> None:
    num_bytes = None if last is None else last.num_bytes(direction)
    if num_bytes is not None:
        samples.put(table.LINK_BYTES, num_bytes, link=link, sender=sender)


def _rounds(view: View | None, last: CounterSample | None) -> int:
    if view is None or last is None or view.state is not ViewState.INSTALLED:
        return 0
    return sum(last.rounds.get(tree.tree_id, 0) for tree in view.trees)
