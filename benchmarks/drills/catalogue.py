# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""All drills, with the outcome and the time that are stated for each.

Times that are not the usual 2 s are those that docs/operations.md promises.
"""

from __future__ import annotations

from typing import Final

from benchmarks.drills import failures
from benchmarks.drills.controllers import LEADER_DRILLS
from benchmarks.drills.drill import SWITCH_RESTART_S, Drill, DrillFabric, StatedOutcome, SumPath
from benchmarks.drills.hot import HOT_DRILLS

_WITHOUT_3: Final = StatedOutcome(members=(0, 1, 2))
_RESTART: Final = "the start of the switch is part of it"
_CUT_S: Final = 5.0
_CUT: Final = "1 s without progress, and reports once a second, before a worker is evicted"
_HOST_CUT: Final = "3 s without a sign of life, and 1 s to call that worker"
_TREE_S: Final = 7.0
_TREE: Final = "reports once a second; a first repair keeps the path"

WORKERS: Final = (
    Drill(
        name="worker killed",
        fails="worker 3 is killed",
        act=failures.worker_killed(3),
        outcome=_WITHOUT_3,
    ),
    Drill(
        name="worker frozen",
        fails="worker 3 is stopped for 3 s; time from its continuation",
        act=failures.worker_frozen(3, 3.0),
    ),
    Drill(
        name="worker frozen for good",
        fails="worker 3 is stopped; its lease is 6 s",
        act=failures.worker_frozen_for_good(3),
        outcome=_WITHOUT_3,
        time_s=8.0,
        why="its lease, and 2 s",
        environment={"LEASE_S": "6"},
    ),
    Drill(
        name="worker joining",
        fails="worker 3 is started, and joins a job of three",
        act=failures.worker_joins(3),
        num_workers=3,
        time_s=4.0,
        why="the start of an interpreter is part of it",
    ),
)

LINKS: Final = (
    Drill(
        name="link down",
        fails="the link of worker 3 carries nothing",
        act=failures.host_cut(3),
        outcome=StatedOutcome(
            members=(0, 1, 2), errors={3: "cut off: switch s1 answers other workers"}
        ),
        time_s=_CUT_S,
        why=_CUT,
    ),
    Drill(
        name="link down, among hosts",
        fails="the link of worker 3 carries nothing; the job runs by host allreduce",
        act=failures.host_cut(3),
        outcome=StatedOutcome(
            members=(0, 1, 2), path=SumPath.HOST, errors={3: "no other worker reaches host h4"}
        ),
        time_s=8.0,
        why=_HOST_CUT,
        environment={"SWITCHFOLD_PATH": "host"},
    ),
    Drill(
        name="link dead towards the switch",
        fails="nothing that worker 3 sends arrives",
        act=failures.host_loses(3, up=1.0, down=0.0),
        outcome=StatedOutcome(
            members=(0, 1, 2), errors={3: "cut off: switch s1 answers other workers"}
        ),
        time_s=_CUT_S,
        why=_CUT,
    ),
    Drill(
        name="link dead from the switch",
        fails="nothing that is sent to worker 3 arrives",
        act=failures.host_loses(3, up=0.0, down=1.0),
        outcome=StatedOutcome(
            members=(0, 1, 2), errors={3: "cut off: switch s1 answers other workers"}
        ),
        time_s=_CUT_S,
        why=_CUT,
    ),
    Drill(
        name="link flapping",
        fails="the link of worker 3 is down five times for 0.3 s; time from the last repair",
        act=failures.host_flaps(3),
    ),
    Drill(
        name="link losing 20 %",
        fails="the link of worker 3 loses a fifth of the frames in both directions",
        act=failures.host_loses(3, up=0.2, down=0.2),
        outcome=StatedOutcome(pause_s=2.0),
    ),
)

SWITCHES: Final = (
    Drill(
        name="switch restarted",
        fails="s1 is killed and started again",
        act=failures.switch_restarted("s1"),
        time_s=SWITCH_RESTART_S,
        why=_RESTART,
    ),
    Drill(
        name="switch frozen",
        fails="s1 is stopped for 3 s; time from its continuation",
        act=failures.switch_frozen("s1", 3.0),
    ),
    Drill(
        name="switch's clock jumps ahead",
        fails="the wall clock of s1 jumps by 1 h",
        act=failures.switch_clock_jumps("s1", failures.HOUR_S),
    ),
    Drill(
        name="switch's clock jumps back",
        fails="the wall clock of s1 jumps by -1 h",
        act=failures.switch_clock_jumps("s1", -failures.HOUR_S),
        not_on={"bmv2": "BMv2's queues wait by the wall clock, and stand still for the hour"},
    ),
    Drill(
        name="switch gone, hosts have another route",
        fails="s1 is killed; the hosts have a second network",
        act=failures.switch_killed("s1"),
        outcome=StatedOutcome(path=SumPath.HOST),
        time_s=_TREE_S,
        why=_TREE,
        has_back_network=True,
    ),
    Drill(
        name="switch gone, no other route",
        fails="s1 is killed",
        act=failures.switch_killed("s1"),
        outcome=StatedOutcome(
            members=(), errors=dict.fromkeys(range(4), "switch s1 is out of reach, and no other")
        ),
        time_s=10.0,
        why="8 s for the switch to come back (`no_route_s`), and 2 s",
    ),
    Drill(
        name="tables wiped",
        fails="another P4Runtime client deletes all tables of s1; time from its leaving",
        act=failures.tables_wiped(lambda _: "s1"),
        time_s=5.0,
        why="the controller becomes primary again, and compares the tables",
    ),
)

CONTROLLER: Final = (
    Drill(
        name="controller killed",
        fails="the controller is killed",
        act=failures.controller_killed,
    ),
    Drill(
        name="controller restarted",
        fails="the controller is killed and started again",
        act=failures.controller_restarted,
    ),
    Drill(
        name="controller killed during a view change",
        fails="worker 3 is killed; the controller is killed while the change waits for worker 0,"
        " and started again; time from then on",
        act=failures.controller_killed_in_a_view_change(killed=3, held=0),
        outcome=_WITHOUT_3,
        time_s=5.0,
        why="living workers get 2 s to come back before a missed one is given up",
    ),
    Drill(
        name="controller and worker killed",
        fails="worker 3 and the controller are killed together; time from the controller's restart",
        act=failures.controller_and_worker_killed(3),
        outcome=_WITHOUT_3,
        time_s=5.0,
        why="living workers get 2 s to come back before a missed one is given up",
    ),
    Drill(
        name="controller's clock jumps ahead",
        fails="the wall clock of the controller jumps by 1 h, and worker 3 is killed",
        act=failures.controller_clock_jumps(failures.HOUR_S, killed=3),
        outcome=_WITHOUT_3,
    ),
    Drill(
        name="controller's clock jumps back",
        fails="the wall clock of the controller jumps by -1 h, and worker 3 is killed",
        act=failures.controller_clock_jumps(-failures.HOUR_S, killed=3),
        outcome=_WITHOUT_3,
    ),
    Drill(
        name="workers' clock jumps",
        fails="the wall clock of all workers jumps by -1 h, and worker 3 is killed",
        act=failures.worker_clocks_jump(-failures.HOUR_S, killed=3),
        outcome=_WITHOUT_3,
        have_own_clock=True,
    ),
    Drill(
        name="disk full",
        fails="the disk of the controller's database is full",
        act=failures.disk_full,
    ),
    Drill(
        name="disk full, worker killed",
        fails="worker 3 is killed while that disk is full for 4 s; time from when it has room",
        act=failures.disk_full_then_worker_killed(3, 4.0),
        outcome=_WITHOUT_3,
    ),
)

TREES: Final = (
    Drill(
        name="worker killed, in trees",
        fabric=DrillFabric.TWO_TREES,
        fails="worker 3 is killed",
        act=failures.worker_killed(3),
        outcome=_WITHOUT_3,
    ),
    Drill(
        name="leaf restarted",
        fabric=DrillFabric.TWO_TREES,
        fails="leaf s2 is killed and started again",
        act=failures.switch_restarted("s2"),
        time_s=SWITCH_RESTART_S,
        why=_RESTART,
    ),
    Drill(
        name="leaf gone",
        fabric=DrillFabric.TWO_TREES,
        fails="leaf s2 of workers 2 and 3 is killed",
        act=failures.switch_killed("s2"),
        outcome=StatedOutcome(members=(0, 1)),
        time_s=11.0,
        why="1 s without progress before workers report, 8 s for the switch to come back"
        " (`no_route_s`), and 2 s",
    ),
    Drill(
        name="leaf gone, hosts have another route",
        fabric=DrillFabric.TWO_TREES,
        fails="leaf s2 is killed; the hosts have a second network",
        act=failures.switch_killed("s2"),
        outcome=StatedOutcome(path=SumPath.HOST),
        time_s=_TREE_S,
        why=_TREE,
        has_back_network=True,
    ),
    Drill(
        name="spine restarted",
        fabric=DrillFabric.TWO_TREES,
        fails="the root of one of two trees is killed and started again",
        act=failures.root_restarted,
        time_s=SWITCH_RESTART_S,
        why=_RESTART,
    ),
    Drill(
        name="spine gone",
        fabric=DrillFabric.TWO_TREES,
        fails="the root of one of two trees is killed; the other spine is left",
        act=failures.root_killed,
        time_s=_TREE_S,
        why=_TREE,
    ),
    Drill(
        name="spine frozen",
        fabric=DrillFabric.TWO_TREES,
        fails="the root of one of two trees is stopped for 3 s; time from its continuation",
        act=failures.root_frozen(3.0),
    ),
    Drill(
        name="uplink down",
        fabric=DrillFabric.TWO_TREES,
        fails="the link of s1 to the root of one of two trees carries nothing",
        act=failures.uplink_cut,
        time_s=_TREE_S,
        why=_TREE,
    ),
    Drill(
        name="uplink dead upwards",
        fabric=DrillFabric.TWO_TREES,
        fails="nothing that s1 sends to that root arrives",
        act=failures.uplink_loses(up=1.0, down=0.0),
        time_s=_TREE_S,
        why=_TREE,
    ),
    Drill(
        name="uplink dead downwards",
        fabric=DrillFabric.TWO_TREES,
        fails="nothing that that root sends to s1 arrives",
        act=failures.uplink_loses(up=0.0, down=1.0),
        time_s=_TREE_S,
        why=_TREE,
    ),
    Drill(
        name="uplink flapping",
        fabric=DrillFabric.TWO_TREES,
        fails="that link is down five times for 0.3 s; time from the last repair",
        act=failures.uplink_flaps,
    ),
    Drill(
        name="uplink losing 20 %",
        fabric=DrillFabric.TWO_TREES,
        fails="that link loses a fifth of the frames in both directions",
        act=failures.uplink_loses(up=0.2, down=0.2),
        outcome=StatedOutcome(pause_s=2.0),
    ),
    Drill(
        name="controller restarted, in trees",
        fabric=DrillFabric.TWO_TREES,
        fails="the controller is killed and started again",
        act=failures.controller_restarted,
    ),
    Drill(
        name="tables of a spine wiped",
        fabric=DrillFabric.TWO_TREES,
        fails="another client deletes all tables of a root; time from its leaving",
        act=failures.tables_wiped(lambda scene: scene.roots[0]),
        time_s=5.0,
        why="the controller becomes primary again, and compares the tables",
    ),
    Drill(
        name="root restarted",
        fabric=DrillFabric.ONE_TREE,
        fails="the root of the only tree is killed and started again",
        act=failures.root_restarted,
        time_s=SWITCH_RESTART_S,
        why=_RESTART,
    ),
    Drill(
        name="root gone",
        fabric=DrillFabric.ONE_TREE,
        fails="the root of the only tree is killed; the other spine is left",
        act=failures.root_killed,
        time_s=_TREE_S,
        why=_TREE,
    ),
)

DRILLS: Final = (*WORKERS, *LINKS, *SWITCHES, *CONTROLLER, *TREES, *HOT_DRILLS, *LEADER_DRILLS)
