# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Shortest transfer first: the order of a batch of updates of one server.

MLfabric orders by the end time that the residual bandwidth gives, one transfer after the other, and
reserves what the chosen one uses. Its pseudo-code was not available to us: ties, lower bounds and
the treatment of deadlines are ours.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Final, NamedTuple, Protocol, TypeVar

import numpy as np

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
_WHOLE_CLASS: Final = -1
"""In place of a request's number: the bound is that of all requests of a class."""
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


ResidualLink = tuple[ResidualNetwork, str]
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

    Cost of a batch of n: for each decision, O(s) for the lower bound of each class of similar
    updates (at most 8), with s steps on the server's link, and a plan of O(steps) for each update
    whose lower bound is below the least end. That is about one per decision if the server's link
    is what limits; n at worst.
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


class _SimilarRequests:
    """Undecided requests that share a link, and whose other links carry about the same.

    Of two, the smaller one ends first on the shared link alone, so its end bounds that of both.
    """

    def __init__(self, shared: ResidualLink | None, most_bits_per_s: float) -> None:
        """`shared` is None for requests that cross no link."""
        self._shared = shared
        self._most_bits_per_s = most_bits_per_s
        self.known_end_s = -math.inf
        """A lower bound of all ends that an earlier step found: reservations only grow."""
        self.by_bits: dict[int, list[int]] = {}
        """Numbers of the requests, rising."""
        self.sizes: list[int] = []
        """Bits of the requests that are left, rising."""

    def add(self, number: int, bits: int) -> None:
        """Add a request; numbers rise."""
        if bits not in self.by_bits:
            self.by_bits[bits] = []
            insort(self.sizes, bits)
        self.by_bits[bits].append(number)

    def remove(self, number: int, bits: int) -> None:
        """Take a request out."""
        numbers = self.by_bits[bits]
        numbers.remove(number)
        if not numbers:
            self.sizes.remove(bits)

    def least_end_s(self, bits: int, now_s: float) -> float:
        """Return a lower bound of the end times of requests of a size."""
        if self._shared is None:
            return round(now_s, _DIGITS)
        residual, link = self._shared
        end_s = residual.rate(link).earliest_end_s(now_s, bits, self._most_bits_per_s)
        return round(end_s, _DIGITS)


class _Candidates:
    """Requests in the order of what is known of their ends, least first; ties by number.

    Bounds are looked up only as far as they are needed.
    """

    def __init__(self, classes: Sequence[_SimilarRequests], now_s: float) -> None:
        self._now_s = now_s
        self._heap: list[tuple[float, int, bool, int, int]] = []
        """(end, number, whether it is only a bound, class, bits). A class stands for its requests
        until its bound of an earlier step is reached."""
        self._classes = classes
        self._next_size = [0] * len(classes)
        self._last_bound = [-math.inf] * len(classes)
        for at, requests in enumerate(classes):
            if requests.sizes:
                heappush(self._heap, (requests.known_end_s, _WHOLE_CLASS, True, at, 0))

    def pop(self) -> tuple[float, int, bool]:
        """Return the first one: end, number, and whether it is only a bound."""
        end_s, number, is_bound, at, bits = heappop(self._heap)
        while number == _WHOLE_CLASS:
            self._reach(at, end_s)
            end_s, number, is_bound, at, bits = heappop(self._heap)
        if is_bound:
            numbers = self._classes[at].by_bits[bits]
            place = bisect_right(numbers, number)
            if place < len(numbers):
                heappush(self._heap, (end_s, numbers[place], True, at, bits))
            self._reach(at, end_s)
        return end_s, number, is_bound

    def push(self, end_s: float, number: int) -> None:
        """Put back a request of which more is known."""
        heappush(self._heap, (end_s, number, False, 0, 0))

    def _reach(self, at: int, end_s: float) -> None:
        """Have the first request of all sizes that could end so early, and one beyond."""
        requests = self._classes[at]
        while self._last_bound[at] <= end_s and self._next_size[at] < len(requests.sizes):
            bits = requests.sizes[self._next_size[at]]
            self._next_size[at] += 1
            self._last_bound[at] = bound_s = requests.least_end_s(bits, self._now_s)
            if self._next_size[at] == 1:
                requests.known_end_s = bound_s
            heappush(self._heap, (bound_s, requests.by_bits[bits][0], True, at, bits))


class _Ordering:
    """One batch.

    Within a batch, reservations only grow, so a planned end is a lower bound for the same request
    until the batch ends. The link of a route that most others share gives another one.
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
        self._remaining = np.arange(len(self._requests))
        """Numbers of the requests that are not decided, in the order of versions."""
        self._planned_before = [-math.inf] * len(self._requests)
        """Latest end that was planned for each."""
        self._class_of: list[_SimilarRequests] = []
        """By number."""
        self._classes = self._similar_requests()
        self._plans: dict[int, _Leg] = {}
        """Of this step, by number."""

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
        return order, drops

    def _take(self, number: int) -> None:
        self._remaining = self._remaining[self._remaining != number]
        self._class_of[number].remove(number, self._requests[number].bits)

    def _plan(self, number: int) -> _Leg:
        found = self._plans.get(number)
        if found is None:
            request, links = self._requests[number], self._links[number]
            spans = self._residual.plan(links, request.bits, self._now_s)
            end_s = spans[-1].end_s if spans else self._now_s
            found = _Leg(number, links, spans, end_s)
            self._plans[number] = found
            self._planned_before[number] = round(end_s, _DIGITS)
        return found

    def _end(self, number: int) -> float:
        self._plan(number)
        return self._planned_before[number]

    def _shortest(self) -> int:
        """Return the request that would end first; of equal ones, that of the least number."""
        candidates = _Candidates(self._classes, self._now_s)
        while True:
            end_s, number, is_bound = candidates.pop()
            if number in self._plans and not is_bound:
                return number
            if is_bound and self._planned_before[number] > end_s:
                candidates.push(self._planned_before[number], number)
            else:
                candidates.push(self._end(number), number)

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

    def _similar_requests(self) -> list[_SimilarRequests]:
        """Return classes by shared link and most bits/s of the other links.

        The rate is exact where the other links carry nothing else and few rates occur.
        """
        users = Counter(link for links in self._links for link in links)
        rates: list[tuple[str, float]] = []
        tops: dict[str, list[float]] = {"": [math.inf]}
        for links in self._links:
            if not links:
                rates.append(("", math.inf))
                continue
            shared = max(reversed(links), key=users.__getitem__)
            others = (max(self._residual.rate(link).rates) for link in links if link != shared)
            rates.append((shared, min(others, default=math.inf)))
        for shared in dict(rates):
            found = sorted({rate for link, rate in rates if link == shared})
            step = math.ceil(len(found) / _MOST_CLASSES)
            tops[shared] = found[::-step][::-1]
        classes: dict[tuple[str, float], _SimilarRequests] = {}
        for number, (shared, rate) in enumerate(rates):
            key = shared, tops[shared][bisect_left(tops[shared], rate)]
            if key not in classes:
                classes[key] = _SimilarRequests(
                    (self._residual, shared) if shared else None, key[1]
                )
            classes[key].add(number, self._requests[number].bits)
            self._class_of.append(classes[key])
        return list(classes.values())
