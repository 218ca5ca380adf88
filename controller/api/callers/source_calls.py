# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Calls by source: callers of one address leave room for those of others.

The source of a call is the IP address of its connection; of an IPv6 address, the first 64 bits
count, because a host may choose the others. Callers of a Unix socket are processes of this
machine, which its file lets in: they have no source, and no limit.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from ...errors import SourceLimitError

MOST_CALLS: Final = 1024
"""Share of a source where the controller may open many files: 16 jobs with 64 workers each."""
_PARTS: Final = 4
"""A source has at most one of so many parts of all calls by default; by resuming, two."""
_RESUMING: Final = 2
"""So many times its share may a source have with workers that resume, and operators."""
_REMEMBERED: Final = 256
"""Sources whose refusals are counted."""
_HOST_BITS: Final = 64


def default_share(num_callers: int) -> int:
    """Return how many calls a source may have, of those that there may be in all."""
    return max(1, min(MOST_CALLS, num_callers // _PARTS))


def source_of(peer: str) -> str:
    """Return the source of a call from gRPC's name of its peer; "" if it has none."""
    kind, _, rest = peer.partition(":")
    if kind not in ("ipv4", "ipv6"):
        return ""
    text = unquote(rest.rpartition(":")[0]).strip("[]")
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    if address.is_loopback:
        return str(address)
    return str(ipaddress.ip_network((address, _HOST_BITS), strict=False))


@dataclass(frozen=True)
class SourceCount:
    """What callers of one source do, and did."""

    source: str
    calls: int
    """Under way now."""
    refused: int
    """Refused because of this source's limit."""


class SourceCalls:
    """Counts the calls of each source, and refuses those beyond its share."""

    def __init__(self, share: int) -> None:
        self.share: Final = share
        """Calls of a source beyond which no new worker and no row server is taken in."""
        self._calls: Counter[str] = Counter()
        self._refused: dict[str, int] = {}  # those refused last are last

    def enter(self, source: str) -> None:
        """Count a call; SourceLimitError if its source has too many, also for those that resume."""
        most = _RESUMING * self.share
        if source and self._calls[source] >= most:
            raise self._beyond(source, f"{most} calls under way, and no more are taken")
        self._calls[source] += 1

    def leave(self, source: str) -> None:
        """Count a call no longer."""
        self._calls[source] -= 1
        if not self._calls[source]:
            del self._calls[source]

    def check_share(self, source: str) -> None:
        """Raise SourceLimitError unless this call, which is counted, is within the share."""
        if source and self._calls[source] > self.share:
            raise self._beyond(
                source, f"{self.share} calls or more under way, and no new worker is taken"
            )

    def note_refused(self, source: str) -> None:
        """Count a refusal."""
        self._refused[source] = self._refused.pop(source, 0) + 1
        if len(self._refused) > _REMEMBERED:
            del self._refused[next(iter(self._refused))]

    def counts(self, most: int) -> list[SourceCount]:
        """Return the sources that were refused most, then the busiest; at most so many."""
        sources = (self._calls.keys() | self._refused.keys()) - {""}
        found = [SourceCount(s, self._calls[s], self._refused.get(s, 0)) for s in sources]
        return sorted(found, key=lambda each: (-each.refused, -each.calls, each.source))[:most]

    def _beyond(self, source: str, what: str) -> SourceLimitError:
        return SourceLimitError(
            f"callers at {source} have {what}; end some of them, or raise max_calls_per_source "
            f"({self.share}) of the controller"
        )
