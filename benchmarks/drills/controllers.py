# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Drills with two controllers: the one that leads is killed, frozen, or cut off."""

from __future__ import annotations

import itertools
import logging
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self, final
from unittest.mock import patch

import grpc

from benchmarks.drills.drill import PAUSE_S, Drill, DrillFabric, StatedOutcome
from benchmarks.drills.perform import Performance
from benchmarks.drills.watch import watch
from controller_pair import LEASE_S, ControllerPair, ControllerProcess, leaves_and_root
from job_workers import Workers
from postgres_server import postgres_server
from switchfold.controller.api.operator_client import OperatorClient
from switchfold.hostlib import credentials
from time_bound import wait_until

_MEMBERS: Final = (0, 1)
_TAKEN_OVER: Final = StatedOutcome(
    text="exact sums of workers 0, 1, no pause above 0.5 s; the other controller leads, the switch"
    " takes its writes and refuses the old one's, and both workers have joined it"
)
_TREES_TAKEN_OVER: Final = StatedOutcome(text=str(_TAKEN_OVER).replace("the switch", "each switch"))


@final
class PairRig:
    """Two controllers with one PostgreSQL database, softswitches and workers, on loopback."""

    def __init__(self, folder: Path, *, has_trees: bool) -> None:
        """`folder` is for logs."""
        self._folder = folder
        self._topology = leaves_and_root() if has_trees else None
        self._names = (f"takeover-{number}" for number in itertools.count())
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            # The processes are on loopback and have no certificates, which each call would tell.
            stack.enter_context(patch.dict(os.environ, {"SWITCHFOLD_INSECURE": "1"}))
            logger = logging.getLogger(credentials.__name__)
            stack.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.ERROR)
            server = stack.enter_context(postgres_server())
            self._pair = stack.enter_context(
                ControllerPair(self._folder, server, "drills", self._topology)
            )
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def perform(self, drill: Drill) -> Performance:
        """Let the leader fail; wait until the other has taken over, and sums are steady.

        Raises AssertionError or queue.Empty if it does not, or if the switch takes old writes.
        """
        self._pair.settle()
        old, new = self._pair.leader, self._pair.standby
        term, job = old.shown().term, next(self._names)
        with Workers(self._pair, job, len(_MEMBERS)) as workers:
            for worker in workers:
                worker.until_later(time.monotonic())
            begin_s = drill.act(old)
            try:
                measured_s = self._await_takeover(new, job, begin_s)
                seen = watch([*workers], _MEMBERS, begin_s, PAUSE_S)
                assert seen.longest_pause_s <= PAUSE_S, f"a pause of {seen.longest_pause_s:.2f} s"
                for switch in self._pair.topology.switches:
                    code, text = self._pair.write(term, switch.name)
                    assert code is grpc.StatusCode.PERMISSION_DENIED, text
                    code, text = self._pair.write(new.shown().term, switch.name)
                    assert code is grpc.StatusCode.OK, text
            finally:
                if old.is_running:
                    old.go_on()
                old.database.mend()
                old.switch.mend()
        return Performance(
            measured_s=max(measured_s, seen.since_s),
            longest_pause_s=seen.longest_pause_s,
            reason=f"term {term}, then {new.shown().term}",
        )

    def _await_takeover(self, new: ControllerProcess, job: str, begin_s: float) -> float:
        """Return when the new leader had the switch and all workers."""
        new.until("leader")
        client = OperatorClient(new.address)

        def has_all() -> bool:
            is_ready = all(switch.state == "ready" for switch in client.list_switches())
            joined = [worker.state for worker in client.show_job(job).workers]
            return is_ready and joined == ["joined"] * len(_MEMBERS)

        wait_until(has_all, lambda: f"all workers at the leader: {client.show_job(job)}")
        return time.monotonic() - begin_s


def _begins(act: Callable[[ControllerProcess], object]) -> Callable[[ControllerProcess], float]:
    def timed(leader: ControllerProcess) -> float:
        begin_s = time.monotonic()
        act(leader)
        return begin_s

    return timed


def _drill(
    name: str,
    fails: str,
    act: Callable[[ControllerProcess], object],
    *,
    has_trees: bool = False,
) -> Drill:
    return Drill(
        name=name,
        fabric=DrillFabric.CONTROLLERS_OF_TREES if has_trees else DrillFabric.CONTROLLERS,
        fails=fails,
        act=_begins(act),
        outcome=_TREES_TAKEN_OVER if has_trees else _TAKEN_OVER,
        time_s=10.0,
        why=f"the lease of the leader is {LEASE_S:g} s; workers look for another controller then",
    )


LEADER_DRILLS: Final = (
    _drill("leader killed", "the controller that leads is killed", ControllerProcess.kill),
    _drill("leader frozen", "the controller that leads is stopped", ControllerProcess.freeze),
    _drill(
        "leader cut off from the database",
        "nothing passes between the controller that leads and the database",
        lambda leader: leader.database.cut(),
    ),
    _drill(
        "leader cut off from the switch",
        "nothing passes between the controller that leads and s1",
        lambda leader: leader.switch.cut(),
    ),
    _drill(
        "leader killed, in trees",
        "the controller that leads is killed",
        ControllerProcess.kill,
        has_trees=True,
    ),
)
