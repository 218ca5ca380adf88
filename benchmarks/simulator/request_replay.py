# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The requests of a live job once more, in the simulator: the same scheduler, simulated links."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import partial

from benchmarks.simulator.live_log import LiveRequest
from benchmarks.simulator.scenario import Scenario
from benchmarks.simulator.scheduled import ScheduledRun
from benchmarks.simulator.timeline import TimelineError
from switchfold.controller.scheduler.training.commit_order import CommitOrder
from switchfold.controller.scheduler.transfers import TransferRequest


class RequestReplay(ScheduledRun):
    """Makes recorded requests at their times; workers do nothing else."""

    def __init__(self, scenario: Scenario, requests: Sequence[LiveRequest], share: float) -> None:
        """`share`: of the rates that the scheduler plans with, what links carry as payload."""
        super().__init__(scenario, commit_order=CommitOrder.SEQUENCE)
        self.links.set_capacities(
            {link: share * rate for link, rate in scenario.capacities(0).items()}
        )
        self._requests = requests
        self.delivered_s: dict[int, float] = {}
        """By position of the request."""
        self.committed_s: dict[int, float] = {}

    def start(self) -> None:
        for number, request in enumerate(self._requests):
            asked = TransferRequest(
                transfer_id=number,
                worker=self.scenario.workers[request.worker],
                server=self.scenario.servers[request.server],
                size_bytes=request.bytes,
                version=0,
            )
            self.links.call_at(request.requested_s, partial(self._submit, asked))

    def _deliver(self, requests: Sequence[TransferRequest]) -> None:
        for request in requests:
            self.delivered_s[request.transfer_id] = self.links.now_s
        self._after_half_trip(partial(self._delivered, [each.transfer_id for each in requests]))

    def _delivered(self, ids: Sequence[int]) -> None:
        for grant in self._scheduler.delivered(ids, self.links.now_s):
            self.committed_s[grant.request.transfer_id] = self.links.now_s
        self._plan_decision()


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


def request_times(
    requests: Sequence[LiveRequest], scenario: Scenario, share: float = 1.0
) -> tuple[list[float], list[float]]:
    """Return the seconds from each request until its commit, recorded and simulated.

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
        recorded.append(request.committed_s - request.requested_s)
        simulated.append(run.committed_s[number] - request.requested_s)
    return recorded, simulated


def close_share(recorded: Sequence[float], simulated: Sequence[float], tolerance: float) -> float:
    """Return the share of requests whose simulated time is within a tolerance of the recorded."""
    return statistics.mean(
        abs(two / one - 1) <= tolerance for one, two in zip(recorded, simulated, strict=True)
    )
