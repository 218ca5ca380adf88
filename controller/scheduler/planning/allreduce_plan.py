# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""An allreduce among hosts: chunks with roots by free bandwidth, sums up, results down.

MLfabric has the call; its rule was not available to us, and this one is ours. The vector is cut
into chunks, one for each root. All members send their part of a chunk to its root, which returns
the sum to all. Roots on faster links get larger chunks, and those on slow ones none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from ..checks import check_whole
from ..errors import InvalidTransferError
from ..network import Links, ResidualNetwork, TransferNetwork
from ..residual_rate import RateSpan

_HALVINGS: Final = 60
_PIECES: Final = 4
"""Of each chunk."""


@dataclass(frozen=True, kw_only=True)
class ChunkLeg:
    """A piece of a chunk on its path between a member and its root."""

    sender: str
    receiver: str
    start_byte: int
    stop_byte: int
    links: Links
    spans: tuple[RateSpan, ...]
    end_s: float
    """Arrival of the last byte."""


@dataclass(frozen=True, kw_only=True)
class AllreducePlan:
    """When all bytes of an allreduce move."""

    chunks: Mapping[str, tuple[int, int]]
    """By root, (start, stop) of its chunk in bytes; only roots that have one."""
    up: tuple[ChunkLeg, ...]
    """Members' parts to the roots. A root adds what it gets to its own part, if it is a member."""
    down: tuple[ChunkLeg, ...]
    """Sums to the members; each piece leaves when its root has all parts of it."""
    end_s: float


def plan_allreduce(
    residual: ResidualNetwork,
    members: Sequence[str],
    size_bytes: int,
    now_s: float,
    helpers: Sequence[str] = (),
    *,
    value_bytes: int = 1,
) -> AllreducePlan:
    """Plan the sum of one vector of each member; reserve it in `residual`.

    `helpers` are idle hosts that may be roots, too; they are if that ends earlier. No piece begins
    or ends within a value of `value_bytes`. Cost: O(hosts^2) plans of a leg. Raises what
    `check_allreduce` does.
    """
    check_allreduce(residual.network, members, size_bytes, helpers, value_bytes=value_bytes)
    hosts = [*members, *helpers]
    plans: list[tuple[AllreducePlan, ResidualNetwork]] = []
    for roots in [members, hosts] if helpers else [members]:
        trial = residual.fork()
        rates = {host: _free_bits_per_s(residual, host, hosts, now_s) for host in roots}
        chunks = _cut(size_bytes, value_bytes, _shares(rates, members))
        pieces = {root: _pieces(*chunk, value_bytes) for root, chunk in chunks.items()}
        pairs = _pairs(members, chunks, rates)
        plans.append((_plan(trial, pairs, chunks, pieces, now_s), trial))
    best, trial = min(plans, key=lambda each: each[0].end_s)
    residual.adopt(trial)
    return best


def check_allreduce(
    network: TransferNetwork,
    members: Sequence[str],
    size_bytes: int,
    helpers: Sequence[str] = (),
    *,
    value_bytes: int = 1,
) -> None:
    """Raise InvalidTransferError, UnknownStationError or NoRouteError unless it can be planned."""
    check_whole("size_bytes", size_bytes, 1)
    check_whole("value_bytes", value_bytes, 1)
    if size_bytes % value_bytes:
        raise InvalidTransferError(
            f"size_bytes is {size_bytes}, which is no number of values of {value_bytes} bytes: "
            "give the size of whole values"
        )
    hosts = [*members, *helpers]
    if len(members) < 2 or len(set(hosts)) < len(hosts):
        raise InvalidTransferError(
            f"members {list(members)} and helpers {list(helpers)}: name at least two members, and "
            "each host once"
        )
    for host in hosts:
        network.check_host(host, "member or helper")
    for sender in hosts:
        for receiver in hosts:
            network.route(sender, receiver)


def _plan(
    residual: ResidualNetwork,
    pairs: Sequence[tuple[str, str]],
    chunks: Mapping[str, tuple[int, int]],
    pieces: Mapping[str, Sequence[tuple[int, int]]],
    now_s: float,
) -> AllreducePlan:
    """Plan all legs up, piece by piece, then all legs down."""
    up: list[ChunkLeg] = []
    down: list[ChunkLeg] = []
    summed_s: dict[tuple[str, int], float] = {}
    for number in range(_PIECES):
        for member, root in pairs:
            if number < len(pieces[root]):
                up.append(_plan_leg(residual, member, root, pieces[root][number], now_s))
                earlier_s = summed_s.get((root, number), now_s)
                summed_s[root, number] = max(earlier_s, up[-1].end_s)
    for number in range(_PIECES):
        for member, root in pairs:
            if number < len(pieces[root]):
                start_s = summed_s[root, number]
                down.append(_plan_leg(residual, root, member, pieces[root][number], start_s))
    end_s = max((leg.end_s for leg in down), default=now_s)
    return AllreducePlan(chunks=chunks, up=tuple(up), down=tuple(down), end_s=end_s)


def _pieces(start: int, stop: int, value_bytes: int) -> list[tuple[int, int]]:
    """Return a chunk's pieces: the first sums return while later parts are on their path."""
    count = (stop - start) // value_bytes
    cuts = [start + value_bytes * (count * n // _PIECES) for n in range(_PIECES + 1)]
    return [(a, b) for a, b in pairwise(cuts) if b > a]


def _free_bits_per_s(
    residual: ResidualNetwork, host: str, hosts: Sequence[str], now_s: float
) -> int:
    """Return what a host can send to, and get from, those of the others that are fastest now."""

    def free(sender: str, receiver: str) -> int:
        links = residual.network.route(sender, receiver)
        return min((residual.rate(link).rate_at(now_s) for link in links), default=0)

    others = [each for each in hosts if each != host]
    up, down = max(free(host, each) for each in others), max(free(each, host) for each in others)
    return max(1, min(up, down))


def _shares(rates: Mapping[str, int], members: Sequence[str]) -> dict[str, float]:
    """Return each root's share of the vector, so that no link is needed longer than must be.

    A member with share w sends and gets 1 + (n - 2) w vectors, a helper n w. The least time T in
    which the shares add up to 1 is found by halving; a vector at 1 bit/s takes T = 1.
    """
    count = len(members)
    helpers = [host for host in rates if host not in members]

    def shares(time: float) -> dict[str, float]:
        found: dict[str, float] = {}
        for host in members:
            spare = max(0.0, time * rates[host] - 1)
            found[host] = min(1.0, spare / (count - 2)) if count > 2 else 0.5
        return found | {host: min(1.0, time * rates[host] / count) for host in helpers}

    low = max(1 / rates[host] for host in members)
    high = 2 * count * low
    if sum(shares(low).values()) < 1:
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if sum(shares(middle).values()) >= 1 else (middle, high)
    else:
        high = low
    found = shares(high)
    total = sum(found.values())
    return {host: share / total for host, share in found.items()}


def _cut(
    size_bytes: int, value_bytes: int, shares: Mapping[str, float]
) -> dict[str, tuple[int, int]]:
    """Return the chunk of each root in bytes, without empty ones."""
    chunks: dict[str, tuple[int, int]] = {}
    start, total = 0, 0.0
    for host, share in shares.items():
        total += share
        stop = value_bytes * round(size_bytes // value_bytes * min(total, 1.0))
        if stop > start:
            chunks[host] = start, stop
        start = stop
    return chunks


def _pairs(
    members: Sequence[str], chunks: Mapping[str, tuple[int, int]], rates: Mapping[str, int]
) -> list[tuple[str, str]]:
    """Return (member, root): slow members first, else in turns that meet each root once."""
    roots = list(chunks)
    pairs: list[tuple[int, int, str, str]] = []
    for number, member in enumerate(members):
        for turn in range(len(roots)):
            root = roots[(number + turn) % len(roots)]
            if root != member:
                pairs.append((rates[member], turn, member, root))
    return [(member, root) for *_, member, root in sorted(pairs, key=lambda each: each[:2])]


def _plan_leg(
    residual: ResidualNetwork,
    sender: str,
    receiver: str,
    chunk: tuple[int, int],
    start_s: float,
) -> ChunkLeg:
    start, stop = chunk
    links = residual.network.route(sender, receiver)
    spans = residual.plan(links, 8 * (stop - start), start_s)
    residual.reserve(links, spans)
    return ChunkLeg(
        sender=sender,
        receiver=receiver,
        start_byte=start,
        stop_byte=stop,
        links=links,
        spans=spans,
        end_s=spans[-1].end_s if spans else start_s,
    )
