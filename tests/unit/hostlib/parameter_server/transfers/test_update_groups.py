# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Updates that an idle worker adds up: sums count as all of their updates, each exactly once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from fake_groups import GroupPolicy
from fake_transfers import server, skipped, worker
from loopback import LOOPBACK
from switchfold.hostlib.errors import ConfigurationError, StaleUpdateError
from switchfold.hostlib.parameter_server.rows.optimisers import Sgd
from switchfold.hostlib.parameter_server.tables import TensorDefinition
from switchfold.hostlib.parameter_server.tables.dense import Values
from switchfold.hostlib.parameter_server.transfers import FabricWorker, PushOutcome
from time_bound import wait_until
from transfer_scene import VALUES, WAIT_S, TransferScene, values

MEMBERS = 3
AGGREGATOR = MEMBERS


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no member give its aggregator up, nor the other way round, on a busy machine."""
    transfers = "switchfold.hostlib.parameter_server.transfers"
    monkeypatch.setattr(f"{transfers}.group_path.UNREACHABLE_S", WAIT_S)
    monkeypatch.setattr(f"{transfers}.gatherer.EARLY_WAIT_S", WAIT_S)


class GroupScene(TransferScene):
    """MEMBERS workers that push, and one that gathers."""

    def __init__(self, policy: GroupPolicy, folder: Path | None = None, **options: object) -> None:
        super().__init__(policy, MEMBERS + 1, folder=folder, **options)  # type: ignore[arg-type]
        self.policy = policy
        self.aggregator = self.worker(AGGREGATOR, aggregate=True, aggregate_address=LOOPBACK)
        self.members = [self.worker(number) for number in range(MEMBERS)]
        self.fake.wait_for(worker(AGGREGATOR), "register")
        self.total: Values = np.zeros(VALUES, np.float32)

    def push(self, seed: int = 0) -> list[PushOutcome]:
        """Push an update of each member; all must be applied."""
        updates = [values(100 * seed + number) for number in range(MEMBERS)]
        pairs = zip(self.members, updates, strict=True)
        futures = [member.push(update) for member, update in pairs]
        outcomes = [future.result(WAIT_S) for future in futures]
        assert all(outcome.is_committed for outcome in outcomes)
        for update in updates:
            self.total += update
        return outcomes

    def check(self, num_commits: int, factor: float = 1.0) -> None:
        """Compare the model and its version with what was pushed."""
        got = self.members[0].get().result(WAIT_S)
        np.testing.assert_array_equal(got, np.float32(factor) * self.total)
        assert self.members[0].commits.tolist() == [num_commits]


def summed(outcomes: Sequence[PushOutcome]) -> list[bool]:
    return [outcome.parts[0].is_summed for outcome in outcomes]


def reported(scene: GroupScene) -> set[tuple[int, int]]:
    """Return the updates that the server has told of; it tells of some twice."""
    delivered = scene.fake.said(server(), "delivered")
    return {(each.worker_id, each.transfer_id) for each in delivered}


def leave_all(member: FabricWorker) -> None:
    """Give a member's groups up, as after `outcome_s`."""
    for update in list(member._groups._legs):
        member._groups.leave(update, "a test wants it")


@pytest.mark.parametrize("has_log", [False, True])
def test_a_sum_counts_as_its_updates(tmp_path: Path, has_log: bool) -> None:
    policy = GroupPolicy(MEMBERS, AGGREGATOR, factor=0.5)
    with GroupScene(policy, tmp_path if has_log else None) as scene:
        outcomes = scene.push()
        assert summed(outcomes) == [True] * MEMBERS
        assert sorted(outcome.parts[0].version for outcome in outcomes) == [1, 2, 3]
        assert [o.parts[0].delay for o in outcomes] == [o.parts[0].version - 1 for o in outcomes]
        scene.check(MEMBERS, factor=0.5)
        assert (scene.counter("summed_updates"), scene.counter("granted_updates")) == (3, 3)
        assert scene.cluster.servers[0].tables.counters["sums"] == 1
        wait_until(lambda: len(reported(scene)) == MEMBERS, "a report of each update")
        delivered = scene.fake.said(server(), "delivered")
        assert {each.worker_id for each in delivered} == {0, 1, 2}
        assert all(each.is_granted and not each.is_refused for each in delivered)
        gathered = scene.fake.wait_for(worker(AGGREGATOR), "gathered", MEMBERS)
        assert sorted(each.worker_id for each in gathered) == [0, 1, 2]
        assert scene.aggregator.gathered["sent_sums"] == 1
        for number, member in enumerate(scene.members):
            assert (member.counters["grouped_updates"], member.counters["left_updates"]) == (1, 0)
            assert not scene.fake.said(worker(number), "left")


def test_groups_of_several_servers_at_one_aggregator() -> None:
    policy = GroupPolicy(MEMBERS, AGGREGATOR)
    with GroupScene(policy, num_servers=2) as scene:
        for seed in range(5):
            for outcome in scene.push(seed):
                assert [part.is_summed for part in outcome.parts] == [True, True]
        got = scene.members[0].get().result(WAIT_S)
        np.testing.assert_array_equal(got, scene.total)
        assert scene.members[0].commits.tolist() == [5 * MEMBERS] * 2
        assert scene.aggregator.gathered["sent_sums"] == 10


def test_a_server_that_restarts_knows_the_updates_of_a_sum(tmp_path: Path) -> None:
    policy = GroupPolicy(MEMBERS, AGGREGATOR, outcome_s=2 * WAIT_S)
    with GroupScene(policy, tmp_path) as scene:
        scene.push(1)
        scene.fake.next_sequence = MEMBERS
        scene.cluster.restart(0)
        scene.check(MEMBERS)
        for member in scene.members:  # the server is to be dialled, though nothing is sent to it
            wait_until(lambda member=member: member._links[0]._link is None, "a broken link")
        scene.push(2)
        scene.check(2 * MEMBERS)
        state = scene.cluster.servers[0].tables.state
        assert [worker.num_commits for worker in state.workers] == [2, 2, 2, 0]


def test_a_sum_that_waits_at_a_server_which_restarts_comes_again(tmp_path: Path) -> None:
    """Its place is not the next one, so that nothing of it is in the log."""
    policy = GroupPolicy(MEMBERS, AGGREGATOR)
    policy.first_sequence = 1
    with GroupScene(policy, tmp_path, place_wait_s=WAIT_S) as scene:
        updates = [values(number) for number in range(MEMBERS)]
        pairs = zip(scene.members, updates, strict=True)
        futures = [member.push(update) for member, update in pairs]
        wait_until(lambda: len(reported(scene)) == MEMBERS, "a report of each update")
        scene.fake.next_sequence = 4  # its sequence begins behind the sum
        scene.cluster.restart(0)
        assert all(future.result(WAIT_S).is_committed for future in futures)
        scene.total = np.sum(updates, axis=0)
        scene.check(MEMBERS)


def test_members_of_a_lost_aggregator_send_their_updates_themselves() -> None:
    policy = GroupPolicy(MEMBERS, AGGREGATOR)
    policy.ghosts = [(MEMBERS, 999)]  # the group does not become complete
    with GroupScene(policy) as scene:
        updates = [values(number) for number in range(MEMBERS)]
        pairs = zip(scene.members, updates, strict=True)
        futures = [member.push(update) for member, update in pairs]
        wait_until(lambda: scene.aggregator.gathered["gathered_updates"] == MEMBERS, "all members")
        scene.aggregator.close()
        outcomes = [future.result(WAIT_S) for future in futures]
        assert summed(outcomes) == [False] * MEMBERS
        assert all(outcome.parts[0].is_granted for outcome in outcomes)
        scene.total = np.sum(updates, axis=0)
        scene.check(MEMBERS)
        assert scene.counter("left_updates") == MEMBERS
        assert scene.counter("early_updates") == 0
        for number in range(MEMBERS):
            (left,) = scene.fake.wait_for(worker(number), "left")
            assert left.group_id == 0


def test_an_aggregator_that_cannot_be_reached_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = "switchfold.hostlib.parameter_server.transfers.group_path"
    monkeypatch.setattr(f"{path}.UNREACHABLE_S", 0.2)
    policy = GroupPolicy(MEMBERS, AGGREGATOR)
    policy.place = (LOOPBACK, 1)
    with GroupScene(policy) as scene:
        assert summed(scene.push()) == [False] * MEMBERS
        scene.check(MEMBERS)


def test_a_grant_for_a_group_of_a_later_release_is_none() -> None:
    policy = GroupPolicy(MEMBERS, AGGREGATOR)
    policy.kind = 99
    with GroupScene(policy, grant_wait_s=0.5) as scene:
        outcomes = scene.push()
        assert not any(outcome.parts[0].is_granted for outcome in outcomes)
        scene.check(MEMBERS)


@pytest.mark.parametrize("span", [(1.0, 0.5, 8), (0.0, math.nan, 8), (0.0, 1.0, 0)])
def test_a_group_whose_sum_has_no_usable_spans_is_not_gathered(
    monkeypatch: pytest.MonkeyPatch, span: tuple[float, float, int]
) -> None:
    monkeypatch.setattr("switchfold.hostlib.parameter_server.transfers.gatherer.EARLY_WAIT_S", 0.05)
    policy = GroupPolicy(MEMBERS, AGGREGATOR)
    policy.sum_span = span
    with GroupScene(policy) as scene:
        assert summed(scene.push()) == [False] * MEMBERS
        scene.check(MEMBERS)


def test_a_missing_member_does_not_hold_up_the_others() -> None:
    """They come in a sum without it, or by themselves if they are late, too."""
    policy = GroupPolicy(MEMBERS, AGGREGATOR, gather_s=0.5)
    policy.ghosts = [(MEMBERS, 999)]
    with GroupScene(policy) as scene:
        outcomes = scene.push()
        scene.check(MEMBERS)
        assert scene.counter("summed_updates") == sum(summed(outcomes))
        assert scene.counter("left_updates") == MEMBERS - sum(summed(outcomes))


def test_a_member_that_comes_too_late_is_sent_to_the_server() -> None:
    policy = GroupPolicy(MEMBERS, AGGREGATOR, gather_s=0.0)
    with GroupScene(policy) as scene:
        outcomes = scene.push()
        scene.check(MEMBERS)
        num_summed = sum(summed(outcomes))
        assert scene.counter("summed_updates") == num_summed
        assert scene.counter("left_updates") == MEMBERS - num_summed


def test_an_aggregator_that_hears_nothing_of_a_group_denies_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("switchfold.hostlib.parameter_server.transfers.gatherer.EARLY_WAIT_S", 0.05)
    policy = GroupPolicy(MEMBERS, AGGREGATOR)
    policy.tells_aggregator = False
    with GroupScene(policy) as scene:
        assert summed(scene.push()) == [False] * MEMBERS
        scene.check(MEMBERS)
        assert scene.aggregator.gathered["unexpected_members"] == MEMBERS


@pytest.mark.parametrize("outcome_s", [0.0, 0.01, 0.03])
def test_updates_that_come_in_a_sum_and_alone_count_once(outcome_s: float) -> None:
    """Members give the sum up while it is on its path, so that either may come first."""
    policy = GroupPolicy(MEMBERS, AGGREGATOR, outcome_s=outcome_s)
    with GroupScene(policy) as scene:
        for seed in range(10):
            scene.push(seed)
        scene.check(10 * MEMBERS)
        assert scene.cluster.servers[0].tables.state.num_commits == 10 * MEMBERS


def test_a_sum_that_comes_after_its_members_have_gone_on_is_returned() -> None:
    """The aggregator has the updates of the first round, and sends them after the second."""
    policy = GroupPolicy(MEMBERS, AGGREGATOR)
    policy.ghosts = [(MEMBERS, 999)]
    with GroupScene(policy) as scene:
        aggregator = scene.aggregator._aggregator
        assert aggregator is not None
        gatherer, loop = aggregator.gatherer, aggregator._peers.loop
        for seed in range(2):
            updates = [values(100 * seed + number) for number in range(MEMBERS)]
            pairs = zip(scene.members, updates, strict=True)
            futures = [member.push(update) for member, update in pairs]
            count = MEMBERS * (seed + 1)
            wait_until(
                lambda count=count: scene.aggregator.gathered["gathered_updates"] == count,
                "all members",
            )
            for member in scene.members:
                member._loop.run(lambda member=member: leave_all(member))
            assert all(future.result(WAIT_S).is_committed for future in futures)
            scene.total += np.sum(updates, axis=0)
            policy.ghosts = [(MEMBERS, 1000)]
        for group in list(gatherer._groups.values()):  # by ghost
            loop.run(lambda group=group: gatherer._send(group))
        wait_until(lambda: scene.aggregator.gathered["sent_sums"] == 2, "both sums")
        scene.await_counter("repeated_updates", 2)
        scene.check(2 * MEMBERS)


def test_a_sum_with_an_update_that_is_too_old_is_returned() -> None:
    """Two of the three may still be applied, by themselves."""
    policy = GroupPolicy(MEMBERS, AGGREGATOR)
    with GroupScene(policy, tau_max=1) as scene:
        updates = [values(number) for number in range(MEMBERS)]
        pairs = zip(scene.members, updates, strict=True)
        futures = [member.push(update) for member, update in pairs]
        errors = [future.exception(WAIT_S) for future in futures]
        kept = [update for update, error in zip(updates, errors, strict=True) if error is None]
        assert len(kept) == 2
        assert sum(isinstance(error, StaleUpdateError) for error in errors) == 1
        scene.total = np.sum(kept, axis=0)
        scene.check(2)
        assert scene.counter("returned_sums") == 1
        assert scene.counter("stale_updates") == 1


def test_a_sum_of_a_replaced_process_is_returned() -> None:
    policy = GroupPolicy(MEMBERS, AGGREGATOR)
    policy.withheld = {2}
    with GroupScene(policy) as scene:
        updates = [values(number) for number in range(MEMBERS)]
        pairs = zip(scene.members, updates, strict=True)
        futures = [member.push(update) for member, update in pairs]
        wait_until(lambda: scene.aggregator.gathered["gathered_updates"] == 2, "two members")
        successor = scene.worker(1)  # of the second member
        policy.withheld = set()
        scene.fake.wait_for(worker(1), "register", 2)
        gatherer = scene.aggregator._aggregator
        assert gatherer is not None
        (group,) = set(gatherer.gatherer._groups.values())
        gatherer._peers.loop.run(lambda: gatherer.gatherer._send(group))
        assert futures[0].result(WAIT_S).parts[0].is_summed is False
        assert futures[1].exception(WAIT_S) is not None
        got = successor.get().result(WAIT_S)
        np.testing.assert_array_equal(got, updates[0])


def test_updates_that_a_returned_sum_had_displaced_are_sent_again() -> None:
    """While the sum waits for its place, the server has no use of the same updates alone."""
    policy = GroupPolicy(MEMBERS, AGGREGATOR)
    policy.first_sequence = 1
    with GroupScene(policy, place_wait_s=WAIT_S) as scene:
        updates = [values(number) for number in range(MEMBERS)]
        pairs = zip(scene.members, updates, strict=True)
        futures = [member.push(update) for member, update in pairs]
        wait_until(lambda: len(reported(scene)) == MEMBERS, "a report of each update")
        for member in scene.members:
            member._loop.run(lambda member=member: leave_all(member))
        scene.await_counter("repeated_updates", MEMBERS)
        scene.worker(2)  # replaces the third member's process
        scene.fake.wait_for(worker(2), "register", 2)
        scene.fake.tell(server(), skipped(0))
        for future in futures[:2]:
            assert future.result(WAIT_S).is_committed
        assert futures[2].exception(WAIT_S) is not None
        assert scene.counter("returned_sums") == 1
        scene.total = updates[0] + updates[1]
        scene.check(2)


def test_updates_of_an_optimiser_with_a_state_travel_alone() -> None:
    for momentum, is_summable in (0.0, True), (0.9, False):
        optimiser = Sgd(learning_rate=0.5, momentum=momentum)
        definition = TensorDefinition(
            name="w", num_values=VALUES, block_values=100, optimiser=optimiser
        )
        policy = GroupPolicy(99, AGGREGATOR)
        with TransferScene(policy, definition=definition) as scene:
            scene.worker(0).push(values(0))
            (asked,) = scene.fake.wait_for(worker(0), "requested")
            assert bool(asked.sum_key) is is_summable


def test_an_aggregator_needs_an_address() -> None:
    with TransferScene(GroupPolicy(99, 0)) as scene:
        tensor = scene.tensor(0)
        with pytest.raises(ConfigurationError, match="aggregate_address"):
            FabricWorker(tensor, scene.options("h0", aggregate=True))
