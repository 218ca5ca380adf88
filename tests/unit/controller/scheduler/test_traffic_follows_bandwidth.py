# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Updates are gathered behind fast links, also when other links become the fast ones."""

from __future__ import annotations

from collections import Counter

from switchfold.controller.scheduler.grouping import AggregationPlaces
from switchfold.controller.scheduler.network import TransferNetwork
from switchfold.controller.scheduler.scheduler import SchedulerOptions, TransferScheduler
from transfer_cases import SERVER, grants_of, push, star

HOSTS = [f"h{number}" for number in range(1, 17)]
WORKERS, IDLE = HOSTS[:8], HOSTS[8:]
FAST, SLOW = 100, 50
PERIOD_S = 5
SIZE_BYTES = 1_000_000


def rates(period: int) -> dict[str, int]:
    """Every second host is fast, in turn; the server always is."""
    return {host: FAST if (at + period) % 2 == 0 else SLOW for at, host in enumerate(HOSTS)}


def network(period: int) -> TransferNetwork:
    return star(0, others=rates(period))


def test_most_legs_to_aggregators_end_at_fast_links() -> None:
    """Half of 16 hosts have 50 Mbit/s, and half 100, changing every 5 s; a batch each second."""
    options = SchedulerOptions(places=AggregationPlaces(hosts=IDLE))
    scheduler = TransferScheduler(network(0), {SERVER: 0}, options)
    legs: Counter[int] = Counter()
    number = 0
    for second in range(8 * PERIOD_S):
        period, now_s = second // PERIOD_S, float(second)
        if second % PERIOD_S == 0:
            scheduler.replace_network(network(period), now_s)
        for worker in WORKERS:
            number += 1
            version = scheduler.version(SERVER)
            request = push(number, worker=worker, version=version, size_bytes=SIZE_BYTES)
            scheduler.submit(request, now_s)
        grants = grants_of(scheduler.decide(now_s + options.batch_wait_s))
        assert len(grants) == len(WORKERS)
        for grant in sorted(grants, key=lambda each: each.commit_s):
            if grant.group is not None:
                legs[rates(period)[grant.group.aggregator]] += 1
                scheduler.gathered(grant.request.transfer_id, now_s + 0.9)
        scheduler.delivered([grant.request.transfer_id for grant in grants], now_s + 0.95)
    assert legs.total() > 8 * PERIOD_S, "updates are gathered in every second"
    assert legs[FAST] >= 0.7 * legs.total()
