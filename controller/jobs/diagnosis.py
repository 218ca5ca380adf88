# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the dead link, switch or worker from the reports of workers without progress.

A worker that is cut off from its switch is evicted, but awaited for a while if the job cannot do
without it. A job leaves a switch that answers nobody. If no route remains, the workers behind that
switch are evicted; if these are all, the job ends, and its reason names what is dead.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from typing import Final

from ...hostlib.control.session_api import session_pb2 as pb
from ..config import ControllerConfig
from ..errors import ControllerError
from ..switches.switch_session import LinkState, SwitchSession
from .job import Generation, View, WorkerId
from .job_manager import JobManager
from .live_job import LiveJob
from .stalls import WINDOW_S
from .worker_lease import WorkerLease

_LOGGER = logging.getLogger(__name__)
CHECK_INTERVAL_S: Final = 1.0
"""Least time between two comparisons of the tables of a switch that workers report as silent."""
CHECK_S: Final = 2.0
"""How long such a comparison may take."""

ANSWER_S: Final = 1.0
"""A switch that lets the controller wait for longer does not run ..."""
MUTE_S: Final = 0.5
"""... or for so long when workers have just found that it answers none of them."""
LINKS_S: Final = 2.5
"""A silent switch of several is not left before: the link above it may be dead, which shows within
this time in the counters of ports."""
SLACK_S: Final = 0.05
"""A timer may fire this much too early."""


class Diagnosis:
    """Judges the reports of all jobs."""

    def __init__(
        self, config: ControllerConfig, links: Mapping[str, SwitchSession], manager: JobManager
    ) -> None:
        self._config = config
        self._links = links
        self._manager = manager
        self._checked_s: dict[str, float] = {}
        self._look_at_links: Callable[[], None] = lambda: None
        self._is_back: Callable[[str], None] = lambda _: None
        self._awaited: set[str] = set()
        self._unanswered_s: dict[str, float] = {}
        """When the first comparison began that a switch has not answered, nor one since."""

    def on_stall(self, look_at_links: Callable[[], None]) -> None:
        """Call this for every report of a job on several switches: a link may be dead."""
        self._look_at_links = look_at_links

    def on_answer(self, is_back: Callable[[str], None]) -> None:
        """Call this for a switch that jobs have left, and that did not run but does now."""
        self._is_back = is_back

    def report(
        self, live: LiveJob, view: View, lease: WorkerLease, stalled: pb.Stalled, now_s: float
    ) -> None:
        """Take a worker's report, and do something if all reports together tell what is wrong."""
        generation = stalled.generation
        missing = set(stalled.missing_workers)
        live.stalls.report(
            lease.worker_id,
            generation,
            now_s,
            missing,
            stalled.silent_s,
            silent_tree=stalled.silent_tree,
            submitted=stalled.submitted,
        )
        if different := live.stalls.mismatch(live.welcomed, generation, now_s):
            self._manager.end(live, different, is_mismatch=True)
            return
        live.tell_missing(generation, now_s)
        if live.stalls.are_apart(live.welcomed, now_s):
            live.stalls.repair(now_s)
            why = "no worker has progress, in the last view or the one before"
            self._manager.change_request(live, why, is_abort=True)
        elif view.is_on_switch:
            if stalled.silent_s and (switch := _asked_switch(live, view, lease.worker_id)):
                self._check_tables(switch, now_s)
            self._judge_switches(live, view, generation, now_s)
        else:
            self._judge_hosts(live, generation, now_s)

    def _judge_switches(
        self, live: LiveJob, view: View, generation: Generation, now_s: float
    ) -> None:
        if away := [n for n in view.switches if not self._links[n].is_ready]:
            self._leave(live, away, f"no progress, and {self._described(away)}")
            return
        has_links = len(view.switches) > 1
        if has_links:
            self._look_at_links()
        cut, heard, unknown = live.stalls.cut_off(live.welcomed, generation, now_s)
        asked = _asked_switches(live, view, cut)
        dead: set[str] = set()
        for switch in sorted(asked):
            here = live.welcomed if view.is_transposed else live.welcomed_at(switch)
            if here & heard:
                self._evict_cut_off(live, asked[switch], switch)
                return
            if here <= asked[switch]:
                dead.add(switch)
        if view.is_transposed and asked and not dead and cut == live.welcomed:
            # A host that is cut off reaches the switch on it, and no other; the others miss that.
            dead.add(max(sorted(asked), key=lambda switch: len(asked[switch])))
        if dead and has_links and live.stalls.lasting_s(now_s) < LINKS_S:
            return  # the trees get around a link that is found dead
        if dead:
            self._leave(live, dead, self._described(dead))
        elif not unknown and live.stalls.is_everybody(live.welcomed, generation, now_s):
            is_again = live.stalls.repair(now_s)
            # Workers that still end tensors in an older view say nothing about this one.
            avoid = view.switches if is_again and generation == view.generation else ()
            if avoid:
                self._stay_away(live, avoid, now_s)
            self._manager.change_request(live, "no worker has progress", is_abort=True, avoid=avoid)

    def _judge_hosts(self, live: LiveJob, generation: Generation, now_s: float) -> None:
        """TCP loses nothing: only members that are lost are a reason for another view."""
        workers = live.welcomed
        away = self._away(live)
        behind = {worker_id for worker_id in workers if live.switch_of(worker_id) in away}
        unreached = live.stalls.unreached(workers, generation, now_s)
        if unreached and workers - behind - unreached:
            for worker_id in sorted(unreached):
                if live.leases[worker_id].is_attached:  # else its connection says more
                    why = f"no other worker reaches host {self._host(live, worker_id)}"
                    self._manager.lose(live, live.leases[worker_id], why)
            live.stalls.calm()
        elif live.stalls.have_all_lost(workers, generation, now_s):
            what = self._described(away)
            if not away:
                what = f"the hosts of workers {_names(workers)} do not reach each other"
            if self._end_without_route(live, away, what, now_s):
                return
            if away:
                left_s = self._config.no_route_s - live.stalls.lasting_s(now_s)
                asyncio.get_running_loop().call_later(left_s, self._end_if_away, live)
            live.stalls.repair(now_s)
            self._manager.change_request(live, what, is_abort=True, avoid=away)

    def _away(self, live: LiveJob) -> set[str]:
        """Return the switches of a job's workers that are out of reach, or answer nobody."""
        switches = {live.switch_of(worker_id) for worker_id in live.welcomed}
        now_s = asyncio.get_running_loop().time()
        left = live.retreat.switches(now_s)
        return {n for n in switches if n in left or not self._links[n].is_ready}

    def _end_if_away(self, live: LiveJob) -> None:
        """End a job whose hosts did not reach each other, when its switches are still away."""
        now_s = asyncio.get_running_loop().time()
        if not live.has_ended and live.stalls.is_lasting(now_s) and (away := self._away(live)):
            self._end_without_route(live, away, self._described(away), now_s)

    def _described(self, switches: Collection[str]) -> str:
        """Return what is wrong with each of these switches."""
        words = {
            LinkState.READY: "answers no worker",
            LinkState.BACKUP: "is under another controller",
        }
        return ", ".join(
            f"switch {name} {words.get(self._links[name].state, 'is out of reach')}"
            for name in sorted(switches)
        )

    def _leave(self, live: LiveJob, switches: Collection[str], reason: str) -> None:
        """Move a job to other switches, or end it if it has had no route for too long."""
        now_s = asyncio.get_running_loop().time()
        if self._end_without_route(live, switches, reason, now_s):
            return
        self._stay_away(live, switches, now_s)
        live.stalls.repair(now_s)
        self._manager.change_request(live, reason, is_abort=True, avoid=switches)

    def _stay_away(self, live: LiveJob, switches: Collection[str], now_s: float) -> None:
        pause_s = live.retreat.begin(switches, now_s)
        asyncio.get_running_loop().call_later(pause_s, self._manager.rebalance)
        for switch in switches:
            if switch not in self._awaited and self._links[switch].is_ready:
                self._awaited.add(switch)
                self._manager.spawn(self._await_answer(switch, now_s + pause_s))

    async def _await_answer(self, switch: str, until_s: float) -> None:
        """Tell when a switch answers the controller again; not if it does so all the time.

        Then only its data path is dead, of which the controller learns nothing.
        """
        link, now_s = self._links[switch], asyncio.get_running_loop().time()
        try:
            is_mute = now_s - self._unanswered_s.get(switch, now_s) >= MUTE_S
            if not is_mute and await _answers(link, ANSWER_S):
                return
            while link.is_ready and asyncio.get_running_loop().time() < until_s:
                if await _answers(link, CHECK_S):
                    self._is_back(switch)
                    return
        finally:
            self._awaited.discard(switch)

    def _end_without_route(
        self, live: LiveJob, away: Collection[str], what: str, now_s: float
    ) -> bool:
        """Do so if the job has had no route for too long, unless some workers need none of these.

        Those behind the switches that are away are then evicted.
        """
        limit_s = self._config.no_route_s
        if live.stalls.lasting_s(now_s) < limit_s - SLACK_S:
            return False
        behind = {worker_id for worker_id in live.welcomed if live.switch_of(worker_id) in away}
        if behind and len(live.welcomed - behind) >= live.job.min_workers:
            for worker_id in sorted(behind):
                self._manager.lose(live, live.leases[worker_id], f"{what}, for {limit_s:g} s")
            live.stalls.calm()
            return True
        reason = (
            f"{what}, and no other route has carried the job's data for {limit_s:g} s; mend it and"
            " start the job again"
        )
        self._manager.end(live, reason)
        return True

    def _is_last_hope(self, live: LiveJob, cut: set[WorkerId]) -> bool:
        """Whether the job would end without these workers, and their links may yet come back.

        A burst of loss may take all of a worker's packets for a second or two.
        """
        if len(live.welcomed - cut) >= live.job.min_workers:
            return False
        return live.stalls.silent_s(cut) < self._config.no_route_s - SLACK_S

    def _evict_cut_off(self, live: LiveJob, workers: set[WorkerId], switch: str) -> None:
        """Evict workers that a switch does not answer, unless the job waits for their return."""
        if self._is_last_hope(live, workers):
            return
        for worker_id in sorted(workers):
            worker = live.leases[worker_id].worker
            place = self._links[switch].config.host_at(worker.address) or worker
            why = (
                f"cut off: switch {switch} answers other workers, but nothing comes through its"
                f" port {place.port} from or to host {self._host(live, worker_id)}; check that link"
            )
            self._manager.lose(live, live.leases[worker_id], why)
        live.stalls.calm()

    def _host(self, live: LiveJob, worker_id: WorkerId) -> str:
        worker = live.leases[worker_id].worker
        host = self._links[worker.switch].config.host_at(worker.address)
        return f"{host.name} ({worker.address})" if host is not None else worker.address

    def _check_tables(self, switch: str, now_s: float) -> None:
        """Compare a switch's tables now: a switch that lost them answers nobody."""
        link = self._links[switch]
        if not link.is_ready:
            return
        if now_s - self._checked_s.get(switch, float("-inf")) < CHECK_INTERVAL_S:
            return
        self._checked_s[switch] = now_s
        if now_s - self._unanswered_s.get(switch, float("-inf")) > WINDOW_S:  # else it is the same
            self._unanswered_s[switch] = now_s
        self._manager.spawn(self._check(link))

    async def _check(self, link: SwitchSession) -> None:
        name, problem = link.config.name, await _comparison_problem(link, CHECK_S)
        if problem is None:
            self._unanswered_s.pop(name, None)
        else:
            _LOGGER.warning("switch %s: its tables could not be compared: %r", name, problem)


def _asked_switch(live: LiveJob, view: View, worker_id: WorkerId) -> str:
    """Return the switch that a worker asks in vain; "": one of another view."""
    if not view.is_transposed:
        return live.switch_of(worker_id)
    tree_id = live.stalls.silent_tree(worker_id)
    return next((tree.root.switch for tree in view.trees if tree.tree_id == tree_id), "")


def _asked_switches(
    live: LiveJob, view: View, cut: Collection[WorkerId]
) -> dict[str, set[WorkerId]]:
    """Return by switch the workers that ask it in vain."""
    asked: dict[str, set[WorkerId]] = {}
    for worker_id in cut:
        if switch := _asked_switch(live, view, worker_id):
            asked.setdefault(switch, set()).add(worker_id)
    return asked


async def _answers(link: SwitchSession, limit_s: float) -> bool:
    """Return whether a switch lets its tables be compared within a time; if not, after it."""
    began_s = asyncio.get_running_loop().time()
    if await _comparison_problem(link, limit_s) is None:
        return True
    await asyncio.sleep(began_s + limit_s - asyncio.get_running_loop().time())
    return False


async def _comparison_problem(
    link: SwitchSession, limit_s: float
) -> ControllerError | TimeoutError | None:
    """Compare a switch's tables; return why that was not done within a time, None if it was."""
    try:
        async with asyncio.timeout(limit_s):
            await link.apply()
    except (ControllerError, TimeoutError) as exc:
        return exc
    return None


def _names(these: Collection[object]) -> str:
    return ", ".join(sorted(map(str, these)))
