# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The requests of a live job once more, in the simulator: the same scheduler, simulated links.

A worker makes a request as long after the commit before it as it did live: what it computes takes
the same time, and it waits for what it waited for. So errors do not add up over a run.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from benchmarks.simulator.live_log import LiveRequest
from benchmarks.simulator.scenario import Scenario
from benchmarks.simulator.scheduled import ScheduledRun
from benchmarks.simulator.timeline import TimelineError
from switchfold.controller.scheduler.scheduler import SchedulerOptions
from switchfold.controller.scheduler.training.commit_order import CommitOrder
from switchfold.controller.scheduler.transfers import TransferRequest


class RequestReplay(ScheduledRun):
    """Makes recorded requests; workers do nothing else."""

    def __init__(self, scenario: Scenario, requests: Sequence[LiveRequest], share: float) -> None:
        """`share`: of the rates that the scheduler plans with, what links carry as payload."""
        super().__init__(scenario, options=SchedulerOptions(commit_order=CommitOrder.SEQUENCE))
        self.links.set_capacities(
            {link: share * rate for link, rate in scenario.capacities(0).items()}
        )
        self._requests = requests
        self._followers: dict[int, list[int]] = defaultdict(list)
        """By position of a request, those that its worker makes after its commit."""
        self._num_asked = 0
        self._position_of: dict[int, int] = {}
        """By the id of a transfer: they rise in the order of requests."""
        self.asked_s: dict[int, float] = {}
        """By position of the request."""
        self.committed_s: dict[int, float] = {}

    def start(self) -> None:
        for number, request in enumerate(self._requests):
            before = _last_commit(self._requests, request)
            if before is None:
                self.links.call_at(request.requested_s, partial(self._ask, number))
            else:
                self._followers[before].append(number)

    def _ask(self, number: int) -> None:
        request = self._requests[number]
        self.asked_s[number] = self.links.now_s
        asked = TransferRequest(
            transfer_id=self._num_asked,
            worker=self.scenario.workers[request.worker],
            server=self.scenario.servers[request.server],
            size_bytes=request.bytes,
            version=0,
        )
        self._position_of[self._num_asked] = number
        self._num_asked += 1
        self._after_half_trip(partial(self._submit, asked))

    def _deliver(self, requests: Sequence[TransferRequest]) -> None:
        self._after_half_trip(partial(self._delivered, [each.transfer_id for each in requests]))

    def _delivered(self, ids: Sequence[int]) -> None:
        for grant in self._scheduler.delivered(ids, self.links.now_s):
            number = self._position_of[grant.request.transfer_id]
            self.committed_s[number] = self.links.now_s
            committed_s = self._requests[number].committed_s
            assert committed_s is not None, "only such requests are repeated"
            for follower in self._followers[number]:
                wait_s = self._requests[follower].requested_s - committed_s
                self.links.call_after(wait_s, partial(self._ask, follower))
        self._plan_decision()


def _last_commit(requests: Sequence[LiveRequest], request: LiveRequest) -> int | None:
    """Return the position of the worker's last commit before a request, None without any."""
    before = [
        (each.committed_s, number)
        for number, each in enumerate(requests)
        if each.worker == request.worker
        and each.committed_s is not None
        and each.committed_s <= request.requested_s
    ]
    return max(before)[1] if before else None


def scenario_of_requests(
    requests: Sequence[LiveRequest], rate_bits_per_s: float, server_rate_bits_per_s: float
) -> Scenario:
    """Return the cluster of a live job; rates are those that its scheduler plans with."""
    return Scenario(
        num_workers=1 + max(request.worker for request in requests),
        num_servers=1 + max(request.server for request in requests),
        seed=0,
        link_bits_per_s=round(rate_bits_per_s),
        server_link_bits_per_s=round(server_rate_bits_per_s),
    )


class RequestTimes(NamedTuple):
    """When a request was made, and when its update was committed, in seconds."""

    asked_s: float
    committed_s: float

    @property
    def took_s(self) -> float:
        """How long that took."""
        return self.committed_s - self.asked_s


def request_times(
    requests: Sequence[LiveRequest], scenario: Scenario, share: float = 1.0
) -> tuple[list[RequestTimes], list[RequestTimes]]:
    """Return the times of each request, recorded and simulated.

    Only updates that were granted and applied take part: the others must be few, since their bytes
    are not simulated. Raises TimelineError if they are more than a twentieth.
    """
    planned = [request for request in requests if request.is_scheduled]
    if 20 * (len(requests) - len(planned)) > len(requests):
        raise TimelineError(
            f"{len(requests) - len(planned)} of {len(requests)} updates were dropped, given up or"
            " sent without a grant: the simulator repeats records in which hardly any was"
        )
    run = RequestReplay(scenario, planned, share)
    run.links.call_at(0.0, run.start)
    run.links.run(1e9)
    recorded, simulated = [], []
    for number, request in enumerate(planned):
        assert request.committed_s is not None, "it is scheduled"
        recorded.append(RequestTimes(request.requested_s, request.committed_s))
        simulated.append(RequestTimes(run.asked_s[number], run.committed_s[number]))
    return recorded, simulated


def close_share(
    recorded: Sequence[RequestTimes], simulated: Sequence[RequestTimes], tolerance: float
) -> float:
    """Return the share of requests whose simulated time is within a tolerance of the recorded."""
    return statistics.mean(
        abs(two.took_s / one.took_s - 1) <= tolerance
        for one, two in zip(recorded, simulated, strict=True)
    )
