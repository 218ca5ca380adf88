# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What hosts' links carry, by what workers report of granted updates. All rules here are ours.

A report says how long an update took, and how much of that the network took less than the grant
allowed. So an update that is late by its worker's own processor is no report about any link.
"""

from __future__ import annotations

import enum
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ...scheduler.planning.bandwidth_estimate import (
    MUCH_MORE,
    BandwidthEstimates,
    TransferDirection,
)
from ...scheduler.residual_rate import RateSpan
from .tracked_grant import HostLink, TrackedGrant

LATE: Final = 0.1
"""An update is late if it takes more than this share longer than planned, and `SLACK_S`."""
SLACK_S: Final = 0.1
"""A worker's bucket may let the last bytes out so much later than planned."""
NETWORK_SHARE: Final = 0.5
"""Least share of the delay for which the network is to blame, if a link is."""
INTERVAL_S: Final = 1.0
"""An estimate of which grants use all grows once in so long a time."""
PAUSE_S: Final = 2.0
"""It does not grow so soon after an update that was late."""
MEMORY_S: Final = 10.0
"""What a link has carried speaks for it for so long; after that, its estimate grows unused, too."""
FASTER: Final = 1.25
"""A link that carried so many times as much with another host is not to blame."""
FULL: Final = 0.8
"""Share of an estimate that grants must have used, so that they say something about it; and that a
link must have carried, so that it is not to blame."""
_MOST_LATE: Final = 4.0
"""A report is awaited for so many times the planned time of its update, and `INTERVAL_S`."""
_WITNESSES: Final = 16
"""Most other updates that are looked at for each that was late."""
_MOST_AWAITED: Final = 16
"""Late updates that wait for the reports of others; older ones are forgotten."""
MOST_HEADROOM: Final = 3.0
"""A grant over links that seem to carry less than they should may be so many times as fast as its
plan: what it then achieves is what they carry."""
LEAST_HEADROOM: Final = 1.25
"""The same for links that carry nearly all that they should."""
KEPT: Final = 1024
"""Grants that are remembered."""


class SentUpdate(NamedTuple):
    """How a worker sent a granted update."""

    seconds: float
    """From its first byte until its last was acknowledged."""
    network_wait_s: float | None
    """Of these, how long the network took less than granted; None: the worker cannot tell."""


class RateVerdict(enum.Enum):
    """What limited an update."""

    GRANT = "grant"
    """It was as fast as granted."""
    WORKER = "worker"
    """It was late, and the network had not kept it back."""
    NETWORK = "network"


class LinkTracker:
    """Estimates of a job; times are those of its schedule's clock, in seconds."""

    def __init__(
        self,
        links: Mapping[str, tuple[str, TransferDirection]],
        rates_bits_per_s: Mapping[str, tuple[int, int]],
    ) -> None:
        """`links`: host and direction by the names of links in plans; others are not estimated.

        `rates_bits_per_s`: of each host's link (up, down), in payload; no estimate exceeds them.
        """
        self._links = {name: HostLink(*link) for name, link in links.items()}
        self._rates = dict(rates_bits_per_s)
        self._estimates = BandwidthEstimates(self._rates)
        self._granted: OrderedDict[tuple[int, int], TrackedGrant] = OrderedDict()
        self._late: list[TrackedGrant] = []
        """Updates that the network kept back, and of which it is not known where."""
        self._grows_s: dict[HostLink, float] = {}
        """When an estimate may grow next; of all that have fallen."""
        self._used_s: dict[HostLink, float] = {}
        """Until when the last grants use each link."""

    def granted(
        self,
        key: tuple[int, int],
        links: Iterable[str],
        spans: Sequence[RateSpan],
        bits: int,
        headroom: float = 1.0,
    ) -> None:
        """Note a grant over links; `key` is its worker and transfer.

        `headroom` is how many times as fast as its plan it may be.
        """
        if not spans:
            return
        tracked = [self._links[name] for name in links if name in self._links]
        for link in tracked:
            self._used_s[link] = max(spans[-1].end_s, self._used_s.get(link, 0.0))
        self._granted[key] = TrackedGrant(links=tracked, spans=spans, bits=bits, headroom=headroom)
        while len(self._granted) > KEPT:
            self._granted.popitem(last=False)

    def headroom(self, links: Iterable[str]) -> float:
        """Return how many times as fast as planned a grant over links may be, from 1 on.

        It is more than 1 if the estimates are what limits the plan: a link that carries more again
        is used at once then, and not only when its estimate has grown.
        """
        tracked = [self._links[name] for name in links if name in self._links]
        if not tracked:
            return 1.0
        estimate = min(self._estimates.bits_per_s(*link) for link in tracked)
        most = min(map(self._whole, tracked)) / estimate
        return min(MOST_HEADROOM, max(LEAST_HEADROOM, most)) if most > 1 else 1.0

    def withdrawn(self, key: tuple[int, int]) -> None:
        """Forget a grant: nobody knows what is sent of it."""
        found = self._granted.pop(key, None)
        if found in self._late:
            self._late.remove(found)

    def observe(self, key: tuple[int, int], sent: SentUpdate, now_s: float) -> RateVerdict | None:
        """Learn how a granted update went; return what limited it, None if it is not known."""
        found = self._granted.get(key)
        if found is None or found.ended_s or sent.seconds <= 0:
            return None
        found.report(now_s - sent.seconds, now_s)
        self._forget(now_s)
        self._grow_unused(now_s)
        late_s = found.late_s
        if late_s > LATE * found.planned_s + SLACK_S:
            if sent.network_wait_s is None:
                return None
            if sent.network_wait_s < NETWORK_SHARE * late_s:
                return RateVerdict.WORKER
            self._late = [*self._late, found][-_MOST_AWAITED:]
            verdict = RateVerdict.NETWORK
        else:
            for link in found.links:
                self._was_clean(link, found, now_s)
            verdict = RateVerdict.GRANT
        self._judge(now_s)
        return verdict

    def take_change(self) -> Mapping[str, tuple[int, int]] | None:
        """Return new rates (up, down) of all hosts if a plan with them is worth it, else None."""
        return self._estimates.take_change()

    def slowed(self) -> dict[str, tuple[tuple[int, int], tuple[int, int]]]:
        """Return estimates and rates (up, down each) of hosts whose links carry less than these."""
        found: dict[str, tuple[tuple[int, int], tuple[int, int]]] = {}
        for host, rates in sorted(self._rates.items()):
            up, down = (self._estimates.bits_per_s(host, each) for each in TransferDirection)
            if (up, down) != rates:
                found[host] = (up, down), rates
        return found

    def _whole(self, link: HostLink) -> int:
        """Return the rate of a link by the controller's file."""
        return self._rates[link.host][link.direction is TransferDirection.DOWN]

    def _forget(self, now_s: float) -> None:
        """Forget the oldest grants if what they have shown is long past."""
        while self._granted:
            key, oldest = next(iter(self._granted.items()))
            if (oldest.ended_s or _given_up_s(oldest)) >= now_s - 2 * MEMORY_S:
                return
            del self._granted[key]

    def _grow_unused(self, now_s: float) -> None:
        """Let the estimates grow of links that no grant has used for long.

        Plans avoid a link that seems slow, so nobody would ever learn that it is not slow any more.
        """
        for link, grows_s in [*self._grows_s.items()]:
            if self._estimates.bits_per_s(*link) == self._whole(link):
                del self._grows_s[link]
            elif now_s >= max(grows_s, self._used_s[link] + MEMORY_S):
                self._estimates.was_clean(*link)
                self._grows_s[link] = now_s + INTERVAL_S

    def _judge(self, now_s: float) -> None:
        """Look for what has kept late updates back, once those beside them are reported, too."""
        waiting: list[TrackedGrant] = []
        for late in self._late:
            if any(self._is_awaited(each, late, now_s) for each in self._granted.values()):
                waiting.append(late)
            else:
                self._blame(late, now_s)
        self._late = waiting

    def _is_awaited(self, other: TrackedGrant, late: TrackedGrant, now_s: float) -> bool:
        is_beside = other.spans[0].start_s < late.ended_s and any(
            link in late.links for link in other.links
        )
        is_expected = not other.ended_s and now_s < _given_up_s(other)
        return is_beside and is_expected

    def _blame(self, late: TrackedGrant, now_s: float) -> None:
        """Lower the estimates of the links that have kept an update back.

        If a link carried about all that it was thought to, or if others that were late themselves
        took what this one lost, then no link is to blame. Otherwise, it is each link that is not
        cleared.
        """
        if self._taken_bits(late) >= NETWORK_SHARE * late.lost_bits:
            return
        carried = {link: self._carried(link, late) for link in late.links}
        if any(rate >= FULL * self._estimates.bits_per_s(*link) for link, rate in carried.items()):
            return
        suspects = [link for link in late.links if not self._is_cleared(link, late, carried[link])]
        for link in suspects or late.links:
            self._estimates.fell_short(*link, carried[link])
            self._grows_s[link] = now_s + PAUSE_S

    def _is_cleared(self, link: HostLink, late: TrackedGrant, carried: float) -> bool:
        """Whether a link carried much more while another host was at the other end of an update.

        What was sent at the same time counts; else what was sent in the time before.
        """
        others = [
            each
            for each in self._granted.values()
            if each.ended_s
            and each.ended_s >= late.began_s - MEMORY_S
            and link in each.links
            and not any(other in late.links for other in each.links if other != link)
        ][-_WITNESSES:]
        beside = [each for each in others if each.ended_s > late.began_s]
        return any(self._carried(link, each) > FASTER * carried for each in beside or others)

    def _taken_bits(self, late: TrackedGrant) -> float:
        """Return what others sent over a late update's links beside it, without being planned."""
        start_s, end_s = late.began_s, late.ended_s
        return sum(
            max(0.0, each.sent_bits(start_s, end_s) - each.planned_bits(start_s, end_s))
            for each in self._granted.values()
            if each is not late and each.ended_s and any(link in late.links for link in each.links)
        )

    def _carried(self, link: HostLink, late: TrackedGrant) -> float:
        """Return the rate of all updates over a link while it kept one of them back.

        Of one that was in time: while this was sent.
        """
        times = late.limited
        sent = sum(
            each.sent_bits(start_s, end_s)
            for each in self._granted.values()
            if each.ended_s and link in each.links
            for start_s, end_s in times
        )
        return sent / max(sum(end_s - start_s for start_s, end_s in times), 1e-9)

    def _was_clean(self, link: HostLink, clean: TrackedGrant, now_s: float) -> None:
        """Learn from an update in time that a link with an estimate carries more, or hardly less.

        One that might have been faster than its plan shows what the link carried. If that is no
        more than planned, then the link may still carry more, and another link not: the estimate
        grows from time to time if grants have used all of it.
        """
        estimate = self._estimates.bits_per_s(*link)
        if estimate == self._whole(link):
            return
        if clean.headroom > 1:
            carried = self._carried(link, clean)
            is_less = carried < estimate
            if not is_less or (clean.late_s > 0 and carried >= FULL * estimate):
                self._estimates.carried(*link, carried)
            if is_less or carried > MUCH_MORE * estimate:
                return
        if now_s < self._grows_s.get(link, now_s):
            return
        start_s, end_s = clean.spans[0].start_s, clean.spans[-1].end_s
        planned = sum(
            each.planned_bits(start_s, end_s)
            for each in self._granted.values()
            if link in each.links
        )
        if planned >= FULL * estimate * (end_s - start_s):
            self._estimates.was_clean(*link)
            self._grows_s[link] = now_s + INTERVAL_S


def _given_up_s(grant: TrackedGrant) -> float:
    """Return when a report is no longer awaited."""
    return grant.spans[0].start_s + _MOST_LATE * grant.planned_s + INTERVAL_S
