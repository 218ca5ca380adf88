# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What drills do: each function lets something fail and returns when the stated time begins."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from typing import Final

from finsy import Switch, SwitchOptions

from benchmarks.drills.scene import Scene
from switchfold.bmv2_topos.processes.daemons import program_files
from switchfold.controller.config import SwitchConfig
from switchfold.controller.switches.switch_call import switch_credentials
from time_bound import wait_until

Act = Callable[[Scene], float]
FLAPS: Final = 5
FLAP_S: Final = 0.3
"""How long a flapping link is down, and then up."""
HOUR_S: Final = 3600


def worker_killed(worker_id: int) -> Act:
    return lambda scene: scene.workers[worker_id].kill()


def worker_frozen(worker_id: int, seconds: float) -> Act:
    """Let a worker not run for a time; the stated time begins when it runs again."""

    def act(scene: Scene) -> float:
        scene.workers[worker_id].stop_for(seconds)
        return time.monotonic()

    return act


def worker_frozen_for_good(worker_id: int) -> Act:
    def act(scene: Scene) -> float:
        begin_s = time.monotonic()
        scene.workers[worker_id].process.send_signal(signal.SIGSTOP)
        return begin_s

    return act


def worker_joins(worker_id: int) -> Act:
    """Start another worker; the stated time begins with its process."""

    def act(scene: Scene) -> float:
        begin_s = time.monotonic()
        scene.join(worker_id)
        return begin_s

    return act


def host_cut(worker_id: int) -> Act:
    """Let the link of a worker's host carry nothing."""

    def act(scene: Scene) -> float:
        begin_s = time.monotonic()
        scene.testbed.cut_link(*scene.host_link(worker_id))
        return begin_s

    return act


def host_loses(worker_id: int, *, up: float, down: float) -> Act:
    """Let the link of a worker's host lose these shares of what it sends, and of what it gets."""

    return lambda scene: scene.rig.lose(*scene.host_link(worker_id), up=up, down=down)


def host_flaps(worker_id: int) -> Act:
    """Cut and mend the link of a host; the stated time begins when it is whole for good."""
    return lambda scene: _flap(scene, *scene.host_link(worker_id))


def uplink_cut(scene: Scene) -> float:
    """Cut the link between s1 and the root of the job's first tree."""
    root = scene.roots[0]
    begin_s = time.monotonic()
    scene.testbed.cut_link("s1", root)
    return begin_s


def uplink_loses(*, up: float, down: float) -> Act:
    """Let the link between s1 and the first root lose these shares, to the root and from it."""

    return lambda scene: scene.rig.lose("s1", scene.roots[0], up=up, down=down)


def uplink_flaps(scene: Scene) -> float:
    return _flap(scene, "s1", scene.roots[0])


def switch_killed(name: str) -> Act:
    def act(scene: Scene) -> float:
        begin_s = time.monotonic()
        scene.testbed.stop_switch(name)
        return begin_s

    return act


def switch_frozen(name: str, seconds: float) -> Act:
    """Let a switch not run for a time; the stated time begins when it runs again."""

    def act(scene: Scene) -> float:
        process = scene.rig.record_of(name)
        assert process is not None, f"{name} does not run"
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(process.pid, signal.SIGCONT)
        return time.monotonic()

    return act


def root_frozen(seconds: float) -> Act:
    """The same with the root of the job's first tree."""
    return lambda scene: switch_frozen(scene.roots[0], seconds)(scene)


def switch_clock_jumps(name: str, seconds: int) -> Act:
    """Let the wall clock of a switch jump, once its workers sum over a switch with that clock."""

    def act(scene: Scene) -> float:
        scene.rig.give_own_clock(lambda: scene.testbed.restart_switch(name))
        for worker in scene.workers.values():
            worker.until_later(time.monotonic())
        begin_s = time.monotonic()
        scene.rig.clock.jump(seconds)
        return begin_s

    return act


def switch_restarted(name: str) -> Act:
    """Kill a switch and start it again; the stated time begins when it is killed."""

    def act(scene: Scene) -> float:
        begin_s = time.monotonic()
        scene.testbed.restart_switch(name)
        return begin_s

    return act


def root_killed(scene: Scene) -> float:
    """Kill the switch that is the root of the job's first tree."""
    return switch_killed(scene.roots[0])(scene)


def root_restarted(scene: Scene) -> float:
    return switch_restarted(scene.roots[0])(scene)


def controller_killed(scene: Scene) -> float:
    begin_s = time.monotonic()
    scene.testbed.stop_controller()
    return begin_s


def controller_restarted(scene: Scene) -> float:
    begin_s = time.monotonic()
    scene.testbed.restart_controller()
    return begin_s


def controller_and_worker_killed(worker_id: int) -> Act:
    """Kill both; the stated time begins when the controller serves again."""

    def act(scene: Scene) -> float:
        scene.workers[worker_id].kill()
        scene.testbed.restart_controller()
        return time.monotonic()

    return act


def controller_killed_in_a_view_change(killed: int, held: int) -> Act:
    """Kill the controller while a view change without `killed` waits for the answer of `held`.

    The stated time begins when the controller serves again and `held` runs.
    """

    def act(scene: Scene) -> float:
        before = scene.view.generation
        scene.workers[held].process.send_signal(signal.SIGSTOP)
        scene.workers[killed].kill()
        wait_until(lambda: scene.view.generation > before, "a view change", interval_s=0.005)
        scene.testbed.stop_controller()
        scene.workers[held].process.send_signal(signal.SIGCONT)
        scene.testbed.start_controller()
        return time.monotonic()

    return act


def tables_wiped(switch: Callable[[Scene], str]) -> Act:
    """Let another client delete all tables of a switch; the stated time begins when it lets go."""

    def act(scene: Scene) -> float:
        asyncio.run(_delete_all(scene, switch(scene)))
        return time.monotonic()

    return act


def controller_clock_jumps(seconds: int, killed: int) -> Act:
    """Let the wall clock of the controller jump, then kill a worker."""

    def act(scene: Scene) -> float:
        scene.rig.give_own_clock(scene.testbed.restart_controller)
        wait_until(lambda: not scene.shown.missing_workers, "workers that are back")
        scene.rig.clock.jump(seconds)
        return scene.workers[killed].kill()

    return act


def worker_clocks_jump(seconds: int, killed: int) -> Act:
    """Let the wall clock of all workers jump, then kill one."""

    def act(scene: Scene) -> float:
        scene.rig.clock.jump(seconds)
        return scene.workers[killed].kill()

    return act


def disk_full(scene: Scene) -> float:
    begin_s = time.monotonic()
    _fill_disk(scene)
    return begin_s


def disk_full_then_worker_killed(worker_id: int, seconds: float) -> Act:
    """Kill a worker while the disk is full for a time; the stated time begins when it has room."""

    def act(scene: Scene) -> float:
        _fill_disk(scene)
        scene.workers[worker_id].kill()
        time.sleep(seconds)
        scene.rig.disk.make_room()
        return time.monotonic()

    return act


def _fill_disk(scene: Scene) -> None:
    """Fill the disk, and see that the controller cannot write its database."""
    scene.rig.disk.fill()
    error = scene.rig.operator.show_controller().database_error
    assert error, "the database can still be written"


def _flap(scene: Scene, one: str, other: str) -> float:
    for _ in range(FLAPS):
        scene.testbed.cut_link(one, other)
        time.sleep(FLAP_S)
        scene.testbed.mend_link(one, other)
        time.sleep(FLAP_S)
    return time.monotonic()


async def _delete_all(scene: Scene, name: str) -> None:
    """Become primary with a higher election id, delete what is there, and go away."""
    testbed = scene.testbed
    _, p4info = program_files(testbed.variant)
    config = SwitchConfig(
        name=name,
        address=testbed.switch_addresses[name],
        credentials=testbed.switch_operator.folder,
    )
    options = SwitchOptions(
        p4info=p4info,
        device_id=testbed.topology.switch_named(name).device_id,
        initial_election_id=20,
        channel_credentials=switch_credentials(config),
    )
    async with Switch("foreign", config.address, options) as switch:
        await switch.delete_all()
