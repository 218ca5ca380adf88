# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Networks, requests and checks for tests of the transfer scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from switchfold.controller.scheduler.network import TransferNetwork
from switchfold.controller.scheduler.residual_rate import RateSpan
from switchfold.controller.scheduler.scheduler import SchedulerOptions, TransferScheduler
from switchfold.controller.scheduler.transfers import (
    TransferDrop,
    TransferGrant,
    TransferGroup,
    TransferRequest,
)

MBIT = 1_000_000
UPDATE_BYTES = 12_500_000
"""1 s at 100 Mbit/s."""
SERVER = "h0"
Decisions = Sequence[TransferGrant | TransferDrop]


def star(
    num_workers: int,
    mbits_per_s: int = 100,
    others: Mapping[str, int | tuple[int, int]] | None = None,
) -> TransferNetwork:
    """A server h0 and workers h1, h2, ...; `others` have Mbit/s of their own, or (up, down)."""
    rates: dict[str, int | tuple[int, int]] = {
        f"h{number}": mbits_per_s for number in range(num_workers + 1)
    }
    rates |= others or {}
    return TransferNetwork.star(
        {
            host: rate * MBIT if isinstance(rate, int) else (rate[0] * MBIT, rate[1] * MBIT)
            for host, rate in rates.items()
        }
    )


def make(num_workers: int = 4, **options: object) -> TransferScheduler:
    """A scheduler for h0 with that many workers and the idle hosts a1 and a2."""
    network = star(num_workers, others={"a1": 100, "a2": 100})
    return TransferScheduler(network, {SERVER: 0}, SchedulerOptions(**options))  # type: ignore[arg-type]


def push(
    number: int, *, size_bytes: int = UPDATE_BYTES, version: int = 0, worker: str = ""
) -> TransferRequest:
    """A request of worker h<number>, with that id unless another worker is named."""
    return TransferRequest(
        transfer_id=number,
        worker=worker or f"h{number}",
        server=SERVER,
        size_bytes=size_bytes,
        version=version,
    )


def grants_of(decisions: Decisions) -> list[TransferGrant]:
    return [each for each in decisions if isinstance(each, TransferGrant)]


def drops_of(decisions: Decisions) -> list[TransferDrop]:
    return [each for each in decisions if isinstance(each, TransferDrop)]


def moved_bits(spans: Iterable[RateSpan]) -> float:
    return sum((end - start) * rate for start, end, rate in spans)


def reservations(grants: Iterable[TransferGrant]) -> list[tuple[str, RateSpan]]:
    """(link, span) of all bytes that grants plan: of members once each, of sums once a group."""
    found: list[tuple[str, RateSpan]] = []
    groups: dict[int, TransferGroup] = {}
    for grant in grants:
        found += [(link, span) for link in grant.planned.links for span in grant.planned.spans]
        if grant.group:
            groups[grant.group.group_id] = grant.group
    for group in groups.values():
        found += [(link, span) for link in group.links for span in group.spans]
    return found


def loads(reserved: Sequence[tuple[str, RateSpan]]) -> dict[str, list[tuple[float, int]]]:
    """By link, the sum of rates from each time on at which it changes."""
    changes: dict[str, dict[float, int]] = {}
    for link, (start, end, rate) in reserved:
        at = changes.setdefault(link, {})
        at[start] = at.get(start, 0) + rate
        at[end] = at.get(end, 0) - rate
    found: dict[str, list[tuple[float, int]]] = {}
    for link, at in changes.items():
        total = 0
        for time_s in sorted(at):
            total += at[time_s]
            found.setdefault(link, []).append((time_s, total))
    return found
