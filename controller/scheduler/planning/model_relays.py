# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Models that workers send on: a server's link carries one model for several workers.

While a worker gets a model, it sends what it has of it to the next one, so a chain of workers has
the model in little more than the time of its slowest link. It is ours: of MLfabric, we know only
that models are planned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..network import Links, ResidualNetwork
from ..residual_rate import RateSpan
from ..transfers import ModelGrant, ModelRequest


@dataclass(kw_only=True)
class _Chain:
    """Workers that get one model at the same time."""

    requests: list[ModelRequest]
    hops: list[Links]
    """To each of them."""
    spans: tuple[RateSpan, ...]
    """Of all hops."""

    @property
    def end_s(self) -> float:
        return self.spans[-1].end_s

    def grants(self) -> list[ModelGrant]:
        """Return a grant for each hop."""
        senders = [None, *(request.worker for request in self.requests)]
        return [
            ModelGrant(
                request=request,
                links=links,
                spans=self.spans,
                end_s=self.end_s,
                relayed_by=sender,
            )
            for request, links, sender in zip(self.requests, self.hops, senders, strict=False)
        ]


def plan_relays(
    residual: ResidualNetwork,
    requests: Sequence[ModelRequest],
    now_s: float,
    most: int,
    join_ratio: float = 1.0,
) -> list[ModelGrant]:
    """Return when models of one server travel, chain after chain; they are reserved in `residual`.

    A chain begins with the worker that would have its model first. One joins it if the sum of the
    times until all have their models is at most `join_ratio` times what it is if this one has its
    own after the others. Chains have `most` workers at most; one that may not relay has its model
    alone. Cost of n requests: O(n^2) plans; n is at most the size of a batch.
    """
    network = residual.network
    waiting: list[ModelRequest] = sorted(requests, key=lambda each: (each.worker, each.transfer_id))
    grants: list[ModelGrant] = []
    while waiting:
        alone: list[tuple[float, int, _Chain]] = []
        for place, request in enumerate(waiting):
            links = network.route(request.server, request.worker)
            spans = residual.plan(links, request.bits, now_s)
            end_s = spans[-1].end_s if spans else now_s
            alone.append((end_s, place, _Chain(requests=[request], hops=[links], spans=spans)))
        alone.sort(key=lambda each: each[:2])
        chain = alone[0][2]
        if not chain.spans:  # on the server's own host
            request = chain.requests[0]
            grants.append(ModelGrant(request=request, links=(), spans=(), end_s=now_s))
            waiting.remove(request)
            continue
        for *_, other in alone[1:]:
            if len(chain.requests) == most:
                break
            chain = _joined(residual, chain, other, now_s, join_ratio) or chain
        for links in chain.hops:
            residual.reserve(links, chain.spans)
        grants += chain.grants()
        waiting = [each for each in waiting if each not in chain.requests]
    return grants


def _joined(
    residual: ResidualNetwork, chain: _Chain, other: _Chain, now_s: float, join_ratio: float
) -> _Chain | None:
    """Return a chain with one more worker, None if that gains nothing or is not possible."""
    network, last, (request,) = residual.network, chain.requests[-1], other.requests
    if not (last.may_relay and request.may_relay) or request.bits != last.bits:
        return None
    if not network.joins(last.worker, request.worker):
        return None
    links = network.route(last.worker, request.worker)
    used = [link for hop in chain.hops for link in hop]
    if not links or not other.hops[0] or any(link in used for link in links):
        return None
    spans = residual.plan([*used, *links], request.bits, now_s)
    count = len(chain.requests)
    apart_s = (count + 1) * (chain.end_s - now_s) + other.end_s - now_s
    if (count + 1) * (spans[-1].end_s - now_s) > join_ratio * apart_s:
        return None
    return _Chain(requests=[*chain.requests, request], hops=[*chain.hops, links], spans=spans)
