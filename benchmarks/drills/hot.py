# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Drills of parameter servers with hot rows and a log: workers push while something is killed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self, final

from benchmarks.drills.drill import SWITCH_RESTART_S, Drill, DrillFabric, StatedOutcome
from benchmarks.drills.perform import Performance
from benchmarks.drills.small_disk import SmallDisk
from hot_drill import HotDrill, PushLoad, Victim, drill_testbed
from switchfold.bmv2_topos import single_switch
from switchfold.bmv2_topos.processes.daemons import Target

NUM_WORKERS: Final = 3
NUM_SERVERS: Final = 2
LOADS: Final[Mapping[Target, PushLoad]] = {
    "softswitch": PushLoad(),
    "bmv2": PushLoad(most_open=2, pushes_per_s=2),
}
"""BMv2 gets half of what it can forward (11 pushes a second of all workers, measured): with more,
times would be those of its queues, and of processes that compete with it for the processor."""
_CALM_STRETCHES: Final = 3
"""The longest counts: they differ without any failure."""
_LOG_MEBIBYTES: Final = 256
_FULL_S: Final = 4.0
_COUNTED: Final = StatedOutcome(
    text="every push of workers 0, 1, 2 counts once, and more are confirmed"
)


@final
class HotRig:
    """Workers and servers on hosts around one switch, for several drills."""

    def __init__(self, target: Target, folder: Path) -> None:
        """`folder` is for logs and counts."""
        name = f"drill{os.getpid()}-hot"
        self._receipts = LOADS[target].most_open + 1
        """More than can be of pushes from before."""
        self._testbed = drill_testbed(single_switch(NUM_WORKERS + NUM_SERVERS), name, target)
        self.disk = SmallDisk(folder / "disk", _LOG_MEBIBYTES)
        self.hot = HotDrill(
            self._testbed,
            folder,
            num_workers=NUM_WORKERS,
            num_servers=NUM_SERVERS,
            hot_keys=60,
            logs=self.disk.folder,
            load=LOADS[target],
        )
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.disk)
            self._testbed.up()
            stack.callback(self._testbed.down)
            stack.enter_context(self.hot)
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
        """Kill what the drill names, once hot rows are in use; wait until every worker goes on."""
        self.hot.await_hot_rows()
        calm_s = max(self._progress_s() for _ in range(_CALM_STRETCHES))
        print(
            f"  + {calm_s:.2f} s: what {self._receipts} pushes of each worker have just taken,"
            f" the longest of {_CALM_STRETCHES} times",
            flush=True,
        )
        begin_s = drill.act(self)
        self._progress_s()
        measured_s = time.monotonic() - begin_s
        return Performance(measured_s=measured_s, longest_pause_s=0.0, reason="", calm_s=calm_s)

    def _progress_s(self) -> float:
        """Wait for receipts that cannot all be of pushes from before; return how long it took."""
        begin_s = time.monotonic()
        self.hot.await_progress(self._receipts)
        return time.monotonic() - begin_s

    def check(self) -> None:
        """Let the workers end; AssertionError unless servers have each push once."""
        self.hot.check()


def _killed(victim: Victim, number: int = 0) -> Callable[[HotRig], float]:
    def act(rig: HotRig) -> float:
        begin_s = time.monotonic()
        rig.hot.kill(victim, number)
        return begin_s

    return act


def _log_disk_full(rig: HotRig) -> float:
    """Fill the disk for a time; the stated time begins when it has room.

    Pushes by TCP are refused meanwhile, those by the switch wait.
    """
    rig.disk.fill()
    time.sleep(_FULL_S)
    rig.disk.make_room()
    return time.monotonic()


HOT_DRILLS: Final = (
    Drill(
        name="parameter server restarted",
        fabric=DrillFabric.SERVERS,
        fails="server 0, which has a log and hot rows, is killed and started again",
        act=_killed(Victim.SERVER),
        outcome=_COUNTED,
        time_s=SWITCH_RESTART_S,
        why="the start of the server, and reading its log, are part of it",
    ),
    Drill(
        name="worker with hot rows restarted",
        fabric=DrillFabric.SERVERS,
        fails="worker 2 is killed and started again",
        act=_killed(Victim.WORKER, 2),
        outcome=_COUNTED,
        time_s=SWITCH_RESTART_S,
        why="the start of the worker is part of it",
    ),
    Drill(
        name="switch with hot rows restarted",
        fabric=DrillFabric.SERVERS,
        fails="s1 is killed and started again",
        act=_killed(Victim.SWITCH),
        outcome=_COUNTED,
        time_s=SWITCH_RESTART_S,
        why="the start of the switch is part of it",
    ),
    Drill(
        name="controller restarted, with hot rows",
        fabric=DrillFabric.SERVERS,
        fails="the controller is killed and started again",
        act=_killed(Victim.CONTROLLER),
        outcome=_COUNTED,
        time_s=SWITCH_RESTART_S,
        why="the start of the controller is part of it",
    ),
    Drill(
        name="disk of the servers' logs full",
        fabric=DrillFabric.SERVERS,
        fails="the disk is full for 4 s; time from when it has room",
        act=_log_disk_full,
        outcome=_COUNTED,
    ),
)
