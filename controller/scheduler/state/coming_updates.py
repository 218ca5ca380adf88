# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Updates that workers will bring to a server, and how early another model may leave for one.

An update is as old as its model. If it is to wait for the server's link, then it is better that the
model waits instead: it leaves later, and has more updates in it. All rules here are ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ..network import Links, ResidualNetwork
from ..transfers import ModelGrant, ModelRequest

_NEW_SHARE: Final = 0.25
"""Of a new time in the averages."""
_FIRST_DEVIATION: Final = 0.25
"""Of a worker's first time."""
DEVIATIONS: Final = 2.0
"""A worker's model leaves so many mean deviations earlier than its mean time would want it: where
times vary, the server's link must not wait for updates."""
_MOST_LATE: Final = 3.0
"""An update is no longer expected once it is late by so many times what it should have taken."""


@dataclass(kw_only=True)
class _WorkerTime:
    """How long a worker takes from when its model leaves until it asks to send the update."""

    mean_s: float
    deviation_s: float
    """Mean of how far single times are away from the mean."""

    def note(self, took_s: float) -> None:
        """Learn one more time."""
        self.deviation_s += _NEW_SHARE * (abs(took_s - self.mean_s) - self.deviation_s)
        self.mean_s += _NEW_SHARE * (took_s - self.mean_s)


@dataclass(kw_only=True)
class _Coming:
    """A model that is granted, and whose update has not been asked for."""

    worker: str
    start_s: float
    """When the model leaves."""
    ready_s: float
    """When the update is expected."""


class ComingUpdates:
    """Of one server. Times are the scheduler's."""

    def __init__(self, most_queued: float) -> None:
        """`most_queued`: an update may wait for so many others at the server's link."""
        self._most_queued = most_queued
        self._coming: dict[int, _Coming] = {}
        """By id of the model, in the order of grants."""
        self._times: dict[str, _WorkerTime] = {}

    def withdrawn(self, model_id: int) -> None:
        """Expect nothing of a model that does not come."""
        self._coming.pop(model_id, None)

    def requested(self, worker: str, now_s: float) -> None:
        """Note that a worker has computed an update: that of its oldest model."""
        for model_id, coming in self._coming.items():
            if coming.worker == worker and coming.start_s <= now_s:
                took_s = now_s - coming.start_s
                if worker in self._times:
                    self._times[worker].note(took_s)
                else:
                    deviation_s = _FIRST_DEVIATION * took_s
                    self._times[worker] = _WorkerTime(mean_s=took_s, deviation_s=deviation_s)
                del self._coming[model_id]
                return

    def grants(
        self,
        residual: ResidualNetwork,
        ordered: Iterable[ModelGrant],
        num_waiting: int,
        now_s: float,
    ) -> list[ModelGrant]:
        """Return models in their order, each no earlier than its update is wanted.

        They are reserved in `residual`, and were not before. `num_waiting`: updates that wait for
        their grants. Cost: O(n log n + steps of the server's link) beside the plans of n models.
        """
        grants: list[ModelGrant] = []
        network = residual.network
        capacities = network.capacities_bits_per_s
        free_s = None
        for planned in ordered:
            request = planned.request
            links = network.route(request.worker, request.server)
            if not links or not planned.links:
                grants.append(planned)
                continue
            update_s = request.bits / capacities[links[-1]]
            if free_s is None:
                free_s = self._free_s(residual, links, update_s, num_waiting, now_s)
            alone_s = request.bits / min(capacities[link] for link in planned.links)
            known = self._times.get(request.worker)
            mean_s = alone_s if known is None else max(alone_s, known.mean_s)
            lead_s = mean_s if known is None else mean_s + DEVIATIONS * known.deviation_s
            wanted_s = free_s - self._most_queued * update_s - lead_s
            grant = _planned(residual, request, planned.links, max(now_s, wanted_s))
            start_s = grant.spans[0].start_s
            ready_s = max(grant.end_s, start_s + mean_s)
            self._coming[request.transfer_id] = _Coming(
                worker=request.worker, start_s=start_s, ready_s=ready_s
            )
            free_s = max(free_s, ready_s) + update_s
            grants.append(grant)
        return grants

    def _free_s(
        self,
        residual: ResidualNetwork,
        links: Links,
        update_s: float,
        num_waiting: int,
        now_s: float,
    ) -> float:
        """Return when the server's link will have carried all that is on its way or expected."""
        self._forget_late(update_s, now_s)
        rate = residual.rate(links[-1])
        capacity = residual.network.capacities_bits_per_s[links[-1]]
        steps = zip(rate.times, (*rate.times[1:], math.inf), rate.rates, strict=True)
        reserved_s = sum(
            (end_s - max(start_s, now_s)) * (capacity - free) / capacity
            for start_s, end_s, free in steps
            if end_s > now_s and not math.isinf(end_s)
        )
        free_s = now_s + reserved_s + num_waiting * update_s
        for ready_s in sorted(each.ready_s for each in self._coming.values()):
            free_s = max(free_s, ready_s) + update_s
        return free_s

    def _forget_late(self, update_s: float, now_s: float) -> None:
        """Expect nothing more of workers that take much longer than before: they may have ended."""
        for model_id, coming in list(self._coming.items()):
            usual_s = coming.ready_s - coming.start_s + update_s
            if now_s - coming.ready_s > _MOST_LATE * usual_s:
                del self._coming[model_id]


def _planned(
    residual: ResidualNetwork, request: ModelRequest, links: Links, start_s: float
) -> ModelGrant:
    """Return a model that leaves from a time on, and reserve what it needs."""
    spans = residual.plan(links, request.bits, start_s)
    residual.reserve(links, spans)
    return ModelGrant(request=request, links=links, spans=spans, end_s=spans[-1].end_s)
