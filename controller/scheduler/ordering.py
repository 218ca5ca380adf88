# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Shortest transfer first: the order of a batch of updates of one server.

MLfabric orders by the end time that the residual bandwidth gives, one transfer after the other, and
reserves what the chosen one uses. Its pseudo-code was not available to us: ties, lower bounds and
the treatment of deadlines are ours.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from .delay_bound import DeadlinePositions, DelayBound
from .network import Links, ResidualNetwork
from .residual_rate import RateSpan
from .transfers import (
    DropReason,
    ModelGrant,
    ModelRequest,
    PlannedTransfer,
    TransferDrop,
    TransferRequest,
)

_DIGITS: Final = 9
"""End times are compared in whole nanoseconds: rounding must not break ties."""
_MOST_CLASSES: Final = 8
"""Rates that lower bounds tell apart; rates between two of them count as the higher one."""


class _Request(Protocol):
    """What the order of a batch depends on."""

    @property
    def transfer_id(self) -> int: ...
    @property
    def worker(self) -> str: ...
    @property
    def sender(self) -> str: ...
    @property
    def receiver(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def bits(self) -> int: ...


_RequestT = TypeVar("_RequestT", bound=_Request)


class _Leg(NamedTuple):
    """When one request's bytes move."""

    number: int
    """Of the request, in the order of versions."""
    links: Links
    spans: tuple[RateSpan, ...]
    end_s: float


def order_transfers(
    residual: ResidualNetwork,
    requests: Sequence[TransferRequest],
    now_s: float,
    next_commit: int = 0,
    bound: DelayBound | None = None,
) -> tuple[list[PlannedTransfer], list[TransferDrop]]:
    """Return the batch in commit order, reserved in `residual`, and what the bound drops.

    Of equal end times, the older version goes first, then the worker's name, then the id, so the
    order of the arguments does not matter. `next_commit` is the number of updates that the server
    will have applied before the batch.

    Cost of a batch of n: O(n (n + s)) in numpy for lower bounds, with s steps on the server's
    links, and in Python a plan of O(steps) for each update whose lower bound is below the least
    end. That is about one per decision if the server's link is what limits; n at worst.
    """
    by_version = _by_version(requests)
    ordering = _Ordering(residual, by_version, now_s)
    deadlines = bound and DeadlinePositions(by_version, bound.tau_max, next_commit)
    legs, dropped = ordering.run(bound, deadlines)
    order = [
        PlannedTransfer(
            request=by_version[leg.number], links=leg.links, spans=leg.spans, end_s=leg.end_s
        )
        for leg in legs
    ]
    drops = [
        TransferDrop(
            request=by_version[number],
            reason=reason,
            delay=next_commit + position - by_version[number].version,
        )
        for number, position, reason in dropped
    ]
    return order, drops


def order_models(
    residual: ResidualNetwork, requests: Sequence[ModelRequest], now_s: float
) -> list[ModelGrant]:
    """Return when models travel to workers, shortest transfer first, reserved in `residual`.

    Ties and cost are those of `order_transfers`.
    """
    by_version = _by_version(requests)
    legs, _ = _Ordering(residual, by_version, now_s).run(None, None)
    return [
        ModelGrant(
            request=by_version[leg.number], links=leg.links, spans=leg.spans, end_s=leg.end_s
        )
        for leg in legs
    ]


def _by_version(requests: Sequence[_RequestT]) -> list[_RequestT]:
    return sorted(requests, key=lambda r: (r.version, r.worker, r.transfer_id))


class _Ordering:
    """One batch.

    Within a batch, reservations only grow, so a planned end is a lower bound for the same update
    until the batch ends. The link of a route that most others share gives another one. Both are
    kept as arrays.
    """

    def __init__(
        self, residual: ResidualNetwork, requests: Sequence[_Request], now_s: float
    ) -> None:
        """`requests` are in the order of versions."""
        self._residual = residual
        self._now_s = now_s
        self._requests = requests
        network = residual.network
        self._links = [network.route(r.sender, r.receiver) for r in self._requests]
        self._bits = np.array([request.bits for request in self._requests], np.float64)
        self._least_ends = np.full(len(self._requests), now_s)
        """Lower bounds of end times, float64; infinity for updates that are decided."""
        self._remaining = np.arange(len(self._requests))
        """Numbers of the updates that are not decided, in the order of versions."""
        self._classes = self._rate_classes()
        self._plans: dict[int, _Leg] = {}
        """Of this step, by number."""
        self._raise_bounds()

    def run(
        self, bound: DelayBound | None, deadlines: DeadlinePositions | None
    ) -> tuple[list[_Leg], list[tuple[int, int, DropReason]]]:
        """Return the order, and what is dropped: number, least position from 0, and reason."""
        order: list[_Leg] = []
        drops: list[tuple[int, int, DropReason]] = []

        def drop(number: int, reason: DropReason) -> None:
            drops.append((number, len(order), reason))
            self._take(number)

        if deadlines:
            for number in np.flatnonzero(deadlines.last < 1):
                drop(int(number), DropReason.TOO_OLD)
        while self._remaining.size:
            number = self._shortest()
            if bound and deadlines:
                position = len(order) + 1
                misfit = deadlines.first_misfit(self._remaining, position)
                if misfit is not None:
                    drop(self._longest(misfit + 1), DropReason.NO_ORDER_FITS)
                    continue
                if not deadlines.can_go_first(self._remaining, position, number):
                    urgent = self._most_urgent(deadlines)
                    if not self._is_worth_promotion(urgent, number, bound.promotion_ratio):
                        drop(urgent, DropReason.TOO_SLOW_TO_PROMOTE)
                        continue
                    number = urgent
            planned = self._plan(number)
            self._residual.reserve(planned.links, planned.spans)
            order.append(planned)
            self._take(number)
            self._plans.clear()
            self._raise_bounds()
        return order, drops

    def _take(self, number: int) -> None:
        self._remaining = self._remaining[self._remaining != number]
        self._least_ends[number] = np.inf

    def _plan(self, number: int) -> _Leg:
        found = self._plans.get(number)
        if found is None:
            request, links = self._requests[number], self._links[number]
            spans = self._residual.plan(links, request.bits, self._now_s)
            end_s = spans[-1].end_s if spans else self._now_s
            found = _Leg(number, links, spans, end_s)
            self._plans[number] = found
            self._least_ends[number] = round(end_s, _DIGITS)
        return found

    def _end(self, number: int) -> float:
        self._plan(number)
        return float(self._least_ends[number])

    def _shortest(self) -> int:
        """Return the update that would end first; argmin takes the first of equal ones."""
        while True:
            number = int(np.argmin(self._least_ends))
            if number in self._plans:
                return number
            self._plan(number)

    def _longest(self, count: int) -> int:
        """Return which of the first remaining updates would end last."""
        return max((int(n) for n in self._remaining[:count]), key=lambda n: (self._end(n), n))

    def _most_urgent(self, deadlines: DeadlinePositions) -> int:
        """Return the update with the least deadline that would end first."""
        least = deadlines.last[self._remaining[0]]
        urgent = self._remaining[deadlines.last[self._remaining] == least]
        return min((int(n) for n in urgent), key=lambda n: (self._end(n), n))

    def _is_worth_promotion(self, urgent: int, shortest: int, ratio: float) -> bool:
        wait_s = self._plan(shortest).end_s - self._now_s
        return self._plan(urgent).end_s - self._now_s <= ratio * wait_s

    def _rate_classes(self) -> list[tuple[str, float, NDArray[np.int64]]]:
        """Return (shared link, most bits/s of the other links, numbers) of similar requests.

        The rate is exact where the other links carry nothing else and few rates occur.
        """
        users = Counter(link for links in self._links for link in links)
        most: dict[str, list[tuple[float, int]]] = {}
        for number, links in enumerate(self._links):
            if links:
                shared = max(reversed(links), key=users.__getitem__)
                rates = (max(self._residual.rate(link).rates) for link in links if link != shared)
                most.setdefault(shared, []).append((min(rates, default=np.inf), number))
        found: list[tuple[str, float, NDArray[np.int64]]] = []
        for link, members in most.items():
            rates = sorted({rate for rate, _ in members})
            step = math.ceil(len(rates) / _MOST_CLASSES)
            tops = rates[::-step][::-1]
            for below, top in zip([0.0, *tops], tops, strict=False):
                numbers = [number for rate, number in members if below < rate <= top]
                found.append((link, top, np.array(numbers, np.int64)))
        return found

    def _raise_bounds(self) -> None:
        for link, most_bits_per_s, numbers in self._classes:
            ends = self._residual.rate(link).earliest_ends(
                self._now_s, self._bits[numbers], most_bits_per_s
            )
            bounds = np.maximum(self._least_ends[numbers], np.round(ends, _DIGITS))
            self._least_ends[numbers] = bounds
