# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Aggregation groups: acceptance numbers, the gather rule, switches, and the best of all plans."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import pytest

from switchfold.controller.scheduler.errors import InvalidTransferError
from switchfold.controller.scheduler.grouping import AggregationPlaces, BatchPlan, plan_groups
from switchfold.controller.scheduler.network import ResidualNetwork, TransferNetwork
from switchfold.controller.scheduler.ordering import order_transfers
from switchfold.controller.scheduler.planning.alike_hosts import AlikeHosts
from switchfold.controller.scheduler.planning.switch_adding import SwitchAdding
from switchfold.controller.scheduler.residual_rate import RateSpan
from switchfold.controller.scheduler.transfers import TransferRequest
from transfer_cases import SERVER, UPDATE_BYTES, push, star

MEGABYTE = 1_000_000
NOWHERE = AggregationPlaces()


def plan(
    network: TransferNetwork,
    requests: Sequence[TransferRequest],
    places: AggregationPlaces,
    num_direct: int | None = None,
) -> BatchPlan:
    residual = ResidualNetwork(network)
    ordered, _ = order_transfers(residual.fork(), requests, 0.0)
    return plan_groups(
        residual, [each.request for each in ordered], 0.0, places, num_direct=num_direct
    )


def shape(found: BatchPlan) -> list[int]:
    """Members of each message to the server; 1 is a direct one."""
    return [1] * len(found.direct) + [len(group.members) for group in found.groups]


def mean_s(found: BatchPlan) -> float:
    return sum(found.commits_s.values()) / len(found.commits_s)


def ingress_bytes(found: BatchPlan) -> int:
    """Bytes into the server, by what is reserved on its link."""
    link = f"s1>{SERVER}"
    spans = [each.spans for each in (*found.direct, *found.groups) if link in each.links]
    return round(sum((s.end_s - s.start_s) * s.rate_bits_per_s for x in spans for s in x) / 8)


SIX = [push(n) for n in range(1, 7)]
IDLE: dict[str, int | tuple[int, int]] = {"a1": 100, "a2": 100}


def test_without_places_all_go_directly() -> None:
    found = plan(star(6), SIX, NOWHERE)
    assert shape(found) == [1] * 6
    assert mean_s(found) == pytest.approx(3.5)
    assert max(found.commits_s.values()) == pytest.approx(6.0)
    assert ingress_bytes(found) == 6 * UPDATE_BYTES


def test_one_aggregator_gathers_three_of_six() -> None:
    found = plan(star(6, others=IDLE), SIX, AggregationPlaces(hosts=["a1"]))
    assert shape(found) == [1, 1, 1, 3]
    assert mean_s(found) == pytest.approx(3.0)
    assert max(found.commits_s.values()) == pytest.approx(4.0)
    assert ingress_bytes(found) == 4 * UPDATE_BYTES
    assert found.groups[0].gathered_s == pytest.approx(3.0)


def test_two_aggregators_gather_two_each() -> None:
    found = plan(star(6, others=IDLE), SIX, AggregationPlaces(hosts=["a2", "a1"]))
    assert shape(found) == [1, 1, 2, 2]
    assert mean_s(found) == pytest.approx(17 / 6)
    assert max(found.commits_s.values()) == pytest.approx(4.0)


def test_group_ends_where_gathering_would_outlast_the_server_link() -> None:
    network = star(6, others={"a1": (100, 70)})
    found = plan(network, SIX, AggregationPlaces(hosts=["a1"]), num_direct=3)
    assert [len(group.members) for group in found.groups] == [2]
    assert found.groups[0].gathered_s == pytest.approx(2 * 10 / 7)
    assert len(found.direct) == 4


def test_host_that_waits_to_push_and_the_server_gather_nothing() -> None:
    found = plan(star(6), SIX, AggregationPlaces(hosts=["h6", SERVER]))
    assert found.groups == ()


def test_switch_adds_what_passes() -> None:
    below = frozenset(f"h{n}" for n in range(1, 7))
    found = plan(star(6), SIX, AggregationPlaces(switches={"s1": below}))
    assert shape(found) == [6]
    (group,) = found.groups
    assert group.is_switch
    assert group.aggregator == "s1"
    assert group.end_s == pytest.approx(1.0)
    assert ingress_bytes(found) == UPDATE_BYTES
    assert set(group.links) == {*(f"h{n}>s1" for n in range(1, 7)), f"s1>{SERVER}"}


def test_slow_worker_is_no_member_of_a_switch_group() -> None:
    network = star(4, others={"h4": 10})
    below = frozenset(f"h{n}" for n in range(1, 5))
    found = plan(network, SIX[:4], AggregationPlaces(switches={"s1": below}))
    assert [len(group.members) for group in found.groups] == [3]
    assert [each.request.transfer_id for each in found.direct] == [4]
    assert found.commits_s[4] == pytest.approx(10.0 + 1.0)


@pytest.mark.parametrize(("slow", "members"), [(25, 4), (10, 3)])
def test_with_a_join_ratio_a_slower_worker_is_a_member(slow: int, members: int) -> None:
    """At 25 Mbit/s: 4 times 4 s, instead of 3 times 1 s and 5 s; at 10 Mbit/s, 4 times 10 s."""
    network = star(4, others={"h4": slow})
    below = frozenset(f"h{n}" for n in range(1, 5))
    adding = SwitchAdding(SIX[:4], 5.0, {"s1": below}, 2.5)
    found = adding.best_at("s1", ResidualNetwork(network))
    assert found is not None
    assert len(found.legs) == members


def test_two_workers_of_one_host_are_not_added_in_one_switch_group() -> None:
    requests = [push(1), push(2, worker="h1"), push(3, worker="h3")]
    found = plan(star(3), requests, AggregationPlaces(switches={"s1": frozenset({"h1", "h3"})}))
    for group in found.groups:
        workers = [member.request.worker for member in group.members]
        assert len(set(workers)) == len(workers)


def test_switch_group_has_at_most_so_many_members() -> None:
    below = frozenset(f"h{n}" for n in range(1, 7))
    places = AggregationPlaces(switches={"s1": below}, most_members=4)
    assert shape(plan(star(6), SIX, places)) == [4, 2]


def test_groups_are_consecutive_in_commit_order() -> None:
    chance = random.Random(3)
    for _ in range(20):
        rates: dict[str, int | tuple[int, int]] = {
            f"h{n}": chance.choice([25, 50, 100]) for n in range(1, 8)
        }
        requests = [push(n, size_bytes=chance.randint(2, 30) * MEGABYTE) for n in range(1, 8)]
        network = star(0, others=rates | IDLE)
        residual = ResidualNetwork(network)
        ordered, _ = order_transfers(residual.fork(), requests, 0.0)
        order = [each.request for each in ordered]
        found = plan_groups(residual, order, 0.0, AggregationPlaces(hosts=["a1", "a2"]))
        assert list(found.commits_s) == [request.transfer_id for request in order]
        commits = list(found.commits_s.values())
        assert commits == sorted(commits)
        for group in found.groups:
            at = [order.index(member.request) for member in group.members]
            assert at == list(range(at[0], at[0] + len(at)))
            # Gathering is hidden behind the messages that come before.
            assert group.gathered_s <= commits[at[0] - 1] + 1e-9


def test_hosts_are_alike_if_only_their_own_links_differ() -> None:
    racks = {"a1": "r1", "a2": "r1", "a3": "r2"}

    def find_route(sender: str, receiver: str) -> tuple[str, ...]:
        if receiver == SERVER:
            up = (f"{sender}>{racks[sender]}",) if sender in racks else (f"{sender}>core",)
            return (*up, f"core>{SERVER}")
        return (f"{sender}>core", f"core>{racks[receiver]}", f"{racks[receiver]}>{receiver}")

    hosts = ["a1", "a2", "a3"]
    pairs = [("h1", host) for host in (*hosts, SERVER)] + [(host, SERVER) for host in hosts]
    network = TransferNetwork(
        capacities_bits_per_s={link: 8 for pair in pairs for link in find_route(*pair)},
        hosts=frozenset({"h1", SERVER, *hosts}),
        find_route=find_route,
    )
    alike = AlikeHosts(network, ["h1"], SERVER, hosts)
    residual = ResidualNetwork(network)
    assert alike.one_of_each(hosts, residual) == ["a1", "a3"]
    residual.reserve(["r1>a1"], [RateSpan(0.0, 1.0, 3)])
    assert alike.one_of_each(hosts, residual) == ["a1", "a2", "a3"]


def all_plans_best_s(network: TransferNetwork, requests: Sequence[TransferRequest]) -> float:
    """The least mean commit over all orders, cuts into groups and choices of idle hosts.

    Each group of two or more goes to a host of its own; its sum leaves when it is gathered.
    """
    best = float("inf")
    count = len(requests)
    for order in itertools.permutations(requests):
        for cuts in itertools.product([False, True], repeat=count - 1):
            groups: list[list[TransferRequest]] = [[order[0]]]
            for request, is_cut in zip(order[1:], cuts, strict=True):
                if is_cut:
                    groups.append([request])
                else:
                    groups[-1].append(request)
            sums = [group for group in groups if len(group) > 1]
            if len(sums) > 2:
                continue
            for hosts in itertools.permutations(["a1", "a2"], len(sums)):
                best = min(best, _total_s(network, groups, list(hosts)) / count)
    return best


def _total_s(
    network: TransferNetwork, groups: Sequence[Sequence[TransferRequest]], hosts: list[str]
) -> float:
    residual = ResidualNetwork(network)

    def send(sender: str, receiver: str, bits: int, start_s: float) -> float:
        links = network.route(sender, receiver)
        spans = residual.plan(links, bits, start_s)
        residual.reserve(links, spans)
        return spans[-1].end_s

    commit_s = total_s = 0.0
    for group in groups:
        if len(group) == 1:
            end_s = send(group[0].worker, SERVER, group[0].bits, 0.0)
        else:
            host = hosts.pop(0)
            gathered_s = max(send(member.worker, host, member.bits, 0.0) for member in group)
            end_s = send(host, SERVER, max(member.bits for member in group), gathered_s)
        commit_s = max(commit_s, end_s)
        total_s += commit_s * len(group)
    return total_s


def test_mean_commit_is_near_the_best_of_all_plans() -> None:
    chance = random.Random(11)
    ratios: list[float] = []
    for _ in range(20):
        rates: dict[str, int | tuple[int, int]] = {
            f"h{n}": chance.choice([25, 50, 100]) for n in range(1, 5)
        }
        network = star(0, others=rates | IDLE)
        found = plan(network, SIX[:4], AggregationPlaces(hosts=["a1", "a2"]))
        best_s = all_plans_best_s(network, SIX[:4])
        assert mean_s(found) >= best_s - 1e-9
        ratios.append(mean_s(found) / best_s)
    assert sum(ratio <= 1.3 for ratio in ratios) >= 0.95 * len(ratios)


def test_first_group_is_not_longer_than_the_batch() -> None:
    with pytest.raises(InvalidTransferError, match="num_direct is 7; the batch has 6"):
        plan(star(6), SIX, NOWHERE, num_direct=7)
