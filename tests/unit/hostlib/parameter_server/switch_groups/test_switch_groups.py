# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Updates in switch groups at a real server: each counts once, whatever fails."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from group_scene import VALUES, WAIT_S, GroupScene, bounded, integer_sum
from loopback import LOOPBACK
from switchfold.hostlib.control.stations.station import GrantedSpan
from switchfold.hostlib.errors import ConfigurationError, PortTakenError, StaleUpdateError
from switchfold.hostlib.parameter_server.rows import Sgd
from switchfold.hostlib.parameter_server.tables import TensorDefinition
from switchfold.hostlib.slots.wire import Operation
from time_bound import wait_until


def test_updates_of_all_workers_come_as_one_sum() -> None:
    with GroupScene() as scene:
        scene.wait_for_groups()
        for step in range(3):
            futures = scene.push({number: 10 * step + number for number in range(3)})
            assert scene.outcomes(futures) == [True] * 3
        scene.check()
        assert scene.count("groups") == 3
        assert scene.count("grouped_updates") == 9
        # 3,000 values in 32 lanes: what the server gets does not grow with the members.
        assert scene.count("group_packets") == 3 * 94
        versions = sorted(future.result().parts[0].version for future in futures.values())
        assert versions == [7, 8, 9]


def test_a_sum_is_that_of_the_members_integers_to_the_bit() -> None:
    with GroupScene(2) as scene:
        scene.wait_for_groups()
        rng = np.random.default_rng(1)
        updates = [
            (rng.standard_normal(VALUES) * np.exp2(rng.integers(-30, 30, VALUES))).astype(
                np.float32
            )
            for _ in range(2)
        ]
        futures = [
            worker.push(update) for worker, update in zip(scene.workers, updates, strict=True)
        ]
        assert all(future.result(WAIT_S).parts[0].is_summed for future in futures)
        model = scene.workers[0].get().result(WAIT_S)
        assert np.array_equal(model, integer_sum(updates))


def test_a_group_has_those_who_have_come() -> None:
    with GroupScene() as scene:
        scene.wait_for_groups()
        for members, are_summed in (((0, 2), True), ((1,), False), ((1, 2), True)):
            futures = scene.push({number: 10 + number for number in members})
            scene.gather(len(members))
            assert scene.outcomes(futures) == [are_summed] * len(members)
        scene.check()
        assert scene.count("groups") == 2
        assert scene.server.updates.counters["granted_updates"] == 5


def test_many_updates_of_a_worker_go_one_after_the_other() -> None:
    with GroupScene(2) as scene:
        scene.wait_for_groups()
        pushes = [scene.push({0: step, 1: 100 + step}) for step in range(8)]
        for futures in pushes:
            assert scene.outcomes(futures) == [True, True]
        scene.check()
        assert scene.count("groups") == 8


@pytest.mark.parametrize("seed", [1, 2])
def test_a_bad_network_loses_and_doubles_nothing(seed: int) -> None:
    with GroupScene() as scene:
        scene.wait_for_groups()
        scene.switch.loss = scene.switch.duplication = scene.switch.reordering = 0.05
        for step in range(4):
            futures = scene.push({n: 100 * seed + 10 * step + n for n in range(3)})
            assert scene.outcomes(futures) == [True] * 3
        scene.check()


def test_a_member_that_ends_in_a_group_gives_it_up_and_the_others_send_by_themselves() -> None:
    with GroupScene() as scene:
        scene.wait_for_groups()
        # Nothing of member 2 reaches the switch: the group waits for it.
        scene.switch.drop = lambda packet, to: to is None and packet["header"]["worker_id"] == 2
        futures = scene.push({0: 1, 1: 2})
        lost = scene.workers[2].push(np.ones(VALUES, np.float32))
        scene.switch.wait(lambda: scene.switch.passed["aggregate_add"] > 10)
        scene.workers[2].close()
        scene.workers[2]._tensor.client.close()
        assert lost.exception(WAIT_S) is not None
        assert scene.outcomes(futures) == [False, False]
        assert scene.count("failed_groups") == 1
        scene.workers[2].counters["pushes"] = 0
        scene.check()
        # The others have groups without it.
        assert scene.outcomes(scene.push({0: 3, 1: 4})) == [True, True]
        scene.check()


def test_a_member_that_is_silent_gives_its_group_up_after_a_while() -> None:
    with GroupScene(give_up_s=0.5) as scene:
        scene.wait_for_groups()
        scene.switch.drop = lambda packet, to: to is None and packet["header"]["worker_id"] == 2
        assert scene.outcomes(scene.push({0: 1, 1: 2, 2: 3})) == [False] * 3
        assert scene.count("failed_groups") == 1
        scene.check()
        scene.be_patient()
        scene.switch.drop = None
        scene.wait_for_groups()
        assert scene.outcomes(scene.push({0: 4, 1: 5, 2: 6})) == [True] * 3
        scene.check()


def test_a_switch_that_loses_its_registers_adds_up_again() -> None:
    definition = TensorDefinition(name="w", num_values=20_000, block_values=100)
    with GroupScene(definition=definition) as scene:
        scene.wait_for_groups()
        switch = scene.switch
        futures = scene.push({0: 1, 1: 2, 2: 3})
        switch.wait(lambda: switch.passed["to_servers"] > 200)
        switch.restart()
        assert scene.outcomes(futures) == [True] * 3
        scene.check()


def test_a_switch_that_is_gone_gives_groups_up_until_it_answers() -> None:
    with GroupScene(give_up_s=0.5) as scene:
        scene.wait_for_groups()
        scene.switch.stop()
        assert scene.outcomes(scene.push({0: 1, 1: 2, 2: 3})) == [False] * 3
        futures = scene.push({0: 4})
        scene.gather(1)
        assert scene.outcomes(futures) == [False]  # and nobody waits for a group
        assert scene.count("failed_groups") == 1
        scene.be_patient()
        scene.switch.restart()
        scene.wait_for_groups()
        assert scene.outcomes(scene.push({0: 5, 1: 6, 2: 7})) == [True] * 3
        scene.check()


def stop_within_group(scene: GroupScene) -> None:
    """Lose all packets once 100 more sums have come, so that the next group does not end."""
    passed = scene.switch.passed
    last = passed["to_servers"] + 100
    scene.switch.drop = lambda packet, to: passed["to_servers"] > last


@pytest.mark.parametrize("has_log", [True, False])
def test_a_connection_that_breaks_in_a_group_doubles_nothing(has_log: bool, tmp_path: Path) -> None:
    definition = TensorDefinition(name="w", num_values=20_000, block_values=100)
    folder = tmp_path if has_log else None
    with GroupScene(folder=folder, definition=definition) as scene:
        scene.wait_for_groups()
        switch = scene.switch
        stop_within_group(scene)
        futures = scene.push({0: 1, 1: 2, 2: 3})
        switch.wait(lambda: switch.passed["lost"] > 0)
        link = scene.workers[1]._links[0]
        scene.workers[1]._loop.run(lambda: link._link._connection._socket.shutdown(2))
        switch.drop = None
        scene.outcomes(futures)
        scene.check()
        scene.wait_for_groups()
        assert scene.outcomes(scene.push({0: 4, 1: 5, 2: 6})) == [True] * 3
        scene.check()


def test_a_server_that_comes_back_counts_what_was_in_a_group_once(tmp_path: Path) -> None:
    definition = TensorDefinition(name="w", num_values=20_000, block_values=100)
    with GroupScene(folder=tmp_path, definition=definition) as scene:
        scene.wait_for_groups()
        switch = scene.switch
        assert scene.outcomes(scene.push({0: 1, 1: 2, 2: 3})) == [True] * 3
        stop_within_group(scene)
        futures = scene.push({0: 4, 1: 5, 2: 6})
        switch.wait(lambda: switch.passed["lost"] > 0)
        scene.restart()
        switch.drop = None
        scene.outcomes(futures)
        scene.check()
        scene.wait_for_groups()
        assert scene.outcomes(scene.push({0: 7, 1: 8, 2: 9})) == [True] * 3
        scene.check()
        scene.restart()  # and the log says the same
        scene.check()


def test_a_view_change_gives_a_group_up() -> None:
    with GroupScene() as scene:
        scene.wait_for_groups()
        switch = scene.switch
        switch.drop = lambda packet, to: to is None and packet["header"]["worker_id"] == 2
        futures = scene.push({0: 1, 1: 2, 2: 3})
        switch.wait(lambda: switch.passed["aggregate_add"] > 10)
        scene.server.loop.run(scene.link.begin_view)
        assert scene.outcomes(futures) == [False] * 3
        switch.drop = None
        scene.wait_for_groups()
        assert scene.outcomes(scene.push({0: 4, 1: 5, 2: 6})) == [True] * 3
        scene.check()


def test_workers_at_other_switches_send_by_themselves() -> None:
    with GroupScene() as scene:
        scene.wait_for_groups()
        scene.link.elsewhere = {1}
        scene.server.loop.run(scene.link.begin_view)
        wait_until(lambda: not scene.workers[1]._links[0].has_switch_groups, "it has groups")
        scene.wait_for_groups([0, 2])
        assert scene.outcomes(scene.push({0: 1, 1: 2, 2: 3})) == [True, False, True]
        scene.check()


def test_a_table_whose_optimiser_has_a_state_has_no_groups() -> None:
    optimiser = Sgd(learning_rate=0.5, momentum=0.9)
    definition = TensorDefinition(
        name="w", num_values=VALUES, block_values=100, optimiser=optimiser
    )
    with GroupScene(definition=definition) as scene:
        scene.wait_for_groups()
        assert scene.outcomes(scene.push({0: 1, 1: 2, 2: 3})) == [False] * 3
        assert scene.count("groups") == 0
        assert scene.server.tables.state.num_commits == 3


def test_members_keep_to_the_times_and_rates_of_their_grants() -> None:
    """12 kB at 160 kbit/s take 0.6 s; a bucket of 0.1 s may leave at once."""
    with GroupScene() as scene:
        scene.wait_for_groups()
        scene.scheduler.spans = (GrantedSpan(0.3, 0.9, 160_000),)
        began_s = time.monotonic()
        futures = scene.push({0: 1, 1: 2, 2: 3})
        assert scene.outcomes(futures) == [True] * 3
        assert time.monotonic() - began_s > 0.3 + 0.5 - 0.1
        scene.check()


def test_members_scale_their_updates_before_the_sum() -> None:
    with GroupScene() as scene:
        scene.wait_for_groups()
        scene.scheduler.factor = 0.5
        assert scene.outcomes(scene.push({0: 1, 1: 2, 2: 3})) == [True] * 3
        scene.total /= 2
        scene.check()


def test_a_group_goes_on_without_a_member_that_does_not_join() -> None:
    with GroupScene() as scene:
        scene.wait_for_groups()
        link, groups = scene.workers[1]._links[0], scene.server.groups.groups
        # What worker 1 says to join is lost on its path, as if it were stopped.
        link._groups._send = lambda frame: None
        futures = scene.push({0: 1, 1: 2, 2: 3})
        have_joined = threading.Event()

        def look() -> None:
            for group in groups._planned._groups.values():
                if len(group.joined) == 2:
                    group.gather_until_s = time.monotonic() + 0.1
                    have_joined.set()
            if have_joined.is_set():
                groups._consider()
            else:
                scene.server.loop.call_later(0.01, look)

        scene.server.loop.run(look)
        assert have_joined.wait(WAIT_S)
        assert [futures[n].result(WAIT_S).parts[0].is_summed for n in (0, 2)] == [True, True]
        link._groups._send = link._send_frame
        scene.workers[1]._loop.run(lambda: link._link._connection._socket.shutdown(2))
        assert not futures[1].result(WAIT_S).parts[0].is_summed
        assert [left.transfer_id for left in scene.scheduler.left] == [1]
        scene.check()


def test_no_packet_of_a_member_leaves_before_the_group_is_complete() -> None:
    with GroupScene() as scene:
        scene.wait_for_groups()
        futures = scene.push({0: 1})
        scene.gather(1)
        assert scene.outcomes(futures) == [False]
        assert scene.switch.passed[Operation.AGGREGATE_ADD.name.lower()] == 0
        scene.check()


def test_a_sum_has_the_places_of_its_members() -> None:
    with GroupScene() as scene:
        scene.wait_for_groups()
        futures = scene.push({0: 1, 1: 2, 2: 3})
        assert scene.outcomes(futures) == [True] * 3
        assert all(future.result().parts[0].is_granted for future in futures.values())
        assert scene.server.updates._order.next == 3
        assert scene.server.updates.counters["granted_updates"] == 3
        assert scene.scheduler._open == {}  # the server has reported each
        scene.check()


def test_updates_that_are_too_old_come_by_themselves_and_are_refused() -> None:
    with GroupScene(2, transfers=bounded(1)) as scene:
        scene.wait_for_groups()
        assert scene.outcomes(scene.push({0: 1, 1: 2})) == [True, True]
        # Both are of version 0, and the model has version 2: the sum is of no effect.
        late = [worker.push(np.ones(VALUES, np.float32)) for worker in scene.workers]
        assert all(isinstance(each.exception(WAIT_S), StaleUpdateError) for each in late)
        assert scene.server.updates.counters["returned_sums"] == 1
        for worker in scene.workers:
            worker.counters["pushes"] -= 1
        scene.check()


def test_groups_need_a_scheduler() -> None:
    with pytest.raises(ConfigurationError, match="granted by a scheduler of updates"):
        GroupScene(transfers=None)


def test_a_port_that_is_taken_ends_the_server_and_its_threads() -> None:
    before = set(threading.enumerate())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind((LOOPBACK, 0))
        port = taken.getsockname()[1]
        with pytest.raises(PortTakenError):
            GroupScene(udp_port=port, transfers=bounded(1))
    wait_until(lambda: set(threading.enumerate()) <= before, "threads are left")
